"""EASE over partitioned ratings: the Gram matrix of the columns that speak, by blocks of its rows, each the sum over
all shards along the fixed tree. Its inverse, and so `max_items`² numbers, is the work of one machine: this one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from twofold.completion.ease import EASE, LEFT_OUT, Solution, center_gram, find_judges, invert, make_weights, search_reg
from twofold.completion.partitioned._fit import begin_fit
from twofold.completion.partitioned._layout import Side, read_shard
from twofold.completion.partitioned._rows import ShardMap
from twofold.completion.partitioned.ratings import PartitionedRatings
from twofold.completion.partitioned.stored_rows import StoredRows
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.known_cells import stored
from twofold.core.engine.tasks import RUN, Tasks
from twofold.kernels.moments import csr_gram_rows

BLOCK = 2**16, 2**23  # numbers of the Gram matrix that are summed at a time, as the budget allows


# ---- the tasks ----------------------------------------------------------------------------------------------------


def count_seen(folder: Path, side: Side, units: list[int], width: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows,) how many cells that are not zero each row of a shard has, and their sum."""
    X = read_shard(folder, side, units, width)
    X = stored(X, X.data != 0)
    return np.diff(X.indptr), np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()


def read_heads(folder: Path, side: Side, units: list[int], width: int, heads: np.ndarray) -> sparse.csr_array:
    """The cells of a shard that are not zero, in the columns that speak."""
    X = read_shard(folder, side, units, width)
    place = np.full(width, -1, np.int32)
    place[heads] = np.arange(len(heads), dtype=np.int32)
    at = place[X.indices]
    X = stored(X, (X.data != 0) & (at >= 0))
    return sparse.csr_array((X.data, place[X.indices], X.indptr), shape=(X.shape[0], len(heads)))


def sum_block(
    folder: Path, side: Side, units: list[int], width: int, heads: np.ndarray, lo: int, hi: int
) -> np.ndarray:
    """Rows lo..hi of the upper triangle of the Gram matrix of a shard."""
    H = read_heads(folder, side, units, width, heads)
    G = np.zeros((hi - lo, len(heads)))
    csr_gram_rows(H.data, H.indices, H.indptr, lo, G)
    return G


def multiply_tails(folder: Path, side: Side, units: list[int], width: int, heads: np.ndarray) -> sparse.csr_array:
    """(m,d) products of the columns that speak with those that do not, over a shard."""
    X = read_shard(folder, side, units, width)
    silent = np.ones(width, bool)
    silent[heads] = False
    tails = stored(X, (X.data != 0) & silent[X.indices])
    return read_heads(folder, side, units, width, heads).T.tocsr() @ tails


def add_sparse(results: list[sparse.csr_array]) -> sparse.csr_array:
    total = results[0]
    for result in results[1:]:
        total = total + result
    return total


def take_rows(
    folder: Path, side: Side, units: list[int], width: int, rows: np.ndarray, heads: np.ndarray
) -> sparse.csr_array:
    """Some rows of a shard, in the columns that speak."""
    return read_heads(folder, side, units, width, heads)[rows]


# ---- the fit ------------------------------------------------------------------------------------------------------


def fit_ease(model: EASE, ratings: PartitionedRatings, sample_weight: Any) -> EASE:
    """EASE as its class says it."""
    sweeper = begin_fit(model, ratings, sample_weight, 1)
    fits = ratings.n_ratings * (ratings.dtype.itemsize + 4) <= config().memory // 4
    if not fits and ratings._temporary is not None:
        raise InputError(
            f"the {ratings.n_ratings:,} ratings, which predict(rows, cols) needs, take more than a quarter of the "
            "memory budget and would stay in a temporary folder. Give PartitionedRatings a folder to keep them in, or "
            "raise twofold.config(memory=...)."
        )
    seen = StoredRows(ratings)

    def sweep(state: Solution | None, t: int) -> loop.Sweep:
        found = solve(model, ratings, sweeper.tasks)
        objective = float((1 / found.diagonal.astype(np.float64) - found.reg).sum())
        return loop.Sweep(found, objective, {"reg": found.reg}, done=True)

    def fitted(w: Solution) -> dict[str, Any]:
        return model._attributes(w, seen[np.arange(ratings.shape[0])] if fits else seen)

    loop.run(model, sweep, None, max_iter=1, tol=0.0, fitted=fitted, X=ratings, fingerprint=ratings.sign)
    return model


def solve(model: EASE, ratings: PartitionedRatings, tasks: Tasks) -> Solution:
    """The closed form."""
    (n, d), dtype = ratings.shape, ratings.dtype
    rows, cols = (ShardMap(ratings, side, tasks) for side in (ratings.rows, ratings.cols))
    counts, sums = (np.concatenate(part) for part in zip(*tasks.gather(cols.map(count_seen)), strict=True))
    seen = np.concatenate([found[0] for found in tasks.gather(rows.map(count_seen))])
    root = (seen > 0).astype(np.float64)
    mass = float(root.sum()) or 1.0
    mean = (sums / mass if model.intercept else np.zeros(d)).astype(dtype)
    heads = np.sort(np.argsort(-counts, kind="stable")[: model.max_items])
    m = len(heads)
    G = np.zeros((m, m), dtype)
    step = max(1, int(np.clip(config().memory // (16 * RUN), *BLOCK)) // m)
    for lo in range(0, m, step):
        hi = min(lo + step, m)
        G[lo:hi] = tasks.gather([rows.reduce(sum_block, heads, lo, hi)])[0]
    center_gram(G, mean[heads], mass)
    if model.reg == "auto":
        judges = find_judges(counts[heads])
        left = np.unique(np.linspace(0, n - 1, LEFT_OUT).astype(np.int64))
        X = rows.take(left, take_rows, heads)[:, judges].toarray()
        reg = search_reg(X, root[left], mass, G, mean[heads], judges)
    else:
        reg = float(model.reg)
    B, diagonal = make_weights(invert(G, reg))
    cross = sparse.csr_array((m, d), dtype=dtype)
    if m < d:
        cross = tasks.gather([tasks.reduce(rows.map(multiply_tails, heads), add_sparse)])[0]
    return Solution(B, diagonal, heads, cross, mean, mass, reg)
