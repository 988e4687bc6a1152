"""Tasks whose results later tasks take: pure functions and nothing else, on threads or on a cluster.

    u = tasks.submit(solve, folder, 3, [z0, z1])      a handle; handles of other tasks among the arguments
    tasks.gather([u])                                 the results, here
    tasks.load(saved)                                 what a task has written, to be an argument again

A handle is a recipe: the function, and what it takes. What a lost worker held is made again from the recipes back to
what was written, so nothing is ever scattered; `load` is where new recipes begin. A task must give the same result,
and write the same file, whenever and wherever it is run.
"""

from __future__ import annotations

import ctypes
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import cache
from typing import IO, Any

import numpy as np

from twofold.core.config import config, within_budget
from twofold.core.engine.local import Tree, _pool, add, give_back, single_blas
from twofold.core.progress import Counter, is_watched

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

SUMS_PER_TASK = 8  # results that one task adds
DASK_TRIM = "65536"  # what Dask sets for every worker it starts
MALLOC_LIMITS = ((-3, 2**25), (-1, 2**26))  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD


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
    from twofold.core.engine.dask import find_cluster

    return find_cluster(task_bytes) or Tasks(task_bytes, fits)


# ---- what a worker process does before its first task ----------------------------------------------------------


@cache
def prepare_worker() -> None:
    """Once in a process."""
    reuse_memory()
    compile_once()


def reuse_memory() -> None:
    """Let a worker process use memory again that arrays have left, instead of asking the system for it every time.

    Dask starts workers with MALLOC_TRIM_THRESHOLD_=65536, so that what is freed goes back at once: every array of more
    than 128 kB then comes as new pages, which the system fills with zeros first, and a fit takes twice as long. With
    these two limits at most 64 MB a thread wait to be used again; they are those that the C library comes to by itself
    where none is set. Another number that was set is kept.
    """
    if os.environ.get("MALLOC_TRIM_THRESHOLD_") != DASK_TRIM or "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return
    library: Any = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # the GNU C library, which is the one that reads them
        for limit, size in MALLOC_LIMITS:
            library.mallopt(limit, size)


@cache
def compile_once() -> None:
    """While one process compiles a kernel, let others wait for it and load what it made from the cache.

    All workers come to a kernel at the same time. Where they are more than the machine has cores, each compiling it for
    itself is in the way of the others; and of two that write the same index of the cache, one would be lost.
    """
    if fcntl is None:
        return
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    kernels: Any = Dispatcher
    compile_it = kernels.compile

    def compile_alone(kernel: Any, sig: Any) -> Any:
        fn, folder = kernel.py_func, kernel._cache.cache_path
        if folder is None or not fn.__module__.startswith("twofold."):
            return compile_it(kernel, sig)
        place = zlib.crc32(f"{fn.__module__}.{fn.__qualname__}".encode())
        with global_compiler_lock:  # first, so that a thread that waits for another process holds up no third one
            try:
                file = open_lock(folder)
                fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
            except OSError:  # a disk without locks, or a folder that is not to be written to
                return compile_it(kernel, sig)
            try:
                return compile_it(kernel, sig)
            finally:
                fcntl.lockf(file, fcntl.LOCK_UN, 1, place)

    kernels.compile = compile_alone


@cache
def open_lock(folder: str) -> IO[bytes]:
    """A file beside the cache, a byte of which stands for a kernel. It stays open: closing it would end all locks."""
    os.makedirs(folder, exist_ok=True)
    return open(os.path.join(folder, "compiling.lock"), "ab")
