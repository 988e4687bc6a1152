"""The best constant of each column, and the scales that make losses of different kinds comparable.

    μ_j = argmin Σ_i w_ij ℓ_j(x_ij, μ)        scale_j = Σ_i w_ij / Σ_i w_ij ℓ_j(x_ij, μ_j)

With these scales a column contributes 1 a cell to the objective of a model without components, whatever its kind and
unit. For squared error this divides by half the variance; for categories, by the entropy.
Reference: Udell, Horn, Zadeh & Boyd 2016, section 4.3.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from twofold.core.engine.local import add
from twofold.factors._block import CURVATURE_FACTOR, Problem, compute_losses, iterate_slices, sum_columns, weigh
from twofold.factors._right_step import Data

MAX_STEPS, NEGLIGIBLE_DECREASE = 100, 1e-9  # of the search for constants; relative, of each column's loss
MIN_LOSS = 1e-12  # of a cell at the best constant: a column with less is constant


class ConstantSums(NamedTuple):
    """Sums over the rows at constants μ (D,)."""

    slope: np.ndarray  # (D,)
    curvature: np.ndarray  # (D,)
    loss: np.ndarray  # (d,)
    weight: np.ndarray  # (d,)


def find_scales(data: Data, start: np.ndarray) -> np.ndarray:
    """The scale of each column's loss (d,); 1 for a column that is constant or unknown."""
    p, mu = data.problem, start.astype(data.blocks.dtype)
    now = _sum_at(data, mu)
    damping = np.ones(len(mu))
    for _ in range(MAX_STEPS):
        step = now.slope / np.maximum(damping * now.curvature, np.finfo(np.float64).tiny ** 0.5)
        new = (mu - step).astype(mu.dtype)
        there = _sum_at(data, new)
        falls = there.loss <= now.loss
        moved = p.spread(falls)
        done = np.abs(now.loss - there.loss) <= NEGLIGIBLE_DECREASE * np.abs(now.loss)
        mu, damping = np.where(moved, new, mu), np.where(moved, 1.0, damping * CURVATURE_FACTOR)
        now = ConstantSums(
            np.where(moved, there.slope, now.slope),
            np.where(moved, there.curvature, now.curvature),
            np.where(falls, there.loss, now.loss),
            now.weight,
        )
        if done.all():
            break
    mean = now.loss / np.maximum(now.weight, np.finfo(np.float64).tiny)
    varies = mean > MIN_LOSS * np.maximum(1.0, p.collect(mu.astype(np.float64) ** 2))
    return np.divide(1.0, mean, out=np.ones(len(mean)), where=varies)


def _sum_at(data: Data, mu: np.ndarray) -> ConstantSums:
    per_row = data.blocks.rows(data.w), data.blocks.rows(data.W)
    shared = data.engine.broadcast(mu), data.engine.broadcast(data.problem)
    return data.engine.reduce(add, data.engine.map(_sum_block, data.blocks, *per_row, *shared))


def _sum_block(X: Any, w: Any, W: Any, mu: np.ndarray, p: Problem) -> ConstantSums:
    parts = []
    for rows, x, cells in iterate_slices(p, X, W):
        M, own = np.broadcast_to(mu, (len(x), len(mu))), None if w is None else w[rows]
        wide = p.spread(cells)
        parts.append(
            ConstantSums(
                sum_columns(weigh(wide, p.loss.by_column("slope", x, M)), own),
                sum_columns(weigh(wide, p.loss.by_column("curvature", x, M)), own),
                sum_columns(compute_losses(p.loss, x, cells, M), own),
                sum_columns(np.ones(x.shape) if cells is None else cells, own),
            )
        )
    return functools.reduce(add, parts)
