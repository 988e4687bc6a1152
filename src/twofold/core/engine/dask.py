"""The same verbs on dask.distributed.

A dask array is re-chunked to groups of our own blocks: an aligned run of 2^h blocks is one task, which returns
that run's node of the summation tree. The tree goes on over the groups as tasks, so one sum travels to the
client, and the bits are those of the local engine.

Everything is a task with a recipe, so that what a worker took with it when it died is computed again: the state of a
sweep is a task that holds it, once whatever the number of groups, and what blocks keep from sweep to sweep goes back,
sweep by sweep, to rows that the client has sent. Nothing is scattered: scattered data has no recipe.
"""

from __future__ import annotations

import errno
import logging
import operator
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar

import dask
import dask.array as da
import numpy as np
from distributed import Client, KilledWorker, LocalCluster, get_client, get_worker
from distributed.client import FutureCancelledError
from distributed.system import MEMORY_LIMIT
from scipy import sparse

from twofold.core.checks import InputError, check_sparse
from twofold.core.config import config
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.sources import ChosenSource, Source, StoredRows, cuts_by_stored, float_dtype, turn_in_memory
from twofold.core.engine import progress
from twofold.core.engine.local import Engine, Parts, Shared, Tree, single_blas
from twofold.core.engine.tasks import on_worker
from twofold.core.types import Block

GROUP_BYTES = 64 * 2**20  # what one task reads: enough work to hide the scheduler,
EACH = 4  # unless a thread would have fewer tasks than this; they could not be shared out evenly
CHAIN = 16  # sweeps after which what blocks keep comes to the client, if it is small: what a lost worker costs at most
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
PROCESS = 10**9  # bytes that a worker process may take beside the memory budget: Python, libraries, what is on its way
PATIENCE = 3  # times that tasks are tried again whose workers died more often than the scheduler allows


def active_client() -> Client | None:
    """The distributed client in force, if any."""
    try:
        return get_client()
    except ValueError:
        return None


@contextmanager
def connected(address: str | None, workers: int | None) -> Iterator[str]:
    """A client in force, of the scheduler at this address or of so many processes on this machine, and who works.

    Dask writes what a process keeps to disk from 60 % of its limit on, and starts it anew at 95 %. The limit is twice
    the memory budget and a gigabyte, or its share of the machine if that is less.
    """
    if address is None:
        limit = min(2 * config().memory + PROCESS, MEMORY_LIMIT // (workers or 1))
        options = {"threads_per_worker": 1, "memory_limit": limit, "dashboard_address": ":0", "silence_logs": 50}
        with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
            # whoever is sent a function of this file loads the library, while this process looks at the data
            loading = [client.submit(_same, None, workers=[name], pure=False) for name in client.nthreads()]
            yield f"{workers} worker process{'' if workers == 1 else 'es'}"
            del loading
        return
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as why:
        raise InputError(f"no scheduler answers at {address} ({type(why).__name__}). Check the address.") from None
    with client:
        yield f"the workers of {address}"


@cache
def _say_local() -> None:
    """Once in a process: who has no client may have forgotten it."""
    logging.getLogger("twofold").warning(
        "no dask client is in force: the dask array is computed in this process, block by block. To use a cluster, "
        "make a distributed.Client first."
    )


def engine_of_files() -> Engine:
    """The engine for files: the workers of the client in force, but not from within one of its tasks."""
    try:
        get_worker()
    except ValueError:
        client = active_client()
        return Engine() if client is None else DaskEngine(client)
    return Engine()


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

    def delayed_rows(self, cuts: np.ndarray) -> list[Any]:
        """One task for the rows between two cuts."""
        raise NotImplementedError

    def read(self, start: int, stop: int) -> Block:
        (rows,), client = self.delayed_rows(np.array([start, stop])), active_client()
        if client is None:
            return _as_block(rows.compute(scheduler="synchronous"))
        return _as_block(DaskEngine(client).fetch(client.compute(rows)))

    def grouped(self, client: Client, bounds: np.ndarray, size: int) -> list[Any]:
        """One future a group of `size` blocks, kept on the workers from sweep to sweep."""
        key = (client.id, size, len(bounds))
        if key not in self._futures:
            self._futures[key] = client.compute(self.delayed_rows(np.append(bounds[:-1:size], bounds[-1])))
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

    def grouped(self, client: Client, bounds: np.ndarray, size: int) -> list[Any]:
        key = (client.id, size, len(bounds))
        if key not in self._futures:
            whole, ends = self.source.grouped(client, self.cuts, size), np.append(self.cuts[:-1:size], self.cuts[-1])
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
    parts = [rows[at] for rows, at in zip(groups, picked, strict=True)]
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)


