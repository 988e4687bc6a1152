"""Non-negative factorization under squared error: of whole tables, and of known or weighted cells.

    minimize  ½ Σ w ‖x − u Z‖² + penalties   over  U ≥ 0, Z ≥ 0      a side's penalty: λ₁ Σ u + ½ λ₂ Σ u²
    X (n,d) in row blocks   U (n,k) kept by the blocks   V = Zᵀ (d,k)

One sweep:  each block  U ← non-negative least squares given V, by coordinates (cd), or least squares clipped at 0
                        (als), or Lee & Seung's rule (mu); its sums ΣUᵀU, ΣUᵀX
            then once   V ← the same, given the sums, which also give the objective

    minimize  D = ½ Σ_Ω w_ij (x_ij − ⟨u_i, z_j⟩)²  for known cells Ω, plus the cost of missing cells: see problem

One sweep:  each row     u_i ← non-negative least squares over its known cells, given V
            each column  v_j ← the same, sides exchanged
The sum over all cells is one k×k matrix for all rows; each row subtracts the part of its known cells.
References: Cichocki & Phan 2009 (HALS); Gillis & Glineur 2012; Lee & Seung 2001; Berry et al. 2007 (projected ALS).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.known_cells import Observed, Side, take_known
from twofold.core.engine.local import Engine
from twofold.kernels.nnls import nnls, nnls_active_set, nnls_cells
from twofold.topics.nmf.problem import FREE, Holes, Penalty, Problem, WholeTable

MIN_GAIN = 0.01  # a row stops when a sweep gains less than this share of the gain of its first sweep
DENSE_SWEEPS, SPARSE_SWEEPS = 4, 2  # while G stays; with sparse data a sweep costs as much as a product with X
COLUMNS_PER_TASK = 4096  # of X, in the shared half-step
MAX_FLOAT64_CELLS = 2**18  # of a block whose float32 sums are made in float64: over few rows, their rounding does not
# average out and would look like convergence
SWEEPS_BEFORE_ACTIVE_SETS, MAX_FOLD_SWEEPS = 20, 2000  # for the best codes


class Rule(NamedTuple):
    """Settings of one half-step."""

    solver: str
    sweeps: int
    penalty: Penalty = FREE


class Sums(NamedTuple):
    """Added over blocks, in float64."""

    UU: np.ndarray  # (k,k)
    UX: np.ndarray  # (d,k)
    codes: float  # Σ w u


def solve(G: np.ndarray, B: np.ndarray, U: np.ndarray, rule: Rule) -> np.ndarray:
    """Improve one side U (m,k), given G = VᵀV (k,k) and B = XV (m,k)."""
    dtype, (l1, l2) = U.dtype, rule.penalty
    G, B = add_ridge(G, l2).astype(dtype, copy=False), np.asarray(B, dtype=dtype)
    if rule.solver == "mu":
        return U * (B / np.maximum(U @ G + dtype.type(l1), np.finfo(dtype).tiny))
    B = subtract(B, l1)
    if rule.solver == "als":
        return np.maximum(B @ np.linalg.pinv(G, hermitian=True).astype(dtype), 0)
    U = U.copy()
    nnls(G, B, U, rule.sweeps, dtype.type(MIN_GAIN))
    return clear_unused(G, U, l1)


def update_codes(X: Any, w: np.ndarray | None, kept: tuple, V: np.ndarray, rule: Rule) -> tuple[tuple, Sums]:
    """Improve the codes of one block; return them and the block's sums."""
    U = solve(V.T @ V, X @ V, kept[0], rule)
    return (U,), sum_codes(X, w, U)


def sum_codes(X: Any, w: np.ndarray | None, U: np.ndarray) -> Sums:
    """The sums of one block."""
    weighted = U if w is None else U * w.astype(U.dtype)[:, None]
    if X.shape[0] * X.shape[1] <= MAX_FLOAT64_CELLS:
        weighted = weighted.astype(np.float64, copy=False)
    UX = np.asarray(X.T @ weighted, dtype=np.float64)
    return Sums((weighted.T @ U).astype(np.float64), UX, float(weighted.sum(dtype=np.float64)))


def update_parts(V: np.ndarray, s: Sums, rule: Rule) -> np.ndarray:
    """Improve the parts. Columns of X are independent, so the engine maps over them."""
    engine = Engine()
    cuts = range(0, len(V), COLUMNS_PER_TASK)
    pieces = (Rows(A[a : a + COLUMNS_PER_TASK] for a in cuts) for A in (s.UX, V))
    return np.concatenate(engine.gather(engine.map(solve, engine.broadcast(s.UU), *pieces, engine.broadcast(rule))))


