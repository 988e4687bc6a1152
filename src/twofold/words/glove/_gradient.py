"""GloVe by full gradient descent: one step an epoch.

    U ← U − η/L · R Z,   Z ← Z − η/L · Rᵗ U,   b ← b − η/L · R1,   c ← c − η/L · Rᵗ1      R_ij = f(n_ij) · gap_ij

    L the largest sum of weights of a word, Σ_j f(n_ij) or Σ_i f(n_ij), so that η does not depend on the text

One sweep:  each block of words  its part of R, of the cost, and of the four gradients;  then one step
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from twofold.core import loop
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import Engine, add, stack_results
from twofold.core.seeds import generator
from twofold.words.glove._exact import Factors, Problem


class Part(NamedTuple):
    """The gradient of one block of words."""

    U: np.ndarray  # (n,k)
    b: np.ndarray  # (n,)


class Shared(NamedTuple):
    """Sums over all words."""

    Z: np.ndarray  # (V,k)
    c: np.ndarray  # (V,)
    cost: float
    pairs: int


def descend_fully(
    blocks: Blocks, k: int, *, rate: float, x_max: float, alpha: float, biases: bool, seed: int
) -> Problem:
    """Make one step a sweep."""
    V, engine = blocks.shape[0], Engine()
    U, Z = ((generator(seed, 0, side).random((V, k)) - 0.5) / k for side in (0, 1))
    weights = engine.gather(engine.map(sum_weights, blocks, engine.broadcast(x_max), engine.broadcast(alpha)))
    largest = max(
        float(max(rows.max(initial=0.0) for rows, _ in weights)), float(sum(cols for _, cols in weights).max())
    )
    step = rate / max(largest, 1e-300)

    def sweep(state: Factors, t: int) -> loop.Sweep:
        shared = [engine.broadcast(value) for value in (state, x_max, alpha)]
        parts = engine.map(compute_gradient, blocks, blocks.rows(state.U), blocks.rows(state.b), *shared)
        rows, sums = zip(*engine.gather(parts), strict=True)
        total: Shared = sums[0]
        for part in sums[1:]:
            total = add(total, part)
        bias_step = biases * step
        U, b = (stack_results([getattr(part, name) for part in rows]) for name in ("U", "b"))
        after = Factors(
            state.U - step * U, state.Z - step * total.Z, state.b - bias_step * b, state.c - bias_step * total.c
        )
        return loop.Sweep(after, total.cost / max(total.pairs, 1))

    def factors(state: Factors) -> Factors:
        return Factors(*(a.astype(np.float32) for a in state))

    return Problem(Factors(U, Z, np.zeros(V), np.zeros(V)), sweep, factors)


def weigh_pairs(n: np.ndarray, x_max: float, alpha: float) -> np.ndarray:
    """f(n), and 0 for cells without a count."""
    return np.minimum(1.0, (n / x_max) ** alpha) * (n > 0)


def sum_weights(X: sparse.csr_array, x_max: float, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the pairs of each word, and of each context in this block."""
    F = sparse.csr_array((weigh_pairs(X.data.astype(np.float64), x_max, alpha), X.indices, X.indptr), X.shape)
    return F.sum(axis=1), F.sum(axis=0)


def compute_gradient(
    X: sparse.csr_array, U: np.ndarray, b: np.ndarray, state: Factors, x_max: float, alpha: float
) -> tuple[Part, Shared]:
    """The gradient of the words of one block, whose vectors and biases are U and b."""
    n = X.data.astype(np.float64)
    f, known = weigh_pairs(n, x_max, alpha), n > 0
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    gap = b[row] + state.c[X.indices] - np.log(np.where(known, n, 1.0))
    for a in range(U.shape[1]):
        gap += U[row, a] * state.Z[X.indices, a]
    R = sparse.csr_array((f * gap, X.indices, X.indptr), X.shape)
    cost = 0.5 * float(f @ gap**2)
    return Part(R @ state.Z, R.sum(axis=1)), Shared(R.T @ U, R.sum(axis=0), cost, int(known.sum()))
