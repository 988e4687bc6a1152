"""The rows' half-step: codes of one block, given the components, and the sums that the components need from it.

    M = U Z + μ the model's values      W weights of the cells, 0 for a hole, None if all are 1

Slope and curvature of the loss at M turn every row into a parabola: G = (W ℓ') Zᵀ,  H_i = Σ_j W ℓ'' z_j z_jᵀ. With
squared error the parabola is the loss itself; if moreover every cell is known and has the same weight, H = Z Zᵀ for all
rows and M is never formed, so that sparse data stay sparse. Otherwise a block is read in dense slices of bounded size.
A loss m − x log m has no parabola above it; there a sum of logarithms takes its place: Σ s f − a log f with
a = f Σ_j W (x/m) z_j and s = Σ_j W z_j, as in EM.

The columns get a parabola each, or logarithms, summed over the rows. Columns of V read A = [U, 1]:

    ½ v H_j vᵀ − b_j vᵀ  with  H_j = Σ_i w_i W ℓ'' a_i a_iᵀ,  b_j = v H_j − Σ_i w_i W ℓ' a_i

A loss of several values m a cell makes Z, V and M wider than X: D columns, of which `owners` says whose they are.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.engine.local import add
from twofold.factors._half_step import Parabola, Side, improve
from twofold.factors.constraints import Constraint
from twofold.factors.constraints.base import multiply_rows
from twofold.factors.losses import Loss

MAX_DENSE_NUMBERS = 2**20  # in every array of a slice
MAX_TRIES, CURVATURE_FACTOR = 8, 4.0  # a step that does not help is repeated with that much more curvature
NEGLIGIBLE_GAIN = 1e-10, 1e-6  # of a row's cost, in double and single precision


@dataclass(frozen=True)
class Problem:
    """The objective, as every block needs to know it."""

    loss: Loss
    left: Constraint
    right: Constraint
    k: int
    plain: bool  # squared error, every cell known and of the same weight
    shift: np.ndarray  # (d,) subtracted from every row before anything else, in the data's precision
    scales: np.ndarray | None = None  # (d,) what the losses of the columns are multiplied by
    units: np.ndarray | None = None  # (D,) in which the right constraint sees the columns of Z
    steps: int = 10

    @cached_property
    def owners(self) -> np.ndarray | None:
        """The column of X (D,) of each column of Z; None if they are the same."""
        return self.loss.owners(len(self.shift))

    @cached_property
    def heads(self) -> np.ndarray | None:
        """For each column of Z (D,) the first that is tied to it; None if nothing is tied."""
        tied = self.loss.is_tied(len(self.shift))
        if self.owners is None or not tied.any():
            return None
        return np.where(tied[self.owners], np.searchsorted(self.owners, self.owners), np.arange(len(self.owners)))

    def spread(self, values: Any) -> Any:
        """Numbers of the columns of X, along the last axis, as numbers of the columns of Z."""
        return values if self.owners is None or values is None else values[..., self.owners]

    def collect(self, values: np.ndarray) -> np.ndarray:
        """Sums over the columns of Z (D,) of each column of X (d,)."""
        if self.owners is None:
            return values
        return np.add.reduceat(values, np.searchsorted(self.owners, np.arange(len(self.shift))))

    def tie(self, values: np.ndarray) -> np.ndarray:
        """Sums over tied columns of Z (D, ...), in the place of each."""
        if self.heads is None:
            return values
        total = np.zeros_like(values)
        np.add.at(total, self.heads, values)
        return total[self.heads]

    def in_units(self, V: np.ndarray) -> np.ndarray:
        """Z (D,k) as the right constraint sees it."""
        F = V[:, : self.k]
        return F if self.units is None else F / self.units[:, None]

    def from_units(self, F: np.ndarray) -> np.ndarray:
        return F if self.units is None else F * self.units[:, None]

    def right_penalties(self, V: np.ndarray) -> np.ndarray:
        """The penalty of each column of Z (D,), for a constraint that is elementwise; tied columns count once."""
        each = self.right.values(self.in_units(V))
        return each if self.heads is None else np.where(self.heads == np.arange(len(each)), each, 0)

    def split(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Z (k,d) and μ (d,) from V (d,k) or, with an intercept, (d,k+1)."""
        Z = np.ascontiguousarray(V[:, : self.k].T)
        return Z, V[:, self.k] if V.shape[1] > self.k else np.zeros(len(V), V.dtype)


