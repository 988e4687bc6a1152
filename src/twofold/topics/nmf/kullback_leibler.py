"""Non-negative factorization under the generalized Kullback–Leibler divergence: of whole tables, and of known or
weighted cells.

    minimize  Σ w (x log(x/ŷ) − x + ŷ) + penalties   over  U ≥ 0, Z ≥ 0     ŷ = U Z
                                                    a side's penalty: λ₁ Σ u + ½ λ₂ Σ u²
    X (n,d) in row blocks   U (n,k) kept by the blocks   V = Zᵀ (d,k)

One sweep:  each block  U ← Newton's method by coordinates (newton), or Lee & Seung's rule (mu), given V;
                        its sums Σ w u x/ŷ and Σ w u
            then once   V ← V · Σ w u x/ŷ  /  (Σ w u + λ₁), which never goes up and needs nothing but sums
All zeros together cost ⟨Σu, Σz⟩. The objective is that before V moves, which the sums already contain. With missing or
weighted cells each row has its own sums, and V moves column by column; see problem for the cost of missing cells.
References: Hsieh & Dhillon 2011; Lee & Seung 2001.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import kl_div, xlogy

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import add, engine_for
from twofold.kernels.kl import newton_cells, newton_counts
from twofold.topics.nmf.problem import FREE, NO_HOLES, Holes, Penalty, Problem, WholeTable, sum_weighted

PASSES = 2  # over the coordinates of a row, a sweep
MAX_FOLD_PASSES = 500  # for the best codes


class Rule(NamedTuple):
    """Settings of the rows' half-step."""

    solver: str
    penalty: Penalty = FREE
    passes: int = PASSES
    tol: float = 0.0


class Sums(NamedTuple):
    """Added over blocks, in float64."""

    UR: np.ndarray  # (d,k) Σ w u x/ŷ
    U: np.ndarray  # (k,) Σ w u
    square: float  # Σ w u²
    cost: float  # Σ w (ŷ − x log ŷ) and the penalty of the codes


class Cells(NamedTuple):
    """A block in the form that the kernels read."""

    X: sparse.csr_array  # stored: cells that are not zero; where cells have weights, all that have one, times it
    w: np.ndarray | None = None  # (cells,) those weights

    def replace(self, values: np.ndarray) -> sparse.csr_array:
        """Other values in the same places."""
        return sparse.csr_array((values, self.X.indices, self.X.indptr), shape=self.X.shape)


