"""Words per second and the time left, live on stderr, while word vectors are learned."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn


class WordProgress:
    """A callback for `fit`: first that words are counted, then how far the epochs are."""

    def __init__(self, unit: str, console: Console | None = None):
        self.unit = unit
        self.console = console or Console(stderr=True)
        self.epoch, self.epochs, self.start = 0, 0, 0.0

    def setup(self, estimator: Any, context: Any) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"))
        self.bar = Progress(*columns, console=self.console, transient=True)
        self.task = self.bar.add_task("counting words", total=None, said="")
        self.bar.start()

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        if context.parent is None:
            self.epochs = context.max_subtasks or 0
            return
        self.epoch += 1
        self.start = self.start or time.perf_counter()
        said = f"epoch {self.epoch} of {self.epochs}" if self.epochs > 1 else "learning"
        self.bar.update(self.task, description=said, total=self.epochs or None, completed=self.epoch - 1)

    def on_words(self, done: int, total: int) -> None:
        """So many words, or pairs of them, are done of those in all epochs."""
        rate = done / max(time.perf_counter() - self.start, 1e-9)
        left = (total - done) / max(rate, 1e-9)
        said = f"{rate:,.0f} {self.unit} a second, {span(left)} left"
        self.bar.update(self.task, completed=done / max(total, 1) * self.epochs, said=said)

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        if context.parent is not None:
            self.bar.update(self.task, completed=self.epoch)
            history = getattr(getattr(estimator, "_progress", None), "history", None)
            rates = getattr(history, "columns", {}).get("words_per_second")
            if rates:
                left = (self.epochs - self.epoch) * (time.perf_counter() - self.start) / max(self.epoch, 1)
                self.bar.update(self.task, said=f"{rates[-1]:,.0f} {self.unit} a second, {span(left)} left")
        return False

    def teardown(self, estimator: Any, context: Any) -> None:
        self.bar.stop()


def span(seconds: float) -> str:
    """A time as people say it.

    >>> span(4.2), span(75), span(8000)
    ('5 s', '1:15', '2:13:20')
    """
    if seconds < 60:
        return f"{int(seconds) + 1} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def progress(unit: str, quiet: bool) -> list[WordProgress]:
    """The callback, or none when nobody is looking."""
    return [] if quiet or not sys.stderr.isatty() else [WordProgress(unit)]
