"""Ratings beyond one memory: cut into shards of about equally many cells, along the rows and along the columns.

    map      each file is read where its task runs: ids, their numbers within the file, values        parts/
    ids      the ids of all files, merged along a tree and sorted: row i is the i-th user             users, items
    bucket   the cells of each part, sorted by the shard they belong to, once for each side           buckets/
    reduce   the cells of one shard from all buckets: one CSR block, with what it needs of the other  rows/ cols/

The rows of a shard lie together. A row with too many cells is a shard of its own, whose cells are cut along the other
side: its normal equations are summed. Where cuts fall depends on the numbers of cells alone.

    need     (m,) the factor rows of the other side that a unit's cells ask for, ascending. Column numbers of its cells
             are places in `need`, so that what arrives is put one below the other and used as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
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
from twofold.core.data.blocks import is_dask, is_path
from twofold.core.engine.tasks import Tasks, find_tasks
from twofold.core.files.atomic import replacing, write_text
from twofold.core.types import PathLike
from twofold.io.ratings import NAMES, ROLES, as_numbers, bare, find_roles, from_memory, ids_of, named_roles, read_piece
from twofold.io.tables.columns import BLANKS
from twofold.io.tables.read import PARQUET, find_files, kind
from twofold.io.tables.table import Piece

SHARDS = 32  # of one side, about, unless they would be too small or too large
CELLS = 2**14, 2**22  # of a shard, at least and at most
HEAVY = 2**19  # cells of a row from which on they are cut
PIECE = 2**21  # rows of a Parquet file that are read at a time
SIDES = ("rows", "cols")
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
    source : path, dask frame or dask array, optional
        A file, a folder or a pattern of files of rows (user, item, rating): Parquet (read piece by piece), CSV, JSONL
        or ``.npz`` with arrays called so (each read whole, so keep them to some hundred megabytes); or a dask
        collection of such rows. None opens a folder that was made before.
    folder : path, optional
        Where the shards go, and the factors during a fit: a disk that every worker sees, with room. The folder must be
        empty. None means a temporary one, which ends with this object.
    user, item, rating : str, optional
        Names of the columns; found by name or position if not given, as :class:`Recommender` does.
    duplicates : {"mean", "last", "sum"} or None, default=None
        What a pair that occurs more than once is worth. None means "mean", or "sum" for counts and without ratings.

    Attributes
    ----------
    shape : tuple of int
        Users, items.
    n_ratings : int
        Pairs that occur.
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

    def __init__(
        self,
        source: Any = None,
        folder: PathLike | None = None,
        *,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        duplicates: str | None = None,
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
        self.folder = Path(os.path.abspath(folder))
        if source is not None:
            self._make(source, {"user": user, "item": item, "rating": rating}, duplicates)
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

    def _make(self, source: Any, given: dict[str, str | None], duplicates: str | None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if any(self.folder.iterdir()):
            raise InputError(
                f"{self.folder} is not empty. Give PartitionedRatings an empty folder, or open one that was made "
                "before, without a source."
            )
        for name in ("parts", "buckets", *SIDES):
            (self.folder / name).mkdir()
        try:
            self._partition(source, given, duplicates)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _partition(self, source: Any, given: dict[str, str | None], duplicates: str | None) -> None:
        tasks = find_tasks(64 * PIECE)
        folder, pieces, roles = self.folder, *list_pieces(source, given, tasks)
        column = roles["rating"]
        if duplicates is None:
            duplicates = "sum" if column is None or bare(column) in NAMES["count"] else "mean"
        noted = tasks.gather([tasks.submit(write_part, folder, p, piece, roles) for p, piece in enumerate(pieces)])
        if not sum(rows for rows, _ in noted):
            raise InputError(f"{name_source(source)} has no ratings.")
        dtype = np.dtype("f4" if all(exact for _, exact in noted) else "f8")
        counts = [self._merge_ids(tasks, side, len(pieces)) for side in SIDES]
        total = int(counts[0].sum())
        size = int(np.clip(-(-total // SHARDS), *CELLS))
        bounds = [cut_rows(c, size, HEAVY) for c in counts]
        cuts = [
            Cut(mine, make_units(mine, other, c, o, HEAVY))
            for mine, other, c, o in (
                (bounds[0], bounds[1], counts[0], counts[1]),
                (bounds[1], bounds[0], counts[1], counts[0]),
            )
        ]
        starts = tasks.gather([tasks.submit(write_buckets, folder, p, cuts, dtype) for p in range(len(pieces))])
        shutil.rmtree(folder / "parts")
        shape = (len(counts[0]), len(counts[1]))
        described: dict[str, Any] = {}
        for s, side in enumerate(SIDES):
            made = []
            for u, unit in enumerate(cuts[s].units):
                runs = [part[s][u : u + 2] for part in starts]
                how = (runs, dtype, duplicates, shape[1 - s], bounds[1 - s])
                made.append(tasks.submit(write_unit, folder, side, u, unit, *how))
            found = tasks.gather(made)
            described[side] = {"bounds": bounds[s].tolist(), "units": cuts[s].units, "cells": [c for c, _ in found]}
            write_arrays(folder / side / "routes.npz", routes=np.array([route for _, route in found]))
        shutil.rmtree(folder / "buckets")
        meta = {
            "format": FORMAT, "shape": shape, "n_ratings": int(sum(described["rows"]["cells"])), "dtype": dtype.str,
            "columns": {role: roles[role] for role in ROLES}, "duplicates": duplicates, **described,
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

    def sign(self) -> str:
        """A short sign of the cells, for checkpoints."""
        return f"{self.shape} {self.n_ratings} {self.cells} {self.duplicates}"


# ---- what is read -----------------------------------------------------------------------------------------------


class FilePiece(NamedTuple):
    """A file, or so many rows of it from `start` on."""

    path: str
    start: int = 0
    rows: int | None = None


def name_source(source: Any) -> str:
    return os.fspath(source) if is_path(source) else f"the {type(source).__name__}"


def list_pieces(source: Any, given: dict[str, str | None], tasks: Tasks) -> tuple[list[Any], dict[str, str | None]]:
    """What each task of the first pass reads, and which columns are which."""
    if is_dask(source):
        if not hasattr(source, "columns"):
            if source.ndim != 2 or source.shape[1] not in (2, 3):
                raise InputError(f"the dask array has shape {source.shape}; rows of (user, item, rating) are needed.")
            source = source.rechunk({1: -1})
        names = [str(name) for name in source.columns] if hasattr(source, "columns") else list(ROLES[: source.shape[1]])
        return tasks.frames(source), find_roles(names, given, "the dask frame")
    if not is_path(source):
        raise InputError(
            f"the ratings are a {type(source).__name__}. Give a file, a folder or a pattern of files, or a dask frame; "
            "ratings in memory are for Recommender."
        )
    files = find_files(os.path.abspath(source))
    names = column_names(files[0])
    pieces: list[FilePiece] = []
    for file in files:
        if kind(file) in PARQUET:
            rows = count_rows(file)
            pieces += [FilePiece(file, a, min(PIECE, rows - a)) for a in range(0, rows, PIECE)]
        else:
            pieces.append(FilePiece(file))
    return pieces, find_roles(names, given, files[0])


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
    read = read_piece(file)
    missing = [name for name in columns if name not in read.frame.columns]
    if missing:
        raise InputError(f'{file} has no column "{missing[0]}", which the first file has. Give files with one header.')
    return read


# ---- the tasks ----------------------------------------------------------------------------------------------------


def write_part(folder: Path, p: int, piece: Any, roles: dict[str, str | None]) -> tuple[int, bool]:
    """The cells of one piece, ids as numbers of its own; how many there are, and whether float32 holds them."""
    if not (folder / "parts").is_dir():
        raise InputError(missing_message(folder / "parts" / f"{p:05}.npz"))
    columns = [name for name in (roles[role] for role in ROLES) if name is not None]
    read = read_rows(piece, columns)
    held = [ids_of(read.frame[str(roles[role])], role, [read]) for role in ("user", "item")]
    if roles["rating"] is None:
        values = np.ones(read.frame.height)
    else:
        values = as_numbers(read.frame[roles["rating"]], BLANKS, [read])
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
) -> tuple[int, np.ndarray]:
    """The cells of one unit from all buckets, as a CSR block; how many, and what it needs of each of the others."""
    kind = cell_type(dtype)
    runs = [read_run(folder / "buckets" / f"{p:05}.{side}", kind, a, b) for p, (a, b) in enumerate(starts)]
    cells = np.concatenate(runs)
    del runs
    shape = (unit.last - unit.first, width)
    i, j, values = cells["i"].astype(np.int64) - unit.first, cells["j"].astype(np.int64), cells["x"].astype("f8")
    del cells
    X = merged(i, j, values, shape, duplicates)
    asked = np.zeros(width, bool)
    asked[X.indices] = True
    need = np.flatnonzero(asked).astype(np.int32)
    places = np.cumsum(asked, dtype=np.int32) - 1
    write_arrays(
        folder / side / f"{u:05}.npz",
        indptr=X.indptr,
        indices=places[X.indices],
        values=X.data.astype(dtype),
        need=need,
        starts=np.searchsorted(need, bounds),
    )
    return X.nnz, np.add.reduceat(asked, bounds[:-1], dtype=np.int64)


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
    """The rows of partitioned ratings, read from their folder when they are asked for: `[[3, 5]]` is a CSR array."""

    def __init__(self, ratings: PartitionedRatings):
        self.ratings, self.folder = ratings, ratings.folder
        self.shape, self.dtype, self.nnz = ratings.shape, ratings.dtype, ratings.n_ratings

    def __getitem__(self, rows: Any) -> sparse.csr_array:
        side, width = self.ratings.rows, self.shape[1]
        rows = np.atleast_1d(np.asarray(rows))
        shard = np.searchsorted(side.bounds, rows, side="right") - 1
        found, order = [], []
        for s in np.unique(shard).tolist():
            mine = np.flatnonzero(shard == s)
            X = read_shard(self.ratings.folder, side, side.units_of(s), width)
            found.append(X[rows[mine] - side.bounds[s]])
            order.append(mine)
        if not found:
            return sparse.csr_array((0, width), dtype=self.dtype)
        return sparse.vstack(found, format="csr")[np.argsort(np.concatenate(order))]

    def count_columns(self) -> np.ndarray:
        """(d,) how many ratings each item has."""
        side, counts = self.ratings.cols, np.zeros(self.shape[1], np.int64)
        for u, unit in enumerate(side.units):
            (indptr,) = read_arrays(self.ratings.folder / side.name / f"{u:05}.npz", "indptr")
            counts[unit.first : unit.last] += np.diff(indptr)
        return counts

    def find_range(self) -> tuple[float, float]:
        """The lowest and the highest rating."""
        folder, units = self.ratings.folder / "rows", range(len(self.ratings.rows.units))
        low, high = np.inf, -np.inf
        for u in units:
            (values,) = read_arrays(folder / f"{u:05}.npz", "values")
            low, high = min(low, float(values.min(initial=low))), max(high, float(values.max(initial=high)))
        return low, high
