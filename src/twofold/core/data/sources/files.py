"""Rows of files: .npy, .csr, .csv and .npz, and several files one below the other."""

from __future__ import annotations

import copy
import glob
import math
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from twofold.core.checks import DAMAGED_ARRAY, InputError, check_sparse, reason_of
from twofold.core.config import config
from twofold.core.data.csr_folder import open_csr
from twofold.core.data.sources.base import (
    Source,
    SparseSource,
    StoredRows,
    cuts_by_stored,
    float_dtype,
    join_rows,
    turn_in_memory,
)
from twofold.core.data.sources.decoded import Decoded
from twofold.core.data.sources.parquet import ParquetSource
from twofold.core.files.headers import reads_headers
from twofold.core.types import Block, PathLike

OPEN = 2  # files of which something is kept in memory
WILD = "*?["


class NpySource(Source):
    """A .npy file read block by block: never mapped, so that resident memory stays within the budget."""

    elsewhere = True

    @reads_headers
    def __init__(self, path: PathLike, transposed: bool = False, images: bool = False):
        self.path, self.transposed = os.fspath(path), transposed
        try:
            X = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise InputError(f"{self.path}: no such file.") from None
        except DAMAGED_ARRAY as why:
            raise InputError(f"{self.path} is not a readable .npy file ({reason_of(why)}).") from None
        if X.ndim not in ((2, 3, 4) if images else (2,)) or X.dtype.kind not in "fiub":
            wanted = "rows (n, d) or images (n, h, w[, c])" if images else "a 2-D array"
            raise InputError(f"{self.path} holds {X.dtype} of shape {X.shape}; {wanted} of numbers is needed.")
        self.row_shape: tuple[int, ...] = X.shape[1:]
        if X.ndim > 2 and not X.flags.c_contiguous:
            raise InputError(f"{self.path} holds images in Fortran order. Write it with np.ascontiguousarray.")
        self.stored, self.offset = X.dtype, int(X.offset)
        # Rows lie together if the file is in C order; seen along its columns it is the other way round.
        self.row_major = self.seeks = bool(X.flags.c_contiguous) != transposed
        n, d = X.shape[0], math.prod(X.shape[1:])
        self.shape = (d, n) if transposed else (n, d)
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


class CsrSource(StoredRows):
    """A folder that `write_csr` wrote, read block by block: the cuts and the values of the same table in memory."""

    elsewhere = seeks = True

    def __init__(self, path: PathLike, scale: np.ndarray | None = None):
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

    def part(self, start: int, stop: int) -> tuple[CsrSource, int]:
        other = copy.copy(self)
        other.indptr, other.shape = self.indptr[start : stop + 1], (stop - start, self.shape[1])
        return other, start

    def across(self) -> Source:
        return turn_in_memory(self, self.path)

    def divide_columns(self, scale: np.ndarray) -> CsrSource:
        return CsrSource(self.path, scale)


class WholeFile(Source):
    """A file that can only be read whole: it is kept until another is wanted."""

    elsewhere = True
    whole: Block | None = None

    def __init__(self, path: str):
        self.path = path
        self.look()

    def look(self) -> None:
        """Set the shape and dtype, as cheaply as the format allows."""
        raise NotImplementedError

    def load(self) -> Block:
        raise NotImplementedError

    def read(self, start: int, stop: int) -> Block:
        whole = self.whole
        if whole is None:
            whole = self.whole = self.load()
        return whole[start:stop]

    def drop(self) -> None:
        self.whole = None

    def across(self) -> Source:
        return turn_in_memory(self, self.path)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "whole": None}


class CsvSource(WholeFile):
    """A CSV file of numbers under a line of names; an empty cell is a missing value."""

    def look(self) -> None:
        frame = self._frame()
        self.columns = frame.columns
        self.shape, self.dtype = frame.shape, np.dtype(np.float64)

    def load(self) -> np.ndarray:
        import polars as pl

        frame = self._frame()
        if frame.shape != self.shape:
            raise InputError(f"{self.path} has shape {frame.shape} now; it was {self.shape}. Leave files as they are.")
        return np.ascontiguousarray(frame.cast(pl.Float64).fill_null(np.nan).to_numpy())

    def _frame(self) -> Any:
        import polars as pl

        try:
            frame = pl.read_csv(self.path, infer_schema_length=None)
        except FileNotFoundError:
            raise InputError(f"{self.path}: no such file.") from None
        except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as why:
            raise InputError(f"{self.path} is not a readable CSV file ({str(why).splitlines()[0]}).") from None
        for name, kind in frame.schema.items():
            if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
                raise InputError(f'{self.path}, column "{name}" is {kind}, not numbers. Drop it or encode it first.')
        return frame


class NpzSource(WholeFile, StoredRows):
    """A CSR array that `scipy.sparse.save_npz` wrote. What the budget does not hold twice waits in a temporary file."""

    def look(self) -> None:
        X = self.load()
        self.shape, self.dtype, self.indptr, self.index = X.shape, X.dtype, X.indptr, X.indices.dtype
        self.bounds = cuts_by_stored(self.indptr, self.dtype)
        if X.data.nbytes + X.indices.nbytes > config().memory // 16:
            self.decoded = Decoded()

    def read(self, start: int, stop: int) -> Block:
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        data, indices = np.empty((last - first, 1), self.dtype), np.empty((last - first, 1), self.index)
        for name, out in (("data", data), ("indices", indices)):
            make = partial(self._load_one, name)
            if self.decoded is None or not self.decoded.read((self.path, name), first, out, make):
                return super().read(start, stop)
        parts = (data[:, 0], indices[:, 0], self.indptr[start : stop + 1] - first)
        return sparse.csr_array(parts, shape=(stop - start, self.shape[1]))

    def _load_one(self, name: str) -> Iterator[np.ndarray]:
        X = self.load()
        if X.nnz != self.n_stored or X.shape != self.shape or X.dtype != self.dtype:
            raise InputError(f"{self.path} has other cells now than when it was opened. Leave files as they are.")
        yield getattr(X, name)[:, None]

    @reads_headers
    def load(self) -> sparse.csr_array:
        try:
            X = sparse.load_npz(self.path)
        except FileNotFoundError:
            raise InputError(f"{self.path}: no such file.") from None
        except DAMAGED_ARRAY as why:
            raise InputError(f"{self.path} is not a sparse array that SciPy wrote ({why}). Use save_npz.") from None
        check_sparse(X, self.path)
        return SparseSource(X).X


