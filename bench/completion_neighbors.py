"""Neighborhoods and biases on MovieLens-100K: all five published splits, fitted and predicted, errors pooled."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from bench.harness import Bar, Contestant, Event, Missing, Row, Timed, optional
from twofold import Biases, Neighborhood, datasets
from twofold.core.checks import InputError

USERS, ITEMS = 943, 1682


class Split(NamedTuple):
    """Ratings to learn from and ratings to predict; users and items count from 0."""

    X: sparse.csr_array  # (users, items)
    users: np.ndarray
    items: np.ndarray
    truth: np.ndarray


@cache
def splits() -> list[Split]:
    out = []
    for train, test in datasets.fetch("movielens100k").splits:
        (i, j, x), (users, items, truth) = ((f["user"] - 1, f["item"] - 1, f["rating"]) for f in (train, test))
        X = sparse.csr_array((x.to_numpy().astype(float), (i.to_numpy(), j.to_numpy())), shape=(USERS, ITEMS))
        out.append(Split(X, users.to_numpy(), items.to_numpy(), truth.to_numpy().astype(float)))
    return out


def errors(predicted: list[np.ndarray], sets: list[Split]) -> dict[str, float]:
    """Root mean squared and mean absolute error, all splits in one pool, ratings held between 1 and 5."""
    gaps = np.concatenate([np.clip(p, 1, 5) - s.truth for p, s in zip(predicted, sets, strict=True)])
    return {"rmse": float(np.sqrt((gaps**2).mean())), "mae": float(np.abs(gaps).mean())}


def as_good(a: dict[str, float], b: dict[str, float]) -> bool:
    return a["rmse"] <= b["rmse"] + 0.001


def ours(name: str, make: Callable[[], Any], sets: list[Split], **more: Any) -> Contestant:
    def run() -> list[np.ndarray]:
        return [make().fit(s.X).predict(s.users, s.items) for s in sets]

    return Contestant(name, run, ours=True, **more)


def surprise(name: str, make: Callable[[Any], Any], sets: list[Split], **more: Any) -> Contestant | Missing:
    def build() -> Contestant:
        import surprise
        from surprise.trainset import Trainset

        def make_lists(s: Split) -> tuple[Trainset, list]:
            cells = s.X.tocoo()
            ratings = [
                (int(i), int(j), float(x), None) for i, j, x in zip(cells.row, cells.col, cells.data, strict=True)
            ]
            data = surprise.Dataset(surprise.Reader(rating_scale=(1, 5))).construct_trainset(ratings)
            asked = [(int(i), int(j), float(x)) for i, j, x in zip(s.users, s.items, s.truth, strict=True)]
            return data, asked

        jobs = [make_lists(s) for s in sets]  # its own form of the data, made before the clock runs

        def run() -> Timed:
            seconds, out = 0.0, []
            for data, asked in jobs:
                began = time.perf_counter()
                found = make(surprise).fit(data).test(asked)
                seconds += time.perf_counter() - began
                out.append(np.array([p.est for p in found]))
            return Timed(seconds, out)

        def warm() -> Any:
            return make(surprise).fit(jobs[0][0]).test(jobs[0][1][:100])

        return Contestant(name, run, warm=warm, **more)

    return optional(name, "scikit-surprise", build)


def below(limit: float) -> Callable[[list[Row]], bool]:
    """Ours that counts reaches the error, and is faster than every peer."""

    def test(rows: list[Row]) -> bool:
        own = next(row for row in rows if row.ours and row.counts)
        peers = [row for row in rows if not row.ours and row.seconds]
        return own.quality["rmse"] <= limit and all(own.median < row.median for row in peers)

    return test


def event(name: str, title: str, entries: Callable[[list[Split]], list], limit: float, quick: bool) -> Event | Missing:
    try:
        sets = splits()[: 1 if quick else 5]
    except InputError as why:
        return Missing(f"completion_neighbors {name}", str(why))
    return Event(
        f"completion_neighbors {name}",
        f"{title}, MovieLens-100K, {len(sets)} published splits fitted and predicted, defaults",
        entries(sets),
        quality=lambda predicted: errors(predicted, sets),
        as_good=as_good,
        bar=Bar(f"RMSE <= {limit} over all splits together, and faster than Surprise", test=below(limit)),
        budget=60.0,
        notes=["Predictions are held between 1 and 5 for everyone."],
    )


def neighborhoods(quick: bool) -> Event | Missing:
    def entries(sets: list[Split]) -> list:
        items = {"name": "pearson_baseline", "user_based": False}
        return [
            ours("twofold", Neighborhood, sets),
            ours("twofold by users", lambda: Neighborhood(kind="user"), sets, counts=False),
            surprise("Surprise KNNBaseline items", lambda s: s.KNNBaseline(sim_options=items, verbose=False), sets),
            surprise(
                "Surprise KNNBaseline", lambda s: s.KNNBaseline(verbose=False), sets, note="its defaults, by users"
            ),
        ]

    return event("neighborhoods", "Neighborhoods over a baseline", entries, 0.931, quick)


def biases(quick: bool) -> Event | Missing:
    def entries(sets: list[Split]) -> list:
        return [
            ours("twofold", Biases, sets),
            surprise("Surprise BaselineOnly", lambda s: s.BaselineOnly(verbose=False), sets),
        ]

    return event("biases", "Row and column biases", entries, 0.944, quick)


EVENTS = (neighborhoods, biases)
