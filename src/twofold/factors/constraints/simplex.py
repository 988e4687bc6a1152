"""Shares: nothing below zero, and a sum of one. Reference: Held, Wolfe & Crowder 1974 (the projection)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from twofold.factors.constraints.base import Constraint


@dataclass(frozen=True)
class Simplex(Constraint):
    """f ≥ 0 and Σ f = 1 in every row: a mixture."""

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        falling = -np.sort(-F, axis=1)
        excess = np.cumsum(falling, axis=1) - 1
        count = np.arange(1, F.shape[1] + 1)
        last = np.count_nonzero(falling * count > excess, axis=1) - 1
        level = np.take_along_axis(excess, last[:, None], axis=1) / (last[:, None] + 1)
        return np.maximum(F - level.astype(F.dtype), 0)

    def shares(self, A: np.ndarray, S: np.ndarray) -> np.ndarray:
        """a / (s + λ), with the λ that makes the sum one: it is found by Newton's method from below."""
        S, used = np.broadcast_to(S, A.shape), A > 0
        level = np.where(used, A - S, -np.inf).max(axis=1, keepdims=True)  # here one share alone is a whole
        for _ in range(50):
            F = np.where(used, A / np.where(used, S + level, 1), 0)
            over = F.sum(axis=1, keepdims=True) - 1
            if not (over > 1e-14).any():
                break
            slope = np.where(used, F / np.where(used, S + level, 1), 0).sum(axis=1, keepdims=True)
            level = level + over / np.where(slope > 0, slope, 1)
        total = F.sum(axis=1, keepdims=True)
        return np.where(total > 0, F / np.where(total > 0, total, 1), 1 / A.shape[1]).astype(A.dtype)

    def start(self, F: np.ndarray) -> np.ndarray:
        """Shares of the row's sum: unlike the projection they keep small numbers above zero."""
        F = np.maximum(F, 0) + np.finfo(F.dtype).tiny
        return F / F.sum(axis=1, keepdims=True)
