"""What each column of a table is, decided once from its values and its name: a number, a category, a date, a name.

number     measured; whole: the same, but counts or steps
flag       two values: yes and no, true and false, 0 and 1
category   a few values that repeat; ordered: the same, in an order
date       days or times
text       sentences, or more values than repeat
id         names the rows or other things: running or unique numbers, codes, postcodes
constant   one value, or none

Identifiers are never fitted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

Role = Literal["number", "whole", "flag", "category", "ordered", "date", "text", "id", "constant"]
CODED: tuple[Role, ...] = ("number", "whole", "flag", "category", "ordered", "date")  # what a model can use

ID_NAME = re.compile(r"(.*[_\s.-])?(id|ids|uuid|guid|isbn|iban|ssn)|.*[a-z](Id|ID)")
POSTCODE_NAME = re.compile(r"(.*[_\s.-])?(zip|zip[_\s.-]?code|post[_\s.-]?code|postal[_\s.-]?code|plz|postleitzahl)")
UNIQUE_ID_NAME = re.compile(
    r"(.*[_\s.-])?(index|idx|key|name|nr|nummer)\.?|.*[a-z](Key|Index|Name|No|Nr|Number|Code)"
    r"|.*[a-z](nr|nummer|number|code)|(.*[_\s.-])(no|num|number|code)\.?"
)
ID_LOG_CHANCE = math.log(1e-6)  # that so many numbers from so narrow a range are distinct without being numbered
LOOKED_AT = 1_000  # cells by which a column is told to be no running number
MIN_WORDS, MIN_LETTERS = 4.0, 40.0  # of a cell of free text, on average
MIN_CODE_DIGITS = 3
MICROSECONDS_PER_DAY = 86_400_000_000
MIN_FLAG_ROWS = 6  # from which two numbers are more than the only ones of a short column
MAX_LEVELS = 256  # of a category
LOW = ("no", "false", "f", "n", "off", "nein", "non", "absent", "falsch", "faux", "0")
FLAGS = ({"no", "yes"}, {"n", "y"}, {"f", "t"}, {"false", "true"}, {"off", "on"}, {"nein", "ja"}, {"non", "oui"})
FLAGS += ({"absent", "present"}, {"n", "j"}, {"no", "si"}, {"no", "sí"}, {"falsch", "wahr"}, {"faux", "vrai"})  # type: ignore[assignment]
SCALES = (
    ("very low", "low", "medium", "high", "very high"),
    ("very low", "low", "moderate", "high", "very high"),
    ("low", "mid", "high"),
    ("low", "middle", "high"),
    ("low", "normal", "high"),
    ("none", "mild", "moderate", "severe"),
    ("none", "some", "marked"),
    ("none", "low", "medium", "high"),
    ("small", "medium", "large"),
    ("xxs", "xs", "s", "m", "l", "xl", "xxl", "xxxl"),
    ("never", "rarely", "sometimes", "often", "usually", "always"),
    ("never", "occasionally", "regularly"),
    ("never", "occas", "regul", "heavy"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("bad", "fair", "good", "very good", "premium", "ideal"),
    ("poor", "average", "good", "excellent"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("beginner", "intermediate", "advanced", "expert"),
    ("bronze", "silver", "gold", "platinum"),
    ("niedrig", "mittel", "hoch"),
    ("klein", "mittel", "groß"),
    ("nie", "selten", "manchmal", "oft", "immer"),
)
MIN_SCALE_LEVELS = 3
EXACT = 2**53  # up to which every whole number is a float


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its role, and the values of a flag or a category by their codes 0, 1, ..."""

    name: str
    role: Role
    levels: tuple[str, ...] = ()


def of_numbers(name: str, values: np.ndarray, position: int, fitted: bool = False) -> Column:
    """The role of a column of numbers, NaN where a cell is blank; with `fitted` it is no identifier."""
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    if not fitted and min(abs(low), abs(high)) >= EXACT and is_whole(values[:LOOKED_AT]):
        return Column(name, "id")  # no measurement has so many digits, and no model could tell them apart
    if not high > low:
        return Column(name, "constant")
    head = values[:LOOKED_AT]
    if not is_whole(head) or not is_whole(values):
        return as_two_values(name, values, low, high) or Column(name, "number")
    if not fitted and (name_is_id(name) or is_numbered(name, values, position)):
        return Column(name, "id")
    return as_two_values(name, values, low, high) or Column(name, "whole")