class DaskSource(OnWorkers):
    """Rows of a dask array. Without a cluster each block is computed where it is read."""

    def __init__(self, X: da.Array):
        super().__init__()
        self.X, self.shape, self.dtype = X, X.shape, float_dtype(X.dtype)

    def delayed_rows(self, cuts: np.ndarray) -> list[Any]:
        X = self.X[cuts[0] : cuts[-1]]
        return list(X.rechunk((tuple(np.diff(cuts).tolist()), -1)).to_delayed().ravel())

    def across(self) -> DaskSource:
        return DaskSource(self.X.T)

    def scaled(self, scale: np.ndarray) -> DaskSource:
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
        tasks = [dask.delayed(_count_stored)(*piece) for piece in self.pieces]
        client = active_client()
        if client is None:
            counts = dask.compute(*tasks, scheduler="synchronous")
        else:
            counts = DaskEngine(client).fetch(client.compute(tasks))
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

    def delayed_rows(self, cuts: np.ndarray) -> list[Any]:
        d, dtype = self.shape[1], self.dtype
        return [
            dask.delayed(_stack_rows, pure=False)([list(p) for p in self.between(int(a), int(b))], d, dtype)
            for a, b in pairwise(cuts)
        ]

    def across(self) -> Source:
        return turn_in_memory(self, "the dask array")

    def scaled(self, scale: np.ndarray) -> DaskCsrSource:
        return self.mapped(_divide_columns, (scale.astype(self.dtype),))

    def mapped(self, fn: Callable[..., Any], state: tuple[Any, ...]) -> DaskCsrSource:
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
    parts = [X[a:b] for X, a, b in pieces]
    if not parts:
        return sparse.csr_array((0, d), dtype=dtype)
    return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


def _divide_columns(X: sparse.csr_array, scale: np.ndarray) -> sparse.csr_array:
    return sparse.csr_array((X.data * (1 / scale)[X.indices], X.indices, X.indptr), shape=X.shape)


_sparse_chunks: dict[str, bool] = {}  # what was found out about arrays that do not say it themselves


def has_sparse_chunks(X: da.Array) -> bool:
    """Whether the chunks are sparse. If the array says they are not, its first chunk is asked: it may not know."""
    if sparse.issparse(X._meta) or 0 in X.shape:
        return sparse.issparse(X._meta)
    if X.name not in _sparse_chunks:
        client, first = active_client(), dask.delayed(sparse.issparse)(X.blocks[0, 0].to_delayed().ravel()[0])
        while len(_sparse_chunks) >= 1000:
            _sparse_chunks.pop(next(iter(_sparse_chunks)))
        _sparse_chunks[X.name] = bool(
            first.compute(scheduler="synchronous")
            if client is None
            else DaskEngine(client).fetch(client.compute(first))
        )
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


def _as_block(rows: Any) -> Any:
    rows = settle(rows if sparse.issparse(rows) else np.ascontiguousarray(rows))
    return rows.astype(float_dtype(rows.dtype), copy=False)


def _run_group(budget: tuple[int, int], *given: Any) -> Any:
    """One task, which keeps to the memory budget of the client."""
    with on_worker(*budget):
        return _visit_blocks(*given)


def _visit_blocks(parts: Parts, bounds: np.ndarray, merge: Callable[..., Any] | None, keep: bool, *args: Any) -> Any:
    """fn over the blocks of a group; a list of results, or their sum when `merge` is given."""
    args = tuple(value if kind is Blocks else settle(value) for kind, value in zip(parts.args, args, strict=True))
    with single_blas(), np.errstate(invalid="ignore", over="ignore"):
        results, kept, tree = [], [], Tree(merge, spills=True) if merge else None
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


class Stretch:
    """Rows of files, read a block at a time by the worker that has the task: never more of them are in its memory."""

    def __init__(self, source: Source, start: int, stop: int):
        self.source, self.first = source.part(start, stop)
        self.start = start

    def __getitem__(self, rows: slice) -> Block:
        shift = self.start - self.first
        return self.source.read(rows.start + shift, rows.stop + shift)


class Kept(Rows):
    """Row state that stayed on the workers: one future a group of 2^height blocks."""

    def __init__(self, engine: DaskEngine, height: int, sweeps: int, futures: Sequence[Any]):
        super().__init__(futures)
        self.engine, self.height, self.sweeps = engine, height, sweeps  # sweeps since its rows were last at the client

    def local(self) -> Iterator[Any]:
        return (item for group in self for item in self.engine.fetch(group))


