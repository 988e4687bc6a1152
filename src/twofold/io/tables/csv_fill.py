"""The table that `twofold complete` writes: as it was read, with its blanks filled.

Delimited text is edited in place, so that nothing but the blanks changes. Other formats keep their columns, their
order and their types. A number is written with the decimals of its column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from twofold.core.checks import InputError
from twofold.io.open import read_bytes
from twofold.io.tables import arrays
from twofold.io.tables.columns import PLAIN, Written, parse_numbers
from twofold.io.tables.csv_cells import Text, content, edit_cells, open_text, records
from twofold.io.tables.delimited import read_delimited
from twofold.io.tables.read import ELSEWHERE, SQLITE, find_files, kind, read_one, stream_files
from twofold.io.tables.table import Piece, Table, assemble, blanks_of, stack, unique_names

OTHERS = (*SQLITE, *ELSEWHERE, *arrays.ENDINGS, ".parquet", ".pq", ".jsonl", ".ndjson")
SUFFIX = "_sd"  # of the name of a column of standard deviations


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
    """How the numbers of a column are written, and to how many decimals."""

    decimals: int
    form: Written = PLAIN
    exponent: bool = False
    truth: tuple[str, str] | None = None  # how false and true are spelled

    def write(self, value: float) -> str:
        if self.truth is not None:
            return self.truth[int(value >= 0.5)]
        group = "," if self.form.thousands else ""
        text = f"{value:.6g}" if self.exponent else f"{value:{group}.{self.decimals}f}"
        text = text[1:] if re.fullmatch(r"-0(\.0*)?", text) else text
        return self.form.before + self.put_marks(text) + self.form.after

    def put_marks(self, text: str) -> str:
        """A number with the column's own marks."""
        return text.translate({ord("."): self.form.decimal, ord(","): self.form.thousands})

    def write_sd(self, value: float) -> str:
        """At least two digits that say something."""
        if not value > 0:
            return "0"
        digits = max(0 if self.truth or self.exponent else self.decimals, 1 - math.floor(math.log10(value)))
        text = f"{value:.3g}" if self.exponent or digits > 12 else f"{value:.{digits}f}"
        return self.put_marks(text)


def style_of(column: pl.Series, known: np.ndarray, form: Written | None = None) -> Style:
    """Read off the known cells of a column of text; `form` is how its numbers were read, if that is known."""
    cells = column.filter(pl.Series(known)).str.strip_chars()
    lower = cells.str.to_lowercase()
    if lower.is_in(["true", "false"]).all():
        spelled = {word: cells.filter(lower == word).unique().sort().to_list() for word in ("false", "true")}
        like = str.upper if cells.str.contains(r"^[A-Z]{2}").any() else str.capitalize
        plain = like if cells.str.contains(r"^[A-Z]").any() else str
        return Style(0, truth=(*(spelled[w][0] if spelled[w] else plain(w) for w in ("false", "true")),))  # type: ignore[arg-type]
    if form is None:
        form = parse_numbers(cells, True)[1] if len(cells) else PLAIN
    decimals = cells.str.extract(rf"[{form.decimal}](\d+)\D*$").str.len_chars().fill_null(0).to_numpy()
    return Style(int(decimals.max(initial=0)), form, bool(cells.str.contains(r"(?i)\de").any()))


def styles(source: Source, blank: np.ndarray) -> dict[int, Style]:
    """The style of each column that has blanks."""
    frame, forms = source.piece.frame, source.table.forms  # type: ignore[union-attr]
    out = {}
    for j in np.flatnonzero(blank.any(axis=0)):
        column = frame[source.table.columns[j]]
        typed = column.dtype != pl.String
        out[int(j)] = Style(6) if typed else style_of(column, ~blank[:, j], forms.get(column.name, PLAIN))
    return out


# --- delimited text -----------------------------------------------------------------------------------------


