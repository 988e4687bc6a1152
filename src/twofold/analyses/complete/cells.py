"""The columns of a table as its blanks are filled: numbers, and categories by the codes of their levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
import scipy.sparse as sp

from twofold.analyses.common.tables import spread
from twofold.core.checks import InputError, first_bad
from twofold.io.tables.roles import CODED, Column, codes_of, of_numbers
from twofold.io.tables.table import Table, quote_names


@dataclass(frozen=True)
class Cells:
    """Cells (n,d), NaN where blank, and what their columns are."""

    X: np.ndarray
    columns: list[Column]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @cached_property
    def levels(self) -> np.ndarray:
        """(d,) how many levels each column has, 0 if it holds numbers."""
        return np.array([len(column.levels) for column in self.columns], dtype=np.int64)

    @cached_property
    def whole(self) -> np.ndarray:
        """(d,) whether a column of numbers holds whole ones alone: counts, or days."""
        step = np.array([column.role in ("whole", "date") for column in self.columns], dtype=bool)
        step[step] = [bool((np.nan_to_num(x) == np.round(np.nan_to_num(x))).all()) for x in self.X.T[step]]
        return step

    @cached_property
    def spread(self) -> np.ndarray:
        """(d,) what an error of 1 is: the standard deviation of numbers, √ of how often a mode is wrong."""
        s = spread(self.X)
        for j in np.flatnonzero(self.levels):
            known = self.X[~np.isnan(self.X[:, j]), j]
            shares = np.unique(known, return_counts=True)[1] / len(known)
            s[j] = np.sqrt(max(1.0 - shares.max(), 1.0 / len(known)))
        return s

    def take(self, columns: np.ndarray) -> Cells:
        """Some columns, by a mask (d,)."""
        return Cells(self.X[:, columns], [column for column, kept in zip(self.columns, columns, strict=True) if kept])

    def lose(self, X: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """Squared errors of guesses of X in units of `spread`; of categories, whether they are wrong."""
        return np.where(self.levels > 0, guess != X, guess - X) ** 2 / self.spread**2


def cells_of(table: Table) -> Cells:
    """All columns that can be filled; columns of one number among them, so that they are filled with it."""
    if table.frame is None:
        X = check_dense(table)
        columns = [of_numbers(name, X[:, j], j, fitted=True) for j, name in enumerate(table.columns)]
        for j, column in enumerate(columns):
            if column.levels:
                X[:, j] = codes_of(column, pl.Series(X[:, j]).fill_nan(None))
        return Cells(X, columns)
    table.coded()  # from then on notes tell what is left out
    used = [c for c in table.schema if c.role in CODED or (c.role == "constant" and c.name in table.columns)]
    X = np.empty((table.frame.height, len(used)))
    for j, column in enumerate(used):
        X[:, j] = codes_of(column, table.frame[column.name])
    return Cells(X, used)


def check_dense(table: Table) -> np.ndarray:
    """A copy of the numbers of an array, refused where they cannot be completed."""
    X = table.array()
    if sp.issparse(X):
        raise InputError(
            f"{table.source} is sparse, and a completed table is not. Ratings are for twofold recommend; in Python, "
            "ALS and SoftImpute take sparse tables as they are."
        )
    check_finite(X, table)
    return np.array(X, dtype=np.float64)


def check_finite(
    X: np.ndarray, table: Table, first: int = 0, remedy: str = "Use ⟨missing={}⟩ to treat it as a blank."
) -> None:
    """Refuse rows with a number that is infinite, and say where; `first` is the place of the first of them."""
    bad = first_bad(X, allow_nan=True)
    if bad is not None:
        row, column, value = bad
        where = f'{table.source}, row {first + row + 1}, column "{table.columns[column]}"'
        raise InputError(f"{where}: {value} is not a finite number. {remedy.format(value)}")


def say_left(table: Table) -> list[str]:
    """Say which blanks stay, and why."""
    if table.frame is None:
        return []
    why = {"text": "free text", "id": "names and numbers of things", "constant": "one value alone"}
    left: dict[str, list[str]] = {}
    blanks = 0
    for column in table.schema:
        missing = table.frame[column.name].null_count()
        if missing and column.role in why and column.name not in table.columns and missing < table.frame.height:
            left.setdefault(why[column.role], []).append(column.name)
            blanks += missing
    return [f"blank as before: {quote_names(names)}, for {reason} cannot be guessed" for reason, names in left.items()]
