"""One epoch of skip-gram: runs of lines, on all threads at once, each with its own randomness and rate.

    x_c, y_w, y_k ← a step down the gradient of   log(1 + exp(−⟨x_c, y_w⟩)) + Σ_k log(1 + exp(⟨x_c, y_k⟩))

Threads write the same X and Y without locks; the order of the runs on one thread is that of the text.

With the exact softmax, for vocabularies small enough to sum over:

    minimise  −Σ log p(w | c)     p(w | c) = exp(⟨x_c, y_w⟩ + b_w) / Σ_v exp(⟨x_c, y_v⟩ + b_v)

    c a word near the center w   X (V,S) words   Y (V,S) contexts   b (V,) biases, column `one` of Y where X has ones

One batch of pairs:  Z = X_c Yᵀ for its distinct c, then both factors step along their gradients (AdaGrad).
Pairs are counted, not treated one by one: a word that is near many centers costs one row of Z.
References: Niu, Recht, Ré & Wright 2011 (no locks); Duchi, Hazan & Singer 2011 (AdaGrad).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.engine.local import Engine, add
from twofold.core.seeds import generator
from twofold.kernels.skip_gram import sgns, window_pairs
from twofold.words._corpus import Lines, Run
from twofold.words._progress import ProgressReport

RUN = 2**13  # tokens a thread takes at a time
BATCH = 128  # runs between two reports of progress
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
    in_order: bool

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


def epoch(state: State, plan: Plan, t: int, progress: ProgressReport | None = None) -> tuple[State, Sums]:
    """All runs once; what comes in stays as it is."""
    state = State(*map(align_to_cache, state))
    engine, total, numbered = Engine(), Sums(0.0, 0), list(enumerate(plan.runs))
    shared = [engine.broadcast(s) for s in (state, plan, t)]
    for a in range(0, len(numbered), BATCH):
        some = numbered[a : a + BATCH]
        parts = Rows([some] if plan.in_order else [[one] for one in some])
        total = add(total, engine.reduce(add, engine.map(visit, parts, *shared)))
        if progress is not None:
            progress.report(t * plan.tokens + some[-1][1].stop)
    return state, total


def visit(some: list[tuple[int, Run]], state: State, plan: Plan, t: int) -> Sums:
    """A few runs one after the other, in place; their randomness is their own."""
    total = Sums(0.0, 0)
    for number, run in some:
        lines, (begin, end) = run.read(), (plan.rate_at(t * plan.tokens + at) for at in (run.start, run.stop))
        seed = np.uint64(generator(plan.seed, t, number).integers(2**63))
        if plan.softmax:
            found = learn_softmax(lines, *state, plan.keep, plan.one, plan.window, begin, seed)
        else:
            tables = plan.keep, plan.cut, plan.other
            settings = plan.one, plan.window, plan.negatives, begin, end, seed
            found = sgns(*lines, *tables, state.X, state.Y, *settings)
        total = add(total, Sums(*found))
    return total


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
    window: int, rate: float, seed: np.uint64,
) -> tuple[float, int]:  # fmt: skip
    """One pass over some lines, in place; returns the loss and the number of pairs. At rate 0 nothing changes."""
    near, center = window_pairs(*lines, keep, window, seed)
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
