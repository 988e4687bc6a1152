"""How far a fit is within its epochs, told to the callbacks that want to know."""

from __future__ import annotations

import time
from typing import Any

from twofold.core.sklearn_shim import callbacks_of

PAUSE = 0.1  # seconds between two reports


class ProgressReport:
    """Calls `on_words(done, total)` of a model's callbacks, where they have it, a few times a second.

    Both count words, or pairs of words, in all epochs together.
    """

    def __init__(self, model: Any, total: int):
        self.listeners = [c for c in callbacks_of(model) if hasattr(c, "on_words")]
        self.total, self.last = total, 0.0

    def report(self, done: int) -> None:
        now = time.monotonic()
        if self.listeners and now - self.last >= PAUSE:
            self.last = now
            for callback in self.listeners:
                callback.on_words(done, self.total)
