"""What most rows have: the baseline of every list.

    x̂_ij = p_j      the share of rows, by weight, in which column j was seen; rows that saw nothing do not count

which is the best constant for a column:  minimise  Σ_ij w_i (1[x_ij ≠ 0] − p_j)².
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from twofold.completion.ease import weigh_rows
from twofold.completion.model import Ranking
from twofold.completion.scorer import ProductScorer, Scorer
from twofold.core import loop
from twofold.core.data.known_cells import stored
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

    popularity_: np.ndarray
    _fitted: ClassVar[dict[str, str]] = {"popularity_": "d"}
    _parameter_constraints: ClassVar[dict] = {}

    def __init__(self) -> None:
        """It has no parameters."""

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Popularity:
        """Count who has seen each column of X, also of :class:`PartitionedRatings`; see :meth:`EASE.fit`."""
        ratings: Any = X
        if hasattr(ratings, "n_ratings"):
            from twofold.completion.partitioned._baselines import fit_popularity

            return fit_popularity(self, ratings, sample_weight)
        cells = self._observed(X, sample_weight)
        W = stored(cells.W, cells.X.data != 0)
        counts = np.bincount(W.indices, W.data.astype(np.float64), cells.shape[1])
        return fit_counts(self, counts, float(weigh_rows(W).sum()), cells.dtype, X, cells.sign)

    def _folding(self) -> tuple[Callable, tuple]:
        return give_ones, (self.popularity_.dtype,)

    def fold_in(self, X: Table) -> np.ndarray:
        """Ones (m,1): all rows are alike."""
        return super().fold_in(X)

    def _valuing(self) -> tuple[Callable, tuple]:
        return np.multiply, (self.popularity_,)

    def _trained(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return self.popularity_[cols]

    def make_scorer(self, seen: Any) -> Scorer:
        n, share = self.n_rows_, self.popularity_
        return ProductScorer(np.ones((n, 1), share.dtype), share[None], np.zeros(n, share.dtype))


def give_ones(X: sparse.csr_array, dtype: np.dtype) -> np.ndarray:
    return np.ones((X.shape[0], 1), dtype)


def fit_counts(
    model: Popularity, counts: np.ndarray, mass: float, dtype: np.dtype, X: Any, sign: Callable[[], str]
) -> Popularity:
    """The fit, given how many have seen each column, and how many there are."""
    mass = mass or 1.0

    def sweep(state: Any, t: int) -> loop.Sweep:
        return loop.Sweep(counts / mass, float(counts.sum() - counts @ counts / mass), done=True)

    def fitted(share: np.ndarray) -> dict:
        return {"popularity_": share.astype(dtype)}

    loop.run(model, sweep, np.zeros(len(counts)), max_iter=1, tol=0.0, fitted=fitted, X=X, fingerprint=sign)
    return model
