"""What one block of rows does: its codes, and what it tells the shared factor.

    M = U Z + μ the model's values      W weights of the cells, 0 for a hole
    slope and curvature of the loss at M turn every row into a parabola: G = (W ℓ') Zᵀ,  H_i = Σ_j W ℓ'' z_j z_jᵀ

With squared error and every cell known and alike, H = Z Zᵀ for all rows and M is never formed, so that sparse stays
sparse. Otherwise a block is gone through in dense slices of bounded size. A loss m − x log m has no parabola above it;
there a sum of logarithms takes its place: Σ s f − a log f with a = f Σ_j W (x/m) z_j and s = Σ_j W z_j, as in EM.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.engine import add
from twofold.factors.constraints import Constraint
from twofold.factors.constraints.k_sparse import times
from twofold.factors.half_step import Parabola, Side, improve
from twofold.factors.losses import Loss

SLICE = 2**20  # cells that are dense at once
TRIES, FACTOR = 8, 4.0  # a step that does not help is made again with so many times the curvature
ENOUGH = 1e-10, 1e-6  # of a row's cost: a gain that is none, in double and single precision


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


class Sums(NamedTuple):
    """Added over blocks, in float64, at the new codes and the old V. Columns of V see A = [U, 1]."""

    H: np.ndarray  # ΣAᵀA (K,K); or a column each (d,K,K)
    B: np.ndarray  # (d,K): parabolas ½ v H vᵀ − b vᵀ
    loss: float  # Σ w ℓ; in the plain case only what does not depend on V
    penalty: float  # Σ w of the codes


def slices(X: Any, *beside: Any) -> Iterator[tuple]:
    """Dense pieces of a block's rows, the same rows of everything else, and where they are."""
    step = max(1, SLICE // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        at = slice(start, start + step)
        yield at, *(None if a is None else _dense(a[at]) for a in (X, *beside))


def _dense(a: Any) -> np.ndarray:
    return a.toarray() if sparse.issparse(a) else a


def known(X: np.ndarray, W: np.ndarray | None, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The cells less the shift, and their weights: 0 for a hole, None if all are 1."""
    X, holes = X - shift, np.isnan(X)
    if holes.any():
        W = (~holes).astype(X.dtype) if W is None else np.where(holes, 0, W)
        X = np.where(holes, 0, X)
    return X, None if W is None else W.astype(X.dtype, copy=False)


def at(fn: Any, X: np.ndarray, W: np.ndarray | None, M: np.ndarray) -> np.ndarray:
    """A function of the loss in every cell, weighed; nothing in a hole, whatever it would be there."""
    if W is None:
        return fn(X, M)
    return np.where(W > 0, W * fn(np.where(W > 0, X, M), M), 0)


def row_losses(loss: Loss, X: np.ndarray, W: np.ndarray | None, M: np.ndarray) -> np.ndarray:
    return at(loss.value, X, W, M).sum(axis=1, dtype=np.float64)


def pairs(Z: np.ndarray) -> np.ndarray:
    """z_j z_jᵀ of every column, flat: (d, k²)."""
    return (Z[:, None, :] * Z[None, :, :]).reshape(-1, Z.shape[1]).T


# ---- the rows' side --------------------------------------------------------------------------------------------


def start_codes(X: Any, Z: np.ndarray, p: Problem) -> np.ndarray:
    """Codes to begin with: none, or equal ones whose values have the size of the row where they must be positive."""
    U = np.zeros((X.shape[0], p.k), Z.dtype)
    if p.loss.positive:
        size = np.asarray(X.sum(axis=1)).ravel() if sparse.issparse(X) else np.nansum(X, axis=1)
        U += ((size + 1e-3) / max(float(Z.sum()), 1e-12))[:, None].astype(Z.dtype)
    return p.left.start(U).astype(Z.dtype, copy=False)


def plain_codes(X: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem, steps: int, tol: float) -> np.ndarray:
    base = p.shift + mu
    B = X @ Z.T - base @ Z.T if sparse.issparse(X) else (X - base) @ Z.T
    return improve(Parabola(Z @ Z.T, np.asarray(B, Z.dtype)), U, Side(p.left, False), steps, tol)


def better_codes(X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem) -> np.ndarray:
    """A step for rows of a dense slice. A row moves only if its own cost falls."""
    side, M = Side(p.left, False), U @ Z + mu
    if p.loss.positive:
        return p.left.shares(*logs(ratios(p.loss, X, W, M), W, U, Z))
    cost = side.costs(row_losses(p.loss, X, W, M), U)
    G, C = at(p.loss.slope, X, W, M) @ Z.T, at(p.loss.curvature, X, W, M)
    H = (C @ pairs(Z)).reshape(-1, p.k, p.k)
    U, UH, rest, damp = U.copy(), times(U, H), np.arange(len(U)), U.dtype.type(1)
    for _ in range(TRIES):
        q = Parabola(damp * H[rest], damp * UH[rest] - G[rest])
        new = improve(q, U[rest], side, p.steps)
        found = side.costs(row_losses(p.loss, X[rest], None if W is None else W[rest], new @ Z + mu), new)
        good = found <= cost[rest]
        U[rest[good]] = new[good]
        rest, damp = rest[~good], damp * U.dtype.type(FACTOR)
        if not len(rest):
            break
    return U


def ratios(loss: Loss, X: np.ndarray, W: np.ndarray | None, M: np.ndarray) -> np.ndarray:
    """x / m, weighed, for a loss whose slope is 1 − x/m."""
    return at(lambda x, m: 1 - loss.slope(x, m), X, W, M)


def logs(R: np.ndarray, W: np.ndarray | None, U: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a (m,k) and s of every row, given the ratios R."""
    return U * (R @ Z.T), Z.sum(axis=1)[None, :] if W is None else W @ Z.T


def codes(X: Any, w: Any, W: Any, kept: tuple, V: np.ndarray, p: Problem) -> tuple[tuple, Sums]:
    """The rows' half-step of one block, and what it tells the shared one."""
    Z, mu = p.split(V)
    U = kept[0]
    if p.plain:
        U = plain_codes(X, U, Z, mu, p, p.steps, 0.0)
        return (U,), plain_sums(X, w, U, V, p)
    U, parts = U.copy(), []
    for rows, x, cells in slices(X, W):
        x, cells = known(x, cells, p.shift)
        U[rows] = better_codes(x, cells, U[rows], Z, mu, p)
        parts.append(curve(x, cells, None if w is None else w[rows], U[rows], V, p))
    return (U,), functools.reduce(add, parts)


def fold(X: Any, W: Any, V: np.ndarray, p: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The codes of new rows, and what each row costs."""
    Z, mu = p.split(V)
    tol = ENOUGH[Z.dtype == np.float32]
    U, cost = start_codes(X, Z, p), np.empty(X.shape[0])
    for rows, x, cells in slices(X, W):
        side, raw = Side(p.left, False), x
        x, cells = known(x, cells, p.shift)
        if p.plain and cells is None:
            U[rows] = plain_codes(raw, U[rows], Z, mu, p, 1000, tol)
        else:
            U[rows] = settled(x, cells, U[rows], Z, mu, p, tol)
        cost[rows] = side.costs(row_losses(p.loss, x, cells, U[rows] @ Z + mu), U[rows])
    return U, cost


def settled(x: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem, tol: float) -> np.ndarray:
    """Steps until no row gains; a row that stands still is left alone, so that its company does not matter."""
    side, U, moving = Side(p.left, False), U.copy(), np.arange(len(U))
    cost = side.costs(row_losses(p.loss, x, W, U @ Z + mu), U)
    for _ in range(200):
        weights = None if W is None else W[moving]
        U[moving] = better_codes(x[moving], weights, U[moving], Z, mu, p)
        found = side.costs(row_losses(p.loss, x[moving], weights, U[moving] @ Z + mu), U[moving])
        gains = cost[moving] - found > tol * np.abs(found)
        cost[moving] = found
        moving = moving[gains]
        if not len(moving):
            break
    return U


# ---- what the shared factor needs ------------------------------------------------------------------------------


def with_ones(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    return np.hstack([U, np.ones((len(U), 1), U.dtype)]) if V.shape[1] > U.shape[1] else U


def plain_sums(X: Any, w: Any, U: np.ndarray, V: np.ndarray, p: Problem) -> Sums:
    A = with_ones(U, V)
    weighted = A if w is None else A * w.astype(A.dtype)[:, None]
    if sparse.issparse(X):
        B = np.asarray(X.T @ weighted, np.float64) - np.outer(p.shift, weighted.sum(axis=0, dtype=np.float64))
    else:
        B = ((X - p.shift).T @ weighted).astype(np.float64)
    return Sums((weighted.T @ A).astype(np.float64), B, 0.0, penalty(U, w, p))


def penalty(U: np.ndarray, w: Any, p: Problem) -> float:
    return float(p.left.values(U).sum() if w is None else w @ p.left.values(U))


def curve(X: np.ndarray, W: Any, w: Any, U: np.ndarray, V: np.ndarray, p: Problem) -> Sums:
    """The parabolas of the columns, at V."""
    (Z, mu), A = p.split(V), with_ones(U, V)
    M = U @ Z + mu
    if p.loss.positive:
        return log_sums(X, W, w, U, Z, M, p)
    S, C = at(p.loss.slope, X, W, M), at(p.loss.curvature, X, W, M)
    value = row_losses(p.loss, X, W, M)
    if w is not None:
        S, C, value = S * w.astype(S.dtype)[:, None], C * w.astype(C.dtype)[:, None], value * w
    H = (C.T @ pairs(A.T)).reshape(len(V), A.shape[1], -1).astype(np.float64)
    G = (S.T @ A).astype(np.float64)
    return Sums(H, times(V.astype(np.float64), H) - G, float(value.sum()), penalty(U, w, p))


def log_sums(X: np.ndarray, W: Any, w: Any, U: np.ndarray, Z: np.ndarray, M: np.ndarray, p: Problem) -> Sums:
    """The same where logarithms stand for parabolas: a in B, and s in H (d,k)."""
    value, weights = row_losses(p.loss, X, W, M), np.ones(len(U)) if w is None else w
    weighted = U * weights.astype(U.dtype)[:, None]
    a = Z.T * (ratios(p.loss, X, W, M).T @ weighted)
    s = np.broadcast_to(weighted.sum(axis=0), a.shape) if W is None else W.T @ weighted
    return Sums(s.astype(np.float64), a.astype(np.float64), float(weights @ value), penalty(U, w, p))


def losses(X: Any, w: Any, W: Any, kept: tuple, V: np.ndarray, p: Problem) -> float:
    """Σ w ℓ of one block."""
    (Z, mu), total = p.split(V), 0.0
    for rows, x, cells in slices(X, W):
        x, cells = known(x, cells, p.shift)
        value = row_losses(p.loss, x, cells, kept[0][rows] @ Z + mu)
        total += float(value.sum() if w is None else w[rows] @ value)
    return total


def square(X: Any, w: Any, shift: np.ndarray) -> float:
    """Σ w ‖x − shift‖² of one block."""
    weights = np.ones(X.shape[0]) if w is None else w
    if sparse.issparse(X):
        s = shift[X.indices].astype(np.float64)
        each = np.repeat(weights, np.diff(X.indptr)) * ((X.data - s) ** 2 - s**2)
        return float(each.sum() + weights.sum() * np.vdot(shift, shift))
    R = X - shift
    return float(weights @ np.einsum("ij,ij->i", R, R, dtype=np.float64))
