"""Rows as a network takes them: in memory, or read when they are wanted.

    rows = read_rows(blocks, np.float32)    one pass: every number is checked, and the range of each column noted
    rows = rows.map(change)                 rows changed one by one: now if they are held, else as they are read
    rows[a:b], rows.take(numbers)           some of them, as an array
    rows.moments()                          mean and variance of each number, block by block

Rows are held if they take at most half of the memory budget, or came as an array. Others are read from where they are
if any few rows can be read from there; else the first pass writes them to a temporary file. Every figure is computed
over the same blocks, and an epoch takes rows in an order that depends on their shape and the seed alone, so that a fit
has the same bits wherever its rows are.
"""

from __future__ import annotations

import math
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.utils.data import DataLoader

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.blocks import Blocks, as_blocks, is_dask, is_path
from twofold.core.data.sources import DenseSource, NpySource, Source, base
from twofold.core.engine.local import engine_for
from twofold.core.numerics.moments import Columns, column_moments
from twofold.core.types import Block

HELD_SHARE = 2  # 1 / HELD_SHARE of the memory budget may be taken by rows that are held
PIECE_ROWS = 1024  # that are changed, or go through a network, at once
BLOCKS_IN_WINDOW = 4  # bytes of the rows that are mixed with each other, in blocks
RUNS_IN_BLOCK = 64  # parts of a block that stay together on the way into a window
Item = TypeVar("Item")
Made = TypeVar("Made")


