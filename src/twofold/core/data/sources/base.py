"""What a source is: a matrix that knows its shape and dtype and reads any run of its rows; how rows are cut.

Here are the sources in memory, and views of other sources: scaled, or some of their rows or columns.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.sources.decoded import Decoded
from twofold.core.types import Block

BLOCK_BYTES = 4 * 2**20
BLOCK_ROWS = 2**16
SHARES = 4  # blocks into which data of one block's size is cut: threads want work


class Source(ABC):
    """A matrix (n,d) read by runs of rows, wherever it lives."""

    shape: tuple[int, int]
    dtype: np.dtype
    is_sparse: bool = False  # read gives a CSR array
    in_memory: bool = False  # its values are in this process, and reading is free
    is_lazy: bool = False  # its values are made elsewhere when they are asked for; they should stay there
    seeks: bool = False  # a few rows from anywhere take no longer than so many from the beginning
    elsewhere: bool = False  # a worker that is sent this source can read its rows: they are in files
    bounds: np.ndarray | None = None  # where its blocks are cut, if not after every few megabytes
    indptr: np.ndarray | None = None  # where each row's stored values begin, if it is sparse
    columns: list[str] | None = None  # the names of its columns, if it has any
    decoded: Decoded | None = None  # where rows wait that the budget does not hold and that are costly to decode again

    def __getstate__(self) -> dict[str, Any]:
        """Send a worker absolute paths: it may have been started in another folder."""
        path = vars(self).get("path")
        return {**vars(self), "path": os.path.abspath(path)} if isinstance(path, str) else dict(vars(self))

    @abstractmethod
    def read(self, start: int, stop: int) -> Block:
        """Those rows as a C-contiguous array or a CSR array."""

    @abstractmethod
    def across(self) -> Source:
        """The same data with rows and columns exchanged."""

    def divide_columns(self, scale: np.ndarray) -> Source:
        """The same rows with column j divided by scale[j]."""
        return ScaledSource(self, scale)

    def finer(self, cells: int) -> Self:
        """The same rows, cut after every `cells` stored values; dense rows stay as they are."""
        return self

    def some(self, rows: np.ndarray | slice) -> Source:
        """Only these rows, which ascend."""
        return SomeRows(self, np.arange(self.shape[0])[rows])

    def where(self, bounds: np.ndarray, chosen: np.ndarray) -> Source:
        """Only the rows for which `chosen` is true, where `bounds` cut the blocks: each keeps its own."""
        return ChosenSource(self, bounds, chosen)

    def part(self, start: int, stop: int) -> tuple[Source, int]:
        """Return what a worker needs for these rows, and the place of its first row in the whole."""
        return self, 0

    def drop(self) -> None:
        """Forget what is kept in memory to be read again soon, here or where this is a view of."""
        source = vars(self).get("source")
        if isinstance(source, Source):
            source.drop()

    def engine(self) -> Any:
        """The engine that lives where the rows live; None is the one of this process."""
        return None

    @property
    def n_stored(self) -> int:
        """Cells that are stored: all of a dense source."""
        return self.shape[0] * self.shape[1] if self.indptr is None else int(self.indptr[-1])


def join_rows(parts: list[Block]) -> Block:
    """Rows below each other; one part is not copied."""
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)


def float_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype a fit works in: float32 stays, everything else becomes float64."""
    return np.dtype(np.float32 if dtype in (np.float32, np.float16) else np.float64)