class DaskEngine(Engine):
    """The verbs on a cluster."""

    tasks: ClassVar[int] = 0  # that were given to workers by this process, over blocks

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
        heights: dict[Any, int] = vars(blocks.source).setdefault("_heights", {})
        key = (self.client.id, len(blocks))
        if key not in heights:
            threads = max(1, sum(self.client.nthreads().values()))
            height, most = 0, min(GROUP_BYTES, config().memory // 8)
            while (2 << height) * blocks.block_bytes <= most and len(blocks) >> (height + 1) >= EACH * threads:
                height += 1
            heights[key] = height
        return heights[key]

    def _places(self, blocks: Blocks, size: int) -> list[dict[str, Any]]:
        """Which worker should read each group of blocks, the same in every sweep while it is there, as options of
        submit.

        Neighbors go together, so that their sums meet where they are, and each thread has about as many blocks. The
        scheduler alone would send all tasks of a first sweep to the worker that has the state, and leave it to the
        others to take some over.
        """
        places: dict[Any, list[str]] = vars(blocks.source).setdefault("_places", {})
        key, n = (self.client.id, size, len(blocks)), len(blocks)
        there = [name for name, threads in sorted(self.client.nthreads().items()) for _ in range(threads)]
        if not there:
            return [{}] * -(-n // size)
        if not set(places.get(key, [""])) <= set(there):
            places[key] = [there[(a + min(a + size, n)) * len(there) // (2 * n)] for a in range(0, n, size)]
        return [{"workers": [name], "allow_other_workers": True} for name in places[key]]

    def _plan(
        self, parts: Parts, merge: Callable[..., Any] | None, keep: bool
    ) -> tuple[int, int, int, Callable[..., Any]]:
        """The height of the groups, the sweeps since their rows were at the client, how many groups there are, and what
        starts the task of one, with options of submit in place of the usual ones."""
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
            if isinstance(arg, Blocks) and isinstance(arg.source, OnWorkers):
                kind = Blocks
                columns.append(arg.source.grouped(self.client, arg.bounds, size))
            elif isinstance(arg, Blocks) and arg.source.elsewhere:
                kind = Blocks
                columns.append([Stretch(arg.source, int(group[0]), int(group[-1])) for group in groups])
            elif isinstance(arg, Blocks):
                columns.append(self._sent(vars(arg.source).setdefault("_rows", Rows(arg)), size))
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
        is_read = any(isinstance(column[0], Stretch) for column in columns)
        places = self._places(blocks, size) if is_read else [{}] * len(groups)
        budget = (config().memory, 4 * blocks.block_bytes)  # as on the threads of one process
        told = None if progress.watcher is None else progress.count_blocks(len(groups))

        def start(g: int, **place: Any) -> Any:
            given = (light, groups[g], merge, keep, *(column[g] for column in columns))
            future = self.client.submit(_run_group, budget, *given, pure=False, **(place or places[g]))
            DaskEngine.tasks += 1
            if told is not None:
                future.add_done_callback(told)
            return future

        return height, sweeps + 1, len(groups), start

    def _submit(self, parts: Parts, merge: Callable[..., Any] | None, keep: bool) -> tuple[int, int, list[Any]]:
        """The height of the groups, the sweeps since their rows were at the client, and one future a group."""
        height, sweeps, count, start = self._plan(parts, merge, keep)
        return height, sweeps, [start(g) for g in range(count)]

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

    def stream(self, parts: Parts) -> Iterator[Any]:
        _, _, count, start = self._plan(parts, None, keep=False)
        waiting, there = deque[Any](), sorted(self.client.nthreads())
        for g in range(count):  # neighbors go to different workers, so that all have something to do
            if len(waiting) == 2 * max(1, len(there)):
                yield from self.fetch(waiting.popleft())
            at = {"workers": [there[g % len(there)]], "allow_other_workers": True} if there else {}
            waiting.append(start(g, **at))
        while waiting:
            yield from self.fetch(waiting.popleft())


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
        for chunk, rows in zip(source.delayed_rows(cuts), np.diff(cuts), strict=True)
    ]
    return da.concatenate(parts)


def _apply(fn: Callable[..., Any], block: Block, state: tuple[Any, ...]) -> Any:
    with single_blas():
        return fn(_as_block(block), *settle(state))
