"""Ratings beyond one memory: cut into shards of about equally many cells, along the rows and along the columns.

    map      each file is read where its task runs: ids, their numbers within the file, values        parts/
    ids      the ids of all files, merged along a tree and sorted: row i is the i-th user             users, items
    bucket   the cells of each part, sorted by the shard they belong to, once for each side           buckets/
    reduce   the cells of one shard from all buckets: one CSR block, with what it needs of the other  rows/ cols/

The rows of a shard lie together. A row with too many cells is a shard of its own, whose cells are cut along the other
side: its normal equations are summed. Where cuts fall depends on the numbers of cells alone.

    held     with `holdout`, cells that a hash of row and column sets apart when blocks are written: of some users if
             they would be too many. No fit sees them.
    need     (m,) the factor rows of the other side that a unit's cells ask for, ascending. Column numbers of its cells
             are places in `need`, so that what arrives is put one below the other and used as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from twofold.completion.partitioned._files import DAMAGED, missing_message, read_arrays, read_run, write_arrays
from twofold.completion.recommender._ids import as_array, plain
from twofold.completion.recommender._ratings_table import merged
from twofold.core.checks import InputError, reason_of
from twofold.core.config import config
from twofold.core.data.blocks import is_dask, is_path
from twofold.core.data.known_cells import stored
from twofold.core.engine.tasks import Tasks, find_tasks
from twofold.core.files.atomic import replacing, write_text
from twofold.core.types import PathLike
from twofold.io.open import ENDINGS
from twofold.io.ratings import (
    NAMES,
    OTHERS,
    ROLES,
    as_numbers,
    bare,
    find_roles,
    from_memory,
    ids_of,
    named_roles,
    parse_piece,
    read_piece,
)
from twofold.io.tables.read import PARQUET, find_files, kind
from twofold.io.tables.table import Piece, blanks_of

SHARDS = 32  # of one side, about, unless they would be too small or too large
CELLS = 2**14, 2**20  # of a shard, at least and at most,
MOST = 128, 2**22  # unless there would be more shards than this; then at most so many
HEAVY = 2**19  # cells of a row from which on they are cut
PIECE = 2**16, 2**21  # rows of a Parquet file that are read at a time, as the budget allows,
ROW = 256  # where one takes so many bytes until it is written
TEXT = 2**20, 2**26  # bytes of a text file that are read at a time; they take some times that
CHUNK = 2**19  # cells that are merged at a time
HELD = 2**20  # ratings held out at most
SIDES = ("rows", "cols")
TEXTS = (".csv", ".tsv", ".txt", ".dat")
FORMAT = 1


class Unit(NamedTuple):
    """The cells of the rows first..last whose columns are lo..hi, and which shard the rows are."""

    shard: int
    first: int
    last: int
    lo: int
    hi: int


class Cut(NamedTuple):
    """How one side is cut."""

    bounds: np.ndarray  # (shards+1,) rows
    units: list[Unit]  # in the order of their rows, then of their columns

    def find(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """The unit of each cell."""
        shard = np.searchsorted(self.bounds, i, side="right") - 1
        of = np.array([unit.shard for unit in self.units])
        first = np.searchsorted(of, np.arange(len(self.bounds) - 1))
        unit = first[shard]
        for s in np.flatnonzero(np.bincount(of) > 1):
            mine = np.flatnonzero(shard == s)
            ends = np.array([u.hi for u in self.units if u.shard == s])
            unit[mine] += np.searchsorted(ends, j[mine], side="right")
        return unit


class Side(NamedTuple):
    """One side: how it is cut, and how many factor rows of each of the other's shards every unit is sent."""

    name: str
    bounds: np.ndarray  # (shards+1,)
    units: list[Unit]
    routes: np.ndarray  # (units, shards of the other side)

    def units_of(self, shard: int) -> list[int]:
        return [u for u, unit in enumerate(self.units) if unit.shard == shard]


