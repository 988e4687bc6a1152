"""What a missing cell counts in a non-negative factorization.

    minimise  D exp(P / D₀)   over  U ≥ 0, Z ≥ 0
    D   how far the known cells are from U Z: squared error or KL, with weights
    D₀  how far they are from the means of their columns
    P   how far U Z is from those means in the missing cells: the same measure, and a row's missing cells count together
        no more than its known ones

Without P a part that a row hardly shows could grow without bound where the row is not known. This is the most probable
factorization if missing cells lie about their column's mean as known ones do and the noise is learned along; where the
known cells are met exactly, the missing ones count nothing. A sweep that begins at D lowers D + κP with κ = D / D₀,
the share of the data that is not yet explained: the logarithm is concave, so that lowers D exp(P / D₀), too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import kl_div, xlogy

from twofold.core.data.blocks import Blocks
from twofold.core.data.known_cells import Observed
from twofold.core.engine.local import add, engine_for
from twofold.core.numerics.moments import column_moments
from twofold.topics._nonnegative import Totals

FLOOR = 1e-6  # of D₀ is added to D, so that missing cells are never quite free


class Holes(NamedTuple):
    """What missing cells stand at, and what they count."""

    means: np.ndarray  # (d,) of the known cells
    null: float  # D₀
    share: np.ndarray  # (n,) what a missing cell of this row counts, to be multiplied by κ; 0 where none is missing

    def unexplained(self, D: float) -> float:
        """κ"""
        return (D + FLOOR * self.null) / self.null

    def objective(self, D: float, P: float) -> float:
        floor = FLOOR * self.null
        return float((D + floor) * np.exp(min(P / self.null, 500.0)) - floor)


def measure_holes(cells: Observed, beta: float) -> Holes:
    """From the known cells and their weights."""
    x, w = cells.X.data.astype(np.float64), cells.W.data.astype(np.float64)
    d, j = cells.shape[1], cells.X.indices
    mass = np.bincount(j, w, d)
    means = np.bincount(j, w * x, d) / np.where(mass > 0, mass, 1.0)
    if beta == 2:
        null, size = 0.5 * float(w @ (x - means[j]) ** 2), 0.5 * float(w @ x**2)
    else:
        null, size = float(w @ (xlogy(x, x) - xlogy(x, np.where(x > 0, means[j], 1.0)))), float(w @ x)
    known = np.diff(cells.X.indptr)
    level = cells.rows.mass / np.maximum(known, 1)
    return Holes(means.astype(cells.dtype), _positive(null, size), share_of_holes(known, d) * level)


def expect_holes(blocks: Blocks, w: np.ndarray | None, totals: Totals, beta: float) -> Holes:
    """The same of a whole table: new rows may have holes, but for β other than 1 and 2."""
    found = column_moments(engine_for(blocks), blocks, w)
    if beta == 2:
        null, size = 0.5 * float(found.scatter.sum()), 0.5 * totals.square
    elif beta == 1:
        sums = found.mean * found.weight
        null, size = totals.logs + totals.total - float(xlogy(sums, np.maximum(found.mean, 1e-300)).sum()), totals.total
    else:
        engine = engine_for(blocks)
        shared = engine.broadcast(np.maximum(found.mean, 1e-300)), engine.broadcast(beta)
        null, size = engine.reduce(add, engine.map(_from_means, blocks, blocks.rows(w), *shared)), totals.total
    return Holes(found.mean.astype(blocks.dtype), _positive(null, size), np.empty(0))


def divergences(X: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """d(x, y) of every cell: x/y − log(x/y) − 1 at β = 0, (x^β + (β−1) y^β − β x y^(β−1)) / (β (β−1)) elsewhere."""
    if beta == 0:
        ratio = X / Y
        return ratio - np.log(ratio) - 1
    if beta == 1:
        return kl_div(X, Y)
    return (X**beta + (beta - 1) * Y**beta - beta * X * Y ** (beta - 1)) / (beta * (beta - 1))


def _from_means(X: np.ndarray, w: np.ndarray | None, means: np.ndarray, beta: float) -> float:
    """The β-divergence of one block from the columns' means."""
    each = divergences(X.astype(np.float64), means, beta).sum(axis=1)
    return float(each.sum() if w is None else each @ w)


def _positive(null: float, size: float) -> float:
    """D₀, never quite zero, since it divides."""
    return max(null, 1e-12 * size) or 1.0


def share_of_holes(known: np.ndarray, d: int) -> np.ndarray:
    """What a missing cell of rows with so many known ones counts, beside κ and the row's weight."""
    missing = d - known
    return np.where(missing > 0, np.minimum(1.0, known / np.maximum(missing, 1)), 0.0)


class Penalty(NamedTuple):
    """Of the codes, or of the parts."""

    l1: float = 0.0
    l2: float = 0.0

    def cost(self, U: np.ndarray) -> float:
        if not any(self):
            return 0.0
        U = U.astype(np.float64, copy=False)
        return self.l1 * float(U.sum()) + 0.5 * self.l2 * float(np.vdot(U, U))


FREE = Penalty()


def settle(a: np.ndarray, b: np.ndarray, l2: float) -> np.ndarray:
    """argmin  −a log u + b u + ½ λ₂ u²  over u ≥ 0: where the bound of a multiplicative rule is least; a ≥ 0, b > 0."""
    return 2 * a / (b + np.sqrt(b * b + 4 * l2 * a)) if l2 else a / b
