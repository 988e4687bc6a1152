"""Logistic loss: cells that are yes or no, or the probability of yes. Reference: Jaakkola & Jordan 2000 (the bound)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from twofold.factors.losses.base import Loss


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp m) − x m, minus the log-likelihood of x under the probability 1/(1 + exp(−m))."""

    needs: ClassVar[str] = "a number from 0 to 1"

    def value(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return np.log(1 + np.exp(-np.abs(M))) + np.maximum(M, 0) - X * M

    def slope(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return expit(M) - X

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        half = np.maximum(np.abs(M), 1e-3) / 2  # below, it is flat
        return np.tanh(half) / (4 * half)

    def mean(self, M: np.ndarray) -> np.ndarray:
        return expit(M)

    def start(self, X: np.ndarray) -> np.ndarray:
        return 4 * (X - 0.5)  # the tangent of the log-odds at one half

    def outside(self, X: np.ndarray) -> np.ndarray:
        return (X < 0) | (X > 1)
