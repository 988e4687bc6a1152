"""Documents as users have them: files in folders, lines, paragraphs, rows of a table; the note says which.

folder, glob, several files   each text file is a document, or each of its lines; a folder of tables is one table
one text file, or stdin       each line that is not blank; each paragraph where lines are wrapped
CSV, TSV, JSONL, Parquet, ... each row, its text in one column

Text files are read as they are gone through, a piece at a time, so that they never have to fit into memory; so are the
rows of tables, if asked for. What is read so can be cut into blocks, each read by itself, wherever that is done.
"""

from __future__ import annotations

import codecs
import glob
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import polars as pl

from twofold.core.checks import InputError
from twofold.core.spelling import spell_parameters
from twofold.io.dates import guess_dates, read_dates
from twofold.io.encoding import HEAD, Recoded, decode, find_encoding, find_legacy_encoding, spell_encoding
from twofold.io.open import DAMAGED, ENDINGS, check_budget, open_bytes, read_bytes
from twofold.io.tables import arrays
from twofold.io.tables.columns import BLANKS, to_numbers
from twofold.io.tables.delimited import find_delimiter, read_delimited, records
from twofold.io.tables.read import ELSEWHERE, EXCEL, JSONL, PARQUET, SQLITE, kind, missing_message, read_jsonl, read_one
from twofold.io.tables.roles import names_rows
from twofold.io.tables.table import Piece, Table, check_names, is_key, quote_names, stack, whole
from twofold.io.text_parts import cut_file, lines_before, open_part, read_rows

TABLES = (".csv", ".tsv", ".tab", ".psv", *PARQUET, *JSONL, *SQLITE, *EXCEL)
PROSE = ("", ".txt", ".text", ".md", ".rst", ".tex", ".eml", ".asc", ".srt", ".log")
ELSEWHERE_TOO = (".html", ".htm", ".xml", ".pdf", ".doc", ".docx", ".odt", ".rtf", ".epub")
TITLES = ("title", "headline", "subject", "heading", "name", "label")
PIECE_BYTES = 2**20  # bytes of a line that are read at once
MAX_WORD_BYTES = 2**24  # bytes without white space, beyond which nothing is text
MAX_SHORT_PARAGRAPH = 4  # lines of a paragraph, on average
MIN_FULL_SHARE = 0.8  # of the lines that go on are full, in wrapped text
UNPACKED_RATIO = 3.0  # bytes of text in one of a packed file, about
BLOCK_BYTES, MAX_BLOCKS = 2**24, 2**12  # bytes of text in a block, about, unless there would be too many
SAMPLE_ROWS = 1000  # rows of a table by which the column of text is found

Part = tuple[str, int, bool]  # a document or the next part of a long one, its number, whether it goes on


@dataclass
class Documents:
    """Texts in memory, and what their owner calls them."""

    texts: Any  # list of str; of documents that are not read, those that are shown, by their numbers
    ids: pl.Series  # its name is what it holds: file, line, paragraph, row, or the user's column
    titles: pl.Series | None = None
    dates: np.ndarray | None = None  # days, datetime64, NaT where blank
    date_name: str = "date"
    source: str = ""
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # those of the notes that say what is not read

    def call(self, i: int) -> str:
        """A document as it is known: by its title, file or id; a bare line or row has only its number."""
        return " ".join(str(self.ids[i] if self.titles is None or not self.titles[i] else self.titles[i]).split())

    def take(self, rows: np.ndarray) -> Documents:
        """Some of the documents."""
        return replace(
            self,
            texts=[self.texts[i] for i in rows],
            ids=self.ids[rows],
            titles=None if self.titles is None else self.titles[rows],
            dates=None if self.dates is None else self.dates[rows],
        )

    @property
    def named(self) -> bool:
        return self.titles is not None or self.ids.name not in ("line", "row", "paragraph")


class TextFile(NamedTuple):
    """A file or a part of it, and what in it is a document: "file", "line", "paragraph", or "row", in a column."""

    path: str
    unit: str
    start: int = 0  # byte, or row of a Parquet file, that a part begins with
    stop: int | None = None  # that it ends before; None if it is the whole file
    column: str = ""


