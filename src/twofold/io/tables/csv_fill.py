"""The table that `twofold complete` writes: as it was read, with its blanks filled.

Delimited text is edited in place, so that nothing but the blanks changes. Other formats keep their columns, their
order and their types. A number is written with the decimals of its column, a category as its column spells it, a date
in the format of its column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from twofold.core.checks import InputError
from twofold.io.open import read_bytes
from twofold.io.tables import arrays
from twofold.io.tables.columns import CLOCK_FORMATS, DATE_FORMATS, PLAIN, Written, parse_numbers
from twofold.io.tables.csv_cells import Text, content, edit_cells, open_text, records
from twofold.io.tables.delimited import read_delimited
from twofold.io.tables.read import ELSEWHERE, EXCEL, SQLITE, find_files, kind, read_one, stream_files
from twofold.io.tables.roles import Column, decode
from twofold.io.tables.table import Piece, Table, assemble, blanks_of, stack, unique_names

OTHERS = (*SQLITE, *ELSEWHERE, *EXCEL, *arrays.ENDINGS, ".parquet", ".pq", ".jsonl", ".ndjson")
SD_SUFFIX, P_SUFFIX = "_sd", "_p"  # of names of columns of standard deviations, and of probabilities


class Source(NamedTuple):
    """A table and how it stood in its file."""

    table: Table
    piece: Piece | None  # its columns as they stood; None for a bare array
    text: Text | None  # its bytes, if it is delimited text


def read_source(inputs: Sequence[str], **reading: Any) -> Source:
    """One file, or several that are no text as one table; see `read_table` for `reading`.

    What is larger than the memory budget stays on disk.
    """
    files = [file for one in inputs for file in find_files(one)]
    if len(files) > 1:
        return read_several(inputs, files, reading)
    given = inputs[0]
    path = files[0].partition("::")[0]
    if path == "-" or kind(path) not in OTHERS:
        name = "standard input" if path == "-" else path
        data = read_bytes(files[0])
        piece = read_delimited(data, name)
        return Source(assemble([piece], name, **reading), piece, open_text(data, name))
    part = read_one(files[0], streaming=not any(reading.values()))
    if isinstance(part, Piece):
        return Source(assemble([part], given, **reading), part, None)
    return Source(arrays.stack_arrays([part], given, **reading), None, None)


def read_several(inputs: Sequence[str], files: list[str], reading: Mapping[str, Any]) -> Source:
    """Files one below the other: arrays, or tables whose format has types."""
    given = inputs[0] if len(inputs) == 1 else f"{inputs[0]} and {len(inputs) - 1} more"
    if any(kind(file) not in OTHERS for file in files):
        raise InputError(f"{given} means {len(files)} files, and text is completed one file at a time. Name one.")
    table = stream_files(inputs, files)
    if table is not None:
        if any(reading.values()):
            left = ", ".join(f"⟨{name}⟩" for name, value in reading.items() if value)
            raise InputError(
                f"{given} is larger than the memory budget, and then all its columns are used as they are. Leave out "
                f"{left}, or raise the budget with ⟨memory⟩."
            )
        return Source(table, None, None)
    parts = [read_one(file) for file in files]
    pieces = [part for part in parts if isinstance(part, Piece)]
    arrays_read = [part for part in parts if isinstance(part, Table)]
    if pieces and arrays_read:
        raise InputError(f"{given} mixes arrays ({arrays_read[0].source}) and tables ({pieces[0].name}).")
    if arrays_read:
        return Source(arrays.stack_arrays(arrays_read, given, **reading), None, None)
    return Source(assemble(pieces, given, **reading), Piece(stack(pieces), given), None)


class Style(NamedTuple):
    """How the cells of a column are written, numbers to how many decimals."""

    decimals: int
    form: Written = PLAIN
    exponent: bool = False
    levels: tuple[str, ...] = ()  # how the levels of a category are spelled, by their codes
    date: str = ""  # the format of dates
    rounds: bool = True  # whether values in a frame have no more decimals either

    def write(self, value: float) -> str:
        if self.levels:
            return self.levels[round(value)]
        if self.date:
            return as_dates(np.array([value])).dt.strftime(self.date)[0]
        group = "," if self.form.thousands else ""
        text = f"{value:.6g}" if self.exponent else f"{value:{group}.{self.decimals}f}"
        text = text[1:] if re.fullmatch(r"-0(\.0*)?", text) else text
        return self.form.before + self.put_marks(text) + self.form.after

    def put_marks(self, text: str) -> str:
        """A number with the column's own marks."""
        return text.translate({ord("."): self.form.decimal, ord(","): self.form.thousands})

    def write_sd(self, value: float) -> str:
        """Format how sure a filled cell is, with at least two significant digits."""
        if not value > 0:
            return "0"
        digits = max(0 if self.exponent else self.decimals, 1 - math.floor(math.log10(value)))
        text = f"{value:.3g}" if self.exponent or digits > 12 else f"{value:.{digits}f}"
        return self.put_marks(text)


