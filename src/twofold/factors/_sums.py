"""What a block tells the shared factor: a parabola for every column, or logarithms, summed over its rows.

Columns of V see A = [U, 1]:  ½ v H_j vᵀ − b_j vᵀ  with  H_j = Σ_i w_i W ℓ'' a_i a_iᵀ,  b_j = v H_j − Σ_i w_i W ℓ' a_i
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.factors._cells import Fit, compute_grams, compute_losses, fill_holes, iterate_slices, sum_columns, weigh
from twofold.factors._problem import Problem
from twofold.factors.constraints.k_sparse import multiply_rows
from twofold.factors.losses import Loss


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