def rows_per_block(d: int, dtype: np.dtype) -> int:
    """As many rows as a few megabytes hold, but not too many of narrow data."""
    return max(1, min(BLOCK_BYTES // max(1, d * dtype.itemsize), BLOCK_ROWS))


def even_rows(shape: tuple[int, int], dtype: np.dtype) -> int:
    """Rows of a block if all are to be equal, of a few megabytes, or of one where there is less data than that.

    It depends on shape and dtype alone: bits know neither how many threads there are nor where the data lives.
    """
    n, d = shape
    shares = min(SHARES, n * d * dtype.itemsize * SHARES // BLOCK_BYTES)
    count = max(-(-n // rows_per_block(d, dtype)), shares, 1)
    return max(1, -(-n // (count + count % 2 if count > 1 else 1)))


def cuts_by_stored(indptr: np.ndarray, dtype: np.dtype, cells: int | None = None) -> np.ndarray:
    """Cut sparse rows after every few megabytes of stored values, so that skewed rows do no harm."""
    per_block = cells or BLOCK_BYTES // (dtype.itemsize + 4)
    cuts = np.searchsorted(indptr, np.arange(per_block, indptr[-1], per_block))
    return np.unique(np.concatenate([[0], cuts, [len(indptr) - 1]]))


# --- in memory ------------------------------------------------------------------------------------------------------


class DenseSource(Source):
    """An array in memory. Blocks are C-contiguous, by copying if need be, so the order of X never shows in a result."""

    in_memory = seeks = True

    def __init__(self, X: np.ndarray):
        self.X = X.astype(float_dtype(X.dtype), copy=False)
        self.shape, self.dtype = self.X.shape, self.X.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        return np.ascontiguousarray(self.X[start:stop])

    def across(self) -> DenseSource:
        return DenseSource(self.X.T)


class StoredRows(Source):
    """What sparse sources share: rows cut by their stored values."""

    is_sparse = True
    indptr: np.ndarray
    bounds: np.ndarray

    def finer(self, cells: int) -> Self:
        other = copy.copy(self)
        other.bounds = cuts_by_stored(self.indptr, self.dtype, cells)
        return other


class SparseSource(StoredRows):
    """A CSR array in memory; a block shares its stored values."""

    in_memory = seeks = True

    def __init__(self, X: Block, cells: int | None = None):
        X = sparse.csr_array(X)
        X = X.astype(float_dtype(X.dtype), copy=False)
        if not X.has_canonical_format:
            X = X.copy()  # the caller's array stays as it is
            X.sum_duplicates()
        self.X, self.shape, self.dtype, self.indptr = X, X.shape, X.dtype, X.indptr
        self.bounds = cuts_by_stored(X.indptr, X.dtype, cells)

    def read(self, start: int, stop: int) -> sparse.csr_array:
        a, b = self.X.indptr[start], self.X.indptr[stop]
        parts = (self.X.data[a:b], self.X.indices[a:b], self.X.indptr[start : stop + 1] - a)
        return sparse.csr_array(parts, shape=(stop - start, self.shape[1]))

    def across(self) -> SparseSource:
        return SparseSource(self.X.T)

    def divide_columns(self, scale: np.ndarray) -> SparseSource:
        return SparseSource(self.X @ sparse.diags_array(1 / scale.astype(self.dtype)))


def turn_in_memory(source: Source, name: str) -> SparseSource | DenseSource:
    """Rows and columns exchanged where that takes all of it at once: done in memory, if the budget allows."""
    needed = source.n_stored * 2 * (source.dtype.itemsize + (4 if source.is_sparse else 0))
    if needed > config().memory:
        raise InputError(
            f"{name} is wanted along its columns, which takes {needed / 1e6:.0f} MB at once and the budget is "
            f"{config().memory / 1e6:.0f} MB. Raise twofold.config(memory=...), or load it into an array."
        )
    whole = source.read(0, source.shape[0])
    return (SparseSource(whole) if source.is_sparse else DenseSource(whole)).across()


# --- views ----------------------------------------------------------------------------------------------------------


class ScaledSource(Source):
    """Another source's values divided by a scale: (d,) for its columns, (n,1) for its rows."""

    def __init__(self, source: Source, scale: np.ndarray):
        self.source, self.shape, self.dtype = source, source.shape, source.dtype
        self.scale = scale.astype(self.dtype)
        self.elsewhere = source.elsewhere

    def read(self, start: int, stop: int) -> np.ndarray:
        return self.source.read(start, stop) / (self.scale[start:stop] if self.scale.ndim == 2 else self.scale)

    def part(self, start: int, stop: int) -> tuple[ScaledSource, int]:
        source, first = self.source.part(start, stop)
        scale = self.scale[first : first + source.shape[0]] if self.scale.ndim == 2 else self.scale
        return ScaledSource(source, scale), first

    def across(self) -> ScaledSource:
        return ScaledSource(self.source.across(), self.scale[:, None])


class ChosenSource(Source):
    """Some rows of another source's blocks; blocks without any are left out."""

    def __init__(self, source: Source, bounds: np.ndarray, chosen: np.ndarray):
        self.source, self.rows, self.dtype = source, np.flatnonzero(chosen), source.dtype
        self.is_sparse, self.elsewhere = source.is_sparse, source.elsewhere
        self.shape = (len(self.rows), source.shape[1])
        self.cuts = bounds
        self.bounds: np.ndarray = np.unique(np.searchsorted(self.rows, bounds))

    def read(self, start: int, stop: int) -> Block:
        rows = self.rows[start:stop]
        at = int(np.searchsorted(self.cuts, rows[0], side="right")) - 1
        first = int(self.cuts[at])
        return self.source.read(first, int(self.cuts[at + 1]))[rows - first]

    def across(self) -> ColumnsOf:
        return ColumnsOf(self.source.across(), self.rows)


class SomeRows(Source):
    """Some rows of another source, in their order."""

    def __init__(self, source: Source, rows: np.ndarray):
        self.source, self.rows, self.dtype = source, rows, source.dtype
        self.shape, self.is_sparse, self.elsewhere = (len(rows), source.shape[1]), source.is_sparse, source.elsewhere

    def read(self, start: int, stop: int) -> Block:
        rows = self.rows[start:stop]
        runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
        return join_rows([self.source.read(int(run[0]), int(run[-1]) + 1) for run in runs])

    def part(self, start: int, stop: int) -> tuple[SomeRows, int]:
        rows = self.rows[start:stop]
        source, first = self.source.part(int(rows[0]), int(rows[-1]) + 1)
        return SomeRows(source, rows - first), start

    def across(self) -> ColumnsOf:
        return ColumnsOf(self.source.across(), self.rows)


class ColumnsOf(Source):
    """Some columns of another source."""

    def __init__(self, source: Source, chosen: np.ndarray):
        self.source, self.chosen, self.dtype = source, chosen, source.dtype
        self.shape, self.is_sparse = (source.shape[0], len(chosen)), source.is_sparse
        self.elsewhere = source.elsewhere
        self.columns = None if source.columns is None else [source.columns[j] for j in chosen]

    def read(self, start: int, stop: int) -> Block:
        rows = self.source.read(start, stop)[:, self.chosen]
        return rows if self.is_sparse else np.ascontiguousarray(rows)

    def part(self, start: int, stop: int) -> tuple[ColumnsOf, int]:
        source, first = self.source.part(start, stop)
        return ColumnsOf(source, self.chosen), first

    def across(self) -> Source:
        raise NotImplementedError("no model looks at chosen rows both ways and back")