def style_of(column: pl.Series, known: np.ndarray, form: Written | None = None) -> Style:
    """Read off the known cells of a column of text; `form` is how its numbers were read, if that is known."""
    cells = column.filter(pl.Series(known)).str.strip_chars()
    if form is None:
        form = parse_numbers(cells, True)[1] if len(cells) else PLAIN
    decimals = cells.str.extract(rf"[{form.decimal}](\d+)\D*$").str.len_chars().fill_null(0).to_numpy()
    exponent = bool(cells.str.contains(r"(?i)\de").any())
    return Style(int(decimals.max(initial=0)), form, exponent, rounds=not exponent)


def style_of_levels(source: Source, column: Column, cells: pl.Series, known: np.ndarray) -> Style:
    """Return how the levels of a category are spelled in a column of text."""
    assert source.table.frame is not None and source.piece is not None
    typed = source.table.frame[column.name].dtype
    written = cells.filter(pl.Series(known)).str.strip_chars()
    levels = column.levels
    if typed == pl.Boolean:
        lower = written.str.to_lowercase()
        spelled = {word: written.filter(lower == word).unique().sort().to_list() for word in levels}
        like = str.upper if written.str.contains(r"^[A-Z]{2}").any() else str.capitalize
        other = like if written.str.contains(r"^[A-Z]").any() else str
        levels = tuple(spelled[word][0] if spelled[word] else other(word) for word in levels)
    elif typed.is_numeric():
        style = style_of(cells, known, source.table.forms.get(column.name, PLAIN))
        levels = tuple(style.write(float(level)) for level in levels)
    return Style(2, Written(",") if source.piece.decimal_comma else PLAIN, levels=levels)


def style_of_dates(cells: pl.Series, known: np.ndarray, days: np.ndarray) -> Style:
    """The format that gives the known cells of a column of dates back, or else that of the calendar's standard."""
    written, dates = cells.filter(pl.Series(known)).str.strip_chars(), as_dates(days[known])
    clocks = CLOCK_FORMATS if written.str.contains(":", literal=True).any() else ("",)
    formats = [form + clock for form in DATE_FORMATS for clock in clocks]
    formats += [form.replace("%d", "%-d").replace("%m", "%-m") for form in formats]
    same = (form for form in formats if dates.dt.strftime(form).equals(written.alias("")))
    return Style(0, date=next(same, "%Y-%m-%d" + clocks[0]))


def as_dates(days: np.ndarray) -> pl.Series:
    """Days since 1970 as times, to the second."""
    return pl.Series("", np.round(days * 86_400).astype(np.int64) * 1_000_000).cast(pl.Datetime("us"))


def styles(source: Source, columns: Sequence[Column], filled: np.ndarray, blank: np.ndarray) -> dict[int, Style]:
    """The style of each column that has blanks."""
    assert source.piece is not None
    frame, out = source.piece.frame, {}
    for j in np.flatnonzero(blank.any(axis=0)).tolist():
        column, cells, known = columns[j], frame[columns[j].name], ~np.isnan(filled[:, j]) & ~blank[:, j]
        if cells.dtype != pl.String:
            out[j] = Style(6, rounds=False)
        elif column.levels:
            out[j] = style_of_levels(source, column, cells, known)
        elif column.role == "date":
            out[j] = style_of_dates(cells, known, filled[:, j])
        else:
            out[j] = style_of(cells, known, source.table.forms.get(column.name, PLAIN))
    return out


# --- delimited text -----------------------------------------------------------------------------------------


def as_text(
    source: Source,
    columns: Sequence[Column],
    filled: np.ndarray,
    blank: np.ndarray,
    sure: np.ndarray | None,
    missing: Sequence[Any],
) -> bytes:
    """The file's own bytes with the blanks filled, and at the end columns of how sure these are if wanted.

    `columns` are those of filled (n,d), of which `blank` says what was blank.
    """
    text, piece = source.text, source.piece
    assert text is not None and piece is not None and piece.lines is not None
    look = styles(source, columns, filled, blank)
    places = {j: piece.frame.columns.index(columns[j].name) for j in look}
    cells: dict[int, dict[int, str]] = {}
    for i, j in zip(*np.nonzero(blank), strict=True):
        cells.setdefault(int(piece.lines[i]), {})[places[int(j)]] = look[int(j)].write(filled[i, j])
    check_places(text, cells, piece.name, missing)
    tails = {} if sure is None else dict(tails_of(source, columns, sure, blank, look))
    return text.encode_text(b"".join(edit_cells(text, cells, tails)))


