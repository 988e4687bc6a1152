"""The start of a factorization: it checks weights, and takes or draws components."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError, check_weights
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import add, engine_for, stack_results
from twofold.core.loop import quietly
from twofold.core.numerics.moments import Columns, column_moments, merge
from twofold.core.numerics.nndsvd import nndsvd
from twofold.core.seeds import generator
from twofold.factors._block import Problem, as_dense, fill_holes, start_codes
from twofold.factors._right_step import Data
from twofold.factors.constraints import NonNegative, OneHot
from twofold.factors.losses import Loss

ROWS_PER_COMPONENT, KMEANS_STARTS = 100, 4  # of the sample from which one-hot codes begin


def check_cell_weights(sample_weight: Any, shape: tuple[int, int]) -> tuple[np.ndarray | None, Any]:
    """Weights of the rows (n,), or of the cells (n,d), whichever is given."""
    if sample_weight is None:
        return None, None
    W = sparse.csr_array(sample_weight) if sparse.issparse(sample_weight) else np.asarray(sample_weight, np.float64)
    if W.ndim != 2:
        return check_weights(W, shape[0]), None
    if W.shape != shape:
        raise InputError(
            f"sample_weight.shape == {W.shape}, expected {shape} or {shape[:1]}: one weight a cell or row."
        )
    values: Any = W.data if sparse.issparse(W) else W
    if not np.isfinite(values).all() or values.min(initial=0) < 0:
        raise InputError("sample_weight has a cell that is negative or not finite; weights must be >= 0. Set it to 0.")
    if not values.any():
        raise InputError("sample_weight is zero everywhere; at least one cell must count.")
    return None, W


def compute_columns(blocks: Blocks, w: np.ndarray | None, W: Any, loss: Loss | None = None) -> Columns:
    """Mean and spread over the known cells of every column, or with a wide loss of what it expands columns to."""
    engine = engine_for(blocks)
    if W is None and loss is None:
        return column_moments(engine, blocks, w)
    shared = engine.broadcast(loss or Loss())
    return engine.reduce(merge, engine.map(_weigh_columns, blocks, blocks.rows(w), blocks.rows(W), shared))


def _weigh_columns(X: Any, w: Any, W: Any, loss: Loss) -> Columns:
    cells = loss.expand(as_dense(X).astype(np.float64))
    given = np.ones(cells.shape) if W is None else spread_weights(as_dense(W), loss)
    x, weights = fill_holes(cells, given if w is None else given * w[:, None], np.zeros(cells.shape[1]), Loss())
    weight = np.asarray(weights).sum(axis=0)
    mean = (weights * x).sum(axis=0) / np.maximum(weight, 1e-300)
    return Columns(weight, mean, (weights * (x - mean) ** 2).sum(axis=0), 0, float(len(x)))


def spread_weights(W: np.ndarray, loss: Loss) -> np.ndarray:
    """Weights of cells (m,d) for what the loss expands these to (m,D)."""
    owners = loss.owners(W.shape[1])
    return W if owners is None else W[:, owners]


def start_intercept(p: Problem, columns: Columns) -> np.ndarray:
    """A first level of every column, less the shift, from the moments of what the loss expands it to."""
    mean = np.where(columns.weight > 0, columns.mean, 0)
    return np.where(p.spread(np.broadcast_to(p.loss.shifts, len(p.shift))), 0, p.loss.start(mean))


def average_tied(Z: np.ndarray, p: Problem) -> np.ndarray:
    """Z with the mean of tied columns in the place of each."""
    if p.heads is None:
        return Z
    counts = np.bincount(p.heads, minlength=len(p.heads))[p.heads]
    return p.tie(np.asarray(Z).T).T / counts


def check_init(init: Any, data: Data) -> np.ndarray:
    width = len(data.problem.spread(data.problem.shift))
    Z, shape = np.asarray(init, dtype=np.float64), (data.problem.k, width)
    if Z.shape != shape or not np.isfinite(Z).all():
        raise InputError(f"init must be {shape} finite numbers; it has shape {Z.shape}. Check it.")
    return Z


def is_sum_of_parts(data: Data, columns: Columns) -> bool:
    """True if NNDSVD is better than chance: for positive parts by rules that multiply, which do not leave the minimum
    near which they begin, of a table without holes or weights of cells."""
    p = data.problem
    return p.loss.positive and isinstance(p.left, NonNegative) and data.W is None and not columns.missing


def find_init(data: Data, columns: Columns, seed: int) -> np.ndarray:
    """Components by NNDSVD, with the typical entry in place of zeros, which ratios would increase very slowly."""
    k = data.problem.k
    level = float(np.sqrt(columns.mean.mean() / k))
    return nndsvd(data.engine, data.blocks, data.w, False, k, seed, level, level).V.T


def draw_init(data: Data, columns: Columns, seed: int) -> np.ndarray:
    """Noise of the columns' size; where codes are discrete, rows of X by chance, each as likely as its weight.

    Where each row is one component, these are a sample, and the start is the result of k-means on it.
    """
    p, rng = data.problem, generator(seed)
    mean, spread = np.where(columns.weight > 0, columns.mean, 0), np.sqrt(columns.variance)
    noise = rng.standard_normal((p.k, len(mean)))
    if p.loss.positive:
        return (mean + 1e-6 * max(float(mean.mean()), 1e-6)) * noise**2
    if not p.left.discrete:
        return p.loss.start(mean) - p.spread(p.shift) + spread * noise
    mass = np.cumsum(np.ones(data.blocks.shape[0]) if data.w is None else data.w)
    one_hot = isinstance(p.left, OneHot)
    chosen = np.searchsorted(mass, rng.random(ROWS_PER_COMPONENT * p.k if one_hot else p.k) * mass[-1], side="right")
    places = Rows(
        np.unique(chosen[(chosen >= a) & (chosen < b)]) - a
        for a, b in zip(data.blocks.bounds[:-1], data.blocks.bounds[1:], strict=True)
    )
    parts = data.engine.map(_pick, data.blocks, data.blocks.rows(data.W), places)
    rows = stack_results(data.engine.gather(parts))[np.searchsorted(np.unique(chosen), chosen)].astype(np.float64)
    rows = p.loss.expand(rows)
    rows = np.where(np.isnan(rows), mean, rows)
    if one_hot:
        from sklearn.cluster import KMeans

        with quietly():  # rows may be fewer than components, or equal
            rows = KMeans(p.k, n_init=KMEANS_STARTS, random_state=seed).fit(rows).cluster_centers_
    return p.loss.start(rows) - p.spread(p.shift) + 0.01 * spread * noise


def _pick(X: Any, W: Any, places: np.ndarray) -> np.ndarray:
    rows = as_dense(X[places])
    return rows if W is None else np.where(as_dense(W[places]) > 0, rows, np.nan)


def start_all_codes(V: np.ndarray, data: Data) -> Rows:
    """Codes to begin with, which stay with the blocks."""
    Z, _ = data.problem.split(V)
    shared = data.engine.broadcast(Z), data.engine.broadcast(data.problem)
    parts = data.engine.map(_start_block, data.blocks, data.blocks.rows(data.W), *shared)
    return data.engine.reduce(add, parts, keep=True)[0]


def _start_block(X: Any, W: Any, Z: np.ndarray, p: Problem) -> tuple[tuple, float]:
    return (start_codes(X, W, Z, p),), 0.0
