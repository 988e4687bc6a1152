"""Ratings as users have them: who rated what and how, one row each.

    file, folder, frame, array, tuple of columns, list of rows  →  users, items, ratings, in the order of the rows

Which column holds users, items and ratings is told by its name, else by its position, and said in the notes. A row
without a rating is left out; a fault is refused with its place.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from twofold.core.checks import InputError
from twofold.io.open import read_bytes
from twofold.io.tables import arrays
from twofold.io.tables.columns import BLANKS, cells, to_numbers
from twofold.io.tables.delimited import find_delimiter, is_number, read_delimited
from twofold.io.tables.read import ELSEWHERE, EXCEL, JSONL, PARQUET, SQLITE, find_files, kind, read_one
from twofold.io.tables.table import Piece, Table, blanks_of, place, quoted, remedy, stack, whole

NAMES = {
    "user": ("user", "userid", "uid", "username", "userno", "customer", "customerid", "reviewer", "reviewerid", "rater",
             "person", "member", "memberid", "visitor", "visitorid", "account", "accountid", "reader", "listener",
             "client", "clientid"),
    "item": ("item", "itemid", "iid", "movie", "movieid", "film", "filmid", "title", "product", "productid", "asin",
             "isbn", "book", "bookid", "song", "songid", "track", "trackid", "artist", "artistid", "anime", "animeid",
             "joke", "jokeid", "article", "articleid", "game", "gameid", "business", "businessid",
             "recipe", "recipeid", "sku"),
    "rating": ("rating", "ratings", "score", "scores", "stars", "star", "value", "bookrating", "overall", "grade",
               "vote", "preference"),
    "count": ("count", "counts", "plays", "playcount", "clicks", "views", "listens", "quantity", "purchases", "times",
              "weight", "events"),
    "time": ("timestamp", "time", "date", "datetime", "ratedat", "created", "createdat", "ratingtimestamp"),
    "name": ("title", "name", "itemname", "movietitle", "filmtitle", "booktitle", "producttitle", "productname"),
}  # fmt: skip
BESIDE = ("time", "date", "stamp", "year", "name", "title", "genre", "categor", "text", "comment")  # no ratings
ROLES = ("user", "item", "rating")
OTHERS = (*SQLITE, *ELSEWHERE, *EXCEL, *PARQUET, *JSONL, *arrays.ENDINGS)
MEMORY = "the ratings"  # what messages call ratings that are in no file


@dataclass(frozen=True)
class Ratings:
    """Rows of user, item and rating; which columns they stood in; and what was decided in reading them."""

    user: pl.Series
    item: pl.Series
    rating: np.ndarray | None  # None where the rows only say that something happened
    columns: dict[str, str | None]  # role → column
    counts: bool = False  # the ratings are called something like "plays"
    time: pl.Series | None = None
    names: pl.Series | None = None  # what the item of each row is called, if a column says so
    source: str = MEMORY
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # those of the notes that say what is not used

    @property
    def frame(self) -> pl.DataFrame:
        """Users, items and, if there are any, ratings, under the names they came with."""
        rating = [] if self.rating is None else [pl.Series(str(self.columns["rating"]), self.rating)]
        return pl.DataFrame([self.user, self.item, *rating])


def read_ratings(
    source: Any,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    missing: Sequence[Any] = (),
) -> Ratings:
    """Ratings from whatever holds them.

    Parameters
    ----------
    source : path, list of paths, frame, array, tuple of columns, or list of rows
        Files as `twofold.io.tables` reads them, ``-`` for standard input; a frame of pandas or polars; an array of
        two or three columns; (users, items, ratings); or rows of (user, item, rating) or (user, item).
    user, item, rating : str, optional
        Columns that need not be found out.
    missing : sequence
        Further texts or numbers that mean: no rating.

    Examples
    --------
    >>> found = read_ratings([("ann", "x", 5), ("bob", "x", None)])
    >>> found.user.to_list(), found.rating.tolist(), found.left_out
    (['ann'], [5.0], ['1 row without a rating left out'])
    """
    if isinstance(source, Ratings):
        return source
    pieces, name = read_pieces(source)
    frame = stack(pieces)
    notes = [note for piece in pieces for note in piece.notes]
    if len(pieces) > 1:
        notes.insert(0, f"{len(pieces)} files read as one")
    if frame.width < 2 or frame.height == 0:
        shape = f'one column, "{frame.columns[0]}"' if frame.width == 1 else f"{frame.width} columns"
        raise InputError(
            f"{name}: {frame.height:,} rows and {shape}. Give a user, an item and, unless the data is implicit, a "
            "rating a row; in a file with commas, semicolons, tabs or bars between them."
        )
    roles = find_roles(frame.columns, {"user": user, "item": item, "rating": rating}, name)
    notes += said(frame.columns, roles)
    held = {role: frame[column] for role, column in roles.items() if column is not None and role != "rating"}
    held |= {role: ids_of(held[role], role, pieces) for role in ("user", "item")}
    values, left_out = None, []
    found = roles["rating"]
    if found is not None:
        values = as_numbers(frame[found], blanks_of(missing), pieces)
        known = ~np.isnan(values)
        if not known.any():
            raise InputError(f'{name} has no rating in column "{found}": every one is blank.')
        if not known.all():
            count = int((~known).sum())
            left_out = [f"{count:,} row{'s' if count > 1 else ''} without a rating left out"]
            values, held = values[known], {role: column.filter(known) for role, column in held.items()}
    columns = {role: roles[role] for role in ROLES}
    counts = found is not None and bare(found) in NAMES["count"]
    own = Ratings(held["user"], held["item"], values, columns, counts, held.get("time"), held.get("name"))
    return replace(own, source=name, notes=notes + left_out, left_out=left_out)


# --- which column is which ----------------------------------------------------------------------------------


def find_roles(names: list[str], given: dict[str, str | None], source: str = MEMORY) -> dict[str, str | None]:
    """The columns of user, item, rating, time and the items' names: as given, else by name, else by position."""
    out: dict[str, str | None] = {}
    for role, name in given.items():
        if name is not None and name not in names:
            raise InputError(f"{role}={name!r} is no column of {source}; there are {quoted(names)}.")
        out[role] = name
    for role in ROLES:
        left = [name for name in names if name not in out.values()]
        if out[role] is None:
            wanted = NAMES[role] + (NAMES["count"] if role == "rating" else ())
            named = [name for name in left if bare(name) in wanted]
            out[role] = min(named, key=lambda name: wanted.index(bare(name)), default=None)
    for role in ROLES:
        left = [name for name in names if name not in out.values()]
        if role == "rating":
            left = [name for name in left if not any(word in name.lower() for word in BESIDE)]
        if out[role] is None and left:
            out[role] = left[0]
    if len({out["user"], out["item"]}) < 2 or out["item"] is None:
        raise InputError(f"{source} has columns {quoted(names)}; a user and an item are needed.")
    left = [name for name in names if name not in out.values()]
    for role in ("time", "name"):
        out[role] = next((name for name in left if bare(name) in NAMES[role]), None)
    return out


