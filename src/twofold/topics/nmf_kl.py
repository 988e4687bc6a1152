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

from twofold.core.blocks import Blocks, Rows
from twofold.core.engine import add, engine_for
from twofold.core.observed import known
from twofold.kernels.kl import newton_cells, newton_counts

PASSES = 2  # over the coordinates of a row, a sweep
EXACT = 500  # passes at most, where codes are wanted to the end


class Rule(NamedTuple):
    """How the rows' half-step is made."""

    solver: str
    masked: bool  # whether cells are missing or count differently
    passes: int = PASSES
    tol: float = 0.0


class Sums(NamedTuple):
    """Added over blocks, in float64."""

    UR: np.ndarray  # (d,k) Σ w u x/ŷ
    U: np.ndarray  # (k,) Σ w u, or (d,k) over the known cells of each column
    cost: float  # Σ w (ŷ − x log ŷ)


class Cells(NamedTuple):
    """A block as the kernels see it."""

    X: sparse.csr_array  # stored: cells that are not zero; where cells are missing, all known ones, times their weight
    w: np.ndarray  # (cells,) weights of the known cells; empty where none is missing


def cells_of(X: Any, W: Any, masked: bool) -> Cells:
    """The stored cells of a block; W (m,d) are cell weights or None."""
    if not masked:
        return Cells(X if sparse.issparse(X) else sparse.csr_array(X), np.empty(0, X.dtype))
    X, W = (A.toarray() if sparse.issparse(A) else A for A in (X, W))
    there = known(X if W is None else np.where(W > 0, X, np.nan))
    if W is None:
        return Cells(there, np.ones(there.nnz, X.dtype))
    row = np.repeat(np.arange(X.shape[0]), np.diff(there.indptr))
    w = W[row, there.indices].astype(X.dtype)
    return Cells(sparse.csr_array((there.data * w, there.indices, there.indptr), shape=X.shape), w)


def newton(c: Cells, V: np.ndarray, U: np.ndarray, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """U improved in place; x/ŷ in the places of X, and the cost of each row without its weight."""
    X, dtype = c.X, V.dtype
    ratio, cost = np.empty(X.nnz, dtype), np.empty(X.shape[0])
    plan = (rule.passes, dtype.type(rule.tol), U, ratio, cost)
    if rule.masked:
        newton_cells(X.indptr, X.indices, X.data, c.w, V, *plan)
    else:
        s = V.sum(axis=0, dtype=np.float64).astype(dtype)
        newton_counts(X.indptr, X.indices, X.data, V, s, *plan)
    return ratio, cost


def multiplied(c: Cells, V: np.ndarray, U: np.ndarray, rule: Rule) -> np.ndarray:
    """Lee & Seung's rule for U."""
    ratio, _ = newton(c, V, U, rule._replace(passes=0))
    like = lambda values: sparse.csr_array((values, c.X.indices, c.X.indptr), shape=c.X.shape)  # noqa: E731
    s = like(c.w) @ V if rule.masked else V.sum(axis=0, dtype=np.float64).astype(V.dtype)
    return U * (like(ratio) @ V) / np.maximum(s, np.finfo(V.dtype).tiny)


def codes(X: Any, w: np.ndarray | None, W: Any, kept: tuple, V: np.ndarray, rule: Rule) -> tuple[tuple, Sums]:
    """The rows' half-step of one block, and what it adds."""
    c, U = cells_of(X, W, rule.masked), kept[0].copy()
    if rule.solver == "multiplicative":
        U, rule = multiplied(c, V, U, rule), rule._replace(passes=0)
    ratio, cost = newton(c, V, U, rule)
    weighted = U if w is None else U * w.astype(U.dtype)[:, None]
    like = lambda values: sparse.csr_array((values, c.X.indices, c.X.indptr), shape=c.X.shape)  # noqa: E731
    UR = np.asarray(like(ratio).T @ weighted, dtype=np.float64)
    if rule.masked:
        total = np.asarray(like(c.w).T @ weighted, dtype=np.float64)
    else:
        total = weighted.sum(axis=0, dtype=np.float64)
    return (U,), Sums(UR, total, float(cost.sum() if w is None else cost @ w))


def parts(V: np.ndarray, s: Sums) -> np.ndarray:
    """The shared half-step: minimises a bound that touches the objective at V. A part nobody uses stays."""
    V = V.astype(np.float64)
    return np.where(s.U > 0, V * s.UR / np.where(s.U > 0, s.U, 1.0), V)


class KullbackLeibler:
    """The problem as the sweeps see it. `logs` is Σ w (x log x − x), which no factor changes."""

    def __init__(self, blocks: Blocks, w: np.ndarray | None, W: Any, logs: float, rule: Rule):
        self.engine, self.blocks, self.rows = engine_for(blocks), blocks, blocks.rows(w)
        self.cells, self.logs, self.rule = blocks.rows(W), logs, rule

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        kept, s = self._codes(kept, V, self.rule)
        new = parts(V, s).astype(self.blocks.dtype)
        return kept, new, max(self.logs + s.cost, 0.0)

    def settled(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float]:
        kept, s = self._codes(kept, V, self.rule._replace(solver="newton", passes=EXACT, tol=end_of(V.dtype)))
        return kept, max(self.logs + s.cost, 0.0)

    def _codes(self, kept: Rows, V: np.ndarray, rule: Rule) -> tuple[Rows, Sums]:
        shared = (self.engine.broadcast(V), self.engine.broadcast(rule))
        return self.engine.reduce(
            add, self.engine.map(codes, self.blocks, self.rows, self.cells, kept, *shared), keep=True
        )


def end_of(dtype: np.dtype) -> float:
    return 1e-10 if dtype == np.float64 else 1e-5
