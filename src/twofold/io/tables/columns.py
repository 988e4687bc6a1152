"""One column: whether it holds numbers, which, and how they are written."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import polars as pl

EMPTY = frozenset({"", "na", "nan", "null", "<na>"})  # blanks that programs write
MISSING_WORDS = frozenset(
    {"n/a", "n.a.", "n. a.", "#n/a", "none", "nil", "-", "--", "---", "?", "??", ".", "..", "unknown", "missing"}
    | {
        "not available",
        "not known",
        "undefined",
        "k.a.",
        "k. a.",
        "keine angabe",
        "unbekannt",
        "inconnu",
        "desconocido",
    }
    | {"#value!", "#div/0!", "#ref!", "#name?", "#num!", "#null!"}
)  # blanks that people and spreadsheets write
BLANKS = EMPTY | MISSING_WORDS
DATE_FORMATS = {
    "%Y-%m-%d": "year-month-day",
    "%Y/%m/%d": "year/month/day",
    "%Y.%m.%d": "year.month.day",
    "%m/%d/%Y": "month/day/year",
    "%d/%m/%Y": "day/month/year",
    "%d.%m.%Y": "day.month.year",
    "%d-%m-%Y": "day-month-year",
    "%d %B %Y": "day, month, year",
    "%d %b %Y": "day, month, year",
    "%B %d, %Y": "month, day, year",
    "%b %d, %Y": "month, day, year",
    "%Y%m%d": "yearmonthday",
}
CLOCK_FORMATS = (" %H:%M:%S", "T%H:%M:%S", " %H:%M", "T%H:%M", "T%H:%M:%S%.f", " %H:%M:%S%.f")
_DATE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ]\d{1,2}:\d{2}.*)?$"
_UNIT = r"[€$£¥₹%]|EUR|USD|GBP|CHF|JPY"
_WITH_UNIT = rf"^[+-]?\s*(?:{_UNIT})?\s*[+-]?[\d.,]+(?:[eE][+-]?\d+)?\s*(?:{_UNIT})?$"
_GROUPED = {mark: rf"^[+-]?\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+$" for mark in ",."}
MIN_LONG = 10_000  # cells from which the distinct ones are looked at first
SAMPLE = 500  # cells by which a column is told to be text


class Written(NamedTuple):
    """How the numbers of a column are written: 278.000,50 € has thousands ".", decimal ",", after " €"."""

    decimal: str = "."
    thousands: str = ""
    before: str = ""
    after: str = ""

    @property
    def unit(self) -> str:
        """The currency, or the sign of per cents."""
        return (self.before + self.after).strip()


PLAIN = Written()


class Numbers(NamedTuple):
    values: np.ndarray  # NaN for blanks
    kind: str  # number, text, date, blank, mixed
    form: Written = PLAIN
    series: pl.Series | None = None  # text, null for blanks; numbers that are finite, not all whole and not all equal


def to_numbers(column: pl.Series, blanks: frozenset[str], decimal_comma: bool) -> Numbers:
    """The numbers of a column, if it holds any; `decimal_comma` where 1,234 rather means 1.234."""
    if column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        values = blank_codes(fill_blanks(column.cast(pl.Float64)), blanks)
        return Numbers(values, "blank" if np.isnan(values).all() else "number")
    if column.dtype != pl.String:
        return Numbers(np.empty(0), "date" if column.dtype.is_temporal() else "text")
    if (distinct := find_distinct(column)) is not None:
        few = to_numbers(distinct, blanks, decimal_comma)
        if few.kind in ("blank", "date") or (few.kind == "text" and not distinct.str.contains(r"\d").any()):
            return few._replace(series=cells(column, blanks))  # it does not matter how often each cell occurs
    text = cells(column, blanks)
    if text.null_count() == len(text):
        return Numbers(np.empty(0), "blank")
    found, form = parse_numbers(text, decimal_comma)
    wrong = text.filter(found.is_null() & text.is_not_null())
    if len(wrong) == 0:
        return Numbers(blank_codes(fill_blanks(found), blanks), "number", form)
    # A few odd cells among numbers are a fault to report; a column that is often text is text.
    known = len(text) - text.null_count()
    if 2 * len(wrong) <= known and (wrong.n_unique() <= 3 or len(wrong) < 0.1 * known):
        return Numbers(blank_codes(fill_blanks(found), blanks), "mixed", form)
    is_date = wrong.head(SAMPLE).str.contains(_DATE).all() and wrong.str.contains(_DATE).all()
    return Numbers(np.empty(0), "date" if is_date else "text", series=text)


def plain_numbers(frame: pl.DataFrame, blanks: frozenset[str]) -> dict[str, Numbers]:
    """The columns of text in which every cell is a plain number or empty, all at once: a wide table has many.

    What they are is what `to_numbers` says of them.
    """
    text = frame.select(pl.col(pl.String))
    values = text.select(pl.all().cast(pl.Float64, strict=False))
    if not text.width:
        return {}
    holes = zip(values.get_columns(), values.null_count().row(0), text.null_count().row(0), strict=True)
    values = pl.DataFrame([column for column, count, empty in holes if count == empty])
    if not values.width:
        return {}
    read = values.to_numpy(order="fortran")
    array = blank_codes(read, blanks)
    low, high = np.fmin.reduce(array, axis=0), np.fmax.reduce(array, axis=0)
    head = array[:SAMPLE]
    parts = ((head != np.round(head)) & ~np.isnan(head)).any(axis=0)
    between = ((head > low) & (head < high)).any(axis=0)  # two values alone are a flag
    measured = parts & between & np.isfinite(low) & np.isfinite(high) & (array is read)
    there = ~np.isnan(low)
    return {
        column.name: Numbers(array[:, j], "number", PLAIN, column if measured[j] else None)
        for j, column in enumerate(values.get_columns())
        if there[j]
    }


def parse_numbers(text: pl.Series, decimal_comma: bool) -> tuple[pl.Series, Written]:
    """Numbers from text, null where it is none; truth values count as 0 and 1 if the column has nothing else."""
    values = text.cast(pl.Float64, strict=False)
    if values.null_count() == text.null_count():
        return values, PLAIN
    form = find_form(text.drop_nulls(), decimal_comma)
    if form != PLAIN:
        others = read_form(text, form)
        if others.null_count() < values.null_count():
            return others, form
    meaning = {"true": 1.0, "false": 0.0}
    if values.null_count() == len(text) and text.drop_nulls().head(1).str.to_lowercase().is_in(list(meaning)).all():
        truth = text.str.to_lowercase().replace_strict(meaning, default=None, return_dtype=pl.Float64)
        if truth.null_count() == text.null_count():
            return truth, PLAIN
    return values, PLAIN


def read_dates(text: pl.Series) -> tuple[pl.Series | None, str]:
    """Days, or times if cells have them, from text that is written in one way, and that way; None if it is not.

    >>> read_dates(pl.Series(["31.12.2024", None, "1.1.2025"]))[0].to_list()
    [datetime.date(2024, 12, 31), None, datetime.date(2025, 1, 1)]
    """
    sample = text.drop_nulls().head(SAMPLE)
    clocks = CLOCK_FORMATS if sample.str.contains(":", literal=True).any() else ("",)
    kind = pl.Datetime("us") if clocks[0] else pl.Date
    for form in DATE_FORMATS:
        for clock in clocks:
            if sample.str.strptime(kind, form + clock, strict=False).null_count() == 0:
                found = text.str.strptime(kind, form + clock, strict=False)
                if found.null_count() == text.null_count():
                    return found, form + clock
    return None, ""


def find_form(text: pl.Series, decimal_comma: bool) -> Written:
    """Find how most cells are written, if they are numbers at all.

    >>> find_form(pl.Series(["278.000,50 €", "1,5 €"]), False)
    Written(decimal=',', thousands='.', before='', after=' €')
    >>> find_form(pl.Series(["278,000", "1,500"]), False).thousands  # neither mark says which it is
    ','
    >>> find_form(pl.Series(["278,000", "1,500"]), True).decimal
    ','
    """
    if 2 * text.head(SAMPLE).str.contains(_WITH_UNIT).sum() <= min(len(text), SAMPLE):
        return PLAIN
    text = text.filter(text.str.contains(_WITH_UNIT))
    before, after = (unit_of(text, mark) for mark in (rf"^[+-]?\s*((?:{_UNIT})\s*)", rf"(\s*(?:{_UNIT}))$"))
    bare = text.str.replace_all(rf"{_UNIT}|\s", "")
    commas, points = (bare.filter(bare.str.contains(mark, literal=True)) for mark in ",.")
    if len(commas) == 0:  # 1.234.567 can only be thousands
        many = has_groups(points, ".") and bool((points.str.count_matches(r"\.") > 1).any())
        return Written(",", ".", before, after) if many else Written(".", "", before, after)
    sure = len(points) > 0 or bool((commas.str.count_matches(",") > 1).any())
    if not has_groups(commas, ",") or (decimal_comma and not sure):
        return Written(",", "." if len(points) and has_groups(points, ".") else "", before, after)
    return Written(".", ",", before, after)


def has_groups(bare: pl.Series, mark: str) -> bool:
    """Check that the digits before the other mark stand in groups of three."""
    other = "." if mark == "," else ","
    head = bare.str.split_exact(other, 1).struct.field("field_0")
    return bool(head.str.contains(_GROUPED[mark]).all())


def unit_of(text: pl.Series, pattern: str) -> str:
    """The unit that more than half of the cells have, as the first of them writes it."""
    found = text.str.extract(pattern, 1).drop_nulls()
    if 2 * len(found) <= len(text) or found.str.strip_chars().n_unique() > 1:
        return ""
    return str(found[0])


def read_form(text: pl.Series, form: Written) -> pl.Series:
    """Numbers from text that is written so, null where it is not."""
    if form.unit:
        text = text.str.replace_all(form.unit, "", literal=True).str.replace_all(r"\s", "")
    if form.thousands:
        mark, point = re.escape(form.thousands), re.escape(form.decimal)
        right = rf"^[+-]?(\d{{1,3}}({mark}\d{{3}})+|\d+)?({point}\d*)?([eE][+-]?\d+)?$"
        text = text.set(~text.str.contains(right).fill_null(True), None)
        text = text.str.replace_all(form.thousands, "", literal=True)
    if form.decimal == ",":
        text = text.str.replace(",", ".", literal=True)
    return text.cast(pl.Float64, strict=False)


def is_grouped(column: pl.Series, blanks: frozenset[str]) -> bool:
    """Check that every number has points before three digits, as 278.000: thousands, where decimals have commas."""
    text = cells(column, blanks).drop_nulls() if column.dtype == pl.String else column.head(0).cast(pl.String)
    return len(text) > 0 and bool(text.str.contains(_GROUPED["."]).all())


def find_distinct(column: pl.Series) -> pl.Series | None:
    """The distinct cells of a long column of text that repeats itself; None where looking at all is as fast."""
    if len(column) < MIN_LONG or 4 * column.head(SAMPLE).n_unique() > SAMPLE:
        return None
    return column.unique(maintain_order=True)


def cells(column: pl.Series, blanks: frozenset[str]) -> pl.Series:
    """The text of a column without surrounding spaces, null where it stands for a blank."""
    if (distinct := find_distinct(column)) is not None and distinct.equals(cells(distinct, blanks), null_equal=True):
        return column
    text = column.str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(list(blanks)), None)


def fill_blanks(column: pl.Series) -> np.ndarray:
    """The values, NaN where there is none."""
    return column.fill_null(float("nan")).to_numpy()


def blank_codes(values: np.ndarray, blanks: frozenset[str]) -> np.ndarray:
    """The values, NaN where the number itself stands for a blank."""
    codes = [float(text) for text in blanks if re.fullmatch(r"[+-]?(\d+(\.\d+)?|inf)", text)]
    return np.where(np.isin(values, codes), np.nan, values) if codes else values
