"""One epoch of skip-gram, by one of three ways through the text.

    x_c, y_w, y_k ← a step down the gradient of   log(1 + exp(−⟨x_c, y_w⟩)) + Σ_k log(1 + exp(⟨x_c, y_k⟩))

In order:  run of lines after run of lines, window by window.
In tiles:  the pairs (c, w) of many runs are dealt into B × B tiles by the groups that c and w belong to, drawn anew
           each time. Tiles of a stratum have no vector in common, so threads work on them at once with the same result;
           the negatives of a pair come from the group of its w. In a tile, pairs of the same w share their negatives.
At once:   runs on all threads, which write the same X and Y without locks.

With the exact softmax, for vocabularies small enough to sum over:

    minimise  −Σ log p(w | c)     p(w | c) = exp(⟨x_c, y_w⟩ + b_w) / Σ_v exp(⟨x_c, y_v⟩ + b_v)

    c a word near the center w   X (V,S) words   Y (V,S) contexts   b (V,) biases, column `one` of Y where X has ones

One batch of pairs:  Z = X_c Yᵀ for its distinct c, then both factors step along their gradients (AdaGrad).
Pairs are counted, not treated one by one: a word that is near many centers costs one row of Z.
References: Gemulla, Haas, Nijkamp & Sismanis 2011 (strata); Zhu, Xu, Qu & Tang 2019 (negatives of one's own group);
Niu, Recht, Ré & Wright 2011 (no locks); Duchi, Hazan & Singer 2011 (AdaGrad).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from time import monotonic
from typing import NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.engine.local import Engine, add
from twofold.core.engine.strata import strata
from twofold.core.progress import describe_rate, part
from twofold.core.seeds import generator
from twofold.kernels.skip_gram import group_pairs, make_alias_table, sgns, sgns_tile, sort_pairs_by_tile, window_pairs
from twofold.words.corpus import Lines, Run

RUN = 2**13  # tokens a thread takes at a time
BATCH = 128  # runs between two reports, and at most from one dealing of tiles to the next
FEW, ROUNDS = 16, 32  # runs to a dealing at least, and dealings in all, if the text is long enough
GROUPS, WORDS = 8, 64  # groups of words on either side, and words of a group at least
LEAST = 1e-4  # of the learning rate is left at the end
LINE = 64  # bytes of a cache line
MOST_WORDS = 20_000  # of a vocabulary for the exact softmax
CELLS = 2**22  # of Z in a batch
TINY = 1e-10  # keeps the first step of AdaGrad from dividing by zero


class State(NamedTuple):
    """Both factors with rows that fill cache lines (V,S), and AdaGrad's sums of squares for the exact softmax."""

    X: np.ndarray
    Y: np.ndarray
    of_X: np.ndarray
    of_Y: np.ndarray


class Sums(NamedTuple):
    """What pairs cost when their turn came, and how many they were."""

    loss: float
    pairs: int


class Plan(NamedTuple):
    """What stays the same over the sweeps."""

    runs: list[Run]
    tokens: int
    keep: np.ndarray  # chance to stay, of 2^32
    cut: np.ndarray  # the negatives' alias table
    other: np.ndarray
    window: int
    negatives: int
    one: int  # the column of the biases, or −1
    rate: float
    epochs: int
    seed: int
    softmax: bool
    noise: np.ndarray  # (V,) weights of the negatives
    way: Callable[..., Sums]
    batch: int  # runs that it takes at a time
    fixed: bool  # whether all windows have the same reach

    def rate_at(self, done: int) -> float:
        """The rate once so many tokens are done: down to next to nothing, in a straight line."""
        return self.rate * max(1 - done / (self.epochs * self.tokens), LEAST)


def keep_chances(counts: np.ndarray, subsample: float | None) -> np.ndarray:
    """How likely a word is to stay, √(t/f) + t/f for its frequency f, in units of 2^-32."""
    if not subsample:
        return np.full(len(counts), 2**32 - 1, np.uint32)
    share = subsample * counts.sum() / counts
    return (np.minimum(np.sqrt(share) + share, 1) * (2**32 - 1)).astype(np.uint32)


def align_to_cache(A: np.ndarray) -> np.ndarray:
    """A copy that begins with a cache line."""
    raw = np.empty(A.nbytes + LINE, np.uint8)
    at = -raw.ctypes.data % LINE
    out = raw[at : at + A.nbytes].view(A.dtype).reshape(A.shape)
    out[...] = A
    return out