@dataclass
class TextFiles:
    """The documents of text files, which are read again in each iteration."""

    files: list[TextFile]
    source: str
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    root: str = ""  # the folder they are named from
    blank: bool = False  # whether a blank line counts as an empty text, which does no harm to word vectors

    def __iter__(self) -> Iterator[str]:
        return (text for text, _ in join_parts(self.parts()))

    def parts(self, notes: list[str] | None = None) -> Iterator[Part]:
        """The documents, very long lines in parts; `notes` are told which files are not UTF-8."""
        for file in self.files:
            yield from parts_of(file, notes, self.blank)

    def blocks(self, size: int | None = None) -> list[TextFiles]:
        """The same documents in blocks of about `size` bytes, cut between documents, where files can be cut."""
        size = size or max(BLOCK_BYTES, int(self.size) // MAX_BLOCKS)
        out, held = list[TextFiles](), 0
        for file in self.files:
            for part, weight in cut_file(file, size):
                if not out or held + weight > size:
                    out.append(replace(self, files=[]))
                    held = 0
                out[-1].files.append(part)
                held += weight
        return out

    @property
    def size(self) -> float:
        """Letters, about."""
        paths = {file.path.partition("::")[0] for file in self.files}  # which may have several parts
        return sum(os.path.getsize(p) * (UNPACKED_RATIO if p.lower().endswith(ENDINGS) else 1.0) for p in paths)


def read_documents(
    inputs: Sequence[str], text: str | None = None, date: str | None = None, title: str | None = None
) -> Documents:
    """The documents in whatever was given, all in memory; `text`, `date` and `title` name columns of tables."""
    found = find_documents(inputs, text, date, title)
    if isinstance(found, Documents):
        return found
    unit, said = found.files[0].unit, list[str]()
    texts, numbers = read_all(found.parts(said))
    notes = found.notes + (said if len(said) <= 3 else [f"{len(said):,} files are not UTF-8, {said[0]}, the first"])
    ids = pl.Series(unit, names_of(found) if unit == "file" else numbers)
    notes.append(describe_count(len(texts), unit, found.source))
    return Documents(texts, ids, source=found.source, notes=notes, left_out=found.left_out)


def names_of(documents: TextFiles) -> list[str]:
    """Name files from the folder they are in."""
    root = documents.root
    return [os.path.relpath(file.path, root) if root else file.path for file in documents.files]


def describe_count(n: int, unit: str, source: str) -> str:
    wrapped = f"{source} is wrapped text: " if unit == "paragraph" else ""
    return f"{wrapped}each of {n:,} {unit}s is a document"


def find_documents(
    inputs: Sequence[str],
    text: str | None = None,
    date: str | None = None,
    title: str | None = None,
    *,
    split: bool = False,
    stream: bool = False,
) -> Documents | TextFiles:
    """The documents in files, folders, patterns, or standard input (``-``); `text`, `date`, `title` name columns.

    Those of tables and standard input are read, text files only found; with `stream` also the texts of JSONL and
    Parquet files, and of several delimited ones. Each of several text files is a document, unless they are to be
    `split` into lines or paragraphs, as a single one always is; then blank lines are kept.
    """
    source = inputs[0] if len(inputs) == 1 else f"{inputs[0]} and {len(inputs) - 1} more"
    source = "standard input" if source == "-" else source
    notes: list[str] = []
    files, root = find_texts(inputs, notes)
    foreign = next((file for file in files if kind(file) in ELSEWHERE_TOO), None)
    if foreign is not None:
        raise InputError(f"{foreign}: {kind(foreign)} files are not read. Save it as plain text (.txt) and give that.")
    given = {"text": text, "date": date, "title": title}
    named = next((f"⟨{name}={value}⟩" for name, value in given.items() if value is not None), None)
    tables = [kind(file) in TABLES for file in files if file != "-"]
    if stream and tables and all(tables) and can_stream(files):
        return find_rows(files, source, text, notes)
    if len(files) == 1:
        if files[0] != "-" and kind(files[0]) in (*TABLES, *arrays.ENDINGS, *ELSEWHERE):
            return from_tables(files, source, given, notes)
        if files[0] == "-" or named:
            return from_stream(files[0], source, given, notes)
    elif tables and all(tables):
        return from_tables(files, source, given, notes)
    elif named:
        raise InputError(f"{named}: {source} is text without columns. Leave it out, or give a table.")
    found = from_files(files, root, source, notes, split or len(files) == 1)
    return replace(found, blank=split)


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
            found = sorted((file for file in glob.glob(given, recursive=True) if Path(file).is_file()), key=Path)
            if not found:
                raise InputError(f"{given} matches no file. Check the folder and the pattern.")
            files += found
        else:
            raise InputError(missing_message(given))
    return files, "" if root == "." else root


def in_folder(folder: str, notes: list[str]) -> list[str]:
    """The text files below a folder, else its tables; what is left out is counted."""
    every = sorted(
        path
        for path in Path(folder).rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    prose = [path for path in every if is_prose(str(path))]
    chosen = prose or [path for path in every if kind(str(path)) in TABLES]
    rest = Counter(kind(str(path)) or "unnamed" for path in set(every) - set(chosen))
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
    """Return whether a file's name says text: a known ending, none, or a number as in mail folders."""
    ending = kind(name)
    return ending in PROSE or ending[1:].isdigit()


def from_files(files: list[str], root: str, source: str, notes: list[str], split: bool) -> TextFiles:
    """Text files to be read later; of each, the beginning is looked at."""
    found, foreign, empty = [], [], 0
    for file in files:
        head = head_of(file)
        line = find_binary_line(head)
        if line is not None and len(files) == 1:
            raise not_text(file, line)
        if line is not None:
            foreign.append(file)
        elif split and not head.strip():
            empty += 1
        else:
            found.append(TextFile(file, "file" if not split else "paragraph" if is_wrapped(head) else "line"))
    if not found and empty:
        raise InputError(f"{source} is empty. Give one document a line, or a table with a column of text.")
    if not found:
        raise InputError(f"{foreign[0]} is not text, nor is any other file of {source}. Give text files.")
    if foreign:
        notes.append(f"{len(foreign):,} files are not text and are left out, {foreign[0]} the first")
    return TextFiles(found, source, list(notes), list(notes), root)


def head_of(file: str) -> bytes:
    """The beginning of a text file, unpacked."""
    with name_damage(file), open_bytes(file) as opened:
        return opened.read(HEAD)


def find_binary_line(head: bytes) -> int | None:
    """The line at which bytes turn out to be no text, if they do: pictures and programs have codes that no text has."""
    mark, code = find_encoding(head[:4096])
    text = head[len(mark) : 4096].decode(code if code.startswith("utf-16") else "latin-1", "replace")
    found = re.search(r"[\x00-\x08\x0e-\x1a]", text)
    return None if found is None else text.count("\n", 0, found.start()) + 1


def not_text(name: str, line: int) -> InputError:
    return InputError(
        f"{name}, line {line} is not text: it holds bytes that no text has. Save it as UTF-8 text, or leave it out "
        'by a pattern such as "folder/*.txt".'
    )


def is_wrapped(head: bytes) -> bool:
    """Return whether lines go on in the next one, and blank ones lie between paragraphs.

    A line that goes on is full: the first word of the next would not have fitted into the longest line. Short
    paragraphs are taken for wrapped in any case; of long ones, blank lines may be mere gaps among lines.
    """
    mark, code = find_encoding(head)
    lines = [line.strip() for line in head[len(mark) :].decode(code, "replace").split("\n")]
    filled = [i for i, line in enumerate(lines) if line]
    breaks = sum(b > a + 1 for a, b in pairwise(filled))
    if breaks < 2 or len(filled) < 2 * (breaks + 1):
        return False
    inner = [(lines[a], lines[b]) for a, b in pairwise(filled) if b == a + 1]
    width = max(map(len, lines))
    full = sum(len(one) + 1 + len(other.split(None, 1)[0]) > width for one, other in inner)
    return len(filled) <= MAX_SHORT_PARAGRAPH * (breaks + 1) or full > MIN_FULL_SHARE * len(inner)


# --- reading text -------------------------------------------------------------------------------------------


def number_lines(path: str | os.PathLike) -> Iterator[tuple[int, str]]:
    """Every line of a text file with its number, blank ones too."""
    name = os.fspath(path)
    if not os.path.isfile(name.split("::")[0]):
        raise InputError(missing_message(name))
    with open_text(name) as file:
        yield from ((number, text) for text, number in join_parts(lines_in(file, name)))


def join_parts(parts: Iterator[Part]) -> Iterator[tuple[str, int]]:
    """Documents out of their parts."""
    begun = ""
    for text, number, goes_on in parts:
        if goes_on:
            begun += text
            check_budget(len(begun), f"document {number:,}, which goes on,", at_least=True)
        else:
            yield (begun + text if begun else text), number
            begun = ""


def read_all(parts: Iterator[Part]) -> tuple[list[str], list[int]]:
    texts, numbers, taken = list[str](), list[int](), 0
    for text, number in join_parts(parts):
        texts.append(text.strip())
        numbers.append(number)
        taken += len(text) + 100  # what a text and its number take, however short
        check_budget(taken, f"the text up to document {number:,}", at_least=True)
    return texts, numbers


def parts_of(file: TextFile, notes: list[str] | None = None, blank: bool = False) -> Iterator[Part]:
    """The documents of one text file."""
    if file.unit == "file":
        text, said = decode(read_whole(file.path), file.path)
        if notes is not None:
            notes += said
        yield text.decode(), 1, False
        return
    if file.unit == "row":
        yield from rows_of(file)
        return
    with open_text(file.path, file.start, file.stop) as opened:
        lines = lines_in(opened, file.path, notes, file.start)
        yield from paragraphs_of(lines) if file.unit == "paragraph" else lines if blank else without_blank(lines)


def read_whole(path: str) -> bytes:
    with name_damage(path):
        return read_bytes(path)


@contextmanager
def name_damage(path: str) -> Iterator[None]:
    """Refuse a file that cannot be read, by its name."""
    try:
        yield
    except DAMAGED as error:
        raise InputError(f"{path} cannot be read ({error}).") from None


@contextmanager
def open_text(path: str, start: int = 0, stop: int | None = None) -> Iterator[BinaryIO]:
    """A text file, or a part of it, unpacked and without its byte order mark, UTF-16 as UTF-8."""
    if stop is None:
        with open_bytes(path) as file, as_lines(file, path) as lines:
            yield lines
        return
    with open_part(path, start, stop) as file:
        if start:
            yield file
        else:
            with as_lines(file, path) as lines:
                yield lines


@contextmanager
def as_lines(file: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """Bytes that can be cut into lines at newlines; the encoding is that of the beginning."""
    head = file.peek(4096)[:4096]  # type: ignore[attr-defined]
    found = find_encoding(head)
    file.read(len(found.mark))
    if found.is_wide:
        decoder = codecs.getincrementaldecoder(found.name)()
        yield io.BufferedReader(Recoded(file, lambda raw: decoder.decode(raw, not raw).encode(), name))
    elif b"\r" in head and b"\n" not in head:
        yield io.BufferedReader(Recoded(file, lambda raw: raw.replace(b"\r", b"\n"), name))
    else:
        yield file


def lines_in(file: BinaryIO, name: str, notes: list[str] | None = None, start: int = 0) -> Iterator[Part]:
    """All lines; one that is longer than a piece comes in several, cut where there is white space.

    They are numbered from 1, but in errors from the beginning of the file, of which they are the part from `start` on.
    """
    number, rest, old = 1, b"", ""
    try:
        while line := file.readline(PIECE_BYTES + len(rest)):  # doubled until there is a place to cut
            line, ended = rest + line, line.endswith(b"\n")
            at = len(line) if ended else max(line.rfind(b" "), line.rfind(b"\t"))
            rest = line[max(at, 0) :]
            if len(rest) > MAX_WORD_BYTES:
                raise InputError(
                    f"{name}, line {number + lines_before(name, start)}: {len(rest) / 1e6:,.0f} MB without white "
                    "space, which is no text. Break it into lines, or leave the file out."
                )
            if at > 0:
                raw = line[:at].rstrip(b"\r\n")
                try:
                    text = raw.decode()
                except UnicodeDecodeError:
                    text, old = old_line(raw, old, name, number, notes)
                if "\0" in text:
                    raise not_text(name, number + lines_before(name, start))
                yield text, number, not ended
            number += ended
        if rest:
            text = old_line(rest, old, name, number, notes)[0]
            if "\0" in text:
                raise not_text(name, number + lines_before(name, start))
            yield text, number, False
    except DAMAGED as why:
        last = number - 1 + lines_before(name, start)
        raise InputError(f"{name} cannot be read beyond line {last} ({why}).") from None


def old_line(raw: bytes, old: str, name: str, number: int, notes: list[str] | None) -> tuple[str, str]:
    """A line that may not be UTF-8, and the encoding of those that are not."""
    try:
        return raw.decode(), old
    except UnicodeDecodeError:
        if not old:
            old = find_legacy_encoding(head_of(name) if os.path.isfile(name.split("::")[0]) else raw)
            if notes is not None:
                notes.append(f"{name}, line {number} is not UTF-8: read as {spell_encoding(old)}")
        return raw.decode(old, "replace"), old


def without_blank(lines: Iterator[Part]) -> Iterator[Part]:
    """Lines that have something in them."""
    inside = False
    for part in lines:
        if inside or part[2] or part[0].strip():
            yield part
        inside = part[2]


def paragraphs_of(lines: Iterator[Part]) -> Iterator[Part]:
    """Lines joined up to the next blank one; a very long paragraph in parts."""
    number, held, begun = 1, "", False
    inside = False  # a line that is cut
    for text, _, goes_on in lines:
        if inside or goes_on or text.strip():
            held += text if goes_on else text.rstrip() + " "
            if len(held) > PIECE_BYTES:
                yield held, number, True
                held, begun = "", True
        elif held or begun:
            yield held.rstrip(), number, False
            number, held, begun = number + 1, "", False
        inside = goes_on
    if held or begun:
        yield held.rstrip(), number, False


def from_stream(path: str, source: str, columns: dict[str, str | None], notes: list[str]) -> Documents:
    """A text read at once: a table if it looks like one or a column is named, else lines or paragraphs."""
    name = "standard input" if path == "-" else path
    data = read_whole(path)
    line = find_binary_line(data)
    if line is not None:
        raise not_text(name, line)
    text, more = decode(data, name)
    if not text.strip():
        raise InputError(f"{name} is empty. Give one document a line, or a table with a column of text.")
    if text.lstrip().startswith(b"{") and path == "-":
        return from_pieces([read_jsonl(text, name)], source, columns, notes)
    if any(value is not None for value in columns.values()) or looks_tabular(text):
        return from_pieces([read_delimited(data, name)], source, columns, notes)
    unit = "paragraph" if is_wrapped(text[:HEAD]) else "line"
    lines = lines_in(io.BufferedReader(io.BytesIO(text)), name)
    texts, numbers = read_all(paragraphs_of(lines) if unit == "paragraph" else without_blank(lines))
    notes += [*more, describe_count(len(texts), unit, name)]
    return Documents(texts, pl.Series(unit, numbers), source=source, notes=notes)


# --- reading tables -----------------------------------------------------------------------------------------


def looks_tabular(text: bytes) -> bool:
    """Return whether the first records have one width of at least two fields, under one delimiter."""
    head = b"\n".join(text.rstrip(b"\n").split(b"\n")[:50])
    parsed, delimiter = find_delimiter(head)
    try:
        _, widths = records(parsed, delimiter, "")
    except InputError:
        return False
    return parsed == head and len(widths) > 1 and widths.min() == widths.max() > 1


def from_tables(files: list[str], source: str, columns: dict[str, str | None], notes: list[str]) -> Documents:
    pieces = []
    for file in files:
        piece = read_one(file)
        if isinstance(piece, Table):
            raise InputError(f"{file} holds numbers, not text. Give text, or a table with a column of text.")
        pieces.append(piece)
    if len(files) > 1:
        notes.append(f"{len(files):,} files read as one table")
    return from_pieces(pieces, source, columns, notes)


def can_stream(files: list[str]) -> bool:
    """Return whether rows can be read a part of all at a time: of several files, or of one that can be cut."""
    kinds = {kind(file) for file in files}
    return not kinds & {*SQLITE, *EXCEL} and (len(files) > 1 or kinds <= {*JSONL, *PARQUET})


def find_rows(files: list[str], source: str, text: str | None, notes: list[str]) -> TextFiles:
    """Rows to be read later; the column of text is found by the first of them."""
    heads, n = list[Piece](), 0
    for file in files:
        heads.append(Piece(next(read_rows(TextFile(file, "row"), SAMPLE_ROWS - n)), file))
        n += heads[-1].frame.height
        if n >= SAMPLE_ROWS:
            break
    frame = stack(heads)
    check_names("text", [text] if text is not None else [], frame.columns, source)
    if len(files) > 1:
        notes.append(f"{len(files):,} files read as one table")
    column = text or longest(frame, source, notes)
    return TextFiles([TextFile(file, "row", column=column) for file in files], source, list(notes))


def rows_of(file: TextFile) -> Iterator[Part]:
    """The texts in a column of one table, blank ones too."""
    number = 0
    for frame in read_rows(file):
        if file.column in frame.columns:
            texts = texts_of(frame[file.column])
        elif kind(file.path) in JSONL:  # a missing key is a blank
            texts = [""] * frame.height
        else:
            raise InputError(f'{file.path} has no column "{file.column}", only {quote_names(frame.columns)}.')
        for text in texts:
            number += 1
            yield text, number, False


def from_pieces(pieces: list[Piece], source: str, columns: dict[str, str | None], notes: list[str]) -> Documents:
    """Each row is a document, its text in one column."""
    frame = stack(pieces)
    notes += [note for piece in pieces for note in piece.notes]
    for option, name in columns.items():
        check_names(option, [name] if name is not None else [], frame.columns, source)
    text = columns["text"] or longest(frame.head(SAMPLE_ROWS), source, notes)
    rest = [name for name in frame.columns if name != text]
    ids = next((frame[name] for j, name in enumerate(rest) if is_id(frame[name], j)), None)
    if ids is None:
        ids = pl.Series("row", np.arange(1, frame.height + 1))
    title = columns["title"] or next((name for name in rest if name.strip().lower() in TITLES), None)
    found = Documents(texts_of(frame[text]), whole(ids), source=source, notes=notes)
    if title is not None:
        found.titles = frame[title].cast(pl.String)
    if columns["date"] is not None:
        found.date_name, found.dates = columns["date"], read_dates(frame[columns["date"]], pieces, notes)
    else:
        found.date_name, found.dates = guess_dates(frame.select(rest), notes)
    return found


def texts_of(column: pl.Series) -> list[str]:
    """The cells of a column as texts, blank ones empty."""
    texts = (" ".join(str(value).split()) if value is not None else "" for value in column.to_list())
    return ["" if value.lower() in BLANKS else value for value in texts]


def longest(frame: pl.DataFrame, source: str, notes: list[str]) -> str:
    """The column with the longest texts."""
    lengths = {
        column.name: column.str.len_chars().sum() / max(len(column), 1)
        for column in frame.iter_columns()
        if column.dtype == pl.String and to_numbers(column, BLANKS, False)[1] == "text"
    }
    if not lengths or max(lengths.values()) == 0:
        raise InputError(f"{source} has no column of text, only {quote_names(frame.columns)}.")
    best = max(lengths, key=lambda name: lengths[name])
    others = f", which has the longest texts of {frame.width} columns; ⟨text⟩ names another" if frame.width > 1 else ""
    notes.append(spell_parameters(f'documents in "{best}"{others}'))
    return best


def is_id(column: pl.Series, position: int) -> bool:
    """Return whether a column tells rows apart and is called, or looks like, an id."""
    if column.dtype == pl.String:
        numbers = column.cast(pl.Float64, strict=False)
        if numbers.null_count():
            short = column.str.len_chars().sum() <= 40 * len(column)
            return short and is_key(column) and column.name.strip().lower() not in TITLES
        column = numbers
    if not column.dtype.is_numeric() or column.null_count():
        return False
    return names_rows(column.name, column.cast(pl.Float64).to_numpy(), position)
