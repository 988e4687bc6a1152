"""What is odd about a table, a sentence each: rows that are copies, columns that copy others, a kind that dominates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from twofold.io.tables.roles import CODED, Column, codes_of

MAX_ROWS = 100_000  # looked at; copies among so many rows or none are enough to say
MAX_COLUMNS = 2_000  # of a wide table, copies are not looked for
HEAD_ROWS = 1_000  # by which columns are told to be different
MIN_ROWS = 10
DIGITS = 9  # of standardized values that agree where two columns say the same
MIN_SHARE, MIN_DOMINANT = 0.75, 4  # of the columns that hold one kind
MAX_NAMED = 4
MAX_CHANCE_COPIES = 10  # times the copies that chance alone makes; so many say nothing


def say_odd(schema: Sequence[Column], frame: pl.DataFrame) -> list[str]:
    """Say what is odd about the columns that a model can use."""
    used = [column for column in schema if column.role in CODED]
    if frame.height < MIN_ROWS or len(used) > MAX_COLUMNS:
        return []
    return [*say_copied_rows(used, frame), *say_copied_columns(used, frame), *say_dominant(used)]


def say_copied_rows(used: Sequence[Column], frame: pl.DataFrame) -> list[str]:
    """Say how many rows are copies of others, where measurements make that unlikely by chance."""
    if len(used) < 2 or all(column.role != "number" for column in used):
        return []
    head = frame.select([column.name for column in used]).head(MAX_ROWS).drop_nulls()
    copies = head.height - head.n_unique()
    if copies <= MAX_CHANCE_COPIES * count_chance_copies(head):
        return []
    rows = "1 row is a copy of another one" if copies == 1 else f"{copies:,} rows are copies of others"
    return [f"{rows}{f' among the first {MAX_ROWS:,}' if frame.height > MAX_ROWS else ''}"]


def count_chance_copies(frame: pl.DataFrame) -> float:
    """Pairs of rows that would agree in all columns if these had nothing to do with each other."""
    n = frame.height
    times = [column.value_counts(name="_n")["_n"].to_numpy().astype(float) for column in frame.iter_columns()]
    pairs = max(n * (n - 1) / 2, 1.0)
    return pairs * float(np.prod([(one * (one - 1)).sum() / 2 / pairs for one in times]))


def say_copied_columns(used: Sequence[Column], frame: pl.DataFrame) -> list[str]:
    """Say which columns tell the same as an earlier one: in another unit, or under other names."""
    found: dict[bytes, Column] = {}
    out = []
    for column in used:
        first = found.setdefault(make_key(column, frame[column.name].head(HEAD_ROWS)), column)
        if first is not column and say_the_same(first, column, frame.head(MAX_ROWS)):
            equal = frame[first.name].cast(pl.String).equals(frame[column.name].cast(pl.String), null_equal=True)
            how = "is a copy of" if equal else "says the same as"
            out.append(f'"{column.name}" {how} "{first.name}"')
    more = f" and {len(out) - MAX_NAMED} more" if len(out) > MAX_NAMED else ""
    return ["; ".join(out[:MAX_NAMED]) + f"{more}: drop one with ⟨drop⟩, or it counts twice"] if out else []


def make_key(column: Column, cells: pl.Series) -> bytes:
    """A text that is the same for columns that tell the same: values without their unit, levels without their names."""
    values = codes_of(column, cells)
    if column.levels:
        order = dict.fromkeys(values[~np.isnan(values)].tolist())
        places = {code: place for place, code in enumerate(order)}
        return bytes(str([places.get(code, -1) for code in values.tolist()]), "ascii")
    with np.errstate(invalid="ignore", divide="ignore"):
        standard = (values - np.nanmean(values)) / np.nanstd(values) if not np.isnan(values).all() else values
    known = np.flatnonzero(np.abs(np.nan_to_num(standard)) > 10.0**-DIGITS)
    sign = np.sign(standard[known[0]]) if len(known) else 1.0
    return (np.round(sign * standard, DIGITS - 3) + 0.0).tobytes()


def say_the_same(a: Column, b: Column, frame: pl.DataFrame) -> bool:
    """Tell whether all rows agree."""
    x, y = (codes_of(column, frame[column.name]) for column in (a, b))
    known = ~np.isnan(x)
    if (known != ~np.isnan(y)).any() or not known.any():
        return False
    if a.levels:
        return len(np.unique(x[known] * (len(b.levels) + 1) + y[known])) == len(np.unique(x[known]))
    return bool(abs(np.corrcoef(x[known], y[known])[0, 1]) > 1 - 10.0**-DIGITS)


def say_dominant(used: Sequence[Column]) -> list[str]:
    """Say that nearly all columns are flags and categories: what is found then follows from single ones of them."""
    few = [column for column in used if column.levels]
    if len(few) < MIN_DOMINANT or len(few) == len(used) or len(few) < MIN_SHARE * len(used):
        return []
    return [f"{len(few)} of {len(used)} columns hold a few values only, and outweigh the numbers"]
