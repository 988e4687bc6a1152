"""Blanks filled by several models, each in the columns where it is best.

A table of numbers and categories is what `ForestImpute` takes as it is. All other models take numbers: for them a
category is a column of zeros and ones for each level, and all columns are standardized. What such a model says of these
columns is cut to shares between 0 and 1, of which the largest names the level.

No filled number lies beyond the known ones of its column, and whole numbers are filled with whole ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from twofold.completion.forest_impute import ForestImpute, check_levels
from twofold.core.checks import InputError
from twofold.core.data.missing_patterns import Imputer
from twofold.core.engine.local import engine_for, fetch_rows
from twofold.core.estimator import Model, fitting
from twofold.core.progress import part
from twofold.core.types import Table

MIN_SHARE = 1e-6  # of a level, so that shares can be divided by their sum


class Ends(NamedTuple):
    """Between what each column is filled, and in what steps."""

    low: np.ndarray  # (d,)
    high: np.ndarray
    whole: np.ndarray  # (d,) bool


class Coding(NamedTuple):
    """Columns of levels as columns of zeros and ones, all of them standardized."""

    levels: np.ndarray  # (d,)
    center: np.ndarray  # (p,)
    scale: np.ndarray  # (p,)

    def encode(self, X: np.ndarray) -> np.ndarray:
        """(n,p) of codes (n,d)."""
        return (spread_levels(X, self.levels) - self.center) / self.scale

    def decode(self, Z: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and codes (n,d); how unsure they are, deviations and the chance to be wrong."""
        Z, std = Z * self.scale + self.center, std * self.scale
        out, unsure = np.empty((len(Z), len(self.levels))), np.empty((len(Z), len(self.levels)))
        ends = np.cumsum(np.maximum(self.levels, 1))
        for j, (levels, end) in enumerate(zip(self.levels, ends, strict=True)):
            if not levels:
                out[:, j], unsure[:, j] = Z[:, end - 1], std[:, end - 1]
                continue
            shares = np.clip(Z[:, end - levels : end], MIN_SHARE, 1.0)
            out[:, j] = shares.argmax(axis=1)
            unsure[:, j] = 1.0 - shares.max(axis=1) / shares.sum(axis=1)
        return out, unsure


