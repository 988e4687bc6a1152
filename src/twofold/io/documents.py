"""Documents as users have them: files in folders, lines, paragraphs, rows of a table; said aloud which.

folder, glob, several files   each text file is a document; a folder of tables is one table
one text file, or stdin       each line; each paragraph where lines are wrapped
CSV, TSV, JSONL, Parquet, ... each row, its text in one column
"""

from __future__ import annotations

import glob
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from twofold.core.checks import InputError
from twofold.io.dates import guess_dates, read_dates
from twofold.io.tables import arrays
from twofold.io.tables.columns import BLANKS, to_numbers
from twofold.io.tables.delimited import decode, find_delimiter, read_delimited, records
from twofold.io.tables.read import ELSEWHERE, SQLITE, kind, missing_message, read_jsonl, read_one, unzipped
from twofold.io.tables.table import Piece, Table, is_key, names_rows, quoted, stack, whole

TABLES = (".csv", ".tsv", ".tab", ".psv", ".parquet", ".pq", ".jsonl", ".ndjson", *SQLITE)
PROSE = ("", ".txt", ".text", ".md", ".rst", ".tex", ".eml", ".asc", ".srt", ".log")
ELSEWHERE_TOO = (".html", ".htm", ".xml", ".pdf", ".doc", ".docx", ".odt", ".rtf", ".epub")
TITLES = ("title", "headline", "subject", "heading", "name", "label")


@dataclass
class Documents:
    """Texts, and what their owner calls them."""

    texts: list[str]
    ids: pl.Series  # its name is what it holds: file, line, paragraph, row, or the user's column
    titles: pl.Series | None = None
    dates: np.ndarray | None = None  # days, datetime64, NaT where blank
    date_name: str = "date"
    source: str = ""
    notes: list[str] = field(default_factory=list)

    def call(self, i: int) -> str:
        """A document as it is known: by its title, file or id; a bare line or row has only its number."""
        return " ".join(str(self.ids[i] if self.titles is None or not self.titles[i] else self.titles[i]).split())

    @property
    def named(self) -> bool:
        return self.titles is not None or self.ids.name not in ("line", "row", "paragraph")


def read_documents(inputs: Sequence[str], text: str | None, date: str | None, title: str | None) -> Documents:
    """Documents from whatever was given; `text`, `date` and `title` name columns of tables."""
    source = inputs[0] if len(inputs) == 1 else f"{inputs[0]} and {len(inputs) - 1} more"
    source = "standard input" if source == "-" else source
    notes: list[str] = []
    files, root = find_texts(inputs, notes)
    foreign = next((file for file in files if kind(file) in ELSEWHERE_TOO), None)
    if foreign is not None:
        raise InputError(f"{foreign}: {kind(foreign)} files are not read. Save it as plain text (.txt) and give that.")
    given = {"--text": text, "--date": date, "--title": title}
    if len(files) == 1:
        path = files[0].partition("::")[0]
        if path != "-" and kind(path) in (*TABLES, *arrays.ENDINGS, *ELSEWHERE):
            return from_tables(files, source, given, notes)
        return from_stream(path, source, given, notes)
    if all(kind(file.partition("::")[0]) in TABLES for file in files):
        return from_tables(files, source, given, notes)
    named = next((f"{option} {value}" for option, value in given.items() if value is not None), None)
    if named:
        raise InputError(f"{named}: {source} is text without columns. Leave it out, or give a table.")
    return from_files(files, root, source, notes)


# --- finding ------------------------------------------------------------------------------------------------


def find_texts(inputs: Sequence[str], notes: list[str]) -> tuple[list[str], str]:
    """The files meant, in a fixed order, and the folder they are named from ("" if none was given)."""
    files: list[str] = []
    root = ""
    for given in inputs:
        if given == "-" or Path(given.split("::")[0]).is_file():
            files.append(given)
        elif Path(given).is_dir():
            files += in_folder(given, notes)
            root = given if len(inputs) == 1 else "."
        elif any(mark in given for mark in "*?["):
            found = sorted(file for file in glob.glob(given, recursive=True) if Path(file).is_file())
            if not found:
                raise InputError(f"{given} matches no file. Check the folder and the pattern.")
            files += found
            root = root or "."
        else:
            raise InputError(missing_message(given))
    return files, root


