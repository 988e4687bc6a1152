"""Ratings as a matrix: a row a user, a column an item.

    x_ij  the rating of item j by user i, or blank, or a number that stands for none

Such a table is told from rows of (user, item, rating) by its scale: in a matrix every column holds ratings, so all go
over the same few numbers; in rows of user, item and rating the ids go further than the ratings do. A column that names
the users, a first column that counts each user's ratings (as the Jester files have), and a number that stands for no
rating (99, -1, or 0 in a table that is mostly 0) are found and said.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import polars as pl

from twofold.core.spelling import spell_parameters
from twofold.io.tables.columns import to_numbers
from twofold.io.tables.roles import names_rows as counts_rows
from twofold.io.tables.sentinels import CODES, stands_apart
from twofold.io.tables.table import is_key, whole

MIN_COLUMNS = 4  # columns of ratings, where nothing names the users
MIN_NAMED_COLUMNS = 3  # the same where a column names them: (user, item, rating) has two beside it
MIN_RANGE_SHARE = 0.3  # of the whole range, that nearly every column of a matrix goes over
MIN_WIDE_SHARE = 0.8  # of the columns
MAX_SCALE_VALUES = 21  # different numbers of a scale of ratings, at most, where columns are too short to show it
MIN_ZERO_SHARE = 1 / 3  # of the cells, at least, are 0 where 0 means no rating
SAMPLE_ROWS = 1000  # rows by which most tables are told to be no matrix
NUMBERED = re.compile(r"column_\d+")


Roles = dict[str, str | None]


class Matrix(NamedTuple):
    """The known cells of a matrix of ratings, and what was decided in reading it."""

    user: pl.Series
    item: pl.Series
    rating: np.ndarray
    notes: list[str]


def find_matrix(frame: pl.DataFrame, roles: Roles, blanks: frozenset[str], comma: bool) -> Matrix | None:
    """The matrix that a table is, if it is one; `roles` are the columns that are called user and item, if any."""
    if len(frame) > SAMPLE_ROWS and _find(frame.head(SAMPLE_ROWS), roles, blanks, comma) is None:
        return None  # most files are rows of user, item and rating, and may be long
    return _find(frame, roles, blanks, comma)


def _find(frame: pl.DataFrame, roles: Roles, blanks: frozenset[str], comma: bool) -> Matrix | None:
    frame, header = take_header(frame)
    columns: dict[str, np.ndarray] = {}
    texts: list[str] = []
    for column in frame.iter_columns():
        values, kind, _ = to_numbers(column, blanks, comma)[:3]
        if kind not in ("number", "blank"):
            if columns:
                return None  # what is text stands before the ratings
            texts.append(column.name)
        else:
            columns[column.name] = values if kind == "number" else np.full(len(frame), np.nan)
    notes = []
    counts = find_counts(columns)
    if counts is not None:
        columns.pop(counts)
        notes = [f'"{counts}" counts the ratings of each row and is left out']
    ids = name_rows(frame, roles, texts, columns)
    columns.pop(ids or "", None)
    others = [role for role in roles.values() if role is not None and role != ids and role not in columns]
    if len(columns) < (MIN_NAMED_COLUMNS if ids else MIN_COLUMNS) or (texts and ids is None) or others:
        return None
    X, said = clear_codes(np.column_stack(list(columns.values())))
    names = list(columns) if header else None
    if not one_scale(X, ids is not None and header):
        return None
    swapped = ids is not None and ids == roles["item"]
    rows = number_series(len(X)) if ids is None else frame[ids]
    cols = number_series(X.shape[1]) if names is None else pl.Series(names)
    counted = [what for what, named in (("users", ids), ("items", names)) if not named]
    who = [f'"{ids}" names the {"items" if swapped else "users"}'] if ids else []
    who += [f"{' and '.join(counted)} are counted from 1"] if counted else []
    notes = ["; ".join(who), *notes, *said] if who else [*notes, *said]
    return unfold(X, rows, cols, swapped, notes)


def take_header(frame: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """The table under its own header: item numbers in the first row look like ratings, so they were left there.

    Also returned is whether the columns have names at all.
    """
    if not all(NUMBERED.fullmatch(name) for name in frame.columns):
        return frame, True
    if frame.height < 2 or frame.width < MIN_COLUMNS or set(frame.dtypes) != {pl.String}:
        return frame, False
    cells = [(cell or "").strip() for cell in frame.row(0)]
    for start in (0, 1):
        if rises(cells[start:]) and len(cells) - start >= MIN_COLUMNS and (start == 0 or not cells[0]):
            names = [*frame.columns[:start], *cells[start:]]
            return frame.slice(1).rename(dict(zip(frame.columns, names, strict=True))), True
    return frame, False


def rises(names: list[str]) -> bool:
    """Return whether these are whole numbers in steps of one, as items are numbered."""
    numbers = [int(name) for name in names if name.isdecimal()]
    return len(numbers) == len(names) > 0 and bool((np.diff(numbers) == 1).all())


def find_counts(columns: dict[str, np.ndarray]) -> str | None:
    """The first column of numbers, if it says how many of the others are known."""
    if len(columns) <= MIN_COLUMNS:
        return None
    first, *others = columns
    X, _ = clear_codes(np.column_stack([columns[name] for name in others]))
    return first if np.array_equal(columns[first], (~np.isnan(X)).sum(axis=1)) and len(X) > 1 else None


def name_rows(frame: pl.DataFrame, roles: Roles, texts: list[str], columns: dict[str, np.ndarray]) -> str | None:
    """The column that names the rows: one called user or item, else text or whole numbers that tell all rows apart."""
    keys = [text for text in texts if is_key(frame[text])]
    keys += [name for name, values in columns.items() if len(np.unique(values)) == len(values)]
    for role in ("user", "item"):
        if roles[role] in keys:
            return roles[role]
    if texts or not columns:
        return next((key for key in keys if key in texts), None)
    (first, values), *others = columns.items()
    top = max((float(np.nanmax(v)) for _, v in others if not np.isnan(v).all()), default=np.inf)
    far = first in keys and bool((values == np.round(values)).all()) and values.max() > top
    return first if far or counts_rows(first, values, 0) else None


def clear_codes(X: np.ndarray) -> tuple[np.ndarray, list[str]]:
    known = X[~np.isnan(X)]
    if not len(known):
        return X, []
    values = np.unique(known)
    low, code = values[0], next((code for code in CODES if abs(code) > 9 and stands_apart(known, code)), None)
    if code is None and low == -1 and len(values) > 2 and values[1] >= 0:
        code = low
    if code is None and low == 0 and len(values) > 2 and (known == 0).mean() >= MIN_ZERO_SHARE:
        code = low
    if code is None:
        return X, []
    share = float((known == code).mean())
    return np.where(code == X, np.nan, X), [f"{code:g}, in {share:.0%} of the cells, is taken for: no rating"]


def one_scale(X: np.ndarray, named: bool) -> bool:
    """Return whether the columns go over the same numbers; `named` where users and items have names, too."""
    known = X[~np.isnan(X)]
    if not len(known):
        return False
    values = np.unique(known)
    low, high = values[0], values[-1]
    filled = X[:, ~np.isnan(X).all(axis=0)]
    ranges = np.nanmax(filled, axis=0) - np.nanmin(filled, axis=0)
    if (ranges >= MIN_RANGE_SHARE * (high - low)).mean() >= MIN_WIDE_SHARE:
        return True
    return len(values) <= MAX_SCALE_VALUES and (named or X.shape[1] > MIN_COLUMNS) and high <= 100


def number_series(size: int) -> pl.Series:
    return pl.Series(np.arange(1, size + 1))


def unfold(X: np.ndarray, rows: pl.Series, cols: pl.Series, swapped: bool, notes: list[str]) -> Matrix:
    """One row a known cell; `swapped` where rows are items."""
    i, j = np.nonzero(~np.isnan(X))
    rows, cols = (whole(ids.str.strip_chars()) if ids.dtype == pl.String else ids for ids in (rows, cols))
    shape = f"{X.shape[0]:,} {'items' if swapped else 'users'} × {X.shape[1]:,} {'users' if swapped else 'items'}"
    said = (
        f"read as a matrix of ratings, {shape}, {len(i) / X.size:.1%} of it known; if each row is a user, an item and "
        "a rating, name these columns (⟨user_column⟩, ⟨item_column⟩, ⟨rating_column⟩)"
    )
    ids = rows.gather(i), cols.gather(j)
    user, item = ids[::-1] if swapped else ids
    return Matrix(user.alias("user"), item.alias("item"), X[i, j], [spell_parameters(said), *notes])
