"""Runs contestants side by side and reports them.

    an event       data, contestants, a quality figure, a bar
    a contestant   a function that does the whole job once and returns its result

Each contestant is warmed up once (so nothing compiles while the clock runs), then all take turns, A B C A B C,
so that whatever disturbs the machine disturbs them equally. The median counts. A contestant that has used up the
event's budget of seconds sits out the remaining rounds, after one timed run at least.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from joblib.externals.loky import ProcessPoolExecutor  # which, unlike the one of Python, takes closures


class Timed(NamedTuple):
    """A result whose seconds the contestant measured itself, such as a subprocess does."""

    seconds: float
    value: Any


class Missing(NamedTuple):
    """A contestant that cannot take part, and why."""

    name: str
    reason: str


class Contestant(NamedTuple):
    """A library or program that can do the event's job."""

    name: str
    run: Callable[[], Any]
    ours: bool = False
    counts: bool = True  # False: shown, but the bar ignores it (another problem, or fewer checks)
    note: str = ""
    warm: Callable[[], Any] | None = None  # a small run with the same code paths; the default is the job itself


class Work(NamedTuple):
    """The least cost of the job, for any implementation."""

    flops: float
    bytes: float
    dtype: str = "float64"

    def seconds(self, ceilings: dict[str, float]) -> float:
        compute = self.flops / ceilings[f"gemm_{self.dtype}_gflops"] / 1e9
        return max(compute, self.bytes / ceilings["read_gbs"] / 1e9)


class Bar(NamedTuple):
    """The requirement: ours at least `ratio` times as fast as every peer of equal quality; or another test."""

    text: str
    ratio: float | None = None
    test: Callable[[list[Row]], bool] | None = None


@dataclass
class Event:
    """One job, its contestants, and the judgment of the results."""

    name: str
    title: str
    contestants: list[Contestant | Missing]
    quality: Callable[[Any], dict[str, float]]
    as_good: Callable[[dict[str, float], dict[str, float]], bool]  # (a, b): a's figures are no worse than b's
    bar: Bar | None = None
    work: Work | None = None
    notes: list[str] = field(default_factory=list)
    budget: float = 20.0  # seconds a contestant may spend on repeats
    repeats: int | None = None  # overrides the command line's
    close: Callable[[], Any] = lambda: None  # clears up afterwards, also after an error


@dataclass
class Row:
    """The result of one contestant."""

    contestant: str
    ours: bool = False
    counts: bool = False
    seconds: list[float] = field(default_factory=list)
    quality: dict[str, float] = field(default_factory=dict)
    equal: bool = True
    note: str = ""
    missing: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds) if self.seconds else float("nan")


@dataclass
class Outcome:
    """An event after it has been run."""

    event: Event
    rows: list[Row]

    def ours(self) -> Row:
        """Our entry that counts; the fastest, if there are several."""
        return min(self._entries(ours=True), key=lambda row: row.median)

    def opponent(self, row: Row) -> Row:
        """Our fastest entry that is as good as this one; if none is, our slowest."""
        own = self._entries(ours=True)
        good = [entry for entry in own if row.ours or self.event.as_good(entry.quality, row.quality)]
        return min(good, key=lambda entry: entry.median) if good else max(own, key=lambda entry: entry.median)

    def ratio(self, row: Row) -> float:
        """A contestant's time over that of our opponent to it: above 1, ours is faster."""
        return row.median / self.opponent(row).median

    def rival(self) -> Row | None:
        """The fastest peer relative to us, among those as good as at least one of our entries."""
        peers = [row for row in self._entries(ours=False) if row.equal]
        return min(peers, key=self.ratio, default=None)

    def _entries(self, ours: bool) -> list[Row]:
        return [row for row in self.rows if row.ours == ours and row.counts and row.seconds]

    def met(self) -> bool | None:
        """True if the bar is met; None if there is no bar, or no peer to compare with."""
        bar, rival = self.event.bar, self.rival()
        if bar is None:
            return None
        if bar.test is not None:
            return bar.test(self.rows)
        return None if rival is None or bar.ratio is None else self.ratio(rival) >= bar.ratio

    def share_of_limit(self, ceilings: dict[str, float]) -> float | None:
        """The least time this machine could need, over the time of ours."""
        work = self.event.work
        return None if work is None else work.seconds(ceilings) / self.ours().median


def run(event: Event, repeats: int, say: Callable[[str], None] = lambda text: None) -> Outcome:
    """Warm up, take turns, judge. A peer that raises is reported with its error, not hidden."""
    try:
        return _judge(event, _time_rounds(event, event.repeats or repeats, say))
    finally:
        event.close()


SECONDS_BETWEEN_RUNS = 0.2  # in which the threads of the contestant before stop


def _time_rounds(event: Event, repeats: int, say: Callable[[str], None]) -> list[Row]:
    rows = [_row(entry) for entry in event.contestants]
    active = [(row, entry) for row, entry in zip(rows, event.contestants, strict=True) if isinstance(entry, Contestant)]
    for row, entry in active:
        say(f"{event.name}: warming up {entry.name}")
        _attempt(row, entry.warm or entry.run)
    for turn in range(repeats):
        for row, entry in active:
            if row.missing or (turn and sum(row.seconds) > event.budget):
                continue
            say(f"{event.name}: round {turn + 1}, {entry.name}")
            result = _attempt(row, entry.run)
            if result is not None:
                row.seconds.append(result.seconds)
                row.quality = row.quality or event.quality(result.value)
    return rows


def _judge(event: Event, rows: list[Row]) -> Outcome:
    own = [row.quality for row in rows if row.ours and row.counts and row.quality]
    for row in rows:
        row.equal = bool(row.quality) and (row.ours or any(event.as_good(row.quality, figures) for figures in own))
    # The functions refer to the event's data: release it.
    return Outcome(replace(event, contestants=[], quality=lambda value: {}), rows)


def _row(entry: Contestant | Missing) -> Row:
    if isinstance(entry, Missing):
        return Row(entry.name, missing=entry.reason)
    return Row(entry.name, ours=entry.ours, counts=entry.counts, note=entry.note)


def _attempt(row: Row, job: Callable[[], Any]) -> Timed | None:
    time.sleep(SECONDS_BETWEEN_RUNS)
    began = time.perf_counter()
    try:
        value = job()
    except Exception as why:
        if row.ours:
            raise
        row.missing = f"{type(why).__name__}: {why}"
        return None
    seconds = time.perf_counter() - began
    return value if isinstance(value, Timed) else Timed(seconds, value)


def apart(entry: Contestant | Missing) -> Contestant | Missing:
    """The same in a fresh process of its own, warm-up included, so that threads and memory are separate."""
    if isinstance(entry, Missing):
        return entry

    def run() -> Timed:
        with ProcessPoolExecutor(max_workers=1) as pool:
            return pool.submit(_warm_and_time, entry.warm or entry.run, entry.run).result()

    return entry._replace(run=run, warm=lambda: None)


def _warm_and_time(warm: Callable[[], Any], job: Callable[[], Any]) -> Timed:
    warm()
    began = time.perf_counter()
    value = job()
    return Timed(time.perf_counter() - began, value)


def optional(name: str, package: str, build: Callable[[], Contestant]) -> Contestant | Missing:
    """The contestant if its package imports, else a line that says why not."""
    try:
        return build()
    except ImportError as why:
        return Missing(name, f"{package} is not installed ({why})")


def quality_columns(rows: Iterable[Row]) -> list[str]:
    """The names of the quality figures, in the order they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row.quality))
