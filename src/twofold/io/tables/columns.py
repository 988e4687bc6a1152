"""One column: whether it holds numbers, and which."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

BLANKS = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "?", "#n/a", "<na>"})
_DATE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ]\d{1,2}:\d{2}.*)?$"


def to_numbers(column: pl.Series, blanks: frozenset[str], decimal_comma: bool) -> tuple[np.ndarray, str]:
    """Values with NaN for blanks, and the kind: number, commas, text, date, blank, mixed."""
    if column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        values = blanked(column.cast(pl.Float64), blanks)
        return values, "blank" if np.isnan(values).all() else "number"
    if column.dtype != pl.String:
        return np.empty(0), "date" if column.dtype.is_temporal() else "text"
    text = cells(column, blanks)
    if text.null_count() == len(text):
        return np.empty(0), "blank"
    found, kind = parsed(text, decimal_comma)
    wrong = text.filter(found.is_null() & text.is_not_null())
    if len(wrong) == 0:
        return blanked(found, blanks), kind
    # A few odd cells among numbers are a fault to report; a column that is often text is text.
    known = len(text) - text.null_count()
    if 2 * len(wrong) <= known and (wrong.n_unique() <= 3 or len(wrong) < 0.1 * known):
        return blanked(found, blanks), "mixed"
    return np.empty(0), "date" if wrong.str.contains(_DATE).all() else "text"


def parsed(text: pl.Series, decimal_comma: bool) -> tuple[pl.Series, str]:
    """Numbers from text, null where it is none; truth values count as 0 and 1 if the column has nothing else."""
    values = text.cast(pl.Float64, strict=False)
    if decimal_comma and values.null_count() > text.null_count():
        return text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False), "commas"
    if values.null_count() == len(text):
        meaning = {"true": 1.0, "false": 0.0}
        truth = text.str.to_lowercase().replace_strict(meaning, default=None, return_dtype=pl.Float64)
        if truth.null_count() == text.null_count():
            return truth, "number"
    return values, "number"


def cells(column: pl.Series, blanks: frozenset[str]) -> pl.Series:
    """The text of a column without surrounding spaces, null where it stands for a blank."""
    text = column.str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(list(blanks)), None)


def blanked(column: pl.Series, blanks: frozenset[str]) -> np.ndarray:
    """The values, NaN where there is none or where the number itself stands for a blank."""
    values = column.fill_null(float("nan")).to_numpy()
    codes = [float(text) for text in blanks if re.fullmatch(r"[+-]?(\d+(\.\d+)?|inf)", text)]
    return np.where(np.isin(values, codes), np.nan, values) if codes else values
