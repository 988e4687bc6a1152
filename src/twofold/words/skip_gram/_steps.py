"""One epoch of skip-gram, by one of three ways through the text.

    x_c, y_w, y_k ← a step down the gradient of   log(1 + exp(−⟨x_c, y_w⟩)) + Σ_k log(1 + exp(⟨x_c, y_k⟩))

In order:  run of lines after run of lines, window by window.
In tiles:  the pairs (c, w) of many runs are assigned to B × B tiles by the random groups of c and w, new ones each
           time. Tiles of a stratum have no vector in common, so threads work on them at once with the same result;
           the negatives of a pair come from the group of its w. In a tile, pairs of the same w share their negatives.
At once:   runs on all threads, which write the same X and Y without locks.

With the exact softmax, for vocabularies small enough to sum over:

    minimize  −Σ log p(w | c)     p(w | c) = exp(⟨x_c, y_w⟩ + b_w) / Σ_v exp(⟨x_c, y_v⟩ + b_v)

    c a word near the center w   X (V,S) words   Y (V,S) contexts   b (V,) biases, a column of Y where X has ones

One batch of pairs:  Z = X_c Yᵀ for its distinct c, then both factors step along their gradients (AdaGrad).
Pairs are counted, not computed one by one: a word that is near many centers costs one row of Z.
References: Gemulla, Haas, Nijkamp & Sismanis 2011 (strata); Zhu, Xu, Qu & Tang 2019 (negatives of one's own group);
Niu, Recht, Ré & Wright 2011 (no locks); Duchi, Hazan & Singer 2011 (AdaGrad); McDonald, Hall & Mann 2010 (averages).

On the workers of a cluster, shards of the text are learned apart, and their vectors averaged:

    each epoch   every shard makes its steps from the same X, Y       X_s, Y_s (V,D), on the worker that reads its text
                 X ← Σ_s n_s X_s / Σ_s n_s                            n_s (V,) counts of the words in the shard

A word of one shard alone keeps that shard's vector. Shards are cut by the text alone and averaged along a fixed tree:
the bits are the same for any number of workers, but not those of one machine, which makes all steps in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.engine.local import Engine, add
from twofold.core.engine.strata import strata
from twofold.core.progress import describe_rate, part
from twofold.core.seeds import generator
from twofold.io.documents import TextFiles
from twofold.kernels.skip_gram import (
    cbow,
    group_pairs,
    make_alias_table,
    sgns,
    sgns_tile,
    sort_pairs_by_tile,
    window_pairs,
)
from twofold.text.text_tasks import TextTasks
from twofold.text.vocabulary import Vocabulary
from twofold.words.corpus import Lines, Run, encode_corpus

TOKENS_PER_RUN = 2**13  # that a thread reads at a time
MAX_RUNS = 128  # between two reports of progress, and in one tiling
MIN_RUNS, TILINGS = 16, 32  # runs in one tiling, and tilings of a long text
MAX_GROUPS, MIN_GROUP_WORDS = 8, 64  # groups of words on either side
MIN_RATE = 1e-4  # share of the learning rate that remains at the end
CACHE_LINE_BYTES = 64
MAX_SOFTMAX_WORDS = 20_000  # of a vocabulary for the exact softmax
CELLS_PER_BATCH = 2**22  # of Z
MIN_SQUARES = 1e-10  # in the divisor of AdaGrad's first step
MAX_SHARDS = 32
PRIOR_COUNT = 1.0  # of every word, shared by all shards: the weight of a shard for words that it does not have


class State(NamedTuple):
    """Both factors with rows that fill cache lines (V,S), and AdaGrad's sums of squares for the exact softmax."""

    X: np.ndarray
    Y: np.ndarray
    of_X: np.ndarray
    of_Y: np.ndarray


class Sums(NamedTuple):
    """The cost of pairs at their steps, and their number."""

    loss: float
    pairs: int


class Plan(NamedTuple):
    """The settings of all sweeps."""

    runs: list[Run]
    tokens: int
    keep: np.ndarray  # probability that a word is kept, times 2^32
    cut: np.ndarray  # the negatives' alias table
    other: np.ndarray
    window: int
    negatives: int
    bias_column: int  # or −1
    rate: float
    epochs: int
    seed: int
    softmax: bool
    noise: np.ndarray  # (V,) weights of the negatives
    way: Callable[..., Sums]
    batch: int  # runs of one call
    fixed: bool  # all windows have the same width
    cbow: bool  # the mean of a window stands for its words

    def rate_at(self, done: int) -> float:
        """The rate after `done` tokens: it falls linearly."""
        return self.rate * max(1 - done / (self.epochs * self.tokens), MIN_RATE)


