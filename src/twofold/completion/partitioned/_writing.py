"""The tasks that write a partition: parts, ids, buckets, and the block of each unit."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from twofold.completion.ids import plain
from twofold.completion.partitioned._layout import (
    SIDES,
    Cut,
    Unit,
    missing_message,
    read_arrays,
    read_run,
    write_arrays,
)
from twofold.completion.partitioned.sources import read_rows
from twofold.completion.ratings_table import merge_pairs
from twofold.core.checks import InputError
from twofold.core.data.known_cells import keep_stored
from twofold.core.files.atomic import replacing
from twofold.io.ratings import ROLES, as_numbers, ids_of
from twofold.io.tables.read import unreadable

CHUNK = 2**19  # cells that are merged at a time


class Apart(NamedTuple):
    """Which cells are held out: a share of those of a share of the users."""

    share: float
    users: float

    def find(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """True for each of the cells (i, j) that is held out."""
        if not self.share:
            return np.zeros(len(i), bool)
        return (scatter(i, np.zeros_like(i)) < self.users) & (scatter(i, j + 1) < self.share)


def scatter(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1), one a pair, that look drawn at random (the mixing steps of splitmix64)."""
    z = i.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + j.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


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


def merge_ids(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The ids of all, each once, with how many cells it has: numbers if all are, else text."""
    kinds = {frame["id"].dtype for frame in frames}
    kind = kinds.pop() if len(kinds) == 1 else pl.String if pl.String in kinds else pl.Float64
    every = pl.concat([frame.with_columns(pl.col("id").cast(kind)) for frame in frames])
    return every.group_by("id").agg(pl.col("count").sum())


def write_ids(path: Path, ids: pl.DataFrame) -> np.ndarray:
    ids = ids.sort("id")
    write_frame(path, ids.select("id"))
    return ids["count"].to_numpy()


def cut_rows(counts: np.ndarray, size: int, heavy: int) -> np.ndarray:
    """Cut rows after about `size` cells, and around each row that has more than `heavy`."""
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


def make_units(
    bounds: np.ndarray, other: np.ndarray, counts: np.ndarray, other_counts: np.ndarray, heavy: int
) -> list[Unit]:
    """Each shard is one unit; a heavy row is several, cut where the other side is."""
    units = []
    width = int(other[-1])
    weight = np.add.reduceat(other_counts, other[:-1])
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
        X = merge_pairs(i, j, some["x"].astype("f8"), (b - a, width), duplicates)
        if apart.share:
            i, j = np.repeat(np.arange(unit.first + a, unit.first + b), np.diff(X.indptr)), X.indices.astype(np.int64)
            out = apart.find(i, j) if side == SIDES[0] else apart.find(j, i)
            held.append((i[out], j[out], X.data[out].astype(dtype)))
            X = keep_stored(X, ~out)
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
