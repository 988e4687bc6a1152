"""Rows of several files, one below the other: a folder, or all files that match a pattern."""

from __future__ import annotations

import copy
import glob
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from twofold.core.checks import DAMAGED_ARRAY, InputError, check_sparse
from twofold.core.config import config
from twofold.core.data.sources.base import Source, cuts_by_stored, float_dtype
from twofold.core.data.sources.decoded import Decoded
from twofold.core.data.sources.npy import NpySource
from twofold.core.data.sources.parquet import ParquetSource
from twofold.core.data.sources.sparse import SparseSource, StoredRows, turn_in_memory
from twofold.core.files.headers import reads_headers
from twofold.core.types import Block, PathLike

OPEN = 2  # files of which something is kept in memory
WILD = "*?["


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
        if len(parts) == 1:
            return parts[0]
        return sparse.vstack(parts, format="csr") if self.is_sparse else np.concatenate(parts)

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
