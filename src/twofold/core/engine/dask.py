"""The same verbs on dask.distributed.

A dask array is re-chunked to groups of our own blocks: an aligned run of 2^h blocks is one task, which returns
that run's node of the summation tree. The tree goes on over the groups as tasks, so one sum travels to the
client, and the bits are those of the local engine.

Everything is a task with a recipe, so that what a worker took with it when it died is computed again: the state of a
sweep is part of its tasks, or a task that holds it, once whatever the number of groups, and what blocks keep from
sweep to sweep goes back, sweep by sweep, to rows that the client has sent. Nothing is scattered: scattered data has no
recipe.

The tasks of a pass go to the scheduler in one message, and few of them wait for each other. A message may wait up to
10 ms for others to go with it, and a task that takes the result of another costs two messages.
"""

from __future__ import annotations

import errno
import pickle
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from time import monotonic
from typing import Any, ClassVar, NamedTuple, cast
from uuid import uuid4
from weakref import WeakKeyDictionary

import dask
import numpy as np
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from distributed import Client, Future, KilledWorker, LocalCluster, get_client, get_worker
from distributed.client import FutureCancelledError
from distributed.protocol.pickle import dumps
from distributed.system import MEMORY_LIMIT
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.kept_rows import count_bytes
from twofold.core.data.sources import Source, float_dtype
from twofold.core.engine.local import Engine, Parts, Shared, Tree, single_blas
from twofold.core.engine.tasks import (
    Tasks,
    copy_arrays,
    list_pieces,
    on_worker,
    read_saved,
    run_in_budget,
    watch_tasks,
)
from twofold.core.progress import Counter, is_watched
from twofold.core.types import Block

GROUP_BYTES = 64 * 2**20  # what one task reads: enough work to hide the scheduler,
TASKS_PER_THREAD = 4  # unless a thread would have fewer tasks than this; they could not be shared out evenly
SMALL_TASK_BYTES = 2**20  # of smaller tasks one a thread is enough: the scheduler takes longer than the work
INLINE_BYTES = 2**18  # bytes that go from the client to the groups of a pass, or back, without tasks of their own
SUMS_PER_TASK = 4  # sums that one task adds
WORKER_LIST_SECONDS = 1.0  # seconds after which the scheduler is asked again which workers it has
KEEP_FUTURES_SECONDS = 1.0  # seconds that futures of a pass are kept, at most, after it is done
SWEEPS_PER_RECIPE = 16  # what blocks keep then comes to the client, if it is small: what a lost worker costs at most
DISK_FULL_ERRORS = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
PROCESS_BYTES = 10**9  # that a worker process may take beside the memory budget: Python, libraries, messages
MAX_RETRIES = 3  # times that tasks are tried again whose workers died more often than the scheduler allows


def active_client() -> Client | None:
    """The distributed client in force, if any: that of the configuration, else the current one."""
    if config().client is not None:
        return config().client
    try:
        return get_client()
    except ValueError:
        return None


