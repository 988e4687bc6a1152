"""What X may be, and how it becomes row blocks.

A `Blocks` knows its shape and dtype and loads one block of rows at a time. Where the cuts fall depends only on
the data (its shape and dtype; for sparse data its stored values), never on threads, workers or the memory
budget: that is what makes every sum, and so every fit, the same to the last bit wherever it runs.

    blocks = as_blocks(X)          ndarray, CSR, path to .npy, .parquet or .csr, folder or pattern, dask array
    blocks[3]                      rows bounds[3]..bounds[4] as a C-contiguous array or a CSR array
    blocks.rows(sample_weight)     a per-row array, cut the same way
    blocks.T                       the same data, cut along its columns
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError, check_sparse
from twofold.core.data.addresses import fetch_address
from twofold.core.data.sources import (
    ColumnsOf,
    CsrSource,
    DenseSource,
    FilesSource,
    NpySource,
    ParquetSource,
    Source,
    SparseSource,
    even_rows,
    find_table_files,
    write_down,
)
from twofold.core.types import Block, PathLike, Table


def select_columns(source: Source, columns: Sequence[str] | None, path: PathLike) -> Blocks:
    """The columns of a source that have these names, or all."""
    if columns is None:
        return Blocks(source)
    names = source.columns or []
    if missing := [name for name in columns if name not in names]:
        has = f"it has {', '.join(names[:8])}" if names else "its columns have no names"
        raise InputError(f"columns: {os.fspath(path)} has no column {missing[0]!r}; {has}.")
    return Blocks(ColumnsOf(source, np.array([names.index(name) for name in columns])))


class Rows(list[Any]):
    """One item a block, where the block is: what a map may take beside a `Blocks`."""

    def local(self) -> Iterator[Any]:
        """The items, here, one after the other."""
        return iter(self)


class LazyRows(Rows):
    """Items that are made of what stands for them when they are asked for."""

    def make(self, it: Any) -> Any:
        raise NotImplementedError

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[at] for at in range(*i.indices(len(self)))]
        return self.make(super().__getitem__(i))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


class Blocks(Sequence[Any]):
    """Row blocks of one matrix, loaded on demand."""

    def __init__(self, source: Source):
        self.source = source
        self.shape, self.dtype = source.shape, source.dtype
        self.is_sparse = source.is_sparse
        step = even_rows(self.shape, self.dtype)
        self.bounds: np.ndarray = (
            np.append(np.arange(0, max(self.shape[0], 1), step), self.shape[0])
            if source.bounds is None
            else source.bounds
        )

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, i: Any) -> Block:
        return self.source.read(int(self.bounds[i]), int(self.bounds[i + 1]))

    @cached_property
    def block_bytes(self) -> int:
        """Bytes of the largest block once loaded, as if dense unless its stored values are known."""
        if self.source.indptr is not None:
            stored = np.diff(self.source.indptr[self.bounds])
            return int(stored.max(initial=0)) * (self.dtype.itemsize + 4)
        return int(np.diff(self.bounds).max(initial=0)) * self.shape[1] * self.dtype.itemsize

    @property
    def T(self) -> Blocks:
        return Blocks(self.source.across())

    def rows(self, per_row: np.ndarray | None) -> Rows:
        """Cut an array with one entry a row the way the blocks are cut; None gives None for every block."""
        if per_row is None:
            return Rows([None] * len(self))
        return Rows(per_row[a:b] for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True))

    def divide_columns(self, scale: np.ndarray) -> Blocks:
        """The same rows with column j divided by scale[j], as they are read."""
        return Blocks(self.source.divide_columns(scale))

    def where(self, chosen: np.ndarray) -> Blocks:
        """Only the rows for which `chosen` is true, each block keeping its own: the same wherever the data lives."""
        return Blocks(self.source.where(self.bounds, chosen))


def is_path(X: Any) -> TypeGuard[PathLike]:
    return isinstance(X, (str, os.PathLike))


def is_dask(X: Any) -> bool:
    """Return whether X is a dask collection, without importing dask."""
    return hasattr(X, "__dask_graph__")


def is_text_table(path: PathLike) -> bool:
    """Return whether a path is read as the command line reads tables: neither an array, Parquet nor several files."""
    ending = Path(path).suffix.lower()
    return ending not in (".npy", ".csr", ".parquet", ".pq") and find_table_files(path) is None


def is_lazy_table(X: Any) -> bool:
    """Return whether X is a polars LazyFrame or a pyarrow dataset, without importing either."""
    package = type(X).__module__.partition(".")[0]
    return (package == "polars" and type(X).__name__ == "LazyFrame") or (
        package == "pyarrow" and hasattr(X, "scanner") and hasattr(X, "schema")
    )


def choose_columns(X: Any, columns: Sequence[str]) -> Any:
    """Only the columns of a file or a frame that have these names, in this order."""
    columns = [columns] if isinstance(columns, str) else list(columns)
    if is_path(X):
        return as_blocks(X, columns)
    if is_lazy_table(X):
        return Blocks(write_down(X, columns))
    names = getattr(X, "columns", None)
    if names is None:
        raise InputError(f"columns={columns!r}: an array has no names of columns. Give X[:, [...]], a frame or a file.")
    if missing := [name for name in columns if name not in list(names)]:
        raise InputError(f"columns: X has no column {missing[0]!r}; it has {', '.join(map(str, list(names)[:8]))}.")
    return X[columns]


def as_blocks(X: Table, columns: Sequence[str] | None = None) -> Blocks:
    """Row blocks of an array, a sparse array, a file, a lazy table or a dask array; of a file only these columns.

    >>> blocks = as_blocks(np.ones((100_000, 50)))
    >>> len(blocks), blocks[0].shape
    (10, (10000, 50))
    """
    if isinstance(X, Blocks):
        return X
    if is_path(X):
        path: PathLike = fetch_address(X)
        ending = Path(path).suffix.lower()
        if ending == ".csr":
            return Blocks(CsrSource(path))
        files = find_table_files(path)
        if files is not None:
            return select_columns(FilesSource(files), columns, path)
        if ending == ".npy":
            return select_columns(NpySource(path), columns, path)
        if ending in (".parquet", ".pq") or Path(path).is_dir():
            return Blocks(ParquetSource(path, columns))
        return importlib.import_module("twofold.io.tables.stream").open_table(path, columns)  # io is above core
    if is_lazy_table(X):
        return Blocks(write_down(X))
    if is_dask(X):
        from twofold.core.engine.dask_sources import source_of_dask

        return Blocks(source_of_dask(X))
    if sparse.issparse(X):
        check_sparse(X)
        return Blocks(SparseSource(X))
    return Blocks(DenseSource(np.asarray(X)))
