"""Where a mixture begins: short runs of EM from several clusterings, of which the likeliest goes on.

    8 clusterings of at most some thousand rows, each by 3 sweeps of k-means from k-means++
    up to 5 sweeps of EM each; the 3 likeliest have up to 8 more; the likeliest of these is the start

A clustering of the least cost often is not the likeliest start, so likelihood chooses, and k-means is cut short so that
starts differ. On large data all this costs as much as a few sweeps of EM, and saves as many.
Reference: Biernacki, Celeux & Govaert 2003.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from twofold.clusters.kmeans.assign import Centers
from twofold.clusters.kmeans.kmeans import KMeans
from twofold.core import loop
from twofold.core.seeds import generator, seed_of
from twofold.core.types import State

ROWS = 2_000  # rows that choose the start, unless components need more
STARTS, LLOYD = 8, 3
HEATS = ((5, 3), (8, 1))  # sweeps, and how many go on
STILL = 1e-3  # nats a row: who gains no more has arrived


def draw_rows(n: int, w: np.ndarray | None, k: int, most: int, seed: int) -> np.ndarray:
    """The numbers, in order, of at most `most` rows; those of weight 0 only where the others are fewer than k."""
    able = np.arange(n) if w is None or np.count_nonzero(w) < k else np.flatnonzero(w)
    return able if len(able) <= most else np.sort(generator(seed).choice(able, most, replace=False))


def cluster_several(rows: Any, k: int, w: np.ndarray | None, seed: int) -> Iterator[Centers]:
    """Centers of several unfinished runs of k-means; of a single one, if all would be the same."""
    for t in range(STARTS if k > 1 else 1):
        with loop.quietly():
            model = KMeans(k, init="k-means++", max_iter=LLOYD, random_state=seed_of(generator(seed, t)))
            yield model.fit(rows, sample_weight=w)._centers()


def race(starts: Iterable[State], step: Callable[[State], tuple[State, float]]) -> State:
    """The likeliest state after some sweeps from each start; `step` gives the next state, and the likelihood before.

    A start whose covariances have no inverse on these few rows loses.
    """
    field = list(starts)
    for sweeps, kept in HEATS if len(field) > 1 else ():
        ends = [_run(state, step, sweeps) for state in field]
        order = np.argsort([-value for _, value in ends], kind="stable")
        field = [ends[i][0] for i in order[:kept]]
    return field[0]


def _run(state: State, step: Callable[[State], tuple[State, float]], sweeps: int) -> tuple[State, float]:
    value, before, begin = -np.inf, -np.inf, state
    try:
        for _ in range(sweeps):
            state, value = step(state)
            if value - before <= STILL:
                break
            before = value
    except np.linalg.LinAlgError:
        return begin, -np.inf
    return (state, value) if np.isfinite(value) else (begin, -np.inf)