# ---- cells --------------------------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """Codes (m,k) of some rows, and for every cell (m,d) the model's value and its loss."""

    U: np.ndarray
    M: np.ndarray
    loss: np.ndarray


def iterate_slices(p: Problem, X: Any, W: Any) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
    """Rows of a block in dense slices: their places, the cells less the shift, and the weights of the cells."""
    step = max(1, MAX_DENSE_NUMBERS // max(1, X.shape[1], p.k * p.k))
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        x, cells = fill_holes(as_dense(X[rows]), None if W is None else as_dense(W[rows]), p.shift, p.loss)
        if p.scales is not None:
            scales = p.scales.astype(x.dtype)
            cells = np.broadcast_to(scales, x.shape) if cells is None else cells * scales
        yield rows, x, cells


def as_dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else X


def fill_holes(
    X: np.ndarray, W: np.ndarray | None, shift: np.ndarray, loss: Loss
) -> tuple[np.ndarray, np.ndarray | None]:
    """The cells less the shift, and their weights; a hole has a value that the loss accepts, and weight 0."""
    X = X - shift
    holes = np.isnan(X) if W is None else np.isnan(X) | (W == 0)
    if holes.any():
        np.copyto(X, loss.hole, where=holes)
        W = (~holes).astype(X.dtype) if W is None else W * ~holes
    return X, None if W is None else W.astype(X.dtype, copy=False)


def weigh(W: np.ndarray | None, values: np.ndarray) -> np.ndarray:
    return values if W is None else W * values


def compute_losses(loss: Loss, X: np.ndarray, W: np.ndarray | None, M: np.ndarray) -> np.ndarray:
    return weigh(W, loss.value(X, M))


def compute_ratios(loss: Loss, X: np.ndarray, W: np.ndarray | None, M: np.ndarray) -> np.ndarray:
    """x / m, weighed, for a loss whose slope is 1 − x/m."""
    return weigh(W, 1 - loss.slope(X, M))


def evaluate_fit(X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem) -> Fit:
    M = U @ Z + mu
    return Fit(U, M, compute_losses(p.loss, X, W, M))


def sum_columns(A: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """Sums of the columns, weighed by row."""
    return A.sum(axis=0, dtype=np.float64) if w is None else w @ A


def sum_rows(A: np.ndarray) -> np.ndarray:
    return A.sum(axis=1, dtype=np.float64)


def compute_grams(C: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Σ_j c_ij z_j z_jᵀ for every row of C (m,d), Z (k,d): (m,k,k). The triangle is summed, and put in both places."""
    k = len(Z)
    above = np.triu_indices(k)
    place = np.empty((k, k), dtype=np.int64)
    place[above] = place[above[::-1]] = np.arange(len(above[0]))
    return np.take(C @ (Z[above[0]] * Z[above[1]]).T, place.ravel(), axis=1).reshape(-1, k, k)


# ---- sums for the shared factor -----------------------------------------------------------------------------------


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
    """Squared error, every cell known and of the same weight: one matrix for all columns.

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
    wide = p.spread(W)
    S = weigh(wide, p.loss.by_column("slope", X, M))
    C = wide if p.loss.quadratic and W is not None else weigh(wide, p.loss.by_column("curvature", X, M))
    if w is not None:
        S, C = (F * w.astype(F.dtype)[:, None] for F in (S, C))
    H = compute_grams(C.T, A.T).astype(np.float64)
    G = (S.T @ A).astype(np.float64)
    return Sums(H, multiply_rows(V.astype(np.float64), H) - G, sum_columns(loss, w), sum_penalty(U, w, p))


def sum_logs(X: np.ndarray, W: Any, w: Any, fit: Fit, V: np.ndarray, p: Problem) -> Sums:
    """The same with logarithms in place of parabolas: a in B, and s in H (d,k)."""
    U, M, loss = fit
    weighted = U if w is None else U * w.astype(U.dtype)[:, None]
    a = V * (compute_ratios(p.loss, X, W, M).T @ weighted)
    s = np.broadcast_to(weighted.sum(axis=0), a.shape) if W is None else W.T @ weighted
    return Sums(s.astype(np.float64, order="C"), a.astype(np.float64), sum_columns(loss, w), sum_penalty(U, w, p))


def sum_losses(X: Any, w: Any, W: Any, kept: tuple, V: np.ndarray, p: Problem) -> np.ndarray:
    """Σ w ℓ of every column of one block."""
    (Z, mu), total = p.split(V), np.zeros(X.shape[1])
    for rows, x, cells in iterate_slices(p, X, W):
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


# ---- codes --------------------------------------------------------------------------------------------------------


def update_codes(X: Any, w: Any, W: Any, kept: tuple, V: np.ndarray, p: Problem) -> tuple[tuple, Sums]:
    """The rows' half-step of one block, and its sums for the shared factor."""
    Z, mu = p.split(V)
    U = kept[0]
    if p.plain:
        U = solve_plain(X, U, Z, mu, p, p.steps, 0.0)
        return (U,), sum_plain(X, w, U, V, p)
    U, parts = U.copy(), []
    for rows, x, cells in iterate_slices(p, X, W):
        fit = improve_codes(x, cells, U[rows], Z, mu, p)
        U[rows] = fit.U
        parts.append(sum_parabolas(x, cells, None if w is None else w[rows], fit, V, p))
    return (U,), functools.reduce(add, parts)


def start_codes(X: Any, W: Any, Z: np.ndarray, p: Problem) -> np.ndarray:
    """Codes to begin with: zeros, or equal numbers of the row's size where they must be positive."""
    U = np.zeros((X.shape[0], p.k), Z.dtype)
    if p.loss.positive:
        parts = Z.sum(axis=0)
        for rows, x, cells in iterate_slices(p, X, W):
            size, whole = sum_rows(weigh(cells, x)), parts.sum() if cells is None else cells @ parts
            U[rows] = ((size + 1e-3) / np.maximum(whole, 1e-12))[:, None]
    return p.left.start(U).astype(Z.dtype, copy=False)


def solve_plain(X: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem, steps: int, tol: float) -> np.ndarray:
    """Squared error, every cell known and of the same weight: one matrix for all rows."""
    base = p.shift + mu
    B = X @ Z.T - base @ Z.T if sparse.issparse(X) else (X - base) @ Z.T
    return improve(Parabola(Z @ Z.T, np.asarray(B, Z.dtype)), U, Side(p.left, False), steps, tol)


def solve_squared(
    X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem, steps: int, tol: float
) -> np.ndarray:
    """Squared error with holes or weights: a matrix for each row, and M is not needed."""
    H = Z @ Z.T if W is None else compute_grams(W, Z)
    return improve(Parabola(H, weigh(W, X - mu) @ Z.T), U, Side(p.left, False), steps, tol)


def improve_codes(X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem) -> Fit:
    """A step for the rows of a dense slice."""
    options = p.left.options(p.k)
    if p.loss.positive:
        a = U * (compute_ratios(p.loss, X, W, U @ Z) @ Z.T)
        U = p.left.shares(a, Z.sum(axis=1)[None, :] if W is None else W @ Z.T)
    elif p.loss.quadratic:
        U = solve_squared(X, W, U, Z, mu, p, p.steps, 0.0)
    elif options is not None:
        U = choose_best(X, W, options.astype(Z.dtype), Z, mu, p)
    else:
        return take_parabola_steps(X, W, evaluate_fit(X, W, U, Z, mu, p), Z, mu, p)
    return evaluate_fit(X, W, U, Z, mu, p)


def take_parabola_steps(X: np.ndarray, W: Any, now: Fit, Z: np.ndarray, mu: np.ndarray, p: Problem) -> Fit:
    """Steps by parabolas that are only nearly right, into `now`: a row moves only if its own cost falls."""
    (U, M, loss), side = now, Side(p.left, False)
    wide = p.spread(W)
    G, H = weigh(wide, p.loss.slope(X, M)) @ Z.T, compute_grams(weigh(wide, p.loss.curvature(X, M)), Z)
    UH, cost = multiply_rows(U, H), side.costs(sum_rows(loss), U)
    rows, enough, damp = np.arange(len(U)), NEGLIGIBLE_GAIN[U.dtype == np.float32], U.dtype.type(1)
    for _ in range(MAX_TRIES):
        new = improve(Parabola(damp * H[rows], damp * UH[rows] - G[rows]), U[rows], side, p.steps)
        fit = evaluate_fit(X[rows], None if W is None else W[rows], new, Z, mu, p)
        change = side.costs(sum_rows(fit.loss), new) - cost[rows]
        good = change <= 0
        for old, part in zip(now, fit, strict=True):
            old[rows[good]] = part[good]
        rows, damp = rows[change > enough * np.abs(cost[rows])], damp * U.dtype.type(CURVATURE_FACTOR)
        if not len(rows):  # all have arrived
            break
    return now


def choose_best(X: np.ndarray, W: Any, options: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem) -> np.ndarray:
    """The best of a few possible codes, by trying all."""
    M = options @ Z + mu
    costs = np.stack([sum_rows(compute_losses(p.loss, X, W, np.broadcast_to(m, (len(X), len(m))))) for m in M], axis=1)
    return options[(costs + p.left.values(options)).argmin(axis=1)]


# ---- new rows --------------------------------------------------------------------------------------------------


def find_codes(X: Any, V: np.ndarray, p: Problem) -> np.ndarray:
    """The codes of new rows."""
    Z, mu = p.split(V)
    tol = NEGLIGIBLE_GAIN[Z.dtype == np.float32]
    U = start_codes(X, None, Z, p)
    if p.plain and sparse.issparse(X):
        return solve_plain(X, U, Z, mu, p, 1000, tol)
    for rows, x, cells in iterate_slices(p, X, None):
        if p.loss.quadratic:
            U[rows] = solve_squared(x, cells, U[rows], Z, mu, p, 1000, tol)
        else:
            U[rows] = converge_codes(x, cells, U[rows], Z, mu, p, tol)
    return U


def converge_codes(
    X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem, tol: float
) -> np.ndarray:
    """Steps until no row gains; a row that does not gain stops alone, so that other rows do not change its code."""
    side, U, moving = Side(p.left, False), U.copy(), np.arange(len(U))
    cost = side.costs(sum_rows(compute_losses(p.loss, X, W, U @ Z + mu)), U)
    for _ in range(500):
        fit = improve_codes(X, W, U[moving], Z, mu, p)
        U[moving], now = fit.U, side.costs(sum_rows(fit.loss), fit.U)
        gains = cost - now > tol * np.abs(now)
        if not gains.any():
            break
        moving, cost, X, W = moving[gains], now[gains], X[gains], None if W is None else W[gains]
    return U


def compute_row_costs(X: Any, U: np.ndarray, V: np.ndarray, p: Problem) -> np.ndarray:
    """The cost of each row with these codes."""
    (Z, mu), costs = p.split(V), np.empty(X.shape[0])
    for rows, x, cells in iterate_slices(p, X, None):
        fit = evaluate_fit(x, cells, U[rows], Z, mu, p)
        costs[rows] = Side(p.left, False).costs(sum_rows(fit.loss), fit.U)
    return costs
