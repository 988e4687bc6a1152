"""Ratings as people have them, as a table with holes.

    rows of (user, item, rating)  →  X (n,d) CSR, a stored cell for every pair that occurs

Reading them is the work of `twofold.io.ratings`. A pair that occurs twice becomes one cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from twofold.completion.ids import as_array, number_ids, places, plain
from twofold.core.checks import InputError
from twofold.io.ratings import Ratings, read_ratings


class RatingsTable(NamedTuple):
    """Ratings as a table: the ids of its rows and columns, its known cells, and what was read where."""

    users: np.ndarray  # (n,)
    items: np.ndarray  # (d,)
    X: sparse.csr_array  # (n,d)
    implicit: bool  # no ratings, or all equal: a cell counts how often something happened
    columns: dict[str, str | None]
    names: np.ndarray | None = None  # (d,) what the items are called, "" where unknown
    times: np.ndarray | None = None  # (cells,) when each was rated, the last time where it was more than once
    refused: sparse.csr_array | None = None  # (n,d) what was answered with no


def cells_of(
    ratings: Any,
    user: Any = None,
    item: Any = None,
    rating: Any = None,
    duplicates: str = "mean",
    implicit: bool | None = None,
    times: bool = False,
) -> RatingsTable:
    """Ratings in any form as a table; `implicit` None means: find out; `times` that it matters when."""
    t = triples(ratings, user, item, rating)
    (users, i), (items, j) = number_ids(t.user), number_ids(t.item)
    return table(users, items, i, j, t, duplicates, implicit, times)


def table(
    users: np.ndarray,
    items: np.ndarray,
    i: np.ndarray,
    j: np.ndarray,
    t: Ratings,
    duplicates: str,
    implicit: bool | None,
    times: bool = False,
) -> RatingsTable:
    """The known cells, from rows i and columns j."""
    values = np.ones(len(i)) if t.rating is None else t.rating
    if implicit is None:
        implicit = t.rating is None or t.counts or bool(values.min() == values.max())
    shape = (len(users), len(items))
    X = merge_pairs(i, j, values, shape, "sum" if implicit else duplicates)
    when = times_of(t, i, j, shape) if times else None
    names = names_of(t.names, j, len(items))
    return RatingsTable(users, items, X, implicit, t.columns, names, when, find_refused(t, users, items))


def find_refused(t: Ratings, users: np.ndarray, items: np.ndarray) -> sparse.csr_array | None:
    """(n,d) the pairs that were answered with no."""
    if t.refused is None:
        return None
    i, j = (places(ids, as_array(plain(column))) for ids, column in zip((users, items), t.refused, strict=True))
    both = (i >= 0) & (j >= 0)
    if not both.any():
        return None
    return merge_pairs(i[both], j[both], np.ones(int(both.sum())), (len(users), len(items)), "max")


def check_enough(cells: RatingsTable) -> None:
    """Refuse ratings of one user, whose items are all known, or of one item."""
    for ids, what in ((cells.users, "user"), (cells.items, "item")):
        if len(ids) == 1:
            raise InputError(
                f"all {cells.X.nnz} ratings are of one {what}, {ids[0]!r}: there is nothing to recommend. Give ratings "
                f"of several {what}s, or name the column of {what}s with {what}=."
            )


def count_items(X: Any) -> np.ndarray:
    """(d,) how many ratings each item has, wherever they are."""
    return X.count_columns() if hasattr(X, "count_columns") else np.bincount(X.indices, minlength=X.shape[1])


def names_of(names: pl.Series | None, j: np.ndarray, n_items: int) -> np.ndarray | None:
    """(items,) the first name that each item has in the rows."""
    if names is None:
        return None
    out = np.full(n_items, "", dtype=object)
    there = names.is_not_null().to_numpy()
    out[j[there][::-1]] = names.filter(there).cast(pl.String).to_list()[::-1]
    return out


def times_of(t: Ratings, i: np.ndarray, j: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """(cells,) when each pair was rated last, as numbers that grow."""
    if t.time is None:
        raise InputError(
            f"{t.source}: no column says when, so nothing can be split by time. Call it time, date or timestamp, or "
            "split otherwise."
        )
    column = t.time
    if column.dtype == pl.String:
        column = column.str.strip_chars()
        numbers = column.cast(pl.Float64, strict=False)
        try:
            column = column.str.to_datetime(strict=False) if numbers.null_count() > column.null_count() else numbers
        except pl.exceptions.PolarsError:  # nothing in it is a date
            column = numbers
    if column.dtype.is_temporal():
        column = column.to_physical()
    if column.null_count():
        row = int(column.is_null().arg_max() or 0)
        raise InputError(
            f'{t.source}, row {row + 1}, column "{t.time.name}": {t.time[row]!r} is no time. Write times as numbers or '
            "as 2024-12-31 or 2024-12-31 23:59:59, or split otherwise."
        )
    return merge_pairs(i, j, column.cast(pl.Float64).to_numpy(), shape, "max").data


def merge_pairs(
    i: np.ndarray, j: np.ndarray, values: np.ndarray, shape: tuple[int, int], rule: str
) -> sparse.csr_array:
    """One stored cell a pair: the sum, mean, maximum or last of its values. In float32 where that is exact."""
    exact = np.array_equal(values.astype(np.float32), values)
    key = i * np.int64(shape[1]) + j
    order = np.argsort(key, kind="stable")
    key, values = key[order], values[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    ends = np.append(first[1:], len(key))
    if rule == "last":
        values = values[ends - 1]
    elif rule == "max":
        values = np.maximum.reduceat(values, first)
    else:
        values = np.add.reduceat(values, first) / ((ends - first) if rule == "mean" else 1)
    key = key[first]
    values = values.astype(np.float32 if exact else np.float64)
    indptr = np.searchsorted(key, np.arange(shape[0] + 1) * np.int64(shape[1]))
    index = np.int32 if max(len(key), *shape) < 2**31 else np.int64
    return sparse.csr_array((values, (key % shape[1]).astype(index), indptr.astype(index)), shape=shape)


def triples(ratings: Any, user: Any = None, item: Any = None, rating: Any = None) -> Ratings:
    """The users, items and ratings in whatever holds them; what is left out is said in a warning."""
    if isinstance(ratings, Ratings):
        return ratings
    found = read_ratings(ratings, user, item, rating)
    for note in found.left_out:
        warnings.warn(f"{found.source}: {note}", stacklevel=2)
    return found


def row_of(ratings: Any, items: np.ndarray, implicit: bool, dtype: np.dtype) -> tuple[sparse.csr_array, list]:
    """One person's ratings {item: rating} as a row (1,d), and the items that do not exist."""
    if not isinstance(ratings, Mapping):
        if not implicit or isinstance(ratings, (str, bytes)):
            raise InputError(f"the ratings of a newcomer are a {type(ratings).__name__}. Give a dict {{item: rating}}.")
        ratings = dict.fromkeys(ratings, 1.0)
    values = np.array([_rating(item, value) for item, value in ratings.items()])
    j = places(items, list(ratings))
    there, shape = j >= 0, (1, len(items))
    if not there.any():
        return sparse.csr_array(shape, dtype=dtype), list(ratings)
    unknown = [item for item, found in zip(ratings, there, strict=True) if not found]
    return merge_pairs(np.zeros(there.sum(), np.int64), j[there], values[there], shape, "last").astype(dtype), unknown


def _rating(item: Any, value: Any) -> float:
    try:
        number = float(value.replace(",", ".")) if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"the rating of {item!r} is {value!r}; a finite number is needed.")
    return number
