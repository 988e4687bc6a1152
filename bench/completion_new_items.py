"""Films without ratings: a tenth of MovieLens-100K is unseen in training, ranked for every user by features alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from bench import machine
from bench.harness import Bar, Contestant, Event, Missing, Row, apart, optional
from twofold import Recommender, datasets
from twofold.completion.recommender._features import Features, learn_content, make_profiles, read_features, score_new
from twofold.core.checks import InputError

N = 10
NAME = "completion_new_items"


class Job(NamedTuple):
    """Ratings of known films, features of all, and the raters of each new one."""

    X: sparse.csr_array  # (users, known films)
    known: np.ndarray  # their ids
    new: np.ndarray
    films: pl.DataFrame
    features: Features
    test: sparse.csr_array  # (users, new films)


def prepare() -> Job:
    data = datasets.fetch("movielens100k")
    films = data.films.with_columns(
        year=pl.col("title").str.extract(r"\((\d{4})\)").cast(pl.Float64),
        title=pl.col("title").str.replace(r"\(\d{4}\)", ""),
    )
    ids = films["item"].to_numpy()
    new = np.sort(np.random.default_rng(0).permutation(ids)[: len(ids) // 10])
    known = np.setdiff1d(ids, new)
    i, j, x = (data.ratings[name].to_numpy() for name in ("user", "item", "rating"))
    unseen = np.isin(j, new)

    def table(chosen: np.ndarray, columns: np.ndarray) -> sparse.csr_array:
        cells = (i[chosen] - 1, np.searchsorted(columns, j[chosen]))
        return sparse.csr_array((x[chosen].astype(float), cells), shape=(int(i.max()), len(columns)))

    features = read_features(films, known, "item")
    return Job(table(~unseen, known), known, new, films, features, table(unseen, new))


def content_scores(job: Job, S: np.ndarray) -> np.ndarray:
    """(users, new) scores of the known films, regressed on features."""
    place = {item: a for a, item in enumerate(job.features.ids.tolist())}
    known, new = ([place[item] for item in ids.tolist()] for ids in (job.known, job.new))
    content = learn_content(job.features.F[known], S)
    return score_new(content, *make_profiles(content, S), job.features.F[new])


def with_features(job: Job) -> np.ndarray:
    """The lists of the recommender, of which the new films are kept."""
    i, j = job.X.nonzero()
    ratings = pl.DataFrame({"user": i, "item": job.known[j], "rating": job.X.data})
    rec = Recommender(random_state=0).fit(ratings, items=job.films)
    out = np.full(job.test.shape, -np.inf)
    for frame in rec.recommend_all(len(job.known) + len(job.new)):
        mine = frame.filter(pl.col("item").is_in(job.new.tolist()))
        out[mine["user"].to_numpy(), np.searchsorted(job.new, mine["item"].to_numpy())] = mine["score"].to_numpy()
    return out


def content_alone(job: Job) -> np.ndarray:
    return content_scores(job, (job.X > 0).toarray().astype(float))


def popularity(job: Job) -> np.ndarray:
    """Predict the number of ratings of a film from its features."""
    counts = np.bincount(job.X.indices, minlength=job.X.shape[1]) / job.X.shape[0]
    return content_scores(job, np.tile(counts, (job.X.shape[0], 1)))


def cold_start(job: Job) -> Contestant:
    from cmfrec import CMF_implicit

    place = {item: a for a, item in enumerate(job.features.ids.tolist())}
    known, new = ([place[item] for item in ids.tolist()] for ids in (job.known, job.new))
    F = job.features.F.toarray()

    def run() -> np.ndarray:
        model = CMF_implicit(k=40, nthreads=machine.threads(), verbose=False, random_state=1)
        model.fit(sparse.coo_matrix(job.X), I=F[known])
        items = np.array([model.item_factors_cold(I=F[a]) for a in new])
        return model.A_ @ items.T

    return Contestant("cmfrec CMF_implicit, cold start", run, note="the same features, 40 factors")


def measure(job: Job, scores: np.ndarray) -> dict[str, float]:
    asked = np.flatnonzero(np.diff(job.test.indptr))
    lists = np.argsort(-scores[asked], axis=1, kind="stable")[:, :N]
    relevant = [set(job.test.indices[job.test.indptr[u] : job.test.indptr[u + 1]].tolist()) for u in asked]
    gains = [[a in wanted for a in found] for found, wanted in zip(lists.tolist(), relevant, strict=True)]
    discount = 1 / np.log2(np.arange(2, N + 2))
    ideal = np.array([discount[: min(len(wanted), N)].sum() for wanted in relevant])
    return {"ndcg": float(((np.array(gains) @ discount) / ideal).mean())}


def new_films(quick: bool) -> Event | Missing:
    try:
        job = prepare()
    except InputError as why:
        return Missing(NAME, str(why))

    def beats(rows: list[Row]) -> bool:
        figures = {row.contestant: row.quality["ndcg"] for row in rows if row.ours}
        first = figures["twofold, ratings and features"]
        return first > figures["content alone"] and first > figures["popularity by features"]

    return Event(
        NAME,
        f"{len(job.new)} films of MovieLens-100K unseen in training, ranked for everyone by genres, title and year",
        [
            apart(entry)
            for entry in (
                Contestant("twofold, ratings and features", lambda: with_features(job), ours=True),
                Contestant("content alone", lambda: content_alone(job), ours=True, counts=False),
                Contestant("popularity by features", lambda: popularity(job), ours=True, counts=False),
                optional("cmfrec CMF_implicit, cold start", "cmfrec", lambda: cold_start(job)),
            )
        ],
        quality=lambda scores: measure(job, scores),
        as_good=lambda a, b: a["ndcg"] >= b["ndcg"] - 0.005,
        bar=Bar("NDCG@10 above content alone and above popularity", test=beats),
        notes=[
            "A film that a user rated is relevant to the user. Popularity cannot distinguish films without ratings."
        ],
        budget=1.0,
        repeats=1,
    )


EVENTS = (new_films,)