def as_two_values(name: str, values: np.ndarray, low: float, high: float) -> Column | None:
    """A flag, if the numbers of a column that is long enough are but two."""
    if len(values) < MIN_FLAG_ROWS or not ((values == low) | (values == high) | np.isnan(values)).all():
        return None
    return Column(name, "flag", tuple(f"{end:.0f}" if end == round(end) else repr(float(end)) for end in (low, high)))


def names_rows(name: str, values: np.ndarray, position: int) -> bool:
    """Check that numbers without blanks tell every row from every other and are no measurements."""
    if len(values) < 3 or np.isnan(values).any() or of_numbers(name, values, position).role != "id":
        return False
    return len(np.unique(values)) == len(values)


def is_whole(values: np.ndarray) -> bool:
    return bool(((values == np.round(values)) | np.isnan(values)).all())


def name_is_id(name: str) -> bool:
    """Check that a name says that the cells are identifiers, though they may repeat themselves."""
    low = name.strip().lower()
    return any(pattern.fullmatch(form) for pattern in (ID_NAME, POSTCODE_NAME) for form in (name.strip(), low))


def is_numbered(name: str, values: np.ndarray, position: int) -> bool:
    """Check that distinct whole numbers count the rows or name them.

    They do if the first column counts from 0 or 1, if the name says so, or if no two are the same though their range is
    so narrow that measured ones would have met: of n numbers drawn from R values all are distinct with the chance
    R! / ((R-n)! Rⁿ).

    >>> rng = np.random.default_rng(0)
    >>> is_numbered("x", rng.permutation(100) + 1.0, 3), is_numbered("x", rng.permutation(10_000)[:50] + 0.0, 3)
    (True, False)
    """
    known = values[~np.isnan(values)]
    n = len(known)
    if n < 3:
        return False
    if n == len(values) and position == 0 and values[0] in (0, 1) and (np.diff(values) == 1).all():
        return True
    if len(np.unique(known[:LOOKED_AT])) < min(n, LOOKED_AT):
        return False
    ordered = np.unique(known)
    if len(ordered) < n:
        return False
    if any(UNIQUE_ID_NAME.fullmatch(form) for form in (name.strip(), name.strip().lower())):
        return True
    step = np.gcd.reduce(np.diff(ordered).astype(np.int64)) if ordered[-1] - ordered[0] < 2**62 else 1
    R = float((ordered[-1] - ordered[0]) / max(step, 1) + 1)
    chance = math.lgamma(R + 1) - math.lgamma(R - n + 1) - n * math.log(R)
    return chance < ID_LOG_CHANCE


def of_text(name: str, text: pl.Series) -> Column:
    """The role of a column of text, null where a cell is blank."""
    known = text.drop_nulls()
    counts = known.value_counts(name="_times" if name == "count" else "count")
    times = counts.to_series(1)
    if len(times) < 2:
        return Column(name, "constant")
    repeated = int(times.filter(times > 1).sum())
    few = len(times) <= MAX_LEVELS and 2 * repeated >= len(known)
    if name_is_id(name) and not is_prose(known):
        return Column(name, "id")
    if few:
        levels = counts.to_series(0).sort().to_list()
        return of_levels(name, levels)
    return Column(name, "text" if is_prose(known) or 2 * repeated >= len(known) else "id")


def of_levels(name: str, levels: Sequence[str]) -> Column:
    """A flag, an ordered category if the values are those of a well-known scale, or a category."""
    low = {level.strip().lower(): level for level in levels}
    if len(low) == len(levels) == 2 and set(low) in FLAGS:
        first = next(word for word in low if word in LOW)
        return Column(name, "flag", (low.pop(first), *low.values()))
    if len(low) == len(levels) >= MIN_SCALE_LEVELS:
        for scale in SCALES:
            if set(low) <= set(scale):
                return Column(name, "ordered", tuple(low[word] for word in scale if word in low))
    return Column(name, "category", tuple(levels))


