"""Parts of a file of texts: where it can be cut, and how a part is read without the rest.

lines, JSONL   after a newline      paragraphs   after a blank line      Parquet   after any row

What is packed, in UTF-16, or in quotation marks (CSV) can only be read from its beginning, and is one part.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

import polars as pl

from twofold.core.checks import InputError
from twofold.io.encoding import find_encoding
from twofold.io.open import BUFFER, DAMAGED, PACKED, ZIP, open_bytes
from twofold.io.tables.read import JSONL, PARQUET, count_parquet_rows, kind, read_jsonl, read_one, unreadable
from twofold.io.tables.table import Table

if TYPE_CHECKING:
    from twofold.io.documents import TextFile

PIECE_BYTES = 2**22  # bytes of JSONL that are parsed at once
LINE_BYTES = 2**20  # bytes of a line that are looked at at once
UNPACKED_RATIO = 3  # bytes of text in one of Parquet, about


class Section(io.RawIOBase):
    """The bytes from `start` to `stop` of an open file."""

    def __init__(self, file: BinaryIO, start: int, stop: int, name: str):
        self.file, self.left, self.called = file, stop - start, name
        file.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.file.read(min(len(buffer), self.left))
        if self.left and not data:
            raise InputError(f"{self.called} is shorter than when it was first looked at. Leave files as they are.")
        self.left -= len(data)
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def open_part(path: str, start: int, stop: int) -> Iterator[BinaryIO]:
    """The bytes from `start` to `stop` of a file that is not packed."""
    with open(path, "rb", buffering=0) as raw:
        yield io.BufferedReader(Section(raw, start, stop, path), BUFFER)


def lines_before(path: str, start: int) -> int:
    """Count the lines that end before a byte of a file."""
    if not start:
        return 0
    with open_part(path, 0, start) as file:
        return sum(part.count(b"\n") for part in iter(lambda: file.read(BUFFER), b""))


# --- cutting ------------------------------------------------------------------------------------------------


def cut_file(file: TextFile, size: int) -> list[tuple[TextFile, int]]:
    """Parts of about `size` bytes of text, and how many each has."""
    name, rows = file.path.partition("::")[0], file.unit == "row" and kind(file.path) in PARQUET
    total = os.path.getsize(name) if file.stop is None or rows else file.stop - file.start
    if rows:
        total *= UNPACKED_RATIO
    if total <= size or file.unit == "file" or not (rows or can_cut(file)):
        return [(file, total)]
    if rows:
        n = count_parquet_rows(file.path) if file.stop is None else file.stop
        step = max(1, n * size // total)
        cuts = [*range(file.start, n, step), n]
    else:
        cuts = cut_bytes(file, size)
    parts = [file._replace(start=a, stop=b) for a, b in pairwise(cuts)]
    return [(part, size if rows else part.stop - part.start) for part in parts]  # type: ignore[operator]


def can_cut(file: TextFile) -> bool:
    """Return whether a file can be read from the middle on."""
    if "::" in file.path or (file.unit == "row" and kind(file.path) not in JSONL):
        return False
    with open(file.path, "rb") as raw:
        head = raw.read(4096)
    if head.startswith((ZIP, *PACKED)):
        return False
    return not find_encoding(head).is_wide and (b"\n" in head or b"\r" not in head)


def cut_bytes(file: TextFile, size: int) -> list[int]:
    """Find where parts begin, and where the last one ends: each the first place for a cut after `size` bytes."""
    with open(file.path, "rb") as raw:
        stop = os.path.getsize(file.path) if file.stop is None else file.stop
        cuts = [file.start]
        while stop - cuts[-1] > size:
            at = next_cut(raw, cuts[-1] + size, file.unit == "paragraph")
            if at >= stop:
                break
            cuts.append(at)
    return [*cuts, stop]


def next_cut(raw: BinaryIO, at: int, paragraph: bool) -> int:
    """The first place from `at` on where a line begins, or one that follows a blank line."""
    raw.seek(at - 1)
    begins = False  # whether what is read next begins a line
    while line := raw.readline(LINE_BYTES):
        if line.endswith(b"\n") and (not paragraph or (begins and not line.strip())):
            break
        begins = line.endswith(b"\n")
    return raw.tell()


# --- rows ---------------------------------------------------------------------------------------------------


def read_rows(file: TextFile, limit: int | None = None) -> Iterator[pl.DataFrame]:
    """The rows of a table, a few megabytes at a time: of its column of text, if that is known, the first `limit`."""
    ending = kind(file.path)
    if ending in PARQUET:
        yield from read_parquet_rows(file, limit)
    elif ending in JSONL:
        yield from read_jsonl_rows(file, limit)
    else:
        piece = read_one(file.path)
        if isinstance(piece, Table):
            raise InputError(f"{file.path} holds numbers, not text. Give text, or a table with a column of text.")
        yield piece.frame if limit is None else piece.frame.head(limit)


def read_parquet_rows(file: TextFile, limit: int | None) -> Iterator[pl.DataFrame]:
    size = os.path.getsize(file.path)
    n = count_parquet_rows(file.path)
    start, stop = file.start, n if file.stop is None else file.stop
    if stop > n:
        raise InputError(f"{file.path} has fewer rows than when it was first looked at. Leave files as they are.")
    step = limit or max(1, n * PIECE_BYTES // max(size * UNPACKED_RATIO, 1))
    try:
        frame = pl.scan_parquet(file.path)
        if file.column in frame.collect_schema().names():
            frame = frame.select(file.column)
        for a in range(start, max(stop, start + 1), step):
            yield frame.slice(a, min(step, stop - a)).collect()
            if limit:
                return
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
        raise unreadable(file.path, why) from None


def read_jsonl_rows(file: TextFile, limit: int | None) -> Iterator[pl.DataFrame]:
    done, any_row = 0, False
    whole = file.stop is None
    try:
        with open_bytes(file.path) if whole else open_part(file.path, file.start, file.stop or 0) as opened:
            while lines := opened.readlines(PIECE_BYTES) if limit is None else list(islice(opened, limit)):
                if any(line.strip() for line in lines):
                    yield parse_rows(b"".join(lines), file, done)
                    any_row = True
                done += len(lines)
                if limit is not None:
                    return
    except DAMAGED as why:
        raise InputError(f"{file.path} cannot be read beyond line {done} ({why}).") from None
    if whole and not any_row:
        raise InputError(f"{file.path} is empty. Give one JSON object a line.")


def parse_rows(data: bytes, file: TextFile, done: int) -> pl.DataFrame:
    try:
        return read_jsonl(data, file.path).frame
    except InputError:
        before = done + lines_before(file.path, file.start)  # which are blank as well as any, and make the line right
        return read_jsonl(b"\n" * before + data, file.path).frame
