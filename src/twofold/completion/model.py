"""What completion models share: holes are filled, cells are predicted, new rows are folded in.

A model says two things: how the row codes of a block follow from its known cells (`_folding`), and which values
codes stand for (`_valuing`). Filling, predicting and folding in are made of these.

Models with a row factor and a column factor say them once, in `Factors`:

    x̂_ij = m + c_j + b_i + ⟨u_i, z_j⟩
    U (n,k) row_factors_    Z (k,d) components_    b (n,) row_bias_    c (d,) column_bias_    m mean_

New rows are ridge regressions on the columns' factors, so a fitted row folded in again gets its own factor back.
With `normalize` all this is about z-scores (see _normalize.py): cells are standardized where they are gathered, and
values restored where they are given out, so that no model need know.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.completion._normalize import Normalization, fold_standardized, normalize_cells, restore_values
from twofold.completion.scorer import CellScorer, ProductScorer, Scorer
from twofold.core import loop
from twofold.core.checks import InputError, check_places
from twofold.core.data.known_cells import Observed, find_known_cells, keep_stored, see_both_sides, take_known
from twofold.core.estimator import Model
from twofold.core.numerics.alternating_ridge import Ridge, solve_rows, with_unit
from twofold.core.params import ITERATIVE, Interval, StrOptions
from twofold.core.types import Table

NORMALIZE = {"normalize": [None, StrOptions({"row", "column"})]}  # the constraint of models that have the parameter


class Completion(OneToOneFeatureMixin, TransformerMixin, Model):
    """Base class of the completion models: NaN (dense) or unstored (sparse) cells are unknown."""

    _heldout_unit = "minus the root mean squared error of hidden cells"
    _allow_nan: ClassVar[bool] = True
    _normalizes: ClassVar[bool] = True  # a parameter `normalize` is seen to here
    _records: ClassVar[tuple[Any, ...]] = (Normalization,)
    normalization_: Normalization | None = None
    n_rows_: int  # rows of the table it was fitted to, which `predict(rows, cols)` counts

    def _folding(self) -> tuple[Callable, tuple]:
        """A plain function `codes(X (m,d) CSR of known cells, *state) → (m,p)` and its state."""
        raise NotImplementedError

    def _valuing(self) -> tuple[Callable, tuple]:
        """A plain function `values(codes (m,p), *state) → (m,d)` and its state."""
        raise NotImplementedError

    def _predict_cells(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The model's value in cells of the fitted table."""
        raise NotImplementedError

    def make_scorer(self, seen: Any) -> Scorer:
        """Scores of the fitted rows, by which their columns are ranked; `seen` is the fitted table."""
        return CellScorer(self)

    def transform(self, X: Table) -> np.ndarray:
        """X with its holes filled and every known cell as it was; rows need not be those of the fit."""
        check_is_fitted(self)
        return self._rowwise(_fill_block, X, *self._both())

    def complete(self, X: Table) -> np.ndarray:
        """The same as :meth:`transform`, by the name of the thing."""
        return self.transform(X)

    def fold_in(self, X: Table) -> np.ndarray:
        """The codes of new rows given their known cells; those of a fitted row are the ones it has.

        Factors (m,k); biases (m,1) of :class:`Biases`; center, scale and level (m,3) of :class:`MeanImpute`; ones
        (m,1) of :class:`Popularity`; predictions (m,d) of :class:`EASE`, whose rows have no factors.
        """
        check_is_fitted(self)
        return self._fold(X)[0]

    def predict(self, rows: Any, cols: ArrayLike | None = None, *, return_std: bool = False) -> Any:
        """The model's value in the cells (rows[t], cols[t]) of the fitted table.

        Parameters
        ----------
        rows, cols : array-like of int, equally long
            Which cells. With one argument, a table: the model's value in every cell of these rows, folded in.
        return_std : bool, default=False
            Also the standard deviation of what will be in each cell, given what is known: the noise, and how unsure
            the model is of its own value. Only for cells of the fitted table, and where a model is a posterior
            distribution, as :class:`SVDPlusPlus` is.

        Returns
        -------
        ndarray of shape (len(rows),), or (m, d) for a table
            With `return_std`, two of them.
        """
        check_is_fitted(self)
        if return_std and (cols is None or type(self)._deviate is Completion._deviate):
            raise InputError(
                "return_std=True needs rows and cols, places in the fitted table."
                if cols is None
                else f"{type(self).__name__} does not know how sure it is. SVDPlusPlus does: it is a distribution."
            )
        if cols is None:
            return self._rowwise(_predict_block, rows, *self._both())
        at = (
            check_places(rows, self.n_rows_, "rows", "the fitted table has rows"),
            check_places(cols, self.n_features_in_, "cols", "the fitted table has cols"),
        )
        if at[0].shape != at[1].shape:
            raise InputError(f"rows has shape {at[0].shape}, cols {at[1].shape}; one pair a cell is needed.")
        values, lines = self._predict_cells(*at), self.normalization_
        scale: Any = 1.0
        if lines is not None:
            line = at[0] if lines.by_row else at[1]
            scale = lines.scale[line]
            values = lines.center[line] + scale * values
        return (values, scale * self._deviate(*at)) if return_std else values

    def _deviate(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The standard deviation of cells of the fitted table, where a model is a distribution."""
        raise NotImplementedError

    def score(self, X: Table, y: Any = None) -> float:
        """Minus the root mean squared error of cells the model is not shown.

        Rows are folded in from the known cells of X and compared with the known cells of y, held-out cells of the same
        rows. Without such a table, cells with an even row + column number fold in and the odd ones are compared.
        """
        check_is_fitted(self)
        shown = find_known_cells(self._blocks(X)).X
        if y is None or len(np.shape(y)) != 2:
            even = (np.repeat(np.arange(shown.shape[0]), np.diff(shown.indptr)) + shown.indices) % 2 == 0
            shown, asked = keep_stored(shown, even), keep_stored(shown, ~even)
        else:
            asked = find_known_cells(self._blocks(y)).X
        if asked.nnz == 0:
            raise InputError(
                "there is no known cell to compare with. Give y, a table with held-out cells of these rows."
            )
        error, step = 0.0, max(1, 2**20 // shown.shape[1])
        for a in range(0, shown.shape[0], step):
            truth = asked[a : a + step]
            row = np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr))
            values = _predict_block(shown[a : a + step], *self._both())[row, truth.indices]
            error += float(((values - truth.data) ** 2).sum())
        return -float(np.sqrt(error / asked.nnz))

    def _both(self) -> tuple:
        lines, valuing = self.normalization_, self._valuing()
        return *self._reading(), *(valuing if lines is None else (restore_values, (lines, *valuing)))

    def _reading(self) -> tuple[Callable, tuple]:
        """`_folding` of cells as they come, before they are standardized."""
        lines = self.normalization_
        if lines is None:
            return self._folding()
        return fold_standardized, (lines, *self._folding())

    def _fold(self, X: Table) -> tuple[Any, Normalization | None]:
        """Codes of new rows, and how these were standardized if rows were."""
        codes, lines = self._rowwise(_predict_block, X, *self._reading()), self.normalization_
        if lines is None or not lines.by_row:
            return codes, None
        return codes[:, :-2], lines._replace(center=codes[:, -2], scale=codes[:, -1])

    def _fit_at_once(self, solve: Callable[[], tuple[dict, float, dict]], X: Any, sign: Callable[[], str]) -> Any:
        """Fit in one sweep: `solve()` gives the attributes, the objective, and what else the history holds."""

        def sweep(state: dict, t: int) -> loop.Sweep:
            return loop.Sweep(*solve(), done=True)

        loop.run(self, sweep, {}, max_iter=1, tol=0.0, fitted=dict, X=X, fingerprint=sign)
        return self

    def _check_parts(self, require: Callable[[bool, str], None]) -> None:
        """Centers and scales of a file that is loaded must be those of its rows or columns."""
        lines = self.normalization_
        if lines is not None:
            right = isinstance(lines, Normalization) and lines.fits(self.n_rows_, self.n_features_in_)
            require(right, f"is damaged: normalization_ of {type(self).__name__} is not one of its rows or columns.")

    def _observe(self, X: Any, sample_weight: Any = None) -> Observed:
        """The known cells of X, its shape and names checked; standardized if the model has `normalize`."""
        cells = find_known_cells(self._blocks(X, reset=True), sample_weight, type(self).__name__)
        self.n_rows_ = cells.shape[0]
        self.__dict__.pop("normalization_", None)  # of an earlier fit
        side = getattr(self, "normalize", None) if self._normalizes else None
        if side is None:
            return cells
        self.normalization_ = normalize_cells(cells, side)
        return see_both_sides(self.normalization_.standardize(cells.X), cells.W)


def find_columns(cols: ArrayLike, values: ArrayLike, target: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells of one row as columns and values, checked, and that `target` is a column."""
    at, x = check_places(cols, d, "cols", "the fitted table has columns"), np.asarray(values)
    if check_places(target, d, "target", "the fitted table has columns").shape != (1,):
        raise InputError(f"target={target!r} must be one column.")
    if at.shape != x.shape or len(np.unique(at)) < len(at):
        raise InputError(
            f"cols has shape {at.shape} with {len(np.unique(at))} different columns, values has shape {x.shape}; "
            "one value a column is needed, and each column once."
        )
    return at, x


def _predict_block(
    X: Any, fold: Callable, state: tuple, value: Callable | None = None, shared: tuple = ()
) -> np.ndarray:
    """The model's values in one block of rows; without `value`, the codes of the rows."""
    cells, bad = _keep_finite(X)
    codes = fold(cells, *state)
    return _mark_bad(codes if value is None else value(codes, *shared), bad)


def _fill_block(X: Any, fold: Callable, state: tuple, value: Callable, shared: tuple) -> np.ndarray:
    """The model's values, with the known cells put back."""
    cells, bad = _keep_finite(X)
    out = value(fold(cells, *state), *shared).astype(cells.dtype, copy=False)
    bad = bad or not np.isfinite(out.sum())
    row = np.repeat(np.arange(cells.shape[0]), np.diff(cells.indptr))
    out[row, cells.indices] = cells.data
    return _mark_bad(out, bad)


def _keep_finite(X: Any) -> tuple[sparse.csr_array, bool]:
    """The known cells, and whether any had to be left out because it is infinite."""
    cells = take_known(X)
    finite = np.isfinite(cells.data)
    return (cells, False) if finite.all() else (keep_stored(cells, finite), True)


def _mark_bad(out: np.ndarray, bad: bool) -> np.ndarray:
    """A result whose sum shows that the block is to be refused; its place is found when results are gathered."""
    if bad:
        out[:] = np.inf
    return out


# ---- lists --------------------------------------------------------------------------------------------------------


class Ranking(Completion):
    """Base class of the models of clicks, which order columns and whose values mean nothing else."""

    _heldout_unit = "the share of other columns that a hidden one is ranked above"

    def heldout_score(self, X: Table, y: Any = None) -> float:
        """The area under the ROC curve of hidden cells, ½ by chance and 1 if above all others: every second cell above
        0 of a row is hidden, the row is folded in from the rest, and each hidden cell is compared with the columns
        without a cell."""
        check_is_fitted(self)
        cells = find_known_cells(self._blocks(X)).X
        cells = keep_stored(cells, cells.data > 0)
        first = np.repeat(cells.indptr[:-1], np.diff(cells.indptr))
        odd = (np.arange(cells.nnz) - first) % 2 == 1
        shown, asked = keep_stored(cells, ~odd), keep_stored(cells, odd)
        shares, step = [], max(1, 2**20 // cells.shape[1])
        for a in range(0, cells.shape[0], step):
            values = _predict_block(shown[a : a + step], *self._both())
            for i, value in enumerate(values, a):
                hidden = value[asked.indices[asked.indptr[i] : asked.indptr[i + 1]], None]
                others = np.delete(value, cells.indices[cells.indptr[i] : cells.indptr[i + 1]])
                if hidden.size and others.size:
                    shares.append(float(((others < hidden) + 0.5 * (others == hidden)).mean()))
        if not shares:
            raise InputError(
                "no row can be ranked: that takes two cells above 0, one to be shown and one to be ranked, and a "
                "column without a cell to rank it against. Give other rows."
            )
        return float(np.mean(shares))


# ---- factors ------------------------------------------------------------------------------------------------------


class Factors(Completion):
    """Base class: prediction and fold-in from factors and biases."""

    components_: Annotated[np.ndarray, "k d"]
    row_factors_: Annotated[np.ndarray, "n k"]
    row_bias_: Annotated[np.ndarray, "n"]
    column_bias_: Annotated[np.ndarray, "d"]
    mean_: float
    n_components: int | str | None
    max_iter: int
    tol: float
    singular_values_: Annotated[np.ndarray, "k, >= 0"]
    _default_components: ClassVar[int] = 20
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        **ITERATIVE,
        **NORMALIZE,
    }

    def _rank(self, shape: tuple[int, int]) -> int:
        """n_components, checked against the table; None or "auto" means the default, or the columns if fewer."""
        wanted, most = self.n_components, min(shape)
        if wanted is None or isinstance(wanted, str):
            return min(self._default_components, shape[1])
        if wanted > most:
            raise InputError(
                f"n_components={wanted} is more than a table of shape {shape} can have; at most {most}. Lower it."
            )
        return int(wanted)

    def _run(
        self, cells: Observed, sweep: Callable, start: Any, seed: int, X: Any, fitted: Callable, **options: Any
    ) -> None:
        """The loop over sweeps from `start`; `fitted(state)` gives the attributes, `options` go to :func:`loop.run`."""
        settings = {"max_iter": self.max_iter, "tol": self.tol, "fingerprint": cells.sign, **options}
        loop.run(self, sweep, start, fitted=fitted, X=X, seed=seed, **settings)

    def _ridge(self) -> Ridge:
        """The ridge of new rows, which are regressed on the columns' factors."""
        raise NotImplementedError

    def _folding(self) -> tuple[Callable, tuple]:
        Z = np.ascontiguousarray(self.components_.T)
        seen = with_unit(Z, self._unit()) if getattr(self, "biases", False) else Z
        return fold_rows, (seen, self.column_bias_ + Z.dtype.type(self.mean_), self._ridge())

    def _unit(self) -> float:
        """The value of the bias's feature: √ of the data's spread, so that one ridge suits factors and biases."""
        return float(np.sqrt(getattr(self, "spread_", 1.0)))

    def _join_biases(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column features as sweeps have them: the bias last, if there is one, in its own unit."""
        Z, unit = np.ascontiguousarray(self.components_.T), self.components_.dtype.type(self._unit())
        if not getattr(self, "biases", False):
            return self.row_factors_, Z
        U = np.column_stack([self.row_factors_, self.row_bias_ / unit])
        return U, np.column_stack([Z, self.column_bias_ / unit])

    def fold_in(self, X: Table) -> np.ndarray:
        """The factors (m,k) of new rows given their known cells; those of a fitted row are the ones it has."""
        return np.ascontiguousarray(super().fold_in(X)[:, : len(self.components_)])

    def _valuing(self) -> tuple[Callable, tuple]:
        offset = self.column_bias_ + self.components_.dtype.type(self.mean_)
        return compute_values, (self.components_, offset, self._unit())

    def _predict_cells(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        out = self.row_bias_[rows] + self.column_bias_[cols] + self.components_.dtype.type(self.mean_)
        for start in range(0, len(rows), 2**16):
            at = slice(start, start + 2**16)
            out[at] += np.einsum("tk,kt->t", self.row_factors_[rows[at]], self.components_[:, cols[at]])
        return out

    def make_scorer(self, seen: Any) -> Scorer:
        Z, offset = self.components_, self.column_bias_ + self.components_.dtype.type(self.mean_)
        U, bias, lines = self.row_factors_, self.row_bias_, self.normalization_
        if lines is not None and lines.by_row:
            U, Z = lines.scale[:, None] * np.column_stack([U, np.ones_like(bias)]), np.vstack([Z, offset])
            return ProductScorer(U, Z, lines.center + lines.scale * bias)
        if lines is not None:  # a row's bias ranks, in columns of different scale
            U, Z = np.column_stack([U, bias]), lines.scale * np.vstack([Z, np.ones_like(offset)])
            offset, bias = lines.center + lines.scale * offset, np.zeros_like(bias)
        if offset.any():  # as one more factor, 1 in all rows, so that no second pass over the scores is needed
            Z = np.vstack([Z, offset])
        return ProductScorer(U, Z, bias)


def compute_values(codes: np.ndarray, Z: np.ndarray, offset: np.ndarray, unit: float) -> np.ndarray:
    """(m,d) what codes (m,k), or (m,k+1) with a bias last, stand for."""
    k = len(Z)
    out = codes[:, :k] @ Z + offset
    return out + codes[:, k:] * codes.dtype.type(unit) if codes.shape[1] > k else out


def fold_rows(X: sparse.csr_array, Z: np.ndarray, offset: np.ndarray, ridge: Ridge) -> np.ndarray:
    """Ridge regressions of new rows (m,d) on the columns' features Z (d,p)."""
    ones, start = np.ones(len(X.data), Z.dtype), np.zeros((X.shape[0], Z.shape[1]), Z.dtype)
    return solve_rows(X, ones, start, None, Z, offset, ridge)[0]
