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
from twofold.factors._cells import Fit, across, cell_losses, grams, known, slices, weighed
from twofold.factors._half_step import Parabola, Side, improve
from twofold.factors._problem import Problem
from twofold.factors._sums import Sums, curve, plain_sums, ratios
from twofold.factors.constraints.k_sparse import times

TRIES, FACTOR = 8, 4.0  # a step that does not help is made again with so many times the curvature
ENOUGH = 1e-10, 1e-6  # of a row's cost: a gain that is none, in double and single precision


def codes(X: Any, w: Any, W: Any, kept: tuple, V: np.ndarray, p: Problem) -> tuple[tuple, Sums]:
    """The rows' half-step of one block, and what it tells the shared one."""
    Z, mu = p.split(V)
    U = kept[0]
    if p.plain:
        U = plain_codes(X, U, Z, mu, p, p.steps, 0.0)
        return (U,), plain_sums(X, w, U, V, p)
    U, parts = U.copy(), []
    for rows, x, cells in slices(p.k, X, W):
        x, cells = known(x, cells, p.shift, p.loss)
        fit = better(x, cells, U[rows], Z, mu, p)
        U[rows] = fit.U
        parts.append(curve(x, cells, None if w is None else w[rows], fit, V, p))
    return (U,), functools.reduce(add, parts)


def fit_of(X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem) -> Fit:
    M = U @ Z + mu
    return Fit(U, M, cell_losses(p.loss, X, W, M))


def start_codes(X: Any, W: Any, Z: np.ndarray, p: Problem) -> np.ndarray:
    """Codes to begin with: none, or equal ones whose values have the size of the row where they must be positive."""
    U = np.zeros((X.shape[0], p.k), Z.dtype)
    if p.loss.positive:
        parts = Z.sum(axis=0)
        for rows, x, cells in slices(p.k, X, W):
            x, cells = known(x, cells, p.shift, p.loss)
            size, whole = across(weighed(cells, x)), parts.sum() if cells is None else cells @ parts
            U[rows] = ((size + 1e-3) / np.maximum(whole, 1e-12))[:, None]
    return p.left.start(U).astype(Z.dtype, copy=False)


def plain_codes(X: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem, steps: int, tol: float) -> np.ndarray:
    """Squared error, every cell known and alike: one matrix for all rows."""
    base = p.shift + mu
    B = X @ Z.T - base @ Z.T if sparse.issparse(X) else (X - base) @ Z.T
    return improve(Parabola(Z @ Z.T, np.asarray(B, Z.dtype)), U, Side(p.left, False), steps, tol)


def squared_codes(
    X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem, steps: int, tol: float
) -> np.ndarray:
    """Squared error with holes or weights: a matrix a row, and no need to look at M."""
    H = Z @ Z.T if W is None else grams(W, Z)
    return improve(Parabola(H, weighed(W, X - mu) @ Z.T), U, Side(p.left, False), steps, tol)


def better(X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem) -> Fit:
    """A step for the rows of a dense slice."""
    options = p.left.options(p.k)
    if p.loss.positive:
        U = p.left.shares(*logs(ratios(p.loss, X, W, U @ Z), W, U, Z))
    elif p.loss.quadratic:
        U = squared_codes(X, W, U, Z, mu, p, p.steps, 0.0)
    elif options is not None:
        U = chosen(X, W, options.astype(Z.dtype), Z, mu, p)
    else:
        return stepped(X, W, fit_of(X, W, U, Z, mu, p), Z, mu, p)
    return fit_of(X, W, U, Z, mu, p)


def stepped(X: np.ndarray, W: Any, now: Fit, Z: np.ndarray, mu: np.ndarray, p: Problem) -> Fit:
    """By parabolas that are only nearly right: a row moves only if its own cost falls."""
    (U, M, loss), side = now, Side(p.left, False)
    G, H = weighed(W, p.loss.slope(X, M)) @ Z.T, grams(weighed(W, p.loss.curvature(X, M)), Z)
    UH, cost = times(U, H), side.costs(across(loss), U)
    rest, enough, damp = np.arange(len(U)), ENOUGH[U.dtype == np.float32], U.dtype.type(1)
    for _ in range(TRIES):
        new = improve(Parabola(damp * H[rest], damp * UH[rest] - G[rest]), U[rest], side, p.steps)
        found = fit_of(X[rest], None if W is None else W[rest], new, Z, mu, p)
        change = side.costs(across(found.loss), new) - cost[rest]
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


def chosen(X: np.ndarray, W: Any, options: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem) -> np.ndarray:
    """The best of the few codes there are, by looking at all."""
    M = options @ Z + mu
    costs = np.stack([across(cell_losses(p.loss, X, W, np.broadcast_to(m, X.shape))) for m in M], axis=1)
    return options[(costs + p.left.values(options)).argmin(axis=1)]


def logs(R: np.ndarray, W: np.ndarray | None, U: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a (m,k) and s of every row, given the ratios R."""
    return U * (R @ Z.T), Z.sum(axis=1)[None, :] if W is None else W @ Z.T


# ---- new rows --------------------------------------------------------------------------------------------------


def fold(X: Any, V: np.ndarray, p: Problem) -> np.ndarray:
    """The codes of new rows."""
    Z, mu = p.split(V)
    tol = ENOUGH[Z.dtype == np.float32]
    U = start_codes(X, None, Z, p)
    if p.plain and sparse.issparse(X):
        return plain_codes(X, U, Z, mu, p, 1000, tol)
    for rows, x, _ in slices(p.k, X, None):
        x, cells = known(x, None, p.shift, p.loss)
        if p.loss.quadratic:
            U[rows] = squared_codes(x, cells, U[rows], Z, mu, p, 1000, tol)
        else:
            U[rows] = settled(x, cells, U[rows], Z, mu, p, tol)
    return U


def settled(X: np.ndarray, W: Any, U: np.ndarray, Z: np.ndarray, mu: np.ndarray, p: Problem, tol: float) -> np.ndarray:
    """Steps until no row gains; a row that stands still is left alone, so that its company does not matter."""
    side, U, moving = Side(p.left, False), U.copy(), np.arange(len(U))
    cost = side.costs(across(cell_losses(p.loss, X, W, U @ Z + mu)), U)
    for _ in range(500):
        new = better(X, W, U[moving], Z, mu, p)
        U[moving], found = new.U, side.costs(across(new.loss), new.U)
        gains = cost - found > tol * np.abs(found)
        if not gains.any():
            break
        moving, cost, X, W = moving[gains], found[gains], X[gains], None if W is None else W[gains]
    return U


def costs(X: Any, U: np.ndarray, V: np.ndarray, p: Problem) -> np.ndarray:
    """What each row costs with these codes."""
    (Z, mu), found = p.split(V), np.empty(X.shape[0])
    for rows, x, _ in slices(p.k, X, None):
        x, cells = known(x, None, p.shift, p.loss)
        fit = fit_of(x, cells, U[rows], Z, mu, p)
        found[rows] = Side(p.left, False).costs(across(fit.loss), fit.U)
    return found
