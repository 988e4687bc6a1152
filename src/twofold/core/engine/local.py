"""The engine: its verbs on local threads.

    parts = engine.map(half_step, blocks, engine.broadcast(state))   each block returns its sums (lazily)
    sums  = engine.reduce(add, parts)                                a tree of fixed shape
    rows  = engine.gather(parts)                                     one result a block, in order
    for rows in engine.stream(parts): ...                            the same, never all in memory

How the models use it:
    k-means    map(assign, blocks, kept bounds, broadcast(Z)) → reduce counts, sums, cost; keep=True carries bounds
    ALS        map(ridge, blocks, U's rows, broadcast(Z)) → gather U; then the same with blocks.T and U broadcast
    NMF        map(hals, blocks, U's rows, broadcast(Z)) → reduce ΣUᵀU, ΣUᵀX with keep=True for U
    mixtures   map(posterior, blocks, kept patterns of holes, broadcast(θ)) → reduce the responsibilities' moments
    GloVe      a stratum is a list of disjoint (row, column) cells: map(adagrad, Rows(cells)) → gather; next stratum

Parallelism lives here and nowhere else: kernels are serial and release the GIL, BLAS is held to one thread.
"""

from __future__ import annotations

import ctypes
import operator
import os
import sys
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg  # noqa: F401  (loads SciPy's own BLAS, so that the controller below sees it)
from scipy import sparse
from threadpoolctl import ThreadpoolController

from twofold.core.config import config
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.kept_rows import KEPT_SHARE as KEPT
from twofold.core.data.kept_rows import KeptRows, Place, Spill, count_bytes
from twofold.core.progress import Counter
from twofold.core.types import Block, State

SUMS_SHARE = 8  # 1 / SUMS_SHARE of the memory budget may be taken by sums that wait to be added


class Shared(NamedTuple):
    """A value every block sees."""

    value: Any


class Parts(NamedTuple):
    """A map not yet run: the function, and its arguments as per-block sequences or shared values."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]

    @property
    def length(self) -> int:
        return next(len(a) for a in self.args if not isinstance(a, Shared))

    @property
    def streams(self) -> bool:
        """True if blocks are read, and dropped when they were visited."""
        return any(isinstance(a, Blocks) and not a.source.in_memory for a in self.args)

    def run(self, i: int) -> Any:
        # Cells that are not finite spread through the sums and are refused, with their place, by the model.
        with np.errstate(invalid="ignore", over="ignore"):
            return self.fn(*(a.value if isinstance(a, Shared) else a[i] for a in self.args))


def add(a: Any, b: Any) -> Any:
    """a + b, field by field for tuples; the arrays of `a` are reused."""
    if isinstance(a, tuple):
        summed = [add(x, y) for x, y in zip(a, b, strict=True)]
        return type(a)(*summed) if hasattr(a, "_fields") else tuple(summed)
    if isinstance(a, np.ndarray) and a.ndim:
        return np.add(a, b, out=a)
    return a + b


class Tree:
    """Adds results that arrive in order, along a binary tree over their positions.

    Two neighbors of equal height merge at once, so only log2(n) sums are alive; and an aligned run of 2^h
    positions may be summed elsewhere and pushed as one node of height h without changing a bit. With `spills`, sums
    that take more than a share of the memory budget wait on disk, except the last.
    """

    def __init__(self, merge: Callable[[Any, Any], Any], spills: bool = False):
        self.merge, self.stack = merge, list[tuple[int, Any]]()
        self.spill = Spill() if spills else None
        self.size = 0  # bytes of a sum, when one has come

    def push(self, value: Any, height: int = 0) -> None:
        while self.stack and self.stack[-1][0] == height:
            value = self.merge(self._pop(), value)
            height += 1
        self.stack.append((height, value))
        if self.spill is not None:
            self.size = self.size or count_bytes(value)
            room = config().memory // SUMS_SHARE
            for i in range(len(self.stack) - 1):
                if (len(self.stack) - i) * self.size > room and not isinstance(self.stack[i][1], Place):
                    self.stack[i] = (self.stack[i][0], self.spill.put(self.stack[i][1]))

    def _pop(self) -> Any:
        value = self.stack.pop()[1]
        return self.spill.get(value) if self.spill is not None and isinstance(value, Place) else value

    def result(self) -> Any:
        value = self._pop()
        while self.stack:
            value = self.merge(self._pop(), value)
        return value


class _SingleBlas:
    """BLAS held to one thread while any block is inside; counted, because the limit belongs to the process."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.controller: ThreadpoolController | None = None
        self.limit: Any = None

    def forget(self) -> None:
        """In a forked child no block is inside: give BLAS its threads back, with a lock of its own."""
        self.lock = threading.Lock()
        if self.inside:
            self.inside = 0
            self.limit.restore_original_limits()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            self.inside += 1
            if self.inside == 1:
                self.controller = self.controller or ThreadpoolController()
                self.limit = self.controller.limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self.lock:
                self.inside -= 1
                if self.inside == 0:
                    self.limit.restore_original_limits()


