"""Ratings as users have them: who rated what and how, one row each.

    file, folder, frame, array, tuple of columns, list of rows  →  users, items, ratings, in the order of the rows

Which column holds users, items and ratings is told by its name, else by its position, and said in the notes. A table
with a row for each user and a column for each item is recognized and read as that. A row without a rating is left out;
ratings of 0 and 1 alone are no stars but say no and yes: the ones are kept, and apart from them who said no to what.
A fault is refused with its place.
"""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from twofold.core.checks import InputError, check_sparse
from twofold.io._rating_matrix import NUMBERED, find_matrix, rises
from twofold.io.open import read_bytes
from twofold.io.tables import arrays
from twofold.io.tables.columns import BLANKS, cells, to_numbers
from twofold.io.tables.delimited import find_delimiter, is_number, read_delimited
from twofold.io.tables.read import ELSEWHERE, EXCEL, JSONL, PARQUET, SQLITE, find_files, kind, read_one
from twofold.io.tables.table import Piece, Table, blanks_of, check_names, place, quote_names, remedy, stack, whole

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
FILLED = 0.9  # share of all pairs from which on a rating of 0 fills a gap and is no answer
OTHERS = (*SQLITE, *ELSEWHERE, *EXCEL, *PARQUET, *JSONL, *arrays.ENDINGS)
ONE_ROW = "A table with one row a person is for twofold cluster, reduce or complete."
MIN_SINGLE_ROWS = 3  # from which one row a user is a table of something else
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
    refused: tuple[pl.Series, pl.Series] | None = None  # users and items of ratings that say no
    matrix: bool = False  # the table had a row for each user and a column for each item
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
        two or three columns; (users, items, ratings); rows of (user, item, rating) or (user, item); or, in any of
        these but the last two, a matrix of ratings with a row for each user and a column for each item.
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
    given = {"user": user, "item": item, "rating": rating}
    blanks = blanks_of(missing)
    found = (
        None if any(given.values()) else find_matrix(frame, find_named_roles(frame.columns), blanks, comma_in(pieces))
    )
    if found is not None:
        own = feedback(Ratings(found.user, found.item, found.rating, {role: role for role in ROLES}, matrix=True))
        return replace(own, source=name, notes=[*notes, *found.notes, *own.notes])
    roles = find_roles(frame.columns, given, name)
    check_ids(frame, roles, given, name)
    roles["time"] = find_time(frame, roles)
    notes += describe_columns(frame.columns, roles)
    held = {role: frame[column] for role, column in roles.items() if column is not None and role != "rating"}
    held |= {role: ids_of(held[role], role, pieces) for role in ("user", "item")}
    values, left_out = None, []
    column = roles["rating"]
    if column is not None:
        values = as_numbers(frame[column], blanks, pieces)
        known = ~np.isnan(values)
        if not known.any():
            raise InputError(f'{name} has no rating in column "{column}": every one is blank.')
        if not known.all():
            count = int((~known).sum())
            left_out = [f"{count:,} row{'s' if count > 1 else ''} without a rating left out"]
            values, held = values[known], {role: series.filter(known) for role, series in held.items()}
    columns = {role: roles[role] for role in ROLES}
    counts = column is not None and bare(column) in NAMES["count"]
    own = Ratings(held["user"], held["item"], values, columns, counts, held.get("time"), held.get("name"))
    own = feedback(own)
    return replace(own, source=name, notes=[*notes, *left_out, *own.notes], left_out=left_out)


