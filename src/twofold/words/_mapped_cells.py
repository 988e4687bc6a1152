"""A sparse table whose stored cells are made from those of another, block by block.

A = g(n)   cell by cell, with g(0) = 0: what is not stored stays so, and nothing becomes dense
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

BLOCK = 2**22  # stored cells a block: products with thin matrices add up a dense result for each

RUN = 2**18  # cells that are worked out at once

Change = Callable[[sparse.csr_array, int], sparse.csr_array]  # rows, and the number of the first → the same, changed


class MappedSource(Source):
    """Rows that are made as they are read, or were made before."""

    is_sparse = True

    def __init__(self, blocks: Blocks, change: Change):
        source = blocks.source
        self.source, self.change = source, change
        self.shape, self.dtype = source.shape, source.dtype
        self.bounds, self.indptr = source.bounds, source.indptr
        self.made: dict[int, sparse.csr_array] = {}

    def read(self, start: int, stop: int) -> sparse.csr_array:
        found = self.made.get(start)
        if found is not None and found.shape[0] == stop - start:
            return found
        return self.change(self.source.read(start, stop), start)

    def across(self) -> Any:
        raise NotImplementedError("no model looks at these tables along their columns")


def map_cells(blocks: Blocks, change: Change) -> Blocks:
    """The table change(n): made once and kept if it fits into a third of the memory budget, else at every reading."""
    source = MappedSource(Blocks(blocks.source.finer(BLOCK)), change)
    table = Blocks(source)
    if source.n_stored * (table.dtype.itemsize + 4) <= config().memory // 3:
        engine = Engine()
        made = engine.gather(engine.map(_read, table))
        source.made = dict(zip(map(int, table.bounds[:-1]), made, strict=True))
    return table


def _read(X: sparse.csr_array) -> sparse.csr_array:
    return X


def replace_cells(X: sparse.csr_array, cells: np.ndarray) -> sparse.csr_array:
    """X with other values where it has any; those that are 0 are no longer stored."""
    whole = bool(cells.all())
    places = (X.indices, X.indptr) if whole else (X.indices.copy(), X.indptr.copy())
    out = sparse.csr_array((cells.astype(X.dtype, copy=False), *places), shape=X.shape)
    if not whole:
        out.eliminate_zeros()
    return out


def runs_of_cells(indptr: np.ndarray) -> Iterator[slice]:
    """Rows that store RUN cells or a few more together, one run after the other."""
    cuts = np.searchsorted(indptr, np.arange(RUN, indptr[-1], RUN))
    return (slice(int(a), int(b)) for a, b in pairwise(np.unique([0, *cuts, len(indptr) - 1])))


def sum_squares(blocks: Blocks) -> float:
    """Σ x² over all cells."""
    engine = Engine()
    return engine.reduce(add, engine.map(_squares, blocks))


def _squares(X: sparse.csr_array) -> float:
    return float(np.square(X.data, dtype=np.float64).sum())
