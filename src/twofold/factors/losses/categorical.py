"""Categorical loss: cells that are one of L categories, written as codes 0 .. L−1.

A column has L values m_l, and the probability of level l is exp m_l / Σ exp m. Its second derivatives diag(p) − p pᵀ
lie below diag(2 p (1 − p)), because that less this is diagonally dominant; so each of the L values gets a parabola of
its own. As in the logistic loss the curvature is larger where the model is confident and wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from twofold.factors.constraints.base import check_number
from twofold.factors.losses.base import Loss, find_wrong_codes

SMOOTHING = 0.02  # added to shares before their logarithm is taken


@dataclass(frozen=True)
class Categorical(Loss):
    """log Σ exp m_l − m_x: minus the log-likelihood of the category x. The column has `n_levels` columns of Z."""

    n_levels: int

    def __post_init__(self) -> None:
        check_number(self, "n_levels", 2, whole=True)

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.n_levels

    @property
    def needs(self) -> str:  # type: ignore[override]
        return f"a whole number from 0 to {self.n_levels - 1}"

    def _split(self, M: np.ndarray) -> np.ndarray:
        """The L values of every cell: (m,d,L)."""
        return M.reshape(len(M), M.shape[1] // self.n_levels, self.n_levels)

    def value(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        values = self._split(M)
        top = values.max(axis=2)
        own = np.take_along_axis(values, X.astype(np.intp)[:, :, None], axis=2)[:, :, 0]
        return top - own + np.log(np.exp(values - top[:, :, None]).sum(axis=2))

    def slope(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return self.probabilities(M) - self.expand(X)

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        p = self.probabilities(M)
        return np.maximum(np.maximum(2 * p * (1 - p), (self.expand(X) - p) ** 2 / 2), 0.01 / (2 + np.abs(M)))

    def by_column(self, name: str, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return getattr(self, name)(X, M)

    def expand(self, X: np.ndarray) -> np.ndarray:
        ones = (X[:, :, None] == np.arange(self.n_levels)).astype(X.dtype)
        return np.where(np.isnan(X)[:, :, None], X[:, :, None], ones).reshape(len(X), -1)

    def probabilities(self, M: np.ndarray) -> np.ndarray:
        return softmax(self._split(M), axis=2).reshape(M.shape)

    def mean(self, M: np.ndarray) -> np.ndarray:
        """The most probable level."""
        return self._split(M).argmax(axis=2).astype(M.dtype)

    def start(self, X: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(X, 0) + SMOOTHING)

    def outside(self, X: np.ndarray) -> np.ndarray:
        return find_wrong_codes(X, self.n_levels)
