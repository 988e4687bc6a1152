"""The same four verbs on dask.distributed.

A dask array is re-chunked to groups of our own blocks: an aligned run of 2^h blocks is one task, which returns
that run's node of the summation tree. The tree goes on over the groups as tasks, so one sum travels to the
client, and the bits are those of the local engine.

Everything is a task with a recipe, so that what a worker took with it when it died is computed again: the state of a
sweep is a task that holds it, once whatever the number of groups, and what blocks keep from sweep to sweep goes back,
sweep by sweep, to rows that the client has sent. Nothing is scattered: scattered data has no recipe.
"""

from __future__ import annotations

import errno
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, KilledWorker, get_client
from distributed.client import FutureCancelledError

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.sources import Source, float_dtype
from twofold.core.engine.local import Engine, Parts, Shared, Tree, single_blas

GROUP_BYTES = 64 * 2**20  # what one task reads: enough work to hide the scheduler
CHAIN = 16  # sweeps after which what blocks keep comes to the client, if it is small: what a lost worker costs at most
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
PATIENCE = 3  # times that tasks are tried again whose workers died more often than the scheduler allows


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
        self.heights: dict[Any, int] = {}
        self._futures: dict[tuple[Any, ...], list[Any]] = {}

    def read(self, start: int, stop: int) -> np.ndarray:
        rows, client = self.X[start:stop], active_client()
        block = (
            rows.compute(scheduler="synchronous") if client is None else DaskEngine(client).fetch(client.compute(rows))
        )
        return _as_block(block)

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


def _as_block(rows: np.ndarray) -> np.ndarray:
    rows = settle(np.ascontiguousarray(rows))
    return rows.astype(float_dtype(rows.dtype), copy=False)


def _run_group(parts: Parts, bounds: np.ndarray, merge: Callable[..., Any] | None, keep: bool, *args: Any) -> Any:
    """One task: fn over the blocks of a group; a list of results, or their sum when `merge` is given."""
    args = tuple(value if kind is Blocks else settle(value) for kind, value in zip(parts.args, args, strict=True))
    with single_blas(), np.errstate(invalid="ignore", over="ignore"):
        results, kept, tree = [], [], Tree(merge) if merge else None
        for b in range(len(bounds) - 1):
            items = []
            for arg, value in zip(parts.args, args, strict=True):
                if isinstance(arg, Shared):
                    items.append(value)
                elif arg is Blocks:
                    items.append(_as_block(value[bounds[b] - bounds[0] : bounds[b + 1] - bounds[0]]))
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
    """Row state that stayed on the workers: one future a group of 2^height blocks."""

    def __init__(self, engine: DaskEngine, height: int, sweeps: int, futures: Sequence[Any]):
        super().__init__(futures)
        self.engine, self.height, self.sweeps = engine, height, sweeps  # sweeps since its rows were last at the client

    def local(self) -> list[Any]:
        return [item for group in self.engine.fetch(list(self)) for item in group]


