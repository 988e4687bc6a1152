"""Half-steps of non-negative factorization under the generalised Kullback–Leibler divergence.

    minimise  Σ w (x log(x/ŷ) − x + ŷ)   over  U ≥ 0, Z ≥ 0     ŷ = U Z
    X (n,d) in row blocks   U (n,k) kept by the blocks   V = Zᵀ (d,k)

One sweep:  each block  U ← Newton's method by coordinates (newton), or Lee & Seung's rule (multiplicative), given V;
                        its sums Σ w u x/ŷ and Σ w u
            then once   V ← V · Σ w u x/ŷ  /  Σ w u, which never goes up and needs nothing but sums
Zeros cost only ⟨Σu, Σz⟩. The objective is that before V moves, since it comes free there.
References: Hsieh & Dhillon 2011; Lee & Seung 2001.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import add, engine_for
from twofold.kernels.kl import newton_cells, newton_counts
from twofold.topics.nmf._holes import Holes

PASSES = 2  # over the coordinates of a row, a sweep
EXACT = 500  # passes at most, where codes are wanted to the end


class Rule(NamedTuple):
    """How the rows' half-step is made."""

    solver: str
    passes: int = PASSES
    tol: float = 0.0


class Sums(NamedTuple):
    """Added over blocks, in float64."""

    UR: np.ndarray  # (d,k) Σ w u x/ŷ
    U: np.ndarray  # (k,) Σ w u
    cost: float  # Σ w (ŷ − x log ŷ)


class Cells(NamedTuple):
    """A block as the kernels see it."""

    X: sparse.csr_array  # stored: cells that are not zero; where cells have weights, all that have one, times it
    w: np.ndarray | None = None  # (cells,) those weights

    def like(self, values: np.ndarray) -> sparse.csr_array:
        """Other values in the same places."""
        return sparse.csr_array((values, self.X.indices, self.X.indptr), shape=self.X.shape)


def newton(c: Cells, V: np.ndarray, U: np.ndarray, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """U improved in place; x/ŷ in the places of X, and the cost of each row without its weight."""
    X, dtype = c.X, V.dtype
    ratio, cost = np.empty(X.nnz, dtype), np.empty(X.shape[0])
    plan = (rule.passes, dtype.type(rule.tol), U, ratio, cost)
    if c.w is None:
        newton_counts(X.indptr, X.indices, X.data, V, V.sum(axis=0, dtype=np.float64).astype(dtype), *plan)
    else:
        newton_cells(X.indptr, X.indices, X.data, c.w, V, *plan)
    return ratio, cost


def improved(c: Cells, V: np.ndarray, U: np.ndarray, rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Better codes by either rule, x/ŷ and the cost of each row."""
    U = U.copy()
    if rule.solver == "multiplicative":
        ratio, _ = newton(c, V, U, rule._replace(passes=0))
        s = V.sum(axis=0, dtype=np.float64).astype(V.dtype) if c.w is None else c.like(c.w) @ V
        U, rule = U * (c.like(ratio) @ V) / np.maximum(s, np.finfo(V.dtype).tiny), rule._replace(passes=0)
    return (U, *newton(c, V, U, rule))


def codes(X: Any, w: np.ndarray | None, kept: tuple, V: np.ndarray, rule: Rule) -> tuple[tuple, Sums]:
    """The rows' half-step of one block, and what it adds."""
    c = Cells(X if sparse.issparse(X) else sparse.csr_array(X))
    U, ratio, cost = improved(c, V, kept[0], rule)
    weighted = by_weight(U, w)
    UR = np.asarray(c.like(ratio).T @ weighted, dtype=np.float64)
    return (U,), Sums(UR, weighted.sum(axis=0, dtype=np.float64), float(cost.sum() if w is None else cost @ w))


def by_weight(U: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    return U if w is None else U * w.astype(U.dtype)[:, None]


def parts(V: np.ndarray, UR: np.ndarray, U: np.ndarray) -> np.ndarray:
    """The shared half-step: minimises a bound that touches the objective at V. A part nobody uses stays."""
    V = V.astype(np.float64)
    return np.where(U > 0, V * UR / np.where(U > 0, U, 1.0), V)


class KullbackLeibler:
    """The problem as the sweeps see it. `logs` is Σ w (x log x − x), which no factor changes."""

    def __init__(self, blocks: Blocks, w: np.ndarray | None, logs: float, holes: Holes, rule: Rule):
        self.engine, self.blocks, self.rows = engine_for(blocks), blocks, blocks.rows(w)
        self.logs, self.holes, self.rule = logs, holes, rule

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        kept, s = self._codes(kept, V, self.rule)
        return kept, parts(V, s.UR, s.U).astype(self.blocks.dtype), max(self.logs + s.cost, 0.0)

    def settled(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        """Codes to the end, given V; the divergence; and what share of the data that leaves unexplained."""
        kept, s = self._codes(kept, V, to_the_end(V.dtype))
        D = max(self.logs + s.cost, 0.0)
        return kept, D, self.holes.unexplained(D)

    def _codes(self, kept: Rows, V: np.ndarray, rule: Rule) -> tuple[Rows, Sums]:
        shared = (self.engine.broadcast(V), self.engine.broadcast(rule))
        return self.engine.reduce(add, self.engine.map(codes, self.blocks, self.rows, kept, *shared), keep=True)


def to_the_end(dtype: np.dtype) -> Rule:
    return Rule("newton", EXACT, 1e-10 if dtype == np.float64 else 1e-5)
