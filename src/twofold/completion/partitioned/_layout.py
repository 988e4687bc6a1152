"""The folder of a partition: how ratings are cut, how files are written so that each appears whole, and how they are
read so that a missing or damaged one is one clear error."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.files.atomic import replacing
from twofold.core.files.headers import reads_headers

SIDES = ("rows", "cols")
DAMAGED = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


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

    def count_rows(self, units: list[int]) -> list[tuple[int, int]]:
        """Units, and how many rows each has."""
        return [(u, self.units[u].last - self.units[u].first) for u in units]


# ---- files --------------------------------------------------------------------------------------------------------


def write_arrays(path: Path, **arrays: Any) -> None:
    """Arrays by name in one file."""
    with replacing(path, durable=False) as draft:
        np.savez(draft, **arrays)


@reads_headers
def read_arrays(path: Path, *names: str) -> list[np.ndarray]:
    """Some of the arrays in a file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return [file[name] for name in names]
    except FileNotFoundError:
        raise InputError(missing_message(path)) from None
    except DAMAGED as why:
        raise InputError(
            f"{path} is damaged or truncated ({why}). Delete {path.parent.parent} and start again."
        ) from None


def write_array(path: Path, array: np.ndarray) -> None:
    with replacing(path, durable=False) as draft, open(draft, "wb") as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


def read_run(path: Path, dtype: np.dtype, start: int, stop: int) -> np.ndarray:
    """Records start..stop of a file of nothing else."""
    try:
        found = np.fromfile(path, dtype, stop - start, offset=start * dtype.itemsize)
    except FileNotFoundError:
        raise InputError(missing_message(path)) from None
    if len(found) < stop - start:
        raise InputError(f"{path} is truncated: it ends before its last record. Delete its folder and start again.")
    return found


def missing_message(path: Path) -> str:
    folder = path.parent.parent
    what = f"the folder {folder} is gone" if not folder.is_dir() else f"{path} is missing"
    return (
        f"{what}, which holds partitioned ratings and factors. Every worker must see the folder for as long as the fit "
        "lasts: give PartitionedRatings one on a disk they share, and partition again."
    )


def read_unit(folder: Path, side: str, u: int) -> sparse.csr_array:
    """The cells of a unit; their columns are places in what it needs."""
    path = folder / side / f"{u:05}.npz"
    indptr, indices, values, starts = read_arrays(path, "indptr", "indices", "values", "starts")
    return sparse.csr_array((values, indices, indptr), shape=(len(indptr) - 1, int(starts[-1])))


def read_needs(folder: Path, side: str, u: int) -> np.ndarray:
    """The rows of the other side that a unit needs, ascending."""
    return read_arrays(folder / side / f"{u:05}.npz", "need")[0]


def read_cells(folder: Path, side: Side, u: int, width: int) -> sparse.csr_array:
    """The cells of a unit in their own columns."""
    X = read_unit(folder, side.name, u)
    return sparse.csr_array((X.data, read_needs(folder, side.name, u)[X.indices], X.indptr), shape=(X.shape[0], width))


def read_shard(folder: Path, side: Side, units: list[int], width: int) -> sparse.csr_array:
    """All cells of a shard; those of a row that is cut are put side by side again."""
    parts = [read_cells(folder, side, u, width) for u in units]
    if len(parts) == 1:
        return parts[0]
    data, indices = (np.concatenate([getattr(X, name) for X in parts]) for name in ("data", "indices"))
    return sparse.csr_array((data, indices, np.array([0, len(data)])), shape=(1, width))
