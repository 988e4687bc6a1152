"""How far a pass over blocks is, whoever visits them: threads here, or the workers of a cluster.

with watching(lambda what, done, total: ...):      called now and then, from any thread
    model.fit(X)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PAUSE = 0.1  # seconds between two words

watcher: Callable[[str, int, int], Any] | None = None


@contextmanager
def watching(tell: Callable[[str, int, int], Any]) -> Iterator[None]:
    """`tell(what, done, total)` is told of every pass while this lasts."""
    global watcher
    former, watcher = watcher, tell
    try:
        yield
    finally:
        watcher = former


class Counter:
    """Blocks or tasks of one pass that are done."""

    def __init__(self, what: str, total: int):
        self.what, self.total, self.done, self.last, self.lock = what, total, 0, 0.0, threading.Lock()

    def add(self, _: Any = None) -> None:
        with self.lock:
            self.done += 1
            now, tell = time.monotonic(), watcher
            if tell is None or (now - self.last < PAUSE and self.done < self.total):
                return
            self.last = now
            tell(self.what, self.done, self.total)


def count_blocks(total: int) -> Callable[..., None]:
    """What is called when one of so many blocks of a pass is done."""
    return _nobody_asks if watcher is None else Counter("", total).add


def _nobody_asks(_: Any = None) -> None: ...
