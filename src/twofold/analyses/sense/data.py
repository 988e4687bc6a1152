"""Signals, or the channels of an image, as `sense` takes them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from twofold.analyses.common.analysis import list_planned_files
from twofold.analyses.common.images import as_image, check_formats
from twofold.analyses.common.tables import as_table
from twofold.core.checks import InputError
from twofold.io.images import Picture
from twofold.io.recordings import Recording
from twofold.io.tables.table import unique_names

ARRAYS = (".npy", ".npz")
TABLES = (*ARRAYS, ".csv", ".tsv", ".txt", ".dat", ".parquet", ".jsonl")
MIN_LENGTH = 8  # numbers in a signal


@dataclass
class Data:
    """The channels of an image (c,h,w), or signals (c,d)."""

    X: np.ndarray
    before: Picture | Recording

    @property
    def size(self) -> int:
        """Numbers in one signal or channel."""
        return int(self.X[0].size)

    @property
    def peak(self) -> float:
        """The range that an error is compared with."""
        return self.before.peak if isinstance(self.before, Picture) else float(np.ptp(self.X)) or 1.0

    def clip(self, recovered: np.ndarray) -> np.ndarray:
        """The values, set to the nearest that an image can have."""
        return np.clip(recovered, 0, self.before.peak) if isinstance(self.before, Picture) else recovered

    def restore(self, recovered: np.ndarray) -> Picture | Recording:
        """An image or signals of the kind that was given."""
        if isinstance(self.before, Recording):
            return replace(self.before, signals=recovered)
        like = self.before.pixels
        flat = recovered[0] if like.ndim == 2 else np.moveaxis(recovered, 0, 2)
        return replace(self.before, pixels=np.clip(np.rint(flat), 0, self.before.peak).astype(like.dtype))


def holds_signals(data: Any) -> bool:
    """True for signals (tables, frames and floats), false for an image (image files and bytes)."""
    if isinstance(data, (str, os.PathLike)):
        return Path(os.fspath(data).split("::")[0].removesuffix(".gz")).suffix.lower() in TABLES
    return not isinstance(data, Picture) and getattr(data, "dtype", None) not in (np.uint8, np.uint16)


def read_channels(source: Any) -> Data:
    image = as_image(source)
    check_formats(list_planned_files(), image)
    pixels = image.pixels.astype(np.float64)
    return Data(pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0), image)


def read_signals(data: Any) -> Data:
    """Each column is a signal (of a bare array: each row), but an evenly rising first column is time."""
    if isinstance(data, np.ndarray) and data.ndim == 1:
        data = data[:, None]
    table = as_table(data)
    X = table.array()
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    names, notes = list(table.columns), list(table.notes)
    blank = np.argwhere(np.isnan(X))
    if len(blank):
        row, column = (int(i) for i in blank[0])
        raise InputError(f'{table.source}: row {row + 1} of "{names[column]}" is blank. Fill it: twofold complete.')
    path = Path(os.fspath(data).split("::")[0]) if isinstance(data, (str, os.PathLike)) else None
    several, steps = X.shape[1] > 1, np.diff(X[:, 0])
    if several and (path.suffix.lower() in ARRAYS if path else isinstance(data, np.ndarray)):
        notes.append(f"each of the {len(X):,} rows is a signal of {X.shape[1]:,} numbers")
        X, names = X.T, [f"row {i + 1}" for i in range(len(X))]
    elif several and len(steps) > 1 and steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-3, atol=0):
        notes.append(f'"{names[0]}" rises evenly and is taken for time')
        X, names = X[:, 1:], names[1:]
    if len(X) < MIN_LENGTH:
        raise InputError(f"{table.source}: signals of {len(X)} numbers are too short. Give {MIN_LENGTH} or more.")
    signals = np.ascontiguousarray(X.T)
    return Data(signals, Recording(signals, unique_names(names)[0], notes=notes, source=table.source))
