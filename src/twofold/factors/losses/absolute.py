"""Absolute error, |x − m|: medians instead of means.

The parabola through ±r has curvature 1/|r|, which has no bound; it is bounded by a thousandth of the mean error along
the last axis: of a row for its code, of a column for the components.
Reference: Hunter & Lange 2000.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twofold.factors.losses.base import Loss

SHARE = 1e-3


@dataclass(frozen=True)
class Absolute(Loss):
    """|x − m|: the fit of most cells counts, whatever the others are."""

    def value(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return np.abs(X - M)

    def slope(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return (M - X) * self.curvature(X, M)

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        r = np.abs(X - M)
        return 1 / np.maximum(r, SHARE * r.mean(axis=-1, keepdims=True) + np.finfo(r.dtype).tiny ** 0.5)
