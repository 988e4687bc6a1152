"""What X may be, and how it becomes row blocks.

A `Blocks` knows its shape and dtype and loads one block of rows at a time. Where the cuts fall depends only on
the data (its shape and dtype; for sparse data its stored values), never on threads, workers or the memory
budget: that is what makes every sum, and so every fit, the same to the last bit wherever it runs.

    blocks = as_blocks(X)          ndarray, CSR, path to .npy or .parquet, dask array
    blocks[3]                      rows bounds[3]..bounds[4] as a C-contiguous array or a CSR array
    blocks.rows(sample_weight)     a per-row array, cut the same way
    blocks.T                       the same data, cut along its columns
"""

from __future__ import annotations

import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError

BLOCK_BYTES = 4 * 2**20
CHUNK_BLOCKS = 16  # Parquet is decoded this many blocks at a time


class Source(Protocol):
    """Where rows come from."""

    shape: tuple[int, int]
    dtype: np.dtype

    def read(self, start: int, stop: int) -> Any: ...


class Rows(list):
    """One item a block, where the block is: what a map may take beside a `Blocks`."""


class Blocks(Sequence):
    """Row blocks of one matrix, loaded on demand."""

    def __init__(self, source: Source, bounds: np.ndarray, transposed: Callable[[], Blocks] | None = None):
        self.source, self.bounds, self._transposed = source, bounds, transposed
        self.shape, self.dtype = source.shape, source.dtype

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, i: Any) -> Any:
        return self.source.read(int(self.bounds[i]), int(self.bounds[i + 1]))

    @property
    def is_sparse(self) -> bool:
        return isinstance(self.source, SparseSource)

    @property
    def block_bytes(self) -> int:
        """Bytes of the largest block once loaded."""
        if isinstance(self.source, SparseSource):
            stored = np.diff(self.source.X.indptr[self.bounds])
            return int(stored.max(initial=0)) * (self.dtype.itemsize + 4)
        return int(np.diff(self.bounds).max(initial=0)) * self.shape[1] * self.dtype.itemsize

    @property
    def T(self) -> Blocks:
        if self._transposed is None:
            raise InputError("this input cannot be cut along its columns; load it into memory first.")
        return self._transposed()

    def rows(self, per_row: np.ndarray | None) -> Rows:
        """Cut an array with one entry a row the way the blocks are cut; None gives None for every block."""
        if per_row is None:
            return Rows([None] * len(self))
        return Rows(per_row[a:b] for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True))

    def scaled(self, scale: np.ndarray) -> Blocks:
        """The same rows with column j divided by scale[j], as they are read."""
        if isinstance(self.source, SparseSource):
            return _from_sparse(self.source.X @ sparse.diags_array(1 / scale.astype(self.dtype)))
        if hasattr(self.source, "scaled"):
            return self.source.scaled(scale)
        across = lambda: Blocks(ScaledSource(self.T.source, scale[:, None]), self.T.bounds)  # noqa: E731
        return Blocks(ScaledSource(self.source, scale), self.bounds, across)

    def where(self, chosen: np.ndarray, w: np.ndarray | None) -> tuple[Blocks, np.ndarray | None]:
        """Only some rows, with their weights: cut out if in memory, else given weight zero elsewhere."""
        if isinstance(self.source, (DenseSource, SparseSource)):
            return as_blocks(self.source.X[chosen]), None if w is None else w[chosen]
        return self, np.where(chosen, 1.0 if w is None else w, 0.0)

    def fingerprint(self) -> str:
        """A short sign of what the data is: shape, dtype, and a checksum of the first and last block."""
        crc = 0
        for i in {0, len(self) - 1}:
            block = self[i]
            values = block.data if self.is_sparse else block
            crc = zlib.crc32(np.ascontiguousarray(values).tobytes(), crc)
        return f"{self.shape[0]}x{self.shape[1]}:{self.dtype}:{crc:08x}"


class DenseSource:
    """An array in memory. Blocks are C-contiguous copies or views, so the order of X never shows in a result."""

    def __init__(self, X: np.ndarray):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        return np.ascontiguousarray(self.X[start:stop])


class ScaledSource:
    """Another source's values divided by a scale: (d,) for its columns, (n,1) for its rows."""

    def __init__(self, source: Source, scale: np.ndarray):
        self.source, self.shape, self.dtype = source, source.shape, source.dtype
        self.scale = scale.astype(self.dtype)

    def read(self, start: int, stop: int) -> np.ndarray:
        return self.source.read(start, stop) / (self.scale[start:stop] if self.scale.ndim == 2 else self.scale)


class SparseSource:
    """A CSR array in memory; a block shares the stored values."""

    def __init__(self, X: sparse.csr_array):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def read(self, start: int, stop: int) -> sparse.csr_array:
        a, b = self.X.indptr[start], self.X.indptr[stop]
        parts = (self.X.data[a:b], self.X.indices[a:b], self.X.indptr[start : stop + 1] - a)
        return sparse.csr_array(parts, shape=(stop - start, self.shape[1]))


