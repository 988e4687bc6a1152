"""A table of numbers, flags, categories and dates as one matrix of numbers in which all columns have equal weight.

number, whole, ordered   the value, or the code of the level, in standard deviations from the mean
flag                     the same of its 0 and 1
category                 for each level of share p:  (1 in its rows, else 0, less p) / √p; of two levels like a flag
date                     the day as a number; the place in the year as a cosine and a sine; the weekday as a category;
                         the time of day as a cosine and a sine

The principal components of this matrix are those of factor analysis of mixed data: the first one is the score t whose
sum over the columns of squared correlations (numbers) and of correlation ratios η² (categories) is largest. So a column
contributes at most 1 to a direction, whatever its kind, its unit and its number of levels. Of a date only those parts
are taken that it has: no season within a few weeks, no weekday if all dates are the first of a month.
References: Escofier 1979; Pagès 2004; Kiers 1991 (numbers and categories in one objective).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from twofold.core.checks import InputError
from twofold.io.tables.roles import CODED, Column, codes_of
from twofold.io.tables.table import Table, quote_names, unique_names

MIN_LEVEL_SHARE, MIN_LEVEL_ROWS = 0.01, 2  # of a category; the levels below are one level, "others"
YEAR, WEEK = 365.2425, 7  # days
MIN_YEARS, MIN_WEEKS = 0.9, 3  # from which seasons and weekdays can be seen
WEEKDAYS = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")  # from day 0, 1970-01-01


class Feature(NamedTuple):
    """One column of the matrix."""

    name: str
    column: str  # of the table
    part: str  # what is taken of the column: "value", "level", or a part of a date
    codes: list[int]  # of a level, or of several taken together
    mean: float
    scale: float  # what it is divided by

    def raw(self, values: np.ndarray) -> np.ndarray:
        """The feature (n,) of codes, numbers or days, before it is centered and divided."""
        if self.part == "level":
            return np.where(np.isnan(values), np.nan, np.isin(values, self.codes).astype(float))
        return PARTS[self.part](values)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return (self.raw(values) - self.mean) / self.scale


def weekday(days: np.ndarray) -> np.ndarray:
    """The place of each day in `WEEKDAYS`."""
    return np.floor(days) % WEEK


def is_weekday(days: np.ndarray, place: int) -> np.ndarray:
    return np.where(np.isnan(days), np.nan, weekday(days) == place)


PARTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "value": np.asarray,
    "weekday": weekday,
    "year cosine": lambda days: np.cos(2 * np.pi * days / YEAR),
    "year sine": lambda days: np.sin(2 * np.pi * days / YEAR),
    "day cosine": lambda days: np.cos(2 * np.pi * days),
    "day sine": lambda days: np.sin(2 * np.pi * days),
    **{f"weekday {place}": partial(is_weekday, place=place) for place in range(WEEK)},
}


class Encoding(NamedTuple):
    """How a table becomes a matrix, as it was found in the table that was fitted."""

    columns: list[Column]
    features: list[Feature]

    @property
    def names(self) -> list[str]:
        return unique_names([feature.name for feature in self.features])[0]

    @property
    def owners(self) -> np.ndarray:
        """The place in `columns` of each feature's column."""
        places = {column.name: j for j, column in enumerate(self.columns)}
        return np.array([places[feature.column] for feature in self.features])

    def encode(self, X: np.ndarray) -> np.ndarray:
        """The matrix (n,D) of coded columns (n,d), NaN where a cell is blank."""
        out = np.empty((len(X), len(self.features)))
        for place, (feature, j) in enumerate(zip(self.features, self.owners, strict=True)):
            out[:, place] = feature(X[:, j])
        return out

    def decode(self, E: np.ndarray) -> np.ndarray:
        """The coded columns (n,d) nearest to a matrix (n,D): of a category the level with the largest share."""
        out = np.empty((len(E), len(self.columns)))
        scales, means = (np.array([getattr(f, name) for f in self.features]) for name in ("scale", "mean"))
        values, owners = E * scales + means, self.owners
        for j, column in enumerate(self.columns):
            places = np.flatnonzero(owners == j)
            first = self.features[places[0]]
            if first.part == "level" and len(places) == 1:
                other = min(set(range(len(column.levels))) - set(first.codes))
                out[:, j] = np.where(values[:, places[0]] > 0.5, first.codes[0], other)
            elif first.part == "level":
                codes = np.array([self.features[place].codes[0] for place in places])
                out[:, j] = codes[values[:, places].argmax(axis=1)]
            elif column.levels:
                out[:, j] = np.clip(np.rint(values[:, places[0]]), 0, len(column.levels) - 1)
            else:
                out[:, j] = values[:, places[0]]
        return out

    def read(self, table: Table, allow_nan: bool) -> np.ndarray:
        """The matrix of another table with these columns, by name.

        A value that is no level of the fit is a hole if the model takes these, else it counts as average.
        """
        frame = pl.DataFrame(table.array(), schema=table.columns) if table.frame is None else table.frame
        missing = [column.name for column in self.columns if column.name not in frame.columns]
        if missing:
            raise InputError(
                f"{table.source} has no column {quote_names(missing)}, which the model was fitted to; it has "
                f"{quote_names(frame.columns)}."
            )
        X = np.empty((frame.height, len(self.columns)))
        new = np.zeros(X.shape, bool)
        for j, column in enumerate(self.columns):
            series = frame[column.name]
            try:
                X[:, j] = codes_of(column, series)
            except (pl.exceptions.PolarsError, ValueError, TypeError) as error:
                raise InputError(
                    f'{table.source}, column "{column.name}": the model was fitted to a column of the kind '
                    f"{column.role}, and this one has {series.dtype}. Give the same kind of column."
                ) from error
            if column.levels:
                new[:, j] = np.isnan(X[:, j]) & series.is_not_null().to_numpy()
            if new[:, j].any():
                values = series.filter(new[:, j]).cast(pl.String).unique().sort().to_list()
                how = "blank" if allow_nan else "average"
                table.notes.append(f'"{column.name}": {quote_names(values)} not seen in the fit, counted as {how}')
        matrix = self.encode(X)
        return matrix if allow_nan else np.where(new[:, self.owners], 0.0, matrix)

    def without_references(self) -> Encoding:
        """The encoding without the commonest level of each category, which follows from the others.

        A model with a noise of its own, or an inverse of the scatter, needs columns that are independent.
        """
        dropped = set()
        for j in range(len(self.columns)):
            for group in ("level", "weekday"):
                mine = [i for i in np.flatnonzero(self.owners == j) if self.features[i].part.startswith(group)]
                if len(mine) > 1:
                    dropped.add(max(mine, key=lambda i: self.features[i].mean))
        return self._replace(features=[f for i, f in enumerate(self.features) if i not in dropped])

    def as_lists(self) -> list[Any]:
        """Return the columns as a model file can hold them."""
        return [[list(column) for column in map(_as_tuple, self.columns)], [list(feature) for feature in self.features]]

    @classmethod
    def from_lists(cls, lists: list[Any]) -> Encoding:
        columns, features = lists
        return cls(
            [Column(str(name), role, tuple(levels)) for name, role, levels in columns],
            [Feature(*feature) for feature in features],
        )


