"""Lists with defaults: a fifth of the ratings held out, the ten best of all items not seen, NDCG@10."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from bench.harness import Bar, Contestant, Event, Missing, Row, apart, optional
from twofold import Recommender, datasets, metrics
from twofold.completion.recommender.splits import split_cells
from twofold.core.checks import InputError
from twofold.core.data.known_cells import keep_stored

N = 10
SLACK = 0.005  # what ours may be below the best
RIDGE = 500.0  # of plain EASE, as its author had it for MovieLens
TRIALS = 20  # of irspack's tuner, its default
PUBLISHED = "published for 75/25 of each user: BiVAE 0.475, BPR 0.442, SAR 0.382 (Recommenders team, benchmark table)"


class Job(NamedTuple):
    """What everyone is shown and what is held out; a cell of either is an item that somebody rated."""

    train: sparse.csr_array  # (users, items), ratings
    test: sparse.csr_array

    @property
    def seen(self) -> sparse.csr_matrix:
        """Ones in the cells of training, in the form peers ask for."""
        X = self.train
        return sparse.csr_matrix((np.ones(X.nnz, np.float32), X.indices, X.indptr), shape=X.shape)


def hold_out(frame: pl.DataFrame, kind: str, share: float) -> Job:
    ids = [frame[name].rank("dense").to_numpy().astype(np.int64) - 1 for name in ("user", "item")]
    shape = tuple(int(i.max()) + 1 for i in ids)
    X = sparse.csr_array((frame["rating"].to_numpy().astype(np.float32), tuple(ids)), shape=shape)
    X.sort_indices()
    fold = split_cells(X, kind, share, None, seed=0)
    return Job(keep_stored(X, fold < 0), keep_stored(X, fold == 0))


def best_unseen(job: Job, score: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """(users, 10) the best items of each user from scores (m, items) of some users."""
    out = []
    for start in range(0, job.train.shape[0], 500):
        rows = np.arange(start, min(start + 500, job.train.shape[0]))
        S = np.array(score(rows), dtype=np.float32)
        S[job.train[rows].nonzero()] = -np.inf
        out.append(np.argsort(-S, axis=1, kind="stable")[:, :N])
    return np.concatenate(out)


def twofold(job: Job) -> np.ndarray:
    i, j = job.train.nonzero()
    rec = Recommender(random_state=0).fit((i, j, job.train.data))
    out = np.full((job.train.shape[0], N), -1)
    popular = np.argsort(-np.bincount(j, minlength=job.train.shape[1]), kind="stable")[:N]
    out[:] = popular  # whoever has no rating left to learn from gets what most have
    for frame in rec.recommend_all(N):
        for (user,), part in frame.group_by("user"):
            out[user] = -1
            out[user, : len(part)] = part["item"].to_numpy()
    return out


def popularity(job: Job) -> np.ndarray:
    counts = np.bincount(job.train.indices, minlength=job.train.shape[1])
    return best_unseen(job, lambda rows: np.tile(counts, (len(rows), 1)))


def plain_ease(job: Job) -> np.ndarray:
    X = job.seen
    G = (X.T @ X).toarray()
    G[np.diag_indices_from(G)] += RIDGE
    P = np.linalg.inv(G)
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0)
    return best_unseen(job, lambda rows: X[rows] @ B)


def implicit(job: Job) -> Contestant:
    from implicit.cpu.als import AlternatingLeastSquares

    def run() -> np.ndarray:
        model = AlternatingLeastSquares(random_state=0)
        model.fit(job.seen, show_progress=False)
        return best_unseen(job, lambda rows: model.user_factors[rows] @ model.item_factors.T)

    return Contestant("implicit ALS", run)


def irspack(job: Job, tuned: bool) -> Contestant:
    from irspack import Evaluator, IALSRecommender

    def run() -> np.ndarray:
        X, found = job.seen.astype(np.float64), {}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            if tuned:
                fold = split_cells(sparse.csr_array(X), "random", 0.1, None, seed=1)
                train, held = (sparse.csr_matrix(keep_stored(sparse.csr_array(X), fold == f)) for f in (-1, 0))
                for name in ("optuna", "irspack"):  # it tells of every trial
                    logging.getLogger(name).setLevel(logging.ERROR)
                found, _ = IALSRecommender.tune(train, Evaluator(held), n_trials=TRIALS, tuning_random_seed=0)
            model = IALSRecommender(X, **found).learn()
        return best_unseen(job, model.get_score)

    name = f"irspack iALS, tuned in {TRIALS} trials" if tuned else "irspack iALS"
    return Contestant(name, run, counts=not tuned, warm=(lambda: None) if tuned else None)


def lenskit(job: Job, scorer_name: str) -> Contestant:
    from lenskit import recommend
    from lenskit.als import ImplicitMFScorer
    from lenskit.data import from_interactions_df
    from lenskit.knn import ItemKNNScorer
    from lenskit.pipeline import topn_pipeline

    i, j = job.train.nonzero()
    data = from_interactions_df(pl.DataFrame({"user_id": i, "item_id": j}).to_pandas())
    scorer = {"iALS": ImplicitMFScorer, "item neighbors": lambda: ItemKNNScorer(feedback="implicit")}[scorer_name]

    def run() -> np.ndarray:
        pipe = topn_pipeline(scorer(), n=N)
        pipe.train(data)
        out = np.full((job.train.shape[0], N), -1)
        for user in np.unique(i):
            found = recommend(pipe, int(user), n=N).ids()
            out[user, : len(found)] = found
        return out

    return Contestant(f"LensKit {scorer_name}", run)


def event(name: str, title: str, make: Callable[[], Job], bar: bool, notes: list[str], quick: bool) -> Event | Missing:
    try:
        job = make()
    except InputError as why:
        return Missing(f"completion_ranking {name}", str(why))
    users = np.flatnonzero(np.diff(job.test.indptr))
    entries: list[Contestant | Missing] = [
        Contestant("twofold Recommender", lambda: twofold(job), ours=True),
        Contestant("EASE in NumPy", lambda: plain_ease(job), note=f"ridge {RIDGE:g}"),
        Contestant("popularity", lambda: popularity(job)),
        optional("implicit ALS", "implicit", lambda: implicit(job)),
        optional("irspack iALS", "irspack", lambda: irspack(job, False)),
        optional("LensKit iALS", "lenskit", lambda: lenskit(job, "iALS")),
        optional("LensKit item neighbors", "lenskit", lambda: lenskit(job, "item neighbors")),
    ]
    if not quick:
        entries.append(optional("irspack iALS, tuned", "irspack", lambda: irspack(job, True)))

    def quality(lists: np.ndarray) -> dict[str, float]:
        return {"ndcg@10": float(metrics.ndcg_at_k(lists[users], job.test[users], N))}

    def good(rows: list[Row]) -> bool:
        figures = {row.contestant: row.quality["ndcg@10"] for row in rows if row.quality and (row.ours or row.counts)}
        own = figures["twofold Recommender"]
        return own >= max(figures.values()) - SLACK and own > figures["popularity"]

    return Event(
        f"completion_ranking {name}",
        f"{title}: {job.train.shape[0]:,} x {job.train.shape[1]:,}, {job.train.nnz:,} ratings shown",
        [apart(entry) for entry in entries],
        quality=quality,
        as_good=lambda a, b: a["ndcg@10"] >= b["ndcg@10"] - SLACK,
        bar=Bar(f"NDCG@10 at least the best with defaults less {SLACK:g}, and above popularity", test=good)
        if bar
        else None,
        notes=["Ours chooses its model on data held out of what it is shown; its seconds include that.", *notes],
        budget=1.0,
        repeats=1,
    )


def movielens(quick: bool) -> Event | Missing:
    return event(
        "movielens",
        "MovieLens-100K, a fifth of the ratings held out",
        lambda: hold_out(datasets.fetch("movielens100k").ratings, "random", 0.2),
        True,
        [],
        quick,
    )


def anime(quick: bool) -> Event | Missing:
    def make() -> Job:
        frame = datasets.fetch("anime").ratings
        if quick:
            frame = frame.filter(pl.col("user").hash(0) % 10 == 0)
        return hold_out(frame, "random", 0.2)

    return event("anime", "Anime, a fifth of the ratings held out", make, True, [], quick)


def event_of_bundled(quick: bool) -> Event | Missing:
    return event(
        "bundled",
        "The bundled made-up ratings, a fifth held out",
        lambda: hold_out(datasets.ratings().ratings, "random", 0.2),
        True,
        ["Here people mostly see what everyone sees, with a little taste: popularity is hard to beat."],
        quick,
    )


def event_as_published(quick: bool) -> Event | Missing:
    return event(
        "published",
        "MovieLens-100K, a quarter of each user's ratings held out",
        lambda: hold_out(datasets.fetch("movielens100k").ratings, "leave-out", 0.25),
        False,
        [PUBLISHED],
        quick,
    )


EVENTS = (movielens, anime, event_of_bundled, event_as_published)
