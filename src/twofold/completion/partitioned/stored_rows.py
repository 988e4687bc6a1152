"""Rows of partitioned ratings by their numbers, as of a sparse table in memory, and lists of all users.

A task makes the lists of some thousand users, where their ratings are. The columns' side of the product goes to the
folder once; a task is sent its users' side of it. Only a few tasks run ahead of the caller, so that the lists of all
users are never in memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from scipy import sparse

from twofold.completion.partitioned._layout import Side, missing_message, read_arrays, read_shard, write_array
from twofold.completion.scorer import Lists, ProductScorer, Scorer, join_lists, rank_block, rank_items
from twofold.core.checks import InputError
from twofold.core.data.sources import rows_per_block
from twofold.core.engine.tasks import find_tasks
from twofold.core.files.headers import reads_headers

if TYPE_CHECKING:
    from twofold.completion.partitioned.ratings import PartitionedRatings

USERS_PER_TASK = 2**12


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


# ---- lists --------------------------------------------------------------------------------------------------------


@reads_headers
def rank_shard(
    folder: Path,
    side: Side,
    units: list[int],
    width: int,
    rows: tuple[int, int],
    held: sparse.csr_array | None,
    U: np.ndarray,
    bias: np.ndarray,
    path: Path,
    n: int,
) -> Lists:
    """The n best columns, not seen, of some rows of a shard."""
    seen = read_shard(folder, side, units, width)[rows[0] : rows[1]]
    seen = seen if held is None else join_cells(seen, held)
    try:
        Z = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(missing_message(path)) from None
    scorer, step = ProductScorer(U, Z, bias), rows_per_block(width, Z.dtype)
    starts = range(0, seen.shape[0], step)
    return join_lists([rank_block(np.arange(a, min(a + step, seen.shape[0])), seen, n, scorer) for a in starts])


def rank_all(scorer: Scorer, seen: StoredRows, n: int) -> Iterator[tuple[np.ndarray, Lists]]:
    """For all rows, some thousand at a time: the rows, and their n best columns that are not stored in `seen`."""
    (_, d), side, folder = seen.shape, seen.ratings.rows, seen.folder
    if not isinstance(scorer, ProductScorer):
        yield from rank_items(scorer, seen, np.arange(seen.shape[0]), n)
        return
    at = folder / "lists"
    at.mkdir(exist_ok=True)
    path = at / f"{uuid4().hex}.npy"
    write_array(path, np.ascontiguousarray(scorer.Z))
    cells = max(seen.ratings.cells["rows"])
    tasks = find_tasks(
        cells * 12 + USERS_PER_TASK * (scorer.U.shape[1] * 4 + 12 * n) + 3 * rows_per_block(d, scorer.dtype) * d * 4
    )
    bare, waiting = side._replace(routes=np.empty((0, 0))), deque[tuple[np.ndarray, Any]]()
    try:
        for s, (first, last) in enumerate(zip(side.bounds[:-1].tolist(), side.bounds[1:].tolist(), strict=True)):
            for a in range(first, last, USERS_PER_TASK):
                b = min(a + USERS_PER_TASK, last)
                held = None if seen.held is None else seen.held[a:b]
                given = (side.units_of(s), d, (a - first, b - first), held, np.array(scorer.U[a:b]), scorer.bias[a:b])
                if len(waiting) > 2 * tasks.threads:
                    rows, handle = waiting.popleft()
                    yield rows, tasks.gather([handle])[0]
                waiting.append((np.arange(a, b), tasks.submit(rank_shard, folder, bare, *given, path, min(n, d))))
        while waiting:
            rows, handle = waiting.popleft()
            yield rows, tasks.gather([handle])[0]
    finally:
        path.unlink(missing_ok=True)
