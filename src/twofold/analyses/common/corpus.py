"""The text that word vectors are learned from: streamed from files, or the texts of a table.

text files, folders, globs     lines, or paragraphs where lines are wrapped, read again for every pass
CSV, TSV, JSONL, Parquet, ...  the rows of a column of text
standard input                 whichever it looks like
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.io.documents import Documents, TextFile, TextFiles, find_documents, read_documents
from twofold.io.text_parts import cut_file
from twofold.text.documents import Texts

MAX_HELD_LETTERS = 2**19  # held out, about
HELD_PARTS = 32  # of a large text
STRETCH_WORDS = 30  # of few texts, which are cut so that some can be held out
MAX_PIECE_LETTERS = 2**19  # of a text in one piece


@dataclass
class Text:
    """What there is to learn from."""

    lines: Any  # texts, or files of them that are read again for every pass
    source: str
    size: float  # letters, about
    notes: list[str] = field(default_factory=list)


class HeldOut:
    """The texts without one in `every` of them, which are kept in `held` as they pass by."""

    def __init__(self, lines: Any, every: int, seed: int):
        self.lines, self.every, self.seed = lines, every, seed
        self.held: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        self.held, size = [], 0
        for i, text in enumerate(pieces(self.lines)):
            if _scramble(i, self.seed) % self.every or size > MAX_HELD_LETTERS:
                yield text
            else:
                self.held.append(text)
                size += len(text)


def cut_stretches(lines: Any) -> list[list[str]]:
    """The texts as stretches of STRETCH_WORDS words."""
    from twofold.text.vocabulary import rules_of

    split = rules_of(True).split
    words = (split(text) for text in pieces(lines))
    return [some[i : i + STRETCH_WORDS] for some in words for i in range(0, len(some), STRETCH_WORDS)]


def pieces(lines: Any) -> Iterator[Any]:
    """Yield the texts; of a very long one, pieces, so that a file of a single line can be divided, too."""
    texts, part = Texts(lines), ""
    for i, text in enumerate(texts):
        if not isinstance(text, str):  # words, which are no text any more
            yield text
            continue
        part += text
        if i not in texts.continued or len(part) > MAX_PIECE_LETTERS:
            yield part
            part = ""


def _scramble(i: int, seed: int) -> int:
    """Return a number that looks random, so that texts in a regular order are not picked by it."""
    x = (i * 0x9E3779B1 + seed * 0x85EBCA6B + 0x27D4EB2F) % 2**32
    x = (x ^ (x >> 15)) * 0x2C1B3C6D % 2**32
    return x ^ (x >> 12)


def read_corpus(inputs: Sequence[str], column: str | None) -> Text:
    """Read the text in whatever was given; `column` names one of a table."""
    found = find_documents(inputs, column, split=True, stream=True)
    if isinstance(found, Documents):
        return from_documents(found)
    if found.files[0].unit == "row" and not is_large(found):
        return from_documents(read_documents(inputs, column))
    units = {file.unit for file in found.files}
    what = units.pop() if len(units) == 1 else "line (a paragraph, where wrapped)"
    many = f" of {len(found.files):,} files" if len(found.files) > 1 else ""
    notes = [*found.notes, f"each {what}{many} is a text by itself: words of different ones are no neighbors"]
    return Text(found, found.source, found.size, notes)


def is_large(lines: Any) -> bool:
    """Return True for files that take more than the memory budget."""
    return isinstance(lines, TextFiles) and lines.size > config().memory


def hold_out(lines: TextFiles) -> tuple[TextFiles, list[str]]:
    """Return the files without a few lines here and there, and the texts of those."""
    blocks, rest, held = lines.blocks(), list[TextFile](), list[TextFile]()
    every = -(-len(blocks) // HELD_PARTS)
    for number, block in enumerate(blocks):
        first, *others = block.files
        parts = [part for part, _ in cut_file(first, MAX_HELD_LETTERS // HELD_PARTS)] if number % every == 0 else []
        if len(parts) > 1:
            held.append(parts[0])
            first = first._replace(start=parts[1].start, stop=parts[-1].stop)
        rest += [first, *others]
    return replace(lines, files=rest), [text for text in replace(lines, files=held) if text.strip()]


def from_documents(read: Documents) -> Text:
    """Take texts that are read at once: those of a table, or of standard input."""
    notes = [note.replace("is a document", "is a text") for note in read.notes if not note.startswith("dates in ")]
    texts = [text for text in read.texts if text.strip()]
    if not texts:
        raise InputError(f"{read.source} has no text in it. Give some, or name the column with ⟨text⟩.")
    return Text(texts, read.source, float(sum(map(len, texts))), notes)
