"""Progress on stderr: a bar in a terminal, a line every ten seconds elsewhere, nothing with --quiet."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from twofold.core.progress import report_to

REPORT_SECONDS = 10.0  # between two lines


@contextmanager
def show_progress(quiet: bool = False) -> Iterator[None]:
    """Show what is reported inside, on stderr."""
    if quiet:
        yield
        return
    with TerminalProgress() if sys.stderr.isatty() else LineProgress() as face, report_to(face):
        yield


class TerminalProgress:
    """One bar, which vanishes when the work is done. It pulses while the total is unknown."""

    def __init__(self, console: Console | None = None):
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        self.bars = Bars(*columns, console=console or Console(stderr=True), transient=True)
        self.total: float | None = None
        self.task = self.bars.add_task("starting", total=None)
        self.lock = threading.Lock()

    def __enter__(self) -> TerminalProgress:
        self.bars.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.bars.stop()

    def report(self, done: float, total: float | None, label: str = "") -> None:
        with self.lock:
            if total != self.total:  # a new bar estimates its time from its own start
                self.bars.remove_task(self.task)
                self.task, self.total = self.bars.add_task(label, total=total), total
            self.bars.update(self.task, description=label, completed=done)


class LineProgress:
    """A line every `REPORT_SECONDS` with the latest report, and how long the work has taken."""

    def __init__(self, write: Callable[[str], Any] | None = None):
        self.write = write or (lambda line: print(f"· {line}", file=sys.stderr, flush=True))
        self.latest, self.start, self.over = "starting", time.monotonic(), threading.Event()
        self.writer = threading.Thread(target=self.write_lines, daemon=True)

    def __enter__(self) -> LineProgress:
        self.writer.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.over.set()
        self.writer.join()

    def report(self, done: float, total: float | None, label: str = "") -> None:
        self.latest = f"{label}, {done / total:.0%}" if total else label

    def write_lines(self) -> None:
        while not self.over.wait(REPORT_SECONDS):
            self.write(f"{self.latest} ({format_seconds(time.monotonic() - self.start)} so far)")


def format_seconds(seconds: float) -> str:
    """Seconds, or minutes and hours with a colon.

    >>> format_seconds(4.2), format_seconds(75), format_seconds(8000)
    ('5 s', '1:15', '2:13:20')
    """
    if seconds < 60:
        return f"{int(seconds) + 1} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
