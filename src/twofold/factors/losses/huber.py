"""Huber's loss: squared near zero, absolute further out. Reference: Huber 1964."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.factors.losses.base import Loss


@dataclass(frozen=True)
class Huber(Loss):
    """½ r² for |r| ≤ δ and δ (|r| − ½ δ) beyond, with r = x − m: outliers pull, but no harder the further they are."""

    delta: float = 1.0
    shifts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.delta < np.inf:
            raise InputError(f"Huber(delta={self.delta!r}): delta must be a number above 0.")

    def value(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        r = np.abs(X - M)
        return np.where(r <= self.delta, 0.5 * r**2, self.delta * (r - 0.5 * self.delta))

    def slope(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return np.clip(M - X, -self.delta, self.delta)

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return self.delta / np.maximum(np.abs(X - M), self.delta)
