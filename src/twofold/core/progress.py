"""How far work is: whatever repeats work reports, and the one face in force shows it.

    with report_to(face):                        a bar in a terminal, lines now and then, frames of the lab
        with part(2, 3, 10, "sweep 3 of 10"):    from 2 to 3 of 10
            report(5, 8, "5 of 8 blocks")        face.report(2.625, 10, "sweep 3 of 10: 5 of 8 blocks")

A face is in force in the thread that asks for it. Threads of the engine and callbacks of a cluster report by `Counter`,
which holds the face of the thread that made it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, Protocol


class Progress(Protocol):
    """What receives reports: `done` of `total`, None if that is not known, of the work that `label` names."""

    def report(self, done: float, total: float | None, label: str = "") -> None: ...


_in_force: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def report_to(progress: Progress | None) -> Iterator[None]:
    """`progress` receives the reports of this thread inside this block; None changes nothing."""
    if progress is None:
        yield
        return
    token = _in_force.set(progress)
    try:
        yield
    finally:
        _in_force.reset(token)


def report_share_to(function: Callable[[float], Any] | None) -> AbstractContextManager[None]:
    """The same for a function that takes the share that is done, from 0 to 1."""
    return report_to(None if function is None else ShareCall(function))


def is_watched() -> bool:
    """Return whether anything receives reports."""
    return _in_force.get() is not None


def report(done: float, total: float | None = None, label: str = "") -> None:
    """Report to the face in force, if there is one."""
    progress = _in_force.get()
    if progress is not None:
        progress.report(done, total, label)


@contextmanager
def part(start: float, stop: float, total: float | None = 1.0, label: str = "") -> Iterator[None]:
    """Report what is reported inside as the part from `start` to `stop` of `total`."""
    whole = _in_force.get()
    if whole is None:
        yield
        return
    if label:
        whole.report(start, total, label)
    inner = Part(whole, start, stop, total, label)
    with report_to(inner):
        yield
    if total is not None and inner.reached < stop:
        whole.report(stop, total, label)


def doing(label: str) -> AbstractContextManager[None]:
    """Work of unknown length; what is reported inside is passed on with this label in front."""
    return part(0.0, 0.0, None, label)


class Part:
    """Progress of a part of some work as progress of the whole, which never falls."""

    def __init__(self, whole: Progress, start: float, stop: float, total: float | None, label: str):
        self.whole, self.reached, self.total, self.label = whole, start, total, label
        self.start, self.length = start, stop - start

    def report(self, done: float, total: float | None, label: str = "") -> None:
        label = join_labels(self.label, label)
        if self.total is None:
            self.whole.report(done, total, label)
            return
        self.reached = max(self.reached, self.start + self.length * done / total if total else 0.0)
        self.whole.report(self.reached, self.total, label)


class ShareCall:
    """Calls a function with the share that is done."""

    def __init__(self, function: Callable[[float], Any]):
        self.function = function

    def report(self, done: float, total: float | None, label: str = "") -> None:
        if total:
            self.function(done / total)


class Counter:
    """Counts blocks or tasks of one pass that are done, in whatever thread, and reports them."""

    def __init__(self, total: int, label: str = ""):
        self.progress, self.total, self.label = _in_force.get(), total, label
        self.done, self.lock = 0, threading.Lock()

    def add(self, _: Any = None) -> None:
        if self.progress is None:
            return
        with self.lock:
            self.done += 1
            count = f"{self.done} of {self.total} blocks" if self.total > 1 else ""
            self.progress.report(self.done, self.total, join_labels(self.label, count))


def join_labels(*labels: str) -> str:
    return ": ".join(filter(None, labels))


def describe_rate(done: int, began: float, unit: str) -> str:
    """Say how many a second were done since the clock showed `began`."""
    return f"{done / max(monotonic() - began, 1e-9):,.0f} {unit} a second"