def check_places(text: Text, cells: dict[int, dict[int, str]], name: str, missing: Sequence[Any]) -> None:
    """Check that what is replaced is blank in the file, too: quotes in odd places can be read in two ways."""
    blanks = blanks_of(missing)
    codes = {float(one) for one in blanks if re.fullmatch(r"[+-]?(\d+(\.\d+)?|inf)", one)}
    left = set(cells)
    for record in records(text):
        for j in cells.get(record.line, {}):
            a, b = content(text, record.fields[j]) if j < len(record.fields) else (0, 0)
            cell = text.data[a:b].decode(text.code).replace(",", ".").lower()
            if j >= len(record.fields) or not (cell in blanks or _number(cell) in codes):
                raise InputError(
                    f"{name}, line {record.line}, field {j + 1}: its quotes can be read in two ways. Put quotes around "
                    'the whole field, and write a quote inside it as "".'
                )
        left.discard(record.line)
    if left:
        raise InputError(f"{name}, line {min(left)}: its quotes can be read in two ways. Quote whole fields only.")


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def tails_of(
    source: Source, columns: Sequence[Column], sure: np.ndarray, blank: np.ndarray, look: dict[int, Style]
) -> Iterator[tuple[int, str]]:
    """Return what every record gets at its end: names for the header, and how sure a filled cell is."""
    text, piece = source.text, source.piece
    assert text is not None and piece is not None and piece.lines is not None
    nothing = "NA" if text.delimiter == " " else ""
    ended = {record.line for record in records(text) if len(record.fields) > piece.frame.width}  # by an empty field
    for i, line in enumerate(piece.lines):
        values = [look[j].write_sd(sure[i, j]) if blank[i, j] else nothing for j in look]
        lead = text.delimiter if line not in ended else ""
        yield int(line), lead + text.delimiter.join(values)
    begin = int(piece.lines[0])
    above = takewhile(lambda record: record.line < begin, records(text))
    filled = [record for record in above if record.fields and record.end > record.fields[0][0]]
    if filled:  # there is a header, and titles may stand above it
        first = filled[-1]
        quotes = text.data[first.fields[-1][0] : first.fields[-1][0] + 1] == b'"'
        names = sure_names(source, [columns[j] for j in look])
        lead = text.delimiter if first.line not in ended else ""
        yield first.line, lead + text.delimiter.join(_quote_name(n, text.delimiter, quotes) for n in names)


def sure_names(source: Source, columns: Sequence[Column]) -> list[str]:
    """Names for columns of standard deviations and probabilities, which the table does not have."""
    taken = list(source.piece.frame.columns) if source.piece is not None else source.table.columns
    new = (column.name + (P_SUFFIX if column.levels else SD_SUFFIX) for column in columns)
    return unique_names([*taken, *new])[0][len(taken) :]


def _quote_name(name: str, delimiter: str, quotes: bool) -> str:
    if quotes or any(mark in name for mark in (delimiter, '"', "\n", "\r")):
        return '"' + name.replace('"', '""') + '"'
    return name


# --- frames -------------------------------------------------------------------------------------------------


def as_frame(
    source: Source, columns: Sequence[Column], filled: np.ndarray, blank: np.ndarray, sure: np.ndarray | None
) -> pl.DataFrame:
    """All columns in their order, blanks filled; numbers read from text become numbers."""
    wide = np.flatnonzero(blank.any(axis=0)).tolist()
    if source.table.frame is None:
        full = [values_of(column, filled[:, j]) for j, column in enumerate(columns)]
        frame = pl.DataFrame([pl.Series(c.name, x) for c, x in zip(columns, full, strict=True)])
    else:
        assert source.piece is not None
        typed, written = source.table.frame, source.piece.frame
        frame = typed.with_columns(
            column for column in written.iter_columns() if column.dtype == typed[column.name].dtype
        )
        look = styles(source, columns, filled, blank)
        new = [fill_column(frame[columns[j].name], columns[j], filled[:, j], blank[:, j], look[j]) for j in wide]
        frame = frame.with_columns(new)
    if sure is None:
        return frame
    names = sure_names(source, [columns[j] for j in wide])
    more = [
        pl.Series(n, np.where(blank[:, j], sure[:, j], np.nan)).fill_nan(None) for n, j in zip(names, wide, strict=True)
    ]
    return frame.with_columns(more)


def values_of(column: Column, codes: np.ndarray) -> np.ndarray:
    """The numbers that codes stand for."""
    if not column.levels:
        return codes
    try:
        values = np.array([float(level) for level in column.levels])
    except ValueError:  # no and yes are 0 and 1
        return codes
    return np.where(np.isnan(codes), np.nan, values[np.nan_to_num(codes).astype(int)])


def fill_column(old: pl.Series, column: Column, values: np.ndarray, blank: np.ndarray, style: Style) -> pl.Series:
    """The column with its blanks filled, in its own type."""
    held = np.where(blank, values, 0.0)
    rounds = style.rounds and not column.levels and column.role != "date"
    fresh = decode(column, np.round(held, style.decimals) if rounds else held, old.dtype)
    return pl.select(pl.when(pl.Series(blank)).then(fresh).otherwise(old).alias(old.name)).to_series()
