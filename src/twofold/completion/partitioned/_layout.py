"""How partitioned ratings are cut, and what is read of a finished partition."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.partitioned._files import read_arrays

SIDES = ("rows", "cols")


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
