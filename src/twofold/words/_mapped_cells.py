"""A sparse table whose stored cells are functions of those of another, block by block.

A = g(n)   cell by cell, with g(0) = 0: the result is as sparse as n
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from twofold.core.config import config
from twofold.core.data.blocks import Blocks
from twofold.core.data.sources import Source
from twofold.core.engine.local import Engine, add

CELLS_PER_BLOCK = 2**22  # each block of a product with a thin matrix has a dense result
CELLS_PER_RUN = 2**18  # that are computed together

Change = Callable[[sparse.csr_array, int], sparse.csr_array]  # rows, and the number of the first → the same, changed


class MappedSource(Source):
    """Rows that are computed when they are read, or were computed before."""

    is_sparse = True

    def __init__(self, blocks: Blocks, change: Change):
        source = blocks.source
        self.source, self.change = source, change
        self.shape, self.dtype = source.shape, source.dtype
        self.bounds, self.indptr = source.bounds, source.indptr
        self.made: dict[int, sparse.csr_array] = {}

    def read(self, start: int, stop: int) -> sparse.csr_array:
        made = self.made.get(start)
        if made is not None and made.shape[0] == stop - start:
            return made
        return self.change(self.source.read(start, stop), start)

    def across(self) -> Any:
        raise NotImplementedError("no model reads these tables by columns")


def map_cells(blocks: Blocks, change: Change) -> Blocks:
    """The table change(n), computed once if it fits into a third of the memory budget, else at every reading."""
    source = MappedSource(Blocks(blocks.source.finer(CELLS_PER_BLOCK)), change)
    table = Blocks(source)
    if source.n_stored * (table.dtype.itemsize + 4) <= config().memory // 3:
        engine = Engine()
        made = engine.gather(engine.map(_read, table))
        source.made = dict(zip(map(int, table.bounds[:-1]), made, strict=True))
    return table


def _read(X: sparse.csr_array) -> sparse.csr_array:
    return X


def replace_cells(X: sparse.csr_array, cells: np.ndarray) -> sparse.csr_array:
    """X with other stored values; zeros are removed."""
    whole = bool(cells.all())
    places = (X.indices, X.indptr) if whole else (X.indices.copy(), X.indptr.copy())
    out = sparse.csr_array((cells.astype(X.dtype, copy=False), *places), shape=X.shape)
    if not whole:
        out.eliminate_zeros()
    return out


def runs_of_cells(indptr: np.ndarray) -> Iterator[slice]:
    """Cut rows into consecutive runs of about CELLS_PER_RUN stored cells."""
    cuts = np.searchsorted(indptr, np.arange(CELLS_PER_RUN, indptr[-1], CELLS_PER_RUN))
    return (slice(int(a), int(b)) for a, b in pairwise(np.unique([0, *cuts, len(indptr) - 1])))


def sum_blocks(blocks: Blocks, compute: Callable[[sparse.csr_array], Any]) -> Any:
    """Σ compute(block)"""
    engine = Engine()
    return engine.reduce(add, engine.map(compute, blocks))


def sum_squares(X: sparse.csr_array) -> float:
    """Σ x² of a block"""
    return float(np.square(X.data, dtype=np.float64).sum())


def sum_cells(X: sparse.csr_array) -> float:
    return float(X.data.sum(dtype=np.float64))


def sum_rows(X: sparse.csr_array) -> np.ndarray:
    return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()


def sum_columns(X: sparse.csr_array) -> np.ndarray:
    return np.bincount(X.indices, X.data, minlength=X.shape[1])
