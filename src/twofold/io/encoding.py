"""Which encoding a text is in, told from its bytes.

A byte order mark or a NUL in every other byte says UTF-16. Else it is UTF-8 if it can be. Else it is the Windows-1252
of western Europe, unless more than a third of its letters are beyond ASCII and show another script.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from twofold.core.checks import InputError

MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
SCRIPTS = ["cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp932", "gb18030", "big5", "cp949"]  # not western
FOREIGN = 1 / 3  # of the letters beyond ASCII say that it is one of these
HEAD = 2**18  # bytes by which a text is told
NOT_TEXT = "is not text. Give text, a folder of text files, or a table: CSV, Parquet, JSONL, .npy, .mtx or SQLite."


class Encoding(NamedTuple):
    mark: bytes  # the byte order mark that the text begins with
    name: str

    @property
    def is_wide(self) -> bool:
        """True if a letter takes two bytes, so that the text cannot be cut at newline bytes."""
        return self.name.startswith("utf-16")


def find_encoding(data: bytes) -> Encoding:
    """The encoding of a text, or of one that begins so.

    >>> find_encoding("Straße".encode("cp1252")).name, find_encoding("Straße".encode()).name
    ('cp1252', 'utf-8')
    """
    for mark, name in MARKS:
        if data.startswith(mark):
            return Encoding(mark, name)
    odd, even = data[1:4096:2].count(0), data[0:4096:2].count(0)
    if max(odd, even) > min(len(data), 4096) / 8 and min(odd, even) <= max(odd, even) / 50:
        return Encoding(b"", "utf-16-le" if odd > even else "utf-16-be")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # the last letter may be cut
        return Encoding(b"", "utf-8")
    except UnicodeDecodeError:
        return Encoding(b"", find_legacy_encoding(data))


def find_legacy_encoding(data: bytes) -> str:
    """The encoding of a text that is not Unicode."""
    raw = np.frombuffer(data[:HEAD], np.uint8)
    high = int((raw >= 128).sum())
    low = int((((raw | 32) >= ord("a")) & ((raw | 32) <= ord("z")) & (raw < 128)).sum())
    if high > FOREIGN * (high + low) and high >= 8:
        from charset_normalizer import from_bytes

        best = from_bytes(data[:HEAD], cp_isolation=SCRIPTS).best()
        if best is not None:
            return best.encoding
    return "cp1252" if not re.search(rb"[\x81\x8d\x8f\x90\x9d]", data) else "latin-1"  # which cp1252 lacks


def decode(data: bytes, name: str) -> tuple[bytes, list[str]]:
    """A whole text as UTF-8 with plain newlines, and what had to be assumed; what is no text is refused."""
    found = find_encoding(data[:HEAD])
    body = data[len(found.mark) :]
    try:
        text = body.decode(found.name)
    except UnicodeDecodeError:  # not all of it is like its beginning
        found = Encoding(b"", find_legacy_encoding(body)) if not found.is_wide else found
        text = "\0" if found.is_wide else body.decode(found.name, "replace")
    if "\0" in text[:HEAD]:
        raise InputError(f"{name} {NOT_TEXT}")
    notes = []
    if found.is_wide and not found.mark:
        notes.append(f"{name} is read as UTF-16")
    elif not found.is_wide and found.name != "utf-8":
        notes.append(f"{first_line(body, name)} is not UTF-8: read as {spell_encoding(found.name)}")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.encode(), notes


def first_line(data: bytes, name: str) -> str:
    """Find the line in which a text ceases to be UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"{name}, line {data.count(bytes([10]), 0, error.start) + 1}"
    return name


def spell_encoding(encoding: str) -> str:
    """An encoding as people know it."""
    if encoding in ("cp1252", "latin-1"):
        return "Latin-1 (Windows-1252)"
    return re.sub(r"^cp(125\d)$", r"Windows-\1", encoding).replace("cp932", "Shift-JIS").replace("koi8_r", "KOI8-R")


class Recoded(io.RawIOBase):
    """A text file whose bytes are changed as they are read; `change` gets b"" at the end."""

    def __init__(self, file: BinaryIO, change: Callable[[bytes], bytes], name: str, piece: int = HEAD):
        self.file, self.change, self.called, self.piece = file, change, name, piece
        self.rest = memoryview(b"")  # which is cut without being copied

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.rest:
            raw = self.file.read(self.piece)
            try:
                self.rest = memoryview(self.change(raw))
            except UnicodeError:
                raise InputError(f"{self.called} {NOT_TEXT}") from None
            if not raw:
                break
        some, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(some)] = some
        return len(some)