def is_prose(known: pl.Series) -> bool:
    """Check that the cells are sentences rather than names."""
    head = known.head(LOOKED_AT)
    words, letters = head.str.count_matches(r"\S+").to_numpy(), head.str.len_chars().to_numpy()
    return len(head) > 0 and bool(words.mean() >= MIN_WORDS or letters.mean() >= MIN_LETTERS)


def is_code(text: pl.Series) -> bool:
    """Check that digits are a code: all of one width, some of them with a zero in front, such as 01234."""
    known = text.drop_nulls()
    if not len(known) or not re.fullmatch(rf"\d{{{MIN_CODE_DIGITS},}}", known[0]):
        return False
    if not known.head(LOOKED_AT).str.contains(r"^\d+$").all():
        return False
    widths = known.str.len_bytes()
    return bool(
        len(known) > 0
        and widths.min() == widths.max()
        and known.str.contains(r"^\d+$").all()
        and known.str.starts_with("0").any()
        and not known.str.contains("^0*$").all()
    )


def as_flag(name: str) -> Column:
    """A column of truth values."""
    return Column(name, "flag", ("false", "true"))


def as_category(name: str, column: pl.Series, ordered: bool = False) -> Column:
    """Every distinct value is a level: in the order of an Enum, else sorted."""
    if isinstance(column.dtype, pl.Enum):
        return Column(name, "ordered", tuple(column.dtype.categories.to_list()))
    values = column.drop_nulls().unique().sort()
    return Column(name, "ordered" if ordered else "category", tuple(values.cast(pl.String).to_list()))


def codes_of(column: Column, series: pl.Series) -> np.ndarray:
    """The codes of the levels, days of dates, else the numbers; NaN where a cell is blank, or no level.

    >>> codes_of(Column("x", "category", ("a", "b")), pl.Series(["b", None, "a", "c"])).tolist()
    [1.0, nan, 0.0, nan]
    """
    if column.levels:
        numeric = series.dtype.is_numeric()
        if numeric:
            places = {float(level): float(code) for code, level in enumerate(column.levels)}
            found = series.cast(pl.Float64).replace_strict(places, default=None, return_dtype=pl.Float64)
        else:
            codes = series.cast(pl.String).cast(pl.Enum(list(column.levels)), strict=False).to_physical()
            found = codes.cast(pl.Float64)
    elif column.role == "date":
        found = series.cast(pl.Datetime("us")).to_physical().cast(pl.Float64) / MICROSECONDS_PER_DAY
    else:
        found = series.cast(pl.Float64)
    return found.fill_null(float("nan")).to_numpy()


def decode(column: Column, values: np.ndarray, dtype: pl.DataType) -> pl.Series:
    """Cells of a column's own type nearest to codes, days or numbers; null where there is none.

    >>> decode(Column("x", "category", ("a", "b")), np.array([0.9, np.nan, 7.0]), pl.String()).to_list()
    ['b', None, 'b']
    """
    known = ~np.isnan(values)
    if column.levels:
        codes = np.clip(np.rint(np.where(known, values, 0)), 0, len(column.levels) - 1).astype(np.int64)
        if dtype == pl.Boolean:
            found = pl.Series(column.name, codes == 1)
        else:
            text = pl.Series(column.name, column.levels, dtype=pl.String).gather(codes)
            found = (text.cast(pl.Float64) if dtype.is_numeric() else text).cast(dtype)
    elif column.role == "date":
        micros = np.where(known, values, 0) * MICROSECONDS_PER_DAY
        found = pl.Series(column.name, micros.astype(np.int64)).cast(pl.Datetime("us")).cast(dtype)
    else:
        whole = column.role == "whole" or dtype.is_integer()
        numbers = np.where(known, values, 0)
        found = pl.Series(column.name, np.rint(numbers) if whole else numbers).cast(dtype, strict=False)
    return found.set(pl.Series(~known), None) if not known.all() else found