def as_text(
    source: Source, filled: np.ndarray, blank: np.ndarray, std: np.ndarray | None, missing: Sequence[Any]
) -> bytes:
    """The file's own bytes with the blanks filled, and columns of standard deviations at the end if wanted."""
    text, piece = source.text, source.piece
    assert text is not None and piece is not None and piece.lines is not None
    look = styles(source, blank)
    places = {j: piece.frame.columns.index(source.table.columns[j]) for j in look}
    cells: dict[int, dict[int, str]] = {}
    for i, j in zip(*np.nonzero(blank), strict=True):
        cells.setdefault(int(piece.lines[i]), {})[places[int(j)]] = look[int(j)].write(filled[i, j])
    check_places(text, cells, piece.name, missing)
    tails = {} if std is None else dict(tails_of(source, std, blank, look))
    return text.encode_text(b"".join(edit_cells(text, cells, tails)))


def check_places(text: Text, cells: dict[int, dict[int, str]], name: str, missing: Sequence[Any]) -> None:
    """What is replaced must be blank in the file, too: quotes in odd places can be read in two ways."""
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


def tails_of(source: Source, std: np.ndarray, blank: np.ndarray, look: dict[int, Style]) -> Iterator[tuple[int, str]]:
    """What every record gets at its end: names for the header, standard deviations where a cell was filled."""
    text, piece = source.text, source.piece
    assert text is not None and piece is not None and piece.lines is not None
    nothing = "NA" if text.delimiter == " " else ""
    ended = {record.line for record in records(text) if len(record.fields) > piece.frame.width}  # by an empty field
    for i, line in enumerate(piece.lines):
        values = [look[j].write_sd(std[i, j]) if blank[i, j] else nothing for j in look]
        lead = text.delimiter if line not in ended else ""
        yield int(line), lead + text.delimiter.join(values)
    first = next(record for record in records(text) if record.fields and record.end > record.fields[0][0])
    if first.line < piece.lines[0]:  # there is a header
        quotes = text.data[first.fields[-1][0] : first.fields[-1][0] + 1] == b'"'
        names = sd_names(source, look)
        lead = text.delimiter if first.line not in ended else ""
        yield first.line, lead + text.delimiter.join(_quote_name(n, text.delimiter, quotes) for n in names)


def sd_names(source: Source, look: Sequence[int] | dict[int, Style]) -> list[str]:
    taken = list(source.piece.frame.columns) if source.piece is not None else source.table.columns
    return unique_names([*taken, *(source.table.columns[j] + SUFFIX for j in look)])[0][len(taken) :]


def _quote_name(name: str, delimiter: str, quotes: bool) -> str:
    if quotes or any(mark in name for mark in (delimiter, '"', "\n", "\r")):
        return '"' + name.replace('"', '""') + '"'
    return name


# --- frames -------------------------------------------------------------------------------------------------


def as_frame(source: Source, filled: np.ndarray, blank: np.ndarray, std: np.ndarray | None) -> pl.DataFrame:
    """All columns in their order, blanks filled; numbers read from text become numbers."""
    if source.piece is None:
        frame = pl.DataFrame(filled, schema=source.table.columns, orient="row")
        look: dict[int, Style] = {int(j): Style(6) for j in np.flatnonzero(blank.any(axis=0))}
    else:
        frame, look = source.piece.frame, styles(source, blank)
        new = [_column(frame[name], filled[:, j], blank[:, j]) for j, name in enumerate(source.table.columns)]
        frame = frame.with_columns(new)
    if std is None:
        return frame
    names = sd_names(source, look)
    more = [
        pl.Series(n, np.where(blank[:, j], std[:, j], np.nan)).fill_nan(None) for n, j in zip(names, look, strict=True)
    ]
    return frame.with_columns(more)


def _column(old: pl.Series, values: np.ndarray, blank: np.ndarray) -> pl.Series:
    """The column with its blanks filled, in its own type."""
    if old.dtype == pl.String:
        style = style_of(old, ~np.isnan(values) & ~blank)
        new = pl.Series(old.name, np.where(blank & (style.exponent is False), np.round(values, style.decimals), values))
        whole = style.decimals == 0 and not style.exponent and not np.isnan(values).any()
        return new.cast(pl.Int64) if whole else new.fill_nan(None)
    guess: Any = values
    if old.dtype == pl.Boolean:
        guess = values >= 0.5
    elif old.dtype.is_integer():
        guess = np.round(np.where(blank, values, 0.0))
    fresh = pl.Series(old.name, guess).cast(old.dtype, strict=False)
    return pl.select(pl.when(pl.Series(blank)).then(fresh).otherwise(old).alias(old.name)).to_series()
