"""The rows' half-step: the codes of one block, given the components.

    slope and curvature of the loss at M turn every row into a parabola: G = (W ℓ') Zᵀ,  H_i = Σ_j W ℓ'' z_j z_jᵀ

With squared error the parabola is the loss itself; if moreover every cell is known and alike, H = Z Zᵀ for all rows and
M is never formed, so that sparse stays sparse. Otherwise a block is gone through in dense slices. A loss m − x log m
has no parabola above it; there a sum of logarithms takes its place: Σ s f − a log f with a = f Σ_j W (x/m) z_j and
s = Σ_j W z_j, as in EM.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy import sparse

from twofold.core.engine.local import add
from twofold.factors._algebra import (
    Fit,
    Problem,
    Sums,
    compute_grams,
    compute_losses,
    compute_ratios,
    fill_holes,
    iterate_slices,
    sum_parabolas,
    sum_plain,
    sum_rows,
    weigh,
)
from twofold.factors._half_step import Parabola, Side, improve
from twofold.factors.constraints.base import multiply_rows

TRIES, FACTOR = 8, 4.0  # a step that does not help is made again with so many times the curvature
ENOUGH = 1e-10, 1e-6  # of a row's cost: a gain that is none, in double and single precision


def update_codes(X: Any, w: Any, W: Any, kept: tuple, V: np.ndarray, p: Problem) -> tuple[tuple, Sums]:
    """The rows' half-step of one block, and what it tells the shared one."""
    Z, mu = p.split(V)
    U = kept[0]
    if p.plain:
        U = solve_plain(X, U, Z, mu, p, p.steps, 0.0)
        return (U,), sum_plain(X, w, U, V, p)
    U, parts = U.copy(), []
    for rows, x, cells in iterate_slices(p.k, X, W):
        x, cells = fill_holes(x, cells, p.shift, p.loss)
        fit = improve_codes(x, cells, U[rows], Z, mu, p)
        U[rows] = fit.U
        parts.append(sum_parabolas(x, cells, None if w is None else w[rows], fit, V, p))
    return (U,), functools.reduce(add, parts)


def evaluate_fit(X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem) -> Fit:
    M = U @ Z + mu
    return Fit(U, M, compute_losses(p.loss, X, W, M))


def start_codes(X: Any, W: Any, Z: np.ndarray, p: Problem) -> np.ndarray:
    """Codes to begin with: none, or equal ones whose values have the size of the row where they must be positive."""
    U = np.zeros((X.shape[0], p.k), Z.dtype)
    if p.loss.positive:
        parts = Z.sum(axis=0)
        for rows, x, cells in iterate_slices(p.k, X, W):
            x, cells = fill_holes(x, cells, p.shift, p.loss)
            size, whole = sum_rows(weigh(cells, x)), parts.sum() if cells is None else cells @ parts
            U[rows] = ((size + 1e-3) / np.maximum(whole, 1e-12))[:, None]
    return p.left.start(U).astype(Z.dtype, copy=False)


def solve_plain(X: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem, steps: int, tol: float) -> np.ndarray:
    """Squared error, every cell known and alike: one matrix for all rows."""
    base = p.shift + mu
    B = X @ Z.T - base @ Z.T if sparse.issparse(X) else (X - base) @ Z.T
    return improve(Parabola(Z @ Z.T, np.asarray(B, Z.dtype)), U, Side(p.left, False), steps, tol)


def solve_squared(
    X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem, steps: int, tol: float
) -> np.ndarray:
    """Squared error with holes or weights: a matrix a row, and no need to look at M."""
    H = Z @ Z.T if W is None else compute_grams(W, Z)
    return improve(Parabola(H, weigh(W, X - mu) @ Z.T), U, Side(p.left, False), steps, tol)


def improve_codes(X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem) -> Fit:
    """A step for the rows of a dense slice."""
    options = p.left.options(p.k)
    if p.loss.positive:
        U = p.left.shares(*bound_by_logs(compute_ratios(p.loss, X, W, U @ Z), W, U, Z))
    elif p.loss.quadratic:
        U = solve_squared(X, W, U, Z, mu, p, p.steps, 0.0)
    elif options is not None:
        U = choose_best(X, W, options.astype(Z.dtype), Z, mu, p)
    else:
        return take_parabola_steps(X, W, evaluate_fit(X, W, U, Z, mu, p), Z, mu, p)
    return evaluate_fit(X, W, U, Z, mu, p)