def in_folder(folder: str, notes: list[str]) -> list[str]:
    """The text files below a folder, else its tables; what is left out is counted."""
    every = sorted(
        path
        for path in Path(folder).rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    prose = [path for path in every if is_prose(path.name)]
    chosen = prose or [path for path in every if kind(path.name) in TABLES]
    rest = Counter(kind(path.name) or "unnamed" for path in set(every) - set(chosen))
    holds = ", ".join(f"{n:,} {ending}" for ending, n in sorted(rest.items(), key=lambda item: (-item[1], item[0]))[:3])
    if not chosen:
        raise InputError(
            f"{folder} holds no text files (.txt, .md, ...) and no tables with text, but {holds or 'nothing'}. "
            "Give a folder that does, or name the files with a pattern."
        )
    if rest:
        notes.append(f"left out in {folder}: {holds}")
    return [str(path) for path in chosen]


def is_prose(name: str) -> bool:
    """Whether a file's name says text: a known ending, none, or a number as in mail folders."""
    ending = kind(name)
    return ending in PROSE or ending[1:].isdigit()


# --- reading ------------------------------------------------------------------------------------------------


def from_files(files: list[str], root: str, source: str, notes: list[str]) -> Documents:
    """Each file is a document."""
    texts, names, said, foreign = [], [], [], []
    for file in files:
        try:
            text, more = as_text(unzipped(Path(file).read_bytes(), file), file)
        except InputError:
            foreign.append(file)
            continue
        texts.append(text.decode())
        names.append(str(Path(file).relative_to(root)) if root not in ("", ".") else file)
        said += more
    if not texts:
        raise InputError(f"{foreign[0]} is not text, nor is any other file of {source}. Give text files.")
    if foreign:
        notes.append(f"{len(foreign):,} files are not text and are left out, {foreign[0]} the first")
    notes += said if len(said) <= 3 else [f"{len(said):,} files are not UTF-8: read as Latin-1 (Windows-1252)"]
    notes.append(f"each of {len(texts):,} files is a document")
    return Documents(texts, pl.Series("file", names), source=source, notes=notes)


def from_stream(path: str, source: str, given: dict[str, str | None], notes: list[str]) -> Documents:
    """One text: a table if it looks like one or a column is named, else lines or paragraphs."""
    name = "standard input" if path == "-" else path
    data = unzipped(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes(), name)
    if not data.strip():
        raise InputError(f"{name} is empty. Give one document a line, or a table with a column of text.")
    text, more = as_text(data, name)
    columns = any(value is not None for value in given.values())
    if text.lstrip().startswith(b"{") and path == "-":
        return from_pieces([read_jsonl(text, name)], source, given, notes)
    if columns or (path == "-" and looks_tabular(text)):
        return from_pieces([read_delimited(data, name)], source, given, notes)
    lines = [line.strip() for line in text.decode().split("\n")]
    full = [i for i, line in enumerate(lines) if line]
    breaks = sum(b > a + 1 for a, b in pairwise(full))
    notes += more
    if breaks >= 2 and len(full) >= 2 * (breaks + 1):  # lines are wrapped, and blank ones lie between paragraphs
        parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.decode()) if part.strip()]
        notes.append(f"{name} is wrapped text: each of its {len(parts):,} paragraphs is a document")
        return Documents(parts, pl.Series("paragraph", np.arange(1, len(parts) + 1)), source=source, notes=notes)
    notes.append(f"each of {len(full):,} lines is a document")
    ids = pl.Series("line", np.array(full) + 1)
    return Documents([lines[i] for i in full], ids, source=source, notes=notes)


