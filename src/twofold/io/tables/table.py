"""What a table is once it is read: a matrix of numbers, and beside it everything that is not one.

Formats hand over `Piece`s (columns as they stand in one file); `assemble` stacks them and decides, column by
column, what is a number, what names the rows, and what is only carried along. Nothing is dropped in silence:
every decision that is not plain from the file itself is a line in `notes`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from twofold.core.checks import InputError
from twofold.core.spelling import did_you_mean, spell_parameters
from twofold.io.tables.columns import (
    BLANKS,
    MISSING_WORDS,
    PLAIN,
    Numbers,
    Written,
    blank_codes,
    cells,
    fill_blanks,
    is_grouped,
    plain_numbers,
    read_dates,
    read_form,
    to_numbers,
)
from twofold.io.tables.odd import say_odd
from twofold.io.tables.roles import (
    CODED,
    LOOKED_AT,
    Column,
    as_category,
    as_flag,
    codes_of,
    is_code,
    is_whole,
    of_numbers,
    of_text,
)
from twofold.io.tables.sentinels import say_sentinels
from twofold.io.tables.write import COMMAS, Dialect

MAX_NAMED = 6  # columns or cells named in a sentence
MIN_MIXED_NUMBERS, MAX_MIXED_LEVELS = 3, 20  # values of a category that are numbers, and all values
NUMERIC = ("number", "whole", "flag", "constant")  # roles of columns that may be in the matrix of numbers


@dataclass
class Piece:
    """The columns of one file: text as it stands, or typed where the format has types."""

    frame: pl.DataFrame
    name: str  # what messages call the file
    lines: np.ndarray | None = None  # the line each row starts on, where lines exist
    decimal_comma: bool = False
    notes: list[str] = field(default_factory=list)
    delimiter: str = ","


@dataclass
class Table:
    """A table ready for an estimator.

    `numbers` is float64 (n,d) with NaN for blanks, or CSR, or the path of a file not yet read: the columns that hold
    numbers, but identifiers. `schema` says what every column that may be used is, and `frame` has all columns of the
    input in their order and their types; it is None where the input is an array. `coded()` gives all columns that a
    model can use as numbers, categories by their codes.
    """

    numbers: np.ndarray | sp.csr_array | Path
    columns: list[str]
    ids: pl.Series | None = None
    others: pl.DataFrame = field(default_factory=pl.DataFrame)
    notes: list[str] = field(default_factory=list)
    source: str = ""
    forms: dict[str, Written] = field(default_factory=dict)  # how numbers are written, where that is not plain
    schema: list[Column] = field(default_factory=list)
    frame: pl.DataFrame | None = None
    aside: list[str] = field(default_factory=list)  # those of the notes that tell what `numbers` leaves out
    is_coded: bool = False  # True once `coded` was called
    dialect: Dialect = COMMAS  # how the text of the file is written

    def __post_init__(self) -> None:
        self.schema = self.schema or [Column(name, "number") for name in self.columns]

    @property
    def named(self) -> bool:
        """Say whether the columns came with names, rather than being numbered here."""
        return not all(re.fullmatch(r"column_\d+", name) for name in self.columns)

    def array(self) -> np.ndarray | sp.csr_array:
        """The numbers in memory."""
        if not self.columns:
            names = [column.name for column in self.schema]
            raise InputError(f"{self.source} has no column of numbers, only {quote_names(names)}.")
        if not isinstance(self.numbers, Path):
            return self.numbers
        if self.numbers.suffix == ".npy":
            return np.load(self.numbers).astype(np.float64)
        return pl.read_parquet(self.numbers).to_numpy().astype(np.float64)

    def coded(self) -> tuple[np.ndarray | sp.csr_array, list[Column]]:
        """(n,d) every column that a model can use, and what each is: NaN for blanks, levels by code, dates as days.

        From then on the notes tell what this matrix leaves out.
        """
        if self.frame is None:
            return self.array(), self.schema
        self.is_coded = True
        used = [column for column in self.schema if column.role in CODED]
        X = np.empty((self.frame.height, len(used)))
        for j, column in enumerate(used):
            X[:, j] = codes_of(column, self.frame[column.name])
        names = None if self.ids is None else self.ids.name
        self.notes[:] = [note for note in self.notes if note not in self.aside]
        self.aside = say_aside(self.schema, self.frame, [names, *(column.name for column in used)])
        self.notes += self.aside
        return X, used


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


def quote_names(names: Sequence[str], most: int = MAX_NAMED) -> str:
    """The first names in quotation marks, the rest counted."""
    return join_first([f'"{name}"' for name in names[:most]], most, len(names))


def join_first(words: Sequence[str], most: int, count: int | None = None) -> str:
    """The first words, the rest counted.

    >>> join_first(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = (len(words) if count is None else count) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")


def check_names(parameter: str, names: Sequence[str], columns: Sequence[str], source: str) -> None:
    """Refuse a name that is no column, with the one it may have meant."""
    for name in names:
        if name not in columns:
            hint = did_you_mean(name, columns, f"It has {quote_names(columns)}.")
            raise InputError(f'⟨{parameter}={name}⟩: {source} has no column "{name}". {hint}')


def blanks_of(missing: Sequence[Any]) -> frozenset[str]:
    """List what stands for a blank, in lower case."""
    return BLANKS | {(f"{one:g}" if isinstance(one, float) else str(one)).strip().lower() for one in missing}


def assemble(
    pieces: list[Piece],
    source: str,
    missing: Sequence[Any] = (),
    drop: Sequence[str] = (),
    columns: Sequence[str] = (),
    id: Sequence[str] = (),
    category: Sequence[str] = (),
    number: Sequence[str] = (),
    known: Sequence[Column] = (),
) -> Table:
    """Stack the pieces and find the role of every column; see `read_table` for the parameters."""
    frame = stack(pieces)
    columns = [*columns, *category, *number] if columns else columns
    wishes = read_wishes(frame.columns, source, drop=drop, columns=columns, id=id, category=category, number=number)
    notes = [note for piece in pieces for note in piece.notes]
    blanks = blanks_of(missing)
    fitted = {column.name: column for column in known if column.name in frame.columns}
    wishes = {name: wish_of(column) for name, column in fitted.items()} | wishes
    read = read_columns(frame, pieces, blanks, wishes, notes)
    for name, column in fitted.items():
        if read[name].column is not None:
            read[name].column = column
            read[name].series = leave_out_missing_words(read[name].series, column)
    forms = {name: one.form for name, one in read.items() if one.form != PLAIN and one.column is not None}
    notes += say_forms(forms)
    schema = [one.column for one in read.values() if one.column is not None]
    own = [column for column in schema if name_is_used(column.name, columns)]
    schema = use_numbered(own, read) if not any(column.role in CODED for column in own) else schema
    names = find_row_names(schema, read, id)
    schema = [column for column in schema if name_is_used(column.name, columns) or column.name == names]
    found = {column.name: read[column.name].values for column in schema if column.role in NUMERIC}
    numbers = {name: values for name, values in found.items() if values is not None}
    if not any(column.role in CODED for column in schema) and not numbers:
        raise InputError(explain_unusable(source, columns or frame.columns, read))
    others = [column.name for column in schema if column.name not in numbers and column.name != names]
    typed = flat(pl.DataFrame([one.series for one in read.values()]))
    notes += say_roles(schema, names)
    aside = say_aside(schema, typed, [*numbers, names])
    notes += aside + say_sentinels(numbers) + [spell_parameters(note) for note in say_odd(schema, typed)]
    matrix = np.column_stack(list(numbers.values())) if numbers else np.empty((frame.height, 0))
    ids = typed[names] if names is not None else None
    table = Table(matrix, list(numbers), ids, typed.select(others), notes, source, forms, schema, typed, aside)
    table.dialect = find_dialect(pieces[0], read)
    return table


def explain_unusable(source: str, names: Sequence[str], read: Mapping[str, Read]) -> str:
    """Say why no column of a table can be fitted."""
    if all(read[name].series.null_count() == len(read[name].series) for name in names):
        return f"{source} has no column of numbers: every cell is blank. Give a table with values."
    found = [read[name].column for name in names]
    texts = any(column is not None and column.role == "text" for column in found)
    hint = " Texts are for the verb topics." if texts else ""
    return f"{source} has no column of numbers, only {quote_names(names)}.{hint}"


def find_dialect(piece: Piece, read: Mapping[str, Read]) -> Dialect:
    """Return how a result must be written to look like the input."""
    comma = any(one.form.decimal == "," for one in read.values())
    points = any(one.series.dtype.is_float() and one.form.decimal == "." for one in read.values())
    dates = {name: one.date for name, one in read.items() if one.date not in ("", "%Y-%m-%d")}
    return Dialect(piece.delimiter, comma or (piece.decimal_comma and not points), dates)


@dataclass
class Read:
    """A column of a file, as it is understood."""

    series: pl.Series  # typed, null where a cell is blank
    values: np.ndarray | None = None  # its numbers, if it holds any
    form: Written = PLAIN
    column: Column | None = None  # None: left out
    date: str = ""  # how its dates are written


def read_wishes(names: Sequence[str], source: str, **wishes: Sequence[str]) -> dict[str, str]:
    """Say what the user wants of each column: "drop", "id", "category", "number"; "other" if it is not chosen.

    A column that is wanted as something counts as chosen.
    """
    for parameter, given in wishes.items():
        check_names(parameter, given, names, source)
    roles = ("drop", "id", "category", "number")
    out: dict[str, str] = {}
    for role in roles:
        for name in wishes[role]:
            if name in out:
                raise InputError(f"⟨{out[name]}={name}⟩ and ⟨{role}={name}⟩ exclude each other. Leave one out.")
            out[name] = role
    chosen = wishes["columns"]
    return dict.fromkeys((name for name in names if chosen and name not in chosen), "other") | out


def wish_of(column: Column) -> str:
    """Return how a column must be read so that it gets the role it had in another table."""
    if column.levels and column.role != "flag":
        return "category"
    if column.role in ("number", "whole") or (column.levels and hold_numbers(column.levels)):
        return "number"
    return "id" if column.role == "id" else ""


def hold_numbers(levels: Sequence[str]) -> bool:
    """Tell whether levels are numbers."""
    return all(level.lstrip("-").replace(".", "", 1).isdecimal() for level in levels)


def name_is_used(name: str, chosen: Sequence[str]) -> bool:
    return not chosen or name in chosen


def read_columns(
    frame: pl.DataFrame, pieces: list[Piece], blanks: frozenset[str], wishes: Mapping[str, str], notes: list[str]
) -> dict[str, Read]:
    """Every column typed, and its role; those that are left out have none, but for such as may name the rows."""
    comma = any(piece.decimal_comma for piece in pieces)
    plain = plain_numbers(frame, blanks)
    out: dict[str, Read] = {}
    for position, column in enumerate(frame.iter_columns()):
        name, wish = column.name, wishes.get(column.name, "")
        read = plain[name] if name in plain else to_numbers(column, blanks, comma)
        if read.kind == "number" and read.series is not None and not wish:
            out[name] = Read(read.series, read.values, PLAIN, Column(name, "number"))
            continue
        kind = read.kind
        if kind == "mixed":
            if wish == "number" or (not wish and not is_mixed_category(column, read.values, blanks)):
                raise InputError(explain_mixed(column, read.values, pieces, blanks))
            kind = "text"
            if not wish:
                notes.append(f'"{name}" holds categories: {quote_names(find_offenders(column, read.values, blanks))}')
        if kind == "text" and wish == "number":
            raise InputError(explain_mixed(column, np.full(len(column), np.nan), pieces, blanks))
        if kind == "number" and wish not in ("drop", "other"):
            check_finite(column, read.values, pieces)
        out[name] = understand(column, read._replace(kind=kind), position, wish, blanks)
    if any(one.form.decimal == "," for one in out.values()):  # then points in the same file are no decimal ones
        for position, (name, one) in enumerate(out.items()):
            if one.values is not None and one.form == PLAIN and is_grouped(frame[name], blanks):
                form = Written(",", ".")
                values = blank_codes(fill_blanks(read_form(cells(frame[name], blanks), form)), blanks)
                out[name] = understand(
                    frame[name], Numbers(values, "number", form), position, wishes.get(name, ""), blanks
                )
    notes += say_missing_words(frame, out, blanks)
    return out


def leave_out_missing_words(cells: pl.Series, column: Column) -> pl.Series:
    """The cells of a fitted category, words for missing values as blanks unless the fit had them as levels."""
    if cells.dtype != pl.String or not column.levels:
        return cells
    words = cells.str.strip_chars().str.to_lowercase().is_in(list(MISSING_WORDS)) & ~cells.is_in(list(column.levels))
    return cells.set(words.fill_null(False), None) if words.any() else cells


def is_mixed_category(column: pl.Series, values: np.ndarray, blanks: frozenset[str]) -> bool:
    """Tell whether whole numbers and a word among them are the values of a category, such as 4, 6 and "rotary"."""
    levels = of_text(column.name, cells(column, blanks)).levels
    numbers = len(np.unique(values[~np.isnan(values)])) if levels else 0
    return numbers >= MIN_MIXED_NUMBERS and len(levels) <= MAX_MIXED_LEVELS and is_whole(values)


def find_offenders(column: pl.Series, values: np.ndarray, blanks: frozenset[str]) -> list[str]:
    """The distinct cells that are neither numbers nor blanks."""
    text = cells(column, blanks)
    return text.filter(pl.Series(np.isnan(values)) & text.is_not_null()).unique(maintain_order=True).to_list()


def say_missing_words(frame: pl.DataFrame, read: Mapping[str, Read], blanks: frozenset[str]) -> list[str]:
    """Say which words were taken for missing values, and where: all of them, in one line."""
    found: dict[str, list[str]] = {}
    words = list(MISSING_WORDS)
    for column, (name, one) in zip(frame.get_columns(), read.items(), strict=True):
        if one.values is not None and one.form == PLAIN and one.series.null_count() == 0:
            continue
        if column.dtype != pl.String or one.column is None or one.series.null_count() <= column.null_count():
            continue
        low = column.str.strip_chars().str.to_lowercase()
        counts = column.filter(low.is_in(words) & one.series.is_null()).str.strip_chars().value_counts(sort=True)
        for word, times in counts.iter_rows():
            found.setdefault(word, []).append(f'"{name}"' + (f" ({times:,} cells)" if times > 1 else ""))
    parts = [f'"{word}" in {join_first(names, MAX_NAMED)}' for word, names in found.items()]
    return [f"taken as missing: {'; '.join(parts)}"] if parts else []


def understand(column: pl.Series, read: Numbers, position: int, wish: str, blanks: frozenset[str]) -> Read:
    """The role of a column, and its cells in the type that goes with it."""
    name, kind, form = column.name, read.kind, read.form
    values = read.values if kind == "number" else None
    if kind == "blank" and wish == "number":
        values = np.full(len(column), np.nan)
    written, date = column.dtype == pl.String, ""
    if values is not None and wish != "number" and written and is_code(column):
        values, kind = None, "text"
    if values is not None:
        truth = column.dtype == pl.Boolean or (written and is_truth(column, values))
        found = as_flag(name) if truth and np.nanmin(values) < np.nanmax(values) else None
        found = found or of_numbers(name, values, position, wish == "number")
        typed = type_numbers(column, values, found, truth)
    else:
        typed, found, date = type_others(column, kind, read.series, blanks)
    if wish in ("drop", "other"):
        kept = found if wish == "other" and found.role == "id" else None
        return Read(typed, values, form, kept, date)
    if wish == "id":
        found = Column(name, "id")
        typed = whole(cells(column, blanks)) if written else column
    elif wish == "category":
        if written:
            typed = cells(column, blanks - MISSING_WORDS) if values is None else as_written(column, values)
        found = as_category(name, typed)
    return Read(typed, values, form, found, date)


def is_truth(column: pl.Series, values: np.ndarray) -> bool:
    """Tell whether text that was read as 0 and 1 says true and false."""
    first = int(np.argmax(~np.isnan(values)))
    return str(column[first]).strip().lower() in ("true", "false")


def type_numbers(column: pl.Series, values: np.ndarray, found: Column, truth: bool) -> pl.Series:
    """Numbers in their own type: whole ones as such, identifiers as they are written."""
    if column.dtype != pl.String:
        blank = np.isnan(values)
        return column.set(pl.Series(blank), None) if blank.any() and column.null_count() < blank.sum() else column
    if found.role == "id":
        return whole(column.str.strip_chars())
    typed = pl.Series(column.name, values).fill_nan(None) if np.isnan(values).any() else pl.Series(column.name, values)
    if truth:
        return typed == 1.0
    if found.role == "number" or not is_whole(values[:LOOKED_AT]) or not is_whole(values):
        return typed
    return typed.cast(pl.Int64) if np.nanmax(np.abs(values), initial=0.0) < 2**53 else typed


def type_others(
    column: pl.Series, kind: str, text: pl.Series | None, blanks: frozenset[str]
) -> tuple[pl.Series, Column, str]:
    """A column without numbers in its own type, its role, and how its dates are written."""
    name = column.name
    if kind == "blank":
        empty = column.cast(pl.String) if column.dtype == pl.Null else column.clear(len(column))
        return empty, Column(name, "constant"), ""
    if column.dtype in (pl.Categorical, pl.Enum):
        return column, as_category(name, column), ""
    if column.dtype.is_temporal() and column.dtype not in (pl.Duration, pl.Time):
        return column, Column(name, "date" if column.n_unique() > 1 else "constant"), ""
    if column.dtype != pl.String:
        return column, Column(name, "text"), ""
    if text is None or text.null_count() > column.null_count():
        text = cells(column, blanks - {"none"})  # among words, none is one
    if kind == "date":
        dates, form = read_dates(text)
        if dates is not None:
            return dates, Column(name, "date" if dates.min() != dates.max() else "constant"), form
    return text, of_text(name, text), ""


def as_written(column: pl.Series, values: np.ndarray) -> pl.Series:
    """Numbers that are names of categories: whole ones as such."""
    return type_numbers(column, values, Column(column.name, "whole"), False)


def use_numbered(schema: list[Column], read: dict[str, Read]) -> list[Column]:
    """Numbers that would name rows, as whole numbers: without them nothing could be fitted."""
    out = []
    for column in schema:
        values = read[column.name].values
        numbered = column.role == "id" and values is not None
        out.append(of_numbers(column.name, values, 1, True) if numbered else column)  # type: ignore[arg-type]
    return out


def find_row_names(schema: list[Column], read: dict[str, Read], wished: Sequence[str]) -> str | None:
    """The identifier that names the rows: the one named, else the first without blanks that tells every row apart."""
    for column in schema:
        if column.name in wished:
            return column.name
    for column in schema:
        if column.role == "id" and is_key(read[column.name].series):
            return column.name
    return None


PLURALS = {
    "number": "numbers",
    "whole": "whole numbers",
    "flag": "yes or no",
    "category": "categories",
    "ordered": "ordered categories",
    "date": "dates",
    "text": "text",
    "id": "identifiers",
    "constant": "constant",
}


def say_roles(schema: list[Column], names: str | None) -> list[str]:
    """Say what the columns are, in one line, unless all are numbers."""
    groups: dict[str, list[str]] = {}
    for column in schema:
        if column.name != names:
            groups.setdefault(column.role, []).append(column.name)
    parts = [f'"{names}" names the rows'] if names is not None else []
    if groups.keys() - {"number", "whole"}:
        parts += [f"{PLURALS[role]}: {quote_names(groups[role], 4)}" for role in PLURALS if role in groups]
    return ["; ".join(parts)] if parts else []


def say_aside(schema: list[Column], frame: pl.DataFrame, used: Sequence[str | None]) -> list[str]:
    """Say which columns are not used, and why."""
    why = {"date": "dates", "constant": "the same in every row", "id": "identifiers", "text": "text"}
    groups: dict[str, list[str]] = {}
    known = set(used)
    for column in schema:
        if column.name not in known:
            blank = frame[column.name].null_count() == frame.height
            reason = "blank in every row" if blank else why.get(column.role, "not numbers")
            groups.setdefault(reason, []).append(column.name)
    return [
        f"{quote_names(found)} set aside: {reason}, only carried into the output" for reason, found in groups.items()
    ]


def say_forms(forms: dict[str, Written]) -> list[str]:
    """Describe how numbers are written, wherever it had to be decided."""
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
    """Say where the first cell is that is no number, all the others there are, and what to do."""
    wrong = cells(column.cast(pl.String), blanks).is_not_null().to_numpy() & np.isnan(values)
    row, times = int(np.argmax(wrong)), int(wrong.sum())
    cell, *more = find_offenders(column.cast(pl.String), values, blanks)
    others = f", nor are {quote_names(more)}" if more else f" ({times:,} such cells)" if times > 1 else ""
    return (
        f'{place(row, pieces)}, column "{column.name}": "{cell}" is not a number{others}. {remedy(cell, column.name)}'
    )


def check_finite(column: pl.Series, values: np.ndarray, pieces: list[Piece]) -> None:
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        cell = str(column[row]).strip()
        where = f'{place(row, pieces)}, column "{column.name}"'
        raise InputError(f"{where}: {cell} is not a finite number. {remedy(cell, column.name)}")


def remedy(cell: str, column: str) -> str:
    return f"Use ⟨missing={cell}⟩ to treat it as a blank, or drop the column with ⟨drop={column}⟩."


def is_key(column: pl.Series) -> bool:
    """Check that the cells tell every row from every other."""
    cells = pl.Series(map(str, column)) if column.dtype == pl.Object else column  # objects cannot be counted
    return column.null_count() == 0 and cells.n_unique() == len(column) > 1


def whole(column: pl.Series) -> pl.Series:
    """Row names that are written as whole numbers, as such; "007" stays text."""
    if column.dtype == pl.String:
        numbers = column.cast(pl.Int64, strict=False)
        if numbers.null_count() == 0 and (numbers.cast(pl.String) == column).all():
            return numbers
    return column


def flat(others: pl.DataFrame) -> pl.DataFrame:
    """Nested columns as JSON text, so that every output format can hold them."""
    nested = [name for name, kind in others.schema.items() if kind.is_nested() or kind == pl.Object]
    as_text = {c: [None if v is None else json.dumps(v, default=str) for v in others[c].to_list()] for c in nested}
    return others.with_columns(pl.Series(c, text, dtype=pl.String) for c, text in as_text.items())
