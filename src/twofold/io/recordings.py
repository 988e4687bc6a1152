"""Signals on disk: `read_signals("sound.wav")`, a column of a table, an array; and back.

A recording is its signals as rows (c,d), with their names. Sound keeps its sample rate and its type; of an array with
two axes every row is a signal. Rows of a table need not be in order: its columns are signals if one column only rises,
which says when, and then those columns whose neighbors are similar; or those that are asked for by name.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import wavfile

from twofold.core.checks import InputError
from twofold.core.spelling import spell_parameters
from twofold.io.images import bytes_of, reason
from twofold.io.tables.read import EXCEL, JSONL, PARQUET, SQLITE, TEXT, kind, read_table
from twofold.io.tables.table import Table, quote_names

SOUND = (".wav", ".wave")
ARRAYS = (".npy", ".npz", ".mtx")
TABLES = (*TEXT, *PARQUET, *JSONL, *EXCEL, *SQLITE, *ARRAYS)
MIN_NUMBERS = 4  # numbers of a signal
MAX_CHANCE = 0.01  # that rows in random order have neighbors as similar as those of a signal


@dataclass
class Recording:
    """Signals (c,d), integers or floats; numbers a second, if it is sound; the table they came from, if any."""

    signals: np.ndarray
    names: list[str]
    rate: int | None = None
    table: Table | None = None
    notes: list[str] = field(default_factory=list)
    source: str = ""

    def describe(self) -> str:
        """Source, number and length, on one line."""
        c, d = self.signals.shape
        seconds = f", {d / self.rate:,.2f} s at {self.rate:,} Hz" if self.rate else ""
        return f"{self.source}: {c:,} signal{'' if c == 1 else 's'} of {d:,} numbers{seconds}"

    def facts(self) -> dict[str, Any]:
        """Names, length and rate, for programs."""
        c, d = self.signals.shape
        return {"signals": self.names, "length": d, "rate": self.rate, "channels": c}


def holds_signals(path: str | Path) -> bool:
    """Return whether a file's name says that it holds signals, and not an image."""
    return kind(str(path).split("::")[0]) in (*SOUND, *TABLES)


def read_signals(path: str | Path, **reading: Any) -> Recording:
    """Read signals from sound (.wav), or from the columns of a table or an array; see `read_table` for `reading`.

    Examples
    --------
    >>> write_sound("beep.wav", np.array([[0, 9, 0, -9, 0]], np.int16), 8000)
    >>> read_signals("beep.wav").signals
    array([[ 0,  9,  0, -9,  0]], dtype=int16)
    """
    if kind(str(path)) in SOUND:
        for option, value in reading.items():
            if len(value):
                raise InputError(f"⟨{option}={value[0]}⟩: {path} is sound and has no columns. Leave it out.")
        found = read_sound(str(path))
    else:
        table = read_table([str(path)], **reading)
        rows = kind(str(path)) in ARRAYS and len(table.columns) > 1
        found = take_rows(table) if rows else take_columns(table, bool(reading.get("columns")))
    if found.signals.shape[1] < MIN_NUMBERS:
        raise InputError(f"{path} has {found.signals.shape[1]} numbers a signal; {MIN_NUMBERS} are the fewest.")
    return found


