"""Process-wide settings: how many threads visit blocks, and how much memory a streaming fit may hold."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from twofold.core.checks import InputError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@dataclass
class Settings:
    """The settings in force; as a context manager it restores the former ones on leaving."""

    threads: int
    memory: int
    client: Any = None
    _former: tuple[int, int, Any] | None = field(default=None, repr=False, compare=False)

    def __enter__(self) -> Settings:
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None) -> None:
        if self._former is not None:
            _current.threads, _current.memory, _current.client = self._former


def _available_threads() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


_current = Settings(threads=_available_threads(), memory=10**9)
_own = threading.local()  # the memory budget of a task, which is that of the client who sent it
_room = threading.Condition()
_taken = 0  # bytes of the tasks that are running in this process


@contextmanager
def within_budget(memory: int, size: int) -> Iterator[None]:
    """A task of `size` bytes begins when this process has room for it beside others: all of them together keep to the
    budget of the client, unless one alone does not."""
    global _taken
    with _room:
        _room.wait_for(lambda: _taken == 0 or _taken + size <= memory)
        _taken += size
    former, _own.memory = getattr(_own, "memory", None), memory
    try:
        yield
    finally:
        _own.memory = former
        with _room:
            _taken -= size
            _room.notify_all()


def parse_bytes(size: int | float | str) -> int:
    """Bytes from 512_000_000, "512MB", "1.5 GiB".

    >>> parse_bytes("512MB"), parse_bytes("1 GiB")
    (512000000, 1073741824)
    """
    if isinstance(size, (int, float)):
        number, unit = float(size), ""
    else:
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?I?B?)\s*", size.upper())
        if match is None or match[2] not in _UNITS:
            raise InputError(f'memory={size!r} is not a size. Write bytes, or a number with a unit: "512MB", "2GiB".')
        number, unit = float(match[1]), match[2]
    if number * _UNITS[unit] < 2**20:
        raise InputError(f"memory={size!r} is less than 1 MiB, too little to hold one block of rows.")
    return int(number * _UNITS[unit])


def config(*, threads: int | None = None, memory: int | str | None = None, client: Any = None) -> Settings:
    """Set threads, memory budget and cluster, for the process or for a `with` block; without arguments, read them.

    None of them changes a single bit of any result: they only decide how many blocks are in work at once, where, and
    what waits on disk meanwhile.

    Parameters
    ----------
    threads : int, optional
        Threads that visit blocks. The default is every core this process may use.
    memory : int or str, optional
        Bytes that a fit of streamed data may take, such as ``"512MB"``: in this process, and in each worker process
        of a cluster. Blocks in work, what they keep from sweep to sweep (a quarter; the rest waits in the temporary
        folder) and sums that wait to be added (an eighth) count; Python and its libraries do not.
    client : distributed.Client, optional
        The cluster whose workers read files and hold dask arrays. None: the client that is current, if there is one.

    Examples
    --------
    >>> import twofold
    >>> with twofold.config(threads=1, memory="256MB") as now:
    ...     now.threads, now.memory
    (1, 256000000)
    """
    former = (_current.threads, _current.memory, _current.client)
    if threads is None and memory is None and client is None:
        return Settings(_current.threads, getattr(_own, "memory", None) or _current.memory, _current.client, former)
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise InputError(f"threads={threads!r} must be a whole number of at least 1.")
    budget = _current.memory if memory is None else parse_bytes(memory)
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "scheduler")):
        raise InputError(f"client={type(client).__name__} is no client of dask. Give a distributed.Client.")
    _current.threads, _current.memory = threads or _current.threads, budget
    _current.client = _current.client if client is None else client
    return Settings(_current.threads, _current.memory, _current.client, former)
