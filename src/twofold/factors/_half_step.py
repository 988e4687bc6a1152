"""The half-step of both factors: one parabola for each row, and the penalty of the constraint.

    minimize  Σ_i ½ f_i H f_iᵀ − b_i f_iᵀ  +  penalty      F (m,k), H (k,k) or one a row (m,k,k)

A constraint may give the minimum. If it treats every number by itself, and H is the same for all, coordinate descent
finds it; else accelerated proximal steps:
    Y ← F + β (F − F before);   F ← prox(Y − (Y H − B) / L)       a row that would rise steps from F itself instead

For the left factor rows are samples, and its constraint applies to a row of F. For the right one rows are the columns
of X, and the constraint applies across them: F is Zᵀ.
Reference: Beck & Teboulle 2009; O'Donoghue & Candès 2015 (restarts); Xu & Yin 2013.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold.factors.constraints import Constraint
from twofold.factors.constraints.base import multiply_rows

STEPS_PER_PASS = 3  # proximal steps that cost as much as a pass over the coordinates


class Parabola(NamedTuple):
    """½ f H fᵀ − b fᵀ for every row f."""

    H: np.ndarray  # (k,k) or (m,k,k)
    B: np.ndarray  # (m,k)

    def values(self, F: np.ndarray, FH: np.ndarray) -> np.ndarray:
        return np.einsum("ic,ic->i", F, 0.5 * FH - self.B, dtype=np.float64)


class Side(NamedTuple):
    """One of the two factors, and its constraint."""

    constraint: Constraint
    right: bool

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        found = self.constraint.prox(F.T, step.T).T if self.right else self.constraint.prox(F, step)
        return np.asarray(found, dtype=F.dtype)

    def costs(self, fit: np.ndarray, F: np.ndarray) -> np.ndarray:
        """Fit (m,) and penalty: of every row, or (1,) of all where the constraint ties them together."""
        if self.right:
            return np.array([fit.sum() + self.constraint.values(F.T).sum()])
        return fit + self.constraint.values(F)

    def steepness(self, H: np.ndarray) -> np.ndarray:
        """L, by which a step is divided: as large as the parabola needs, and as small as the constraint allows."""
        diagonal = np.diagonal(H, axis1=-2, axis2=-1)
        floor = np.finfo(H.dtype).eps * diagonal.max() + np.finfo(H.dtype).tiny
        if self.constraint.elementwise or (self.right and not self.constraint.joint):
            scale = np.sqrt(np.maximum(diagonal, floor))
            L = scale**2 * _bound_eigenvalue(H / scale[..., :, None] / scale[..., None, :])[..., None]
            L = L.max(axis=0) if self.right and not self.constraint.elementwise and H.ndim == 3 else L
        else:
            L = _bound_eigenvalue(H)[..., None]
            L = L.max(axis=0) if self.right and H.ndim == 3 else L
        return np.maximum(np.atleast_2d(L), floor).astype(H.dtype)


def _bound_eigenvalue(H: np.ndarray) -> np.ndarray:
    """At least the largest eigenvalue: itself for one matrix, the largest row sum for many."""
    return np.linalg.eigvalsh(H)[-1:][0] if H.ndim == 2 else np.abs(H).sum(axis=-1).max(axis=-1)


def improve(q: Parabola, F: np.ndarray, side: Side, steps: int, tol: float = 0.0) -> np.ndarray:
    """A factor no worse than F, by the closed form of the constraint, or by `steps` proximal steps."""
    if not side.right or side.constraint.elementwise or side.constraint.joint:
        found = side.constraint.solve(q.H, q.B)
        if found is not None:
            found = found.astype(F.dtype, copy=False)
            before, after = (side.costs(q.values(A, multiply_rows(A, q.H)), A) for A in (F, found))
            return choose_rows(after <= before, found, F)
    if side.constraint.elementwise and q.H.ndim == 2:
        return descend_coordinates(q, F, side, steps, tol)
    return take_accelerated_steps(q, F, side, steps, tol)


def descend_coordinates(q: Parabola, F: np.ndarray, side: Side, steps: int, tol: float) -> np.ndarray:
    """Number by number, each exactly. A row stops when a pass gains less than `tol` of its cost."""
    F, moving = F.copy(), np.arange(len(F))
    for _ in range(max(1, steps // STEPS_PER_PASS)):
        new, gain = _visit_coordinates(q, F[moving], side.constraint)
        F[moving] = new
        if tol:
            goes = gain > tol * np.abs(q.values(new, multiply_rows(new, q.H)))
            moving, q = moving[goes], q._replace(B=q.B[goes])
            if not len(moving):
                break
    return F


def _visit_coordinates(q: Parabola, F: np.ndarray, constraint: Constraint) -> tuple[np.ndarray, np.ndarray]:
    """Update all coordinates once; the result, and at least half of the gain of every row."""
    F, gain = np.array(F.T, order="C"), np.zeros(len(F))  # (k,m): the memory of a coordinate is contiguous
    diagonal = np.diagonal(q.H)
    bend = np.maximum(diagonal, np.finfo(F.dtype).eps * diagonal.max() + np.finfo(F.dtype).tiny)
    for c, h in enumerate(bend):
        new = constraint.prox((F[c] - (q.H[c] @ F - q.B[:, c]) / h)[:, None], 1 / h)[:, 0]
        gain += h * (new - F[c]) ** 2
        F[c] = new
    return np.ascontiguousarray(F.T), gain


def take_accelerated_steps(q: Parabola, F: np.ndarray, side: Side, steps: int, tol: float) -> np.ndarray:
    """Accelerated proximal steps. A row stops when a step gains less than `tol` of its cost."""
    L = side.steepness(q.H)
    step = 1 / L
    FH = multiply_rows(F, q.H)
    old, oldH, cost = F, FH, side.costs(q.values(F, FH), F)
    t, moving = np.ones_like(cost), np.ones(cost.shape, dtype=bool)
    for _ in range(steps):
        after = (1 + np.sqrt(1 + 4 * t**2)) / 2
        ahead = ((t - 1) / after)[:, None].astype(F.dtype)
        new = side.prox(F + ahead * (F - old) - (FH + ahead * (FH - oldH) - q.B) * step, step)
        newH = multiply_rows(new, q.H)
        found = side.costs(q.values(new, newH), new)
        rises = ~(found <= cost) & moving
        if rises.any():  # from F itself, which cannot rise but by rounding
            new = choose_rows(rises, side.prox(F - (FH - q.B) * step, step), new)
            newH = multiply_rows(new, q.H)
            found, after = side.costs(q.values(new, newH), new), np.where(rises, 1.0, after)
        moving &= found <= cost
        gain = np.where(moving, cost - found, 0)
        old, oldH = F, FH
        F, FH = choose_rows(moving, new, F), choose_rows(moving, newH, FH)
        t, cost = after, cost - gain
        moving &= gain > tol * np.abs(cost)
        if not moving.any():
            break
    return F


def choose_rows(chosen: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rows of a where chosen, else of b; `chosen` has one entry for each row, or one for all."""
    return a if chosen.all() else np.where(chosen[:, None], a, b)
