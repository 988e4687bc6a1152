"""Tasks whose results later tasks take: pure functions and nothing else, on threads or on a cluster.

    u = tasks.submit(solve, folder, 3, [z0, z1])      a handle; handles of other tasks among the arguments
    tasks.gather([u])                                 the results, here
    tasks.load(saved)                                 what a task has written, to be an argument again

A handle is a recipe: the function, and what it takes. What a lost worker held is made again from the recipes back to
what was written, so nothing is ever scattered; `load` is where new recipes begin. A task must give the same result,
and write the same file, whenever and wherever it is run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any

import numpy as np

from twofold.core.config import config, within_budget
from twofold.core.engine.local import Tree, _pool, add, give_back, single_blas
from twofold.core.engine.worker import MALLOC_LIMITS, prepare_worker
from twofold.core.progress import Counter, is_watched

SUMS_PER_TASK = 8  # results that one task adds


class Saved:
    """Something on disk, which a task that takes it reads first."""

    def read(self) -> Any:
        raise NotImplementedError


def add_results(results: list[Any]) -> Any:
    """Their sum along the fixed tree; the results stay as they are."""
    tree = Tree(lambda a, b: add(copy_arrays(a), b))
    for result in results:
        tree.push(result)
    return tree.result()


def copy_arrays(value: Any) -> Any:
    """The value with new arrays, in the same memory order; field by field for tuples."""
    if isinstance(value, tuple):
        fields = [copy_arrays(v) for v in value]
        return type(value)(*fields) if hasattr(value, "_fields") else tuple(fields)
    return value.copy(order="K") if isinstance(value, np.ndarray) else value


class Tasks:
    """On this machine's threads, as many at a time as the budget allows for tasks of `task_bytes`.

    They start in the order in which they come, so that none waits for one behind it. What is loaded stays in memory if
    it `fits`.
    """

    workers = 1
    costly = False  # whether a task costs milliseconds to start, so that little ones are better put together

    def __init__(self, task_bytes: int, fits: bool = True):
        now = config()
        self.fits = fits
        self.threads = max(1, min(now.threads, now.memory // max(1, 2 * task_bytes)))
        self.waiting: set[Future[Any]] = set()

    def submit(self, fn: Callable[..., Any], *args: Any) -> Any:
        """fn(*args), later. Handles, and lists of handles, stand for their results."""
        if self.threads == 1:
            done: Future[Any] = Future()
            done.set_result(run_task(fn, *_values(args)))
            return done
        future = _pool(self.threads).submit(lambda: run_task(fn, *_values(args)))
        self.waiting.add(future)
        future.add_done_callback(self.waiting.discard)
        return future

    def hold(self, value: Any) -> Any:
        """A handle of a value that many tasks take."""
        return value

    def gather(self, handles: Sequence[Any], label: str = "") -> list[Any]:
        """The results; after a failure nothing is left running. `label` is that of their progress."""
        watch_tasks(handles, label)
        try:
            return _values(handles)
        except BaseException:
            wait([future for future in list(self.waiting) if not future.cancel()])
            raise

    def load(self, saved: Any) -> Any:
        """A handle of what was saved."""
        return self.submit(read_saved, saved) if self.fits else saved

    def frames(self, collection: Any) -> list[Any]:
        """The pieces of a dask collection."""
        return [self.submit(_compute, piece) for piece in list_pieces(collection)]

    def reduce(self, handles: Sequence[Any], merge: Callable[..., Any] = add_results) -> Any:
        """The sum of results, along the fixed tree, an aligned run of which is one task."""
        level = list(handles)
        while len(level) > 1:
            level = [self.submit(merge, level[a : a + SUMS_PER_TASK]) for a in range(0, len(level), SUMS_PER_TASK)]
        return level[0]


def watch_tasks(handles: Sequence[Any], label: str) -> None:
    """Report how many of these tasks are done."""
    if not label or not is_watched():
        return
    counter = Counter(len(handles), label)
    for handle in handles:
        if hasattr(handle, "add_done_callback"):
            handle.add_done_callback(counter.add)


def run_task(fn: Callable[..., Any], *args: Any) -> Any:
    """One task: BLAS keeps to one thread; what is not finite is refused later, by its place."""
    with single_blas(), np.errstate(invalid="ignore", over="ignore"):
        return fn(*(read_saved(arg) for arg in args))


def run_in_budget(memory: int, size: int, fn: Callable[..., Any], *args: Any) -> Any:
    """The same on a worker, with the memory budget of the client."""
    with on_worker(memory, size):
        return run_task(fn, *args)


@contextmanager
def on_worker(memory: int, size: int) -> Iterator[None]:
    """A task on a worker. What it has freed waits to be used again, unless that would be much of the budget."""
    prepare_worker()
    with within_budget(memory, size):
        try:
            yield
        finally:
            if memory < 4 * MALLOC_LIMITS[1][1]:
                give_back()


def read_saved(arg: Any) -> Any:
    """Read what was saved; other values, and items of lists, stay."""
    if isinstance(arg, list):
        return [read_saved(item) for item in arg]
    return arg.read() if isinstance(arg, Saved) else arg


def list_pieces(collection: Any) -> list[Any]:
    """The partitions of a dask frame, or the chunks of a dask array."""
    pieces = collection.to_delayed()
    return list(pieces.ravel()) if isinstance(pieces, np.ndarray) else list(pieces)


def _compute(piece: Any) -> Any:
    return piece.compute(scheduler="synchronous")


def _values(args: Sequence[Any]) -> list[Any]:
    return [arg.result() if isinstance(arg, Future) else _values(arg) if isinstance(arg, list) else arg for arg in args]


def find_tasks(task_bytes: int, fits: bool = True) -> Tasks:
    """On the cluster whose client is in force, if there is one, else here."""
    if "distributed" not in sys.modules:  # nobody has made a client
        return Tasks(task_bytes, fits)
    from twofold.core.engine.dask_tasks import find_cluster

    return find_cluster(task_bytes) or Tasks(task_bytes, fits)
