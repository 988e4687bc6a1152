"""Ratings as people have them, as a table with holes.

    rows of (user, item, rating)  →  X (n,d) CSR, a stored cell for every pair that occurs

Which column is which is told by its name, else by its position. A pair that occurs twice becomes one cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from twofold.completion.recommender._ids import coded, places, plain
from twofold.core.checks import InputError
from twofold.io.ratings_frame import as_frame

NAMES = {
    "user": ("user", "userid", "uid", "username", "userno", "customer", "customerid", "reviewer", "reviewerid", "rater",
             "person", "member", "memberid", "visitor", "visitorid", "account", "accountid", "reader", "listener",
             "client", "clientid"),
    "item": ("item", "itemid", "iid", "movie", "movieid", "film", "filmid", "title", "product", "productid", "asin",
             "isbn", "book", "bookid", "song", "songid", "track", "trackid", "artist", "artistid", "anime", "animeid",
             "joke", "jokeid", "article", "articleid", "game", "gameid", "business", "businessid",
             "recipe", "recipeid", "sku"),
    "rating": ("rating", "ratings", "score", "scores", "stars", "star", "value", "bookrating", "overall", "grade",
               "vote", "preference"),
    "count": ("count", "counts", "plays", "playcount", "clicks", "views", "listens", "quantity", "purchases", "times",
              "weight", "events"),
}  # fmt: skip
BESIDE = ("time", "date", "stamp", "year", "name", "title", "genre", "categor", "text", "comment")  # no ratings


class Cells(NamedTuple):
    """Ratings as a table: who its rows and columns are, its known cells, and what was read where."""

    users: np.ndarray  # (n,)
    items: np.ndarray  # (d,)
    X: sparse.csr_array  # (n,d)
    implicit: bool  # no ratings, or all alike: a cell says only that something happened, and how often
    columns: dict[str, str | None]


class Triples(NamedTuple):
    """The three columns, checked."""

    user: pl.Series
    item: pl.Series
    rating: np.ndarray | None
    columns: dict[str, str | None]
    counts: bool  # the third column is called something like "plays"


def cells_of(
    ratings: Any,
    user: Any = None,
    item: Any = None,
    rating: Any = None,
    duplicates: str = "mean",
    implicit: bool | None = None,
) -> Cells:
    """Ratings in any form as a table; `implicit` None means: find out."""
    t = triples(ratings, user, item, rating)
    (users, i), (items, j) = coded(t.user), coded(t.item)
    return table(users, items, i, j, t, duplicates, implicit)


def table(
    users: np.ndarray,
    items: np.ndarray,
    i: np.ndarray,
    j: np.ndarray,
    t: Triples,
    duplicates: str,
    implicit: bool | None,
) -> Cells:
    """The known cells, from rows i and columns j."""
    values = np.ones(len(i)) if t.rating is None else t.rating
    if implicit is None:
        implicit = t.rating is None or t.counts or bool(values.min() == values.max())
    X = merged(i, j, values, (len(users), len(items)), "sum" if implicit else duplicates)
    return Cells(users, items, X, implicit, t.columns)


def merged(i: np.ndarray, j: np.ndarray, values: np.ndarray, shape: tuple[int, int], how: str) -> sparse.csr_array:
    """One stored cell a pair: the sum, mean or last of its values. In float32 where that holds every value exactly."""
    exact = np.array_equal(values.astype(np.float32), values)
    key = i * np.int64(shape[1]) + j
    order = np.argsort(key, kind="stable")
    key, values = key[order], values[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    ends = np.append(first[1:], len(key))
    if how == "last":
        values = values[ends - 1]
    else:
        values = np.add.reduceat(values, first) / ((ends - first) if how == "mean" else 1)
    key = key[first]
    values = values.astype(np.float32 if exact else np.float64)
    indptr = np.searchsorted(key, np.arange(shape[0] + 1) * np.int64(shape[1]))
    index = np.int32 if max(len(key), *shape) < 2**31 else np.int64
    return sparse.csr_array((values, (key % shape[1]).astype(index), indptr.astype(index)), shape=shape)


def triples(ratings: Any, user: Any = None, item: Any = None, rating: Any = None) -> Triples:
    """The columns of users, items and ratings out of a frame, a file, an array, or three sequences."""
    frame = as_frame(ratings)
    if frame.width < 2 or frame.height == 0:
        raise InputError(
            f"the ratings are a table of {frame.height} rows and {frame.width} columns. Give at least one row, with a "
            "user, an item and, unless the data is implicit, a rating."
        )
    columns = which(frame.columns, {"user": user, "item": item, "rating": rating})
    found = columns["rating"]
    values = None if found is None else numbers(frame[found])
    counts = found is not None and _bare(found) in NAMES["count"]
    ids = [_complete(frame[str(columns[name])], name) for name in ("user", "item")]
    return Triples(ids[0], ids[1], values, columns, counts)


def _bare(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def which(names: list[str], given: dict[str, Any]) -> dict[str, str | None]:
    """The columns of user, item and rating: as given, else by name, else the first that are left."""
    out: dict[str, str | None] = {}
    for role, name in given.items():
        if name is not None and name not in names:
            raise InputError(f"{role}={name!r} is no column of the ratings; there are {', '.join(map(repr, names))}.")
        out[role] = name
    for role, kinds in (("user", ("user",)), ("item", ("item",)), ("rating", ("rating", "count"))):
        left = [name for name in names if name not in out.values()]
        if out[role] is None:
            wanted = [word for kind in kinds for word in NAMES[kind]]
            named = [name for name in left if _bare(name) in wanted]
            out[role] = min(named, key=lambda name: wanted.index(_bare(name)), default=None)
    for role in ("user", "item", "rating"):
        left = [name for name in names if name not in out.values()]
        if role == "rating":
            left = [name for name in left if not any(word in name.lower() for word in BESIDE)]
        if out[role] is None and left:
            out[role] = left[0]
    if len({out["user"], out["item"]}) < 2 or out["item"] is None:
        raise InputError(f"the ratings have columns {', '.join(map(repr, names))}; a user and an item are needed.")
    return out


def numbers(column: pl.Series) -> np.ndarray:
    """Ratings as float64; text such as "4", "4.5" or "4,5" is read."""
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        values = column.cast(pl.Float64)
    else:
        text = plain(column).str.strip_chars().str.replace(",", ".", literal=True)
        values = text.cast(pl.Float64, strict=False)
    found = values.to_numpy().astype(np.float64)
    bad = ~np.isfinite(found)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f'row {row} of the ratings has {column[row]!r} in column "{column.name}"; a rating is a finite number. '
            "Correct or drop that row, name the right column with rating=, or give users and items alone."
        )
    return found


def _complete(column: pl.Series, role: str) -> pl.Series:
    missing = (column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()).to_numpy()
    if missing.any():
        row = int(np.argmax(missing))
        raise InputError(f'row {row} of the ratings has no {role} in column "{column.name}". Drop that row.')
    return column


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
    return merged(np.zeros(there.sum(), np.int64), j[there], values[there], shape, "last").astype(dtype), unknown


def _rating(item: Any, value: Any) -> float:
    try:
        number = float(value.replace(",", ".")) if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"the rating of {item!r} is {value!r}; a finite number is needed.")
    return number
