"""Neighbourhoods of columns (or rows) that deviate alike.

    x̂_ij = m + b_i + c_j  +  Σ_l v_jl r_il / (Σ_l |v_jl| + damping)

    l                   the n_neighbors columns most like j among those known in row i
    r = x − m − b − c   what the known cells deviate from their baseline (see `Biases`)
    s_jl                their correlation over the n_jl rows that know both, times (n_jl − 1)/(n_jl − 1 + shrinkage)
    v = s |s|^(power−1) so that the strong ones count more

Fit: the baseline; then for each column its strongest similarities, which are all that is kept of s.
With kind="user" the sides are exchanged: rows alike to row i, known in column j.
References: Sarwar, Karypis, Konstan & Riedl 2001 (items); Herlocker et al. 1999 (users); Bell & Koren 2007 (shrinkage,
baselines); Breese, Heckerman & Kadie 1998 (powers).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from twofold.completion._base import Completion
from twofold.completion._similar_lines import (
    Rule,
    compare_to_fitted,
    find_similarities,
    predict_all_deviations,
    predict_deviations,
    sort_by_strength,
    split_deviation,
)
from twofold.completion.biases import Biases, compute_shifts
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.known_cells import Observed
from twofold.core.estimator import fitting
from twofold.core.params import Interval, StrOptions


class Found(NamedTuple):
    """What a fit finds: deviations and similarities."""

    R: sparse.csr_array
    S: sparse.csr_array


def get_offset(baseline: Biases) -> np.ndarray:
    """m + c_j"""
    return baseline.column_bias_ + baseline.column_bias_.dtype.type(baseline.mean_)


def subtract_baseline(X: sparse.csr_array, bias: np.ndarray, offset: np.ndarray) -> sparse.csr_array:
    """The known cells as deviations from m + b_i + c_j."""
    gaps = X.data - np.repeat(bias, np.diff(X.indptr)) - offset[X.indices]
    return sparse.csr_array((gaps.astype(offset.dtype, copy=False), X.indices, X.indptr), shape=X.shape)


def predict_by_columns(
    X: sparse.csr_array, offset: np.ndarray, lam: float, S: sparse.csr_array, rule: Rule
) -> np.ndarray:
    """(m,d) new rows from the similarities of the columns."""
    bias = compute_shifts(X, offset, lam)
    out = predict_all_deviations(subtract_baseline(X, bias[:, 0], offset), S, rule)
    out += bias + offset
    return out


def predict_by_rows(
    X: sparse.csr_array, offset: np.ndarray, lam: float, fitted: sparse.csr_array, rule: Rule
) -> np.ndarray:
    """(m,d) new rows from the fitted rows (here d × n) that are like them, found now."""
    bias = compute_shifts(X, offset, lam)
    S = compare_to_fitted(subtract_baseline(X, bias[:, 0], offset), fitted, rule)
    return bias + offset + predict_all_deviations(fitted, S, rule).T


class Neighborhood(Completion):
    """The baseline of a cell, plus what similar columns (or rows) deviate from theirs.

    Parameters
    ----------
    n_neighbors : int, default=40
        Neighbours a prediction uses at most, the most similar known ones.
    kind : {"item", "user"}, default="item"
        "item" compares columns: a row's value in column j comes from its own cells in similar columns, so new rows cost
        nothing and predictions explain themselves. "user" compares rows.
    shrinkage : float, default=100
        Common cells at which a correlation is half believed.
    power : float, default=1.5
        Similarities count as their absolute value to this power, with their sign.
    damping : float, default=0.1
        Added to the sum of those, so that few and weak neighbours say little.
    n_similar : int, default=400
        Similarities kept for each column (or row). The memory they take is d (or n) times this; the strongest are kept.

    Attributes
    ----------
    similarities_ : CSR array of shape (d, d), or (n, n) for "user"
        The strongest similarities of each column, those of a line stored from strong to weak.
    baseline_ : Biases
        The fitted biases.
    residuals_ : CSR array of shape (n, d), or (d, n) for "user"
        What the known cells of the fitted table deviate from the baseline.
    history_, n_iter_, converged_
        The objective is the weighted squared error the baseline leaves to the neighbours; there is nothing to iterate.

    References
    ----------
    Sarwar, Karypis, Konstan & Riedl (2001), *WWW*, 285-295. Bell & Koren (2007), *ICDM*, 43-52.

    Examples
    --------
    Two groups of columns that rise and fall together:

    >>> from twofold import Biases, Neighborhood
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(400, 2)) @ np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=1)
    >>> X = np.where(rng.random(truth.shape) < 0.5, truth + 0.3 * rng.normal(size=truth.shape), np.nan)
    >>> model = Neighborhood().fit(X)
    >>> error = lambda model: np.sqrt(((model.predict(X) - truth)[np.isnan(X)] ** 2).mean())
    >>> bool(error(model) < 0.35 * error(Biases().fit(X)))
    True
    """

    similarities_: sparse.csr_array
    residuals_: sparse.csr_array
    baseline_: Biases
    _parameter_constraints: ClassVar[dict] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "kind": [StrOptions({"item", "user"})],
        "shrinkage": [Interval(Real, 0, None, closed="left")],
        "power": [Interval(Real, 0, None, closed="left")],
        "damping": [Interval(Real, 0, None, closed="left")],
        "n_similar": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_neighbors: int = 40,
        *,
        kind: str = "item",
        shrinkage: float = 100.0,
        power: float = 1.5,
        damping: float = 0.1,
        n_similar: int = 400,
    ):
        self.n_neighbors = n_neighbors
        self.kind = kind
        self.shrinkage = shrinkage
        self.power = power
        self.damping = damping
        self.n_similar = n_similar

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Neighborhood:
        """Fit to the known cells of X; see :meth:`ALS.fit` for the arguments.

        Weights count in the baseline and in the similarities, where two cells that meet weigh the geometric mean of
        their weights; a prediction uses all neighbours alike.
        """
        cells = self._observed(X, sample_weight)
        baseline = Biases()
        baseline.n_rows_, baseline.n_features_in_ = cells.shape
        with loop.quietly():
            baseline._solve(cells)

        def sweep(state: Found, t: int) -> loop.Sweep:
            found, left = self._found(cells, baseline)
            return loop.Sweep(found, left, done=True)

        loop.run(
            self,
            sweep,
            Found(cells.X, cells.X),
            max_iter=1,
            tol=0.0,
            fitted=lambda found: {"residuals_": found.R, "similarities_": found.S, "baseline_": baseline},
            X=X,
            fingerprint=cells.sign,
        )
        return self

    def _found(self, cells: Observed, baseline: Biases) -> tuple[Found, float]:
        """Deviations lying the way predictions read them, similarities, and the squared error left to explain."""
        R = subtract_baseline(cells.X, baseline.row_bias_, get_offset(baseline))
        G = sparse.csr_array((np.sqrt(cells.W.data), R.indices, R.indptr), shape=R.shape)
        left = float(cells.W.data.astype(np.float64) @ R.data.astype(np.float64) ** 2)
        if self.kind == "user":
            R, G = R.T.tocsr(), G.T.tocsr()
        S = find_similarities(R.T.tocsr(), R, G.T.tocsr().data, G.data, self._rule(), True)
        return Found(R, S), left

    def _rule(self) -> Rule:
        use = min(self.n_neighbors, 2**31), float(self.power), float(self.damping)
        return Rule(float(self.shrinkage), self.n_similar, *use)

    def _folding(self) -> tuple[Callable, tuple]:
        given = (get_offset(self.baseline_), self.baseline_.reg_[0])
        if self.kind == "user":
            return predict_by_rows, (*given, self.residuals_, self._rule())
        return predict_by_columns, (*given, sort_by_strength(self.similarities_), self._rule())

    def fold_in(self, X: Any) -> np.ndarray:
        """What the model says in every cell of new rows, (m,d): here a row has no factors other than its values.

        In the holes of a fitted row it is what `predict` says. In its known cells that holds for "item" only: a new
        row that is a copy of a fitted one has this one for a neighbour.
        """
        return super().fold_in(X)

    def _valuing(self) -> tuple[Callable, tuple]:
        return np.asarray, ()

    def _trained(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        lines, places = (cols, rows) if self.kind == "user" else (rows, cols)
        said = predict_deviations(self.residuals_, sort_by_strength(self.similarities_), lines, places, self._rule())
        return self.baseline_._trained(rows, cols) + said

    def contributions(self, cols: ArrayLike, values: ArrayLike, target: int) -> np.ndarray:
        """What each known cell of a row adds to the prediction of one more.

        Parameters
        ----------
        cols, values : array-like of shape (m,)
            The known cells of a row, new or not.
        target : int
            The column that is predicted.

        Returns
        -------
        ndarray of shape (m,)
            The prediction is the row's baseline plus their sum. For "user", each neighbour's part is divided among the
            cells it has in common with the row as they made it similar.
        """
        check_is_fitted(self)
        X = self._row(cols, values, target)
        offset, rule = get_offset(self.baseline_), self._rule()
        R = subtract_baseline(X, compute_shifts(X, offset, self.baseline_.reg_[0])[:, 0], offset)
        known = self.residuals_[[target]] if self.kind == "user" else R
        S = (
            compare_to_fitted(R, self.residuals_, rule)
            if self.kind == "user"
            else sort_by_strength(self.similarities_)[[target]]
        )
        near, added = split_deviation(known, S, rule)
        if self.kind == "user":
            meets = self.residuals_[R.indices][:, near].toarray() * R.data[:, None]  # (m, neighbours)
            sums = meets.sum(axis=0)
            return (meets / np.where(sums == 0, 1, sums)) @ added
        out = np.zeros(X.shape[1], R.dtype)
        out[near] = added
        return out[R.indices]

    def _row(self, cols: ArrayLike, values: ArrayLike, target: int) -> sparse.csr_array:
        """Known cells as a table of one row, in the order given."""
        at, x, d = np.asarray(cols, dtype=np.int64), np.asarray(values), self.n_features_in_
        outside = [int(j) for j in (*at, target) if not 0 <= j < d]
        if outside:
            raise InputError(f"cols or target names column {outside[0]}; the fitted table has columns 0 to {d - 1}.")
        if at.shape != x.shape or len(np.unique(at)) < len(at):
            raise InputError(
                f"cols has shape {at.shape} with {len(np.unique(at))} different columns, values has shape {x.shape}; "
                "one value a column is needed, and each column once."
            )
        return sparse.csr_array((x.astype(self.residuals_.dtype), at, [0, len(at)]), shape=(1, d))