def feedback(own: Ratings) -> Ratings:
    """Ratings of 0 and 1 say no and yes: the ones are kept, without a rating. All other ratings as they are."""
    if own.rating is None or own.counts or not np.isin(own.rating, (0.0, 1.0)).all() or own.rating.all():
        return own
    yes = own.rating == 1
    if not yes.any():
        return own
    kept: dict[str, Any] = {part: getattr(own, part) for part in ("user", "item", "time", "names")}
    kept = {part: None if one is None else one.filter(yes) for part, one in kept.items()}
    note = f"ratings are 0 and 1, which is feedback and no scale: the {int(yes.sum()):,} ones are used"
    fills = own.matrix or len(own.rating) > FILLED * own.user.n_unique() * own.item.n_unique()
    refused = None if fills else (own.user.filter(~yes), own.item.filter(~yes))
    note += ", the 0s left out" if fills else "; what was answered with 0 is not recommended"
    return replace(own, **kept, refused=refused, rating=None, columns=own.columns | {"rating": None}, notes=[note])


def check_repeats(own: Ratings) -> Ratings:
    """Refuse ratings of which every user has one: nothing tells what the same people like."""
    if len(own.user) >= MIN_SINGLE_ROWS and own.user.n_unique() == len(own.user) and not own.matrix:
        column = own.columns["user"]
        raise InputError(
            f'{own.source}: every user in "{column}" has one row, so nothing tells which items go together. {ONE_ROW} '
            "⟨user_column⟩ and ⟨item_column⟩ name other columns."
        )
    return own


# --- which column is which ----------------------------------------------------------------------------------


def find_roles(names: list[str], given: dict[str, str | None], source: str = MEMORY) -> dict[str, str | None]:
    """The columns of user, item, rating, time and the items' names: as given, else by name, else by position."""
    for role, name in given.items():
        if name is not None and name not in names:
            raise InputError(f"{role}={name!r} is no column of {source}; there are {quote_names(names)}.")
    out = find_named_roles(names, given)
    for role in ROLES:
        left = [name for name in names if name not in out.values()]
        if role == "rating":
            left = [name for name in left if not any(word in name.lower() for word in BESIDE)]
        if out[role] is None and left:
            out[role] = left[0]
    if len({out["user"], out["item"]}) < 2 or out["item"] is None:
        raise InputError(f"{source} has columns {quote_names(names)}; a user and an item are needed.")
    left = [name for name in names if name not in out.values()]
    for role in ("time", "name"):
        out[role] = next((name for name in left if bare(name) in NAMES[role]), None)
    return out


def find_time(frame: pl.DataFrame, roles: dict[str, str | None]) -> str | None:
    """The column of times: the one that is called so, else the only other one whose numbers are seconds since 1970."""
    left = [name for name in frame.columns if name not in roles.values()]
    if roles["time"] is not None or not left or NUMBERED.fullmatch(left[0]) is None:
        return roles["time"]
    values, kind, _ = to_numbers(frame[left[0]].head(1000), BLANKS, False)[:3]
    return left[0] if kind == "number" and bool(((values > 1e8) & (values < 1e13)).all()) else None


def find_named_roles(names: list[str], given: dict[str, str | None] | None = None) -> dict[str, str | None]:
    """The columns of user, item and rating that are given, or called so."""
    out: dict[str, str | None] = dict.fromkeys(ROLES) | (given or {})
    for role in ROLES:
        left = [name for name in names if name not in out.values()]
        if out[role] is None:
            wanted = NAMES[role] + (NAMES["count"] if role == "rating" else ())
            named = [name for name in left if bare(name) in wanted]
            out[role] = min(named, key=lambda name: wanted.index(bare(name)), default=None)
    return out


def check_ids(frame: pl.DataFrame, roles: dict[str, str | None], given: dict[str, str | None], source: str) -> None:
    """Refuse columns taken for users or items by their position alone that hold what no id is: a fraction."""
    named = find_named_roles(frame.columns, given)
    for role in ("user", "item"):
        column = roles[role]
        if column is None or column in named.values():
            continue
        values, kind, _ = to_numbers(frame[column].head(1000), BLANKS, False)[:3]
        odd = values[values != np.round(values)] if kind == "number" else values[:0]
        odd = odd[~np.isnan(odd)]
        if len(odd):
            raise InputError(
                f'{source}: column "{column}" would be the {role}s, but holds fractions such as {odd[0]:g}, and its '
                f"{frame.width} columns are no matrix of ratings on one scale. Give rows of user, item and rating, and "
                f"name these columns with ⟨user_column⟩, ⟨item_column⟩ and ⟨rating_column⟩. {ONE_ROW}"
            )


