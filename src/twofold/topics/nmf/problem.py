"""The interface of a problem of non-negative factorization; the penalties of its sides; the cost of missing cells.

    minimize  D exp(P / D₀)   over  U ≥ 0, Z ≥ 0
    D   divergence of the known cells from U Z: squared error or KL, with weights
    D₀  divergence of the known cells from the means of their columns
    P   divergence of these means from U Z in the missing cells; the missing cells of a row count together at most as
        much as its known cells

Without P, a part that is small in a row could grow without bound where the row is not known. The minimum is the most
probable factorization if missing cells vary about their column's mean as known cells do and the noise is learned too.
Where U Z meets the known cells exactly, the missing cells count nothing. A sweep lowers D + κP with κ = D / D₀, the
unexplained share of the data; since the logarithm is concave, that also lowers D exp(P / D₀).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import kl_div, xlogy

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.known_cells import Observed
from twofold.core.engine.local import add, engine_for
from twofold.core.numerics.moments import column_moments
from twofold.topics._nonnegative import Totals

MIN_UNEXPLAINED = 1e-6  # share of D₀ that is added to D, so that missing cells always cost something


class Problem(ABC):
    """An objective on one table: `advance` makes one sweep, `finish` the best codes at the end."""

    @abstractmethod
    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        """Improve the codes given V (d,k), then V; return both and the objective."""

    @abstractmethod
    def finish(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        """Find the best codes given V; return them, the divergence D of the known cells, and κ."""


class Penalty(NamedTuple):
    """λ₁ Σ u + ½ λ₂ Σ u² of one side."""

    l1: float = 0.0
    l2: float = 0.0

    def cost(self, U: np.ndarray) -> float:
        if not any(self):
            return 0.0
        U = U.astype(np.float64, copy=False)
        return self.l1 * float(U.sum()) + 0.5 * self.l2 * float(np.vdot(U, U))

    def add_to_rows(self, cost: np.ndarray, U: np.ndarray) -> np.ndarray:
        """The costs (m,) of the rows, with the penalty of each row of U (m,k)."""
        u = U.astype(np.float64)
        return cost + self.l1 * u.sum(axis=1) + 0.5 * self.l2 * (u**2).sum(axis=1)


FREE = Penalty()


class Holes(NamedTuple):
    """Values and costs of missing cells."""

    means: np.ndarray  # (d,) of the known cells: the values of missing cells
    null: float  # D₀
    share: np.ndarray  # (n,) cost of a missing cell of each row, to be multiplied by κ; 0 in rows without any

    def compute_kappa(self, D: float) -> float:
        """κ"""
        return (D + MIN_UNEXPLAINED * self.null) / self.null

    def objective(self, D: float, P: float) -> float:
        floor = MIN_UNEXPLAINED * self.null
        return float((D + floor) * np.exp(min(P / self.null, 500.0)) - floor)


NO_HOLES = Holes(np.empty(0), 1.0, np.empty(0))


class WholeTable(Problem):
    """A problem on a table without missing cells, whose rows have weights w (n,) or None."""

    def __init__(
        self,
        blocks: Blocks,
        w: np.ndarray | None,
        codes: Penalty = FREE,
        parts: Penalty = FREE,
        holes: Holes = NO_HOLES,
    ):
        self.engine, self.blocks, self.rows = engine_for(blocks), blocks, blocks.rows(w)
        self.codes, self.parts, self.holes = codes, parts, holes

    def update(self, half_step: Callable, kept: Rows, V: np.ndarray, rule: Any) -> tuple[Rows, Any]:
        """Run half_step(block, weights, codes, V, rule) on all blocks; return the new codes and the sums."""
        shared = (self.engine.broadcast(V), self.engine.broadcast(rule))
        return self.engine.reduce(add, self.engine.map(half_step, self.blocks, self.rows, kept, *shared), keep=True)


def measure_holes(cells: Observed, beta: float) -> Holes:
    """Means and costs from the known cells and their weights."""
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
    return Holes(means.astype(cells.dtype), _keep_positive(null, size), share_of_holes(known, d) * level)


def expect_holes(blocks: Blocks, w: np.ndarray | None, totals: Totals, beta: float) -> Holes:
    """Means and costs from a whole table; new rows may have missing cells if β is 1 or 2."""
    engine = engine_for(blocks)
    moments = column_moments(engine, blocks, w)
    if beta == 2:
        null, size = 0.5 * float(moments.scatter.sum()), 0.5 * totals.square
    elif beta == 1:
        sums, size = moments.mean * moments.weight, totals.total
        null = totals.logs + totals.total - float(xlogy(sums, np.maximum(moments.mean, 1e-300)).sum())
    else:
        shared = engine.broadcast(np.maximum(moments.mean, 1e-300)), engine.broadcast(beta)
        null, size = engine.reduce(add, engine.map(_from_means, blocks, blocks.rows(w), *shared)), totals.total
    return Holes(moments.mean.astype(blocks.dtype), _keep_positive(null, size), np.empty(0))


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
    return sum_weighted(divergences(X.astype(np.float64), means, beta).sum(axis=1), w)


def sum_weighted(each: np.ndarray, w: np.ndarray | None) -> float:
    """Σ w x, or Σ x without weights."""
    return float(each.sum() if w is None else each @ w)


def _keep_positive(null: float, size: float) -> float:
    """D₀, at least a rounding error of the data's size, since it divides."""
    return max(null, 1e-12 * size) or 1.0


def share_of_holes(known: np.ndarray, d: int) -> np.ndarray:
    """The cost of a missing cell in rows with `known` known cells of d, before κ and the row's weight."""
    missing = d - known
    return np.where(missing > 0, np.minimum(1.0, known / np.maximum(missing, 1)), 0.0)