class NetworkRows:
    """Rows (n, ...), held as an array or read from a source and changed on the way."""

    def __init__(
        self,
        blocks: Blocks,
        array: np.ndarray | None,
        source: Source,
        low: np.ndarray,
        high: np.ndarray,
        dtype: Any,
    ):
        self.blocks, self.array, self.source = blocks, array, source
        self.low, self.high = low, high  # (d,) of each column, as it came
        self.raw_dtype = self.dtype = np.dtype(dtype)
        self.shape: tuple[int, ...] = blocks.shape
        self.changes: tuple[Callable[[np.ndarray], np.ndarray], ...] = ()
        self.chosen: np.ndarray | None = None  # numbers of the rows that are meant; None: all

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self))
        if self.array is not None:
            return self.array[start:stop]
        return self._read(start, stop) if self.chosen is None else self.take(np.arange(start, stop))

    def _load(self, start: int, stop: int) -> np.ndarray:
        return as_dense(self.source.read(start, stop), self.raw_dtype)

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._change(self._load(start, stop))

    def _change(self, rows: np.ndarray) -> np.ndarray:
        for change in self.changes:
            rows = change(rows)
        return np.ascontiguousarray(rows)

    def take(self, numbers: np.ndarray, buffers: Buffers | None = None) -> np.ndarray:
        """The rows with these numbers, in their order; in the memory of `buffers`, if they are given."""
        if self.array is not None:
            return self.array[numbers]
        wanted = numbers if self.chosen is None else self.chosen[numbers]
        order = np.argsort(wanted, kind="stable")
        ascending = wanted[order]
        buffers = buffers or Buffers()
        raw = buffers.get(-1, (len(wanted), self.source.shape[1]), self.raw_dtype)
        out = buffers.get(buffers.turn(), (len(wanted), *self.shape[1:]), self.dtype)
        cuts = [0, *(np.flatnonzero(np.diff(ascending) != 1) + 1).tolist(), len(wanted)]
        for a, b in pairwise(cuts):
            first = int(ascending[a])
            raw[a:b] = self._load(first, first + b - a)
        for a in range(0, len(wanted), PIECE_ROWS):
            out[order[a : a + PIECE_ROWS]] = self._change(raw[a : a + PIECE_ROWS])
        return out

    def read_windows(self, order: Iterator[Tensor]) -> Iterator[tuple[np.ndarray, Tensor]]:
        """Rows in this order, a window at a time, and their numbers; each is gone when the next but one is asked for.

        The next one is read on a thread meanwhile.
        """
        buffers = Buffers()
        return read_ahead(lambda numbers: (self.take(numbers.numpy(), buffers), numbers), order)

    def map(self, change: Callable[[np.ndarray], np.ndarray]) -> NetworkRows:
        """Every row changed by itself. Rows that are held are changed in place where their size allows it."""
        new = self._copy()
        first = np.ascontiguousarray(change(self[:1]))
        new.shape, new.dtype = (len(self), *first.shape[1:]), first.dtype
        if self.array is None:
            new.changes = (*self.changes, change)
            return new
        same = first.dtype == self.dtype and first.size == self.array[:1].size
        new.array = self.array.reshape(new.shape) if same else np.empty(new.shape, new.dtype)
        for a in range(0, len(self), PIECE_ROWS):
            new.array[a : a + PIECE_ROWS] = change(self.array[a : a + PIECE_ROWS])
        return new

    def some(self, numbers: Any) -> NetworkRows:
        """Only the rows with these numbers, given as an array or a slice."""
        if isinstance(numbers, slice) and numbers == slice(None):
            return self
        new = self._copy()
        if self.array is not None:
            new.array = self.array[numbers]
            new.shape = new.array.shape
            return new
        new.chosen = (np.arange(len(self)) if self.chosen is None else self.chosen)[numbers]
        new.shape = (len(new.chosen), *self.shape[1:])
        return new

    def _copy(self) -> NetworkRows:
        new: Any = object.__new__(type(self))
        vars(new).update(vars(self))
        return new

    def moments(self, weights: np.ndarray | None = None) -> Columns:
        """Mean and variance of every number of a row (d,), in double precision."""
        width = math.prod(self.shape[1:])
        source = RowsAsSource(self) if self.array is None else DenseSource(self.array.reshape(len(self), width))
        blocks = Blocks(source)
        return column_moments(engine_for(blocks), blocks, weights)

    def draw_order(self) -> Iterator[Tensor]:
        """Numbers of all rows in a new order, window by window.

        Up to a few megabytes, all rows are one window. Otherwise short runs of rows are dealt to windows, and the rows
        of a window are shuffled. Sizes follow from the shape alone; torch's random numbers decide the rest.
        """
        n, row_bytes = len(self), 4 * math.prod(self.shape[1:])
        if n * row_bytes <= BLOCKS_IN_WINDOW * base.BLOCK_BYTES:
            yield torch.randperm(n)
            return
        run = max(1, base.BLOCK_BYTES // (RUNS_IN_BLOCK * row_bytes))
        runs = torch.randperm(-(-n // run))
        own = torch.Generator().manual_seed(int(torch.randint(2**62, ())))  # a window may be drawn ahead of its time
        for some in runs.split(max(1, BLOCKS_IN_WINDOW * base.BLOCK_BYTES // (run * row_bytes))):
            rows = (some[:, None] * run + torch.arange(run)).flatten()
            rows = rows[rows < n]
            yield rows[torch.randperm(len(rows), generator=own)]

    def own_order(self) -> Iterator[Tensor]:
        """Numbers of all rows in their own order, as many at once as a window has."""
        width = 4 * math.prod(self.shape[1:])
        yield from torch.arange(len(self)).split(max(1, BLOCKS_IN_WINDOW * base.BLOCK_BYTES // width))


class Buffers:
    """Memory for windows of about equal size, used again: freed and allocated again, it would lie between small things
    that stay, and the process would grow."""

    def __init__(self) -> None:
        self.held: dict[int, np.ndarray] = {}
        self.taken = 0

    def turn(self) -> int:
        """The number of the next of two buffers, which take turns."""
        self.taken += 1
        return self.taken % 2

    def get(self, which: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        size = math.prod(shape)
        if which not in self.held or len(self.held[which]) < size:
            self.held[which] = np.empty(size, dtype)
        return self.held[which][:size].reshape(shape)


class RowsAsSource(Source):
    """Rows that are read, one line of numbers each."""

    def __init__(self, rows: NetworkRows):
        self.rows, self.dtype = rows, rows.dtype
        self.shape = len(rows), math.prod(rows.shape[1:])

    def read(self, start: int, stop: int) -> np.ndarray:
        return self.rows[start:stop].reshape(stop - start, -1)

    def across(self) -> Source:
        raise NotImplementedError("a network never looks along columns")


class WrittenRows(Source):
    """Rows in a temporary file, from which any of them are read; it is gone with this object."""

    seeks = True

    def __init__(self, d: int, dtype: Any):
        self.dtype, self.shape, self.lock = np.dtype(dtype), (0, d), threading.Lock()
        self.file = tempfile.TemporaryFile(prefix="twofold-rows-", buffering=0)  # noqa: SIM115

    def append(self, rows: np.ndarray) -> None:
        """Write more rows at the end."""
        left = np.ascontiguousarray(rows, self.dtype).reshape(-1).view(np.uint8).data
        try:
            self.file.seek(self.shape[0] * self.shape[1] * self.dtype.itemsize)
            while len(left):
                left = left[self.file.write(left) :]
        except OSError as error:
            raise InputError(
                f"the rows exceed the memory budget, and the folder {tempfile.gettempdir()} has no room for them "
                f"({error.strerror}). Set TMPDIR to another folder, or raise the budget with ⟨memory⟩."
            ) from None
        self.shape = self.shape[0] + len(rows), self.shape[1]

    def read(self, start: int, stop: int) -> np.ndarray:
        out = np.empty((stop - start, self.shape[1]), self.dtype)
        left = out.reshape(-1).view(np.uint8).data
        with self.lock:
            self.file.seek(start * self.shape[1] * self.dtype.itemsize)
            while len(left):
                done = self.file.readinto(left)
                if not done:
                    raise OSError("a temporary file ends too early")
                left = left[done:]
        return out

    def across(self) -> Source:
        raise NotImplementedError("a network never looks along columns")


def read_rows(blocks: Blocks, dtype: Any) -> NetworkRows:
    """Look at all rows once: note the range of each column, and hold or write those that cannot be read again."""
    n, d = blocks.shape
    own = blocks.source.in_memory and not blocks.is_sparse
    held = own or n * d * np.dtype(dtype).itemsize <= config().memory // HELD_SHARE
    array = np.empty((n, d), dtype) if held else None
    written = None if held or blocks.source.seeks else WrittenRows(d, dtype)
    low, high, at = np.full(d, np.inf, dtype), np.full(d, -np.inf, dtype), 0
    keeps, engine = held or written is not None, engine_for(blocks)
    for least, most, rows in engine.stream(engine.map(look_at, blocks, *map(engine.broadcast, (dtype, keeps)))):
        low, high = np.minimum(low, least), np.maximum(high, most)
        if array is not None:
            array[at : at + len(rows)] = rows
            at += len(rows)
        elif written is not None:
            written.append(rows)
    return NetworkRows(blocks, array, written or blocks.source, low, high, dtype)


def look_at(X: Block, dtype: Any, keeps: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Least and largest numbers of the columns, NaN if one is, and the rows themselves where they are kept."""
    rows = as_dense(X, dtype)
    return rows.min(axis=0), rows.max(axis=0), rows if keeps else None


def hold_rows(array: np.ndarray) -> NetworkRows:
    """An array as it is: codes, or noise."""
    rows: Any = object.__new__(NetworkRows)
    rows.array, rows.shape, rows.dtype, rows.changes, rows.chosen = array, array.shape, array.dtype, (), None
    return rows


def as_dense(X: Block, dtype: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype)


# ---- what may come in ------------------------------------------------------------------------------------------------


class OpenedRows(Blocks):
    """Rows with what only their giver knew: the shape of images, whether they are bytes, and their targets."""

    image_shape: tuple[int, ...] | None = None
    eight_bit: bool = False
    y: np.ndarray | None = None

    @classmethod
    def of(cls, source: Source, shape: tuple[int, ...], eight_bit: bool, y: np.ndarray | None = None) -> Self:
        rows = cls(source)
        rows.image_shape, rows.eight_bit, rows.y = shape if len(shape) > 1 else None, eight_bit, y
        return rows


def open_rows(X: Any) -> Any:
    """Turn what holds images in a form that models of rows do not know into rows; leave all else as it is."""
    if isinstance(X, DataLoader):
        return read_loader(X)
    if is_path(X) and Path(X).suffix.lower() == ".npy" and Path(X).is_file():
        source = NpySource(X, images=True)
        return OpenedRows.of(source, source.row_shape, source.stored == np.uint8)
    if is_dask(X) and getattr(X, "ndim", 2) in (3, 4):
        rows = as_blocks(X.reshape(X.shape[0], -1))
        return OpenedRows.of(rows.source, X.shape[1:], X.dtype == np.uint8)
    return X


def read_loader(loader: DataLoader) -> OpenedRows:
    """The batches of a loader, read once and in its order: rows, or pairs of rows and targets.

    Images come as torch has them (n,c,h,w), and become (h,w), or (h,w,c) in color.
    """
    written: WrittenRows | None = None
    shape: tuple[int, ...] = ()
    targets: list[np.ndarray] = []
    eight_bit = False
    for batch in loader:
        x, y = (batch[0], batch[1] if len(batch) > 1 else None) if isinstance(batch, (list, tuple)) else (batch, None)
        if not isinstance(x, Tensor) or x.ndim < 2:
            raise InputError(
                f"the DataLoader gives {type(x).__name__}{tuple(getattr(x, 'shape', ()))}; tensors (n, d) or images "
                "(n, c, h, w) are needed, alone or first in a pair with their targets."
            )
        rows = x.detach().cpu().movedim(1, -1) if x.ndim == 4 else x.detach().cpu()
        rows = rows[..., 0] if x.ndim == 4 and x.shape[1] == 1 else rows
        if written is None:
            shape, eight_bit = tuple(rows.shape[1:]), rows.dtype == torch.uint8
            written = WrittenRows(math.prod(shape), np.float64 if rows.dtype == torch.float64 else np.float32)
        if tuple(rows.shape[1:]) != shape:
            raise InputError(
                f"the DataLoader gives rows of shapes {shape} and {tuple(rows.shape[1:])}; all must agree."
            )
        written.append(rows.reshape(len(rows), -1).numpy())
        targets += [] if y is None else [np.asarray(y)]
    if written is None:
        raise InputError("the DataLoader gives no batch. Give it a data set that is not empty.")
    return OpenedRows.of(written, shape, eight_bit, np.concatenate(targets) if targets else None)


def read_ahead(make: Callable[[Item], Made], items: Iterator[Item]) -> Iterator[Made]:
    """make(item) for each, the next one on a thread while the last one is in use."""
    with ThreadPoolExecutor(1, thread_name_prefix="twofold-rows") as pool:
        coming = [pool.submit(make, item) for item in [next(items)]]
        for item in items:
            coming.append(pool.submit(make, item))
            yield coming.pop(0).result()
        yield coming.pop(0).result()
