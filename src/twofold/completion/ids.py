"""Ids of any type as whole numbers, and back.

    number_ids(column)  →  ids (m,) sorted and each once, codes (rows,) with  ids[codes] = column

Numbers stay numbers (whole ones int64), everything else becomes text. A model file holds both.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import polars as pl

from twofold.core.checks import InputError
from twofold.core.spelling import close_names

WHOLE = 2.0**53  # floats beyond it skip whole numbers


def number_ids(column: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """The ids of a column without nulls, sorted, and the number of each row's id among them.

    >>> ids, codes = number_ids(pl.Series(["b", "a", "b"]))
    >>> ids.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    column = plain(column).alias("id")
    ids = column.unique().sort()
    numbered = pl.DataFrame([ids, pl.Series("code", np.arange(len(ids)))])
    codes = column.to_frame().join(numbered, on="id", how="left", maintain_order="left")["code"]
    return as_array(ids), codes.to_numpy()


def plain(column: pl.Series) -> pl.Series:
    """Whole numbers as Int64 (or UInt64 beyond it), other numbers as Float64, everything else as text."""
    kind = column.dtype
    if kind == pl.Boolean or not (kind.is_numeric() and kind != pl.Decimal):
        return _as_text(column)
    if kind.is_float():
        whole = bool(((column == column.floor()) & (column.abs() < WHOLE)).all())
        return column.cast(pl.Int64 if whole else pl.Float64)
    if kind in (pl.UInt64, pl.Int128, pl.UInt128):
        top, bottom = column.max(), column.min()
        if int(bottom or 0) < -(2**63) or int(top or 0) >= 2**64:  # type: ignore[arg-type]
            return _as_text(column)
        return column.cast(pl.Int64 if int(top or 0) < 2**63 else pl.UInt64)  # type: ignore[arg-type]
    return column.cast(pl.Int64)


def _as_text(column: pl.Series) -> pl.Series:
    if column.dtype == pl.String:
        return column
    if column.dtype == pl.Object or column.dtype.is_nested():
        return pl.Series(column.name, [None if item is None else str(item) for item in column], dtype=pl.String)
    return column.cast(pl.String)


def as_array(ids: pl.Series) -> np.ndarray:
    """Numbers as they are, text as an array of Python strings (of fixed width, one long id would cost all of them)."""
    if ids.dtype != pl.String:
        return ids.to_numpy()
    out = np.empty(len(ids), object)
    out[:] = ids.to_list()
    return out


def places(ids: np.ndarray, wanted: Any) -> np.ndarray:
    """The place of each of several ids among the sorted ones, -1 where it is unknown.

    >>> places(np.array([3, 7, 9]), [9, "7", 5]).tolist()
    [2, 1, -1]
    """
    if isinstance(wanted, np.ndarray) and wanted.dtype.kind == ids.dtype.kind and ids.dtype.kind in "iuf":
        given = wanted
    else:
        given = np.empty(len(wanted), object)
        given[:] = [_alike(item, ids) for item in wanted]
        there = np.array([item is not None for item in given], bool)
        if not there.all():
            out = np.full(len(given), -1)
            out[there] = places_of(ids, given[there])
            return out
    return places_of(ids, given)


def find_ids(ids: np.ndarray, wanted: Any) -> np.ndarray:
    """The same for ids in any order."""
    if not len(ids):
        return np.full(len(wanted), -1)
    order = np.argsort(ids, kind="stable")
    at = places(ids[order], wanted)
    return np.where(at >= 0, order[at], -1)


def places_of(ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The same for ids that are of the right type."""
    if not len(wanted):
        return np.empty(0, np.int64)
    if ids.dtype != object and wanted.dtype == object:
        wanted = np.array(wanted.tolist(), ids.dtype)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, -1).astype(np.int64)


def _alike(item: Any, ids: np.ndarray) -> Any:
    """An id in the type of the known ones: "17" is 17 where ids are numbers, 17 is "17" where they are text."""
    if ids.dtype == object:
        return None if item is None else str(item).lower() if isinstance(item, bool) else str(item)
    try:
        if ids.dtype.kind == "f":
            return float(item)
        exact = int(item) if isinstance(item, (str, Integral)) else int(float(item))
        same = isinstance(item, (str, Integral)) or exact == item
        return exact if same and np.iinfo(ids.dtype).min <= exact <= np.iinfo(ids.dtype).max else None
    except (TypeError, ValueError, OverflowError):
        return None


def place(ids: np.ndarray, wanted: Any, role: str) -> int:
    """The place of one id; raise an error that names close ids if it is unknown."""
    at = int(places(ids, [wanted])[0])
    if at < 0:
        near = close(ids, wanted)
        remedy = f"Close to it: {', '.join(map(repr, near))}." if near else f"They are numbers, {ids[0]} to {ids[-1]}."
        raise InputError(f"{role} {wanted!r} is not among the {len(ids):,} {role}s of the ratings. {remedy}")
    return at


def close(ids: np.ndarray, wanted: Any, count: int = 3) -> list:
    """The known ids spelled like one that is not known; of numbers none, since a near number is another thing."""
    if ids.dtype != object:
        return []
    text, known = str(wanted), ids.tolist()
    low = text.casefold()
    likely = [item for item in known if low in item.casefold()]
    likely += [item for item in known if item[:1].casefold() == low[:1]]
    return close_names(text, likely, count, 0.4) or close_names(text, known, count, 0.4) or known[:count]
