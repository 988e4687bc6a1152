"""What most rows have: the baseline of every list.

    x̂_ij = p_j      the share of rows, by weight, in which column j was seen; rows that saw nothing do not count

which is the best constant for a column:  minimize  Σ_ij w_i (1[x_ij ≠ 0] − p_j)².
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse

from twofold.completion.cells import open_cells
from twofold.completion.model import Ranking
from twofold.completion.scorer import ProductScorer, Scorer
from twofold.core.estimator import fitting
from twofold.core.types import Table, Weights


class Popularity(Ranking):
    """Everyone is recommended what most have seen: what any other list should beat.

    Unstored, unknown and zero cells mean "not seen"; what is stored in the others does not matter.

    Attributes
    ----------
    popularity_ : ndarray of shape (d,)
        The share of rows, by weight, in which each column was seen.
    history_, n_iter_, converged_
        The objective is the squared error of seen (1) or not (0); there is nothing to iterate.

    Examples
    --------
    >>> from twofold import Popularity
    >>> seen = np.array([[1, 0, 1], [1, 0, 0], [1, 1, 0], [1, 0, 1]])
    >>> Popularity().fit(seen).predict([0, 3], [0, 2])
    array([1. , 0.5])
    """

    popularity_: Annotated[np.ndarray, "d"]
    _parameter_constraints: ClassVar[dict] = {}

    def __init__(self) -> None:
        """It has no parameters."""

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Popularity:
        """Count the rows that have seen each column of X, also of :class:`PartitionedRatings`; see :meth:`EASE.fit`."""
        cells = open_cells(self, X, sample_weight)

        def solve() -> tuple[dict, float, dict]:
            counts, rows = cells.count_columns()
            share = counts / (rows or 1.0)
            return {"popularity_": share.astype(cells.dtype)}, float(counts.sum() - counts @ counts / (rows or 1.0)), {}

        return self._fit_at_once(solve, cells.source, cells.sign)

    def _folding(self) -> tuple[Callable, tuple]:
        return give_ones, (self.popularity_.dtype,)

    def _valuing(self) -> tuple[Callable, tuple]:
        return np.multiply, (self.popularity_,)

    def _predict_cells(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return self.popularity_[cols]

    def make_scorer(self, seen: Any) -> Scorer:
        n, share = self.n_rows_, self.popularity_
        return ProductScorer(np.ones((n, 1), share.dtype), share[None], np.zeros(n, share.dtype))


def give_ones(X: sparse.csr_array, dtype: np.dtype) -> np.ndarray:
    return np.ones((X.shape[0], 1), dtype)