def bare(name: str) -> str:
    """The letters and digits of a name."""
    return "".join(c for c in name.lower() if c.isalnum())


def said(names: list[str], columns: dict[str, str | None]) -> list[str]:
    """Which column is which, in words."""
    used = [columns[role] for role in ROLES]
    parts = [f'{role}s in "{columns[role]}"' for role in ROLES if columns[role] is not None]
    unused = [name for name in names if name not in used]
    out = [f"{', '.join(parts)}{f'; {quoted(unused)} not used' if unused else ''}"]
    if columns["rating"] is None:
        out.append("there are no ratings: each row says that a user has had to do with an item")
    return out


# --- reading ------------------------------------------------------------------------------------------------


def read_pieces(source: Any) -> tuple[list[Piece], str]:
    """The columns of each file, or of what is in memory; and what messages call it all."""
    if isinstance(source, (str, os.PathLike)):
        source = [os.fspath(source)]
    if isinstance(source, (list, tuple)) and source and all(isinstance(one, (str, os.PathLike)) for one in source):
        inputs = [os.fspath(one) for one in source]
        name = inputs[0] if len(inputs) == 1 else f"{inputs[0]} and {len(inputs) - 1} more"
        files = [file for one in inputs for file in find_files(one)]
        return [read_piece(file) for file in files], "standard input" if name == "-" else name
    return [Piece(from_memory(source), MEMORY)], MEMORY


def read_piece(file: str) -> Piece:
    """The columns of one file; a first line that is no header is taken for the rating it is."""
    if file != "-" and kind(file) in OTHERS:
        part = read_one(file)
        return part if isinstance(part, Piece) else from_table(part)
    name = "standard input" if file == "-" else file
    data = read_bytes(file)
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


def from_memory(source: Any) -> pl.DataFrame:
    """Frames, arrays, columns and rows as a polars frame."""
    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if hasattr(source, "columns") and hasattr(source, "itertuples"):  # pandas, which need not be installed
        return pl.DataFrame([from_pandas(source[name], str(name)) for name in source.columns])
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.shape[1] in (2, 3):
        return with_names(list(source.T))
    if isinstance(source, tuple) and len(source) in (2, 3) and all(np.ndim(a) == 1 for a in source):
        lengths = [len(a) for a in source]
        if len(set(lengths)) > 1:
            raise InputError(f"users, items and ratings have lengths {lengths}; they must be equally long.")
        return with_names(list(source))
    rows = list(source) if isinstance(source, (list, set, frozenset)) or hasattr(source, "__next__") else None
    if rows is None:
        raise InputError(
            f"ratings is a {type(source).__name__}. Give a frame, the path of a CSV or Parquet file, (users, items, "
            "ratings), or a list of (user, item, rating)."
        )
    for i, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != len(rows[0]) or len(row) not in (2, 3):
            raise InputError(
                f"row {i} of the ratings is {row!r}; (user, item, rating) or (user, item) is needed in all."
            )
    return with_names([list(column) for column in zip(*rows, strict=True)] if rows else [[], []])