@contextmanager
def connect(address: str | None, workers: int | None) -> Iterator[str]:
    """A client in force, of the scheduler at this address or of `workers` processes here, and a phrase for either.

    Dask writes what a process keeps to disk from 60 % of its limit on, and restarts it at 95 %. The limit is twice
    the memory budget and a gigabyte, or its share of the machine if that is less.
    """
    if address is None:
        limit = min(2 * config().memory + PROCESS_BYTES, MEMORY_LIMIT // (workers or 1))
        options = {"threads_per_worker": 1, "memory_limit": limit, "dashboard_address": ":0", "silence_logs": 50}
        with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
            # each process that is sent a function of this file loads the library, while this one looks at the data
            loading = [client.submit(_identity, None, workers=[name], pure=False) for name in client.nthreads()]
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


def _run_group(budget: tuple[int, int], group: tuple[Any, ...], args: list[Any], *made: Any) -> Any:
    """One task, which keeps to the memory budget of the client. What others have made takes its place in `args`."""
    fill = iter(made)
    with on_worker(*budget):
        try:
            return _visit_blocks(*group, *(next(fill) if arg is TaskResult else arg for arg in args))
        finally:  # a worker has what a task was given as long as its result: not the rows that were read, too
            for arg in args:
                if isinstance(arg, FileRows):
                    arg.source.drop()


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
                    items.append(copy_arrays(value[b]))  # fn may change what a block keeps; a lost task is run again
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


class FileRows:
    """Rows of files, read a block at a time by the worker that has the task: never more of them are in its memory."""

    def __init__(self, source: Source, start: int, stop: int):
        self.source, self.first = source.part(start, stop)
        self.start = start

    def __getitem__(self, rows: slice) -> Block:
        shift = self.start - self.first
        return self.source.read(rows.start + shift, rows.stop + shift)


class TaskResult:
    """The place of an argument that another task makes."""


class ClientValue:
    """A value of the client that tasks take: part of each of them, or a task of its own from the first of them on."""

    def __init__(self, value: Any):
        arrays: list[pickle.PickleBuffer] = []
        self.size = len(dumps(value, buffer_callback=arrays.append)) + sum(array.raw().nbytes for array in arrays)
        self.value, self.future = value, cast(Any, None)


class Graph:
    """Tasks that go to the scheduler in one message. Until then, a name stands for what a task gives."""

    def __init__(self, client: Client):
        self.client, self.tasks, self.places = client, dict[str, Any](), dict[str, str]()
        self.held: list[tuple[str, ClientValue]] = []

    def add(self, fn: Callable[..., Any], *made: Any, at: str | None = None) -> str:
        """fn of what tasks make, each a name, a future, or a list of those; at a worker, if it is still there."""
        name = f"{getattr(fn, 'func', fn).__name__}-{uuid4().hex}"
        self.tasks[name] = (fn, *made)
        if at is not None:
            self.places[name] = at
        return name

    def hold(self, held: ClientValue) -> Any:
        """Return what stands for a value as a task of its own."""
        if held.future is None:
            held.future = self.add(partial(_identity, held.value))
            self.held.append((held.future, held))
        return held.future

    def start(self, names: Sequence[str]) -> list[Any]:
        """Send all, and have a future of each of these."""
        layer = MaterializedLayer(self.tasks, {"workers": self.places.get, "allow_other_workers": True})
        graph, wanted = HighLevelGraph({"pass": layer}, {"pass": set()}), [*names, *(name for name, _ in self.held)]
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # meant to be in the graph
            futures = self.client.get(graph, wanted, sync=False, fifo_timeout="0ms")
        for (_, held), future in zip(self.held, futures[len(names) :], strict=True):
            held.value, held.future = None, future
        taken = (made for _, *args in self.tasks.values() for made in args if isinstance(made, Future))
        keep_futures(self.client, [*futures, *taken])
        return futures[: len(names)]


_recent: WeakKeyDictionary[Client, list[Any]] = WeakKeyDictionary()


def keep_futures(client: Client, latest: list[Any]) -> None:
    """Keep these until the next ones come: to let go of a future is a message, for which a graph would have to wait."""
    former, _recent[client] = _recent.get(client, []), latest
    former.clear()
    loop: Any = client.loop
    loop.add_callback(loop.call_later, KEEP_FUTURES_SECONDS, latest.clear)


_worker_lists: WeakKeyDictionary[Client, tuple[float, dict[str, int]]] = WeakKeyDictionary()


def count_threads(client: Client) -> dict[str, int]:
    """The threads of each worker, as they were a second ago at most: to ask takes as long as a small pass."""
    when, there = _worker_lists.get(client, (-WORKER_LIST_SECONDS, {}))
    if not there or monotonic() > when + WORKER_LIST_SECONDS:
        there = dict(sorted(client.nthreads().items()))
        _worker_lists[client] = monotonic(), there
    return there


class WorkerRows(Rows):
    """Row state that stayed on the workers: one future a group of 2^height blocks."""

    def __init__(self, engine: DaskEngine, height: int, sweeps: int, futures: Sequence[Any]):
        super().__init__(futures)
        self.engine, self.height, self.sweeps = engine, height, sweeps  # sweeps since its rows were last at the client

    def local(self) -> Iterator[Any]:
        for group in self:
            held = group if isinstance(group, ClientValue) else None
            yield from self.engine.fetch(group) if held is None else held.value or self.engine.fetch(held.future)


class Plan(NamedTuple):
    """A pass over blocks."""

    height: int  # of its groups in the tree
    sweeps: int  # since what blocks keep was at the client
    size: int  # groups there are
    add_group: Callable[..., str]  # the task of one, to a graph
    sign: tuple[Any, ...]  # passes that have it are alike
    on_done: Callable[..., Any] | None  # called when a group is done, if anything receives reports


_sizes: dict[tuple[Any, ...], int] = {}  # of what passes gave: the sums of their groups, and what blocks keep


class DaskEngine(Engine):
    """The verbs on a cluster."""

    tasks: ClassVar[int] = 0  # that were given to workers by this process, over blocks

    def __init__(self, client: Client):
        self.client = client

    def broadcast(self, state: Any) -> Shared:
        return Shared(ClientValue(state))

    def hold(self, value: Any) -> Any:
        """A task that gives this value: the scheduler has its recipe, and workers hand it on to each other."""
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # meant to be in the graph
            return self.client.submit(partial(_identity, value), pure=False)

    def fetch(self, futures: Any) -> Any:
        """The results, here. Workers may die meanwhile.

        The scheduler gives up a task when more than `allowed-failures` workers died while it was assigned to them,
        whether it was running or only waiting behind the one that was: tasks that live as long as the fit, such as
        those that read the rows, would in the end be given up for every machine that was taken away. They are tried
        again in every sweep. A task that does kill its workers ends the fit after a few of them.
        """
        for chance in range(MAX_RETRIES, -1, -1):
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
                if full.errno not in DISK_FULL_ERRORS or full.filename is not None:
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

    def _height(self, blocks: Blocks, kept: list[WorkerRows]) -> int:
        """The height of a group in the tree: of the first sweep, though workers may come and go."""
        if kept:
            return kept[0].height
        heights: dict[Any, int] = vars(blocks.source).setdefault("_heights", {})
        key = (self.client.id, len(blocks))
        if key not in heights:
            threads = max(1, sum(count_threads(self.client).values()))
            height, most = 0, min(GROUP_BYTES, config().memory // 8)
            while (size := (2 << height) * blocks.block_bytes) <= most:
                if len(blocks) >> (height + 1) < (1 if size <= SMALL_TASK_BYTES else TASKS_PER_THREAD) * threads:
                    break
                height += 1
            heights[key] = height
        return heights[key]

    def _places(self, blocks: Blocks, size: int) -> list[str] | list[None]:
        """Choose the worker that reads each group of blocks, the same in every sweep while it is there.

        Neighbors go together, so that their sums meet where they are, and each thread has about as many blocks. The
        scheduler alone would send all tasks of a first sweep to the worker that has the state, and leave it to the
        others to take some over.
        """
        places: dict[Any, list[str]] = vars(blocks.source).setdefault("_places", {})
        key, n = (self.client.id, size, len(blocks)), len(blocks)
        there = [name for name, threads in count_threads(self.client).items() for _ in range(threads)]
        if not there:
            return [None] * -(-n // size)
        if not set(places.get(key, [""])) <= set(there):
            places[key] = [there[(a + min(a + size, n)) * len(there) // (2 * n)] for a in range(0, n, size)]
        return places[key]

    def _plan(self, parts: Parts, merge: Callable[..., Any] | None, keep: bool) -> Plan:
        """The groups of a pass over blocks, and what adds the task of one to a graph."""
        if self.client.status != "running":
            raise ConnectionError(self._explain_loss(""))
        blocks = next(a for a in parts.args if isinstance(a, Blocks))
        kept = [a for a in parts.args if isinstance(a, WorkerRows)]
        height, sweeps = self._height(blocks, kept), max((a.sweeps for a in kept), default=0)
        size = 1 << height
        groups = [blocks.bounds[a : a + size + 1] for a in range(0, len(blocks), size)]
        columns, kinds = [], []
        for arg in parts.args:
            kind: Any = Shared(None) if isinstance(arg, Shared) else Rows
            if isinstance(arg, Blocks) and arg.source.is_lazy:
                kind, source = Blocks, cast(Any, arg.source)
                columns.append(source.group_rows(self.client, arg.bounds, size))
            elif isinstance(arg, Blocks) and arg.source.elsewhere:
                kind = Blocks
                columns.append([FileRows(arg.source, int(group[0]), int(group[-1])) for group in groups])
            elif isinstance(arg, Blocks):
                columns.append(self._send_rows(vars(arg.source).setdefault("_rows", Rows(arg)), size))
            elif isinstance(arg, Shared):
                columns.append([arg.value] * len(groups))
            elif isinstance(arg, WorkerRows):
                columns.append(list(arg))
            elif all(item is None for item in arg):
                kind = Shared(None)
                columns.append([None] * len(groups))
            else:
                columns.append(self._send_rows(arg, size))
            kinds.append(kind)
        is_part = [
            sum(item.size for item in column if isinstance(item, ClientValue)) <= INLINE_BYTES for column in columns
        ]
        light = Parts(parts.fn, tuple(kinds))
        is_read = any(isinstance(column[0], FileRows) for column in columns)
        places = self._places(blocks, size) if is_read else [None] * len(groups)
        budget = (config().memory, 4 * blocks.block_bytes)  # as on the threads of one process

        def add_group(graph: Graph, g: int, at: str | None = None) -> str:
            args, made = list[Any](), list[Any]()
            for item, fits in zip((column[g] for column in columns), is_part, strict=True):
                if isinstance(item, ClientValue) and fits:
                    args.append(item.value)
                elif isinstance(item, (ClientValue, Future)):
                    args.append(TaskResult)
                    made.append(graph.hold(item) if isinstance(item, ClientValue) else item)
                else:
                    args.append(item)
            DaskEngine.tasks += 1
            run = partial(_run_group, budget, (light, groups[g], merge, keep), args)
            return graph.add(run, *made, at=at or places[g])

        on_done = Counter(len(groups)).add if is_watched() else None
        state = sum(arg.value.size for arg in parts.args if isinstance(arg, Shared))
        sign = (blocks.shape, height, state, zlib.crc32(dumps(parts.fn, buffer_callback=lambda array: None)))
        return Plan(height, sweeps + 1, len(groups), add_group, sign, on_done)

    def _start(self, plan: Plan, graph: Graph, groups: list[str], names: list[str]) -> list[Any]:
        """Futures of these names; groups that are done are reported."""
        if plan.on_done is None:
            return graph.start(names)
        futures = graph.start([*names, *groups])
        for future in futures[len(names) :]:
            future.add_done_callback(plan.on_done)
        return futures[: len(names)]

    def _send_rows(self, rows: Rows, size: int) -> list[Any]:
        """Rows of the client as one task a group. Those that come again, such as weights, are sent once."""
        items: tuple[Any, ...]
        there: dict[Any, list[Any]]
        items, there = getattr(rows, "_sent", ((), {}))
        if len(items) != len(rows) or any(a is not b for a, b in zip(items, rows, strict=True)):
            items, there = tuple(rows), {}
            rows._sent = (items, there)  # type: ignore[attr-defined]
        key = (self.client.id, size)
        if key not in there:
            there[key] = [ClientValue(list(rows[a : a + size])) for a in range(0, len(rows), size)]
        return list(there[key])

    def reduce(self, merge: Callable[..., Any], parts: Parts, keep: bool = False) -> Any:
        plan, graph = self._plan(parts, merge, keep), Graph(self.client)
        groups = [plan.add_group(graph, g) for g in range(plan.size)]
        if _sizes.get(plan.sign, INLINE_BYTES + 1) <= INLINE_BYTES:
            return self._reduce_here(merge, plan, self._start(plan, graph, groups, groups), keep)
        kept = [graph.add(_first, group) for group in groups] if keep else []
        sums = [graph.add(_second, group) for group in groups] if keep else groups
        while len(sums) > 1:
            sums = [
                graph.add(partial(_merge_run, merge), sums[a : a + SUMS_PER_TASK])
                for a in range(0, len(sums), SUMS_PER_TASK)
            ]
        top, *rows = self._start(plan, graph, groups, [*sums, *kept])
        summed = self.fetch(top)
        if plan.sign not in _sizes:
            while len(_sizes) >= 1000:
                _sizes.pop(next(iter(_sizes)))
            _sizes[plan.sign] = plan.size * count_bytes(summed) + self._count_bytes(rows)
        return (self._shorten(WorkerRows(self, plan.height, plan.sweeps, rows)), summed) if keep else summed

    def _count_bytes(self, futures: list[Any]) -> int:
        return sum(self.client.nbytes([f.key for f in futures], summary=False).values()) if futures else 0

    def _reduce_here(self, merge: Callable[..., Any], plan: Plan, futures: list[Any], keep: bool) -> Any:
        """The end of a pass that gives so little that the client adds it up, and may have what is kept."""
        results = self.fetch(futures)
        summed = _merge_run(merge, [result[1] for result in results] if keep else results)
        rows = [ClientValue(result[0]) for result in results] if keep else []
        return (WorkerRows(self, plan.height, 0, rows), summed) if keep else summed

    def _shorten(self, kept: WorkerRows) -> WorkerRows:
        """Fetch what is kept after some sweeps, and send it again, unless it is too much for the client's memory.

        Its recipe goes through every sweep since its rows were at the client, with their states: that is both what the
        scheduler has to remember and what a lost worker costs.
        """
        if kept.sweeps < SWEEPS_PER_RECIPE or self._count_bytes(kept) > config().memory // 4:
            return kept
        return WorkerRows(self, kept.height, 0, [ClientValue(rows) for rows in self.fetch(list(kept))])

    def gather(self, parts: Parts) -> list[Any]:
        plan, graph = self._plan(parts, None, keep=False), Graph(self.client)
        groups = [plan.add_group(graph, g) for g in range(plan.size)]
        return [result for group in self.fetch(self._start(plan, graph, groups, groups)) for result in group]

    def stream(self, parts: Parts) -> Iterator[Any]:
        plan = self._plan(parts, None, keep=False)
        waiting, there = deque[Any](), list(count_threads(self.client))
        for g in range(plan.size):  # neighbors go to different workers, so that all have something to do
            if len(waiting) == 2 * max(1, len(there)):
                yield from self.fetch(waiting.popleft())
            graph = Graph(self.client)
            name = plan.add_group(graph, g, there[g % len(there)] if there else None)
            waiting.extend(self._start(plan, graph, [name], [name]))
        while waiting:
            yield from self.fetch(waiting.popleft())


class DaskTasks(Tasks):
    """On the workers of a cluster, each of which keeps to the memory budget with the tasks of `task_bytes` it runs.

    A handle is a future, whose recipe the scheduler keeps as long as a later one was made of it.
    """

    costly = True

    def __init__(self, client: Any, task_bytes: int):
        self.client, self.sign, self.counter = client, uuid4().hex[:8], count()
        self.task_bytes = task_bytes
        threads = client.nthreads()
        self.workers, self.threads = max(1, len(threads)), max(1, sum(threads.values()))

    def submit(self, fn: Callable[..., Any], *args: Any) -> Any:
        key = f"{fn.__name__}-{self.sign}-{next(self.counter)}"
        DaskEngine.tasks += 1
        return self.client.submit(run_in_budget, config().memory, self.task_bytes, fn, *args, key=key)

    def hold(self, value: Any) -> Any:
        return DaskEngine(self.client).hold(value)

    def gather(self, handles: Sequence[Any], label: str = "") -> list[Any]:
        watch_tasks(handles, label)
        return DaskEngine(self.client).fetch(list(handles))

    def load(self, saved: Any) -> Any:
        return self.submit(read_saved, saved)

    def frames(self, collection: Any) -> list[Any]:
        return self.client.compute(list_pieces(collection))


def find_cluster(task_bytes: int) -> DaskTasks | None:
    """The tasks of the client in force, if any; within a task there is none."""
    engine = engine_of_files()
    return DaskTasks(engine.client, task_bytes) if isinstance(engine, DaskEngine) else None


def _identity(value: Any) -> Any:
    return value


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _merge_run(merge: Callable[..., Any], sums: list[Any]) -> Any:
    """The node of the tree above these, which stay: a worker may hand out or recompute the very objects it stores."""
    tree = Tree(merge)
    for i, value in enumerate(sums):
        tree.push(settle(value) if i % 2 else copy_arrays(value))
    return tree.result()


def settle(value: Any) -> Any:
    """The value with arrays as this process would have made them: aligned in memory, and writable.

    What came over the network may begin at any byte, and then NumPy adds up in another order: the bits would depend on
    where values were computed. Compiled kernels would also be compiled again for arrays of that kind.
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