class DaskEngine(Engine):
    """The four verbs on a cluster."""

    def __init__(self, client: Client):
        self.client = client

    def broadcast(self, state: Any) -> Shared:
        return Shared(self.hold(state))

    def hold(self, value: Any) -> Any:
        """A task that gives this value: the scheduler has its recipe, and workers hand it on to each other."""
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # meant to be in the graph
            return self.client.submit(partial(_same, value), pure=False)

    def fetch(self, futures: Any) -> Any:
        """The results, here. Workers may die meanwhile.

        The scheduler gives up a task when more than `allowed-failures` workers died while it was assigned to them,
        whether it was running or only waiting behind the one that was: tasks that live as long as the fit, such as
        those that read the rows, would be blamed in the end for every machine that was taken away. They are given
        another chance in every sweep. A task that does kill its workers ends the fit after a few of them.
        """
        for chance in range(PATIENCE, -1, -1):
            try:
                return settle(self.client.gather(futures))
            except KilledWorker as died:
                if not chance:
                    raise RuntimeError(
                        f"too many workers died with the same task, the last {died.last_worker.address}. "
                        "The usual cause is memory: give the workers more of it, or smaller chunks."
                    ) from died
                self._retry(futures if isinstance(futures, list) else [futures])
            except OSError as full:
                if full.errno not in FULL or full.filename is not None:
                    raise
                raise OSError(
                    full.errno,
                    f"a worker of {self._address} cannot write ({full.strerror}): its disk, which takes what its "
                    'memory cannot, is full. Give them more memory, or dask\'s "temporary-directory" more room.',
                ) from full
            except FutureCancelledError as lost:
                raise ConnectionError(self._explain_loss(str(lost))) from lost

    def _retry(self, futures: list[Any]) -> None:
        """Client.retry, which stumbles over tasks that this client has no future of."""
        client: Any = self.client
        for key in client.sync(client.scheduler.retry, keys=[f.key for f in futures], client=client.id):
            if key in client.futures:
                client.futures[key].retry()

    def _explain_loss(self, why: str) -> str:
        if self.client.status == "running":
            return (
                f"the cluster at {self._address} lost what cannot be computed again ({why}): it was restarted, or "
                "a worker died that had scattered data. Make the dask array from files or with from_delayed, which "
                "can be read again."
            )
        return (
            f"the scheduler at {self._address} is gone. Connect to another, and fit again: with the same Checkpoint "
            "the fit goes on after the last sweep that it holds."
        )

    @property
    def _address(self) -> str:
        return str(getattr(self.client.scheduler, "address", "an unknown address"))

    def _height(self, blocks: Blocks, kept: list[Kept]) -> int:
        """The height of a group in the tree: of the first sweep, though workers may come and go."""
        if kept:
            return kept[0].height
        heights: dict[Any, int] = blocks.source.heights  # type: ignore[attr-defined]
        key = (self.client.id, len(blocks))
        if key not in heights:
            threads = max(1, sum(self.client.nthreads().values()))
            height = 0
            while (2 << height) * blocks.block_bytes <= GROUP_BYTES and len(blocks) >> (height + 1) >= threads:
                height += 1
            heights[key] = height
        return heights[key]

    def _submit(self, parts: Parts, merge: Callable[..., Any] | None, keep: bool) -> tuple[int, int, list[Any]]:
        """The height of the groups, the sweeps since their rows were at the client, and one future a group."""
        if self.client.status != "running":
            raise ConnectionError(self._explain_loss(""))
        blocks = next(a for a in parts.args if isinstance(a, Blocks))
        kept = [a for a in parts.args if isinstance(a, Kept)]
        height, sweeps = self._height(blocks, kept), max((a.sweeps for a in kept), default=0)
        size = 1 << height
        groups = [blocks.bounds[a : a + size + 1] for a in range(0, len(blocks), size)]
        columns, kinds = [], []
        for arg in parts.args:
            kind: Any = Shared(None) if isinstance(arg, Shared) else Rows
            if isinstance(arg, Blocks):
                kind = Blocks
                columns.append(arg.source.grouped(self.client, arg.bounds, size))  # type: ignore[attr-defined]
            elif isinstance(arg, Shared):
                columns.append([arg.value] * len(groups))
            elif isinstance(arg, Kept):
                columns.append(list(arg))
            elif all(item is None for item in arg):
                kind = Shared(None)
                columns.append([None] * len(groups))
            else:
                columns.append(self._sent(arg, size))
            kinds.append(kind)
        light = Parts(parts.fn, tuple(kinds))
        futures = [
            self.client.submit(_run_group, light, groups[g], merge, keep, *(c[g] for c in columns), pure=False)
            for g in range(len(groups))
        ]
        return height, sweeps + 1, futures

    def _sent(self, rows: Rows, size: int) -> list[Any]:
        """Rows of the client as one task a group. Those that come again, such as weights, are sent once."""
        items: tuple[Any, ...]
        there: dict[Any, list[Any]]
        items, there = getattr(rows, "_sent", ((), {}))
        if len(items) != len(rows) or any(a is not b for a, b in zip(items, rows, strict=True)):
            items, there = tuple(rows), {}
            rows._sent = (items, there)  # type: ignore[attr-defined]
        key = (self.client.id, size)
        if key not in there:
            there[key] = [self.hold(list(rows[a : a + size])) for a in range(0, len(rows), size)]
        return list(there[key])

    def reduce(self, merge: Callable[..., Any], parts: Parts, keep: bool = False) -> Any:
        height, sweeps, futures = self._submit(parts, merge, keep)
        if keep:
            kept = Kept(self, height, sweeps, [self._item(0, f) for f in futures])
            futures = [self._item(1, f) for f in futures]
        tree = Tree(lambda a, b: self.client.submit(_merge_copy, merge, a, b, pure=False))
        for future in futures:
            tree.push(future, height)
        summed = self.fetch(tree.result())
        return (self._shortened(kept), summed) if keep else summed

    def _item(self, i: int, future: Any) -> Any:
        return self.client.submit(operator.itemgetter(i), future, pure=False)

    def _shortened(self, kept: Kept) -> Kept:
        """What is kept has a recipe through every sweep since its rows were at the client, with their states.

        That is both what the scheduler has to remember and what a lost worker costs: after some sweeps the rows are
        fetched and sent again, unless they are too many for the client's memory; then the chain goes on.
        """
        if kept.sweeps < CHAIN or sum(self.client.nbytes([f.key for f in kept], summary=False).values()) > (
            config().memory // 4
        ):
            return kept
        return Kept(self, kept.height, 0, [self.hold(rows) for rows in self.fetch(list(kept))])

    def gather(self, parts: Parts) -> list[Any]:
        _, _, futures = self._submit(parts, None, keep=False)
        return [result for group in self.fetch(futures) for result in group]


def _same(value: Any) -> Any:
    return value


def _merge_copy(merge: Callable[..., Any], a: Any, b: Any) -> Any:
    """Merge without touching `a`: a worker may hand out or recompute the very object it stores."""
    return merge(_copied(a), settle(b))


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        fields = [_copied(v) for v in value]
        return type(value)(*fields) if hasattr(value, "_fields") else tuple(fields)
    return value.copy(order="K") if isinstance(value, np.ndarray) else value


def settle(value: Any) -> Any:
    """The value with arrays as this process would have made them: aligned in memory, and writable.

    What came over the network may begin at any byte, and then NumPy adds up in another order: the bits would depend on
    who had computed what. Compiled kernels would also be compiled again for arrays of that kind.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned and value.flags.writeable else value.copy(order="K")
    if isinstance(value, (tuple, list)):
        items = [settle(item) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: settle(item) for key, item in value.items()}
    if hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
        vars(value).update(settle(vars(value)))
    return value


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
        return fn(_as_block(block), *settle(state))
