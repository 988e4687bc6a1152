"""The same four verbs on dask.distributed.

A dask array is re-chunked to groups of our own blocks: an aligned run of 2^h blocks is one task, which returns
that run's node of the summation tree. The tree goes on over the groups as tasks, so one sum travels to the
client, and the bits are those of the local engine. State is scattered once a sweep, never put inside a graph.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, get_client

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.sources import Source, float_dtype
from twofold.core.engine.local import Engine, Parts, Shared, Tree, single_blas

GROUP_BYTES = 64 * 2**20  # what one task reads: enough work to hide the scheduler


def active_client() -> Client | None:
    """The distributed client in force, if any."""
    try:
        return get_client()
    except ValueError:
        return None


class DaskSource(Source):
    """Rows of a dask array. Without a cluster each block is computed where it is read."""

    is_lazy = True

    def __init__(self, X: da.Array):
        self.X, self.shape, self.dtype = X, X.shape, float_dtype(X.dtype)
        self._futures: dict[tuple[Any, ...], list[Any]] = {}

    def read(self, start: int, stop: int) -> np.ndarray:
        block = self.X[start:stop].compute(scheduler="synchronous")
        return np.ascontiguousarray(np.asarray(block), dtype=self.dtype)

    def engine(self) -> Engine:
        client = active_client()
        return Engine() if client is None else DaskEngine(client)

    def across(self) -> DaskSource:
        return DaskSource(self.X.T)

    def scaled(self, scale: np.ndarray) -> DaskSource:
        return DaskSource(self.X.astype(self.dtype) / scale.astype(self.dtype))

    def some(self, rows: np.ndarray | slice) -> DaskSource:
        return DaskSource(self.X[rows])

    def grouped(self, client: Client, bounds: np.ndarray, size: int) -> list[Any]:
        """One future a group of `size` blocks, kept on the workers from sweep to sweep."""
        key = (client.id, size)
        if key not in self._futures:
            cuts = np.append(bounds[:-1:size], bounds[-1])
            X = self.X.rechunk((tuple(np.diff(cuts).tolist()), -1))
            self._futures[key] = client.compute(list(X.to_delayed().ravel()))
        return self._futures[key]


def source_of_dask(X: Any) -> DaskSource:
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
    return DaskSource(X)


def _run_group(parts: Parts, bounds: np.ndarray, merge: Callable[..., Any] | None, keep: bool, *args: Any) -> Any:
    """One task: fn over the blocks of a group; a list of results, or their sum when `merge` is given."""
    with single_blas():
        results, kept, tree = [], [], Tree(merge) if merge else None
        for b in range(len(bounds) - 1):
            items = []
            for arg, value in zip(parts.args, args, strict=True):
                if isinstance(arg, Shared):
                    items.append(value)
                elif arg is Blocks:
                    block = np.ascontiguousarray(value[bounds[b] - bounds[0] : bounds[b + 1] - bounds[0]])
                    items.append(block.astype(float_dtype(block.dtype), copy=False))
                else:
                    items.append(_copied(value[b]))  # fn may change what a block keeps; a lost task is run again
            result = parts.fn(*items)
            if keep:
                kept.append(result[0])
                result = result[1]
            if tree is not None:
                tree.push(result)
            else:
                results.append(result)
        summed = tree.result() if tree is not None else results
        return (kept, summed) if keep else summed


class Kept(Rows):
    """Row state that stayed on the workers: one future a group."""

    def local(self) -> list[Any]:
        return [item for group in self for item in group.result()]


class DaskEngine(Engine):
    """The four verbs on a cluster."""

    def __init__(self, client: Client):
        self.client = client

    def broadcast(self, state: Any) -> Shared:
        return Shared(self.client.scatter(state, broadcast=True, hash=False))

    def _groups(self, blocks: Blocks) -> tuple[int, list[np.ndarray]]:
        """The height of a group in the tree, and the bounds of each group's blocks."""
        threads = max(1, sum(self.client.nthreads().values()))
        height = 0
        while (2 << height) * blocks.block_bytes <= GROUP_BYTES and len(blocks) >> (height + 1) >= threads:
            height += 1
        size = 1 << height
        return height, [blocks.bounds[a : a + size + 1] for a in range(0, len(blocks), size)]

    def _submit(self, parts: Parts, merge: Callable[..., Any] | None, keep: bool) -> tuple[int, list[Any]]:
        blocks = next(a for a in parts.args if isinstance(a, Blocks))
        height, groups = self._groups(blocks)
        size = 1 << height
        columns, kinds = [], []
        for arg in parts.args:
            kinds.append(Blocks if isinstance(arg, Blocks) else Shared(None) if isinstance(arg, Shared) else Rows)
            if isinstance(arg, Blocks):
                columns.append(arg.source.grouped(self.client, arg.bounds, size))  # type: ignore[attr-defined]
            elif isinstance(arg, Shared):
                columns.append([arg.value] * len(groups))
            elif isinstance(arg, Kept):
                columns.append(list(arg))
            else:
                pieces = [list(arg[g * size : (g + 1) * size]) for g in range(len(groups))]
                columns.append(self.client.scatter(pieces, hash=False))
        light = Parts(parts.fn, tuple(kinds))
        return height, [
            self.client.submit(_run_group, light, groups[g], merge, keep, *(c[g] for c in columns), pure=False)
            for g in range(len(groups))
        ]

    def reduce(self, merge: Callable[..., Any], parts: Parts, keep: bool = False) -> Any:
        height, futures = self._submit(parts, merge, keep)
        kept = Kept()
        if keep:
            kept.extend(self.client.submit(operator.itemgetter(0), f, pure=False) for f in futures)
            futures = [self.client.submit(operator.itemgetter(1), f, pure=False) for f in futures]
        tree = Tree(lambda a, b: self.client.submit(_merge_copy, merge, a, b, pure=False))
        for future in futures:
            tree.push(future, height)
        summed = tree.result().result()
        return (kept, summed) if keep else summed

    def gather(self, parts: Parts) -> list[Any]:
        _, futures = self._submit(parts, None, keep=False)
        return [result for group in self.client.gather(futures) for result in group]


def _merge_copy(merge: Callable[..., Any], a: Any, b: Any) -> Any:
    """Merge without touching `a`: a worker may hand out or recompute the very object it stores."""
    return merge(_copied(a), b)


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        fields = [_copied(v) for v in value]
        return type(value)(*fields) if hasattr(value, "_fields") else tuple(fields)
    return value.copy() if isinstance(value, np.ndarray) else value


def lazily(fn: Callable[..., Any], blocks: Blocks, state: tuple[Any, ...]) -> da.Array:
    """fn(block, *state) as a dask array with our blocks as chunks, nothing computed yet."""
    source: Any = blocks.source
    X = source.X.rechunk((tuple(np.diff(blocks.bounds).tolist()), -1))
    like = fn(np.zeros((1, blocks.shape[1]), blocks.dtype), *state)
    once = dask.delayed(state, pure=False)  # one node of the graph, whatever the number of chunks
    parts = [
        da.from_delayed(dask.delayed(_apply)(fn, chunk, once), (int(rows), *like.shape[1:]), like.dtype)
        for chunk, rows in zip(X.to_delayed().ravel(), np.diff(blocks.bounds), strict=True)
    ]
    return da.concatenate(parts)


def _apply(fn: Callable[..., Any], block: np.ndarray, state: tuple[Any, ...]) -> Any:
    with single_blas():
        return fn(np.ascontiguousarray(block, dtype=float_dtype(block.dtype)), *state)
