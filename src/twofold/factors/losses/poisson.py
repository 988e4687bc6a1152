"""Poisson loss: cells that are counts.

With the identity link it is the Kullback-Leibler divergence of KL-NMF and pLSA; with the log link the factors may have
any sign. Its parabolas only lie above it nearby.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from twofold.core.checks import InputError
from twofold.factors.losses.base import Loss

MAX_LOG_RATE = 30.0  # larger ones count as this


@dataclass(frozen=True)
class Poisson(Loss):
    """x log(x/λ) − x + λ with the rate λ = m (``link="identity"``) or λ = exp m (``link="log"``)."""

    link: str = "identity"
    needs: ClassVar[str] = "a count, 0 or more"

    def __post_init__(self) -> None:
        if self.link not in ("identity", "log"):
            raise InputError(f'Poisson(link={self.link!r}): link must be "identity" or "log".')

    @property
    def positive(self) -> bool:  # type: ignore[override]
        return self.link == "identity"

    def value(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        if self.positive:
            return xlogy(X, X / _above_zero(M)) - X + M
        return xlogy(X, X) - X + np.exp(np.minimum(M, MAX_LOG_RATE)) - X * M

    def slope(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return 1 - X / _above_zero(M) if self.positive else np.exp(np.minimum(M, MAX_LOG_RATE)) - X

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return X / _above_zero(M) ** 2 if self.positive else np.maximum(np.exp(np.minimum(M, MAX_LOG_RATE)), X)

    def mean(self, M: np.ndarray) -> np.ndarray:
        return M if self.positive else np.exp(np.minimum(M, MAX_LOG_RATE))

    def start(self, X: np.ndarray) -> np.ndarray:
        return X if self.positive else np.log(X + 0.5)

    def outside(self, X: np.ndarray) -> np.ndarray:
        return X < 0


def _above_zero(M: np.ndarray) -> np.ndarray:
    return np.maximum(M, np.finfo(M.dtype).tiny ** 0.25)
