"""Cells of a block: dense slices of bounded size, what is known in them, and sums over them.

M = U Z + μ the model's values      W weights of the cells, 0 for a hole, None if all are 1
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.factors.losses import Loss

SLICE = 2**20  # numbers that are dense at once, in every array


class Fit(NamedTuple):
    """Rows as they stand: codes (m,k), and for every cell (m,d) the model's value and its loss."""

    U: np.ndarray
    M: np.ndarray
    loss: np.ndarray


def iterate_slices(k: int, X: Any, W: Any) -> Iterator[tuple]:
    """Where they are, and dense pieces of a block's rows and of their weights."""
    step = max(1, SLICE // max(1, X.shape[1], k * k))
    for start in range(0, X.shape[0], step):
        at = slice(start, start + step)
        yield at, as_dense(X[at]), None if W is None else as_dense(W[at])


def as_dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else X


def fill_holes(
    X: np.ndarray, W: np.ndarray | None, shift: np.ndarray, loss: Loss
) -> tuple[np.ndarray, np.ndarray | None]:
    """The cells less the shift, and their weights; a hole has some cell the loss knows, and counts nothing."""
    X = X - shift
    holes = np.isnan(X) if W is None else np.isnan(X) | (W == 0)
    if holes.any():
        X[holes] = loss.hole
        W = (~holes).astype(X.dtype) if W is None else W * ~holes
    return X, None if W is None else W.astype(X.dtype, copy=False)


def weigh(W: np.ndarray | None, values: np.ndarray) -> np.ndarray:
    return values if W is None else W * values


def compute_losses(loss: Loss, X: np.ndarray, W: np.ndarray | None, M: np.ndarray) -> np.ndarray:
    return weigh(W, loss.value(X, M))


def sum_columns(A: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """Sums of the columns, each row as often as it counts."""
    return A.sum(axis=0, dtype=np.float64) if w is None else w @ A


def sum_rows(A: np.ndarray) -> np.ndarray:
    """Sums of the rows."""
    return A.sum(axis=1, dtype=np.float64)


def compute_grams(C: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Σ_j c_ij z_j z_jᵀ for every row of C (m,d), Z (k,d): (m,k,k). The triangle is summed, and put in both places."""
    k = len(Z)
    above = np.triu_indices(k)
    place = np.empty((k, k), dtype=np.int64)
    place[above] = place[above[::-1]] = np.arange(len(above[0]))
    return np.take(C @ (Z[above[0]] * Z[above[1]]).T, place.ravel(), axis=1).reshape(-1, k, k)
