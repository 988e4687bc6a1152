"""What a source is: a matrix that knows its shape and dtype and reads any run of its rows, and how rows are cut."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

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
    elsewhere: bool = False  # a worker that is sent this source can read its rows: they are in files
    bounds: np.ndarray | None = None  # where its blocks are cut, if not after every few megabytes
    indptr: np.ndarray | None = None  # where each row's stored values begin, if it is sparse
    columns: list[str] | None = None  # the names of its columns, if it has any
    decoded: Decoded | None = None  # where rows wait that the budget does not hold and that are costly to decode again

    def __getstate__(self) -> dict[str, Any]:
        """What a worker is sent: it may have been started in another folder."""
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
        from twofold.core.data.sources.views import ScaledSource

        return ScaledSource(self, scale)

    def finer(self, cells: int) -> Self:
        """The same rows, cut after every so many stored values; dense rows stay as they are."""
        return self

    def some(self, rows: np.ndarray | slice) -> Source:
        """Only these rows, which ascend."""
        from twofold.core.data.sources.views import SomeRows

        return SomeRows(self, np.arange(self.shape[0])[rows])

    def where(self, bounds: np.ndarray, chosen: np.ndarray) -> Source:
        """Only the rows for which `chosen` is true, where `bounds` cut the blocks: each keeps its own."""
        from twofold.core.data.sources.views import ChosenSource

        return ChosenSource(self, bounds, chosen)

    def part(self, start: int, stop: int) -> tuple[Source, int]:
        """What a worker needs for these rows, and the place of its first row in the whole."""
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
