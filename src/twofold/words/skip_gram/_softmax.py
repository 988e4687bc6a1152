"""Skip-gram with the exact softmax, for vocabularies small enough to sum over.

    minimise  −Σ log p(w | c)     p(w | c) = exp(⟨x_c, y_w⟩ + b_w) / Σ_v exp(⟨x_c, y_v⟩ + b_v)

    c a word near the centre w   X (V,S) words   Y (V,S) contexts   b (V,) biases, column `one` of Y where X has ones

One batch of pairs:  Z = X_c Yᵀ for its distinct c, then both factors step along their gradients (AdaGrad).
Pairs are counted, not treated one by one: a word that is near many centres costs one row of Z.
Reference: Duchi, Hazan & Singer 2011 (AdaGrad).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.kernels.skip_gram import window_pairs
from twofold.words._corpus import Lines

MOST_WORDS = 20_000
CELLS = 2**22  # of Z in a batch
TINY = 1e-10  # keeps the first step of AdaGrad from dividing by zero


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


def gradient(X: np.ndarray, Y: np.ndarray, near: np.ndarray, centre: np.ndarray) -> Gradient:
    """The loss −Σ log p(centre | near) of pairs (p,) and its gradient."""
    rows, at = np.unique(near, return_inverse=True)
    U = X[rows]
    Z = U @ Y.T  # (rows,V)
    Z -= Z.max(axis=1, keepdims=True)
    hit = Z[at, centre].astype(np.float64)
    P = np.exp(Z, out=Z)
    total = P.sum(axis=1, dtype=np.float64)
    P *= (np.bincount(at) / total).astype(P.dtype)[:, None]
    np.subtract.at(P, (at, centre), P.dtype.type(1))
    return Gradient(float((np.log(total[at]) - hit).sum()), rows, P @ Y, P.T @ U)


def descend(A: np.ndarray, squares: np.ndarray, rows: np.ndarray | slice, step: np.ndarray, rate: float) -> None:
    """AdaGrad, in place: A's rows go down their gradient, each number by rate over the root of its squares so far."""
    squares[rows] += step**2
    A[rows] -= A.dtype.type(rate) * step / np.sqrt(squares[rows] + A.dtype.type(TINY))


def learn(
    lines: Lines, X: np.ndarray, Y: np.ndarray, of_X: np.ndarray, of_Y: np.ndarray, keep: np.ndarray, one: int,
    window: int, rate: float, seed: np.uint64,
) -> tuple[float, int]:  # fmt: skip
    """One pass over some lines, in place; returns the loss and the number of pairs. At rate 0 nothing changes."""
    near, centre = window_pairs(*lines, keep, window, seed)
    batch, loss = int(np.clip(CELLS // len(X), 32, 1024)), 0.0
    for a in range(0, len(near), batch):
        found = gradient(X, Y, near[a : a + batch], centre[a : a + batch])
        loss += found.loss
        if rate:
            if one >= 0:
                found.of_X[:, one] = 0
            descend(X, of_X, found.rows, found.of_X, rate)
            descend(Y, of_Y, slice(None), found.of_Y, rate)
    return loss, len(near)
