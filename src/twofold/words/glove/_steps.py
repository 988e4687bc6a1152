"""GloVe's epochs: AdaGrad steps, a pair of words after the other, in strata of tiles.

    pair (i, j) with gap d = ⟨u_i, z_j⟩ + b_i + c_j − log n:   every number x moves by −g/√G,  G ← G + g²
    where g is the learning rate times the gradient of ½ f(n) d²; without AdaGrad, by −g

    U, Z (V,2,p): a line a word, its numbers and beside them their G, in the order of the groups

One epoch:  B strata in turn; the B tiles of a stratum share no word and no context, so that threads take one each

Rows and columns are in B groups each; tile (r, c) holds the pairs of row group r and column group c. A pair is a record
of eight bytes: its places within the two groups, and log n. Tiles are consecutive in memory or, beyond half of the
memory budget, in a temporary file; both hold the same pairs in the same order.
"""

from __future__ import annotations

import tempfile
import threading
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core import loop
from twofold.core.config import config
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import Engine, add
from twofold.core.engine.strata import groups, strata
from twofold.core.progress import describe_rate, part
from twofold.core.seeds import generator
from twofold.kernels.glove import CELL, adagrad_cells, assign_cells_to_tiles, count_tiles, sgd_cells, shuffle_cells
from twofold.words.glove._whole import Factors, Problem

MIN_TILE_PAIRS = 4096
MAX_TILE_BYTES = 2**21  # of the vectors of a tile, which then stay in a core's cache
MIN_GROUPS, MAX_GROUPS = 8, 128  # where the two above allow
PAIRS_PER_BLOCK = 2**19  # that are assigned to tiles at once
MAX_GROUP_WORDS = 2**16


class Groups(NamedTuple):
    """Words in groups: the group of each and its place in it; the words group by group, and the bounds of groups."""

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


class Tiling(NamedTuple):
    """A table of counts in tiles."""

    rows: Groups
    cols: Groups
    tiles: Tiles


def count_groups(words: int, line_bytes: int, cells: int) -> int:
    """The number of groups: the vectors of a tile stay in a core's cache, and tiles do not have few pairs."""
    wanted = max(2 * words * line_bytes / MAX_TILE_BYTES, MIN_GROUPS)
    return max(int(min(wanted, np.sqrt(cells / MIN_TILE_PAIRS), MAX_GROUPS)), -(-words // MAX_GROUP_WORDS), 1)


def group_words(cells: np.ndarray, count: int, rng: np.random.Generator) -> Groups:
    """Divide words into groups of nearly equal numbers of pairs, given those of each word."""
    group = groups(cells, count, rng)
    order = np.argsort(group, kind="stable")  # frequent words first, so that they lie together
    bounds = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=count))])
    place = np.empty(len(cells), np.uint16)
    place[order] = np.arange(len(cells)) - bounds[group[order]]
    return Groups(group, place, order, bounds)


