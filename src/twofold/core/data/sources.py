"""Where rows come from. A source knows its shape and dtype, and reads any run of rows.

read(start, stop)   those rows as a C-contiguous array or a CSR array
across()            the same data with rows and columns exchanged
bounds              where its blocks are cut, if not after every few megabytes
"""

from __future__ import annotations

import copy
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.csr_folder import open_csr

BLOCK_BYTES = 4 * 2**20
BLOCK_ROWS = 2**16
SHARES = 4  # blocks into which data of one block's size is cut: threads want work
GROUP_ROWS = 2**18  # the usual most of a Parquet row group
CHUNK_BLOCKS = 16  # Parquet is decoded this many blocks at a time, or fewer if the budget is small


class Source(Protocol):
    """What every source has."""

    shape: tuple[int, int]
    dtype: np.dtype

    def read(self, start: int, stop: int) -> Any: ...

    def across(self) -> Source: ...


def float_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype a fit works in: float32 stays, everything else becomes float64."""
    return np.dtype(np.float32 if dtype in (np.float32, np.float16) else np.float64)


def rows_per_block(d: int, dtype: np.dtype) -> int:
    """As many rows as a few megabytes hold, but not too many of narrow data."""
    return max(1, min(BLOCK_BYTES // max(1, d * dtype.itemsize), BLOCK_ROWS))


def even_rows(shape: tuple[int, int], dtype: np.dtype) -> int:
    """Rows of a block if all are to be alike, of a few megabytes, or of one where there is no more data than that.

    It depends on shape and dtype alone: bits know neither how many threads there are nor where the data lives.
    """
    n, d = shape
    shares = min(SHARES, n * d * dtype.itemsize * SHARES // BLOCK_BYTES)
    count = max(-(-n // rows_per_block(d, dtype)), shares, 1)
    return max(1, -(-n // (count + count % 2 if count > 1 else 1)))


def cuts_by_stored(indptr: np.ndarray, dtype: np.dtype, cells: int | None = None) -> np.ndarray:
    """Where sparse rows are cut: after every few megabytes of stored values, so that skewed rows do no harm."""
    per_block = cells or BLOCK_BYTES // (dtype.itemsize + 4)
    cuts = np.searchsorted(indptr, np.arange(per_block, indptr[-1], per_block))
    return np.unique(np.concatenate([[0], cuts, [len(indptr) - 1]]))


class DenseSource:
    """An array in memory. Blocks are C-contiguous, by copying if need be, so the order of X never shows in a result."""

    def __init__(self, X: np.ndarray):
        self.X = X.astype(float_dtype(X.dtype), copy=False)
        self.shape, self.dtype = self.X.shape, self.X.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        return np.ascontiguousarray(self.X[start:stop])

    def across(self) -> DenseSource:
        return DenseSource(self.X.T)


class StoredRows:
    """What sparse sources share: rows cut by their stored values."""

    is_sparse = True
    dtype: np.dtype
    indptr: np.ndarray
    bounds: np.ndarray

    def finer(self, cells: int) -> Self:
        """The same rows, cut after every so many stored values."""
        other = copy.copy(self)
        other.bounds = cuts_by_stored(self.indptr, self.dtype, cells)
        return other


class SparseSource(StoredRows):
    """A CSR array in memory; a block shares its stored values."""

    def __init__(self, X: Any, cells: int | None = None):
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

    def scaled(self, scale: np.ndarray) -> SparseSource:
        return SparseSource(self.X @ sparse.diags_array(1 / scale.astype(self.dtype)))


class CsrSource(StoredRows):
    """A folder that `write_csr` wrote, read block by block: the cuts and the values of the same table in memory."""

    def __init__(self, path: str | os.PathLike, scale: np.ndarray | None = None):
        self.path = os.fspath(path)
        self.shape, self.data, self.indices, self.indptr = open_csr(path)
        self.dtype = float_dtype(self.data.dtype)
        self.bounds = cuts_by_stored(self.indptr, self.dtype)
        self.per = None if scale is None else 1 / scale.astype(self.dtype)

    def read(self, start: int, stop: int) -> sparse.csr_array:
        a, b = int(self.indptr[start]), int(self.indptr[stop])
        data, indices = self.data.read(a, b).astype(self.dtype, copy=False), self.indices.read(a, b)
        if len(indices) and not 0 <= indices.min() <= indices.max() < self.shape[1]:
            raise InputError(f"{self.indices.path} is damaged: rows {start} to {stop} name columns that do not exist.")
        indptr = (self.indptr[start : stop + 1] - a).astype(indices.dtype)  # like a table in memory, if it is not huge
        parts = (data if self.per is None else data * self.per[indices], indices, indptr)
        X = sparse.csr_array(parts, shape=(stop - start, self.shape[1]))
        if not X.has_canonical_format:
            raise InputError(f"{self.indices.path} is damaged: columns do not ascend in rows {start} to {stop}.")
        return X

    def across(self) -> SparseSource:
        """Exchanging rows and columns takes all of it at once: done in memory, if the budget allows."""
        needed = int(self.indptr[-1]) * 2 * (self.dtype.itemsize + 4)
        if needed > config().memory:
            raise InputError(
                f"{self.path} is wanted along its columns, which takes {needed / 1e6:.0f} MB at once and the budget is "
                f"{config().memory / 1e6:.0f} MB. Raise twofold.config(memory=...), or load it into a CSR array."
            )
        return SparseSource(self.read(0, self.shape[0])).across()

    def scaled(self, scale: np.ndarray) -> CsrSource:
        return CsrSource(self.path, scale)


class NpySource:
    """A .npy file read block by block: never mapped, so that resident memory stays within the budget."""

    def __init__(self, path: str | os.PathLike, transposed: bool = False):
        self.path, self.transposed = os.fspath(path), transposed
        try:
            X = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise InputError(f"{self.path}: no such file.") from None
        except (ValueError, OSError, EOFError) as why:
            raise InputError(f"{self.path} is not a readable .npy file ({why}).") from None
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise InputError(f"{self.path} holds {X.dtype} of shape {X.shape}; a 2-D array of numbers is needed.")
        self.stored, self.offset = X.dtype, int(X.offset)
        # Rows lie together if the file is in C order; seen along its columns it is the other way round.
        self.row_major = bool(X.flags.c_contiguous) != transposed
        self.shape = X.shape[::-1] if transposed else X.shape
        self.dtype = float_dtype(X.dtype)

    def read(self, start: int, stop: int) -> np.ndarray:
        n, d = self.shape
        size, wanted = self.stored.itemsize, stop - start
        with open(self.path, "rb", buffering=0) as file:
            if self.row_major:
                cells = np.fromfile(file, self.stored, wanted * d, offset=self.offset + start * d * size)
                return self._whole(cells, wanted * d).reshape(wanted, d).astype(self.dtype, copy=False)
            block = np.empty((wanted, d), self.dtype)
            for j in range(d):
                file.seek(self.offset + (j * n + start) * size)
                block[:, j] = self._whole(np.fromfile(file, self.stored, wanted), wanted)
        return block

    def _whole(self, cells: np.ndarray, wanted: int) -> np.ndarray:
        if len(cells) < wanted:
            raise InputError(f"{self.path} ends before its last row: it is truncated. Write it again.")
        return cells

    def across(self) -> NpySource:
        return NpySource(self.path, not self.transposed)


class ParquetSource:
    """A Parquet file or folder of numeric columns, decoded some blocks at a time; two decoded pieces are kept."""

    def __init__(self, path: str | os.PathLike):
        import polars as pl

        self.path = os.fspath(path)
        if not Path(self.path).exists():
            raise InputError(f"{self.path}: no such file.")
        try:
            self.frame = pl.scan_parquet(self.path)
            schema = self.frame.collect_schema()
            n = int(self.frame.select(pl.len()).collect().item())
        except (pl.exceptions.PolarsError, OSError) as why:
            raise InputError(f"{self.path} is not a readable Parquet file ({str(why).splitlines()[0]}).") from None
        for name, kind in schema.items():
            if not (kind.is_numeric() or kind == pl.Boolean):
                raise InputError(f'{self.path}, column "{name}" is {kind}, not numbers. Drop it or encode it first.')
        self.columns = list(schema.names())
        self.shape = (n, len(self.columns))
        small = (pl.Float32, pl.Int8, pl.UInt8, pl.Int16, pl.UInt16, pl.Boolean)
        single = pl.Float32 in schema.values() and all(kind in small for kind in schema.values())
        self.kind: Any = pl.Float32 if single else pl.Float64
        self.dtype: np.dtype = np.dtype("f4" if single else "f8")
        # Two decoded pieces are kept while a third is made: an eighth of the budget each, and another for what is
        # decoded at once, since a column is decoded by whole row groups however few of their rows are wanted.
        blocks = min(CHUNK_BLOCKS, max(1, config().memory // (8 * BLOCK_BYTES)))
        self.chunk = blocks * even_rows(self.shape, self.dtype)
        self.at_once = max(1, config().memory // (8 * self.dtype.itemsize * max(1, min(n, GROUP_ROWS))))
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    def _decoded(self, at: int) -> np.ndarray:
        with self._lock:
            if at not in self._kept:
                while len(self._kept) > 1:
                    self._kept.popitem(last=False)
                self._kept[at] = self._piece(at * self.chunk, min(self.chunk, self.shape[0] - at * self.chunk))
            return self._kept[at]

    def _piece(self, start: int, rows: int) -> np.ndarray:
        piece = np.empty((rows, self.shape[1]), self.dtype)
        for first in range(0, self.shape[1], self.at_once):
            names = self.columns[first : first + self.at_once]
            part = self.frame.select(names).slice(start, rows).collect().cast(self.kind)
            piece[:, first : first + len(names)] = part.to_numpy()
        return piece

    def read(self, start: int, stop: int) -> np.ndarray:
        at, first = divmod(start, self.chunk)
        return self._decoded(at)[first : first + stop - start]

    def across(self) -> ParquetColumns:
        return ParquetColumns(self)


class ParquetColumns:
    """A Parquet file seen along its columns, which is how it is stored."""

    def __init__(self, rows: ParquetSource):
        self.rows, self.shape, self.dtype = rows, rows.shape[::-1], rows.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        part = self.rows.frame.select(self.rows.columns[start:stop]).collect()
        return np.ascontiguousarray(part.cast(self.rows.kind).to_numpy().T)

    def across(self) -> ParquetSource:
        return self.rows


class ScaledSource:
    """Another source's values divided by a scale: (d,) for its columns, (n,1) for its rows."""

    def __init__(self, source: Source, scale: np.ndarray):
        self.source, self.shape, self.dtype = source, source.shape, source.dtype
        self.scale = scale.astype(self.dtype)

    def read(self, start: int, stop: int) -> np.ndarray:
        return self.source.read(start, stop) / (self.scale[start:stop] if self.scale.ndim == 2 else self.scale)

    def across(self) -> ScaledSource:
        return ScaledSource(self.source.across(), self.scale[:, None])


