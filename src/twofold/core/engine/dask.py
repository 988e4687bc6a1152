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
import operator
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, cast

import dask
import numpy as np
from distributed import Client, KilledWorker, LocalCluster, get_client, get_worker
from distributed.client import FutureCancelledError
from distributed.system import MEMORY_LIMIT
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.sources import Source, float_dtype
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


def engine_of_files() -> Engine:
    """The engine for files: the workers of the client in force, but not from within one of its tasks."""
    try:
        get_worker()
    except ValueError:
        client = active_client()
        return Engine() if client is None else DaskEngine(client)
    return Engine()


def as_block(rows: Any) -> Any:
    rows = settle(rows if sparse.issparse(rows) else np.ascontiguousarray(rows))
    return rows.astype(float_dtype(rows.dtype), copy=False)


def _run_group(budget: tuple[int, int], *given: Any) -> Any:
    """One task, which keeps to the memory budget of the client."""
    with on_worker(*budget):
        try:
            return _visit_blocks(*given)
        finally:  # a worker has what a task was given as long as its result: not the rows that were read, too
            for value in given:
                if isinstance(value, Stretch):
                    value.source.drop()


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
                    items.append(as_block(value[bounds[b] - bounds[0] : bounds[b + 1] - bounds[0]]))
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
            if isinstance(arg, Blocks) and arg.source.is_lazy:
                kind, source = Blocks, cast(Any, arg.source)
                columns.append(source.grouped(self.client, arg.bounds, size))
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
