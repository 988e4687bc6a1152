"""The text that word vectors are learned from: streamed from files, or the texts of a table.

text files, folders, globs     lines, or paragraphs where lines are wrapped, read anew for every pass
CSV, TSV, JSONL, Parquet, ...  the rows of a column of text
standard input                 whichever it looks like
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from twofold.core.checks import InputError
from twofold.io.documents import ELSEWHERE_TOO, TABLES, as_text, find_texts, read_documents
from twofold.io.tables import arrays
from twofold.io.tables.read import ELSEWHERE, kind
from twofold.text._texts import Texts
from twofold.text.documents import documents

HEAD = 2**18  # bytes of a file by which it is told
PACKED = 3.0  # bytes of text in one of gzip, about
MOST_HELD = 2**19  # letters held out, about, at most
LONGEST = 2**19  # letters of a text in one piece


@dataclass
class Text:
    """What there is to learn from."""

    lines: Any  # a path, texts, or something that gives the texts anew each time
    source: str
    size: float  # letters, about
    notes: list[str] = field(default_factory=list)


class Prose:
    """The lines of text files, or their paragraphs where lines are wrapped, one file after the other."""

    def __init__(self, files: Sequence[tuple[str, bool]]):
        self.files = files

    def __iter__(self) -> Iterator[str]:
        for path, wrapped in self.files:
            lines: Any = documents(path)
            yield from paragraphs(lines) if wrapped else lines


class HeldOut:
    """The texts without every so many of them, which are kept in `held` as they pass by."""

    def __init__(self, lines: Any, every: int, seed: int):
        self.lines, self.every, self.seed = lines, every, seed
        self.held: list[str] = []

    def __iter__(self) -> Iterator[str]:
        self.held, size = [], 0
        for i, text in enumerate(pieces(self.lines)):
            if _mixed(i, self.seed) % self.every or size > MOST_HELD:
                yield text
            else:
                self.held.append(text)
                size += len(text)


def pieces(lines: Any) -> Iterator[str]:
    """The texts; of a very long one, pieces, so that a file of a single line can be parted, too."""
    texts, part = Texts(lines), ""
    for i, text in enumerate(texts):
        part += str(text)
        if i not in texts.continued or len(part) > LONGEST:
            yield part
            part = ""


def _mixed(i: int, seed: int) -> int:
    """A number that looks random, so that texts in a regular order are not picked by it."""
    x = (i * 0x9E3779B1 + seed * 0x85EBCA6B + 0x27D4EB2F) % 2**32
    x = (x ^ (x >> 15)) * 0x2C1B3C6D % 2**32
    return x ^ (x >> 12)


def paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Lines joined up to the next blank one."""
    part: list[str] = []
    for line in lines:
        if line.strip():
            part.append(line)
        elif part:
            yield " ".join(part)
            part = []
    if part:
        yield " ".join(part)


def read_corpus(inputs: Sequence[str], column: str | None) -> Text:
    """The text in whatever was given; `column` names one of a table."""
    source = inputs[0] if len(inputs) == 1 else f"{inputs[0]} and {len(inputs) - 1} more"
    notes: list[str] = []
    files, _ = find_texts(inputs, notes)
    foreign = next((file for file in files if kind(file) in ELSEWHERE_TOO), None)
    if foreign is not None:
        raise InputError(f"{foreign}: {kind(foreign)} files are not read. Save it as plain text (.txt) and give that.")
    tables = (*TABLES, *arrays.ENDINGS, *ELSEWHERE)
    if column is not None or "-" in files or any(kind(file.partition("::")[0]) in tables for file in files):
        return from_documents(inputs, column)
    heads = {file: head_of(file) for file in files}
    if any(b"\0" in head for head in heads.values()):  # UTF-16, which only the other way can read
        return from_documents(inputs, None)
    found = [(file, is_wrapped(head.decode("utf-8", "replace"))) for file, head in heads.items() if head.strip()]
    if not found:
        raise InputError(f"{source} is empty. Give text: a sentence, a paragraph or a document a line.")
    wrapped = sum(own for _, own in found)
    what = "paragraph" if wrapped == len(found) else "line" if not wrapped else "line (a paragraph, where wrapped)"
    many = f" of {len(found):,} files" if len(found) > 1 else ""
    notes.append(f"each {what}{many} is a text by itself: words of different ones are no neighbours")
    size = sum(os.path.getsize(file) * (PACKED if file.lower().endswith(".gz") else 1.0) for file, _ in found)
    plain = len(found) == 1 and not wrapped
    return Text(found[0][0] if plain else Prose(found), source, size, notes)


def from_documents(inputs: Sequence[str], column: str | None) -> Text:
    """Texts that are read at once: those of a table, or of standard input."""
    own = read_documents(inputs, column, None, None)
    notes = [note.replace("is a document", "is a text") for note in own.notes if not note.startswith("dates in ")]
    texts = [text for text in own.texts if text.strip()]
    if not texts:
        raise InputError(f"{own.source} has no text in it. Give some, or name the column with --text.")
    return Text(texts, own.source, float(sum(map(len, texts))), notes)


def head_of(file: str) -> bytes:
    """The beginning of a text file; what is no text is refused."""
    try:
        with gzip.open(file, "rb") if file.lower().endswith(".gz") else open(file, "rb") as opened:
            head = opened.read(HEAD)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{file} is a damaged gzip file ({error}). Fetch or compress it again.") from None
    as_text(head, file)
    return head


def is_wrapped(head: str) -> bool:
    """Whether lines go on in the next one, and blank ones lie between paragraphs."""
    lines = [line.strip() for line in head.split("\n")]
    full = [i for i, line in enumerate(lines) if line]
    breaks = sum(b > a + 1 for a, b in pairwise(full))
    return breaks >= 2 and len(full) >= 2 * (breaks + 1)