KINDS: dict[str, Callable[[str], Source]] = {
    ".npy": NpySource,
    ".parquet": ParquetSource,
    ".pq": ParquetSource,
    ".csv": CsvSource,
    ".npz": NpzSource,
}


class FilesSource(Source):
    """Files as one table, in the order of their names; they must have the same columns and the same kind of numbers."""

    elsewhere = True

    def __init__(self, files: list[str]):
        self.files = [KINDS[Path(file).suffix.lower()](file) for file in files]
        first = self.files[0]
        for file, source in zip(files, self.files, strict=True):
            for what, here, there in (
                ("columns", source.shape[1], first.shape[1]),
                ("the columns", source.columns, first.columns),
                ("numbers of type", source.dtype, first.dtype),
            ):
                if here != there:
                    raise InputError(f"{file} has {what} {here}, and {files[0]} has {there}. Files must agree.")
            if source.is_sparse != first.is_sparse:
                raise InputError(f"{file} and {files[0]}: one is sparse, the other is not. Files must agree.")
        self.starts = np.cumsum([0] + [source.shape[0] for source in self.files])
        self.shape, self.dtype = (int(self.starts[-1]), first.shape[1]), float_dtype(first.dtype)
        self.is_sparse, self.columns = first.is_sparse, first.columns
        if self.is_sparse:
            stored = [np.diff(np.asarray(source.indptr)).astype(np.int64) for source in self.files]
            self.indptr = np.append(0, np.cumsum(np.concatenate(stored)))
            self.bounds = cuts_by_stored(self.indptr, self.dtype)
        stores = [source for source in self.files if source.decoded is not None]
        for source in stores:
            source.decoded = stores[0].decoded  # one temporary file for all of them
        self.seeks = all(source.seeks for source in self.files)
        self._recent: list[int] = []
        self._lock = threading.Lock()

    def finer(self, cells: int) -> FilesSource:
        if self.indptr is None:
            return self
        other = copy.copy(self)
        other.bounds = cuts_by_stored(self.indptr, self.dtype, cells)
        return other

    def read(self, start: int, stop: int) -> Block:
        parts = []
        first, last = np.searchsorted(self.starts, [start, max(stop - 1, start)], side="right") - 1
        for i in range(int(first), int(last) + 1):
            if self.starts[i + 1] > self.starts[i]:
                self._use(i)
                a, b = max(start, self.starts[i]) - self.starts[i], min(stop, self.starts[i + 1]) - self.starts[i]
                parts.append(self.files[i].read(int(a), int(b)))
        return join_rows(parts)

    def _use(self, i: int) -> None:
        """Of all files but the last ones that were read nothing is kept in memory."""
        with self._lock:
            if i in self._recent:
                self._recent.remove(i)
            self._recent.append(i)
            while len(self._recent) > OPEN:
                self.files[self._recent.pop(0)].drop()

    def drop(self) -> None:
        with self._lock:
            while self._recent:
                self.files[self._recent.pop()].drop()

    def part(self, start: int, stop: int) -> tuple[Source, int]:
        """Only the files that hold these rows, and where their first row is in the whole."""
        first, last = np.searchsorted(self.starts, [start, max(stop - 1, start)], side="right") - 1
        other = copy.copy(self)
        other.files, other.starts = self.files[first : last + 1], self.starts[first : last + 2] - self.starts[first]
        other.shape, other._recent = (int(other.starts[-1]), self.shape[1]), []
        other.indptr = other.bounds = None
        return other, int(self.starts[first])

    def __getstate__(self) -> dict[str, Any]:
        return {**{name: value for name, value in vars(self).items() if name != "_lock"}, "_recent": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def across(self) -> Source:
        return turn_in_memory(self, f"a table of {len(self.files)} files")


def find_table_files(path: PathLike) -> list[str] | None:
    """The files that a folder or a pattern stands for, in the order of their names; None if it is neither."""
    given = os.fspath(path)
    if Path(given).is_dir():
        inside = [p for p in Path(given).iterdir() if p.is_file() and p.name[0] not in "._"]
        found = sorted(str(p) for p in inside if p.suffix.lower() in KINDS)
        if not found and any(p.is_dir() for p in Path(given).iterdir()):
            return None
        if not found:
            kinds = Counter(p.suffix or "unnamed" for p in inside)
            holds = ", ".join(f"{n} {suffix}" for suffix, n in kinds.most_common(3)) or "nothing"
            raise InputError(f"{given} holds no tables ({', '.join(KINDS)}) but {holds}.")
    elif any(mark in given for mark in WILD) and not Path(given).exists():
        found = sorted(file for file in glob.glob(given, recursive=True) if Path(file).is_file())
        if not found:
            raise InputError(f"{given} matches no file. Check the folder and the pattern.")
        for file in found:
            if Path(file).suffix.lower() not in KINDS:
                raise InputError(f"{file} is not one of {', '.join(KINDS)}. Give a narrower pattern than {given}.")
    else:
        return None
    return found
