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
        return np.logaddexp(0, M) - X * M

    def slope(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return expit(M) - X

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        small = np.abs(M) < 1e-2  # where the ratio below would be 0/0
        return np.where(small, 0.25 - M**2 / 48, np.tanh(M / 2) / np.where(small, 1, 2 * M))

    def mean(self, M: np.ndarray) -> np.ndarray:
        return expit(M)

    def start(self, X: np.ndarray) -> np.ndarray:
        return 4 * (X - 0.5)  # the tangent of the log-odds at one half

    def outside(self, X: np.ndarray) -> np.ndarray:
        return (X < 0) | (X > 1)