def bare(name: str) -> str:
    """The letters and digits of a name."""
    return "".join(c for c in name.lower() if c.isalnum())


def describe_columns(names: list[str], columns: dict[str, str | None]) -> list[str]:
    """Name the role of each column, in words."""
    roles = [role for role in (*ROLES, "name") if columns.get(role) is not None]
    used = [columns[role] for role in roles]
    parts = [f'{role}s in "{columns[role]}"' for role in roles]
    unused = [name for name in names if name not in used]
    out = [f"{', '.join(parts)}{f'; {quote_names(unused)} not used' if unused else ''}"]
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
    return parse_piece(read_bytes(file), "standard input" if file == "-" else file)


def parse_piece(data: bytes, name: str) -> Piece:
    """The columns of a delimited text."""
    if b"::" in data[: max(data.find(b"\n"), 0)]:  # MovieLens' own delimiter
        data = data.replace(b"::", b"\t")
    piece = read_delimited(data, name)
    heads = piece.frame.columns
    if not any(map(is_number, heads)) or (len(heads) > 4 and not is_number(heads[0]) and rises(heads[1:])):
        return piece  # numbers in steps of one are the items of a matrix
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
    return Piece(from_cells(X), table.source, notes=[*table.notes, "rows are users and columns items, counted from 1"])


def from_cells(X: Any) -> pl.DataFrame:
    """The stored cells of a sparse array; rows and columns counted from 1."""
    check_sparse(X, MEMORY)
    at = sp.coo_array(X)
    return pl.DataFrame({"user": at.coords[0] + 1, "item": at.coords[1] + 1, "rating": at.data})


def from_memory(source: Any) -> pl.DataFrame:
    """Frames, arrays, columns and rows as a polars frame."""
    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if hasattr(source, "columns") and hasattr(source, "itertuples"):  # pandas, which need not be installed
        if bare(str(source.index.name)) in NAMES["user"]:  # as a pivot has it
            source = source.reset_index()
        return pl.DataFrame([from_pandas(source[name], str(name)) for name in source.columns])
    if sp.issparse(source):
        return from_cells(source)
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.shape[1] >= 2:
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
    names = ROLES if len(columns) <= len(ROLES) else [f"column_{i + 1}" for i in range(len(columns))]
    return pl.DataFrame([as_series(c, name) for c, name in zip(columns, names, strict=False)])


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


def comma_in(pieces: list[Piece]) -> bool:
    """Decide whether 1,234 rather means 1.234."""
    return pieces[0].name == MEMORY or any(piece.decimal_comma for piece in pieces)


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
    values, found, _ = to_numbers(column, blanks, comma_in(pieces))[:3]
    if found in ("text", "date", "mixed"):
        text = cells(column, blanks)
        number = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        row = int((text.is_not_null() & number.is_null()).arg_max() or 0)
        how = remedy(str(text[row]), column.name).split(", or")[0]
        raise InputError(
            f'{where(row, column.name, pieces)}: "{text[row]}" is not a number. {how}, or name the column of ratings '
            "with ⟨rating_column⟩."
        )
    if found == "blank":
        return np.full(len(column), np.nan)
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        at = where(row, column.name, pieces)
        raise InputError(f"{at}: {column[row]} is no rating, which is a finite number. Correct or remove the row.")
    return values


# --- what items are called ----------------------------------------------------------------------------------