def spread_levels(X: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """A column of zeros and ones for each level of a category; blanks stay.

    >>> spread_levels(np.array([[7.0, 1.0], [8.0, np.nan]]), np.array([0, 2]))
    array([[ 7.,  0.,  1.],
           [ 8., nan, nan]])
    """
    parts = []
    for j, n_levels in enumerate(levels):
        x = X[:, j : j + 1]
        parts.append(np.where(np.isnan(x), np.nan, x == np.arange(n_levels)) if n_levels else x)
    return np.hstack(parts)


class ColumnImpute(OneToOneFeatureMixin, TransformerMixin, Imputer):
    """Fill each column by the model that suits it.

    Parameters
    ----------
    models : sequence of estimators
        Models with `impute` or `complete`.
    chosen : sequence of int or None, default=None
        The place of each column's model among them. None: the first fills all.
    levels : sequence of int or None, default=None
        How many levels each column has, coded 0, 1, ...; 0 for a column of numbers. None: all are numbers.
    whole : sequence of bool or None, default=None
        Which columns hold whole numbers. None: none.

    Attributes
    ----------
    models_ : list
        The fitted models.
    low_, high_ : ndarray of shape (d,)
        Least and largest known value of each column.
    code_center_, code_scale_ : ndarray of shape (p,)
        Mean and standard deviation of the columns of zeros and ones.

    Examples
    --------
    >>> from twofold import PPCA, ColumnImpute
    >>> x = np.arange(9.0)
    >>> X = np.column_stack([x, 2 * x, x >= 4])
    >>> X[2, 1] = X[4, 0] = X[8, 2] = np.nan
    >>> ColumnImpute([PPCA(1, random_state=0)], levels=[0, 0, 2], whole=[True, True, False]).fit_transform(X)[8, 2]
    np.float64(1.0)
    """

    models_: list[Any]
    low_: Annotated[np.ndarray, "d"]
    high_: Annotated[np.ndarray, "d"]
    code_center_: Annotated[np.ndarray, "p"]
    code_scale_: Annotated[np.ndarray, "p, > 0"]
    _allow_nan: ClassVar[bool] = True
    _allow_sparse: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict] = {
        "models": ["array-like"],
        "chosen": ["array-like", None],
        "levels": ["array-like", None],
        "whole": ["array-like", None],
    }

    def __init__(
        self,
        models: Sequence[Any],
        *,
        chosen: Sequence[int] | None = None,
        levels: Sequence[int] | None = None,
        whole: Sequence[bool] | None = None,
    ):
        self.models = models
        self.chosen = chosen
        self.levels = levels
        self.whole = whole

    @fitting
    def fit(self, X: Table, y: Any = None) -> ColumnImpute:
        """Fit all models."""
        blocks = self._blocks(X, reset=True, min_rows=2)
        n, d = blocks.shape
        with part(0.0, 0.0):
            known = fetch_rows(engine_for(blocks), blocks, np.arange(n)).astype(np.float64)
        if np.isinf(known).any():
            self._refuse(blocks)
        levels = check_levels(self.levels, known)
        chosen = np.zeros(d, int) if self.chosen is None else np.asarray(self.chosen)
        if chosen.shape != (d,) or not np.isin(chosen, np.arange(len(self.models))).all():
            raise InputError(
                f"chosen={self.chosen!r} must name one of the {len(self.models)} models for each of the {d} columns."
            )
        coded = spread_levels(known, levels)
        center, scale = np.nanmean(coded, axis=0), np.nanstd(coded, axis=0)
        self.code_center_ = center
        self.code_scale_ = np.where(scale > 1e-12 * np.abs(center), scale, 1.0)
        self.low_, self.high_ = np.nanmin(known, axis=0), np.nanmax(known, axis=0)
        coded = self._coding(levels).encode(known)
        self.models_ = []
        for done, model in enumerate(self.models):
            with part(done, done + 1, len(self.models)):
                fitted = clone(model).fit(known if isinstance(model, ForestImpute) else coded)
            self.models_.append(fitted)
        return self

    def _coding(self, levels: np.ndarray) -> Coding:
        return Coding(levels, self.code_center_, self.code_scale_)

    def transform(self, X: Table) -> np.ndarray:
        """X with its blanks filled and every known cell as it was; rows need not be those of the fit."""
        return self.impute(X)

    def _imputer(self) -> tuple[Any, ...]:
        check_is_fitted(self)
        d = len(self.low_)
        levels = np.zeros(d, np.int64) if self.levels is None else np.asarray(self.levels, np.int64)
        chosen = np.zeros(d, np.int64) if self.chosen is None else np.asarray(self.chosen, np.int64)
        whole = np.zeros(d, bool) if self.whole is None else np.asarray(self.whole, bool)
        fillers = [(isinstance(model, ForestImpute), *filler_of(model)) for model in self.models_]
        return fill_by_columns, fillers, chosen, self._coding(levels), Ends(self.low_, self.high_, whole)


def filler_of(model: Model) -> tuple[Any, ...]:
    """A plain function that fills a block and gives deviations, and its state."""
    if isinstance(model, Imputer):
        return model._imputer()
    return fill_without_deviations, model


def fill_without_deviations(X: np.ndarray, model: Any) -> tuple[np.ndarray, np.ndarray]:
    """A standardized block filled by a model that does not know how sure it is: as unsure as one standard deviation."""
    return model.transform(X), np.where(np.isnan(X), 1.0, 0.0)


def fill_by_columns(
    X: np.ndarray, fillers: Sequence[tuple[Any, ...]], chosen: np.ndarray, coding: Coding, ends: Ends
) -> tuple[np.ndarray, np.ndarray]:
    """A block, each column filled by its model, and how unsure each filled cell is; 0 where a cell was known."""
    filled, unsure, blank = X.copy(), np.zeros_like(X), np.isnan(X)
    for place in np.unique(chosen[blank.any(axis=0)]):
        takes_codes, fill, *state = fillers[place]
        found = fill(X, *state) if takes_codes else coding.decode(*fill(coding.encode(X), *state))
        own = blank & (chosen == place)
        filled[own], unsure[own] = found[0][own], found[1][own]
    filled = np.where(blank, np.clip(filled, ends.low, ends.high), X)
    return np.where(blank & ends.whole, np.round(filled), filled), unsure
