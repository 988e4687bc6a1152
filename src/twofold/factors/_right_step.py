"""The shared factor's half-step, and one sweep of both.

V = [Zᵀ, μ] (d,K)     the blocks give the sums of the parabolas of its rows, which are columns of X
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from twofold.core.data.blocks import Blocks, Rows, as_blocks
from twofold.core.engine.local import Engine, add, engine_for, fingerprint
from twofold.core.numerics.extrapolation import geometric
from twofold.factors._block import (
    CURVATURE_FACTOR,
    MAX_TRIES,
    NEGLIGIBLE_GAIN,
    Problem,
    Sums,
    sum_losses,
    sum_squares,
    update_codes,
)
from twofold.factors._half_step import Parabola, Side, choose_rows, improve
from twofold.factors.constraints.base import multiply_rows

ROUNDING = 1e-13, 1e-12  # of Σ w x², in double and single precision: a smaller misfit counts as zero


class Data(NamedTuple):
    """The table, its weights, the problem, and the constant term of its objective."""

    engine: Engine
    blocks: Blocks
    w: np.ndarray | None
    W: Any
    problem: Problem
    square: float

    @classmethod
    def of(cls, blocks: Blocks, w: np.ndarray | None, W: Any, problem: Problem) -> Data:
        engine, square = engine_for(blocks), 0.0
        if problem.plain:
            parts = engine.map(sum_squares, blocks, blocks.rows(w), engine.broadcast(problem.shift))
            square = engine.reduce(add, parts)
        return cls(engine, blocks, w, W, problem, square)

    def sign(self) -> str:
        return "" if self.W is None else fingerprint(as_blocks(self.W))

    def over_blocks(self, fn: Callable, kept: Rows, V: np.ndarray) -> Any:
        per_row = self.blocks.rows(self.w), self.blocks.rows(self.W)
        shared = self.engine.broadcast(V), self.engine.broadcast(self.problem)
        return self.engine.map(fn, self.blocks, *per_row, kept, *shared)


def make_sweep(data: Data) -> Callable[[Rows, np.ndarray], tuple[Rows, np.ndarray, float]]:
    """One sweep: the codes of all rows given V, then V given the codes."""

    def sweep(kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        kept, s = data.engine.reduce(add, data.over_blocks(update_codes, kept, V), keep=True)
        if data.problem.plain:
            V = update_columns(V, s, data.problem)
            fit = 0.5 * (data.square - 2 * np.vdot(s.B, V) + np.vdot(s.H, V.astype(np.float64).T @ V))
            fit = fit if fit > ROUNDING[V.dtype == np.float32] * data.square else 0.0
            return kept, V, fit + s.penalty + sum_right_penalty(V, data.problem)
        return kept, *update_safely(V, s, data, kept)

    return sweep


def update_columns(V: np.ndarray, s: Sums, p: Problem) -> np.ndarray:
    """Better columns for their parabolas: Z given μ, then μ given Z."""
    k, F = p.k, p.in_units(V.astype(np.float64))
    B = s.B[:, :k]
    if V.shape[1] > k:
        B = B - s.H[..., :k, k] * V[:, k:]
    H, B = p.tie(s.H[..., :k, :k]), p.tie(B)
    if p.units is not None:
        H, B = H * p.units[:, None, None] ** 2, B * p.units[:, None]
    F = _keep_unused(improve(Parabola(H, B), F, Side(p.right, True), p.steps), F, H, p)
    F = p.from_units(F)
    if V.shape[1] == k:
        return np.ascontiguousarray(F, dtype=V.dtype)
    own = np.maximum(s.H[..., k, k], np.finfo(np.float64).tiny)
    mu = (s.B[:, k] - np.einsum("...c,...c->...", F, s.H[..., k, :k])) / own
    return np.column_stack([F, np.where(s.H[..., k, k] > 0, mu, V[:, k])]).astype(V.dtype)


def _keep_unused(new: np.ndarray, F: np.ndarray, H: np.ndarray, p: Problem) -> np.ndarray:
    """Keep components that no row uses, if that costs nothing: rows may use an empty cluster again."""
    if not p.right.elementwise:
        return new
    mixed = np.where(np.diagonal(H, axis1=-2, axis2=-1) > 0, new, F)
    return mixed if p.right.values(mixed.T).sum() <= p.right.values(new.T).sum() else new


def sum_right_penalty(V: np.ndarray, p: Problem) -> float:
    return float(p.right.values(p.in_units(V).T).sum() if p.heads is None else p.right_penalties(V).sum())


def compute_costs(loss: np.ndarray | float, V: np.ndarray, p: Problem) -> np.ndarray:
    """Loss and penalty: of every column (d,) where these are independent, else (1,) of all."""
    if p.right.elementwise:
        return loss + p.collect(p.right_penalties(V))
    return np.array([np.sum(loss) + sum_right_penalty(V, p)])


def update_safely(V: np.ndarray, s: Sums, data: Data, kept: Rows) -> tuple[np.ndarray, float]:
    """The same where no sum over the rows gives the cost of V: the losses are computed again."""
    p = data.problem
    if p.loss.positive:
        V = np.ascontiguousarray(p.right.shares(s.B.T, s.H.T).T, dtype=V.dtype)
        return V, float(_sum_losses(data, kept, V).sum()) + s.penalty + sum_right_penalty(V, p)
    cost, double = compute_costs(s.loss, V, p), V.astype(np.float64)
    slope = multiply_rows(double, s.H) - s.B
    if p.loss.quadratic:  # the parabolas are the losses
        new = update_columns(V, s, p)
        step = new.astype(np.float64) - double
        loss = s.loss + np.einsum("jc,jc->j", step, slope + 0.5 * multiply_rows(step, s.H))
        new_cost = compute_costs(loss, new, p)
        V, cost = (new, new_cost) if new_cost.sum() <= cost.sum() else (V, cost)
        return V, float(cost.sum()) + s.penalty
    best, rest = V, np.ones(cost.shape, dtype=bool)
    gain = NEGLIGIBLE_GAIN[V.dtype == np.float32] * abs(float(cost.sum()))
    for t in range(MAX_TRIES):
        H = s.H * CURVATURE_FACTOR**t
        new = update_columns(V, s._replace(H=H, B=multiply_rows(double, H) - slope), p)
        change = np.where(rest, compute_costs(_sum_losses(data, kept, new), new, p) - cost, 0)
        good = rest & (change <= 0)
        chosen = p.spread(good) if p.right.elementwise else good
        best, cost, rest = choose_rows(chosen, new, best), np.where(good, cost + change, cost), rest & ~good
        gain -= float(change[good].sum())
        if float(change[rest].sum()) <= gain:
            break  # the others wait for the next sweep
    return best, float(cost.sum()) + s.penalty


def _sum_losses(data: Data, kept: Rows, V: np.ndarray) -> np.ndarray:
    return data.engine.reduce(add, data.over_blocks(sum_losses, kept, V))


def make_extrapolation(p: Problem) -> Callable[[np.ndarray, np.ndarray, float], np.ndarray] | None:
    """A function that moves the shared factor ahead along its last step; None for a discrete factor."""
    if p.left.discrete or p.right.discrete:
        return None
    side, none = Side(p.right, True), np.zeros((1, 1))

    def ahead(V: np.ndarray, old: np.ndarray, beta: float) -> np.ndarray:
        if p.loss.positive:
            return np.ascontiguousarray(p.right.start(geometric(V, old, beta).T).T)
        new = V + V.dtype.type(beta) * (V - old)
        new[:, : p.k] = p.from_units(side.prox(p.in_units(new), none.astype(V.dtype)))
        return new

    return ahead