class NpySource:
    """A .npy file read block by block: never mapped, so that resident memory stays within the budget."""

    def __init__(self, path: str | os.PathLike, transposed: bool = False):
        self.path = os.fspath(path)
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
        with open(self.path, "rb", buffering=0) as file:
            if self.row_major:
                block = np.fromfile(
                    file,
                    self.stored,
                    (stop - start) * d,
                    offset=self.offset + start * d * self.stored.itemsize,
                )
                return block.reshape(stop - start, d).astype(self.dtype, copy=False)
            block = np.empty((stop - start, d), self.dtype)
            for j in range(d):
                file.seek(self.offset + (j * n + start) * self.stored.itemsize)
                block[:, j] = np.fromfile(file, self.stored, stop - start)
        return block


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
        single = all(
            kind in (pl.Float32, pl.Int8, pl.UInt8, pl.Int16, pl.UInt16, pl.Boolean) for kind in schema.values()
        )
        self.dtype = np.dtype(np.float32 if single and pl.Float32 in schema.values() else np.float64)
        self.chunk = CHUNK_BLOCKS * rows_per_block(self.shape[1], self.dtype)
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    def _decoded(self, at: int) -> np.ndarray:
        import polars as pl

        with self._lock:
            if at not in self._kept:
                part = self.frame.slice(at * self.chunk, self.chunk).collect()
                kind = pl.Float32 if self.dtype == np.float32 else pl.Float64
                self._kept[at] = np.ascontiguousarray(part.cast(kind).to_numpy())
                while len(self._kept) > 2:
                    self._kept.popitem(last=False)
            return self._kept[at]

    def read(self, start: int, stop: int) -> np.ndarray:
        at, first = divmod(start, self.chunk)
        return self._decoded(at)[first : first + stop - start]

    def __getstate__(self) -> dict:
        return {"path": self.path}

    def __setstate__(self, state: dict) -> None:
        self.__init__(state["path"])  # type: ignore[misc]


def float_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype a fit works in: float32 stays, everything else becomes float64."""
    return np.dtype(np.float32 if dtype in (np.float32, np.float16) else np.float64)


def rows_per_block(d: int, dtype: np.dtype) -> int:
    return max(1, BLOCK_BYTES // max(1, d * dtype.itemsize))


def dense_bounds(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Cuts after every few megabytes of rows."""
    n, d = shape
    return np.append(np.arange(0, max(n, 1), rows_per_block(d, dtype)), n)


def sparse_bounds(X: sparse.csr_array) -> np.ndarray:
    """Cuts after every few megabytes of stored values, so that skewed rows balance."""
    per_block = BLOCK_BYTES // (X.dtype.itemsize + 4)
    targets = np.arange(per_block, X.indptr[-1], per_block)
    cuts = np.searchsorted(X.indptr, targets)
    return np.unique(np.concatenate([[0], cuts, [X.shape[0]]]))


def _from_array(X: np.ndarray) -> Blocks:
    X = X if X.dtype == float_dtype(X.dtype) else X.astype(float_dtype(X.dtype))
    return Blocks(DenseSource(X), dense_bounds(X.shape, X.dtype), lambda: _from_array(X.T))


def _from_sparse(X: Any) -> Blocks:
    X = sparse.csr_array(X)
    X = X if X.dtype == float_dtype(X.dtype) else X.astype(float_dtype(X.dtype))
    X.sum_duplicates()
    return Blocks(SparseSource(X), sparse_bounds(X), lambda: _from_sparse(X.T))


def _from_npy(path: str | os.PathLike, transposed: bool = False) -> Blocks:
    source = NpySource(path, transposed)
    return Blocks(source, dense_bounds(source.shape, source.dtype), lambda: _from_npy(path, not transposed))


def _from_parquet(path: str | os.PathLike) -> Blocks:
    source = ParquetSource(path)
    return Blocks(source, dense_bounds(source.shape, source.dtype))


def is_path(X: Any) -> bool:
    return isinstance(X, (str, os.PathLike))


def is_dask(X: Any) -> bool:
    """Whether X is a dask collection, told without importing dask."""
    return hasattr(X, "__dask_graph__")


def as_blocks(X: Any) -> Blocks:
    """Row blocks of an array, a sparse array, a file or a dask array.

    >>> blocks = as_blocks(np.ones((100_000, 50)))
    >>> len(blocks), blocks[0].shape
    (10, (10485, 50))
    """
    if isinstance(X, Blocks):
        return X
    if is_path(X):
        ending = Path(X).suffix.lower()
        if ending == ".npy":
            return _from_npy(X)
        if ending in (".parquet", ".pq") or Path(X).is_dir():
            return _from_parquet(X)
        raise InputError(f"{os.fspath(X)}: a path must end in .npy or .parquet. Read other files into an array first.")
    if is_dask(X):
        from twofold.core.engine_dask import blocks_of_dask

        return blocks_of_dask(X)
    return _from_sparse(X) if sparse.issparse(X) else _from_array(np.asarray(X))
