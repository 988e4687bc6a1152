"""Dask arrays as sources of rows: the workers of a cluster make them and keep them; without one they are made here."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client
from scipy import sparse

from twofold.core.checks import InputError, check_sparse
from twofold.core.data.blocks import Blocks
from twofold.core.data.sources import (
    ChosenSource,
    Source,
    StoredRows,
    cuts_by_stored,
    float_dtype,
    join_rows,
    turn_in_memory,
)
from twofold.core.engine.dask import DaskEngine, active_client, as_block, settle
from twofold.core.engine.local import Engine, single_blas
from twofold.core.types import Block


@cache
def _say_local() -> None:
    """Say once in a process that there is no client: it may have been forgotten."""
    logging.getLogger("twofold").warning(
        "no dask client is in force: the dask array is computed in this process, block by block. To use a cluster, "
        "make a distributed.Client first."
    )


def compute(tasks: list[Any]) -> list[Any]:
    """The results of dask tasks, by the client in force or, without one, in this process."""
    client = active_client()
    if client is None:
        return list(dask.compute(*tasks, scheduler="synchronous"))
    return DaskEngine(client).fetch(client.compute(tasks))


class OnWorkers(Source):
    """What sources of dask arrays share: rows are made where they are wanted, and stay there."""

    is_lazy = True

    def __init__(self) -> None:
        self._futures: dict[tuple[Any, ...], list[Any]] = {}

    def engine(self) -> Engine:
        client = active_client()
        if client is None:
            _say_local()
        return Engine() if client is None else DaskEngine(client)

    def plan_rows(self, cuts: np.ndarray) -> list[Any]:
        """One task for the rows between two cuts."""
        raise NotImplementedError

    def read(self, start: int, stop: int) -> Block:
        return as_block(compute(self.plan_rows(np.array([start, stop])))[0])

    def group_rows(self, client: Client, bounds: np.ndarray, size: int) -> list[Any]:
        """One future a group of `size` blocks, kept on the workers from sweep to sweep."""
        key = (client.id, size, len(bounds))
        if key not in self._futures:
            self._futures[key] = client.compute(self.plan_rows(np.append(bounds[:-1:size], bounds[-1])))
        return self._futures[key]

    def where(self, bounds: np.ndarray, chosen: np.ndarray) -> ChosenOnWorkers:
        return ChosenOnWorkers(self, bounds, chosen)


class ChosenOnWorkers(ChosenSource, OnWorkers):
    """Some rows of what the workers have, chosen where they are."""

    source: OnWorkers

    def __init__(self, source: OnWorkers, bounds: np.ndarray, chosen: np.ndarray):
        OnWorkers.__init__(self)
        ChosenSource.__init__(self, source, bounds, chosen)
        known: dict[Any, int] = vars(source).get("_heights", {})  # the groups that the workers have already
        self._heights = {
            (client, len(self.bounds) - 1): height
            for (client, count), height in known.items()
            if count == len(bounds) - 1
        }

    def group_rows(self, client: Client, bounds: np.ndarray, size: int) -> list[Any]:
        key = (client.id, size, len(bounds))
        if key not in self._futures:
            whole, ends = self.source.group_rows(client, self.cuts, size), np.append(self.cuts[:-1:size], self.cuts[-1])
            found = []
            for a, b in pairwise(np.append(bounds[:-1:size], bounds[-1]).tolist()):
                rows = self.rows[a:b]
                at = np.searchsorted(ends, rows, side="right") - 1
                groups = np.unique(at).tolist()
                picked = [rows[at == g] - ends[g] for g in groups]
                found.append(client.submit(_take_rows, [whole[g] for g in groups], picked, pure=False))
            self._futures[key] = found
        return self._futures[key]


def _take_rows(groups: list[Any], picked: list[np.ndarray]) -> Any:
    return join_rows([rows[at] for rows, at in zip(groups, picked, strict=True)])


class DaskSource(OnWorkers):
    """Rows of a dask array. Without a cluster each block is computed where it is read."""

    def __init__(self, X: da.Array):
        super().__init__()
        self.X, self.shape, self.dtype = X, X.shape, float_dtype(X.dtype)

    def plan_rows(self, cuts: np.ndarray) -> list[Any]:
        X = self.X[cuts[0] : cuts[-1]]
        return list(X.rechunk((tuple(np.diff(cuts).tolist()), -1)).to_delayed().ravel())

    def across(self) -> DaskSource:
        return DaskSource(self.X.T)

    def divide_columns(self, scale: np.ndarray) -> DaskSource:
        return DaskSource(self.X.astype(self.dtype) / scale.astype(self.dtype))

    def some(self, rows: np.ndarray | slice) -> DaskSource:
        return DaskSource(self.X[rows])


class DaskCsrSource(OnWorkers, StoredRows):
    """Rows of a dask array whose chunks are sparse. They are put together as they are, never made dense.

    Where blocks are cut depends on how many values each row stores, so one pass over the chunks counts them.
    """

    def __init__(self, pieces: list[tuple[Any, int, int]], d: int, dtype: np.dtype):
        super().__init__()
        self.pieces = pieces  # (task that makes a CSR array, first row of it, last row of it + 1)
        self.starts = np.cumsum([0] + [b - a for _, a, b in pieces])
        self.shape, self.dtype = (int(self.starts[-1]), d), dtype

    @cached_property
    def indptr(self) -> np.ndarray:  # type: ignore[override]
        counts = compute([dask.delayed(_count_stored)(*piece) for piece in self.pieces])
        return np.append(0, np.cumsum(np.concatenate([np.zeros(0, np.int64), *counts])))

    @cached_property
    def bounds(self) -> np.ndarray:  # type: ignore[override]
        return cuts_by_stored(self.indptr, self.dtype)

    def finer(self, cells: int) -> DaskCsrSource:
        return self._cut(self.pieces, cuts_by_stored(self.indptr, self.dtype, cells))

    def _cut(self, pieces: list[tuple[Any, int, int]], bounds: np.ndarray | None = None) -> DaskCsrSource:
        other = DaskCsrSource(pieces, self.shape[1], self.dtype)
        if bounds is not None:
            other.bounds = bounds
            if pieces is self.pieces:
                other.indptr = self.indptr
        return other

    def between(self, start: int, stop: int) -> list[tuple[Any, int, int]]:
        """The pieces that make up these rows."""
        first, last = np.searchsorted(self.starts, [start, stop], side="right") - 1
        found = []
        for i in range(first, min(last + 1, len(self.pieces))):
            task, a, _ = self.pieces[i]
            lo, hi = max(start, self.starts[i]) - self.starts[i], min(stop, self.starts[i + 1]) - self.starts[i]
            if hi > lo:
                found.append((task, int(a + lo), int(a + hi)))
        return found

    def plan_rows(self, cuts: np.ndarray) -> list[Any]:
        d, dtype = self.shape[1], self.dtype
        return [
            dask.delayed(_stack_rows, pure=False)([list(p) for p in self.between(int(a), int(b))], d, dtype)
            for a, b in pairwise(cuts)
        ]

    def across(self) -> Source:
        return turn_in_memory(self, "the dask array")

    def divide_columns(self, scale: np.ndarray) -> DaskCsrSource:
        return self.map_rows(_divide_columns, (scale.astype(self.dtype),))

    def map_rows(self, fn: Callable[..., Any], state: tuple[Any, ...]) -> DaskCsrSource:
        """fn(rows, *state), sparse as well, for every piece."""
        once = dask.delayed(state, pure=False)
        tasks = {id(task): dask.delayed(_apply, pure=False)(fn, task, once) for task, _, _ in self.pieces}
        return self._cut([(tasks[id(task)], a, b) for task, a, b in self.pieces])

    def some(self, rows: np.ndarray | slice, bounds: np.ndarray | None = None) -> DaskCsrSource:
        rows = np.arange(self.shape[0])[rows] if isinstance(rows, slice) else rows
        ends = np.flatnonzero(np.diff(rows) != 1) + 1
        runs = [(int(run[0]), int(run[-1]) + 1) for run in np.split(rows, ends) if len(run)]
        return self._cut([piece for a, b in runs for piece in self.between(a, b)], bounds)


def _csr_chunk(parts: list[Any], name: str) -> sparse.csr_array:
    """One row of chunks as one CSR array, its indices checked before anyone follows them."""
    for part in parts:
        if not sparse.issparse(part):
            raise InputError(f"{name} is a {type(part).__name__}, and others are sparse. Make all chunks CSR arrays.")
        check_sparse(part, name)
    X = sparse.csr_array(parts[0] if len(parts) == 1 else sparse.hstack(parts, format="csr"))
    X = settle(X.astype(float_dtype(X.dtype), copy=False))
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _count_stored(X: sparse.csr_array, start: int, stop: int) -> np.ndarray:
    return np.diff(X.indptr[start : stop + 1].astype(np.int64))


def _stack_rows(pieces: list[list[Any]], d: int, dtype: np.dtype) -> sparse.csr_array:
    return join_rows([X[a:b] for X, a, b in pieces]) if pieces else sparse.csr_array((0, d), dtype=dtype)


def _divide_columns(X: sparse.csr_array, scale: np.ndarray) -> sparse.csr_array:
    return sparse.csr_array((X.data * (1 / scale)[X.indices], X.indices, X.indptr), shape=X.shape)


_sparse_chunks: dict[str, bool] = {}  # what was found out about arrays that do not say it themselves


def has_sparse_chunks(X: da.Array) -> bool:
    """Return whether the chunks are sparse. An array may not know it, so its first chunk is looked at, too."""
    if sparse.issparse(X._meta) or 0 in X.shape:
        return sparse.issparse(X._meta)
    if X.name not in _sparse_chunks:
        first = dask.delayed(sparse.issparse)(X.blocks[0, 0].to_delayed().ravel()[0])
        while len(_sparse_chunks) >= 1000:
            _sparse_chunks.pop(next(iter(_sparse_chunks)))
        _sparse_chunks[X.name] = bool(compute([first])[0])
    return _sparse_chunks[X.name]


def _csr_source(X: da.Array) -> DaskCsrSource:
    starts, pieces = np.cumsum([0, *X.chunks[0]]), []
    for i, parts in enumerate(X.to_delayed()):
        name = f"X, rows {starts[i]} to {starts[i + 1]},"
        pieces.append((dask.delayed(_csr_chunk, pure=False)(list(parts), name), 0, int(X.chunks[0][i])))
    return DaskCsrSource(pieces, int(X.shape[1]), float_dtype(X.dtype))


def source_of_dask(X: Any) -> OnWorkers:
    """A dask array as a source of rows, its chunks known and its values numbers."""
    if not isinstance(X, da.Array):
        X = X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else da.asarray(X)
    if X.ndim != 2:
        raise InputError(f"the dask array has shape {X.shape}; X must have two dimensions, (rows, columns).")
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        raise InputError(
            "the dask array has unknown chunk sizes, so its rows cannot be counted. "
            "Call X.compute_chunk_sizes() first, or to_dask_array(lengths=True) on a dask frame."
        )
    if X.dtype.kind not in "fiub":
        raise InputError(f"the dask array holds {X.dtype}; numbers are needed. Convert it with X.astype(float).")
    return _csr_source(X) if has_sparse_chunks(X) else DaskSource(X)


def lazily(fn: Callable[..., Any], blocks: Blocks, state: tuple[Any, ...]) -> da.Array:
    """fn(block, *state) as a dask array with our blocks as chunks, nothing computed yet; sparse chunks stay as cut."""
    source: Any = blocks.source
    once = dask.delayed(state, pure=False)  # one node of the graph, whatever the number of chunks
    if blocks.is_sparse:
        cuts, row = source.starts, sparse.csr_array((1, blocks.shape[1]), dtype=blocks.dtype)
    else:
        cuts, row = blocks.bounds, np.zeros((1, blocks.shape[1]), blocks.dtype)
    like = fn(row, *state)
    parts = [
        da.from_delayed(dask.delayed(_apply)(fn, chunk, once), (int(rows), *like.shape[1:]), meta=like[:0])
        for chunk, rows in zip(source.plan_rows(cuts), np.diff(cuts), strict=True)
    ]
    return da.concatenate(parts)


def _apply(fn: Callable[..., Any], block: Block, state: tuple[Any, ...]) -> Any:
    with single_blas():
        return fn(as_block(block), *settle(state))