def newton(c: Cells, V: np.ndarray, U: np.ndarray, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """Improve U in place; return x/ŷ in the places of X, and the cost of each row without its weight."""
    X, dtype = c.X, V.dtype
    ratio, cost = np.empty(X.nnz, dtype), np.empty(X.shape[0])
    plan = (rule.passes, dtype.type(rule.tol), U, ratio, cost)
    if c.w is None:
        s = (V.sum(axis=0, dtype=np.float64) + rule.penalty.l1).astype(dtype)
        newton_counts(X.indptr, X.indices, X.data, V, s, dtype.type(rule.penalty.l2), *plan)
    else:
        newton_cells(X.indptr, X.indices, X.data, c.w, V, *plan)
    return ratio, cost


def improve(c: Cells, V: np.ndarray, U: np.ndarray, rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Better codes by either rule, x/ŷ and the cost of each row."""
    U = U.copy()
    if rule.solver == "mu":
        rule = rule._replace(passes=0)
        ratio, _ = newton(c, V, U, rule)
        s = V.sum(axis=0, dtype=np.float64).astype(V.dtype) if c.w is None else c.replace(c.w) @ V
        s = np.maximum(s + V.dtype.type(rule.penalty.l1), np.finfo(V.dtype).tiny)
        U = minimize_bound(U * (c.replace(ratio) @ V), s, V.dtype.type(rule.penalty.l2))
    return (U, *newton(c, V, U, rule))


def minimize_bound(a: np.ndarray, b: np.ndarray, l2: float) -> np.ndarray:
    """argmin  −a log u + b u + ½ λ₂ u²  over u ≥ 0: the bound of a multiplicative rule; a ≥ 0, b > 0."""
    return 2 * a / (b + np.sqrt(b * b + 4 * l2 * a)) if l2 else a / b


def update_codes(X: Any, w: np.ndarray | None, kept: tuple, V: np.ndarray, rule: Rule) -> tuple[tuple, Sums]:
    """Improve the codes of one block; return them and the block's sums."""
    c = Cells(X if sparse.issparse(X) else sparse.csr_array(X))
    U, ratio, cost = improve(c, V, kept[0], rule)
    weighted = weigh(U, w)
    UR = np.asarray(c.replace(ratio).T @ weighted, dtype=np.float64)
    square = float(np.vdot(weighted, U)) if rule.penalty.l2 else 0.0
    return (U,), Sums(UR, weighted.sum(axis=0, dtype=np.float64), square, sum_weighted(cost, w))


def weigh(U: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    return U if w is None else U * w.astype(U.dtype)[:, None]


def update_parts(V: np.ndarray, UR: np.ndarray, U: np.ndarray, penalty: Penalty = FREE) -> np.ndarray:
    """Minimize a bound that touches the objective at V. A part that no row uses does not change."""
    V, b = V.astype(np.float64), U + penalty.l1
    return np.where(b > 0, minimize_bound(V * UR, np.where(b > 0, b, 1.0), penalty.l2), V)


class KullbackLeibler(WholeTable):
    """The problem on whole tables. `logs` is Σ w (x log x − x), which no factor changes."""

    def __init__(
        self, blocks: Blocks, w: np.ndarray | None, logs: float, solver: str = "newton", codes: Penalty = FREE,
        parts: Penalty = FREE, holes: Holes = NO_HOLES,
    ):  # fmt: skip
        super().__init__(blocks, w, codes, parts, holes)
        self.logs, self.solver = logs, solver

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        kept, s = self.update(update_codes, kept, V, Rule(self.solver, self.codes))
        new = update_parts(V, s.UR, s.U, self.parts).astype(self.blocks.dtype)
        return kept, new, max(self.logs + s.cost, 0.0) + self.parts.cost(V)

    def finish(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        l1, l2 = self.codes
        kept, s = self.update(update_codes, kept, V, exact_rule(V.dtype, self.codes))
        D = max(self.logs + s.cost - l1 * float(s.U.sum()) - 0.5 * l2 * s.square, 0.0)
        return kept, D, self.holes.compute_kappa(D)


def exact_rule(dtype: np.dtype, penalty: Penalty = FREE) -> Rule:
    """Settings that bring codes to their minimum."""
    return Rule("newton", penalty, MAX_FOLD_PASSES, 1e-10 if dtype == np.float64 else 1e-5)


def _start_codes(X: Any, V: np.ndarray) -> tuple[Any, np.ndarray]:
    """The data without the columns that no part can explain, and codes to start from."""
    unused = V.max(axis=1) <= 0
    if unused.any():
        X = X @ sparse.diags_array((~unused).astype(X.dtype)) if sparse.issparse(X) else np.where(unused, 0, X)
    total = np.asarray(X.sum(axis=1) if sparse.issparse(X) else np.nansum(X, axis=1)).ravel()
    level = total / max(float(V.sum()), 1e-300)
    return X, np.repeat(level.astype(V.dtype)[:, None], V.shape[1], axis=1)


def fold(X: Any, V: np.ndarray, penalty: Penalty) -> tuple[np.ndarray, np.ndarray]:
    """The codes (m,k) of new rows, and the objective of each row."""
    X, U = _start_codes(X, V)
    c = Cells(sparse.csr_array(X))
    _, cost = newton(c, V, U, exact_rule(V.dtype, penalty))
    x = c.X.data.astype(np.float64)
    return U, np.maximum(cost + np.asarray(c.replace(xlogy(x, x) - x).sum(axis=1)).ravel(), 0)


# --- missing or weighted cells ------------------------------------------------------------------------------


class Table(NamedTuple):
    """A block with its holes filled: all its cells, and which of them are known."""

    X: np.ndarray  # (m,d) holes at their column's mean
    w: np.ndarray  # (m,d) weights; of a hole, to be multiplied by κ
    known: np.ndarray  # (m,d)

    def cells(self, kappa: float) -> Cells:
        m, d = self.X.shape
        w = np.where(self.known, self.w, self.w.dtype.type(kappa) * self.w).ravel()
        indices, indptr = np.tile(np.arange(d, dtype=np.int32), m), np.arange(0, m * d + 1, d)
        return Cells(sparse.csr_array((self.X.ravel() * w, indices, indptr), shape=self.X.shape), w)


def fill(X: Any, W: Any, share: np.ndarray, means: np.ndarray) -> Table:
    """A block with its cell weights (or None), its holes filled by means with weight κ · share."""
    X, W = (A.toarray() if sparse.issparse(A) else A for A in (X, W))
    known = ~np.isnan(X) if W is None else ~np.isnan(X) & (W > 0)
    w = np.where(known, 1.0 if W is None else W, share[:, None]).astype(X.dtype)
    return Table(np.where(known, X, means.astype(X.dtype)), w, known)


def divergences(t: Table, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(m,2): of the known cells, and of the holes without κ."""
    y = np.maximum((U @ V.T).astype(np.float64, copy=False), 1e-30)
    cost = t.w * kl_div(t.X.astype(np.float64, copy=False), y)
    return np.stack([cost.sum(axis=1, where=t.known), cost.sum(axis=1, where=~t.known)], axis=1)


class CellSums(NamedTuple):
    """Added over blocks, in float64; of known cells, and of holes without κ."""

    UR: np.ndarray  # (d,k) Σ w u x/ŷ
    U: np.ndarray  # (d,k) Σ w u
    UR_holes: np.ndarray
    U_holes: np.ndarray
    D: float
    P: float


def update_cell_codes(
    X: Any, W: Any, w: np.ndarray | None, share: np.ndarray, kept: tuple, means: np.ndarray, V: np.ndarray,
    kappa: float, rule: Rule,
) -> tuple[tuple, CellSums]:  # fmt: skip
    """Improve the codes of one block; return them and the block's sums."""
    t = fill(X, W, share, means)
    U, ratio, _ = improve(t.cells(kappa), V, kept[0], rule)
    weighted, ratio = weigh(U, w), ratio.reshape(X.shape)
    D, P = divergences(t, U, V).T @ (np.ones(len(U)) if w is None else w)
    back = X.dtype.type(1 / kappa)  # ratio contains κ where cells are missing
    pieces = (np.where(t.known, *pair) for pair in ((ratio, 0), (t.w, 0), (0, ratio * back), (0, t.w)))
    UR, total, UR_holes, total_holes = ((A.T @ weighted).astype(np.float64) for A in pieces)
    return (U,), CellSums(UR, total, UR_holes, total_holes, float(D), float(P))


def measure_known_cells(
    X: Any, W: Any, w: np.ndarray | None, share: np.ndarray, kept: tuple, means: np.ndarray, V: np.ndarray
) -> float:
    """D of one block."""
    return sum_weighted(divergences(fill(X, W, share, means), kept[0], V)[:, 0], w)


class MaskedKullbackLeibler(Problem):
    """The problem where cells are missing or weighted: row weights w (n,), or cell weights W (n,d), or neither."""

    def __init__(self, blocks: Blocks, w: np.ndarray | None, W: Any, solver: str, holes: Holes):
        self.engine, self.blocks, self.holes, self.rule = engine_for(blocks), blocks, holes, Rule(solver)
        share = holes.share if w is None else holes.share / np.where(w > 0, w, 1.0)  # w multiplies whole rows
        self.rows = (blocks.rows(W), blocks.rows(w), blocks.rows(share))

    def compute_kappa(self, kept: Rows, V: np.ndarray) -> float:
        shared = (self.engine.broadcast(self.holes.means), self.engine.broadcast(V))
        known = self.engine.map(measure_known_cells, self.blocks, *self.rows, kept, *shared)
        return self.holes.compute_kappa(self.engine.reduce(add, known))

    def update(self, kept: Rows, V: np.ndarray, kappa: float, rule: Rule) -> tuple[Rows, CellSums]:
        shared = [self.engine.broadcast(value) for value in (self.holes.means, V, kappa, rule)]
        parts = self.engine.map(update_cell_codes, self.blocks, *self.rows, kept, *shared)
        return self.engine.reduce(add, parts, keep=True)

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        kept, s = self.update(kept, V, self.compute_kappa(kept, V), self.rule)
        kappa = self.holes.compute_kappa(s.D)
        new = update_parts(V, s.UR + kappa * s.UR_holes, s.U + kappa * s.U_holes)
        return kept, new.astype(self.blocks.dtype), self.holes.objective(s.D, s.P)

    def finish(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        kappa = self.compute_kappa(kept, V)
        kept, s = self.update(kept, V, kappa, exact_rule(V.dtype))
        return kept, s.D, kappa


def fold_known(
    X: np.ndarray, V: np.ndarray, share: np.ndarray, means: np.ndarray, kappa: float
) -> tuple[np.ndarray, np.ndarray]:
    """The codes (m,k) of new rows with missing cells, and the divergence of each row's known ones."""
    X, U = _start_codes(X, V)
    t = fill(X, None, share, np.where(V.max(axis=1) > 0, means, 0))
    newton(t.cells(kappa), V, U, exact_rule(V.dtype))
    return U, divergences(t, U, V)[:, 0]