def take_parabola_steps(X: np.ndarray, W: Any, now: Fit, Z: np.ndarray, mu: np.ndarray, p: Problem) -> Fit:
    """By parabolas that are only nearly right: a row moves only if its own cost falls."""
    (U, M, loss), side = now, Side(p.left, False)
    G, H = weigh(W, p.loss.slope(X, M)) @ Z.T, compute_grams(weigh(W, p.loss.curvature(X, M)), Z)
    UH, cost = multiply_rows(U, H), side.costs(sum_rows(loss), U)
    rest, enough, damp = np.arange(len(U)), ENOUGH[U.dtype == np.float32], U.dtype.type(1)
    for _ in range(TRIES):
        new = improve(Parabola(damp * H[rest], damp * UH[rest] - G[rest]), U[rest], side, p.steps)
        found = evaluate_fit(X[rest], None if W is None else W[rest], new, Z, mu, p)
        change = side.costs(sum_rows(found.loss), new) - cost[rest]
        good = change <= 0
        if len(good) == len(U) and good.all():
            return found
        U, M, loss = (_put(old, rest[good], part[good]) for old, part in zip((U, M, loss), found, strict=True))
        rest, damp = rest[change > enough * np.abs(cost[rest])], damp * U.dtype.type(FACTOR)  # the others have arrived
        if not len(rest):
            break
    return Fit(U, M, loss)


def _put(old: np.ndarray, at: np.ndarray, new: np.ndarray) -> np.ndarray:
    old = old.copy()
    old[at] = new
    return old


def choose_best(X: np.ndarray, W: Any, options: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem) -> np.ndarray:
    """The best of the few codes there are, by looking at all."""
    M = options @ Z + mu
    costs = np.stack([sum_rows(compute_losses(p.loss, X, W, np.broadcast_to(m, X.shape))) for m in M], axis=1)
    return options[(costs + p.left.values(options)).argmin(axis=1)]


def bound_by_logs(R: np.ndarray, W: np.ndarray | None, U: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a (m,k) and s of every row, given the ratios R."""
    return U * (R @ Z.T), Z.sum(axis=1)[None, :] if W is None else W @ Z.T


# ---- new rows --------------------------------------------------------------------------------------------------


def fold(X: Any, V: np.ndarray, p: Problem) -> np.ndarray:
    """The codes of new rows."""
    Z, mu = p.split(V)
    tol = ENOUGH[Z.dtype == np.float32]
    U = start_codes(X, None, Z, p)
    if p.plain and sparse.issparse(X):
        return solve_plain(X, U, Z, mu, p, 1000, tol)
    for rows, x, _ in iterate_slices(p.k, X, None):
        x, cells = fill_holes(x, None, p.shift, p.loss)
        if p.loss.quadratic:
            U[rows] = solve_squared(x, cells, U[rows], Z, mu, p, 1000, tol)
        else:
            U[rows] = settle(x, cells, U[rows], Z, mu, p, tol)
    return U


def settle(X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem, tol: float) -> np.ndarray:
    """Steps until no row gains; a row that stands still is left alone, so that its company does not matter."""
    side, U, moving = Side(p.left, False), U.copy(), np.arange(len(U))
    cost = side.costs(sum_rows(compute_losses(p.loss, X, W, U @ Z + mu)), U)
    for _ in range(500):
        new = improve_codes(X, W, U[moving], Z, mu, p)
        U[moving], found = new.U, side.costs(sum_rows(new.loss), new.U)
        gains = cost - found > tol * np.abs(found)
        if not gains.any():
            break
        moving, cost, X, W = moving[gains], found[gains], X[gains], None if W is None else W[gains]
    return U


def compute_costs(X: Any, U: np.ndarray, V: np.ndarray, p: Problem) -> np.ndarray:
    """What each row costs with these codes."""
    (Z, mu), found = p.split(V), np.empty(X.shape[0])
    for rows, x, _ in iterate_slices(p.k, X, None):
        x, cells = fill_holes(x, None, p.shift, p.loss)
        fit = evaluate_fit(x, cells, U[rows], Z, mu, p)
        found[rows] = Side(p.left, False).costs(sum_rows(fit.loss), fit.U)
    return found
