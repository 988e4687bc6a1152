"""The texts of a corpus, long lines in pieces, so that a file of one single line is never in memory whole."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any

from twofold.core.checks import InputError
from twofold.core.data.blocks import is_path
from twofold.text.documents import decoded, documents, open_text

PIECE = 2**20  # bytes of a line that are read at once


class Texts:
    """Iterates over the texts of a corpus; a line longer than a piece comes as several.

    `continued` has the positions of the texts that go on in the next one, so far as they were read.
    """

    def __init__(self, corpus: Any):
        self.corpus, self.read = corpus, 0
        self.continued: set[int] = set()

    @property
    def n_lines(self) -> int:
        return self.read - len(self.continued)

    def __iter__(self) -> Iterator[str | list[str]]:
        self.read, self.continued = 0, set()
        path = os.fspath(self.corpus) if is_path(self.corpus) else None
        if path is None or not os.path.isfile(path):
            for text in documents(self.corpus):
                self.read += 1
                yield text
            return
        for piece, goes_on in _pieces(path):
            if goes_on:
                self.continued.add(self.read)
            self.read += 1
            yield piece


def _pieces(path: str) -> Iterator[tuple[str, bool]]:
    """(text, whether its line goes on) of a file; lines are cut where there is white space."""
    number, rest, first = 1, b"", True
    try:
        with open_text(path) as file:
            while line := file.readline(PIECE + len(rest)):  # doubled until there is a place to cut
                line, whole = rest + line, line.endswith(b"\n")
                at = len(line) if whole else max(line.rfind(b" "), line.rfind(b"\t"))
                rest = line[max(at, 0) :]
                if at > 0:
                    yield decoded(line[:at].rstrip(b"\r\n"), f"{path}, line {number}", first=first), not whole
                    first = False
                number += whole
            if rest:
                yield decoded(rest, f"{path}, line {number}", first=first), False
    except (OSError, EOFError, zlib.error) as why:
        raise InputError(f"{path} cannot be read beyond line {number - 1} ({why}).") from None