class PartitionedRatings:
    """Ratings in a folder, cut into shards: what :class:`ALS`, :class:`ImplicitALS` and :class:`EASE` fit where the
    ratings do not fit in memory.

    Made once, in two passes over the files, by the workers of the dask client in force or by this process's threads.
    The folder takes about 16 bytes a rating, three times that while it is made. Row i of the models is the i-th of the
    users in their order, column j the j-th of the items.

    Parameters
    ----------
    source : path, list of paths, dask frame or dask array, optional
        A file, a folder or a pattern of files of rows (user, item, rating): Parquet or CSV (read in pieces), JSONL,
        packed CSV or ``.npz`` with arrays called so (each read whole, so keep them to some hundred megabytes); or a
        dask collection of such rows. None opens a folder that was made before.
    folder : path, optional
        Where the shards go, and the factors during a fit: a disk that every worker sees, with room. The folder must be
        empty. None means a temporary one, which ends with this object.
    user, item, rating : str, optional
        Names of the columns; found by name or position if not given, as :class:`Recommender` does.
    duplicates : {"mean", "last", "sum"} or None, default=None
        What a pair that occurs more than once is worth. None means "mean", or "sum" for counts and without ratings.
    missing : sequence, default=()
        Further texts or numbers that mean: no rating.
    holdout : float, default=0.0
        The share of the ratings that are kept apart, at most a million, to see how good a fit is: no fit sees them.

    Attributes
    ----------
    shape : tuple of int
        Users, items.
    n_ratings : int
        Pairs that occur, less those held out.
    held_out : CSR array of shape (users, items)
        Ratings that are kept apart.
    users, items : ndarray
        Ids, sorted.

    Examples
    --------
    >>> from twofold import ALS, PartitionedRatings, datasets
    >>> datasets.ratings().ratings.write_parquet("stars.parquet")
    >>> ratings = PartitionedRatings("stars.parquet")
    >>> model = ALS(4, reg=0.05, tol=1e-3, random_state=0).fit(ratings)
    >>> model.row_factors_.shape == (len(ratings.users), 4)
    True
    """

    keeper: Any = None  # what keeps the folder, if it is a temporary one

    def __init__(
        self,
        source: Any = None,
        folder: PathLike | None = None,
        *,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        duplicates: str | None = None,
        missing: Sequence[Any] = (),
        holdout: float = 0.0,
    ):
        self._temporary = None
        if folder is None:
            if source is None:
                raise InputError(
                    "PartitionedRatings needs ratings, or a folder that was made before. Give one of them."
                )
            self._temporary = tempfile.TemporaryDirectory(prefix="twofold-ratings-")
            folder = self._temporary.name
        if duplicates not in (None, "mean", "last", "sum"):
            raise InputError(f'duplicates={duplicates!r} must be "mean", "last", "sum" or None.')
        if not 0 <= holdout <= 0.9:
            raise InputError(f"holdout={holdout!r} must be a share of the ratings, from 0 to 0.9.")
        self.folder = Path(os.path.abspath(folder))
        if source is not None:
            columns = {"user": user, "item": item, "rating": rating}
            self._make(source, columns, duplicates, blanks_of(missing), float(holdout))
        self._open()

    def __repr__(self) -> str:
        n, d = self.shape
        return f"PartitionedRatings({n:,} users × {d:,} items, {self.n_ratings:,} ratings, in {self.folder})"

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise InputError(
            "partitioned ratings are no table: ALS, ImplicitALS, EASE and a Recommender with one of them are fitted to "
            "them, and rows of them are predicted by predict(rows, cols)."
        )

    # ---- making ----------------------------------------------------------------------------------------------------

    def _make(
        self, source: Any, given: dict[str, str | None], duplicates: str | None, blanks: frozenset[str], holdout: float
    ) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if any(self.folder.iterdir()):
            raise InputError(
                f"{self.folder} is not empty. Give PartitionedRatings an empty folder, or open one that was made "
                "before, without a source."
            )
        for name in ("parts", "buckets", *SIDES):
            (self.folder / name).mkdir()
        try:
            self._partition(source, given, duplicates, blanks, holdout)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _partition(
        self, source: Any, given: dict[str, str | None], duplicates: str | None, blanks: frozenset[str], holdout: float
    ) -> None:
        tasks = find_tasks(ROW * min(rows_of_piece(), PIECE[1]) // 2)
        folder, pieces, roles = self.folder, *list_pieces(source, given, tasks)
        column = roles["rating"]
        if duplicates is None:
            duplicates = "sum" if column is None or bare(column) in NAMES["count"] else "mean"
        read = [tasks.submit(write_part, folder, p, piece, roles, blanks) for p, piece in enumerate(pieces)]
        noted = tasks.gather(read, "reading ratings")
        if not sum(rows for rows, _ in noted):
            raise InputError(f"{name_source(source)} has no ratings.")
        dtype = np.dtype("f4" if all(exact for _, exact in noted) else "f8")
        counts = [self._merge_ids(tasks, side, len(pieces)) for side in SIDES]
        total = int(counts[0].sum())
        size = max(int(np.clip(-(-total // SHARDS), *CELLS)), min(total // MOST[0], MOST[1]))
        apart = Apart(holdout, min(1.0, HELD / max(holdout * total, 1)))
        bounds = [cut_rows(c, size, HEAVY) for c in counts]
        cuts = [
            Cut(mine, make_units(mine, other, c, o, HEAVY))
            for mine, other, c, o in (
                (bounds[0], bounds[1], counts[0], counts[1]),
                (bounds[1], bounds[0], counts[1], counts[0]),
            )
        ]
        sort = [tasks.submit(write_buckets, folder, p, cuts, dtype) for p in range(len(pieces))]
        starts = tasks.gather(sort, "sorting ratings")
        shutil.rmtree(folder / "parts")
        shape = (len(counts[0]), len(counts[1]))
        described: dict[str, Any] = {}
        for s, side in enumerate(SIDES):
            made = []
            for u, unit in enumerate(cuts[s].units):
                runs = [part[s][u : u + 2] for part in starts]
                how = (runs, dtype, duplicates, shape[1 - s], bounds[1 - s], apart)
                made.append(tasks.submit(write_unit, folder, side, u, unit, *how))
            found = tasks.gather(made, f"writing blocks of {('users', 'items')[s]}")
            described[side] = {"bounds": bounds[s].tolist(), "units": cuts[s].units, "cells": [c for c, _, _ in found]}
            write_arrays(folder / side / "routes.npz", routes=np.array([route for _, route, _ in found]))
            if holdout and s == 0:
                i, j, x = (np.concatenate(part) for part in zip(*(held for _, _, held in found), strict=True))
                write_arrays(folder / "held.npz", i=i, j=j, x=x)
        shutil.rmtree(folder / "buckets")
        meta = {
            "format": FORMAT, "shape": shape, "n_ratings": int(sum(described["rows"]["cells"])), "dtype": dtype.str,
            "columns": {role: roles[role] for role in ROLES}, "duplicates": duplicates, "holdout": holdout, **described,
        }  # fmt: skip
        write_text(folder / "ratings.json", json.dumps(meta))

    def _merge_ids(self, tasks: Tasks, side: str, parts: int) -> np.ndarray:
        """The ids of one side, written, and how many cells each has."""
        files = (self.folder / "parts" / f"{p:05}.{side}.parquet" for p in range(parts))
        found = tasks.reduce([tasks.submit(read_ids, file) for file in files], merge_ids)
        return tasks.gather([tasks.submit(write_ids, self.folder / f"{side}.parquet", found)])[0]

    # ---- opening ---------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        try:
            meta = json.loads((self.folder / "ratings.json").read_text("utf-8"))
            if meta["format"] != FORMAT:
                raise ValueError(f"its format is {meta['format']}")
            self.shape = tuple(meta["shape"])
            self.n_ratings, self.dtype = int(meta["n_ratings"]), np.dtype(meta["dtype"])
            self.columns, self.duplicates = meta["columns"], meta["duplicates"]
            self.holdout = float(meta.get("holdout", 0.0))
            routes = [read_arrays(self.folder / side / "routes.npz", "routes")[0] for side in SIDES]
            self.rows, self.cols = (
                Side(side, np.array(meta[side]["bounds"]), [Unit(*unit) for unit in meta[side]["units"]], route)
                for side, route in zip(SIDES, routes, strict=True)
            )
            self.cells = {side: meta[side]["cells"] for side in SIDES}
        except (OSError, ValueError, TypeError, KeyError) as why:
            if isinstance(why, InputError):
                raise
            raise InputError(f"{self.folder} holds no partitioned ratings ({why}). Partition them again.") from None

    @cached_property
    def users(self) -> np.ndarray:
        return as_array(read_ids(self.folder / "rows.parquet")["id"])

    @cached_property
    def items(self) -> np.ndarray:
        return as_array(read_ids(self.folder / "cols.parquet")["id"])

    @property
    def counts(self) -> bool:
        """Whether the column of ratings is called something like "plays"."""
        return self.columns["rating"] is not None and bare(self.columns["rating"]) in NAMES["count"]

    @cached_property
    def held_out(self) -> sparse.csr_array:
        if not self.holdout:
            return sparse.csr_array(self.shape, dtype=self.dtype)
        i, j, x = read_arrays(self.folder / "held.npz", "i", "j", "x")
        return sparse.csr_array((x, (i, j)), shape=self.shape)

    def sign(self) -> str:
        """A short sign of the cells, for checkpoints."""
        return f"{self.shape} {self.n_ratings} {self.cells} {self.duplicates}"


# ---- what is read -----------------------------------------------------------------------------------------------


class FilePiece(NamedTuple):
    """A file, or so many rows of it from `start` on; of text, the lines that begin in so many bytes from there on, and
    the header that stands above them."""

    path: str
    start: int = 0
    rows: int | None = None
    header: bytes | None = None


class Apart(NamedTuple):
    """Which cells are held out: a share of those of a share of the users."""

    share: float
    users: float

    def find(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Whether the cells (i, j) are."""
        if not self.share:
            return np.zeros(len(i), bool)
        return (scatter(i, np.zeros_like(i)) < self.users) & (scatter(i, j + 1) < self.share)


def scatter(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1), one a pair, that look drawn at random (the mixing steps of splitmix64)."""
    z = i.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + j.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def rows_of_piece() -> int:
    """Rows that are read at a time, as the budget allows."""
    return int(np.clip(config().memory // ROW, *PIECE))


def name_source(source: Any) -> str:
    if is_paths(source):
        return os.fspath(source[0]) if len(source) == 1 else f"{os.fspath(source[0])} and {len(source) - 1} more"
    return os.fspath(source) if is_path(source) else f"the {type(source).__name__}"


def is_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and bool(source) and all(is_path(one) for one in source)


def list_pieces(source: Any, given: dict[str, str | None], tasks: Tasks) -> tuple[list[Any], dict[str, str | None]]:
    """What each task of the first pass reads, and which columns are which."""
    if is_dask(source):
        if not hasattr(source, "columns"):
            if source.ndim != 2 or source.shape[1] not in (2, 3):
                raise InputError(f"the dask array has shape {source.shape}; rows of (user, item, rating) are needed.")
            source = source.rechunk({1: -1})
        names = [str(name) for name in source.columns] if hasattr(source, "columns") else list(ROLES[: source.shape[1]])
        return tasks.frames(source), find_roles(names, given, "the dask frame")
    if is_path(source):
        source = [source]
    if not is_paths(source):
        raise InputError(
            f"the ratings are a {type(source).__name__}. Give a file, a folder or a pattern of files, or a dask frame; "
            "ratings in memory are for Recommender."
        )
    files = [file for one in source for file in find_files(os.path.abspath(one))]
    names = column_names(files[0])
    pieces: list[FilePiece] = []
    for file in files:
        if kind(file) in PARQUET:
            rows, step = count_rows(file), rows_of_piece()
            pieces += [FilePiece(file, a, min(step, rows - a)) for a in range(0, rows, step)]
        else:
            pieces += cut_text(file)
    return pieces, find_roles(names, given, files[0])


def measure_files(paths: Sequence[str], given: dict[str, str | None]) -> int:
    """Bytes that the ratings in files would take in memory, about; 0 if they are no files of rows user and item."""
    try:
        files = [file for one in paths for file in find_files(one)]
    except InputError:  # told by who reads them
        return 0
    if not all(kind(file) in PARQUET or (is_text(file) and kind(file) in TEXTS) for file in files):
        return 0
    size = sum(24 * count_rows(file) if kind(file) in PARQUET else os.path.getsize(file) for file in files)
    if size <= config().memory:
        return size
    names = column_names(files[0])
    named = named_roles(names, given)
    return size if len(names) <= 4 or None not in (named["user"], named["item"]) else 0


def is_text(file: str) -> bool:
    """Whether the lines of a file can be read from anywhere on."""
    return kind(file) not in OTHERS and not file.endswith(ENDINGS)


def cut_text(file: str) -> list[FilePiece]:
    """A file, in pieces if it is long and plain text."""
    size, step = os.path.getsize(file), int(np.clip(config().memory // 16, *TEXT))
    if not is_text(file) or size <= 3 * step // 2:
        return [FilePiece(file)]
    header = read_head(file)
    if header is None:
        return [FilePiece(file)]
    return [FilePiece(file, a, min(step, size - a), header) for a in range(0, size, step)]


def read_head(file: str) -> bytes | None:
    """The first line if it is a header, b"" if it is a row; None if the file is not text of one byte a letter."""
    some = read_first_lines(file)
    if b"\0" in some or b"\n" not in some:
        return None
    headless = any("has no header" in note for note in parse_piece(some, file).notes)
    return b"" if headless else some[: some.index(b"\n") + 1]


def read_first_lines(file: str) -> bytes:
    with open(file, "rb") as opened:
        head = opened.read(2**16)
    return head[: head.rfind(b"\n") + 1] or head


def read_lines(piece: FilePiece) -> Piece:
    """The lines of a text file that begin within a piece, under the header."""
    with open(piece.path, "rb") as opened:
        if piece.start:
            opened.seek(piece.start - 1)
            opened.readline()
        first = opened.tell()
        data = opened.read(max(0, piece.start + (piece.rows or 0) - first))
        if data and not data.endswith(b"\n"):
            data += opened.readline()
    name = f"{piece.path} from byte {first:,}" if piece.start else piece.path
    if data.count(b'"') % 2:
        raise InputError(
            f"{name} has a line break between quotes, so it cannot be read in pieces. Write it as Parquet, or as "
            "several files."
        )
    above = (piece.header or b"") if piece.start else b""
    return parse_piece(above + data, name) if data.strip() else Piece(pl.DataFrame(), name)


def count_rows(file: str) -> int:
    try:
        return int(pl.scan_parquet(file).select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
        raise unreadable(file, why) from None


def unreadable(file: str, why: BaseException) -> InputError:
    return InputError(f"{file} is not a readable file ({reason_of(why)}). Was it written completely?")


def column_names(file: str) -> list[str]:
    """The names of a file's columns."""
    try:
        if kind(file) in PARQUET:
            return list(pl.read_parquet_schema(file))
        if kind(file) == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                return list(arrays)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, *DAMAGED) as why:
        raise unreadable(file, why) from None
    if is_text(file) and b"\0" not in (some := read_first_lines(file)):
        return parse_piece(some, file).frame.columns
    return read_piece(file).frame.columns


def holds_ratings(X: Any) -> bool:
    """Whether X is a path or a dask frame with columns that are called user and item, or something like that."""
    if is_path(X):
        given = os.fspath(X)
        if kind(given) in (".npy", ".csr") or (not os.path.exists(given) and not any(mark in given for mark in "*?[")):
            return False
        files = find_files(given)
        if kind(files[0]) not in (*PARQUET, ".npz") and os.path.isfile(given):
            return False
        names = column_names(files[0])
    elif is_dask(X) and hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
    else:
        return False
    found = named_roles(names)
    return found["user"] is not None and found["item"] is not None


def read_rows(piece: Any, columns: list[str]) -> Piece:
    """Those columns of a piece."""
    if not isinstance(piece, FilePiece):
        return Piece(from_memory(piece).select(columns), "the dask frame")
    file = piece.path
    try:
        if kind(file) in PARQUET:
            rows = pl.scan_parquet(file).select(columns).slice(piece.start, piece.rows).collect()
            return Piece(rows, f"{file} from row {piece.start:,}" if piece.start else file)
        if kind(file) == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                return Piece(pl.DataFrame({name: arrays[name] for name in columns}), file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, *DAMAGED) as why:
        raise unreadable(file, why) from None
    read = read_piece(file) if piece.header is None else read_lines(piece)
    if not read.frame.width:  # a piece in which no line begins
        return Piece(pl.DataFrame(schema=dict.fromkeys(columns, pl.String)), read.name)
    missing = [name for name in columns if name not in read.frame.columns]
    if missing:
        raise InputError(f'{file} has no column "{missing[0]}", which the first file has. Give files with one header.')
    return read


# ---- the tasks ----------------------------------------------------------------------------------------------------


def write_part(
    folder: Path, p: int, piece: Any, roles: dict[str, str | None], blanks: frozenset[str]
) -> tuple[int, bool]:
    """The cells of one piece, ids as numbers of its own; how many there are, and whether float32 holds them."""
    if not (folder / "parts").is_dir():
        raise InputError(missing_message(folder / "parts" / f"{p:05}.npz"))
    columns = [name for name in (roles[role] for role in ROLES) if name is not None]
    read = read_rows(piece, columns)
    held = [ids_of(read.frame[str(roles[role])], role, [read]) for role in ("user", "item")]
    if roles["rating"] is None:
        values = np.ones(read.frame.height)
    else:
        values = as_numbers(read.frame[roles["rating"]], blanks, [read])
        known = ~np.isnan(values)
        if not known.all():
            values, held = values[known], [ids.filter(known) for ids in held]
    exact = np.array_equal(values.astype("f4"), values)
    codes = []
    for side, ids in zip(SIDES, held, strict=True):
        numbered = plain(ids).alias("id").to_frame().with_columns(pl.col("id").rank("dense").alias("code") - 1)
        codes.append(numbered["code"].to_numpy().astype(np.int32))
        known_ids = numbered.group_by("id").agg(pl.len().cast(pl.Int64).alias("count"), pl.col("code").first())
        write_frame(folder / "parts" / f"{p:05}.{side}.parquet", known_ids.sort("code").select("id", "count"))
    write_arrays(
        folder / "parts" / f"{p:05}.npz", rows=codes[0], cols=codes[1], values=values.astype("f4") if exact else values
    )
    return len(values), exact


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    with replacing(path, durable=False) as draft:
        frame.write_parquet(draft)


def read_ids(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except FileNotFoundError:
        raise InputError(missing_message(path)) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as why:
        raise unreadable(str(path), why) from None


def merge_ids(found: list[pl.DataFrame]) -> pl.DataFrame:
    """The ids of all, each once, with how many cells it has: numbers if all are, else text."""
    kinds = {frame["id"].dtype for frame in found}
    kind = kinds.pop() if len(kinds) == 1 else pl.String if pl.String in kinds else pl.Float64
    every = pl.concat([frame.with_columns(pl.col("id").cast(kind)) for frame in found])
    return every.group_by("id").agg(pl.col("count").sum())


def write_ids(path: Path, found: pl.DataFrame) -> np.ndarray:
    found = found.sort("id")
    write_frame(path, found.select("id"))
    return found["count"].to_numpy()


def cut_rows(counts: np.ndarray, size: int, heavy: int) -> np.ndarray:
    """Where rows are cut: after about `size` cells, and around each row that has more than `heavy`."""
    before = np.concatenate([[0], np.cumsum(counts)])
    lone = np.flatnonzero(counts > heavy)
    fixed = np.unique(np.concatenate([[0], lone, lone + 1, [len(counts)]]))
    bounds = [fixed]
    for a, b in pairwise(fixed):
        shares = -(-(before[b] - before[a]) // size)
        if b - a > 1 and shares > 1:
            goals = before[a] + (before[b] - before[a]) * np.arange(1, shares) / shares
            bounds.append(np.clip(np.searchsorted(before, goals), a, b))
    return np.unique(np.concatenate(bounds))


def make_units(bounds: np.ndarray, other: np.ndarray, counts: np.ndarray, others: np.ndarray, heavy: int) -> list[Unit]:
    """Each shard is one unit; a heavy row is several, cut where the other side is."""
    units = []
    width = int(other[-1])
    weight = np.add.reduceat(others, other[:-1])
    reached = np.cumsum(weight) / weight.sum()
    for s, (a, b) in enumerate(pairwise(bounds.tolist())):
        ends = np.array([width])
        if b - a == 1 and counts[a] > heavy:
            share = -(-int(counts[a]) // heavy)
            ends = np.unique(np.append(other[1:][np.searchsorted(reached, np.arange(1, share) / share)], width))
        units += [Unit(s, a, b, lo, hi) for lo, hi in pairwise([0, *ends.tolist()])]
    return units


def write_buckets(folder: Path, p: int, cuts: list[Cut], dtype: np.dtype) -> list[np.ndarray]:
    """The cells of one part sorted by unit, for both sides; where each unit's begin."""
    *codes, values = read_arrays(folder / "parts" / f"{p:05}.npz", *SIDES, "values")
    at = []
    for side, code in zip(SIDES, codes, strict=True):
        own = read_ids(folder / "parts" / f"{p:05}.{side}.parquet")
        every = read_ids(folder / f"{side}.parquet").with_row_index("at")
        own = own.with_columns(pl.col("id").cast(every["id"].dtype))
        at.append(own.join(every, on="id", how="left", maintain_order="left")["at"].to_numpy()[code])
    starts = []
    for s, side in enumerate(SIDES):
        i, j = at[s], at[1 - s]
        unit = cuts[s].find(i, j)
        order = np.argsort(unit, kind="stable")
        cells = np.empty(len(i), cell_type(dtype))
        cells["i"], cells["j"], cells["x"] = i[order], j[order], values[order]
        with replacing(folder / "buckets" / f"{p:05}.{side}", durable=False) as draft, open(draft, "wb") as file:
            file.write(cells.data)
        starts.append(np.searchsorted(unit[order], np.arange(len(cuts[s].units) + 1)))
    return starts


def cell_type(dtype: np.dtype) -> np.dtype:
    return np.dtype([("i", "u4"), ("j", "u4"), ("x", dtype)])


def write_unit(
    folder: Path,
    side: str,
    u: int,
    unit: Unit,
    starts: list[np.ndarray],
    dtype: np.dtype,
    duplicates: str,
    width: int,
    bounds: np.ndarray,
    apart: Apart,
) -> tuple[int, np.ndarray, tuple[np.ndarray, ...]]:
    """The cells of one unit from all buckets, as a CSR block; how many, what it needs of each of the others, and what
    is held out of it. Cells are merged some rows at a time, for that takes several times their own memory."""
    kind, n = cell_type(dtype), unit.last - unit.first
    runs = [read_run(folder / "buckets" / f"{p:05}.{side}", kind, a, b) for p, (a, b) in enumerate(starts)]
    cells = np.concatenate(runs)
    del runs
    cells = cells[np.argsort(cells["i"], kind="stable")]
    at = np.searchsorted(cells["i"], np.arange(unit.first, unit.last + 1, dtype=np.uint32))
    cuts = np.unique(np.append(np.searchsorted(at, np.arange(0, len(cells), CHUNK)), n))
    indptr, indices, values, held = [np.zeros(1, np.int64)], [], [], []
    for a, b in pairwise(cuts.tolist()) if len(cuts) > 1 else [(0, n)]:
        some = cells[at[a] : at[b]]
        i, j = some["i"].astype(np.int64) - unit.first - a, some["j"].astype(np.int64)
        X = merged(i, j, some["x"].astype("f8"), (b - a, width), duplicates)
        if apart.share:
            i, j = np.repeat(np.arange(unit.first + a, unit.first + b), np.diff(X.indptr)), X.indices.astype(np.int64)
            out = apart.find(i, j) if side == SIDES[0] else apart.find(j, i)
            held.append((i[out], j[out], X.data[out].astype(dtype)))
            X = stored(X, ~out)
        indptr.append(indptr[-1][-1] + X.indptr[1:])
        indices.append(X.indices)
        values.append(X.data.astype(dtype))
    del cells
    found = np.concatenate(indices)
    asked = np.zeros(width, bool)
    asked[found] = True
    need = np.flatnonzero(asked).astype(np.int32)
    places = np.cumsum(asked, dtype=np.int32) - 1
    index = np.int32 if len(found) < 2**31 else np.int64
    write_arrays(
        folder / side / f"{u:05}.npz",
        indptr=np.concatenate(indptr).astype(index),
        indices=places[found],
        values=np.concatenate(values),
        need=need,
        starts=np.searchsorted(need, bounds),
    )
    kept = tuple(np.concatenate(part) for part in zip(*held, strict=True)) if held and side == SIDES[0] else ()
    return len(found), np.add.reduceat(asked, bounds[:-1], dtype=np.int64), kept


# ---- what is read of a finished partition ----------------------------------------------------------------------------


def read_unit(folder: Path, side: str, u: int) -> sparse.csr_array:
    """The cells of a unit; their columns are places in what it needs."""
    path = folder / side / f"{u:05}.npz"
    indptr, indices, values, starts = read_arrays(path, "indptr", "indices", "values", "starts")
    return sparse.csr_array((values, indices, indptr), shape=(len(indptr) - 1, int(starts[-1])))


def read_needs(folder: Path, side: str, u: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the other side that a unit needs, ascending, and where those of each shard begin among them."""
    need, starts = read_arrays(folder / side / f"{u:05}.npz", "need", "starts")
    return need, starts


def read_cells(folder: Path, side: Side, u: int, width: int) -> sparse.csr_array:
    """The cells of a unit in their own columns."""
    X = read_unit(folder, side.name, u)
    return sparse.csr_array(
        (X.data, read_needs(folder, side.name, u)[0][X.indices], X.indptr), shape=(X.shape[0], width)
    )


def read_shard(folder: Path, side: Side, units: list[int], width: int) -> sparse.csr_array:
    """All cells of a shard; those of a row that is cut are put side by side again."""
    parts = [read_cells(folder, side, u, width) for u in units]
    if len(parts) == 1:
        return parts[0]
    data, indices = (np.concatenate([getattr(X, name) for X in parts]) for name in ("data", "indices"))
    return sparse.csr_array((data, indices, np.array([0, len(data)])), shape=(1, width))


class StoredRows:
    """The rows of partitioned ratings, read from their folder when they are asked for: `[[3, 5]]` is a CSR array.

    With `whole`, those that were held out are among them.
    """

    def __init__(self, ratings: PartitionedRatings, whole: bool = False):
        self.ratings, self.folder = ratings, ratings.folder
        self.held = ratings.held_out if whole and ratings.held_out.nnz else None
        self.shape, self.dtype = ratings.shape, ratings.dtype
        self.nnz = ratings.n_ratings + (0 if self.held is None else self.held.nnz)
        self._recent, self._lock = OrderedDict[int, sparse.csr_array](), threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_recent", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._recent, self._lock = OrderedDict(), threading.Lock()

    def __getitem__(self, rows: Any) -> sparse.csr_array:
        side, width = self.ratings.rows, self.shape[1]
        rows = np.atleast_1d(np.asarray(rows))
        shard = np.searchsorted(side.bounds, rows, side="right") - 1
        found, order = [], []
        for s in np.unique(shard).tolist():
            mine = np.flatnonzero(shard == s)
            found.append(self._read(s)[rows[mine] - side.bounds[s]])
            order.append(mine)
        if not found:
            return sparse.csr_array((0, width), dtype=self.dtype)
        X = sparse.vstack(found, format="csr")[np.argsort(np.concatenate(order))]
        return X if self.held is None else join_cells(X, self.held[rows])

    def _read(self, s: int) -> sparse.csr_array:
        """A shard, of which two are kept: those who ask go through the rows in their order."""
        side = self.ratings.rows
        with self._lock:
            if s not in self._recent:
                while len(self._recent) >= 2:
                    self._recent.popitem(last=False)
                self._recent[s] = read_shard(self.ratings.folder, side, side.units_of(s), self.shape[1])
            self._recent.move_to_end(s)
            return self._recent[s]

    def _count(self, side: Side, size: int) -> np.ndarray:
        counts = np.zeros(size, np.int64)
        for u, unit in enumerate(side.units):
            (indptr,) = read_arrays(self.ratings.folder / side.name / f"{u:05}.npz", "indptr")
            counts[unit.first : unit.last] += np.diff(indptr)
        return counts

    @cached_property
    def indptr(self) -> np.ndarray:
        """(n+1,) where each row would begin, if all were in memory."""
        counts = self._count(self.ratings.rows, self.shape[0])
        return np.append(0, np.cumsum(counts if self.held is None else counts + np.diff(self.held.indptr)))

    def count_columns(self) -> np.ndarray:
        """(d,) how many ratings each item has."""
        counts = self._count(self.ratings.cols, self.shape[1])
        return counts if self.held is None else counts + np.bincount(self.held.indices, minlength=self.shape[1])

    def _values(self) -> Iterator[np.ndarray]:
        """The ratings, block by block, those held out first."""
        yield self.ratings.held_out.data
        for u in range(len(self.ratings.rows.units)):
            yield read_arrays(self.ratings.folder / "rows" / f"{u:05}.npz", "values")[0]

    def find_range(self) -> tuple[float, float]:
        """The lowest and the highest rating."""
        low, high = np.inf, -np.inf
        for values in self._values():
            low, high = min(low, float(values.min(initial=low))), max(high, float(values.max(initial=high)))
        return low, high

    def is_binary(self) -> bool:
        """Whether all ratings are 0 or 1."""
        return all(bool(np.isin(values, (0, 1)).all()) for values in self._values())


def join_cells(X: sparse.csr_array, Y: sparse.csr_array) -> sparse.csr_array:
    """The cells of both, none of which is in both; zeros stay stored."""
    rows = [np.repeat(np.arange(Z.shape[0]), np.diff(Z.indptr)) for Z in (X, Y)]
    i, j = np.concatenate(rows), np.concatenate([X.indices, Y.indices])
    order = np.lexsort((j, i))
    indptr = X.indptr.astype(np.int64) + Y.indptr
    return sparse.csr_array((np.concatenate([X.data, Y.data])[order], j[order], indptr), shape=X.shape)
