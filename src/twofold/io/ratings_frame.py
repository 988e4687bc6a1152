"""Whatever holds ratings, as a polars frame: other frames, arrays, lists of rows, delimited and Parquet files."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from twofold.core.checks import InputError


def as_frame(ratings: Any) -> pl.DataFrame:
    """Whatever holds ratings as a polars frame."""
    if isinstance(ratings, pl.DataFrame):
        return ratings
    if isinstance(ratings, pl.LazyFrame):
        return ratings.collect()
    if isinstance(ratings, (str, os.PathLike)):
        return read(Path(ratings))
    if hasattr(ratings, "columns") and hasattr(ratings, "itertuples"):  # pandas, which need not be installed
        return pl.DataFrame([_from_pandas(ratings[name], str(name)) for name in ratings.columns])
    if isinstance(ratings, np.ndarray) and ratings.ndim == 2 and ratings.shape[1] in (2, 3):
        return _named(list(ratings.T))
    if isinstance(ratings, tuple) and len(ratings) in (2, 3) and all(np.ndim(a) == 1 for a in ratings):
        lengths = [len(a) for a in ratings]
        if len(set(lengths)) > 1:
            raise InputError(f"users, items and ratings have lengths {lengths}; they must be equally long.")
        return _named(list(ratings))
    rows = list(ratings) if isinstance(ratings, (list, set, frozenset)) or hasattr(ratings, "__next__") else None
    if rows is None:
        raise InputError(
            f"ratings is a {type(ratings).__name__}. Give a frame, the path of a CSV or Parquet file, (users, items, "
            "ratings), or a list of (user, item, rating)."
        )
    for i, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != len(rows[0]) or len(row) not in (2, 3):
            raise InputError(
                f"row {i} of the ratings is {row!r}; (user, item, rating) or (user, item) is needed in all."
            )
    return _named([list(column) for column in zip(*rows, strict=True)] if rows else [[], []])


def _named(columns: list[Any]) -> pl.DataFrame:
    return pl.DataFrame([_series(c, name) for c, name in zip(columns, ("user", "item", "rating"), strict=False)])


def _series(values: Any, name: str) -> pl.Series:
    """A column of one type; values of several types become their text."""
    if isinstance(values, pl.Series):
        return values.rename(name)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
        return pl.Series(name, values)
    items = list(values)
    kinds = {type(v) for v in items if v is not None}
    numeric = all(issubclass(kind, (int, float, np.number)) and kind is not bool for kind in kinds)
    if len(kinds) > 1 and not numeric:
        items = [None if v is None or (isinstance(v, float) and v != v) else str(v) for v in items]
    try:
        return pl.Series(name, items, strict=False)
    except (
        TypeError,
        ValueError,
        OverflowError,
        pl.exceptions.PolarsError,
    ):  # whole numbers beyond 128 bits, and the like
        return pl.Series(name, [None if v is None else str(v) for v in items], dtype=pl.String)


def _from_pandas(column: Any, name: str) -> pl.Series:
    values = column.to_numpy()
    if values.dtype.kind in "iufb":
        return pl.Series(name, values)
    return _series([None if gone else v for v, gone in zip(column.tolist(), column.isna(), strict=True)], name)


def read(path: Path) -> pl.DataFrame:
    """A delimited file, plain or gzipped, whose delimiter and header are sniffed, or a Parquet file."""
    if not path.is_file():
        raise InputError(f"{path} is not a file. Check the path, or give the ratings as a frame.")
    if path.suffix.lower() in (".parquet", ".pq"):
        return pl.read_parquet(path)
    with (gzip.open if path.suffix.lower() == ".gz" else open)(
        path, "rt", encoding="utf-8-sig", errors="replace"
    ) as file:
        first = file.readline().rstrip("\r\n")
    doubled = "::" in first  # MovieLens' own files
    separator = (
        ":" if doubled else max(("\t", ",", ";", "|", " "), key=lambda s: (first.count(s) > 0, -"\t,;| ".index(s)))
    )
    head = [cell.strip().strip('"') for cell in first.split("::" if doubled else separator)]
    header = not any(_is_number(cell) for cell in head)
    try:
        frame = pl.read_csv(
            path,
            separator=separator,
            has_header=header,
            infer_schema=False,
            encoding="utf8-lossy",
            truncate_ragged_lines=True,
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{path} cannot be read as delimited text: {error}. Give a CSV with a header.") from error
    if doubled:
        frame = frame.select(frame.columns[::2])
    return pl.DataFrame([_meant(column.rename(column.name.strip())) for column in frame])


def _meant(column: pl.Series) -> pl.Series:
    """Text out of a file as whole numbers, if it is their text exactly: "007" stays text."""
    whole = column.cast(pl.Int64, strict=False)
    return whole if bool((whole.cast(pl.String).eq_missing(column)).all()) else column


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
