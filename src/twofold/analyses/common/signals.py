"""What analyses of signals share: what may come in, words on its length, and answers that are signals themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from twofold.analyses._tables import Reading, as_frame_or_none, as_table, beside, data_in_code
from twofold.analyses._targets import Writer
from twofold.analyses.answer import FRAMES, count, frame_writer
from twofold.analyses.common.images import ComparedAnswer
from twofold.core.checks import InputError
from twofold.io.recordings import Recording, holds_signals, read_signals, take_columns, write_sound

UNNAMED = "the signal"


def is_signal(data: Any) -> bool:
    """Whether this is signals rather than an image: by the name of a file, or the shape of an array."""
    if isinstance(data, (str, os.PathLike)):
        return holds_signals(os.fspath(data))
    return isinstance(data, Recording) or as_frame_or_none(data) is not None or np.ndim(data) == 1


def refuse_reading(reading: Reading) -> None:
    """Refuse options of tables for an image."""
    for option, given in reading.items():
        if given:
            raise InputError(f"--{option} is for tables; this is an image. Leave it out.")


def as_signals(data: Any, **reading: Any) -> Recording:
    """Signals from whatever holds some: a path, an array (d,), a frame of columns."""
    if isinstance(data, Recording):
        return replace(data, notes=list(data.notes))
    if isinstance(data, (str, os.PathLike)):
        return read_signals(os.fspath(data), **reading)
    if as_frame_or_none(data) is not None:
        return take_columns(as_table(data, **reading))
    values = np.asarray(data)
    if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise InputError(f"the signal is an array of {values.dtype}; all of it must be finite numbers.")
    return Recording(values[None], ["signal"], source=UNNAMED)


def signals_in_code(data: Any) -> str:
    """How `Answer.code` names the signals."""
    return data_in_code(data.source if isinstance(data, Recording) else data)


def length_line(recording: Recording) -> str:
    """What the signals are, in a few words."""
    c, d = recording.signals.shape
    long = f", {d / recording.rate:,.2f} s at {recording.rate:,} Hz" if recording.rate else ""
    return f"{recording.source}: {count(c, 'signal')} of {d:,} numbers{long}"


def length_facts(recording: Recording) -> dict[str, Any]:
    c, d = recording.signals.shape
    return {"signals": recording.names, "length": d, "rate": recording.rate, "channels": c}


def compute_snr(clean: np.ndarray, guess: np.ndarray) -> float:
    """Decibels of the signal about its mean over the error."""
    error = float(np.mean(np.square(np.subtract(clean, guess, dtype=np.float64))))
    power = float(np.var(clean, dtype=np.float64))
    if error == 0 or power == 0:
        return float("inf") if error == 0 else float("-inf")
    return float(10 * np.log10(power / error))


def check_sound(paths: Sequence[Path], rate: int | None, source: str) -> None:
    """Refuse to write sound that nobody said the speed of."""
    for path in paths:
        if path.suffix.lower() == ".wav" and rate is None:
            raise InputError(f"{path}: {source} does not say how many numbers a second has. Write .csv or .npy.")


@dataclass(kw_only=True, repr=False, eq=False)
class SignalAnswer(ComparedAnswer):
    """An answer that is signals."""

    before: Recording
    after: Recording

    endings: ClassVar[tuple[str, ...]] = (".wav", ".npy", *FRAMES, ".html")

    @property
    def signals(self) -> np.ndarray:
        """The result (c,d), of the type that was given."""
        return self.after.signals

    @property
    def heading(self) -> str:
        return length_line(self.before)

    def facts(self) -> dict[str, Any]:
        return length_facts(self.before)

    def frame(self) -> pl.DataFrame:
        """The signals as columns; of a table, beside everything else that was in it."""
        columns = dict(zip(self.after.names, self.after.signals, strict=True))
        table = self.before.table
        if table is None:
            return pl.DataFrame(columns)
        X: Any = table.array()
        return beside(table, {name: columns.get(name, X[:, j]) for j, name in enumerate(table.columns)})

    def writer(self, path: Path) -> Writer:
        ending = path.suffix.lower()
        if ending == ".npy":
            values = self.after.signals if len(self.after.signals) > 1 else self.after.signals[0]
            return lambda to: np.save(to, values)
        if ending == ".wav":
            rate = self.after.rate
            if rate is None:
                raise InputError(
                    f"{path}: {self.source} does not say how many numbers a second has. Write .csv or .npy."
                )
            return lambda to: write_sound(to, self.after.signals, rate)
        return frame_writer(ending, self.frame(), self.safe_csv) if ending in FRAMES else super().writer(path)