def make_tiling(blocks: Blocks, count: int, rng: np.random.Generator) -> Tiling:
    """Assign the positive cells of a sparse table to count × count tiles; read it three times."""
    engine = Engine()  # blocks are large enough that a number for each block and tile takes little memory
    blocks = Blocks(blocks.source.finer(max(PAIRS_PER_BLOCK, blocks.source.n_stored * count**2 // 2**23)))
    stored = np.concatenate(engine.gather(engine.map(_per_row, blocks)))
    rows = group_words(stored, count, rng)
    cols = group_words(engine.reduce(add, engine.map(_per_column, blocks)), count, rng)
    row_groups = blocks.rows(rows.group)
    shared = [engine.broadcast(value) for value in (cols.group, count)]
    per_block = engine.gather(engine.map(_per_tile, blocks, row_groups, *shared))
    tiles = Tiles(np.asarray(np.sum(per_block, axis=0, dtype=np.int64)))
    before = np.zeros(count * count, np.int64)
    firsts = Rows()  # the start of each block's cells in each tile
    for sizes in per_block:
        firsts.append(tiles.cuts[:-1] + before)
        before = before + sizes
    each = (row_groups, blocks.rows(rows.place), firsts, Rows(per_block))
    engine.gather(engine.map(_write_block, blocks, *each, *shared, *map(engine.broadcast, (cols.place, tiles))))
    return Tiling(rows, cols, tiles)


def _per_row(X: sparse.csr_array) -> np.ndarray:
    return np.diff(X.indptr)


def _per_column(X: sparse.csr_array) -> np.ndarray:
    return np.bincount(X.indices, minlength=X.shape[1])


def _per_tile(X: sparse.csr_array, row_groups: np.ndarray, col_groups: np.ndarray, count: int) -> np.ndarray:
    sizes = np.zeros(count * count, np.int32)
    count_tiles(X.indptr, X.indices, X.data, row_groups, col_groups, count, sizes)
    return sizes


def _write_block(
    X: sparse.csr_array, row_groups: np.ndarray, row_places: np.ndarray, first: np.ndarray, sizes: np.ndarray,
    col_groups: np.ndarray, count: int, col_places: np.ndarray, tiles: Tiles,
) -> None:  # fmt: skip
    """Write a block's cells into their tiles: in memory directly, in a file sorted by tile."""
    table = (X.indptr, X.indices, X.data, row_groups, col_groups, row_places, col_places, count)
    if tiles.file is None:
        assign_cells_to_tiles(*table, first.copy(), tiles.cells)
        return
    ends = np.cumsum(sizes, dtype=np.int64)
    cells = np.empty(int(ends[-1]), CELL)
    assign_cells_to_tiles(*table, ends - sizes, cells)
    for tile in np.flatnonzero(sizes):
        tiles.write(int(first[tile]), cells[ends[tile] - sizes[tile] : ends[tile]])


# --- epochs ------------------------------------------------------------------------------------


class State(NamedTuple):
    """Lines of both sides in the order of their groups: numbers (V,0,p), and sums of their squared steps (V,1,p)."""

    U: np.ndarray
    Z: np.ndarray


class Plan(NamedTuple):
    """The settings of all epochs."""

    tiling: Tiling
    k: int
    rate: np.float32
    alpha: np.float32
    log_max: np.float32
    one: np.float32  # 0 without biases
    seed: int
    plain: bool = False  # steps of the rate itself, without AdaGrad


class Step(NamedTuple):
    """A tile to visit: its groups, and the seed of its order."""

    row: int
    col: int
    seed: np.uint64


def width(k: int) -> int:
    """Numbers of a line: the factors, the bias, a 1 for the bias of the other side, and zeros up to whole registers."""
    return -(-(k + 2) // 8) * 8


def start(plan: Plan, words: int) -> State:
    """Random factors in ±1/2k, biases zero, sums of squares one, so that first steps have the learning rate itself."""
    k, sides = plan.k, []
    for side, one_at in ((0, k + 1), (1, k)):
        lines = np.zeros((words, 2, width(k)), np.float32)
        lines[:, 0, :k] = (generator(plan.seed, 0, side).random((words, k), np.float32) - 0.5) / k
        lines[:, 0, one_at], lines[:, 1] = plan.one, 1.0
        sides.append(lines)
    return State(*sides)


def epoch(state: State, plan: Plan, t: int) -> tuple[State, float]:
    """Visit all pairs once, stratum after stratum; return the state and their mean cost before each step."""
    U, Z, rng = state.U.copy(), state.Z.copy(), generator(plan.seed, 1, t)
    engine, tiles, total, done = Engine(), plan.tiling.tiles, 0.0, 0
    shared = [engine.broadcast(value) for value in (plan, U, Z)]
    B, began = len(plan.tiling.rows.bounds) - 1, monotonic()
    for chosen in strata(B, rng):
        seeds = rng.integers(2**64, size=B, dtype=np.uint64)
        steps = Rows(Step(int(r), int(c), seed) for (r, c), seed in zip(chosen, seeds, strict=True))
        pairs = sum(int(tiles.cuts[s.row * B + s.col + 1] - tiles.cuts[s.row * B + s.col]) for s in steps)
        with part(done, done + pairs, len(tiles), describe_rate(done, began, "pairs")):
            total += sum(engine.gather(engine.map(step_tile, steps, *shared)))
        done += pairs
    return State(U, Z), total / len(tiles)


def step_tile(step: Step, plan: Plan, U: np.ndarray, Z: np.ndarray) -> float:
    """Make the steps of one tile, in place; no other tile of the stratum has its words or contexts."""
    rows, cols, tiles = plan.tiling
    cells = shuffle_cells(tiles.read(step.row * (len(rows.bounds) - 1) + step.col), step.seed)
    words = U[rows.bounds[step.row] : rows.bounds[step.row + 1]]
    contexts = Z[cols.bounds[step.col] : cols.bounds[step.col + 1]]
    step_cells = sgd_cells if plan.plain else adagrad_cells
    return step_cells(cells, plan.k, plan.rate, plan.alpha, plan.log_max, plan.one, words, contexts)


def get_factors(state: State, plan: Plan) -> Factors:
    """Both sides in the order of the vocabulary."""
    U, Z, k = np.empty_like(state.U[:, 0]), np.empty_like(state.Z[:, 0]), plan.k
    U[plan.tiling.rows.order], Z[plan.tiling.cols.order] = state.U[:, 0], state.Z[:, 0]
    return Factors(U[:, :k].copy(), Z[:, :k].copy(), U[:, k].copy(), Z[:, k + 1].copy())


def descend(
    blocks: Blocks, k: int, *, rate: float, x_max: float, alpha: float, biases: bool, seed: int, plain: bool = False
) -> Problem:
    """Assign the pairs to tiles, and make epochs over them."""
    V, single = blocks.shape[0], np.float32
    count = count_groups(V, 2 * width(k) * 4, blocks.source.n_stored)
    tiling = make_tiling(blocks, count, generator(seed, 2))
    plan = Plan(tiling, k, single(rate), single(alpha), single(np.log(x_max)), single(biases), seed, plain)

    def sweep(state: State, t: int) -> loop.Sweep:
        return loop.Sweep(*epoch(state, plan, t))

    return Problem(start(plan, V), sweep, lambda state: get_factors(state, plan), tiling.tiles.close)