def with_names(columns: list[Any]) -> pl.DataFrame:
    return pl.DataFrame([as_series(c, name) for c, name in zip(columns, ROLES, strict=False)])


def as_series(values: Any, name: str) -> pl.Series:
    """A column of one type; values of several types become their text."""
    if isinstance(values, pl.Series):
        return values.rename(name)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
        return pl.Series(name, values)
    items = list(values)
    kinds = {type(v) for v in items if v is not None}
    numeric = all(issubclass(kind, (int, float, np.number)) and kind is not bool for kind in kinds)
    if len(kinds) > 1 and not numeric:
        items = [None if v is None or (isinstance(v, float) and v != v) else str(v) for v in items]
    try:
        return pl.Series(name, items, strict=False)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):  # whole numbers beyond 128 bits
        return pl.Series(name, [None if v is None else str(v) for v in items], dtype=pl.String)


def from_pandas(column: Any, name: str) -> pl.Series:
    values = column.to_numpy()
    if values.dtype.kind in "iufb":
        return pl.Series(name, values)
    return as_series([None if gone else v for v, gone in zip(column.tolist(), column.isna(), strict=True)], name)


# --- checking -----------------------------------------------------------------------------------------------


def where(row: int, column: str, pieces: list[Piece]) -> str:
    """File, line and column of a cell; rows in memory are counted from 0."""
    at = f"row {row} of the ratings" if pieces[0].name == MEMORY else place(row, pieces)
    return f'{at}, column "{column}"'


def ids_of(column: pl.Series, role: str, pieces: list[Piece]) -> pl.Series:
    """Users or items as they are written, whole numbers in files as numbers; blank ones are refused."""
    gone = column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()
    if column.dtype == pl.String and pieces[0].name != MEMORY:
        column = column.str.strip_chars()
        gone, column = gone | (column == ""), whole(column)
    if gone.any():
        at = where(int(gone.arg_max() or 0), column.name, pieces)
        raise InputError(f"{at}: the {role} is blank. Fill it in, or remove the row.")
    return column


def as_numbers(column: pl.Series, blanks: frozenset[str], pieces: list[Piece]) -> np.ndarray:
    """The ratings, NaN where blank; the first that is no finite number is refused with its place."""
    if column.dtype != pl.String and not column.dtype.is_numeric():
        column = column.cast(pl.String)
    comma = pieces[0].name == MEMORY or any(piece.decimal_comma for piece in pieces)
    values, found, _ = to_numbers(column, blanks, comma)
    if found in ("text", "date", "mixed"):
        text = cells(column, blanks)
        number = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        row = int((text.is_not_null() & number.is_null()).arg_max() or 0)
        how = remedy(str(text[row]), column.name).split(", or")[0]
        raise InputError(
            f'{where(row, column.name, pieces)}: "{text[row]}" is not a number. {how}, or name the column of ratings '
            "with rating= (--rating-column)."
        )
    if found == "blank":
        return np.full(len(column), np.nan)
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        at = where(row, column.name, pieces)
        raise InputError(f"{at}: {column[row]} is no rating, which is a finite number. Correct or remove the row.")
    return values


def read_names(file: str, items: np.ndarray) -> dict[object, str]:
    """What items are called: the first column that holds their ids, then the first other one that is text."""
    if len(find_files(file)) > 1:
        raise InputError(f"--names {file} means several files. Name one.")
    frame = read_piece(file).frame
    ids = {str(item): item for item in items.tolist()}
    best = max(frame.columns[:5], key=lambda c: frame[c].cast(pl.String).is_in(list(ids)).sum())
    texts = [
        c
        for c in frame.columns
        if c != best and frame[c].dtype == pl.String and to_numbers(frame[c], BLANKS, False)[1] == "text"
    ]
    if not texts or not frame[best].cast(pl.String).is_in(list(ids)).any():
        raise InputError(
            f"--names {file}: no column of it holds the ids of the items beside their names. It has "
            f"{quoted(frame.columns)}."
        )
    named = next((c for c in texts if bare(c) in ("title", "name", "label")), texts[0])
    pairs = zip(frame[best].cast(pl.String).to_list(), frame[named].to_list(), strict=True)
    return {ids[key]: name for key, name in pairs if key in ids and name}
