"""What a table is once it is read: a matrix of numbers, and beside it everything that is not one.

Formats hand over `Piece`s (columns as they stand in one file); `assemble` stacks them and decides, column by
column, what is a number, what names the rows, and what is only carried along. Nothing is dropped in silence:
every decision that is not plain from the file itself is a line in `notes`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from twofold.core.checks import InputError
from twofold.core.spelling import did_you_mean
from twofold.io.tables.columns import (
    BLANKS,
    PLAIN,
    Written,
    blank_codes,
    cells,
    fill_blanks,
    is_grouped,
    plain_numbers,
    read_form,
    to_numbers,
)
from twofold.io.tables.sentinels import say_sentinels

_ID_NAME = re.compile(r"(.*[_\s.-])?(id|ids|index|idx|key|name|uuid|guid)|.*[a-z](Id|ID|Key|Index|Name)")


@dataclass
class Piece:
    """The columns of one file: text as it stands, or typed where the format has types."""

    frame: pl.DataFrame
    name: str  # what messages call the file
    lines: np.ndarray | None = None  # the line each row starts on, where lines exist
    decimal_comma: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass
class Table:
    """A table ready for an estimator.

    `numbers` is float64 (n,d) with NaN for blanks, or CSR, or the path of a file not yet read.
    """

    numbers: np.ndarray | sp.csr_array | Path
    columns: list[str]
    ids: pl.Series | None = None
    others: pl.DataFrame = field(default_factory=pl.DataFrame)
    notes: list[str] = field(default_factory=list)
    source: str = ""
    forms: dict[str, Written] = field(default_factory=dict)  # how numbers are written, where that is not plain

    @property
    def named(self) -> bool:
        """Whether the columns came with names, rather than being numbered here."""
        return not all(re.fullmatch(r"column_\d+", name) for name in self.columns)

    def array(self) -> np.ndarray | sp.csr_array:
        """The numbers in memory."""
        if not isinstance(self.numbers, Path):
            return self.numbers
        if self.numbers.suffix == ".npy":
            return np.load(self.numbers).astype(np.float64)
        return pl.read_parquet(self.numbers).to_numpy().astype(np.float64)


def unique_names(names: Sequence[str]) -> tuple[list[str], list[tuple[str, str, int]]]:
    """Distinct, non-empty names, and what was changed: (old, new, position counted from 1)."""
    out: dict[str, None] = {}
    given, times = set(names), Counter[str]()
    renamed = []
    for position, old in enumerate(names, 1):
        new = old or f"column_{position}"
        while new in out or (new != old and new in given):
            times[old] += 1
            new = f"{old or 'column'}_{times[old] + 1}"
        out[new] = None
        if new != old:
            renamed.append((old, new, position))
    return list(out), renamed


def quote_names(names: Sequence[str], most: int = 6) -> str:
    """The first names in quotation marks, the rest counted."""
    shown = ", ".join(f'"{name}"' for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def check_names(parameter: str, names: Sequence[str], columns: Sequence[str], source: str) -> None:
    """Refuse a name that is no column, with the one it may have meant."""
    for name in names:
        if name not in columns:
            hint = did_you_mean(name, columns, f"It has {quote_names(columns)}.")
            raise InputError(f'⟨{parameter}={name}⟩: {source} has no column "{name}". {hint}')


def blanks_of(missing: Sequence[Any]) -> frozenset[str]:
    """What stands for a blank, in lower case."""
    return BLANKS | {(f"{one:g}" if isinstance(one, float) else str(one)).strip().lower() for one in missing}


def assemble(
    pieces: list[Piece],
    source: str,
    missing: Sequence[Any] = (),
    drop: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> Table:
    """Stack the pieces and sort their columns into numbers, ids and others; see `read_table` for the parameters."""
    frame = stack(pieces)
    check_names("drop", drop, frame.columns, source)
    check_names("columns", columns, frame.columns, source)
    frame = frame.drop(drop)
    notes = [note for piece in pieces for note in piece.notes]
    blanks = blanks_of(missing)
    numbers, kept, forms = sort_columns(frame, pieces, blanks, columns)
    notes += say_forms(forms)
    ids = name_rows(frame, numbers, kept, notes)
    if columns:
        numbers = {name: values for name, values in numbers.items() if name in columns}
        kept = {name: why for name, why in kept.items() if name in columns}
    notes += [f"{quote_names(names)} set aside: {why}" for why, names in by_reason(kept).items()]
    if not numbers:
        raise InputError(f"{source} has no column of numbers, only {quote_names(columns or frame.columns)}.")
    notes += say_sentinels(numbers)
    matrix = np.column_stack(list(numbers.values()))
    others = flat(frame.select(list(kept)))
    return Table(matrix, list(numbers), whole(frame[ids]) if ids else None, others, notes, source, forms)


def sort_columns(
    frame: pl.DataFrame, pieces: list[Piece], blanks: frozenset[str], chosen: Sequence[str]
) -> tuple[dict[str, np.ndarray], dict[str, str], dict[str, Written]]:
    """Columns of numbers; the others and why; and how numbers are written where that is not plain.

    Of columns that are not chosen only those are kept that may name the rows.
    """
    comma = any(piece.decimal_comma for piece in pieces)
    numbers: dict[str, np.ndarray] = {}
    kept: dict[str, str] = {}
    forms: dict[str, Written] = {}
    plain = plain_numbers(frame, blanks)
    for position, column in enumerate(frame.iter_columns()):
        name = column.name
        values, kind, form = plain[name] if name in plain else to_numbers(column, blanks, comma)
        if chosen and name not in chosen:
            if kind == "number" and names_rows(name, values, position):
                numbers[name] = values
            elif kind == "text" and is_key(column):
                kept[name] = kind
            continue
        if kind == "mixed":
            raise InputError(explain_mixed(column, values, pieces, blanks))
        if kind != "number":
            kept[name] = kind
            continue
        check_finite(column, values, pieces)
        numbers[name] = values
        if form != PLAIN:
            forms[name] = form
    if any(form.decimal == "," for form in forms.values()):  # then points in the same file are no decimal ones
        for name in numbers.keys() - forms.keys():
            if is_grouped(frame[name], blanks):
                forms[name] = Written(",", ".")
                numbers[name] = blank_codes(fill_blanks(read_form(cells(frame[name], blanks), forms[name])), blanks)
    return numbers, kept, forms


def say_forms(forms: dict[str, Written]) -> list[str]:
    """How numbers are written, in words, wherever it had to be decided."""
    groups: dict[str, list[str]] = {}
    for name, form in forms.items():
        marks = {".": "points", ",": "commas"}
        if form.thousands:
            groups.setdefault(f"{marks[form.thousands]} between thousands read in {{}}", []).append(name)
        if form.decimal == ",":
            groups.setdefault("decimal commas read in {}", []).append(name)
        if form.unit == "%":
            groups.setdefault("per cents in {}: 12 % is read as 12", []).append(name)
        elif form.unit:
            groups.setdefault(f"{form.unit} left out in {{}}", []).append(name)
    return [note.format(quote_names(names)) for note, names in groups.items()]


def stack(pieces: list[Piece]) -> pl.DataFrame:
    """All rows under one set of columns; a column typed differently in two files becomes text."""
    first = pieces[0]
    frames = [first.frame]
    for piece in pieces[1:]:
        missing = [c for c in first.frame.columns if c not in piece.frame.columns]
        extra = [c for c in piece.frame.columns if c not in first.frame.columns]
        if missing or extra:
            lacks = f"lacks {quote_names(missing)}" if missing else ""
            adds = f"adds {quote_names(extra)}" if extra else ""
            difference = " and ".join(filter(None, [lacks, adds]))
            raise InputError(
                f"{piece.name}: its columns are not those of {first.name}; it {difference}. "
                "Files read together need the same columns."
            )
        frames.append(piece.frame.select(first.frame.columns))
    if len(frames) == 1:
        return first.frame
    try:
        return pl.concat(frames, how="vertical_relaxed")
    except pl.exceptions.PolarsError:
        return pl.concat([frame.cast(pl.String) for frame in frames])


def place(row: int, pieces: list[Piece]) -> str:
    """File and line of a row of the stacked table."""
    for piece in pieces:
        if row < piece.frame.height:
            where = f"line {piece.lines[row]}" if piece.lines is not None else f"row {row + 1}"
            return f"{piece.name}, {where}"
        row -= piece.frame.height
    raise IndexError(row)


def explain_mixed(column: pl.Series, values: np.ndarray, pieces: list[Piece], blanks: frozenset[str]) -> str:
    row = int(np.argmax(cells(column, blanks).is_not_null().to_numpy() & np.isnan(values)))
    cell = column[row].strip()
    return f'{place(row, pieces)}, column "{column.name}": "{cell}" is not a number. {remedy(cell, column.name)}'


def check_finite(column: pl.Series, values: np.ndarray, pieces: list[Piece]) -> None:
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        cell = str(column[row]).strip()
        where = f'{place(row, pieces)}, column "{column.name}"'
        raise InputError(f"{where}: {cell} is not a finite number. {remedy(cell, column.name)}")


def remedy(cell: str, column: str) -> str:
    return f"Use ⟨missing={cell}⟩ to treat it as a blank, or drop the column with ⟨drop={column}⟩."


def shell(name: str) -> str:
    """A column name as it must be typed on a command line."""
    return name if re.fullmatch(r"[\w.+-]+", name) else quote(name)


def quote(text: str) -> str:
    return f'"{text}"' if not re.search(r'["$`\\!]', text) else shlex.quote(text)


def name_rows(
    frame: pl.DataFrame, numbers: dict[str, np.ndarray], kept: dict[str, str], notes: list[str]
) -> str | None:
    """The column that names the rows, taken out of numbers or others; more of that kind are set aside."""
    found = []
    for position, name in enumerate(frame.columns):
        if name in numbers:
            if names_rows(name, numbers[name], position):
                found.append(name)
        elif kept.get(name) == "text" and is_key(frame[name]):
            found.append(name)
    if not found or len(numbers.keys() - set(found)) == 0:
        return None
    for name in found:
        numbers.pop(name, None)
        kept.pop(name, None)
    kept.update(dict.fromkeys(found[1:], "id"))
    notes.append(f'"{found[0]}" names the rows')
    return found[0]


def is_key(column: pl.Series) -> bool:
    """Whether text tells every row from every other."""
    return column.dtype == pl.String and column.null_count() == 0 and column.n_unique() == len(column) > 1


def names_rows(name: str, values: np.ndarray, position: int) -> bool:
    """Whether whole numbers are distinct and called an id, or merely count the rows in the first column."""
    if len(values) < 3 or np.isnan(values).any() or (values != np.round(values)).any():
        return False
    if position == 0 and values[0] in (0, 1) and (np.diff(values) == 1).all():
        return True
    called_id = _ID_NAME.fullmatch(name) or _ID_NAME.fullmatch(name.lower())
    return bool(called_id) and len(np.unique(values)) == len(values)


def whole(column: pl.Series) -> pl.Series:
    """Row names that are written as whole numbers, as such; "007" stays text."""
    if column.dtype == pl.String:
        numbers = column.cast(pl.Int64, strict=False)
        if numbers.null_count() == 0 and (numbers.cast(pl.String) == column).all():
            return numbers
    return column


def by_reason(kept: dict[str, str]) -> dict[str, list[str]]:
    """Columns set aside, grouped under the sentence that explains them."""
    why = {
        "text": "not numbers, only carried into the output",
        "date": "dates, only carried into the output",
        "blank": "blank in every row",
        "id": "they name the rows too",
    }
    groups: dict[str, list[str]] = {}
    for name, kind in kept.items():
        groups.setdefault(why[kind], []).append(name)
    return groups


def flat(others: pl.DataFrame) -> pl.DataFrame:
    """Nested columns as JSON text, so that every output format can hold them."""
    nested = [c.name for c in others.iter_columns() if c.dtype.is_nested() or c.dtype == pl.Object]
    as_text = {c: [None if v is None else json.dumps(v, default=str) for v in others[c].to_list()] for c in nested}
    return others.with_columns(pl.Series(c, text, dtype=pl.String) for c, text in as_text.items())
