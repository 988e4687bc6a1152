"""The start of a mixture: short runs of EM from several clusterings, of which the likeliest continues.

    8 clusterings of some rows by k-means from k-means++, every other one after 3 sweeps, the others after 30
    up to 10 sweeps of EM each; the 3 likeliest have up to 20 more; the likeliest of these is the start

The clustering of least cost often is not the likeliest start, so the likelihood decides, and some runs of k-means stop
early so that starts differ. A likelihood after a fit of p parameters to m rows is too high by about p/m a row; so that
this hides no start, there are at least ROWS_PER_PARAMETER rows for each. The search costs at most
8·10 + 3·20 = 140 sweeps of EM over these rows: on 20,000 rows of 26 columns with ten components as much as
53 of the fit.
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

MIN_START_ROWS, ROWS_PER_PARAMETER, MAX_START_ROWS = 4_000, 2, 20_000  # for the search of a start
STARTS, KMEANS_SWEEPS = 8, (3, 30)
ROUNDS = ((10, 3), (20, 1))  # sweeps of a round, and the number of starts that continue
MIN_GAIN = 1e-4  # nats per row; a start with a smaller gain has converged


def count_rows(n_parameters: int) -> int:
    """Return how many rows the search of a start needs."""
    return int(np.clip(ROWS_PER_PARAMETER * n_parameters, MIN_START_ROWS, MAX_START_ROWS))


def draw_rows(n: int, w: np.ndarray | None, k: int, max_rows: int, seed: int) -> np.ndarray:
    """Draw the numbers of at most `max_rows` rows, in order; rows of weight 0 only if fewer than k others exist."""
    able = np.arange(n) if w is None or np.count_nonzero(w) < k else np.flatnonzero(w)
    return able if len(able) <= max_rows else np.sort(generator(seed).choice(able, max_rows, replace=False))


def cluster_several(rows: Any, k: int, w: np.ndarray | None, seed: int) -> Iterator[Centers]:
    """Yield centers of several short runs of k-means; of a single one if k is 1."""
    for t in range(STARTS if k > 1 else 1):
        with loop.quietly():
            model = KMeans(k, init="k-means++", max_iter=KMEANS_SWEEPS[t % 2], random_state=seed_of(generator(seed, t)))
            yield model.fit(rows, sample_weight=w)._centers()


def select_start(starts: Iterable[State], step: Callable[[State], tuple[State, float]]) -> State:
    """Return the likeliest state after some sweeps from each start; `step` returns the next state and the likelihood.

    A start whose covariances have no inverse on these few rows is dropped.
    """
    field = list(starts)
    for sweeps, kept in ROUNDS if len(field) > 1 else ():
        ends = [_sweep(state, step, sweeps) for state in field]
        order = np.argsort([-value for _, value in ends], kind="stable")
        field = [ends[i][0] for i in order[:kept]]
    return field[0]


def _sweep(state: State, step: Callable[[State], tuple[State, float]], sweeps: int) -> tuple[State, float]:
    value, before, begin = -np.inf, -np.inf, state
    try:
        for _ in range(sweeps):
            state, value = step(state)
            if value - before <= MIN_GAIN:
                break
            before = value
    except np.linalg.LinAlgError:
        return begin, -np.inf
    return (state, value) if np.isfinite(value) else (begin, -np.inf)
