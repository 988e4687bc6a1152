"""What a network is trained on: images, rows, or a table with the column that is to be predicted."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twofold.analyses.common.encoding import Encoding, find_encoding
from twofold.analyses.common.tables import as_frame_or_none, as_table
from twofold.core.checks import InputError
from twofold.io.image_sets import read_pictures
from twofold.io.tables.roles import Column
from twofold.io.tables.table import Table, quote_names

PREDICTING = ("mlp", "cnn")
TABULAR = ("mlp", "flow")
ARRAYS = (".npy", ".npz")
MAX_CLASSES = 20  # values of a column of whole numbers that holds classes


@dataclass
class Data:
    """Rows or images, and what is to be predicted, if anything."""

    X: np.ndarray  # of a table the coded columns
    y: np.ndarray | None
    source: str
    notes: list[str] = field(default_factory=list)
    columns: list[Column] | None = None  # of a table
    target: str = ""  # name of the column to predict
    image_shape: tuple[int, ...] = ()  # of images that are seen as rows
    named: bool = False  # whether the columns of the table have names of their own
    plain: bool = True  # whether all columns are numbers without blanks, which need no encoding
    table: Table | None = None

    @property
    def has_classes(self) -> bool:
        """True if a class is predicted: text, or few whole numbers."""
        return self.y is None or self.y.dtype.kind not in "f"

    def find_encoding(self, rows: np.ndarray) -> Encoding | None:
        """Find how columns of several kinds become numbers, as these rows have them; None where all are numbers."""
        return None if self.plain or self.columns is None else find_encoding(self.X[rows], self.columns)

    def encode(self, encoding: Encoding | None, rows: np.ndarray) -> np.ndarray:
        """These rows as a network takes them: in mixed columns a blank counts as average."""
        return self.X[rows] if encoding is None else np.nan_to_num(encoding.encode(self.X[rows]))


def read_data(kind: str, data: Any, target: Any, size: int | None) -> Data:
    """Images, rows, or a table with the column to predict."""
    if isinstance(data, (str, os.PathLike)):
        path = Path(data)
        table = kind in TABULAR and path.is_file() and path.suffix not in ARRAYS and "idx" not in path.name
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
                f"the data has shape {X.shape} of {X.dtype}; images (n, h, w[, c]) or rows (n, d) are needed."
            )
        out = Data(X, None if target is None else as_target(np.asarray(target)), "the data")
    if kind in PREDICTING and out.y is None:
        raise InputError(
            f"{out.source} has no classes. Sort the images into folders by class, or give labels in an .npz."
        )
    if out.y is not None and len(out.y) != len(out.X):
        raise InputError(f"{len(out.X)} rows and {len(out.y)} targets: they must agree.")
    if kind == "mlp" and out.X.ndim > 2:
        out.image_shape = tuple(int(side) for side in out.X.shape[1:])
        out.X = out.X.reshape(len(out.X), -1)
    return out


def read_target_table(kind: str, data: Any, target: Any) -> Data:
    """All columns of a table that a network can use, without the one to predict."""
    if kind not in TABULAR:
        raise InputError(f"⟨target={target}⟩: a table is learned by mlp, not by {kind}. Train an mlp on it.")
    table = as_table(data)
    if not isinstance(table.numbers, np.ndarray):
        raise InputError(f"{table.source} is sparse, or too large for memory. Give a dense table that fits.")
    if kind == "flow":
        return read_numbers(table, target)
    names = [column.name for column in table.schema]
    if target is None:
        raise InputError(f"{table.source} is a table: name the column to predict with ⟨target⟩, such as {names}.")
    if target not in names:
        raise InputError(f"{table.source} has no column {target!r}. It has {', '.join(names)}.")
    X, columns = table.coded()
    keep = [j for j, column in enumerate(columns) if column.name != target]
    if not keep:
        raise InputError(f"{table.source} has no column beside {target!r} to predict it from.")
    X, columns, y = np.asarray(X)[:, keep], [columns[j] for j in keep], read_target(table, target)
    notes = [note for note in table.notes if note not in table.aside or f'"{target}"' not in note]
    known = np.array([value is not None and value == value for value in y.tolist()])
    if not known.all():
        notes.append(f"{(~known).sum():,} rows are left out: {quote_names([target])} is blank in them")
        X, y = X[known], y[known]
    blank = np.isnan(X).sum(axis=0)
    if blank.any():
        notes.append(f"{blank.sum():,} cells are blank and count as average: twofold complete fills them better")
    plain = not blank.any() and all(column.name in table.columns for column in columns)
    return Data(X, as_target(y), table.source, notes, columns, target, named=table.named, plain=plain, table=table)


def read_target(table: Table, target: str) -> np.ndarray:
    """The column to predict: numbers, or text."""
    role = next(column.role for column in table.schema if column.name == target)
    if role == "date":
        raise InputError(f'{table.source}: "{target}" holds dates, which mlp does not predict. Give it as a number.')
    if role == "id" or (table.ids is not None and table.ids.name == target):
        raise InputError(f'{table.source}: "{target}" names the rows, and none tells of another. Name another column.')
    if target in table.columns:
        return table.numbers[:, table.columns.index(target)]  # type: ignore[index]
    assert table.frame is not None
    return table.frame[target].to_numpy()


def read_numbers(table: Table, target: Any) -> Data:
    """The columns of numbers, for a density."""
    if target is not None:
        raise InputError(f"⟨target={target}⟩: a flow predicts nothing. Leave it out, or train an mlp.")
    X, roles = table.array(), {column.name: column for column in table.schema}
    if np.isnan(X).any():
        raise InputError(f"{table.source}: {np.isnan(X).sum():,} cells are blank. Fill them: twofold complete.")
    return Data(X, None, table.source, table.notes, [roles[name] for name in table.columns], named=table.named)


def as_target(y: np.ndarray) -> np.ndarray:
    """Classes as text or whole numbers, anything else as floats."""
    if y.dtype.kind not in "fiu":
        return y.astype(str) if y.dtype.kind == "O" else y
    whole = bool(np.all(y == np.round(y)))
    return y.astype(np.int64) if whole and len(np.unique(y)) <= MAX_CLASSES else y.astype(np.float64)
