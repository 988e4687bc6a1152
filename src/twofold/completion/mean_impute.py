"""Means as predictions, raw or of standardized values.

    z_ij = (x_ij − μ_ij) / σ_ij          μ, σ: mean and deviation of the cell's row, or of its column, or 0 and 1
    x̂_ij = μ_ij + σ_ij z̄_ij             z̄: mean of z over all cells, over the cell's row, or over its column

    X (n,d) known in the cells Ω

Each line, row or column, is three numbers (center, scale, level), of which those that do not vary along it are the
neutral 0, 1, 0; so that all cases are one formula:

    x̂_ij = (p_i + q_j) + (s_i · t_j) (u_i + v_j)        row (p, s, u)    column (q, t, v)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion._normalize import compute_means, compute_moments, pool_deviations
from twofold.completion.model import Completion
from twofold.core.estimator import fitting
from twofold.core.params import StrOptions
from twofold.core.types import Table, Weights

NEUTRAL = (0.0, 1.0, 0.0)  # center, scale, level


class CellList(NamedTuple):
    """Known cells as a list."""

    row: np.ndarray
    col: np.ndarray
    x: np.ndarray
    w: np.ndarray


class Plain(NamedTuple):
    """What a line without known cells, or without spread, is taken to be."""

    mean: float
    spread: float
    level: float


def list_cells(X: sparse.csr_array, w: np.ndarray | None = None) -> CellList:
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    x = X.data.astype(np.float64)
    return CellList(row, X.indices, x, np.ones_like(x) if w is None else w.astype(np.float64))


def standardize_cells(cells: CellList, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The standardized value z of every cell."""
    center = rows[cells.row, 0] + columns[0, cells.col]
    return (cells.x - center) / (rows[cells.row, 1] * columns[1, cells.col])


def fold_rows(
    X: sparse.csr_array, columns: np.ndarray, plain: Plain, strategy: str, normalize: str | None
) -> np.ndarray:
    """Rows (m,3) from their known cells, given the columns: the same for fitted and for new rows."""
    return code_rows(list_cells(X), X.shape[0], columns.astype(np.float64), plain, strategy, normalize).astype(
        columns.dtype
    )


def code_rows(
    cells: CellList, m: int, columns: np.ndarray, plain: Plain, strategy: str, normalize: str | None
) -> np.ndarray:
    rows = np.tile(NEUTRAL, (m, 1))
    if normalize == "row":
        rows[:, 0], rows[:, 1] = compute_moments(cells.row, m, cells.x, cells.w, plain.mean, plain.spread)
    if strategy == "row":
        rows[:, 2] = compute_means(cells.row, m, standardize_cells(cells, rows, columns), cells.w, plain.level)
    return rows