def read_names(
    file: str, items: np.ndarray, id_column: str | None = None, name_column: str | None = None
) -> tuple[dict[Any, str], str]:
    """Return the titles of items by id, from a table that lists them, and the columns that were used.

    `items` are those of the ratings; others in the table are named, too. Ids are in the column that tells its rows
    apart and, of several, holds most of the items; one that repeats itself, such as a number of episodes, is taken only
    where no other holds an item and each of its values has one name. Names are in a column of text that is called so,
    else in the first whose cells mostly differ.
    """
    if len(find_files(file)) > 1:
        raise InputError(f"⟨names={file}⟩ means several files. Name one.")
    frame = read_piece(file).frame
    given = {"names_id": id_column, "names_column": name_column}
    for option, name in given.items():
        check_names(option, [name] if name is not None else [], frame.columns, file)
    known = {str(item): item for item in items.tolist()}
    ids = id_column or find_id_column(frame, known, name_column)
    named = name_column or find_name_column(frame, ids)
    keys = as_keys(frame[ids]) if ids else pl.Series(dtype=pl.String)
    if ids is None or named is None or not keys.is_in(list(known)).any():
        found = "holds the ids of the items" if ids is None or named else f'beside "{ids}" holds text'
        what = f'column "{id_column}" holds no id of an item' if id_column else f"no column {found}"
        raise InputError(
            f"⟨names={file}⟩: {what}. It has {quote_names(frame.columns)}, and items are called "
            f"{quote_names(list(known)[:3])}. Name the columns with ⟨names_id⟩ and ⟨names_column⟩."
        )
    pairs = zip(keys.to_list(), frame[named].cast(pl.String).to_list(), strict=True)
    texts = {key: html.unescape(name.strip()) for key, name in pairs if key and name}
    names = {item: texts[key] for key, item in known.items() if key in texts}
    note = f'names of {len(names):,} of {len(known):,} items from {file}: ids in "{ids}", names in "{named}"'
    number = items.dtype.kind in "iu"  # names of items that nobody has rated serve where features bring them in
    more = {int(key) if number else key: name for key, name in texts.items() if not number or key.lstrip("-").isdigit()}
    return more | names, note


def as_keys(column: pl.Series) -> pl.Series:
    """Ids as text; whole numbers without a decimal point."""
    if column.dtype.is_float() and bool((column.drop_nulls() == column.drop_nulls().round()).all()):
        column = column.cast(pl.Int64)
    return column.cast(pl.String, strict=False).str.strip_chars()


def find_id_column(frame: pl.DataFrame, known: dict[str, Any], name_column: str | None) -> str | None:
    """The column of a list of items that holds their ids."""
    held: dict[str, tuple[bool, int, bool]] = {}
    for name in frame.columns:
        keys = as_keys(frame[name]) if not frame[name].dtype.is_nested() else pl.Series(dtype=pl.String)
        count = int(keys.unique().is_in(list(known)).sum())
        if count and name != name_column:
            held[name] = (keys.drop_nulls().is_unique().all(), count, bare(name) in NAMES["item"] or is_id_name(name))
    best = max(held, key=lambda name: held[name], default=None)
    if best is None or held[best][0]:
        return best
    named = name_column or find_name_column(frame, best)
    names = frame.group_by(best).agg(pl.col(named).n_unique().alias("names")) if named else None
    return best if names is not None and bool((names["names"] == 1).all()) else None


def is_id_name(name: str) -> bool:
    return bare(name).endswith(("id", "ids"))


def find_name_column(frame: pl.DataFrame, ids: str | None) -> str | None:
    """The column of text that says what things are called."""
    texts = [
        name
        for name in frame.columns
        if name != ids and frame[name].dtype == pl.String and to_numbers(frame[name], BLANKS, False)[1] == "text"
    ]
    named = [name for name in texts if bare(name) in (*NAMES["name"], "label")]
    various = [name for name in texts if 2 * frame[name].n_unique() > len(frame)]
    return next(iter([*named, *various, *texts]), None)