def add_ridge(G: np.ndarray, l2: float) -> np.ndarray:
    return G + G.dtype.type(l2) * np.eye(len(G), dtype=G.dtype) if l2 else G


def clear_unused(G: np.ndarray, U: np.ndarray, l1: float) -> np.ndarray:
    """Set codes of parts that explain nothing to zero if they have a cost."""
    if l1:
        U[:, np.diagonal(G) <= 0] = 0
    return U


def subtract(B: np.ndarray, l1: float) -> np.ndarray:
    return np.ascontiguousarray(B - B.dtype.type(l1) if l1 else B)


class Squared(WholeTable):
    """The problem on whole tables; `square` is Σ w x²."""

    def __init__(
        self, blocks: Blocks, w: np.ndarray | None, square: float, solver: str, codes: Penalty, parts: Penalty,
        holes: Holes,
    ):  # fmt: skip
        super().__init__(blocks, w, codes, parts, holes)
        self.square, sweeps = square, SPARSE_SWEEPS if blocks.is_sparse else DENSE_SWEEPS
        self.rules = [Rule(solver, sweeps, penalty) for penalty in (codes, parts)]

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        kept, s = self.update(update_codes, kept, V, self.rules[0])
        V = update_parts(V, s, self.rules[1]).astype(self.blocks.dtype, copy=False)
        l1, l2 = self.codes
        codes = l1 * s.codes + 0.5 * l2 * float(s.UU.trace())
        return kept, V, measure_misfit(self.square, V, s) + codes + self.parts.cost(V)

    def finish(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        kept, s = self.update(update_exactly, kept, V, self.codes)
        D = measure_misfit(self.square, V, s)
        return kept, D, self.holes.compute_kappa(D)


def measure_misfit(square: float, V: np.ndarray, s: Sums) -> float:
    """½ Σ w ‖x − uZ‖², a difference of large sums; less than their rounding error counts as zero."""
    rounding, V = 1e-13 if V.dtype == np.float64 else 1e-7, V.astype(np.float64, copy=False)
    left = 0.5 * (square - 2 * np.vdot(s.UX, V) + np.vdot(s.UU, V.T @ V))
    return left if left > rounding * square else 0.0


def solve_exactly(G: np.ndarray, B: np.ndarray, U: np.ndarray) -> None:
    """Bring U (m,k) to the minimum, in place."""
    done = np.empty(len(U), bool)
    nnls(G, B, U, SWEEPS_BEFORE_ACTIVE_SETS, min_gain(U.dtype))
    nnls_active_set(G.astype(np.float64), B, U, done)
    if not done.all():
        rest = U[~done]
        nnls(G, B[~done], rest, MAX_FOLD_SWEEPS, min_gain(U.dtype))
        U[~done] = rest


def update_exactly(X: Any, w: np.ndarray | None, kept: tuple, V: np.ndarray, penalty: Penalty) -> tuple[tuple, Sums]:
    """Bring the codes of one block to the minimum; return them and the block's sums."""
    U, G = kept[0].copy(), add_ridge(V.T @ V, penalty.l2)
    solve_exactly(G, subtract(X @ V, penalty.l1), U)
    return (clear_unused(G, U, penalty.l1),), sum_codes(X, w, U)


def min_gain(dtype: np.dtype) -> Any:
    """The gain at which exact codes stop, as a share of the first sweep's."""
    return dtype.type(1e-18 if dtype == np.float64 else 1e-10)


def fold(X: Any, V: np.ndarray, penalty: Penalty) -> tuple[np.ndarray, np.ndarray]:
    """The codes (m,k) of new rows, and the objective of each row."""
    U, G, B = np.zeros((X.shape[0], V.shape[1]), V.dtype), V.T @ V, np.asarray(X @ V)
    solve_exactly(add_ridge(G, penalty.l2), subtract(B, penalty.l1), U)
    u, square = U.astype(np.float64), X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    misfit = 0.5 * (square - 2 * (u * B).sum(axis=1) + np.einsum("ic,cb,ib->i", u, G.astype(np.float64), u))
    return U, penalty.add_to_rows(np.maximum(misfit, 0), U)


# --- missing or weighted cells ------------------------------------------------------------------------------


class Unknown(NamedTuple):
    """Targets of the missing cells of one side: cell (i,j) has weight κ e_i f_j and value t_i s_j."""

    e: np.ndarray  # (rows of this side,)
    t: np.ndarray
    f: np.ndarray  # (rows of the other side,)
    s: np.ndarray

    def totals(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Σ f v vᵀ, Σ f s v and Σ f s² over the other side."""
        weighted = V * self.f[:, None]
        return weighted.T @ V, weighted.T @ self.s, float(self.f @ self.s**2)


def describe_unknown(cells: Observed, holes: Holes) -> tuple[Unknown, Unknown]:
    """Along the rows, and along the columns."""
    (n, d), dtype = cells.shape, cells.dtype
    share = holes.share.astype(dtype)
    holed = (np.bincount(cells.X.indices, minlength=d) < n).astype(dtype)
    return (
        Unknown(share, np.ones(n, dtype), np.ones(d, dtype), holes.means),
        Unknown(holed, holes.means, share, np.ones(n, dtype)),
    )


class Plan(NamedTuple):
    """The length of a half-step, and the weight of missing cells in it."""

    sweeps: int
    kappa: float
    tol: float = MIN_GAIN


def solve_cells(
    X: sparse.csr_array, w: np.ndarray, U: np.ndarray, e: np.ndarray, t: np.ndarray, V: np.ndarray, sums: tuple,
    plan: Plan,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Improve the codes of one block; return them, and D and P of each row."""
    U, cost, number = U.copy(), np.empty((X.shape[0], 2)), V.dtype.type
    f, s, G, g, total = sums
    how = (plan.sweeps, number(plan.tol), number(plan.kappa))
    nnls_cells(X.indptr, X.indices, X.data, w, V, *how, e, t, f, s, G, g, total, U, cost)
    return U, cost


def solve_side(side: Side, out: Unknown, U: np.ndarray, V: np.ndarray, plan: Plan) -> tuple[np.ndarray, float, float]:
    """Improve all rows of one side; return them, D and P. Costs add row by row, so block bounds change no bit."""
    engine = Engine()
    rest = (out.f, out.s, *out.totals(V))
    rows = [side.blocks.rows(A) for A in (U, out.e, out.t)]
    shared = [engine.broadcast(value) for value in (V, rest, plan)]
    solved = engine.gather(engine.map(solve_cells, side.blocks, side.weights, *rows, *shared))
    D, P = np.concatenate([cost for _, cost in solved]).sum(axis=0)
    return np.concatenate([U for U, _ in solved]), float(D), float(P)


class MaskedSquared(Problem):
    """The problem where cells are missing or weighted; all known cells are in memory, and so is U."""

    def __init__(self, cells: Observed, holes: Holes):
        self.cells, self.holes = cells, holes
        self.out = describe_unknown(cells, holes)

    def compute_kappa(self, U: np.ndarray, V: np.ndarray) -> float:
        return self.holes.compute_kappa(solve_side(self.cells.rows, self.out[0], U, V, Plan(0, 0.0))[1])

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        ((U,),) = kept
        plan = Plan(DENSE_SWEEPS, self.compute_kappa(U, V))
        U, *_ = solve_side(self.cells.rows, self.out[0], U, V, plan)
        V, D, P = solve_side(self.cells.cols, self.out[1], V, U, plan)
        return Rows([(U,)]), V, self.holes.objective(D, P)

    def finish(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        ((U,),) = kept
        kappa = self.compute_kappa(U, V)
        U, D, _ = solve_side(self.cells.rows, self.out[0], U, V, Plan(MAX_FOLD_SWEEPS, kappa, min_gain(V.dtype)))
        return Rows([(U,)]), D, kappa


def fold_known(
    X: np.ndarray, V: np.ndarray, share: np.ndarray, means: np.ndarray, kappa: float
) -> tuple[np.ndarray, np.ndarray]:
    """The codes (m,k) of new rows with missing cells, and the objective of each row over its known cells."""
    c, U, (m, d) = take_known(X), np.zeros((X.shape[0], V.shape[1]), V.dtype), X.shape
    out = Unknown(share.astype(V.dtype), np.ones(m, V.dtype), np.ones(d, V.dtype), means)
    plan = Plan(MAX_FOLD_SWEEPS, kappa, min_gain(V.dtype))
    U, cost = solve_cells(c, np.ones(c.nnz, V.dtype), U, out.e, out.t, V, (out.f, out.s, *out.totals(V)), plan)
    return U, cost[:, 0]
