"""What blocks keep from sweep to sweep: in memory, and beyond a share of the budget in a temporary file.

    kept = KeptRows()          of rows that are streamed; of a table in memory a plain `Rows` will do
    kept.append(item)          arrays, or tuples of them
    kept[3]                    the item, read into new arrays if it is in the file
    place = spill.put(item)    the file by itself
    spill.get(place)

All that is kept in this process, by one sweep and by the next, has that share together.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np

from twofold.core.config import config
from twofold.core.data.blocks import LazyRows

KEPT_SHARE = 4  # 1 / KEPT_SHARE of the memory budget may be kept in memory

_lock = threading.RLock()  # the collector may let go of rows while this very thread counts others
_bytes_kept = 0  # bytes that are kept in memory by this process


def _release(held: list[int]) -> None:
    global _bytes_kept
    with _lock:
        _bytes_kept -= held[0]


class Place(NamedTuple):
    """An item in a file: its description, and where its arrays' bytes are and how many each has."""

    head: bytes
    start: int
    sizes: list[int]


class Spill:
    """Items in a temporary file, which goes when this does."""

    def __init__(self) -> None:
        self.file: Any = None
        self.lock = threading.Lock()  # of the place in the file

    def put(self, item: Any) -> Place:
        return self.write(*_take_apart(item))

    def write(self, head: bytes, views: list[memoryview]) -> Place:
        with self.lock:
            self.file = self.file or tempfile.TemporaryFile(prefix="twofold-rows-")  # noqa: SIM115  (closed with this)
            start = self.file.seek(0, os.SEEK_END)
            for view in views:
                self.file.write(view)
        return Place(head, start, [view.nbytes for view in views])

    def get(self, place: Place) -> Any:
        buffers = [np.empty(size, np.uint8) for size in place.sizes]
        with self.lock:
            self.file.seek(place.start)
            for buffer in buffers:
                self.file.readinto(buffer.data)
        return pickle.loads(place.head, buffers=buffers)


def _take_apart(item: Any) -> tuple[bytes, list[memoryview]]:
    """Return a description of an item, and the bytes of its arrays where they are."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(item, protocol=5, buffer_callback=buffers.append)
    return head, [buffer.raw() for buffer in buffers]


def count_bytes(item: Any) -> int:
    """Of all arrays in it."""
    return sum(view.nbytes for view in _take_apart(item)[1])


class KeptRows(LazyRows):
    """One item a block."""

    def __init__(self) -> None:
        super().__init__()
        self.spill = Spill()
        self.own = [0]  # bytes in memory
        weakref.finalize(self, _release, self.own)

    def append(self, item: Any) -> None:
        global _bytes_kept
        head, views = _take_apart(item)
        size = sum(view.nbytes for view in views)
        with _lock:
            fits = _bytes_kept + size <= config().memory // KEPT_SHARE
            if fits:
                _bytes_kept += size
                self.own[0] += size
        super().append(item if fits else self.spill.write(head, views))

    def make(self, it: Any) -> Any:
        return self.spill.get(it) if isinstance(it, Place) else it
