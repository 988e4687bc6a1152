"""Delimited text, as people really have it: encoding, delimiter and header found out, every record checked.

Cells stay text here; what they mean is decided once for all formats in `tables`.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from twofold.core.checks import InputError
from twofold.io.encoding import decode
from twofold.io.tables.columns import BLANKS
from twofold.io.tables.table import Piece, quote_names, unique_names

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MAX_TITLES = 20  # lines above the header
MAX_COLUMNS = 500_000  # beyond, a frame of columns takes minutes
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def read_delimited(data: bytes, name: str) -> Piece:
    """One delimited text, given as its bytes, as a frame of text cells."""
    text, notes = decode(data, name)
    text = text.rstrip(b"\n")
    if not text.strip():
        raise InputError(f"{name} is empty. Give a table with at least two rows of numbers.")
    text, delimiter = find_delimiter(text)
    lines, widths = records(text, delimiter, name)
    if widths.max() > MAX_COLUMNS:
        at = int(np.argmax(widths))
        raise InputError(
            f"{name}, line {lines[at]}: {widths[at]:,} fields, and at most {MAX_COLUMNS:,} columns are read. "
            "Write rows on lines of their own, or save the table as .npy."
        )
    frame = parse(text, delimiter, len(lines), int(widths.max()))
    if widths.max() > 1:  # in a file of one column an empty line is a blank cell, not an empty line
        filled = (widths > 1) | frame.to_series(0).is_not_null().to_numpy()
        frame, lines, widths = frame.filter(filled), lines[filled], widths[filled]
    return tabulate(frame, lines, widths, name, delimiter, notes)


def tabulate(
    frame: pl.DataFrame, lines: np.ndarray, widths: np.ndarray, name: str, delimiter: str, notes: list[str]
) -> Piece:
    """Records of text cells as named columns: the first record is the header unless it holds numbers alone."""
    frame, lines, widths = leave_out_titles(frame, lines, widths, name, notes)
    before = frame.width
    while frame.width > 1 < frame.height and has_empty_end(frame, widths):
        frame, widths = frame[:, :-1], np.minimum(widths, frame.width - 1)
    if frame.width < before:
        notes.append(f"{name}: the empty field at the end of every line is left out")
    first = [cell or "" for cell in frame.row(0)]
    comma = delimiter == ";"
    if all(is_number(cell, comma) or cell.strip().lower() in BLANKS for cell in first):
        check_widths(lines, widths, int(widths[0]), "the first line", name, delimiter)
        names = [f"column_{i + 1}" for i in range(frame.width)]
        notes.append(f"{name} has no header: columns are called column_1 to column_{frame.width}")
    else:
        names = header(first, lines, widths, name, delimiter, notes)
        frame, lines = frame.slice(1), lines[1:]
    if frame.height == 0:
        raise InputError(f"{name} has a header and no rows below it. Give a table with at least two rows.")
    return Piece(frame.rename(dict(zip(frame.columns, names, strict=True))), name, lines, comma, notes, delimiter)


def has_empty_end(frame: pl.DataFrame, widths: np.ndarray) -> bool:
    """Tell whether every line but the header, or the header alone, ends in a delimiter."""
    w = frame.width
    if frame.to_series(-1).null_count() < frame.height:
        return False
    return bool((widths[1:] == w).all() or (widths[0] == w and (widths[1:] == w - 1).all()))


def leave_out_titles(
    frame: pl.DataFrame, lines: np.ndarray, widths: np.ndarray, name: str, notes: list[str]
) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """Leave out lines above the header, such as the name of a report: few of their cells are filled."""
    least = max(1, frame.width // 3) + 1  # cells of a header
    if frame.width - frame.row(0).count(None) >= least:
        return frame, lines, widths
    head = frame.head(MAX_TITLES + 1)
    filled = np.array([frame.width - row.count(None) for row in head.iter_rows()])
    titles = int(np.argmax(filled >= least))
    text = [[cell for cell in row if cell] for row in head.head(titles + 1).iter_rows()]
    if titles == 0 or frame.height < titles + 3 or any(is_number(cell) for cell in text[titles]):
        return frame, lines, widths
    if titles == 1 and (widths[1:] == widths[0] + 1).all() and not has_numbers_below(frame.slice(2)):
        return frame, lines, widths  # R writes no name above its row names
    said = "line above the header is" if titles == 1 else "lines above the header are"
    notes.append(f"{name}: {titles} {said} left out: {quote_names([' '.join(row) for row in text[:titles]], 3)}")
    return frame.slice(titles), lines[titles:], widths[titles:]


def has_numbers_below(frame: pl.DataFrame) -> bool:
    """Tell whether the first column holds numbers."""
    known = frame.to_series(0).drop_nulls().head(MAX_TITLES)
    return len(known) > 0 and all(is_number(cell) for cell in known)


def find_delimiter(text: bytes) -> tuple[bytes, str]:
    """The delimiter under which the first lines agree best on their fields; runs of spaces become tabs."""
    sample = re.split(r"\r\n?|\n", text[:100_000].decode(errors="ignore"))[:100]
    if len(text) > 100_000 and len(sample) > 1:
        sample.pop()  # it may have been cut
    sample = [line for line in sample if line.strip()]

    def score(delimiter: str) -> tuple[float, float, int]:
        rows = list(csv.reader(sample, delimiter=delimiter)) or [[]]
        width, times = Counter(len(row) for row in rows).most_common(1)[0]
        cells = [cell for row in rows for cell in row]
        numbers = sum(is_number(cell, delimiter == ";") for cell in cells) / max(len(cells), 1)
        return (times / len(rows) if width > 1 else 0.0, numbers, width)

    best = max(DELIMITERS, key=score)
    if score(best)[0] > 0:
        return text, best
    widths = {len(line.split()) for line in sample}
    if len(widths) == 1 and widths.pop() > 1 and b'"' not in text:
        return re.sub(rb" +", b"\t", re.sub(rb"(?m)^ +| +$", b"", text)).rstrip(b"\n"), "\t"
    return text, ","


def is_number(cell: str, decimal_comma: bool = False) -> bool:
    cell = cell.strip()
    return bool(_NUMBER.fullmatch(cell.replace(",", ".", 1) if decimal_comma else cell))


def records(text: bytes, delimiter: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """For each record the line it starts on and how many fields it has."""
    if b'"' not in text:
        raw = np.frombuffer(text, np.uint8)
        ends = np.append(np.flatnonzero(raw == 10), len(raw))
        marks = np.searchsorted(np.flatnonzero(raw == ord(delimiter)), ends)
        return np.arange(1, len(ends) + 1), np.diff(marks, prepend=0) + 1
    lines, widths, at = [], [], 1
    reader = _reader(text, delimiter)
    try:
        for row in reader:
            lines.append(at)
            widths.append(max(len(row), 1))
            at = reader.line_num + 1
        open_quote = text.count(b'"') % 2 == 1 and reader.line_num > lines[-1]
    except csv.Error:  # a field beyond any sensible size: the quote that opened it was never closed
        open_quote, lines = True, [*lines, at]
    if open_quote:
        raise InputError(f"{name}, line {lines[-1]}: a quote opened here is never closed. Close or remove it.")
    return np.array(lines), np.array(widths)


def _reader(text: bytes, delimiter: str) -> Any:
    return csv.reader(io.TextIOWrapper(io.BytesIO(text), "utf-8", newline=""), delimiter=delimiter)


def parse(text: bytes, delimiter: str, height: int, width: int) -> pl.DataFrame:
    """Every cell as text; short records are padded with nulls."""
    columns = [f"column_{i + 1}" for i in range(width)]
    try:
        schema = dict.fromkeys(columns, pl.String)
        frame = pl.read_csv(io.BytesIO(text), has_header=False, separator=delimiter, schema=schema)
        if frame.height == height:
            return frame
    except pl.exceptions.PolarsError:
        pass
    # Quotes in unusual places: Python's own reader takes them as they come, only slower.
    rows = (row + [""] * (width - len(row)) for row in _reader(text, delimiter))
    cells = list(zip(*rows, strict=True))
    return pl.DataFrame({c: pl.Series(c, [v or None for v in cell]) for c, cell in zip(columns, cells, strict=True)})


def header(
    first: list[str], lines: np.ndarray, widths: np.ndarray, name: str, delimiter: str, notes: list[str]
) -> list[str]:
    """Column names from the first record, made distinct; says so when it had to."""
    named = int(widths[0])
    if len(widths) > 1 and np.all(widths[1:] == named + 1):  # R writes no name above its row names
        first, named = ["row", *first[:named]], named + 1
    check_widths(lines[1:], widths[1:], named, "the header", name, delimiter)
    names, renamed = unique_names([cell.strip() for cell in first[:named]])
    for old, new, position in renamed:
        what = f'a second column "{old}"' if old else f"column {position} without a name"
        notes.append(f'{name}, line {lines[0]}: {what} is called "{new}"')
    if sum(is_number(cell) for cell in first) * 2 > named:
        notes.append(f"{name}: line {lines[0]} is taken for the header though most of its fields are numbers")
    return names


def check_widths(lines: np.ndarray, widths: np.ndarray, width: int, norm: str, name: str, delimiter: str) -> None:
    """Every record must have as many fields as the first."""
    wrong = np.flatnonzero(widths != width)
    if not len(wrong):
        return
    got = int(widths[wrong[0]])
    remedy = (
        f"Put quotes around a field that contains {delimiter!r}, or remove the line."
        if got > width
        else "Add the missing fields (an empty one is a blank), or remove the line."
    )
    more = f" ({len(wrong)} such lines)" if len(wrong) > 1 else ""
    fields = "1 field" if got == 1 else f"{got} fields"
    raise InputError(f"{name}, line {lines[wrong[0]]}: {fields} where {norm} has {width}{more}. {remedy}")
