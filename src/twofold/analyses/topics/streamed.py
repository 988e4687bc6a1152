"""Documents beyond the memory budget: read where they lie, counted to a folder, and looked up again one by one.

What the analysis of topics takes from counts in memory it takes from `CountsOnDisk`, too: shape, indptr, sums, rows.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import scipy.sparse as sp

from twofold.core.config import config
from twofold.core.data.blocks import Blocks, as_blocks
from twofold.core.data.csr_folder import write_csr
from twofold.core.engine.local import add, engine_for
from twofold.io.documents import Documents, TextFiles, describe_count, find_documents, join_parts, names_of, parts_of

SAMPLE_BLOCKS, DOCUMENTS_PER_BLOCK = 25, 20  # that show the language and the number of documents
KEPT_LETTERS = 4000  # at the beginning of a document


def find_large(paths: Sequence[str], text: str | None, date: str | None, title: str | None) -> TextFiles | None:
    """The documents, unread, if they are files that take more than the memory budget; a date or title is read here."""
    if "-" in paths or date is not None or title is not None:
        return None
    files = find_documents(paths, text, stream=True)
    return files if isinstance(files, TextFiles) and files.size > config().memory else None


class Usage(NamedTuple):
    """In how many documents each word is and how often it is used (d,), and how long documents are (n,)."""

    documents: np.ndarray
    times: np.ndarray
    lengths: np.ndarray


def usage(X: sp.csr_array) -> Usage:
    times, lengths = (np.asarray(X.sum(axis=axis), dtype=np.float64).ravel() for axis in (0, 1))
    return Usage(np.bincount(X.indices, minlength=X.shape[1]), times, lengths)


class Sample(Sequence[str]):
    """The beginnings of some documents from all over a corpus, and how many it has, about."""

    def __init__(self, files: TextFiles):
        blocks, letters = files.blocks(), 0
        self.texts: list[str] = []
        for block in blocks[:: max(1, len(blocks) // SAMPLE_BLOCKS)]:
            for text in islice(block, DOCUMENTS_PER_BLOCK):
                letters += len(text)
                self.texts.append(text[:KEPT_LETTERS])
        by_size = files.size * len(self.texts) / max(letters, 1)
        self.number = len(files.files) if files.files[0].unit == "file" else int(by_size)

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, at: Any) -> Any:
        return self.texts[at] if isinstance(at, int) else self.texts


class CountsOnDisk:
    """Counts (n,d) in a temporary folder, with what a CSR array has that the analysis asks for."""

    def __init__(self, folder: tempfile.TemporaryDirectory, path: str):
        self.folder, self.path = folder, path
        self.blocks: Blocks = as_blocks(path)
        self.shape, self.indptr = self.blocks.shape, np.asarray(self.blocks.source.indptr)
        engine = engine_for(self.blocks)
        self.column_sums = engine.reduce(add, engine.map(_sum_columns, self.blocks))
        self.row_sums = np.concatenate(engine.gather(engine.map(_sum_rows, self.blocks)))

    def sum(self, axis: int | None = None) -> Any:
        return self.row_sums.sum() if axis is None else (self.column_sums, self.row_sums)[axis]

    def __getitem__(self, rows: Any) -> sp.csr_array:
        """Some rows, in the order asked for."""
        rows = np.arange(self.shape[0])[rows]
        wanted, back = np.unique(rows, return_inverse=True)
        parts, bounds = [sp.csr_array((0, self.shape[1]), dtype=np.int32)], self.blocks.bounds
        for i in np.unique(np.searchsorted(bounds, wanted, side="right") - 1):
            mine = wanted[(wanted >= bounds[i]) & (wanted < bounds[i + 1])]
            parts.append(self.blocks[int(i)][mine - bounds[i]].astype(np.int32))
        return sp.csr_array(sp.vstack(parts, format="csr")[back])

    def sample(self, step: int) -> Usage:
        """The usage of every `step`-th row, a block of them in memory at a time."""
        df, used = np.zeros(self.shape[1], np.int64), np.zeros(self.shape[1])
        for start, block in zip(self.blocks.bounds[:-1], self.blocks, strict=True):
            some = usage(block[-int(start) % step :: step])
            df, used = df + some.documents, used + some.times
        return Usage(df, used, self.row_sums[::step].astype(np.float64))

    def write_changed(self, name: str, change: Any) -> str:
        """Write change(rows) of every block of rows to another folder, and return its path."""
        return write_csr(os.path.join(self.folder.name, name), (change(block) for block in self.blocks))


def _sum_columns(X: sp.csr_array) -> np.ndarray:
    return np.asarray(X.sum(axis=0)).ravel()


def _sum_rows(X: sp.csr_array) -> np.ndarray:
    return np.asarray(X.sum(axis=1)).ravel()


def count_to_disk(bag: Any, files: TextFiles) -> CountsOnDisk:
    """Fit a `BagOfWords` and count by it."""
    folder = tempfile.TemporaryDirectory(prefix="twofold-topics-")
    return CountsOnDisk(folder, bag.fit_transform(files, to=os.path.join(folder.name, "counts.csr")))


def as_unread(files: TextFiles) -> Documents:
    """Documents of which nothing was read yet."""
    note = f"{files.source} is larger than the memory budget: its texts are read from disk as they are needed"
    return Documents([], pl.Series(), source=files.source, notes=[*files.notes, note], left_out=files.left_out)


def with_ids(documents: Documents, files: TextFiles, n: int) -> Documents:
    """Documents by name or number, of which there are n."""
    unit = files.files[0].unit
    documents.notes.append(describe_count(n, unit, files.source))
    return replace(documents, ids=pl.Series(unit, names_of(files) if unit == "file" else np.arange(1, n + 1)))


def look_up(files: TextFiles, wanted: set[int]) -> dict[int, str]:
    """Some of the documents."""
    if files.files[0].unit == "file":
        return {i: next(join_parts(parts_of(files.files[i])))[0] for i in wanted}
    texts = enumerate(islice(files, max(wanted, default=-1) + 1))
    return {i: text for i, text in texts if i in wanted}
