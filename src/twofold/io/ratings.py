"""Files of ratings as users have them: who rated what, one row each, with the place of every fault.

Which column holds users, items and ratings is told by its name, else by its position, and said aloud.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import scipy.sparse as sp

from twofold.completion.recommender._ratings_table import which
from twofold.core.checks import InputError
from twofold.io.tables import arrays
from twofold.io.tables.columns import BLANKS, cells, to_numbers
from twofold.io.tables.delimited import find_delimiter, is_number, read_delimited
from twofold.io.tables.read import ELSEWHERE, SQLITE, find_files, kind, read_one, unzipped
from twofold.io.tables.table import Piece, Table, place, quoted, remedy, stack, whole

OTHERS = (*SQLITE, *ELSEWHERE, *arrays.ENDINGS, ".parquet", ".pq", ".jsonl", ".ndjson")
ROLES = ("user", "item", "rating")


@dataclass
class Ratings:
    """Rows of user, item and rating; `frame` has these columns alone, the last only if there are ratings."""

    frame: pl.DataFrame
    columns: dict[str, str | None]  # role → name in the frame
    source: str
    notes: list[str] = field(default_factory=list)


def read_ratings(inputs: Sequence[str], given: dict[str, str | None], na: Sequence[str]) -> Ratings:
    """Ratings from one file or several; `given` names columns that need not be guessed."""
    files = [file for one in inputs for file in find_files(one)]
    source = inputs[0] if len(inputs) == 1 else f"{inputs[0]} and {len(inputs) - 1} more"
    source = "standard input" if source == "-" else source
    pieces = [read_piece(file) for file in files]
    frame = stack(pieces)
    notes = [note for piece in pieces for note in piece.notes]
    if len(files) > 1:
        notes.insert(0, f"{len(files)} files read as one")
    if frame.width < 2:
        raise InputError(
            f'{source} has one column, "{frame.columns[0]}". Give a user, an item and a rating a row, with commas, '
            "semicolons, tabs or bars between them."
        )
    columns = chosen(frame, given, source, notes)
    frame = checked(frame, columns, pieces, BLANKS | {one.strip().lower() for one in na}, notes)
    if frame.height == 0:
        raise InputError(f'{source} has no rating in column "{columns["rating"]}": every one is blank.')
    return Ratings(frame, columns, source, notes)


def read_piece(file: str) -> Piece:
    """The columns of one file; a first line that is no header is taken for the rating it is."""
    path = file.partition("::")[0]
    if path != "-" and kind(path) in OTHERS:
        part = read_one(file, (), (), alone=False)
        return part if isinstance(part, Piece) else from_table(part)
    name = "standard input" if path == "-" else path
    data = unzipped(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes(), name)
    if b"::" in data[: max(data.find(b"\n"), 0)]:  # MovieLens' own delimiter
        data = data.replace(b"::", b"\t")
    piece = read_delimited(data, name)
    if not any(is_number(column) for column in piece.frame.columns):
        return piece
    _, delimiter = find_delimiter(data)
    names = [f"column_{i + 1}" for i in range(piece.frame.width)]
    piece = read_delimited(delimiter.join(names).encode() + b"\n" + data, name)
    piece.notes.append(f"{name} has no header: columns are called column_1 to column_{len(names)}")
    piece.lines = None if piece.lines is None else piece.lines - 1
    return piece


def from_table(table: Table) -> Piece:
    """A sparse array: its stored cells are the ratings, rows and columns counted from 1."""
    X = table.array()
    if not sp.issparse(X):
        names = {role: X[:, j] for j, role in enumerate(table.columns)}
        return Piece(pl.DataFrame(names), table.source, notes=table.notes)
    at = sp.coo_array(X)
    frame = pl.DataFrame({"user": at.coords[0] + 1, "item": at.coords[1] + 1, "rating": at.data})
    return Piece(frame, table.source, notes=[*table.notes, "rows are users and columns items, counted from 1"])


def chosen(frame: pl.DataFrame, given: dict[str, str | None], source: str, notes: list[str]) -> dict[str, str | None]:
    """Which column is which, and a note that says so."""
    for role, name in given.items():
        if name is not None and name not in frame.columns:
            raise InputError(f"--{role}-column {name}: {source} has no such column, only {quoted(frame.columns)}.")
    columns = which(frame.columns, dict(given))
    said = [f'{role}s in "{columns[role]}"' for role in ROLES if columns[role] is not None]
    unused = [name for name in frame.columns if name not in columns.values()]
    notes.append(f"{', '.join(said)}{f'; {quoted(unused)} not used' if unused else ''}")
    if columns["rating"] is None:
        notes.append("there are no ratings: each row says that a user has had to do with an item")
    return columns


def checked(
    frame: pl.DataFrame, columns: dict[str, str | None], pieces: list[Piece], blanks: frozenset[str], notes: list[str]
) -> pl.DataFrame:
    """Users and items as they are written, ratings as numbers; rows without a rating are left out."""
    out = []
    for role in ("user", "item"):
        column = frame[str(columns[role])]
        bare = column.str.strip_chars() if column.dtype == pl.String else column
        gone = (bare.is_null() | (bare == "")) if column.dtype == pl.String else bare.is_null()
        if gone.any():
            where = f'{place(int(gone.arg_max() or 0), pieces)}, column "{column.name}"'
            raise InputError(f"{where}: the {role} is blank. Fill it in, or remove the row.")
        out.append(whole(column))
    if columns["rating"] is None:
        return pl.DataFrame(out)
    values = as_numbers(frame[columns["rating"]], blanks, pieces)
    known = ~np.isnan(values)
    if not known.all():
        count = int((~known).sum())
        notes.append(f"{count:,} row{'s' if count > 1 else ''} without a rating left out")
    return pl.DataFrame([*out, pl.Series(columns["rating"], values)]).filter(pl.Series(known))


def as_numbers(column: pl.Series, blanks: frozenset[str], pieces: list[Piece]) -> np.ndarray:
    """The ratings, NaN where blank; the first that is no number is refused with its place."""
    comma = any(piece.decimal_comma for piece in pieces)
    values, found = to_numbers(column, blanks, comma)
    if found in ("text", "date", "mixed"):
        text = cells(column, blanks) if column.dtype == pl.String else column.cast(pl.String)
        number = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        row = int((text.is_not_null() & number.is_null()).arg_max() or 0)
        where = f'{place(row, pieces)}, column "{column.name}"'
        how = remedy(str(text[row]), column.name).split(", or")[0]
        raise InputError(
            f'{where}: "{text[row]}" is not a number. {how}, or name the column of ratings with --rating-column.'
        )
    if found == "blank":
        return np.full(len(column), np.nan)
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise InputError(
            f'{place(row, pieces)}, column "{column.name}": a rating is finite. Correct or remove the row.'
        )
    return values


def read_names(file: str, items: np.ndarray) -> dict[object, str]:
    """What items are called: the first column that holds their ids, then the first other one that is text."""
    if len(find_files(file)) > 1:
        raise InputError(f"--names {file} means several files. Name one.")
    piece = read_piece(file)
    frame = piece.frame
    head = [*frame.columns]
    ids = {str(item): item for item in items.tolist()}
    best = max(frame.columns[:5], key=lambda c: frame[c].cast(pl.String).is_in(list(ids)).sum())
    texts = [
        c
        for c in frame.columns
        if c != best and frame[c].dtype == pl.String and to_numbers(frame[c], BLANKS, False)[1] == "text"
    ]
    if not texts or not frame[best].cast(pl.String).is_in(list(ids)).any():
        raise InputError(
            f"--names {file}: no column of it holds the ids of the items beside their names. It has {quoted(head)}."
        )
    named = next((c for c in texts if c.strip().lower() in ("title", "name", "label")), texts[0])
    pairs = zip(frame[best].cast(pl.String).to_list(), frame[named].to_list(), strict=True)
    return {ids[key]: name for key, name in pairs if key in ids and name}