def pad(A: np.ndarray, columns: int) -> np.ndarray:
    """A (V,D) with zeros beside it up to so many columns at least, and then to whole cache lines."""
    per_line = LINE // A.itemsize
    out = np.zeros((len(A), -(-columns // per_line) * per_line), A.dtype)
    out[:, : A.shape[1]] = A
    return out


def epoch(state: State, plan: Plan, t: int) -> tuple[State, Sums]:
    """All runs once; what comes in stays as it is."""
    state = State(*map(align_to_cache, state))
    total, numbered = Sums(0.0, 0), list(enumerate(plan.runs))
    began = monotonic()
    for a in range(0, len(numbered), plan.batch):
        some = numbered[a : a + plan.batch]
        start, stop = some[0][1].start, some[-1][1].stop
        with part(start, stop, plan.tokens, describe_rate(start, began, "words")):
            total = add(total, plan.way(some, state, plan, t))
    return state, total


def choose_way(runs: int, epochs: int, words: int, exact: bool, repeatable: bool) -> tuple[Callable[..., Sums], int]:
    """How to go through the text, and how many runs at a time: by its size alone, if that must be repeatable."""
    if exact or (repeatable and (runs < FEW or words < 2 * WORDS)):
        return visit, BATCH
    if not repeatable:
        return visit_at_once, BATCH
    return visit_tiles, min(max(runs * epochs // ROUNDS, FEW), BATCH)


def seed_of_run(plan: Plan, t: int, number: int) -> np.uint64:
    return np.uint64(generator(plan.seed, t, number).integers(2**63))


def visit(some: list[tuple[int, Run]], state: State, plan: Plan, t: int) -> Sums:
    """A few runs one after the other, in place; their randomness is their own."""
    total = Sums(0.0, 0)
    for number, run in some:
        lines, (begin, end) = run.read(), (plan.rate_at(t * plan.tokens + at) for at in (run.start, run.stop))
        seed = seed_of_run(plan, t, number)
        if plan.softmax:
            found = learn_softmax(lines, *state, plan.keep, plan.one, plan.window, begin, seed, plan.fixed)
        else:
            tables = plan.keep, plan.cut, plan.other
            settings = plan.one, plan.window, plan.negatives, begin, end, seed, plan.fixed
            found = sgns(*lines, *tables, state.X, state.Y, *settings)
        total = add(total, Sums(*found))
    return total


def visit_at_once(some: list[tuple[int, Run]], state: State, plan: Plan, t: int) -> Sums:
    """A few runs on all threads, which write the same vectors without locks."""
    engine = Engine()
    shared = [engine.broadcast(s) for s in (state, plan, t)]
    return engine.reduce(add, engine.map(visit, Rows([[one] for one in some]), *shared))


# --- tiles --------------------------------------------------------------------------------------------------


class Columns(NamedTuple):
    """A group of centers: its words, and the table by which their places are drawn as negatives."""

    own: np.ndarray
    cut: np.ndarray
    other: np.ndarray


class Dealt(NamedTuple):
    """Pairs in order of their run and their tile; between runs there is room that they did not need."""

    pairs: np.ndarray  # (p,2)
    cuts: np.ndarray  # (runs, tiles+1) where each begins
    columns: list[Columns]
    place: np.ndarray  # (V,) of a word among those of its group of centers


def visit_tiles(some: list[tuple[int, Run]], state: State, plan: Plan, t: int) -> Sums:
    """A few runs, stratum by stratum."""
    engine, rng, count = Engine(), generator(plan.seed, t, some[0][0], 1), min(GROUPS, len(plan.noise) // WORDS)
    dealt, total = deal(some, plan, t, count, rng), Sums(0.0, 0)
    start, stop = t * plan.tokens + some[0][1].start, t * plan.tokens + some[-1][1].stop
    rates = [plan.rate_at(start + (stop - start) * s // count) for s in range(count + 1)]
    for s, tiles in enumerate(strata(count, rng)):
        seeds = rng.integers(2**63, size=count)
        shared = [engine.broadcast(value) for value in (dealt, state, plan, rates[s : s + 2])]
        parts = engine.map(visit_tile, Rows(list(tiles)), Rows(list(seeds)), *shared)
        total = add(total, engine.reduce(add, parts))
    return total


def deal(some: list[tuple[int, Run]], plan: Plan, t: int, count: int, rng: np.random.Generator) -> Dealt:
    """The pairs of a few runs, in count × count tiles of groups that are drawn."""
    engine = Engine()
    near, center = (draw_groups(len(plan.noise), count, rng) for _ in range(2))
    shared = [engine.broadcast(value) for value in (near, center, count, plan, t)]
    begins = np.cumsum([0, *(most_pairs(run.read(), plan.window) for _, run in some)])
    pairs = np.empty((begins[-1], 2), np.int32)  # every run fills its own part, so that nothing is copied together
    parts = Rows(pairs[a:b] for a, b in pairwise(begins))
    own_cuts = engine.gather(engine.map(deal_run, Rows(some), parts, *shared))
    columns, place = [], np.empty(len(center), np.int64)
    for g in range(count):
        own = np.flatnonzero(center == g)
        place[own] = np.arange(len(own))
        columns.append(Columns(own, *make_alias_table(plan.noise[own])))
    return Dealt(pairs, np.array(own_cuts) + begins[:-1, None], columns, place)


def most_pairs(lines: Lines, window: int) -> int:
    """How many pairs some lines have if every word stays and every window has its full reach.

    >>> most_pairs(Lines(np.zeros(7, np.int32), np.array([3, 7]), 0, 7), 5)
    18
    """
    inside = np.diff(np.clip(lines.ends, lines.first, lines.last), prepend=lines.first)
    return int(inside @ np.minimum(np.diff(lines.ends, prepend=0) - 1, 2 * window))


def draw_groups(words: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """The group (V,) of each word: of every few words of like frequency, which follow each other, one for each group.

    >>> draw_groups(7, 3, np.random.default_rng(0))
    array([2, 0, 1, 2, 1, 0, 2])
    """
    rounds = -(-words // count)
    return rng.permuted(np.tile(np.arange(count), (rounds, 1)), axis=1).ravel()[:words]


def deal_run(
    numbered: tuple[int, Run], pairs: np.ndarray, near: np.ndarray, center: np.ndarray, count: int, plan: Plan, t: int
) -> np.ndarray:
    """The pairs of one run in order of their tile, put into `pairs`; returns where tiles begin."""
    number, run = numbered
    c, w = window_pairs(*run.read(), plan.keep, plan.window, seed_of_run(plan, t, number), plan.fixed)
    return sort_pairs_by_tile(c, w, near, center, count, pairs)


def visit_tile(tile: np.ndarray, seed: int, dealt: Dealt, state: State, plan: Plan, rates: list[float]) -> Sums:
    """The pairs of a tile, in place: as many share their negatives as words are around a center in the mean."""
    sharing = plan.window + 1
    number, (own, cut, other) = int(tile[0]) * len(dealt.columns) + int(tile[1]), dealt.columns[tile[1]]
    found = group_pairs(dealt.pairs, dealt.cuts[:, number], dealt.cuts[:, number + 1], dealt.place, len(own), sharing)
    if not len(found[0]):
        return Sums(0.0, 0)
    how = (
        sharing,
        own,
        cut,
        other,
        len(dealt.columns),
        state.X,
        state.Y,
        plan.one,
        plan.negatives,
        *rates,
        np.uint64(seed),
    )
    return Sums(*sgns_tile(*found, *how))


# --- the exact softmax --------------------------------------------------------------------------------------


class Gradient(NamedTuple):
    """What some pairs cost, and where that rises fastest."""

    loss: float
    rows: np.ndarray  # the distinct c
    of_X: np.ndarray  # (rows,S)
    of_Y: np.ndarray  # (V,S)


def check_size(V: int) -> None:
    if V > MOST_WORDS:
        raise InputError(
            f'loss="softmax" sums over the whole vocabulary for every word, and this one has {V:,} words; at most '
            f'{MOST_WORDS:,} are feasible. Set max_size={MOST_WORDS} or raise min_count, or use loss="negative".'
        )


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
    """AdaGrad, in place: A's rows go down their gradient, each number by rate over the root of its squares so far."""
    squares[rows] += step**2
    A[rows] -= A.dtype.type(rate) * step / np.sqrt(squares[rows] + A.dtype.type(TINY))


def learn_softmax(
    lines: Lines, X: np.ndarray, Y: np.ndarray, of_X: np.ndarray, of_Y: np.ndarray, keep: np.ndarray, one: int,
    window: int, rate: float, seed: np.uint64, fixed: bool = False,
) -> tuple[float, int]:  # fmt: skip
    """One pass over some lines, in place; returns the loss and the number of pairs. At rate 0 nothing changes."""
    near, center = window_pairs(*lines, keep, window, seed, fixed)
    batch, loss = int(np.clip(CELLS // len(X), 32, 1024)), 0.0
    for a in range(0, len(near), batch):
        found = gradient(X, Y, near[a : a + batch], center[a : a + batch])
        loss += found.loss
        if rate:
            if one >= 0:
                found.of_X[:, one] = 0
            descend(X, of_X, found.rows, found.of_X, rate)
            descend(Y, of_Y, slice(None), found.of_Y, rate)
    return loss, len(near)