def keep_chances(counts: np.ndarray, subsample: float | None) -> np.ndarray:
    """The probability √(t/f) + t/f that a word of frequency f is kept, in units of 2^-32."""
    if not subsample:
        return np.full(len(counts), 2**32 - 1, np.uint32)
    share = subsample * counts.sum() / counts
    return (np.minimum(np.sqrt(share) + share, 1) * (2**32 - 1)).astype(np.uint32)


def align_to_cache(A: np.ndarray) -> np.ndarray:
    """A copy that starts at a cache line."""
    raw = np.empty(A.nbytes + CACHE_LINE_BYTES, np.uint8)
    at = -raw.ctypes.data % CACHE_LINE_BYTES
    out = raw[at : at + A.nbytes].view(A.dtype).reshape(A.shape)
    out[...] = A
    return out


def pad(A: np.ndarray, columns: int) -> np.ndarray:
    """A (V,D) with columns of zeros, `columns` in total, rounded up to whole cache lines."""
    per_line = CACHE_LINE_BYTES // A.itemsize
    out = np.zeros((len(A), -(-columns // per_line) * per_line), A.dtype)
    out[:, : A.shape[1]] = A
    return out


def epoch(state: State, plan: Plan, t: int) -> tuple[State, Sums]:
    """Visit all runs once; `state` itself does not change."""
    state = State(*map(align_to_cache, state))
    total, numbered, began = Sums(0.0, 0), list(enumerate(plan.runs)), monotonic()
    for a in range(0, len(numbered), plan.batch):
        some = numbered[a : a + plan.batch]
        start, stop = some[0][1].start, some[-1][1].stop
        with part(start, stop, plan.tokens, describe_rate(start, began, "words")):
            total = add(total, plan.way(some, state, plan, t))
    return state, total


def choose_way(runs: int, epochs: int, words: int, in_turn: bool, repeatable: bool) -> tuple[Callable[..., Sums], int]:
    """Choose the way through the text, and its runs of one call; by the size alone if it must be repeatable."""
    if in_turn or (repeatable and (runs < MIN_RUNS or words < 2 * MIN_GROUP_WORDS)):
        return visit, MAX_RUNS
    if not repeatable:
        return visit_at_once, MAX_RUNS
    return visit_tiles, min(max(runs * epochs // TILINGS, MIN_RUNS), MAX_RUNS)


def seed_of_run(plan: Plan, t: int, number: int) -> np.uint64:
    return np.uint64(generator(plan.seed, t, number).integers(2**63))


def visit(some: list[tuple[int, Run]], state: State, plan: Plan, t: int) -> Sums:
    """Make the steps of some runs in turn, in place; each run has random numbers of its own."""
    total = Sums(0.0, 0)
    for number, run in some:
        lines, (begin, end) = run.read(), (plan.rate_at(t * plan.tokens + at) for at in (run.start, run.stop))
        seed = seed_of_run(plan, t, number)
        if plan.softmax:
            made = learn_softmax(lines, *state, plan.keep, plan.bias_column, plan.window, begin, seed, plan.fixed)
        else:
            tables = plan.keep, plan.cut, plan.other
            settings = plan.bias_column, plan.window, plan.negatives, begin, end, seed, plan.fixed
            made = (cbow if plan.cbow else sgns)(*lines, *tables, state.X, state.Y, *settings)
        total = add(total, Sums(*made))
    return total


def visit_at_once(some: list[tuple[int, Run]], state: State, plan: Plan, t: int) -> Sums:
    """Make the steps of some runs on all threads, which write the same vectors without locks."""
    engine = Engine()
    shared = [engine.broadcast(s) for s in (state, plan, t)]
    return engine.reduce(add, engine.map(visit, Rows([[one] for one in some]), *shared))


# --- tiles --------------------------------------------------------------------------------------------------


class CenterGroup(NamedTuple):
    """The words of a group of centers, and the alias table of their places as negatives."""

    own: np.ndarray
    cut: np.ndarray
    other: np.ndarray


class Tiling(NamedTuple):
    """Pairs in order of their run and their tile; between runs there may be unused space."""

    pairs: np.ndarray  # (p,2)
    cuts: np.ndarray  # (runs, tiles+1) the start of each tile
    columns: list[CenterGroup]
    place: np.ndarray  # (V,) of a word in its group of centers


def visit_tiles(some: list[tuple[int, Run]], state: State, plan: Plan, t: int) -> Sums:
    """Make the steps of some runs, stratum by stratum."""
    engine, rng = Engine(), generator(plan.seed, t, some[0][0], 1)
    count = min(MAX_GROUPS, len(plan.noise) // MIN_GROUP_WORDS)
    tiling, total = assign_pairs_to_tiles(some, plan, t, count, rng), Sums(0.0, 0)
    start, stop = t * plan.tokens + some[0][1].start, t * plan.tokens + some[-1][1].stop
    rates = [plan.rate_at(start + (stop - start) * s // count) for s in range(count + 1)]
    for s, tiles in enumerate(strata(count, rng)):
        seeds = rng.integers(2**63, size=count)
        shared = [engine.broadcast(value) for value in (tiling, state, plan, rates[s : s + 2])]
        parts = engine.map(visit_tile, Rows(list(tiles)), Rows(list(seeds)), *shared)
        total = add(total, engine.reduce(add, parts))
    return total


def assign_pairs_to_tiles(
    some: list[tuple[int, Run]], plan: Plan, t: int, count: int, rng: np.random.Generator
) -> Tiling:
    """Assign the pairs of some runs to count × count tiles of random groups."""
    engine = Engine()
    near, center = (draw_groups(len(plan.noise), count, rng) for _ in range(2))
    shared = [engine.broadcast(value) for value in (near, center, count, plan, t)]
    begins = np.cumsum([0, *(max_pairs(run.read(), plan.window) for _, run in some)])
    pairs = np.empty((begins[-1], 2), np.int32)  # every run fills its part, without copies
    parts = Rows(pairs[a:b] for a, b in pairwise(begins))
    run_cuts = engine.gather(engine.map(assign_run, Rows(some), parts, *shared))
    columns, place = [], np.empty(len(center), np.int64)
    for g in range(count):
        own = np.flatnonzero(center == g)
        place[own] = np.arange(len(own))
        columns.append(CenterGroup(own, *make_alias_table(plan.noise[own])))
    return Tiling(pairs, np.array(run_cuts) + begins[:-1, None], columns, place)


def max_pairs(lines: Lines, window: int) -> int:
    """The number of pairs of some lines if every word is kept and every window has its full width.

    >>> max_pairs(Lines(np.zeros(7, np.int32), np.array([3, 7]), 0, 7), 5)
    18
    """
    inside = np.diff(np.clip(lines.ends, lines.first, lines.last), prepend=lines.first)
    return int(inside @ np.minimum(np.diff(lines.ends, prepend=0) - 1, 2 * window))


def draw_groups(words: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the group (V,) of each word: of every `count` consecutive words, one goes to each group.

    >>> draw_groups(7, 3, np.random.default_rng(0))
    array([2, 0, 1, 2, 1, 0, 2])
    """
    rounds = -(-words // count)
    return rng.permuted(np.tile(np.arange(count), (rounds, 1)), axis=1).ravel()[:words]


def assign_run(
    numbered: tuple[int, Run], pairs: np.ndarray, near: np.ndarray, center: np.ndarray, count: int, plan: Plan, t: int
) -> np.ndarray:
    """Write the pairs of one run into `pairs` in order of their tile; return the starts of the tiles."""
    number, run = numbered
    c, w = window_pairs(*run.read(), plan.keep, plan.window, seed_of_run(plan, t, number), plan.fixed)
    return sort_pairs_by_tile(c, w, near, center, count, pairs)


def visit_tile(tile: np.ndarray, seed: int, tiling: Tiling, state: State, plan: Plan, rates: list[float]) -> Sums:
    """Make the steps of a tile, in place; as many pairs share negatives as a center has neighbors on average."""
    sharing = plan.window + 1
    number, (own, cut, other) = int(tile[0]) * len(tiling.columns) + int(tile[1]), tiling.columns[tile[1]]
    cuts = tiling.cuts[:, number], tiling.cuts[:, number + 1]
    pairs = group_pairs(tiling.pairs, *cuts, tiling.place, len(own), sharing)
    if not len(pairs[0]):
        return Sums(0.0, 0)
    tables = sharing, own, cut, other, len(tiling.columns), state.X, state.Y
    settings: tuple[Any, ...] = (*tables, plan.bias_column, plan.negatives, *rates, np.uint64(seed))
    return Sums(*sgns_tile(*pairs, *settings))


# --- the exact softmax --------------------------------------------------------------------------------------


class Gradient(NamedTuple):
    """The cost of some pairs, and its gradient."""

    loss: float
    rows: np.ndarray  # the distinct c
    of_X: np.ndarray  # (rows,S)
    of_Y: np.ndarray  # (V,S)


def gradient(X: np.ndarray, Y: np.ndarray, near: np.ndarray, center: np.ndarray) -> Gradient:
    """The loss −Σ log p(center | near) of pairs (p,) and its gradient."""
    rows, at = np.unique(near, return_inverse=True)
    U = X[rows]
    Z = U @ Y.T  # (rows,V)
    Z -= Z.max(axis=1, keepdims=True)
    hit = Z[at, center].astype(np.float64)
    P = np.exp(Z, out=Z)
    total = P.sum(axis=1, dtype=np.float64)
    P *= (np.bincount(at) / total).astype(P.dtype)[:, None]
    np.subtract.at(P, (at, center), P.dtype.type(1))
    return Gradient(float((np.log(total[at]) - hit).sum()), rows, P @ Y, P.T @ U)


def descend(A: np.ndarray, squares: np.ndarray, rows: np.ndarray | slice, step: np.ndarray, rate: float) -> None:
    """Make a step of AdaGrad, in place: each number moves by rate over the root of its sum of squares."""
    squares[rows] += step**2
    A[rows] -= A.dtype.type(rate) * step / np.sqrt(squares[rows] + A.dtype.type(MIN_SQUARES))


def learn_softmax(
    lines: Lines, X: np.ndarray, Y: np.ndarray, of_X: np.ndarray, of_Y: np.ndarray, keep: np.ndarray, bias_column: int,
    window: int, rate: float, seed: np.uint64, fixed: bool = False,
) -> tuple[float, int]:  # fmt: skip
    """Make the steps of some lines, in place; return the loss and the number of pairs. Rate 0 changes nothing."""
    near, center = window_pairs(*lines, keep, window, seed, fixed)
    batch, loss = int(np.clip(CELLS_PER_BATCH // len(X), 32, 1024)), 0.0
    for a in range(0, len(near), batch):
        found = gradient(X, Y, near[a : a + batch], center[a : a + batch])
        loss += found.loss
        if rate:
            if bias_column >= 0:
                found.of_X[:, bias_column] = 0
            descend(X, of_X, found.rows, found.of_X, rate)
            descend(Y, of_Y, slice(None), found.of_Y, rate)
    return loss, len(near)


# --- shards on the workers of a cluster ---------------------------------------------------------------------


class Learned(NamedTuple):
    """Sums over shards: vectors times their weights, the weights (V,1), and the cost of pairs."""

    X: np.ndarray
    Y: np.ndarray
    weight: np.ndarray
    loss: float
    pairs: int
    tokens: int


def cut_shards(blocks: list[Any]) -> list[Any]:
    """Join blocks of files into at most MAX_SHARDS shards."""
    if not all(isinstance(block, TextFiles) for block in blocks):
        return blocks
    cuts = np.linspace(0, len(blocks), min(MAX_SHARDS, len(blocks)) + 1).astype(int)
    runs = [blocks[a:b] for a, b in pairwise(cuts)]
    return [replace(run[0], files=[file for block in run for file in block.files]) for run in runs]


def epoch_of_shards(
    shards: TextTasks, model: Any, vocabulary: Any, state: State, t: int, seed: int
) -> tuple[State, Learned]:
    """Visit all shards once, each from the same state."""
    tasks, shared = shards.tasks, (model, vocabulary, shards.tasks.hold(state), t, seed)
    n = len(shards.blocks)
    made = [tasks.submit(learn_shard, shard, *shared, s, n) for s, shard in enumerate(shards.blocks)]
    sums: Learned = tasks.gather([tasks.reduce(made)])[0]
    X, Y = sums.X / sums.weight, sums.Y / sums.weight
    if model.biases:
        X[:, model.n_components] = 1  # removes rounding errors
    return state._replace(X=X, Y=Y), sums


def learn_shard(
    shard: Any, model: Any, vocabulary: Vocabulary, state: State, t: int, seed: int, s: int, shards: int
) -> Learned:
    """Make the steps of one shard in one epoch."""
    shard_seed = int(generator(seed, 3, s).integers(2**31))
    with encode_corpus(shard, vocabulary) as text:
        counts = np.bincount(text.tokens, minlength=len(vocabulary))
        weight = (counts + PRIOR_COUNT / shards).astype(np.float32)[:, None]
        sums, tokens = Sums(0.0, 0), len(text)
        with suppress(InputError):  # if no line has two words
            state, sums = epoch(state, model._plan(text, vocabulary, model.learning_rate, shard_seed), t)
    return Learned(state.X * weight, state.Y * weight, weight, sums.loss, sums.pairs, tokens)
