"""Rows that were costly to decode, in a temporary file from which any run of them is read.

    rows = Decoded()                        it takes disk (TMPDIR), not memory, until it is gone
    rows.read(key, start, out, make)        rows from `start` on, of the table that `make` gives, which is asked once

Sent to a worker it is the file of that process: a task finds there what the last one has decoded. Files unused for
`IDLE_SECONDS` are deleted.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np

IDLE_SECONDS = 300.0


class Decoded:
    """Tables by their keys. Each is stored as some of its columns, all rows, then the next columns."""

    def __init__(self, sign: str | None = None):
        self.sign = sign or uuid4().hex
        self.lock = threading.Lock()
        self.file: Any = None
        self.places: dict[Hashable, list[tuple[int, int]]] = {}  # where columns begin, and how many
        self.full = False  # the disk is
        _known[self.sign] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (self.sign,)

    def read(self, key: Hashable, start: int, out: np.ndarray, make: Callable[[], Iterator[np.ndarray]]) -> bool:
        """Fill `out` with these rows of the table of that key; False if the disk has no room for it."""
        with self.lock:
            if key not in self.places and not self._write(key, make()):
                return False
            first = 0
            for at, width in self.places[key]:
                rows = out if width == out.shape[1] else np.empty((len(out), width), out.dtype)
                self.file.seek(at + start * width * out.itemsize)
                _transfer(self.file.readinto, rows)
                if rows is not out:
                    out[:, first : first + width] = rows
                first += width
        return True

    def _write(self, key: Hashable, columns: Iterator[np.ndarray]) -> bool:
        if self.full:
            return False
        end, places = None, []
        for some in columns:
            try:
                if end is None:
                    self.file = self.file or tempfile.TemporaryFile(prefix="twofold-decoded-", buffering=0)  # noqa: SIM115
                    end = self.file.seek(0, os.SEEK_END)
                places.append((self.file.tell(), some.shape[1]))
                _transfer(self.file.write, np.ascontiguousarray(some))
            except OSError:
                self.full = True
                if end is not None:
                    self.file.truncate(end)
                return False
        self.places[key] = places
        return True


def _transfer(call: Callable[[memoryview], int], cells: np.ndarray) -> None:
    """Read or write all of it: the system may stop in between."""
    left = cells.reshape(-1).view(np.uint8).data
    while len(left):
        done = call(left)
        if not done:
            raise OSError("a temporary file ends too early")
        left = left[done:]


_known: WeakValueDictionary[str, Decoded] = WeakValueDictionary()
_asked: dict[str, tuple[Decoded, float]] = {}  # by tasks, and when the last one came
_lock = threading.Lock()
_timer: list[threading.Timer] = []


def _find(sign: str) -> Decoded:
    """That of this process, kept for tasks to come."""
    with _lock:
        found = _known.get(sign) or Decoded(sign)
        _asked[sign] = (found, time.monotonic())
        _look_later()
    return found


def _look_later() -> None:
    if not _timer:
        _timer.append(threading.Timer(IDLE_SECONDS, _forget))
        _timer[0].daemon = True
        _timer[0].start()


def _forget() -> None:
    """Forget what no task has asked for in IDLE_SECONDS, with its file."""
    with _lock:
        _timer.clear()
        then = time.monotonic() - IDLE_SECONDS
        for sign in [sign for sign, (_, asked) in _asked.items() if asked <= then]:
            del _asked[sign]
        if _asked:
            _look_later()
