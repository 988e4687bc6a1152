"""Weights of counts: damped, and every document scaled to length 1.

log     a = log(1 + x)          tfidf   a = x · idf,  idf = 1 + log((1 + n) / (1 + documents with the word))
then    A[i] = a[i] / ‖a[i]‖    which leaves unstored cells at zero: sparse stays sparse
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.blocks import Blocks, as_blocks
from twofold.core.data.sources import DenseSource, Source, SparseSource
from twofold.core.engine.local import add, engine_for, stack_results


class Weighing(NamedTuple):
    """The function from a count to a cell of A."""

    kind: str | None
    idf: np.ndarray  # (d,) the factor of each column


def weigh(X: Any, weighing: Weighing) -> Any:
    """Some rows of A. A count below 0 becomes NaN, which the model refuses."""
    if weighing.kind is None:
        return X
    cells = X.data if sparse.issparse(X) else X
    cells = np.where(cells < 0, np.nan, cells).astype(X.dtype)
    if weighing.kind == "log":
        cells = np.log1p(cells)
    elif sparse.issparse(X):
        cells *= weighing.idf.astype(X.dtype)[X.indices]
    else:
        cells *= weighing.idf.astype(X.dtype)
    A = sparse.csr_array((cells, X.indices, X.indptr), shape=X.shape) if sparse.issparse(X) else cells
    squares = np.asarray(A.multiply(A).sum(axis=1) if sparse.issparse(A) else (A * A).sum(axis=1), dtype=np.float64)
    length = np.sqrt(np.where(squares > 0, squares, 1.0)).astype(X.dtype)  # an empty document stays empty
    if sparse.issparse(A):
        A.data /= np.repeat(length, np.diff(A.indptr))
    else:
        A /= length[:, None]
    return A


class DocumentSums(NamedTuple):
    """Σw over the documents with each word, and over all."""

    with_word: np.ndarray  # (d,)
    documents: float


def _occurrences(X: Any, w: np.ndarray | None) -> DocumentSums:
    w = np.ones(X.shape[0]) if w is None else w
    if sparse.issparse(X):
        each = np.repeat(w, np.diff(X.indptr)) * (X.data != 0)
        return DocumentSums(np.bincount(X.indices, each, minlength=X.shape[1]), float(w.sum()))
    return DocumentSums(w @ (X != 0), float(w.sum()))


def find_weighing(blocks: Blocks, w: np.ndarray | None, kind: str | None) -> Weighing:
    """idf = 1 + log((1 + n) / (1 + documents with the word)); ones unless asked for."""
    idf = np.ones(blocks.shape[1])
    if kind == "tfidf":
        engine = engine_for(blocks)
        sums = engine.reduce(add, engine.map(_occurrences, blocks, blocks.rows(w)))
        idf = 1.0 + np.log((1.0 + sums.documents) / (1.0 + sums.with_word))
    return Weighing(kind, idf.astype(blocks.dtype))


class WeighedSource(Source):
    """The rows of a file, weighed when they are read."""

    def __init__(self, blocks: Blocks, weighing: Weighing):
        self.blocks, self.weighing, self.source = blocks, weighing, blocks.source
        self.shape, self.dtype, self.is_sparse = blocks.shape, blocks.dtype, blocks.is_sparse
        self.bounds, self.indptr, self.elsewhere = blocks.bounds, self.source.indptr, self.source.elsewhere

    def read(self, start: int, stop: int) -> Any:
        return weigh(self.source.read(start, stop), self.weighing)

    def part(self, start: int, stop: int) -> tuple[WeighedSource, int]:
        other = copy.copy(self)
        other.source, first = self.source.part(start, stop)
        other.blocks = other.bounds = other.indptr = None  # type: ignore[assignment]
        return other, first

    def across(self) -> Source:
        """Columns of A; the length of a document needs all of its words, so A is in memory whole."""
        n, d = self.shape
        cells = (2 if self.is_sparse else 1) * self.n_stored
        if 2 * cells * self.dtype.itemsize > config().memory:
            raise InputError(
                f"X ({n} documents, {d} words) is read by columns, which takes it into memory at once, and that "
                "exceeds the budget. Raise twofold.config(memory=...), or lower n_components."
            )
        return _in_memory(self.blocks, self.weighing).across()


def _in_memory(blocks: Blocks, weighing: Weighing) -> Any:
    engine = engine_for(blocks)
    A = stack_results(engine.gather(engine.map(weigh, blocks, engine.broadcast(weighing))))
    return SparseSource(A) if blocks.is_sparse else DenseSource(A)


def weigh_blocks(blocks: Blocks, weighing: Weighing) -> Blocks:
    """A in blocks like those of X: computed once if X is in memory, else when it is read."""
    if weighing.kind is None:
        return blocks
    if blocks.source.is_lazy:
        from twofold.core.engine.dask_sources import lazily

        if blocks.is_sparse:
            source: Any = blocks.source
            return Blocks(source.map_rows(weigh, (weighing,)))
        return as_blocks(lazily(weigh, blocks, (weighing,)))
    if blocks.source.in_memory:
        return Blocks(_in_memory(blocks, weighing))
    return Blocks(WeighedSource(blocks, weighing))
