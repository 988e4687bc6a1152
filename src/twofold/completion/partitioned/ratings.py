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
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from twofold.completion.ids import as_array
from twofold.completion.partitioned import _writing as writing
from twofold.completion.partitioned._layout import SIDES, Cut, Side, Unit, read_arrays, write_arrays
from twofold.completion.partitioned.sources import PIECE, ROW, list_pieces, name_source, rows_of_piece
from twofold.core.checks import InputError
from twofold.core.engine.tasks import Tasks, find_tasks
from twofold.core.files.atomic import write_text
from twofold.core.types import PathLike
from twofold.io.ratings import NAMES, ROLES, bare
from twofold.io.tables.table import blanks_of

SHARDS = 32  # of one side, about, unless they would be too small or too large
CELLS = 2**17, 2**20  # of a shard, at least and at most: a task of fewer takes longer to start than to run;
MAX_SHARDS, MAX_SHARD_CELLS = 128, 2**22  # more cells where there would be more shards than this
HEAVY = 2**19  # cells of a row from which on they are cut
HELD = 2**20  # ratings held out at most
FORMAT = 1
FITTING = ("ALS", "ImplicitALS", "EASE", "Biases", "Popularity")  # models that are fitted to them


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

    def _make(self, *reading: Any) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if any(self.folder.iterdir()):
            raise InputError(
                f"{self.folder} is not empty. Give PartitionedRatings an empty folder, or open one that was made "
                "before, without a source."
            )
        for name in ("parts", "buckets", *SIDES):
            (self.folder / name).mkdir()
        try:
            self._partition(*reading)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _partition(
        self, source: Any, names: dict[str, str | None], duplicates: str | None, blanks: frozenset[str], holdout: float
    ) -> None:
        tasks = find_tasks(ROW * min(rows_of_piece(), PIECE[1]) // 2)
        folder, pieces, roles = self.folder, *list_pieces(source, names, tasks)
        column = roles["rating"]
        if duplicates is None:
            duplicates = "sum" if column is None or bare(column) in NAMES["count"] else "mean"
        read = [tasks.submit(writing.write_part, folder, p, piece, roles, blanks) for p, piece in enumerate(pieces)]
        noted = tasks.gather(read, "reading ratings")
        if not sum(rows for rows, _ in noted):
            raise InputError(f"{name_source(source)} has no ratings.")
        dtype = np.dtype("f4" if all(exact for _, exact in noted) else "f8")
        counts = [self._merge_ids(tasks, side, len(pieces)) for side in SIDES]
        total = int(counts[0].sum())
        size = max(int(np.clip(-(-total // SHARDS), *CELLS)), min(total // MAX_SHARDS, MAX_SHARD_CELLS))
        apart = writing.Apart(holdout, min(1.0, HELD / max(holdout * total, 1)))
        bounds = [writing.cut_rows(c, size, HEAVY) for c in counts]
        cuts = [
            Cut(bounds[s], writing.make_units(bounds[s], bounds[1 - s], counts[s], counts[1 - s], HEAVY))
            for s in (0, 1)
        ]
        sort = [tasks.submit(writing.write_buckets, folder, p, cuts, dtype) for p in range(len(pieces))]
        starts = tasks.gather(sort, "sorting ratings")
        shutil.rmtree(folder / "parts")
        shape = (len(counts[0]), len(counts[1]))
        described: dict[str, Any] = {}
        for s, side in enumerate(SIDES):
            made = []
            for u, unit in enumerate(cuts[s].units):
                runs = [part[s][u : u + 2] for part in starts]
                how = (runs, dtype, duplicates, shape[1 - s], bounds[1 - s], apart)
                made.append(tasks.submit(writing.write_unit, folder, side, u, unit, *how))
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
        found = tasks.reduce([tasks.submit(writing.read_ids, file) for file in files], writing.merge_ids)
        return tasks.gather([tasks.submit(writing.write_ids, self.folder / f"{side}.parquet", found)])[0]

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
        return as_array(writing.read_ids(self.folder / "rows.parquet")["id"])

    @cached_property
    def items(self) -> np.ndarray:
        return as_array(writing.read_ids(self.folder / "cols.parquet")["id"])

    @property
    def counts(self) -> bool:
        """True if the column of ratings is called something like "plays"."""
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


def open_ratings(
    source: Any, model: Any, columns: dict[str, str | None], duplicates: str, holdout: float
) -> PartitionedRatings:
    """Ratings for a recommender with this model, which must be one that fits them where they are, or None."""
    if model is not None and type(model).__name__ not in FITTING:
        raise InputError(
            f"ratings beyond one memory need a model that fits them there, not {model!r}. Give Recommender one of "
            f"{', '.join(FITTING[:-1])} and {FITTING[-1]}, such as ImplicitALS(64), or none, to have it chosen."
        )
    if isinstance(source, PartitionedRatings):
        return source
    folder = tempfile.TemporaryDirectory(prefix="twofold-ratings-")
    how: dict[str, Any] = {**columns, "duplicates": duplicates, "holdout": holdout}
    found = PartitionedRatings(source, folder.name, **how)
    found.keeper = folder  # it lasts as long as the recommender, so that factors may stay in it
    return found
