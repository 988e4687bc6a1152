"""The texts of a corpus, long lines in parts, so that a file of one single line is never in memory whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from twofold.core.data.blocks import is_path
from twofold.io.documents import Documents, TextFiles
from twofold.text.documents import documents, from_path


class Texts:
    """Iterates over the texts of a corpus; a line of a file that is longer than a piece comes as several.

    A path means lines, or paragraphs where lines are wrapped, also of the files of a folder: words of different ones
    are no neighbors. `continued` has the positions of the texts that go on in the next one, so far as they were read.
    """

    def __init__(self, corpus: Any):
        self.corpus, self.read = corpus, 0
        self.continued: set[int] = set()

    @property
    def n_lines(self) -> int:
        return self.read - len(self.continued)

    def __iter__(self) -> Iterator[str | list[str]]:
        self.read, self.continued = 0, set()
        found = from_path(os.fspath(self.corpus), split=True) if is_path(self.corpus) else self.corpus
        if not isinstance(found, TextFiles):
            for text in documents(found.texts if isinstance(found, Documents) else found):
                self.read += 1
                yield text
            return
        for text, _, goes_on in found.parts():
            if goes_on:
                self.continued.add(self.read)
            self.read += 1
            yield text
