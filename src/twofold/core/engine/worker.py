"""What a worker process does once, before its first task: it takes care of memory, and of what has to be compiled."""

from __future__ import annotations

import ctypes
import os
import zlib
from functools import cache
from typing import IO, Any

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

DASK_TRIM = "65536"  # what Dask sets for every worker it starts
MALLOC_LIMITS = ((-3, 2**25), (-1, 2**26))  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD


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
