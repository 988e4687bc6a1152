"""Columns of dates, in the ways people write them, as days; and periods to count them by."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from twofold.core.checks import InputError
from twofold.core.spelling import spell_parameters
from twofold.io.tables.columns import BLANKS, DATE_FORMATS, cells
from twofold.io.tables.table import Piece, place

_PLAIN_DATE = r"^\d{4}-[01]\d-[0-3]\d"
_CALLED = re.compile(
    r"(?i)(.*[_\s.-])?(date|datetime|time|timestamp|year|month|day|created|published|posted)([_\s.-].*)?"
)
_CLOCK = r"[T ,]+\d{1,2}:\d{2}.*$"
MAX_PERIODS = 40


def guess_dates(frame: pl.DataFrame, notes: list[str]) -> tuple[str, np.ndarray | None]:
    """The first column of dates: typed as such, called so and written so, or written as 2024-03-31 throughout."""
    for column in frame.iter_columns():
        plain = column.dtype == pl.String and bool(cells(column, BLANKS).drop_nulls().str.contains(_PLAIN_DATE).all())
        if not (plain or column.dtype.is_temporal() or _CALLED.fullmatch(column.name.strip())):
            continue
        days, how = to_days(column)
        known = ~np.isnat(days)
        blank = (cells(column, BLANKS) if column.dtype == pl.String else column).null_count()
        if known.sum() >= 0.95 * (len(column) - blank) and len(np.unique(days[known])) >= 3:
            notes.append(spell_parameters(f'dates in "{column.name}"{how}; ⟨date⟩ names another'))
            return column.name, days
    return "date", None


def read_dates(column: pl.Series, pieces: Sequence[Piece], notes: list[str]) -> np.ndarray:
    """The dates of a column that was named; the first cell that is none is refused with its place."""
    days, how = to_days(column)
    text = column.cast(pl.String)
    wrong = np.isnat(days) & cells(text, BLANKS).is_not_null().to_numpy()
    if wrong.any():
        row = int(np.argmax(wrong))
        where = f'{place(row, list(pieces))}, column "{column.name}"'
        raise InputError(f'{where}: "{text[row]}" is not a date{how}. Write it as 2024-03-31, or leave it blank.')
    if how:
        notes.append(f'dates in "{column.name}"{how}')
    return days


def to_days(column: pl.Series) -> tuple[np.ndarray, str]:
    """Days, NaT where a cell is no date, and how they were read if that is not plain."""
    if column.dtype.is_temporal() and column.dtype != pl.Duration and column.dtype != pl.Time:
        return column.cast(pl.Date).to_numpy().astype("datetime64[D]"), ""
    if column.dtype.is_numeric():
        return from_numbers(column.cast(pl.Float64).to_numpy())
    if column.dtype != pl.String:
        return np.full(len(column), np.datetime64("NaT", "D")), ""
    text = cells(column, BLANKS)
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == text.null_count() and not text.str.contains(r"^\d{8}$").any():
        return from_numbers(numbers.to_numpy())
    text = text.str.replace(r"^[A-Z][a-z]{2,8}, ", "").str.replace(_CLOCK, "").str.replace(r"^(\d{4}-\d{2})$", "$1-01")
    best, how = None, ""
    for form, words in DATE_FORMATS.items():
        days = text.str.to_date(form, strict=False)
        if best is None or days.null_count() < best.null_count():
            best, how = days, f", read as {words}" if form[1] != "Y" else ""
    assert best is not None
    return best.to_numpy().astype("datetime64[D]"), how


def from_numbers(values: np.ndarray) -> tuple[np.ndarray, str]:
    """Years, or seconds or milliseconds since 1970."""
    known = values[~np.isnan(values)]
    days = np.full(len(values), np.datetime64("NaT", "D"))
    at = ~np.isnan(values)
    if not len(known):
        return days, ""
    low, high = known.min(), known.max()
    if low >= 1000 and high <= 2200 and (known == np.round(known)).all():
        days[at] = (known.astype(int) - 1970).astype("datetime64[Y]").astype("datetime64[D]")
        return days, ", read as years"
    unit = "s" if 1e8 < low <= high < 1e10 else "ms" if 1e11 < low <= high < 1e13 else None
    if unit is not None:
        days[at] = known.astype(np.int64).astype(f"datetime64[{unit}]").astype("datetime64[D]")
        return days, f", read as {'' if unit == 's' else 'milli'}seconds since 1970"
    return days, ""


def in_periods(days: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """The first day of every period, the period of each date (-1 for none), and what a period is.

    Days, weeks, months, quarters, years or decades: the shortest of which there are at most 40, without gaps.
    """
    known = ~np.isnat(days)
    kept = days[known]
    months = kept.astype("datetime64[M]").astype(int)
    counts = {
        "day": kept.astype(int),
        "week": (kept.astype(int) + 3) // 7,  # 1970 began on a Thursday
        "month": months,
        "quarter": months // 3,
        "year": months // 12,
        "decade": (months // 12) // 10,
    }
    name = next((name for name, at in counts.items() if np.ptp(at) < MAX_PERIODS), "decade")
    at = counts[name]
    first = np.arange(at.min(), at.max() + 1)
    if name == "day":
        starts = first.astype("datetime64[D]")
    elif name == "week":
        starts = (first * 7 - 3).astype("datetime64[D]")
    else:
        step = {"month": 1, "quarter": 3, "year": 12, "decade": 120}[name]
        starts = (first * step).astype("datetime64[M]").astype("datetime64[D]")
    period = np.full(len(days), -1)
    period[known] = at - first[0]
    return starts, period, name