def _as_tuple(column: Column) -> tuple[str, str, list[str]]:
    return column.name, column.role, list(column.levels)


class Encoded(NamedTuple):
    """A table as numbers."""

    encoding: Encoding
    cells: np.ndarray  # (n,d) the coded columns
    matrix: np.ndarray  # (n,D)


def encode_table(table: Table, scale: bool, without: str | None = None, independent: bool = False) -> Encoded:
    """Find the encoding of a table, and encode it.

    With `scale` numbers are divided by their standard deviations; with `independent` no column follows from others.
    """
    X, columns = table.coded()
    used = [j for j, column in enumerate(columns) if column.name != without]
    encoding = find_encoding(X[:, used], [columns[j] for j in used], scale)
    encoding = encoding.without_references() if independent else encoding
    names = [column.name for column in columns]
    coded = X[:, [names.index(column.name) for column in encoding.columns]]
    return Encoded(encoding, coded, encoding.encode(coded))


def is_mixed(table: Table, without: str | None = None) -> bool:
    """Tell whether a model can use columns of the table beyond those that hold numbers."""
    used = [column.name for column in table.schema if column.role in CODED and column.name != without]
    return table.frame is not None and any(name not in table.columns for name in used)


def find_encoding(X: np.ndarray, columns: Sequence[Column], scale: bool = True) -> Encoding:
    """The encoding of coded columns (n,d); without `scale` numbers keep their units.

    >>> X = np.array([[1.0, 0], [2, 0], [3, 1], [6, 1]])
    >>> columns = [Column("size", "number"), Column("color", "category", ("blue", "red"))]
    >>> encoding = find_encoding(X, columns)
    >>> encoding.names
    ['size', 'color = red']
    >>> encoding.encode(X)[:, 1].tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """
    kept, features = [], []
    for values, column in zip(X.T, columns, strict=True):
        found = find_features(values, column, scale)
        if found:
            kept.append(column)
            features += found
    return Encoding(kept, features)


