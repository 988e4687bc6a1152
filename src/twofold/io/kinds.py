"""What a file holds: a table, ratings, texts, a picture or several, a signal."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from twofold.io.tables.read import SQLITE, kind, read_one
from twofold.io.tables.table import Piece

Kind = Literal["table", "ratings", "text", "picture", "pictures", "signal"]
MIN_PROSE_LETTERS = 40  # the mean length of the texts in a column of prose


def find_kind(path: str) -> Kind:
    """Guess the kind of data in a file."""
    from twofold.io import image_sets, images, recordings
    from twofold.io.documents import PROSE
    from twofold.io.tables import arrays

    ending = kind(path)
    if ending in (*images.ENDINGS, ".gif"):
        return "picture"
    if ending in recordings.SOUND:
        return "signal"
    if ending in arrays.ENDINGS:
        return kind_of_array(path, ending)
    if "idx3" in ending or "idx3" in Path(path).name:
        return "pictures"
    if ending in PROSE or ending in image_sets.SEEN:
        return "text"
    return "table" if ending in SQLITE else kind_of_table(path)


def kind_of_array(path: str, ending: str) -> Kind:
    """Guess by the number of axes."""
    from twofold.io.tables.arrays import check_npz

    try:
        if ending == ".npz":
            shapes = check_npz(path)
            return "pictures" if any(len(shape) == 3 for shape in shapes.values()) else "table"
        shape = np.load(path, mmap_mode="r", allow_pickle=False).shape if ending == ".npy" else (0, 0)
    except (ValueError, OSError, EOFError, KeyError):
        return "table"  # its reader says what is wrong
    kinds: dict[int, Kind] = {1: "signal", 3: "pictures"}
    return kinds.get(len(shape), "table")


def kind_of_table(path: str) -> Kind:
    """Guess by the columns: users and items are ratings, long texts are texts, all else is a table."""
    import polars as pl

    from twofold.io.ratings import find_named_roles

    piece = read_one(path)
    if not isinstance(piece, Piece):
        return "table"
    roles = find_named_roles(piece.frame.columns)
    if roles["user"] is not None and roles["item"] is not None:
        return "ratings"
    for column in piece.frame.iter_columns():
        if column.dtype == pl.String:
            lengths = column.head(1000).str.len_chars().drop_nulls().to_numpy()
            if len(lengths) and lengths.mean() > MIN_PROSE_LETTERS:
                return "text"
    return "table"
