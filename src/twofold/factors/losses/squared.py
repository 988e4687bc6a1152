"""Squared error, ½ (x − m)²: cells with Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from twofold.factors.losses.base import Loss


@dataclass(frozen=True)
class Squared(Loss):
    """½ (x − m)², the loss of PCA, k-means, least squares."""

    quadratic: ClassVar[bool] = True
    shifts: ClassVar[bool] = True

    def value(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return 0.5 * (X - M) ** 2

    def slope(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return M - X

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return np.ones_like(M)