def as_text(data: bytes, name: str) -> tuple[bytes, list[str]]:
    """UTF-8, and what had to be assumed; pictures and programs are refused."""
    head = data[:4096]
    nul = np.flatnonzero(np.frombuffer(head, np.uint8) == 0) % 2  # in UTF-16 they are every other byte
    if re.search(rb"[\x01-\x08\x0e-\x1a]", head) or (len(nul) and nul.min() != nul.max()):
        raise InputError(f"{name} is not text. Give text, a folder of text files, or a table.")
    return decode(data, name)


def looks_tabular(text: bytes) -> bool:
    """Whether the first records have one width of at least two fields, under one delimiter."""
    head = b"\n".join(text.rstrip(b"\n").split(b"\n")[:50])
    parsed, delimiter = find_delimiter(head)
    try:
        _, widths = records(parsed, delimiter, "")
    except InputError:
        return False
    return parsed == head and len(widths) > 1 and widths.min() == widths.max() > 1


def from_tables(files: list[str], source: str, given: dict[str, str | None], notes: list[str]) -> Documents:
    pieces = []
    for file in files:
        piece = read_one(file, (), (), alone=False)
        if isinstance(piece, Table):
            raise InputError(f"{file} holds numbers, not text. Give text, or a table with a column of text.")
        pieces.append(piece)
    if len(files) > 1:
        notes.append(f"{len(files):,} files read as one table")
    return from_pieces(pieces, source, given, notes)


def from_pieces(pieces: list[Piece], source: str, given: dict[str, str | None], notes: list[str]) -> Documents:
    """Each row is a document, its text in one column."""
    frame = stack(pieces)
    notes += [note for piece in pieces for note in piece.notes]
    for option, name in given.items():
        if name is not None and name not in frame.columns:
            near = get_close_matches(name, frame.columns, 1)
            hint = f'Did you mean "{near[0]}"?' if near else f"It has {quoted(frame.columns)}."
            raise InputError(f'{option} {name}: {source} has no column "{name}". {hint}')
    text = given["--text"] or longest(frame, source, notes)
    rest = [name for name in frame.columns if name != text]
    ids = next((frame[name] for j, name in enumerate(rest) if is_id(frame[name], j)), None)
    if ids is None:
        ids = pl.Series("row", np.arange(1, frame.height + 1))
    title = given["--title"] or next((name for name in rest if name.strip().lower() in TITLES), None)
    texts = [" ".join(str(value).split()) if value is not None else "" for value in frame[text].to_list()]
    texts = ["" if value.lower() in BLANKS else value for value in texts]
    found = Documents(texts, whole(ids), source=source, notes=notes)
    if title is not None:
        found.titles = frame[title].cast(pl.String)
    if given["--date"] is not None:
        found.date_name, found.dates = given["--date"], read_dates(frame[given["--date"]], pieces, notes)
    else:
        found.date_name, found.dates = guess_dates(frame.select(rest), notes)
    return found


def longest(frame: pl.DataFrame, source: str, notes: list[str]) -> str:
    """The column with the longest texts."""
    lengths = {
        column.name: column.str.len_chars().sum() / max(len(column), 1)
        for column in frame.iter_columns()
        if column.dtype == pl.String and to_numbers(column, BLANKS, False)[1] == "text"
    }
    if not lengths or max(lengths.values()) == 0:
        raise InputError(f"{source} has no column of text, only {quoted(frame.columns)}.")
    best = max(lengths, key=lambda name: lengths[name])
    others = f", which has the longest texts of {frame.width} columns; --text names another" if frame.width > 1 else ""
    notes.append(f'documents in "{best}"{others}')
    return best


def is_id(column: pl.Series, position: int) -> bool:
    """Whether a column tells rows apart and is called, or looks like, an id."""
    if column.dtype == pl.String:
        numbers = column.cast(pl.Float64, strict=False)
        if numbers.null_count():
            short = column.str.len_chars().sum() <= 40 * len(column)
            return short and is_key(column) and column.name.strip().lower() not in TITLES
        column = numbers
    if not column.dtype.is_numeric() or column.null_count():
        return False
    return names_rows(column.name, column.cast(pl.Float64).to_numpy(), position)
