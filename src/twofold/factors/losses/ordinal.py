"""Ordinal loss: cells that are one of L ordered levels, written as codes 0 .. L−1.

L − 1 logistic losses ask whether the cell is above level l. They share one direction of Z and differ in the intercept,
which is the threshold: a row that moves along the direction passes one threshold after the other. At the optimum the
thresholds are in order. Reference: Rennie & Srebro 2005 (all-threshold loss).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from twofold.factors.constraints.base import check_number
from twofold.factors.losses.base import Loss, find_wrong_codes
from twofold.factors.losses.logistic import Logistic

SMOOTHING = 0.02  # added to shares before their log-odds are taken


@dataclass(frozen=True)
class Ordinal(Loss):
    """Σ_l log(1 + exp m_l) − [x > l] m_l, l = 0 .. L−2: one direction of Z for all levels, a threshold for each.

    The column has `n_levels` − 1 columns of Z, which are equal. It needs ``intercept=True``.
    """

    n_levels: int
    tied: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self, "n_levels", 2, whole=True)

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.n_levels - 1

    @property
    def needs(self) -> str:  # type: ignore[override]
        return f"a whole number from 0 to {self.n_levels - 1}"

    def value(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        each = Logistic().value(self.expand(X), M)
        return each.reshape(*X.shape, self.width).sum(axis=2)

    def slope(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return Logistic().slope(self.expand(X), M)

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return Logistic().curvature(self.expand(X), M)

    def by_column(self, name: str, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return getattr(self, name)(X, M)

    def expand(self, X: np.ndarray) -> np.ndarray:
        above = (X[:, :, None] > np.arange(self.width)).astype(X.dtype)
        return np.where(np.isnan(X)[:, :, None], X[:, :, None], above).reshape(len(X), -1)

    def probabilities(self, M: np.ndarray) -> np.ndarray:
        above = Logistic().mean(M).reshape(len(M), -1, self.width)
        ends = np.ones_like(above[:, :, :1]), np.zeros_like(above[:, :, :1])
        levels = -np.diff(np.concatenate([ends[0], np.minimum.accumulate(above, axis=2), ends[1]], axis=2), axis=2)
        return levels.reshape(len(M), -1)

    def mean(self, M: np.ndarray) -> np.ndarray:
        """The median level."""
        return (M.reshape(len(M), -1, self.width) > 0).sum(axis=2).astype(M.dtype)

    def start(self, X: np.ndarray) -> np.ndarray:
        share = np.clip(X, 0, 1)
        return np.log((share + SMOOTHING) / (1 - share + SMOOTHING))

    def outside(self, X: np.ndarray) -> np.ndarray:
        return find_wrong_codes(X, self.n_levels)