def predict_values(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(m,d) what rows (m,3) and columns (3,d) predict."""
    p, s, u = (rows[:, a, None] for a in range(3))
    q, t, v = columns
    return (p + q) + (s * t) * (u + v)


class MeanImpute(Completion):
    """A hole gets the mean of its column, of its row, or of all cells.

    With ``normalize="row"``, cells are first standardized within their row, ``z = (x − mean_i) / std_i``, the means
    are taken of z, and mapped back: ``x̂_ij = mean_i + std_i · mean_j(z)``. So a row that uses a narrow range, or rates
    everything higher, neither pulls the columns' means nor is filled with values it would never take.
    ``normalize="column"`` is the same with the sides exchanged, and goes with ``strategy="row"``. Averaging z along the
    line in which it was standardized, or over all cells, gives zero: the prediction is then that line's mean.

    Deviations are those of the population (divided by n). A line with no spread of its own, such as one with a single
    known cell, takes the deviation within lines of all cells together; a line with no known cell, their mean as well.

    Parameters
    ----------
    strategy : {"column", "row", "global"}, default="column"
        Which mean.
    normalize : {"row", "column"} or None, default=None
        Within which lines cells are standardized first.

    Attributes
    ----------
    column_codes_ : ndarray of shape (3, d)
        Center, scale and level of every column: 0, 1 and 0 where they do not depend on it; the global level is here.
    row_codes_ : ndarray of shape (n, 3)
        The same of every row, as :meth:`fold_in` gives for new rows.
    mean_, spread_, level_ : float
        Stand in for lines that have no mean, no deviation or no level of their own.
    history_, n_iter_, converged_
        The objective is the weighted sum of squared errors in the known cells, reached at once.

    References
    ----------
    Herlocker, Konstan, Borchers & Riedl (1999), *SIGIR*, 230-237 (z-scores of ratings).

    Examples
    --------
    >>> from twofold import MeanImpute
    >>> X = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [np.nan, 200.0, 300.0]])
    >>> MeanImpute().fit_transform(X)[2, 0]
    np.float64(5.5)
    >>> MeanImpute(normalize="row").fit_transform(X)[2, 0].round(1)       # about 1.2 deviations below the row's mean
    np.float64(188.8)
    """

    column_codes_: Annotated[np.ndarray, "3 d"]
    row_codes_: Annotated[np.ndarray, "n 3"]
    mean_: float
    spread_: float
    level_: float
    _normalizes: ClassVar[bool] = False  # its own way
    _parameter_constraints: ClassVar[dict] = {
        "strategy": [StrOptions({"column", "row", "global"})],
        "normalize": [None, StrOptions({"row", "column"})],
    }

    def __init__(self, strategy: str = "column", *, normalize: str | None = None):
        self.strategy = strategy
        self.normalize = normalize

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> MeanImpute:
        """Fit to the known cells of X; see :meth:`ALS.fit` for the arguments."""
        known = self._observe(X, sample_weight)
        cells, shape = list_cells(known.X, known.W.data), known.shape

        def solve() -> tuple[dict, float, dict]:
            plain, rows, columns = self._solve(cells, shape)
            center, level = rows[cells.row, 0] + columns[0, cells.col], rows[cells.row, 2] + columns[2, cells.col]
            gaps = cells.x - center - rows[cells.row, 1] * columns[1, cells.col] * level
            attributes: dict = {"column_codes_": columns.astype(known.dtype), "row_codes_": rows.astype(known.dtype)}
            attributes |= {"mean_": plain.mean, "spread_": plain.spread, "level_": plain.level}
            return attributes, float(cells.w @ gaps**2), {}

        return self._fit_at_once(solve, X, known.sign)

    def _solve(self, cells: CellList, shape: tuple[int, int]) -> tuple[Plain, np.ndarray, np.ndarray]:
        """Values for plain lines, rows (n,3), columns (3,d)."""
        (row, col, x, w), (n, d) = cells, shape
        lines = {"row": (row, n), "column": (col, d)}
        spread = 1.0 if self.normalize is None else pool_deviations(*lines[self.normalize], x, w)
        plain = Plain(float(np.average(x, weights=w)), spread, 0.0)
        columns = np.tile(np.array(NEUTRAL)[:, None], (1, d))
        if self.normalize == "column":
            columns[0], columns[1] = compute_moments(col, d, x, w, plain.mean, plain.spread)
        rows = code_rows(cells, n, columns, plain, "", self.normalize)
        z = standardize_cells(cells, rows, columns)
        plain = plain._replace(level=float(np.average(z, weights=w)))
        if self.strategy == "column":
            columns[2] = compute_means(col, d, z, w, plain.level)
        elif self.strategy == "global":
            columns[2] = plain.level
        return plain, code_rows(cells, n, columns, plain, self.strategy, self.normalize), columns

    def _folding(self) -> tuple[Callable, tuple]:
        plain = Plain(self.mean_, self.spread_, self.level_)
        return fold_rows, (self.column_codes_, plain, self.strategy, self.normalize)

    def _valuing(self) -> tuple[Callable, tuple]:
        return predict_values, (self.column_codes_,)

    def _predict_cells(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        (p, s, u), (q, t, v) = self.row_codes_[rows].T, self.column_codes_[:, cols]
        return (p + q) + (s * t) * (u + v)