def read_sound(path: str) -> Recording:
    """A .wav file: 8, 16, 24 or 32 bits, or floats."""
    data = bytes_of(path, path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # chunks beside the sound, which other programs wrote, are no news
            rate, values = wavfile.read(io.BytesIO(data))
    except MemoryError:
        raise
    except Exception as error:  # damaged files fail in many ways
        raise InputError(f"{path} is no readable sound ({reason(error)}). Save it as uncompressed WAV.") from None
    signals = np.atleast_2d(values.T)
    if not signals.size:
        raise InputError(f"{path} holds no sound, only a head. Was it written completely?")
    bad = np.argwhere(~np.isfinite(signals))
    if len(bad):
        raise InputError(f"{path}: sample {bad[0][1] + 1} of channel {bad[0][0] + 1} is not a finite number.")
    names = {1: ["sound"], 2: ["left", "right"]}.get(len(signals), [f"channel {i + 1}" for i in range(len(signals))])
    return Recording(signals, names, int(rate), source=path)


def write_sound(path: str | Path, signals: np.ndarray, rate: int) -> None:
    """A .wav file of signals (c,d), in their own type."""
    wavfile.write(path, rate, np.ascontiguousarray(signals.T if len(signals) > 1 else signals[0]))


def take_rows(table: Table) -> Recording:
    """The rows of an array as signals."""
    X = dense_numbers(table)
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise InputError(f"{table.source}[{row}, {column}] is {X[row, column]}; signals need finite numbers. Fill it.")
    notes = [*table.notes, f"each of the {len(X):,} rows is a signal of {X.shape[1]:,} numbers"]
    return Recording(X, [f"row {i + 1}" for i in range(len(X))], notes=notes, source=table.source)


def take_columns(table: Table, named: bool = False) -> Recording:
    """The columns of a table as signals; blanks are filled with straight lines, and a column that says when is kept.

    Columns that are not `named` are signals only if the order of the rows matters.
    """
    X, notes = dense_numbers(table), list(table.notes)
    if len(X) < MIN_NUMBERS:
        raise InputError(f"{table.source} has {len(X)} rows; a signal has {MIN_NUMBERS} numbers or more, one a row.")
    rises = [bool((np.diff(column) > 0).all()) for column in X.T]
    dated = any(one.dtype.is_temporal() and one.is_sorted() for one in table.others.iter_columns())
    if any(rises) and not all(rises):
        when = [name for name, up in zip(table.columns, rises, strict=True) if up]
        how = spell_parameters("kept as it is (⟨columns⟩ names the signals)")
        notes.append(f"{quote_names(when)} only rises and says when: {how}")
    else:
        rises = [False] * len(rises)
    kept = [j for j, up in enumerate(rises) if not up]
    signals = [fill_gaps(X[:, j], table.columns[j], table.source, notes) for j in kept]
    if not named:
        check_order(table, [table.columns[j] for j in kept], any(rises) or dated)
        ordered = [measure_chance(one) <= MAX_CHANCE for one in signals]
        others = [table.columns[j] for j, good in zip(kept, ordered, strict=True) if not good]
        signals = [one for one, good in zip(signals, ordered, strict=True) if good]
        kept = [j for j, good in zip(kept, ordered, strict=True) if good]
        if not kept:
            raise InputError(
                f"{table.source}: neighboring rows of {quote_names(others)} differ as much as any two rows, so "
                f"it is no signal but noise, or rows in no order. If it is one, say so: ⟨columns={others[0]}⟩."
            )
        if others:
            notes.append(f"{quote_names(others)} kept as it is: neighboring rows differ as much as any two")
    return Recording(np.array(signals), [table.columns[j] for j in kept], table=table, notes=notes, source=table.source)


def check_order(table: Table, names: list[str], timed: bool) -> None:
    """Refuse several columns of which none says when: nothing says that the rows are in order."""
    if len(names) > 1 and not timed:
        raise InputError(
            f"{table.source} has {len(names)} columns of numbers and none that says when, so its rows need not be in "
            f"order. Name the column that is a signal: ⟨columns={names[0]}⟩."
        )


def measure_chance(signal: np.ndarray) -> float:
    """The chance that a random order has neighbors as similar: von Neumann's ratio of ranks (Bartels 1982).

    >>> rng = np.random.default_rng(0)
    >>> measure_chance(np.sin(np.arange(99) / 9) + rng.normal(size=99)) < 0.01 < measure_chance(rng.normal(size=99))
    True
    """
    from scipy.stats import norm, rankdata

    n = len(signal)
    ranks = rankdata(signal)
    spread = float(np.square(ranks - ranks.mean()).sum())
    if spread == 0:  # constant: in any order the same
        return 0.0
    ratio = float(np.square(np.diff(ranks)).sum()) / spread
    variance = 4 * (n - 2) * (5 * n * n - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    return float(norm.cdf((ratio - 2) / variance**0.5))


def dense_numbers(table: Table) -> np.ndarray:
    X = table.array()
    if not isinstance(X, np.ndarray):
        raise InputError(f"{table.source} is sparse; a signal has all of its numbers. Save it as a dense array.")
    return X


def fill_gaps(column: np.ndarray, name: str, source: str, notes: list[str]) -> np.ndarray:
    """A column whose blanks are on straight lines between what is beside them."""
    blank = np.isnan(column)
    if blank.all():
        raise InputError(f'{source}: column "{name}" is blank in every row. Leave it out with ⟨drop⟩.')
    if blank.any():
        notes.append(f'{int(blank.sum()):,} blanks in "{name}" were filled with straight lines first')
    places = np.arange(len(column))
    return np.interp(places, places[~blank], column[~blank]) if blank.any() else column
