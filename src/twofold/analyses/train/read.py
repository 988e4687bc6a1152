"""Data of `train`: images, rows, or a table with a column to predict."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twofold.analyses.common.tables import as_frame_or_none, as_table
from twofold.analyses.train.models import PREDICTING
from twofold.core.checks import InputError
from twofold.io.image_sets import read_pictures
from twofold.io.tables.table import quote_names

ARRAYS = (".npy", ".npz")
MAX_CLASSES = 20  # values of a column of whole numbers that holds classes


@dataclass
class Data:
    """Rows or images, and what is to be predicted, if anything."""

    X: np.ndarray
    y: np.ndarray | None
    source: str
    notes: list[str] = field(default_factory=list)
    columns: list[str] | None = None  # names of a table's columns
    target: str = ""  # name of the column to predict
    image_shape: tuple[int, ...] = ()  # of images that are seen as rows

    @property
    def has_classes(self) -> bool:
        """True if a class is predicted: text, or few whole numbers."""
        return self.y is None or self.y.dtype.kind not in "f"


def read_data(kind: str, data: Any, target: Any, size: int | None) -> Data:
    """Images, rows, or a table with the column to predict."""
    if isinstance(data, (str, os.PathLike)):
        path = Path(data)
        table = kind == "mlp" and path.is_file() and path.suffix not in ARRAYS and "idx" not in path.name
        if table or target is not None:
            return read_target_table(kind, data, target)
        found = read_pictures(path, size)
        out = Data(found.pixels, found.labels, found.source, found.notes)
    elif as_frame_or_none(data) is not None:
        return read_target_table(kind, data, target)
    else:
        if isinstance(target, str):
            raise InputError(f"target {target!r}: an array has no names of columns. Give the values, or a frame.")
        X = np.asarray(data)
        if X.ndim not in (2, 3, 4) or X.dtype.kind not in "fiub" or not X.size:
            raise InputError(
                f"the data is an array of {X.dtype} with shape {X.shape}; images are (n, h, w) or (n, h, w, c), rows "
                "(n, d)."
            )
        out = Data(X, None if target is None else as_target(np.asarray(target)), "the data")
    if kind in PREDICTING and out.y is None:
        raise InputError(
            f"{out.source} has no classes. Sort the images into subfolders, one a class, or give labels in a .npz file."
        )
    if out.y is not None and len(out.y) != len(out.X):
        raise InputError(f"{len(out.X)} rows and {len(out.y)} targets: they must agree.")
    if kind == "mlp" and out.X.ndim > 2:
        out.image_shape = tuple(int(side) for side in out.X.shape[1:])
        out.X = out.X.reshape(len(out.X), -1)
    return out


def read_target_table(kind: str, data: Any, target: Any) -> Data:
    if kind != "mlp":
        raise InputError(f"⟨target={target}⟩: a table is learned by mlp, not by {kind}. Train an mlp on it.")
    table = as_table(data)
    source, numbers, others = table.source, list(table.columns), list(table.others.columns)
    if target is None:
        raise InputError(f"{source} is a table: name the column to predict with ⟨target⟩, such as {others or numbers}.")
    if not isinstance(table.numbers, np.ndarray):
        raise InputError(f"{source} is sparse, or too large for memory. Give a dense table that fits.")
    if target in others:
        y, keep = table.others[target].to_numpy(), list(range(len(numbers)))
    elif target in numbers:
        y = table.numbers[:, numbers.index(target)]
        keep = [j for j, name in enumerate(numbers) if name != target]
    else:
        raise InputError(f"{source} has no column {target!r}. It has {', '.join(numbers + others)}.")
    if not keep:
        raise InputError(f"{source} has no column of numbers beside {target!r} to predict it from.")
    notes = [note for note in table.notes if not note.startswith(f'"{target}" set aside')]
    X, columns = table.numbers[:, keep], [numbers[j] for j in keep]
    known = np.array([value is not None and value == value for value in y.tolist()])
    if not known.all():
        notes.append(f"{(~known).sum():,} rows are left out: {quote_names([target])} is blank in them")
        X, y = X[known], y[known]
    blank = np.isnan(X).sum(axis=0)
    if blank.any():
        worst = columns[int(blank.argmax())]
        raise InputError(
            f"{source}: {blank.sum():,} cells are blank, most of them in {quote_names([worst])}. Fill them first: "
            "twofold complete."
        )
    return Data(X, as_target(y), source, notes, columns if table.named else None, target)


def as_target(y: np.ndarray) -> np.ndarray:
    """Classes as text or whole numbers, anything else as floats."""
    if y.dtype.kind not in "fiu":
        return y.astype(str) if y.dtype.kind == "O" else y
    whole = bool(np.all(y == np.round(y)))
    return y.astype(np.int64) if whole and len(np.unique(y)) <= MAX_CLASSES else y.astype(np.float64)
