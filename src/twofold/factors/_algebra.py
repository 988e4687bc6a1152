"""What is minimised, and sums over the cells of a block.

    M = U Z + μ the model's values      W weights of the cells, 0 for a hole, None if all are 1

A block is gone through in dense slices of bounded size. It tells the shared factor a parabola for every column, or
logarithms, summed over its rows. Columns of V see A = [U, 1]:

    ½ v H_j vᵀ − b_j vᵀ  with  H_j = Σ_i w_i W ℓ'' a_i a_iᵀ,  b_j = v H_j − Σ_i w_i W ℓ' a_i
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.factors.constraints import Constraint
from twofold.factors.constraints.base import multiply_rows
from twofold.factors.losses import Loss

SLICE = 2**20  # numbers that are dense at once, in every array


@dataclass(frozen=True)
class Problem:
    """What is minimised, as every block needs to know it."""

    loss: Loss
    left: Constraint
    right: Constraint
    k: int
    plain: bool  # squared error, every cell known and alike
    shift: np.ndarray  # (d,) taken off every row before anything else, in the data's precision
    steps: int = 10

    def split(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Z (k,d) and μ (d,) from V (d,k) or, with an intercept, (d,k+1)."""
        Z = np.ascontiguousarray(V[:, : self.k].T)
        return Z, V[:, self.k] if V.shape[1] > self.k else np.zeros(len(V), V.dtype)


# ---- cells --------------------------------------------------------------------------------------------------------


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


# ---- what a block tells the shared factor -------------------------------------------------------------------------


class Sums(NamedTuple):
    """Added over blocks, in float64, at the new codes and the old V."""

    H: np.ndarray  # ΣAᵀA (K,K); or a column each (d,K,K)
    B: np.ndarray  # (d,K)
    loss: np.ndarray | float  # Σ w ℓ of every column (d,); nothing in the plain case, where it follows from H and B
    penalty: float  # Σ w of the codes


def append_ones(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    return np.hstack([U, np.ones((len(U), 1), U.dtype)]) if V.shape[1] > U.shape[1] else U


def sum_penalty(U: np.ndarray, w: Any, p: Problem) -> float:
    return float(p.left.values(U).sum() if w is None else w @ p.left.values(U))


def sum_plain(X: Any, w: Any, U: np.ndarray, V: np.ndarray, p: Problem) -> Sums:
    """Squared error, every cell known and alike: one matrix for all columns.

    In double precision whatever X has: the objective is a small difference of these sums.
    """
    A = append_ones(U, V).astype(np.float64)
    weighted = A if w is None else A * w[:, None]
    if sparse.issparse(X):
        B = np.asarray(X.T @ weighted) - np.outer(p.shift, weighted.sum(axis=0))
    else:
        B = (X - p.shift).T @ weighted
    return Sums(weighted.T @ A, B, 0.0, sum_penalty(U, w, p))


def sum_parabolas(X: np.ndarray, W: Any, w: Any, fit: Fit, V: np.ndarray, p: Problem) -> Sums:
    """The parabolas of the columns of a dense slice, at V; `fit` has the rows' codes, values and losses."""
    if p.loss.positive:
        return sum_logs(X, W, w, fit, V, p)
    (U, M, loss), A = fit, append_ones(fit.U, V)
    S = weigh(W, p.loss.slope(X.T, M.T).T)  # a column at a time, for a loss that looks along its last axis
    C = W if p.loss.quadratic and W is not None else weigh(W, p.loss.curvature(X.T, M.T).T)
    if w is not None:
        S, C = (F * w.astype(F.dtype)[:, None] for F in (S, C))
    H = compute_grams(C.T, A.T).astype(np.float64)
    G = (S.T @ A).astype(np.float64)
    return Sums(H, multiply_rows(V.astype(np.float64), H) - G, sum_columns(loss, w), sum_penalty(U, w, p))


def compute_ratios(loss: Loss, X: np.ndarray, W: np.ndarray | None, M: np.ndarray) -> np.ndarray:
    """x / m, weighed, for a loss whose slope is 1 − x/m."""
    return weigh(W, 1 - loss.slope(X, M))


def sum_logs(X: np.ndarray, W: Any, w: Any, fit: Fit, V: np.ndarray, p: Problem) -> Sums:
    """The same where logarithms stand for parabolas: a in B, and s in H (d,k)."""
    U, M, loss = fit
    weighted = U if w is None else U * w.astype(U.dtype)[:, None]
    a = V * (compute_ratios(p.loss, X, W, M).T @ weighted)
    s = np.broadcast_to(weighted.sum(axis=0), a.shape) if W is None else W.T @ weighted
    return Sums(s.astype(np.float64, order="C"), a.astype(np.float64), sum_columns(loss, w), sum_penalty(U, w, p))


def sum_losses(X: Any, w: Any, W: Any, kept: tuple, V: np.ndarray, p: Problem) -> np.ndarray:
    """Σ w ℓ of every column of one block."""
    (Z, mu), total = p.split(V), np.zeros(X.shape[1])
    for rows, x, cells in iterate_slices(p.k, X, W):
        x, cells = fill_holes(x, cells, p.shift, p.loss)
        total += sum_columns(compute_losses(p.loss, x, cells, kept[0][rows] @ Z + mu), None if w is None else w[rows])
    return total


def sum_squares(X: Any, w: Any, shift: np.ndarray) -> float:
    """Σ w ‖x − shift‖² of one block."""
    weights = np.ones(X.shape[0]) if w is None else w
    if sparse.issparse(X):
        s = shift[X.indices].astype(np.float64)
        each = np.repeat(weights, np.diff(X.indptr)) * ((X.data - s) ** 2 - s**2)
        return float(each.sum() + weights.sum() * np.vdot(shift, shift))
    R = X - shift
    return float(weights @ np.einsum("ij,ij->i", R, R, dtype=np.float64))
