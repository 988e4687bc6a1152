"""Counts of pairs cut into tiles of few words, eight bytes a pair, for models that step on them one by one.

    rows and columns in B groups each     tile (r, c) holds the pairs of row group r and column group c

A pair is a record: its places within the two groups, and log n. Tiles lie one after the other in memory or, beyond
half of the memory budget, in a temporary file; either way they hold the same pairs in the same order.
"""

from __future__ import annotations

import tempfile
import threading
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.config import config
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import Engine, add
from twofold.core.engine.strata import groups
from twofold.kernels.glove import CELL, assign_cells_to_tiles, count_tiles

TILE = 4096  # pairs a tile should have at least
CACHE = 2**21  # bytes that the vectors of a tile should take at most; those of frequent words stay close to the core
FEW, MOST = 8, 128  # groups, wherever the two above allow
BLOCK = 2**19  # pairs that are dealt at once
PLACES = 2**16  # words a group can have


class Groups(NamedTuple):
    """Words in groups: the group of each and its place therein; the words group by group, and where groups start."""

    group: np.ndarray  # (V,) int32
    place: np.ndarray  # (V,) uint16
    order: np.ndarray  # (V,)
    bounds: np.ndarray  # (B+1,)


class Tiles:
    """The cells of all tiles, tile after tile."""

    def __init__(self, counts: np.ndarray):
        self.cuts: np.ndarray = np.concatenate([[0], np.cumsum(counts)])
        self.lock = threading.Lock()
        self.file: Any = None
        self.cells = np.empty(0, CELL)
        if len(self) * CELL.itemsize > config().memory // 2:
            self.file = tempfile.TemporaryFile(prefix="twofold-words-")  # noqa: SIM115  (see `close`)
        else:
            self.cells = np.empty(len(self), CELL)

    def __len__(self) -> int:
        return int(self.cuts[-1])

    def read(self, tile: int) -> np.ndarray:
        a, b = int(self.cuts[tile]), int(self.cuts[tile + 1])
        if self.file is None:
            return self.cells[a:b]
        cells = np.empty(b - a, CELL)
        with self.lock:
            self.file.seek(a * CELL.itemsize)
            self.file.readinto(cells.view(np.uint8))
        return cells

    def write(self, at: int, cells: np.ndarray) -> None:
        with self.lock:
            self.file.seek(at * CELL.itemsize)
            self.file.write(cells.tobytes())

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


class Dealt(NamedTuple):
    """A table of counts, dealt."""

    rows: Groups
    cols: Groups
    tiles: Tiles


def groups_for(words: int, line_bytes: int, cells: int) -> int:
    """How many groups: tiles whose vectors stay in a core's cache, but not so many that they have few pairs."""
    wanted = max(2 * words * line_bytes / CACHE, FEW)
    return max(int(min(wanted, np.sqrt(cells / TILE), MOST)), -(-words // PLACES), 1)


def group_words(cells: np.ndarray, count: int, rng: np.random.Generator) -> Groups:
    """Words in groups of nearly as many pairs, given how many each word has."""
    group = groups(cells, count, rng)
    order = np.argsort(group, kind="stable")  # frequent words first, so that they lie together
    bounds = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=count))])
    place = np.empty(len(cells), np.uint16)
    place[order] = np.arange(len(cells)) - bounds[group[order]]
    return Groups(group, place, order, bounds)


def cut_coarser(blocks: Blocks, count: int) -> Blocks:
    """The same table in blocks large enough that a number for each block and tile takes little memory."""
    return Blocks(blocks.source.finer(max(BLOCK, blocks.source.n_stored * count**2 // 2**23)))


def deal(blocks: Blocks, count: int, rng: np.random.Generator) -> Dealt:
    """Deal the positive cells of a sparse table into count × count tiles, reading it three times."""
    engine, blocks = Engine(), cut_coarser(blocks, count)
    stored = np.concatenate(engine.gather(engine.map(_per_row, blocks)))
    rows = group_words(stored, count, rng)
    cols = group_words(engine.reduce(add, engine.map(_per_column, blocks)), count, rng)
    own = blocks.rows(rows.group)
    shared = [engine.broadcast(value) for value in (cols.group, count)]
    per_block = engine.gather(engine.map(_per_tile, blocks, own, *shared))
    tiles = Tiles(np.asarray(np.sum(per_block, axis=0, dtype=np.int64)))
    before = np.zeros(count * count, np.int64)
    firsts = Rows()  # where each block's cells begin in each tile
    for found in per_block:
        firsts.append(tiles.cuts[:-1] + before)
        before = before + found
    each = (own, blocks.rows(rows.place), firsts, Rows(per_block))
    engine.gather(engine.map(_deal_block, blocks, *each, *shared, *map(engine.broadcast, (cols.place, tiles))))
    return Dealt(rows, cols, tiles)


def _per_row(X: sparse.csr_array) -> np.ndarray:
    return np.diff(X.indptr)


def _per_column(X: sparse.csr_array) -> np.ndarray:
    return np.bincount(X.indices, minlength=X.shape[1])


def _per_tile(X: sparse.csr_array, own: np.ndarray, across: np.ndarray, count: int) -> np.ndarray:
    found = np.zeros(count * count, np.int32)
    count_tiles(X.indptr, X.indices, X.data, own, across, count, found)
    return found


def _deal_block(
    X: sparse.csr_array,
    own: np.ndarray,
    place: np.ndarray,
    first: np.ndarray,
    found: np.ndarray,
    across: np.ndarray,
    count: int,
    places: np.ndarray,
    tiles: Tiles,
) -> None:
    """Put a block's cells where they belong: straight into memory, or sorted by tile and then written run by run."""
    given = (X.indptr, X.indices, X.data, own, across, place, places, count)
    if tiles.file is None:
        assign_cells_to_tiles(*given, first.copy(), tiles.cells)
        return
    ends = np.cumsum(found, dtype=np.int64)
    cells = np.empty(int(ends[-1]), CELL)
    assign_cells_to_tiles(*given, ends - found, cells)
    for tile in np.flatnonzero(found):
        tiles.write(int(first[tile]), cells[ends[tile] - found[tile] : ends[tile]])
