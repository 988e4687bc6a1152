"""Rows of partitioned ratings by their numbers, as of a sparse table in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from twofold.completion.partitioned._files import read_arrays
from twofold.completion.partitioned._layout import Side, read_shard

if TYPE_CHECKING:
    from twofold.completion.partitioned.ratings import PartitionedRatings


class StoredRows:
    """The rows of partitioned ratings, read from their folder on demand: `[[3, 5]]` is a CSR array.

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
        """A shard, of which two are kept: callers read the rows in order."""
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
        """Return True if all ratings are 0 or 1."""
        return all(bool(np.isin(values, (0, 1)).all()) for values in self._values())


def join_cells(X: sparse.csr_array, Y: sparse.csr_array) -> sparse.csr_array:
    """The cells of both, none of which is in both; zeros stay stored."""
    rows = [np.repeat(np.arange(Z.shape[0]), np.diff(Z.indptr)) for Z in (X, Y)]
    i, j = np.concatenate(rows), np.concatenate([X.indices, Y.indices])
    order = np.lexsort((j, i))
    indptr = X.indptr.astype(np.int64) + Y.indptr
    return sparse.csr_array((np.concatenate([X.data, Y.data])[order], j[order], indptr), shape=X.shape)
