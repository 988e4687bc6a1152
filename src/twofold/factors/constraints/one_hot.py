"""Exactly one component: clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.factors.constraints.base import Constraint


@dataclass(frozen=True)
class OneHot(Constraint):
    """One 1 in every row, and zeros: with squared error on the left this is k-means."""

    discrete: ClassVar[bool] = True

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        return _ones_at(F.argmax(axis=1), F)

    def solve(self, H: np.ndarray, B: np.ndarray) -> np.ndarray:
        return _ones_at((0.5 * np.diagonal(H, axis1=-2, axis2=-1) - B).argmin(axis=1), B)

    def options(self, k: int) -> np.ndarray:
        return np.eye(k)


def _ones_at(chosen: np.ndarray, like: np.ndarray) -> np.ndarray:
    F = np.zeros_like(like)
    F[np.arange(len(F)), chosen] = 1
    return F
