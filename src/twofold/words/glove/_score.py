"""How well GloVe's vectors say how often the words of another text meet.

mean over its pairs of  ½ f(n) (⟨u_i, z_j⟩ + b_i + c_j − log n)²,   n scaled to the size of the text of the fit
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import Engine, add
from twofold.words.glove._exact import Factors

CHUNK = 2**16  # pairs at once


class Measure(NamedTuple):
    """How pairs are weighed, and what their counts are multiplied by."""

    weighting: str
    x_max: float
    alpha: float
    scale: float

    def weight(self, n: np.ndarray) -> np.ndarray:
        return np.minimum(1.0, (n / self.x_max) ** self.alpha) if self.weighting == "power" else np.ones_like(n)

    def goal(self, n: np.ndarray) -> np.ndarray:
        return np.log1p(n) if self.weighting == "all" else np.log(n)


class Sums(NamedTuple):
    """Cost and number of some pairs."""

    cost: float
    pairs: int


def mean_cost(blocks: Blocks, ids: np.ndarray, found: Factors, how: Measure) -> float:
    """The mean over the pairs of `blocks`, whose rows and columns are the words `ids` (below 0: unknown)."""
    engine = Engine()
    shared = [engine.broadcast(value) for value in (ids, found, how)]
    sums = engine.reduce(add, engine.map(_block_cost, blocks, blocks.rows(ids), *shared))
    if not sums.pairs:
        raise InputError("none of the pairs is of words that the model knows. Give a text in the same language.")
    return sums.cost / sums.pairs


def _block_cost(X: sparse.csr_array, rows: np.ndarray, ids: np.ndarray, found: Factors, how: Measure) -> Sums:
    row, col = np.repeat(rows, np.diff(X.indptr)), ids[X.indices]
    known = (row >= 0) & (col >= 0) & (X.data > 0)
    row, col, n, total = row[known], col[known], X.data[known].astype(np.float64) * how.scale, 0.0
    for at in range(0, len(n), CHUNK):
        part = slice(at, at + CHUNK)
        i, j = row[part], col[part]
        gap = np.einsum("tk,tk->t", found.U[i], found.Z[j]).astype(np.float64)
        gap += found.b[i].astype(np.float64) + found.c[j] - how.goal(n[part])
        total += 0.5 * float(how.weight(n[part]) @ gap**2)
    return Sums(total, len(n))
