"""NNDSVD: where non-negative factors begin.

    X ≈ Σ_c s_c a_c b_cᵀ      of each pair (a, b) the larger of its positive and its negative part is kept

The singular vectors come from a few turns of subspace iteration, which is as much as a start needs; sparse data stays
sparse, and holes stand at their column's mean.
Reference: Boutsidis & Gallopoulos 2008.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import Engine, add
from twofold.core.numerics.krylov import iterate_subspace, random_basis, rayleigh_ritz
from twofold.core.numerics.moments import column_moments
from twofold.core.seeds import generator

LIFT = 0.01  # of the typical entry: what zeros of the start are lifted to, for rules that multiply
SUBSPACE_ITERATIONS = 6  # of subspace iteration: fewer leave the start of texts to chance


class Start(NamedTuple):
    """Both factors to begin with."""

    kept: Rows  # (U,) of every block
    V: np.ndarray  # (d,k)


def fill(X: Any, mean: np.ndarray | None) -> Any:
    """The block with its holes at their column's mean."""
    if mean is None or sparse.issparse(X):
        return X
    return np.where(np.isnan(X), mean.astype(X.dtype), X)


def _product(X: Any, w: np.ndarray | None, mean: np.ndarray | None, Q: np.ndarray) -> np.ndarray:
    """XᵀWX Q of one block: (d,l)."""
    X = fill(X, mean)
    Y = X @ Q.astype(X.dtype)
    if w is not None:
        Y = Y * w.astype(X.dtype)[:, None]
    return np.asarray(X.T @ Y, dtype=np.float64)


def right_vectors(
    engine: Engine, blocks: Blocks, w: np.ndarray | None, mean: np.ndarray | None, k: int, seed: int
) -> np.ndarray:
    """The leading right singular vectors of √w X, roughly: orthonormal columns (d,r), r ≤ k what the rank allows."""
    shared = (blocks, blocks.rows(w), engine.broadcast(mean))

    def times(Q: np.ndarray) -> np.ndarray:
        return engine.reduce(add, engine.map(_product, *shared, engine.broadcast(Q)))

    Q, _ = iterate_subspace(times, random_basis(blocks.shape[1], k, generator(seed, 0)), SUBSPACE_ITERATIONS - 1)
    values, Y = rayleigh_ritz(Q, times(Q), k)
    return Q @ Y[:, values > np.finfo(blocks.dtype).eps * 100 * max(values[0], 0.0)]


class Parts(NamedTuple):
    """Σ over rows of the squares of the positive and of the negative parts of X b: (k,) each."""

    up: np.ndarray
    down: np.ndarray


def _project_rows(X: Any, w: np.ndarray | None, mean: np.ndarray | None, B: np.ndarray) -> tuple[tuple[Any], Parts]:
    P = np.asarray(fill(X, mean) @ B.astype(X.dtype))
    square = P.astype(np.float64) ** 2 * (1.0 if w is None else w[:, None])
    return (P,), Parts(np.where(P > 0, square, 0).sum(axis=0), np.where(P < 0, square, 0).sum(axis=0))


def _rows(X: Any, kept: tuple[Any], scale: np.ndarray, level: float, lift: float) -> tuple[tuple[Any], int]:
    """U of one block from X b: the chosen sign of it, scaled; components beyond the rank stand at a level."""
    U = np.full((X.shape[0], len(scale)), level, X.dtype)
    r = kept[0].shape[1]
    U[:, :r] = np.maximum(kept[0] * scale[:r].astype(X.dtype), X.dtype.type(lift))
    return (U,), 0


def nndsvd(
    engine: Engine, blocks: Blocks, w: np.ndarray | None, holes: bool, k: int, seed: int, level: float, lift: float
) -> Start:
    """Both factors. `level` is the size of an entry where singular vectors are lacking (more parts than the rank);
    zeros are lifted to `lift`, for rules that multiply."""
    d = blocks.shape[1]
    mean = column_moments(engine, blocks, w).mean if holes else None
    B = right_vectors(engine, blocks, w, mean, min(k, d), seed)
    r = B.shape[1]
    kept, found = engine.reduce(
        add, engine.map(_project_rows, blocks, blocks.rows(w), engine.broadcast(mean), engine.broadcast(B)), keep=True
    )
    up, down = np.sqrt(found.up) * _norm(np.maximum(B, 0)), np.sqrt(found.down) * _norm(np.minimum(B, 0))
    sign = np.where(up >= down, 1.0, -1.0)
    V = np.full((d, k), 0.0)
    V[:, :r] = np.maximum(B * sign, 0)
    V[:, r:] = level * np.abs(generator(seed, 1).standard_normal((d, k - r)))
    # Both sides of a component get the same norm, so that neither dwarfs the other's rounding.
    rows = np.sqrt(np.where(sign > 0, found.up, found.down))
    mine = np.sqrt(np.maximum(rows * _norm(V[:, :r]), 0))
    V[:, :r] *= mine / np.maximum(_norm(V[:, :r]), 1e-300)
    scale = np.zeros(k)
    scale[:r] = sign * mine / np.maximum(rows, 1e-300)
    shared = [engine.broadcast(value) for value in (scale, level, lift)]
    kept, _ = engine.reduce(add, engine.map(_rows, blocks, kept, *shared), keep=True)
    return Start(kept, np.maximum(V, lift).astype(blocks.dtype))


def _norm(A: np.ndarray) -> np.ndarray:
    return np.sqrt((A**2).sum(axis=0))