single_blas = _SingleBlas()
_pools: dict[int, ThreadPoolExecutor] = {}


def _pool(threads: int) -> ThreadPoolExecutor:
    """The pool of this size.

    Its threads are started by another thread, which no Ctrl-C reaches: one that comes between the start of a thread and
    its entry in the list of those to end leaves a process that waits for it forever.
    """
    if threads not in _pools:
        pool, all_there = ThreadPoolExecutor(threads, thread_name_prefix="twofold"), threading.Barrier(threads)
        starter = threading.Thread(target=lambda: [pool.submit(all_there.wait) for _ in range(threads)])
        starter.start()
        starter.join()
        _pools[threads] = pool
    return _pools[threads]


def _reset_after_fork() -> None:
    """In a forked child: the parent's threads are not there, and its locks may be held by them."""
    _pools.clear()
    single_blas.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


class Engine:
    """The verbs on this machine's threads."""

    def broadcast(self, state: State) -> Shared:
        return Shared(state)

    def map(self, fn: Callable[..., Any], *args: Any) -> Parts:
        """fn over the blocks. Each argument is a Blocks, a Rows (one item a block), or a broadcast value."""
        return Parts(fn, args)

    def reduce(self, merge: Callable[..., Any], parts: Parts, keep: bool = False) -> Any:
        """The results summed along the fixed tree. With `keep`, fn returns (kept, sums) and so does this.

        What is kept belongs to its block: fn may change it in place when it comes back in the next sweep. Beside a
        stream, what is too much for the memory budget waits on disk.
        """
        tree, kept = Tree(merge, parts.streams), KeptRows() if parts.streams else Rows()
        for part in self._results(parts):
            if keep:
                kept.append(part[0])
                part = part[1]
            tree.push(part)
            del part  # which is in the sums now: not beside them while the next one is made
        return (kept, tree.result()) if keep else tree.result()

    def gather(self, parts: Parts) -> list[Any]:
        """The results in order, one a block."""
        return list(self._results(parts))

    def stream(self, parts: Parts) -> Iterator[Any]:
        """The results in order, one a block, few at a time: for writers."""
        return self._results(parts)

    def stack(self, parts: Parts) -> Any:
        """The results one below the other, each put in its place as it comes; field by field if they are tuples."""
        return stack_rows(self.stream(parts), next(a for a in parts.args if isinstance(a, Blocks)).shape[0])

    def _results(self, parts: Parts) -> Iterator[Any]:
        """Every block's result in order, with only as many in work as the memory budget allows."""
        now, count = config(), parts.length
        largest = max((a.block_bytes for a in parts.args if isinstance(a, Blocks)), default=1)
        streamed = parts.streams and count * largest > now.memory // 4
        room = now.memory - (now.memory // KEPT + now.memory // SUMS_SHARE if streamed else 0)
        window = max(1, min(2 * now.threads, room // (4 * max(largest, 1))))
        counter = Counter(count)
        with single_blas():
            pool, waiting, size = None, deque[Future[Any]](), 0
            if min(count, now.threads, window) > 1:
                pool = _pool(min(now.threads, window))
            try:
                if pool is None:
                    for i in range(count):
                        yield parts.run(i)
                        counter.add()
                    return
                for i in range(count):
                    while len(waiting) >= window:
                        result = waiting.popleft().result()
                        if streamed and not size:  # what comes of a block is held, too, and once more while it is made
                            size = count_bytes(result) + 1
                            window = max(1, min(window, room // (4 * largest + 2 * size)))
                        yield result
                        del result
                        counter.add()
                    waiting.append(pool.submit(parts.run, i))
                while waiting:
                    yield waiting.popleft().result()
                    counter.add()
            finally:
                for task in waiting:
                    task.cancel()
                if streamed:
                    give_back()


@cache
def _find_trimmer() -> Callable[[int], Any] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return None


def give_back() -> None:
    """Let the system have the memory that is free: the allocator keeps what blocks took, for every thread its own."""
    trim = _find_trimmer()
    if trim is not None:
        trim(0)


def engine_for(blocks: Blocks) -> Engine:
    """The engine that lives where the blocks live: of files, on the workers of a cluster if one is in force."""
    if blocks.source.elsewhere and "distributed" in sys.modules:
        from twofold.core.engine.dask import engine_of_files

        return engine_of_files()
    return blocks.source.engine() or Engine()


def fingerprint(blocks: Blocks, *per_row: np.ndarray | None) -> str:
    """A short sign of the data: its shape, its dtype, and a checksum of every value, weight and label."""
    engine = engine_for(blocks)
    sums = engine.gather(engine.map(_checksum, blocks, *(blocks.rows(a) for a in per_row)))
    crc = zlib.crc32(np.array(sums, dtype=np.uint32).tobytes())
    return f"{blocks.shape[0]}x{blocks.shape[1]}:{blocks.dtype}:{crc:08x}"


def _checksum(X: Block, *per_row: np.ndarray | None) -> int:
    arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    crc = 0
    for a in (*arrays, *per_row):
        crc = crc if a is None else zlib.crc32(np.ascontiguousarray(a).tobytes(), crc)
    return crc


def stack_rows(results: Iterable[Any], n: int) -> Any:
    """The same for results of n rows in all that come one after the other: none is held beside its copy."""
    out: Any = None
    at = 0
    for result in (coming := iter(results)):
        if sparse.issparse(result):
            return stack_results([result, *coming])
        several = isinstance(result, tuple)
        fields = result if several else (result,)
        if len(fields[0]) == n:
            return result
        if out is None:
            out = [np.empty((n, *a.shape[1:]), a.dtype, "C" if a.flags.c_contiguous else "F") for a in fields]
        stop = at + len(fields[0])
        for i, a in enumerate(fields):
            if out[i].dtype != a.dtype:
                out[i] = out[i].astype(np.result_type(out[i], a))
            out[i][at:stop] = a
        at = stop
    if at != n:
        raise ValueError(f"{at} rows came where {n} were to come")
    return (tuple(out) if not hasattr(result, "_fields") else type(result)(*out)) if several else out[0]


def fetch_rows(engine: Engine, blocks: Blocks, wanted: np.ndarray) -> Any:
    """Return the rows with the numbers `wanted`, in their order, wherever they are stored."""
    order = np.argsort(wanted, kind="stable")
    parts = np.split(wanted[order], np.searchsorted(wanted[order], blocks.bounds[1:-1]))
    places = Rows(part - first for part, first in zip(parts, blocks.bounds[:-1], strict=True))
    return stack_results(engine.gather(engine.map(operator.getitem, blocks, places)))[np.argsort(order)]


def stack_results(results: list[Any]) -> Any:
    """Per-block arrays put on top of each other again; field by field if each block gave a tuple."""
    if isinstance(results[0], tuple):
        return tuple(stack_results(list(column)) for column in zip(*results, strict=True))
    if sparse.issparse(results[0]):
        return sparse.vstack(results, format="csr")
    return results[0] if len(results) == 1 else np.concatenate(results)
