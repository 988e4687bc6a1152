"""Scores that hide what they score.

A row's code that was found from a cell says nothing about how well the model predicts that cell: more components
always look better. So the columns are cut into parts, each is hidden in turn, the code of a row is found from the
columns that are left, and only the hidden ones are scored. Where a model does not depend on the axes (squared error
without constraints), directions are hidden in place of columns: the part of a single column that others do not share
cannot be predicted from them, and would seem to be noise.

References: Wold 1978; Owen & Perry 2009 (bi-cross-validation); Fu & Perry 2017 (k-means).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.seeds import generator

MAX_PARTS = 5  # of the columns, hidden in turn
MAX_TURNED_COLUMNS = 256  # up to which directions are hidden in their place
MAX_DENSE_CELLS = 2**20  # at once
SQUARED = "minus the squared error of a hidden cell"
MEAN_SHARE = 0.01  # the share of the mean of a row's seen cells in a prediction that must be above 0


class Split(NamedTuple):
    """Which columns are seen and which are hidden; after rows were turned, if at all."""

    seen: np.ndarray
    hidden: np.ndarray
    turn: np.ndarray | None  # (d,d) orthonormal


def split_columns(d: int, turned: bool, name: str) -> list[Split]:
    """The parts of d columns, each hidden once; the same for the same d, so that scores of models can be compared."""
    if d < 2:
        raise InputError(
            f"X has one column, and {name} would have to find codes from none: a held-out score hides what it scores. "
            'Use criterion="stability", or score.'
        )
    rng = generator(0)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0] if turned and d <= MAX_TURNED_COLUMNS else None
    part = rng.permutation(np.arange(d) % min(MAX_PARTS, d))  # (d,) in which each is hidden
    return [Split(np.flatnonzero(part != i), np.flatnonzero(part == i), turn) for i in range(part.max() + 1)]


def dense_slices(X: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """The rows of a block, some at a time, as dense arrays in double precision."""
    step = max(1, MAX_DENSE_CELLS // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step]
        yield slice(start, start + step), np.asarray(rows.toarray() if sparse.issparse(rows) else rows, np.float64)


def square_costs(X: Any, split: Split, predict: Any, *state: Any) -> np.ndarray:
    """(m,2) of each row of a block: the squared error of its hidden cells, and their number; NaN is not scored.

    ``predict(x, split, *state)`` gives the hidden cells (m,h) of rows x (m,d), the hidden cells of which it ignores.
    """
    out = np.empty((X.shape[0], 2))
    for rows, x in dense_slices(X):
        x = x if split.turn is None else x @ split.turn
        error = x[:, split.hidden] - predict(x, split, *state)
        known = ~np.isnan(x[:, split.hidden]) | (split.turn is not None)  # a turned hole is everywhere, and shows
        out[rows] = np.stack([(np.where(known, error, 0) ** 2).sum(axis=1), known.sum(axis=1)], axis=1)
    return out


def predict_by_axes(x: np.ndarray, split: Split, mean: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """By components Z (k,d): the code is that of least squares over what is seen."""
    if split.turn is not None:
        mean, Z = mean @ split.turn, Z @ split.turn
    code = (x[:, split.seen] - mean[split.seen]) @ np.linalg.pinv(Z[:, split.seen])  # (m,k)
    return code @ Z[:, split.hidden] + mean[split.hidden]


def predict_by_centers(x: np.ndarray, split: Split, Z: np.ndarray) -> np.ndarray:
    """By centers Z (k,d): the nearest one over what is seen."""
    Z = Z if split.turn is None else Z @ split.turn
    A, B = x[:, split.seen], Z[:, split.seen]
    nearest = np.argmin((B**2).sum(axis=1) - 2 * A @ B.T, axis=1)
    return Z[nearest][:, split.hidden]


def keep_above_zero(M: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Predictions (m,h) that must be above 0, a little of each the mean of what is seen of its row (m,s)."""
    return (1 - MEAN_SHARE) * M + MEAN_SHARE * np.nanmean(seen, axis=1, keepdims=True)