def find_features(values: np.ndarray, column: Column, scale: bool) -> list[Feature]:
    """The features of one column; none if it is constant."""
    name = column.name
    if column.role == "category":
        return level_features(values, column)
    if column.role == "date":
        return date_features(values, name)
    label = f"{name} = {column.levels[1]}" if column.role == "flag" and column.levels else name
    plain = not scale and column.role in ("number", "whole")
    found = standardize_feature(Feature(label, name, "value", [], 0.0, 1.0), values)
    return [found._replace(scale=1.0) if plain else found] if found.scale > 0 else []


def standardize_feature(feature: Feature, values: np.ndarray) -> Feature:
    """The feature with its mean and its standard deviation, which is 0 for one that hardly varies."""
    known = feature.raw(values[~np.isnan(values)])
    if not len(known):
        return feature._replace(scale=0.0)
    mean, deviation = float(known.mean()), float(known.std())
    return feature._replace(mean=mean, scale=deviation if deviation > 1e-12 * abs(mean) else 0.0)


def level_features(values: np.ndarray, column: Column) -> list[Feature]:
    """A feature for each level that is not rare, and one for all that are."""
    known = values[~np.isnan(values)].astype(int)
    counts = np.bincount(known, minlength=len(column.levels))
    few = max(MIN_LEVEL_ROWS, MIN_LEVEL_SHARE * len(known))
    groups = [(level, [code]) for code, level in enumerate(column.levels) if counts[code] >= few]
    rare = [code for code, count in enumerate(counts) if 0 < count < few]
    if counts[rare].sum() >= few:
        groups.append((column.levels[rare[0]] if len(rare) == 1 else "others", rare))
    if len(groups) + bool(rare) < 2:
        return []
    if sum(len(codes) for _, codes in groups) == np.count_nonzero(counts) and len(groups) == 2:
        level, codes = groups[1]
        return [standardize_feature(Feature(f"{column.name} = {level}", column.name, "level", codes, 0.0, 1.0), values)]
    shares = [counts[codes].sum() / len(known) for _, codes in groups]
    return [
        Feature(f"{column.name} = {level}", column.name, "level", codes, float(p), float(np.sqrt(p)))
        for (level, codes), p in zip(groups, shares, strict=True)
    ]


def date_features(days: np.ndarray, name: str) -> list[Feature]:
    """Trend, season, weekday and time of day, as far as these dates have them."""
    known = days[~np.isnan(days)]
    if not len(known):
        return []
    span, whole = np.ptp(known), np.floor(known)
    of_month = pl.Series(whole.astype(np.int32)).cast(pl.Date).dt.day().n_unique()
    parts = {"value": f"{name} (later)"}
    if span >= MIN_YEARS * YEAR:
        parts |= {"year cosine": f"{name} around January", "year sine": f"{name} around April"}
    if span >= MIN_WEEKS * WEEK and of_month > WEEK:
        parts |= {f"weekday {i}": f"{name} on {day}" for i, day in enumerate(WEEKDAYS)}
    if (known != whole).any():
        parts |= {"day cosine": f"{name} around midnight", "day sine": f"{name} around 6:00"}
    found = [standardize_feature(Feature(label, name, part, [], 0.0, 1.0), days) for part, label in parts.items()]
    found = [feature for feature in found if feature.scale > 0]
    return [
        feature._replace(scale=float(np.sqrt(feature.mean))) if feature.part.startswith("weekday") else feature
        for feature in found
    ]


def find_plain_encoding(X: np.ndarray, columns: Sequence[Column]) -> Encoding:
    """The columns as they are for a model with a loss for each: numbers, codes of levels, and the parts of dates."""
    features = []
    for values, column in zip(X.T, columns, strict=True):
        if column.role != "date":
            features.append(Feature(column.name, column.name, "value", [], 0.0, 1.0))
            continue
        parts = date_features(values, column.name)
        features += [part._replace(mean=0.0, scale=1.0) for part in parts if not part.part.startswith("weekday")]
        if any(part.part.startswith("weekday") for part in parts):
            features.append(Feature(f"{column.name} on", column.name, "weekday", [], 0.0, 1.0))
    return Encoding(list(columns), features)
