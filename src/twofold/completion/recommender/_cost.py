"""What it costs to try and to fit models, counted beforehand.

In operations of dense algebra, of which an ordinary machine makes 5·10¹⁰ a second; one that looks up a cell takes as
long as twenty. So a limit in seconds leads to the same choice on every machine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.svd_plus_plus import PLENTY, TRIAL

PACE = 5e10  # operations a second that an ordinary machine makes in dense algebra
SLOW = 20.0  # dense operations in the time of one that looks up a cell
MOST, FEW = 10_000, 500  # columns that speak in EASE
FACTORS, SWEEPS = 128, 12  # of ImplicitALS
CELL, LINE = 370, 1300  # operations of a sweep of SVDPlusPlus, looked up for a cell, dense for a row or column
SETTLED, FEWEST = 40, 10  # sweeps that it takes as a rule, and that are worth trying


def count_ease(X: sparse.csr_array, m: int) -> float:
    """One fit of EASE with m columns that speak: pairs of cells in a row, and an inverse."""
    return SLOW * count_pairs(X) + float(m) ** 3


def count_pairs(X: sparse.csr_array) -> float:
    return float((np.diff(X.indptr).astype(np.float64) ** 2).sum() / 2)


def find_size(X: sparse.csr_array, operations: float) -> int:
    """How many columns may speak in EASE, 0 if not enough to be worth it."""
    left = operations - SLOW * count_pairs(X)
    m = min(int(max(left, 0.0) ** (1 / 3)), MOST, X.shape[1])
    return m if m >= min(FEW, X.shape[1]) else 0


def count_factors(X: sparse.csr_array) -> float:
    """ImplicitALS, by conjugate gradients."""
    return SWEEPS * 2 * (SLOW / 2 * X.nnz * FACTORS * 4 + sum(X.shape) * FACTORS**2 * 4)


class RatingCost(NamedTuple):
    """Operations of the models of ratings, tried and fitted again."""

    neighbors: float  # of Neighborhood, both times
    proof: float  # of SVDPlusPlus before its sweeps, both times
    sweep: float  # of SVDPlusPlus, one

    @property
    def usual(self) -> float:
        """What all of them take as a rule."""
        return self.neighbors + self.proof + 2 * SETTLED * self.sweep

    def find_sweeps(self, operations: float, most: int) -> int:
        """How many sweeps SVDPlusPlus may make in either fit, 0 if not enough to be worth it."""
        sweeps = int(min((operations - self.neighbors - self.proof) / (2 * self.sweep), most))
        return sweeps if sweeps >= FEWEST else 0


def count_ratings(X: sparse.csr_array) -> RatingCost:
    """What the models of ratings cost on this table."""
    sweep = SLOW * CELL * X.nnz + LINE * sum(X.shape)
    proof = 2 * TRIAL * sweep if X.nnz <= PLENTY * sum(X.shape) else 0.0
    return RatingCost(2 * SLOW * count_pairs(X), proof, sweep)


def share_time(X: sparse.csr_array, seconds: float) -> tuple[float, float]:
    """Seconds for the models of lists and of ratings: these get what they take as a rule, but at most half."""
    ratings = min(count_ratings(X).usual / PACE, seconds / 2)
    return seconds - ratings, seconds / 2