class ChosenSource:
    """Some rows of another source's blocks; blocks without any are left out."""

    def __init__(self, source: Source, bounds: np.ndarray, chosen: np.ndarray):
        self.source, self.rows, self.dtype = source, np.flatnonzero(chosen), source.dtype
        self.is_sparse = getattr(source, "is_sparse", False)
        self.shape = (len(self.rows), source.shape[1])
        self.cuts = bounds
        self.bounds = np.unique(np.searchsorted(self.rows, bounds))

    def read(self, start: int, stop: int) -> Any:
        rows = self.rows[start:stop]
        at = int(np.searchsorted(self.cuts, rows[0], side="right")) - 1
        first = int(self.cuts[at])
        return self.source.read(first, int(self.cuts[at + 1]))[rows - first]

    def across(self) -> ColumnsOf:
        return ColumnsOf(self.source.across(), self.rows)


class ColumnsOf:
    """Some columns of another source."""

    def __init__(self, source: Source, columns: np.ndarray):
        self.source, self.columns, self.dtype = source, columns, source.dtype
        self.shape, self.is_sparse = (source.shape[0], len(columns)), getattr(source, "is_sparse", False)

    def read(self, start: int, stop: int) -> Any:
        return self.source.read(start, stop)[:, self.columns]

    def across(self) -> Source:
        raise NotImplementedError("no model looks at chosen rows both ways and back")
