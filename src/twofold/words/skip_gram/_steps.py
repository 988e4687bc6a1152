"""One epoch of skip-gram: runs of lines, on all threads at once, each with its own randomness and rate.

    x_c, y_w, y_k ← a step down the gradient of   log(1 + exp(−⟨x_c, y_w⟩)) + Σ_k log(1 + exp(⟨x_c, y_k⟩))

Threads write the same X and Y without locks; the order of the runs on one thread is that of the text.
Reference: Niu, Recht, Ré & Wright 2011.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.core.data.blocks import Rows
from twofold.core.engine.local import Engine, add
from twofold.core.seeds import generator
from twofold.kernels.skip_gram import sgns
from twofold.words._corpus import Run
from twofold.words._progress import Telling
from twofold.words.skip_gram import _softmax

RUN = 2**13  # tokens a thread takes at a time
BATCH = 128  # runs between two words about the progress
LEAST = 1e-4  # of the learning rate is left at the end
LINE = 64  # bytes of a cache line


class State(NamedTuple):
    """Both factors with rows that fill cache lines (V,S), and AdaGrad's sums of squares where there is a _softmax."""

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


def chances(counts: np.ndarray, subsample: float | None) -> np.ndarray:
    """How likely a word is to stay, √(t/f) + t/f for its frequency f, in units of 2^-32."""
    if not subsample:
        return np.full(len(counts), 2**32 - 1, np.uint32)
    share = subsample * counts.sum() / counts
    return (np.minimum(np.sqrt(share) + share, 1) * (2**32 - 1)).astype(np.uint32)


def aligned(A: np.ndarray) -> np.ndarray:
    """A copy that begins with a cache line."""
    raw = np.empty(A.nbytes + LINE, np.uint8)
    at = -raw.ctypes.data % LINE
    out = raw[at : at + A.nbytes].view(A.dtype).reshape(A.shape)
    out[...] = A
    return out


def padded(A: np.ndarray, columns: int) -> np.ndarray:
    """A (V,D) with zeros beside it up to so many columns at least, and then to whole cache lines."""
    per_line = LINE // A.itemsize
    out = np.zeros((len(A), -(-columns // per_line) * per_line), A.dtype)
    out[:, : A.shape[1]] = A
    return out


def epoch(state: State, plan: Plan, t: int, telling: Telling | None = None) -> tuple[State, Sums]:
    """All runs once; what comes in stays as it is."""
    state = State(*map(aligned, state))
    engine, total, numbered = Engine(), Sums(0.0, 0), list(enumerate(plan.runs))
    shared = [engine.broadcast(s) for s in (state, plan, t)]
    for a in range(0, len(numbered), BATCH):
        some = numbered[a : a + BATCH]
        parts = Rows([some] if plan.in_order else [[one] for one in some])
        total = add(total, engine.reduce(add, engine.map(visit, parts, *shared)))
        if telling is not None:
            telling.tell(t * plan.tokens + some[-1][1].stop)
    return state, total


def visit(some: list[tuple[int, Run]], state: State, plan: Plan, t: int) -> Sums:
    """A few runs one after the other, in place; their randomness is their own."""
    total = Sums(0.0, 0)
    for number, run in some:
        lines, (begin, end) = run.read(), (plan.rate_at(t * plan.tokens + at) for at in (run.start, run.stop))
        seed = np.uint64(generator(plan.seed, t, number).integers(2**63))
        if plan.softmax:
            found = _softmax.learn(lines, *state, plan.keep, plan.one, plan.window, begin, seed)
        else:
            tables = plan.keep, plan.cut, plan.other
            settings = plan.one, plan.window, plan.negatives, begin, end, seed
            found = sgns(*lines, *tables, state.X, state.Y, *settings)
        total = add(total, Sums(*found))
    return total
