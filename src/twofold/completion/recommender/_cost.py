"""Count beforehand what it costs to try and to fit models.

In operations of dense algebra, of which an ordinary machine makes 5·10¹⁰ a second; one that looks up a cell takes as
long as twenty. So a limit in seconds leads to the same choice on every machine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.svd_plus_plus import MIN_CELLS_PER_LINE, TRIAL_SWEEPS

DENSE_OPS_PER_SECOND = 5e10  # on an ordinary machine
DENSE_OPS_PER_LOOKUP = 20.0
MAX_INPUT_COLUMNS, MIN_INPUT_COLUMNS = 10_000, 500  # of EASE
FACTORS, SWEEPS = 128, 12  # of ImplicitALS
LOOKUPS_PER_CELL, DENSE_OPS_PER_LINE = 370, 1300  # of a sweep of SVDPlusPlus; a line is a row or column
TYPICAL_SWEEPS, MIN_SWEEPS = 40, 10  # of SVDPlusPlus


def count_ease(X: sparse.csr_array, m: int) -> float:
    """Operations of one EASE fit with m input columns: the Gram matrix and its inverse."""
    return DENSE_OPS_PER_LOOKUP * count_pairs(X) + float(m) ** 3


def count_pairs(X: Any) -> float:
    """Pairs of cells in a row, of a table in memory or on disk."""
    return float((np.diff(X.indptr).astype(np.float64) ** 2).sum() / 2)


def limit_input_columns(X: Any, operations: float) -> int:
    """Input columns that EASE can afford; 0 if that is too few to be useful."""
    left = operations - DENSE_OPS_PER_LOOKUP * count_pairs(X)
    m = min(int(max(left, 0.0) ** (1 / 3)), MAX_INPUT_COLUMNS, X.shape[1])
    return m if m >= min(MIN_INPUT_COLUMNS, X.shape[1]) else 0


def count_factors(X: sparse.csr_array) -> float:
    """Operations of ImplicitALS by conjugate gradients."""
    return SWEEPS * 2 * (DENSE_OPS_PER_LOOKUP / 2 * X.nnz * FACTORS * 4 + sum(X.shape) * FACTORS**2 * 4)


class RatingCost(NamedTuple):
    """Operations of the rating models, tried and fitted again."""

    neighbors: float  # of Neighborhood, both times
    trial: float  # of SVDPlusPlus before its sweeps, both times
    sweep: float  # of SVDPlusPlus, one

    @property
    def typical(self) -> float:
        """Operations of all of them for the typical number of sweeps."""
        return self.neighbors + self.trial + 2 * TYPICAL_SWEEPS * self.sweep

    def limit_sweeps(self, operations: float, max_sweeps: int) -> int:
        """Sweeps that SVDPlusPlus can afford in either fit; 0 if that is too few to be useful."""
        sweeps = int(min((operations - self.neighbors - self.trial) / (2 * self.sweep), max_sweeps))
        return sweeps if sweeps >= MIN_SWEEPS else 0


def count_ratings(X: sparse.csr_array) -> RatingCost:
    """Operations of the rating models on this table."""
    sweep = DENSE_OPS_PER_LOOKUP * LOOKUPS_PER_CELL * X.nnz + DENSE_OPS_PER_LINE * sum(X.shape)
    trial = 2 * TRIAL_SWEEPS * sweep if X.nnz <= MIN_CELLS_PER_LINE * sum(X.shape) else 0.0
    return RatingCost(2 * DENSE_OPS_PER_LOOKUP * count_pairs(X), trial, sweep)


def share_time(X: sparse.csr_array, seconds: float) -> tuple[float, float]:
    """Seconds for the list models and for the rating models, which get their typical time, at most half of all."""
    ratings = min(count_ratings(X).typical / DENSE_OPS_PER_SECOND, seconds / 2)
    return seconds - ratings, seconds / 2
