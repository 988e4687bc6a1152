"""GloVe's epochs: AdaGrad steps, a pair of words after the other, in strata of tiles.

    pair (i, j) with gap d = ⟨u_i, z_j⟩ + b_i + c_j − log n:   every number x moves by −g/√G,  G ← G + g²
    where g is the learning rate times the gradient of ½ f(n) d²; without AdaGrad, by −g

    U, Z (V,2,p): a line a word, its numbers and beside them their G, in the order in which the words are dealt

One epoch:  B strata in turn; the B tiles of a stratum share no word and no context, so that threads take one each
"""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

import numpy as np

from twofold.core import loop
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import Engine
from twofold.core.engine.strata import strata
from twofold.core.progress import describe_rate, part
from twofold.core.seeds import generator
from twofold.kernels.glove import adagrad_cells, sgd_cells, shuffle_cells
from twofold.words.glove._exact import Factors, Problem
from twofold.words.glove._tiles import Dealt, deal, groups_for


class State(NamedTuple):
    """Lines of both sides in the order they are dealt: numbers (V,0,p), and the sums of their squared steps (V,1,p)."""

    U: np.ndarray
    Z: np.ndarray


class Plan(NamedTuple):
    """What stays the same over the epochs."""

    dealt: Dealt
    k: int
    rate: np.float32
    alpha: np.float32
    log_max: np.float32
    one: np.float32  # 0 without biases
    seed: int
    plain: bool = False  # steps of the rate itself, without AdaGrad


class Step(NamedTuple):
    """A tile to be visited: its groups, and what its order is drawn from."""

    row: int
    col: int
    seed: np.uint64


def width(k: int) -> int:
    """Numbers a line: the factors, the bias, the 1 that meets the other side's, and zeros up to whole registers."""
    return -(-(k + 2) // 8) * 8


def start(plan: Plan, words: int) -> State:
    """Factors at random in ±1/2k, biases zero, sums of squares one: the first steps are of the rate itself."""
    k, sides = plan.k, []
    for side, one_at in ((0, k + 1), (1, k)):
        lines = np.zeros((words, 2, width(k)), np.float32)
        lines[:, 0, :k] = (generator(plan.seed, 0, side).random((words, k), np.float32) - 0.5) / k
        lines[:, 0, one_at], lines[:, 1] = plan.one, 1.0
        sides.append(lines)
    return State(*sides)


def epoch(state: State, plan: Plan, t: int) -> tuple[State, float]:
    """All pairs once, stratum after stratum, and what they cost when their turn came."""
    U, Z, rng = state.U.copy(), state.Z.copy(), generator(plan.seed, 1, t)
    engine, tiles, total, done = Engine(), plan.dealt.tiles, 0.0, 0
    shared = [engine.broadcast(value) for value in (plan, U, Z)]
    B, began = len(plan.dealt.rows.bounds) - 1, monotonic()
    for chosen in strata(B, rng):
        seeds = rng.integers(2**64, size=B, dtype=np.uint64)
        steps = Rows(Step(int(r), int(c), seed) for (r, c), seed in zip(chosen, seeds, strict=True))
        pairs = sum(int(tiles.cuts[s.row * B + s.col + 1] - tiles.cuts[s.row * B + s.col]) for s in steps)
        with part(done, done + pairs, len(tiles), describe_rate(done, began, "pairs")):
            total += sum(engine.gather(engine.map(step_tile, steps, *shared)))
        done += pairs
    return State(U, Z), total / len(tiles)


def step_tile(step: Step, plan: Plan, U: np.ndarray, Z: np.ndarray) -> float:
    """The steps of one tile, in place: no other tile of the stratum touches its words and contexts."""
    rows, cols, tiles = plan.dealt
    cells = shuffle_cells(tiles.read(step.row * (len(rows.bounds) - 1) + step.col), step.seed)
    mine = U[rows.bounds[step.row] : rows.bounds[step.row + 1]]
    other = Z[cols.bounds[step.col] : cols.bounds[step.col + 1]]
    step_cells = sgd_cells if plan.plain else adagrad_cells
    return step_cells(cells, plan.k, plan.rate, plan.alpha, plan.log_max, plan.one, mine, other)


def get_factors(state: State, plan: Plan) -> Factors:
    """Both sides in the order of the vocabulary."""
    U, Z, k = np.empty_like(state.U[:, 0]), np.empty_like(state.Z[:, 0]), plan.k
    U[plan.dealt.rows.order], Z[plan.dealt.cols.order] = state.U[:, 0], state.Z[:, 0]
    return Factors(U[:, :k].copy(), Z[:, :k].copy(), U[:, k].copy(), Z[:, k + 1].copy())


def descend(
    blocks: Blocks,
    k: int,
    *,
    rate: float,
    x_max: float,
    alpha: float,
    biases: bool,
    seed: int,
    plain: bool = False,
) -> Problem:
    """The pairs dealt into tiles, and the epochs over them."""
    V, single = blocks.shape[0], np.float32
    count = groups_for(V, 2 * width(k) * 4, blocks.source.n_stored)
    dealt = deal(blocks, count, generator(seed, 2))
    plan = Plan(dealt, k, single(rate), single(alpha), single(np.log(x_max)), single(biases), seed, plain)

    def sweep(state: State, t: int) -> loop.Sweep:
        return loop.Sweep(*epoch(state, plan, t))

    return Problem(start(plan, V), sweep, lambda state: get_factors(state, plan), dealt.tiles.close)
