"""What sets groups apart, in the units of the table: the mean of a group beside the mean of all, shares of levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import add, engine_for
from twofold.io.tables.roles import CODED, Column, codes_of, of_levels
from twofold.io.tables.table import Table

MAX_LEVELS = 20  # of a column that was not fitted
SMALL = 1e-12


class Trait(NamedTuple):
    """A column of numbers, or a level of a category: its mean or share in all rows and in each group."""

    column: str
    level: str  # "" of numbers
    mean: float
    means: np.ndarray  # (k,) NaN for a group without a known cell
    deviation: float  # of all rows
    role: str = "number"

    @property
    def name(self) -> str:
        return f"{self.column} = {self.level}" if self.level else self.column

    @property
    def distances(self) -> np.ndarray:
        """(k,) from the mean of all, in standard deviations."""
        if self.deviation <= 0:
            return np.zeros(len(self.means))
        return np.nan_to_num((self.means - self.mean) / self.deviation)

    def tell(self, c: int) -> str:
        """Describe what group c has of it, and all rows."""
        here, all_rows = (write_value(value, self) for value in (self.means[c], self.mean))
        return f"{self.name} {here} (all: {all_rows})"


def write_value(value: float, trait: Trait) -> str:
    """A mean with three digits of what differs, a share in percent, a day.

    >>> write_value(4207.5, Trait("mass", "", 4200.0, np.array([4207.5]), 800.0))
    '4,208'
    """
    if np.isnan(value):
        return "unknown"
    if trait.level:
        return f"{value:.0%}"
    if trait.role == "date":
        return str(np.datetime64(round(value), "D"))
    places = int(np.clip(1 - np.floor(np.log10(max(trait.deviation, SMALL))), 0, 12))
    return f"{value:,.{places}f}"


class Sums(NamedTuple):
    """Rows, sums and squares of known cells for each group."""

    known: np.ndarray  # (k,d)
    total: np.ndarray  # (k,d)
    squares: np.ndarray  # (k,d)


def sum_groups(X: Any, labels: np.ndarray, count: int) -> Sums:
    """Sums of one block."""
    from scipy import sparse

    own = sparse.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))), shape=(count, len(labels)))
    if sparse.issparse(X):
        known = np.repeat(np.bincount(labels, minlength=count)[:, None], X.shape[1], axis=1).astype(float)
        return Sums(known, (own @ X).toarray(), (own @ X.multiply(X)).toarray())
    there = ~np.isnan(X)
    X = np.where(there, X, 0.0).astype(np.float64)
    return Sums(own @ there.astype(np.float64), own @ X, own @ X**2)


def describe_blocks(blocks: Blocks, names: Sequence[str], labels: np.ndarray, count: int) -> list[Trait]:
    """The traits of columns of numbers, read block by block; labels count from -1, the outliers."""
    engine = engine_for(blocks)
    parts = engine.map(sum_groups, blocks, blocks.rows(labels + 1), engine.broadcast(count + 1))
    return as_traits(engine.reduce(add, parts), [Column(name, "number") for name in names])


def as_traits(sums: Sums, columns: Sequence[Column]) -> list[Trait]:
    n = np.maximum(sums.known.sum(axis=0), 1)
    mean = sums.total.sum(axis=0) / n
    variance = np.maximum(sums.squares.sum(axis=0) / n - mean**2, 0) * n / np.maximum(n - 1, 1)
    deviation = np.where(variance > 1e-14 * mean**2, np.sqrt(variance), 0.0)
    with np.errstate(invalid="ignore"):
        means = np.where(sums.known > 0, sums.total / sums.known, np.nan)[1:]
    return [
        Trait(column.name, "", float(mean[j]), means[:, j], float(deviation[j]), column.role)
        for j, column in enumerate(columns)
    ]


def describe_levels(column: Column, codes: np.ndarray, labels: np.ndarray, count: int) -> list[Trait]:
    """The share of each level; of two levels only of the second."""
    there = ~np.isnan(codes)
    table = np.zeros((count + 1, len(column.levels)))
    np.add.at(table, (labels[there] + 1, codes[there].astype(int)), 1)
    shares = table.sum(axis=0) / max(table.sum(), 1)
    with np.errstate(invalid="ignore"):
        own = (table / table.sum(axis=1, keepdims=True))[1:]
    places = range(1, 2) if len(column.levels) == 2 else range(len(column.levels))
    return [
        Trait(column.name, column.levels[i], float(shares[i]), own[:, i], float(np.sqrt(shares[i] * (1 - shares[i]))))
        for i in places
    ]


def describe_column(column: Column, series: pl.Series, labels: np.ndarray, count: int) -> list[Trait]:
    codes = codes_of(column, series)
    if column.levels and not (column.role == "flag" and series.dtype.is_numeric()):
        return describe_levels(column, codes, labels, count)
    if column.role == "flag":
        codes = series.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return as_traits(sum_groups(codes[:, None], labels + 1, count + 1), [column])


def describe_fitted(table: Table, fitted: Sequence[str], labels: np.ndarray, count: int) -> list[Trait]:
    """The traits of the columns of a frame that were fitted."""
    assert table.frame is not None
    own = [column for column in table.schema if column.name in fitted]
    return [trait for column in own for trait in describe_column(column, table.frame[column.name], labels, count)]


def describe_others(table: Table, fitted: Sequence[str], labels: np.ndarray, count: int) -> list[Trait]:
    """The traits of the columns that were not fitted and do not name rows: numbers, and few levels."""
    traits: list[Trait] = []
    if table.frame is None:
        return traits
    roles = {column.name: column for column in table.schema}
    for series in table.frame.iter_columns():
        name = series.name
        if name in fitted or (table.ids is not None and name == table.ids.name):
            continue
        column = roles.get(name) or guess_role(series)
        if column is not None and column.role in CODED:
            traits += describe_column(column, series, labels, count)
    return traits


def guess_role(series: pl.Series) -> Column | None:
    """Tell what a column that was set aside holds: levels that repeat, numbers, or nothing that could be told."""
    known = series.drop_nulls()
    values = known.unique()
    if len(values) < 2 or len(values) == len(known):
        return None
    if series.dtype.is_float() or (series.dtype.is_integer() and len(values) > MAX_LEVELS):
        return Column(series.name, "number")
    if len(values) > MAX_LEVELS or series.dtype.is_temporal():
        return None
    return of_levels(series.name, [str(value) for value in values.cast(pl.String).sort().to_list()])
