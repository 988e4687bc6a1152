"""Rows, or columns, of a Parquet file or folder."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from twofold.core.checks import InputError, reason_of
from twofold.core.config import config
from twofold.core.data.sources import base
from twofold.core.data.sources.base import Source
from twofold.core.data.sources.decoded import Decoded
from twofold.core.data.temporary import TemporaryFolder
from twofold.core.types import PathLike

GROUP_ROWS = 2**18  # the usual most of a Parquet row group
CHUNK_BLOCKS = 16  # Parquet is decoded this many blocks at a time, or fewer if the budget is small


class ParquetSource(Source):
    """A Parquet file or folder of numeric columns, decoded some blocks at a time; two decoded pieces are kept.

    A column is decoded by whole row groups, however few of their rows are wanted. Where the budget is too small for all
    columns of one, it is decoded once, some columns at a time, and its rows wait in a temporary file.
    """

    elsewhere = True
    columns: list[str]

    def __init__(self, path: PathLike, columns: Sequence[str] | None = None):
        import polars as pl

        self.path = os.fspath(path)
        if not Path(self.path).exists():
            raise InputError(f"{self.path}: no such file.")
        try:
            self.frame = pl.scan_parquet(self.path)
            schema = self.frame.collect_schema()
            if columns is not None:
                if missing := [name for name in columns if name not in schema]:
                    has = ", ".join(list(schema)[:8])
                    raise InputError(f"columns: {self.path} has no column {missing[0]!r}; it has {has}.")
                self.frame = self.frame.select(columns)
                schema = self.frame.collect_schema()
            n = int(self.frame.select(pl.len()).collect().item())
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
            raise InputError(f"{self.path} is not a readable Parquet file ({reason_of(why)}).") from None
        for name, kind in schema.items():
            if not (kind.is_numeric() or kind == pl.Boolean):
                raise InputError(f'{self.path}, column "{name}" is {kind}, not numbers. Drop it or encode it first.')
        self.columns = list(schema.names())
        self.shape = (n, len(self.columns))
        small = (pl.Float32, pl.Int8, pl.UInt8, pl.Int16, pl.UInt16, pl.Boolean)
        single = pl.Float32 in schema.values() and all(kind in small for kind in schema.values())
        self.kind: Any = pl.Float32 if single else pl.Float64
        self.dtype = np.dtype("f4" if single else "f8")
        # Two decoded pieces are kept while a third is made: an eighth of the budget each, and another for what is
        # decoded at once, or half of that where it is written down, beside blocks in work.
        blocks = min(CHUNK_BLOCKS, max(1, config().memory // (8 * base.BLOCK_BYTES)))
        self.chunk = blocks * base.even_rows(self.shape, self.dtype)
        self.decoded = Decoded() if self.chunk < min(n, GROUP_ROWS) else None
        most = config().memory // (16 if self.decoded else 8)
        self.at_once = max(1, most // (self.dtype.itemsize * max(1, min(n, GROUP_ROWS))))
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in super().__getstate__().items() if name not in ("frame", "_kept", "_lock")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        import polars as pl

        vars(self).update(state)
        self.frame, self._kept, self._lock = pl.scan_parquet(self.path), OrderedDict(), threading.Lock()

    def drop(self) -> None:
        with self._lock:
            self._kept.clear()

    def _decode(self, at: int) -> np.ndarray:
        with self._lock:
            if at not in self._kept:
                while len(self._kept) > 1:
                    self._kept.popitem(last=False)
                self._kept[at] = self._piece(at * self.chunk, min(self.chunk, self.shape[0] - at * self.chunk))
            return self._kept[at]

    def _piece(self, start: int, rows: int) -> np.ndarray:
        piece, first = np.empty((rows, self.shape[1]), self.dtype), 0
        for part in self._columns(start, rows):
            piece[:, first : first + part.shape[1]] = part
            first += part.shape[1]
        return piece

    def _columns(self, start: int, rows: int) -> Iterator[np.ndarray]:
        """Those rows, some columns after the other."""
        for first in range(0, self.shape[1], self.at_once):
            part = self._collect(self.frame.select(self.columns[first : first + self.at_once]).slice(start, rows))
            if len(part) < rows:
                raise InputError(f"{self.path} has fewer rows now than when it was opened. Leave it as it is.")
            yield part.to_numpy()

    def _read_decoded(self, start: int, stop: int) -> np.ndarray | None:
        """Those rows from the temporary file; None if there is none."""
        if self.decoded is None:
            return None
        block = np.empty((stop - start, self.shape[1]), self.dtype)
        for at in range(start // GROUP_ROWS, -(-stop // GROUP_ROWS)):
            first, last = at * GROUP_ROWS, min((at + 1) * GROUP_ROWS, self.shape[0])
            a, b = max(start, first), min(stop, last)
            make = partial(self._columns, first, last - first)
            if not self.decoded.read((self.path, at), a - first, block[a - start : b - start], make):
                return None
        return block

    def _collect(self, frame: Any) -> Any:
        import polars as pl

        try:
            return frame.collect().cast(self.kind)
        except (pl.exceptions.PolarsError, OSError) as why:
            raise InputError(f"{self.path} cannot be read to its end ({str(why).splitlines()[0]}).") from None

    def read(self, start: int, stop: int) -> np.ndarray:
        block = self._read_decoded(start, stop)
        if block is not None:
            return block
        at, first = divmod(start, self.chunk)
        if first + stop - start <= self.chunk:
            return self._decode(at)[first : first + stop - start]
        cuts = [start, *range((at + 1) * self.chunk, stop, self.chunk), stop]
        return np.concatenate([self.read(a, b) for a, b in pairwise(cuts)])

    def across(self) -> ParquetColumns:
        return ParquetColumns(self)


class ParquetColumns(Source):
    """A Parquet file seen along its columns, which is how it is stored."""

    elsewhere = True

    def __init__(self, rows: ParquetSource):
        self.rows, self.shape, self.dtype = rows, rows.shape[::-1], rows.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        part = self.rows._collect(self.rows.frame.select(self.rows.columns[start:stop]))
        return np.ascontiguousarray(part.to_numpy().T)

    def across(self) -> ParquetSource:
        return self.rows


class WrittenTable(ParquetSource):
    """A Parquet file of a lazy table, which is deleted with this object."""

    elsewhere = False  # workers may not see it

    def __init__(self, folder: TemporaryFolder, columns: Sequence[str] | None):
        super().__init__(folder.path / "table.parquet", columns)
        self.folder = folder


def write_down(X: Any, columns: Sequence[str] | None = None) -> WrittenTable:
    """The rows of a polars LazyFrame or a pyarrow dataset, computed once, some at a time, into a temporary file."""
    folder = TemporaryFolder()
    path = str(folder.path / "table.parquet")
    try:
        if type(X).__name__ == "LazyFrame":
            X.sink_parquet(path)
        else:
            from pyarrow.parquet import ParquetWriter

            with ParquetWriter(path, X.schema) as out:
                for batch in X.to_batches():
                    out.write_batch(batch)
    except Exception as error:  # whatever the user's own plan raises
        raise InputError(f"the {type(X).__name__} cannot be computed ({reason_of(error)}).") from error
    return WrittenTable(folder, columns)
