"""Progress on stderr: live bars on a terminal, a line now and then elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from twofold.analyses.progress import SILENT, Progress
from twofold.core.engine.progress import watching

PATIENCE = 10.0  # seconds without a word, after which a line is due where there is no terminal


def progress(quiet: bool) -> Progress:
    """What suits where stderr goes."""
    if quiet:
        return SILENT
    return TerminalProgress() if sys.stderr.isatty() else LineProgress()


class TerminalProgress(Progress):
    """Spinners and bars that vanish when the work is done."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        with self.console.status(what):
            yield

    @contextmanager
    def share(self, what: str) -> Iterator[Callable[[float], Any]]:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
        with Bars(*columns, TimeRemainingColumn(), console=self.console, transient=True) as bars:
            task = bars.add_task(what, total=1.0)
            yield lambda done: bars.update(task, completed=done)

    @contextmanager
    def passes(self, what: str = "") -> Iterator[None]:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
        with Bars(*columns, TimeRemainingColumn(), console=self.console, transient=True) as bars:
            task = bars.add_task(what or "starting", total=None, count="")

            def show(now: str, done: int, total: int) -> None:
                said = f"{done} of {total} blocks"
                bars.update(task, description=now or what, completed=done, total=total, count=said)

            with watching(show):
                yield

    def callbacks(self) -> list[Any]:
        return [FitBar(self.console)]


class LineProgress(Progress):
    """A line when something has taken a while, and then again after as long."""

    def __init__(self, write: Callable[[str], Any] | None = None, patience: float = PATIENCE):
        self.write = write or (lambda line: print(f"· {line}", file=sys.stderr, flush=True))
        self.patience = patience
        self.last = self.start = time.monotonic()

    def tell(self, what: str) -> None:
        """Say it if it is time."""
        now = time.monotonic()
        if now - self.last >= self.patience:
            self.last = now
            self.write(f"{what} ({span(now - self.start)} so far)")

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        over = threading.Event()

        def wait() -> None:
            while not over.wait(self.patience):
                self.tell(what)

        watcher = threading.Thread(target=wait, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    @contextmanager
    def share(self, what: str) -> Iterator[Callable[[float], Any]]:
        yield lambda done: self.tell(f"{what}: {done:.0%}")

    @contextmanager
    def passes(self, what: str = "") -> Iterator[None]:
        with watching(lambda now, done, total: self.tell(f"{now or what}: {done} of {total} blocks")):
            yield

    def callbacks(self) -> list[Any]:
        return [FitLines(self)]


class FitWatch:
    """The hooks of a callback for `fit`, which count sweeps and, within one, the blocks that threads or workers have
    finished."""

    def __init__(self) -> None:
        self.sweep, self.most, self.start = 0, 0, 0.0
        self.watch: Any = None

    def setup(self, estimator: Any, context: Any) -> None:
        self.sweep, self.most, self.start = 0, 0, time.monotonic()
        self.watch = watching(self.on_blocks)
        self.watch.__enter__()
        self.show("starting", None)

    def on_blocks(self, what: str, done: int, total: int) -> None:
        """So many blocks of a pass are done."""
        sweep = f"sweep {self.sweep + 1} of at most {self.most}" if self.most else "starting"
        share = min(self.sweep + done / total, max(self.most, 1)) / max(self.most, 1)
        self.show(f"{sweep}: {done} of {total} blocks" if total > 1 else sweep, share if self.most else None)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        if context.parent is None:
            self.most = context.max_subtasks or 0

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        if context.parent is not None:
            self.sweep += 1
            self.show(f"sweep {self.sweep} of at most {self.most}", self.sweep / max(self.most, 1))
        return False

    def on_words(self, done: int, total: int) -> None:
        """So many words, or pairs of them, are done of those in all epochs."""
        took = max(time.monotonic() - self.start, 1e-9)
        left = span((total - done) * took / max(done, 1))
        self.show(f"{done / took:,.0f} words or pairs a second, {left} left", done / max(total, 1))

    def teardown(self, estimator: Any, context: Any) -> None:
        if self.watch is not None:
            self.watch.__exit__(None, None, None)
            self.watch = None

    def show(self, what: str, share: float | None) -> None:
        raise NotImplementedError


class FitBar(FitWatch):
    """A bar for a fit."""

    def __init__(self, console: Console):
        super().__init__()
        self.console = console

    def setup(self, estimator: Any, context: Any) -> None:
        columns = (TextColumn("{task.fields[model]}"), BarColumn(), TextColumn("{task.description}"))
        self.bars = Bars(*columns, console=self.console, transient=True)
        self.task = self.bars.add_task("", total=1.0, model=type(estimator).__name__)
        self.bars.start()
        super().setup(estimator, context)

    def show(self, what: str, share: float | None) -> None:
        self.bars.update(self.task, description=what, completed=share or 0.0)

    def teardown(self, estimator: Any, context: Any) -> None:
        super().teardown(estimator, context)
        self.bars.stop()


class FitLines(FitWatch):
    """Lines for a fit."""

    def __init__(self, lines: LineProgress):
        super().__init__()
        self.lines = lines

    def setup(self, estimator: Any, context: Any) -> None:
        self.model = type(estimator).__name__
        super().setup(estimator, context)

    def show(self, what: str, share: float | None) -> None:
        self.lines.tell(f"{self.model}: {what}")


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
