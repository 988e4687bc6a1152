"""Signals for analyses: how they are read, and answers that are signals."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from twofold.analyses.common.analysis import Reading, list_planned_files
from twofold.analyses.common.answer import FRAMES, frame_writer
from twofold.analyses.common.images import UNNAMED_SIGNAL, ComparedAnswer, as_image, check_formats
from twofold.analyses.common.tables import as_frame_or_none, as_table, keep_columns
from twofold.analyses.common.targets import Writer
from twofold.core.checks import InputError
from twofold.io.images import Picture
from twofold.io.recordings import Recording, holds_signals, read_signals, take_columns, write_sound

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def is_signal(data: Any) -> bool:
    """True for signals, false for an image, by the name of a file or the shape of an array."""
    if isinstance(data, (str, os.PathLike)):
        return holds_signals(os.fspath(data))
    return isinstance(data, Recording) or as_frame_or_none(data) is not None or np.ndim(data) == 1


def as_image_or_signals(data: Any, reading: Reading) -> Picture | Recording:
    """Signals or an image from whatever holds one; `reading` is for tables of signals."""
    if is_signal(data):
        return as_signals(data, **reading)
    for option, given in reading.items():
        if given:
            raise InputError(f"⟨{option}⟩ is for tables; this is an image. Leave it out.")
    return as_image(data)


def as_signals(data: Any, **reading: Any) -> Recording:
    """Signals from whatever holds some: a path, an array (d,), a frame of columns."""
    if isinstance(data, Recording):
        return replace(data, notes=list(data.notes))
    if isinstance(data, (str, os.PathLike)):
        return read_signals(os.fspath(data), **reading)
    if as_frame_or_none(data) is not None:
        return take_columns(as_table(data, **reading), bool(reading.get("columns")))
    values = np.asarray(data)
    if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise InputError(f"the signal is an array of {values.dtype}; all of it must be finite numbers.")
    return Recording(values[None], ["signal"], source=UNNAMED_SIGNAL)


def compute_snr(clean: np.ndarray, guess: np.ndarray) -> float:
    """Decibels of the signal about its mean over the error."""
    error = float(np.mean(np.square(np.subtract(clean, guess, dtype=np.float64))))
    power = float(np.var(clean, dtype=np.float64))
    if error == 0 or power == 0:
        return float("inf") if error == 0 else float("-inf")
    return float(10 * np.log10(power / error))


def check_sound(paths: Sequence[Path], rate: int | None, source: str) -> None:
    """Refuse to write sound without a rate."""
    for path in paths:
        if path.suffix.lower() == ".wav" and rate is None:
            raise InputError(f"{path}: {source} does not say how many numbers a second has. Write .csv or .npy.")


def check_planned(data: Any) -> None:
    """Refuse, before anything is computed, files that the caller plans and that cannot hold this image or sound."""
    if isinstance(data, Recording):
        check_sound(list_planned_files(), data.rate, data.source)
    else:
        check_formats(list_planned_files(), data)


@dataclass(kw_only=True, repr=False, eq=False)
class SignalAnswer(ComparedAnswer):
    """An answer that is signals."""

    before: Recording
    after: Recording

    endings: ClassVar[tuple[str, ...]] = (".wav", ".npy", *FRAMES, ".html")
    labels: ClassVar[tuple[str, str]] = ("before", "after")  # in the figure

    @property
    def signals(self) -> np.ndarray:
        """The result (c,d), of the type that was given."""
        return self.after.signals

    @classmethod
    def fits(cls, data: Any) -> bool:
        return is_signal(data)

    def plot(self) -> Figure:
        from twofold.plots.models.signals import compare_signals_figure

        names, rate = self.before.names, self.before.rate
        return compare_signals_figure(self.before.signals, self.signals, names, rate, self.title, self.labels)

    def frame(self) -> pl.DataFrame:
        """The signals as columns; of a table, in their places among everything else that was in it."""
        columns = dict(zip(self.after.names, self.after.signals, strict=True))
        table = self.before.table
        if table is None:
            return pl.DataFrame(columns)
        kept, X = keep_columns(table), table.array()
        others = {name: X[:, j] for j, name in enumerate(table.columns) if name not in kept.columns}
        return kept.with_columns(pl.Series(name, values) for name, values in (others | columns).items())

    def writer(self, path: Path) -> Writer:
        ending = path.suffix.lower()
        if ending == ".npy":
            values = self.after.signals if len(self.after.signals) > 1 else self.after.signals[0]
            return lambda to: np.save(to, values)
        if ending == ".wav":
            check_sound([path], self.after.rate, self.source)
            return lambda to: write_sound(to, self.after.signals, self.after.rate or 0)
        return frame_writer(ending, self.frame(), self.safe_csv) if ending in FRAMES else super().writer(path)
