"""Half-steps of non-negative factorization under squared error: of whole tables, and of known or weighted cells.

    minimise  ½ Σ w ‖x − u Z‖² + penalties   over  U ≥ 0, Z ≥ 0      a side's penalty: λ₁ Σ u + ½ λ₂ Σ u²
    X (n,d) in row blocks   U (n,k) kept by the blocks   V = Zᵀ (d,k)

One sweep:  each block  U ← non-negative least squares given V, by coordinates (cd), or least squares clipped at 0
                        (als), or Lee & Seung's rule (mu); its sums ΣUᵀU, ΣUᵀX
            then once   V ← the same, given the sums, which also give the objective

    minimise  D = ½ Σ_Ω w_ij (x_ij − ⟨u_i, z_j⟩)²  for known cells Ω, and a little of what is outside: _missing_cells

One sweep:  each row     u_i ← non-negative least squares over its known cells, given V
            each column  v_j ← the same, sides exchanged
What all cells would add is one k×k matrix for all rows; a row takes back what its known cells have of it.
References: Cichocki & Phan 2009 (HALS); Gillis & Glineur 2012; Lee & Seung 2001; Berry et al. 2007 (projected ALS).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.known_cells import Observed, Side, known
from twofold.core.engine.local import Engine, add, engine_for
from twofold.kernels.nnls import nnls, nnls_active_set, nnls_cells
from twofold.topics.nmf.problem import FREE, Holes, Penalty

ENOUGH = 0.01  # a row stops when a sweep gains this share of what its first one gained
DENSE_SWEEPS, SPARSE_SWEEPS = 4, 2  # while G stays; with sparse data a sweep costs as much as a product with X
CHUNK = 4096  # columns of X a task, in the shared half-step
SMALL = 2**18  # cells of a block up to which sums in single precision are made in double: over few rows, their rounding
# does not average out and would pass for the end
NEAR, EXACT = 20, 2000  # sweeps before active sets take over, where codes are wanted to the end; and without them


class Rule(NamedTuple):
    """How a half-step is made."""

    solver: str
    sweeps: int
    penalty: Penalty = FREE


class Sums(NamedTuple):
    """Added over blocks, in float64."""

    UU: np.ndarray  # (k,k)
    UX: np.ndarray  # (d,k)
    codes: float  # Σ w u


def solve(G: np.ndarray, B: np.ndarray, U: np.ndarray, rule: Rule) -> np.ndarray:
    """One side given G = VᵀV (k,k) and B = XV (m,k), from where U (m,k) stands."""
    dtype, (l1, l2) = U.dtype, rule.penalty
    if rule.solver == "mu":
        G, B = bend(G, l2).astype(dtype, copy=False), np.asarray(B, dtype=dtype)
        return U * (B / np.maximum(U @ G + dtype.type(l1), np.finfo(dtype).tiny))
    G, B = bend(G, l2).astype(dtype, copy=False), subtract(np.asarray(B, dtype=dtype), l1)
    if rule.solver == "als":
        return np.maximum(B @ np.linalg.pinv(G, hermitian=True).astype(dtype), 0)
    U = U.copy()
    nnls(G, B, U, rule.sweeps, dtype.type(ENOUGH))
    return clear(G, U, l1)


def update_codes(X: Any, w: np.ndarray | None, kept: tuple, V: np.ndarray, rule: Rule) -> tuple[tuple, Sums]:
    """The rows' half-step of one block, and what it adds."""
    U = solve(V.T @ V, X @ V, kept[0], rule)
    return (U,), add_up(X, w, U)


def add_up(X: Any, w: np.ndarray | None, U: np.ndarray) -> Sums:
    """What the codes of one block add to the sums."""
    weighted = U if w is None else U * w.astype(U.dtype)[:, None]
    if X.shape[0] * X.shape[1] <= SMALL:
        weighted = weighted.astype(np.float64, copy=False)
    UX = np.asarray(X.T @ weighted, dtype=np.float64)
    return Sums((weighted.T @ U).astype(np.float64), UX, float(weighted.sum(dtype=np.float64)))


def update_parts(V: np.ndarray, s: Sums, rule: Rule) -> np.ndarray:
    """The shared half-step: the same, transposed. Columns of X are independent, so they go through the engine."""
    engine = Engine()
    cuts = range(0, len(V), CHUNK)
    pieces = (Rows(A[a : a + CHUNK] for a in cuts) for A in (s.UX, V))
    done = engine.map(solve, engine.broadcast(s.UU), *pieces, engine.broadcast(rule))
    return np.concatenate(engine.gather(done))


def bend(G: np.ndarray, l2: float) -> np.ndarray:
    return G + G.dtype.type(l2) * np.eye(len(G), dtype=G.dtype) if l2 else G


def clear(G: np.ndarray, U: np.ndarray, l1: float) -> np.ndarray:
    """U, where what explains nothing is zero if it costs something."""
    if l1:
        U[:, np.diagonal(G) <= 0] = 0
    return U


class Squared:
    """The problem on whole tables."""

    def __init__(
        self, blocks: Blocks, w: np.ndarray | None, square: float, holes: Holes, rule: Rule, parts: Penalty = FREE
    ):
        self.engine, self.blocks, self.rows = engine_for(blocks), blocks, blocks.rows(w)
        self.square, self.holes, self.rule, self.parts = square, holes, rule, rule._replace(penalty=parts)

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        shared = (self.engine.broadcast(V), self.engine.broadcast(self.rule))
        parts_of = self.engine.map(update_codes, self.blocks, self.rows, kept, *shared)
        kept, s = self.engine.reduce(add, parts_of, keep=True)
        V = update_parts(V, s, self.parts).astype(self.blocks.dtype, copy=False)
        return kept, V, self.objective(V, s)

    def objective(self, V: np.ndarray, s: Sums) -> float:
        l1, l2 = self.rule.penalty
        codes = l1 * s.codes + 0.5 * l2 * float(s.UU.trace())
        return misfit(self.square, V, s) + codes + self.parts.penalty.cost(V)

    def finish(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        """The best codes given V; the misfit ½ Σ w ‖x − uZ‖²; and what share of the data that leaves unexplained."""
        shared = (self.engine.broadcast(V), self.engine.broadcast(self.rule.penalty))
        kept, s = self.engine.reduce(
            add, self.engine.map(exact_codes, self.blocks, self.rows, kept, *shared), keep=True
        )
        D = misfit(self.square, V, s)
        return kept, D, self.holes.unexplained(D)


def misfit(square: float, V: np.ndarray, s: Sums) -> float:
    """½ Σ w ‖x − uZ‖², a difference of large sums: what may be their rounding counts as nothing."""
    rounding, V = 1e-13 if V.dtype == np.float64 else 1e-7, V.astype(np.float64, copy=False)
    left = 0.5 * (square - 2 * np.vdot(s.UX, V) + np.vdot(s.UU, V.T @ V))
    return left if left > rounding * square else 0.0


def solve_exactly(G: np.ndarray, B: np.ndarray, U: np.ndarray) -> None:
    """U (m,k) ← the minimum, in place, from where it stands."""
    done = np.empty(len(U), bool)
    nnls(G, B, U, NEAR, exact_tol(U.dtype))
    nnls_active_set(G.astype(np.float64), B, U, done)
    if not done.all():
        rest = U[~done]
        nnls(G, B[~done], rest, EXACT, exact_tol(U.dtype))
        U[~done] = rest


def exact_codes(X: Any, w: np.ndarray | None, kept: tuple, V: np.ndarray, penalty: Penalty) -> tuple[tuple, Sums]:
    """As `codes`, to the minimum."""
    U, G = kept[0].copy(), bend(V.T @ V, penalty.l2)
    solve_exactly(G, subtract(X @ V, penalty.l1), U)
    return (clear(G, U, penalty.l1),), add_up(X, w, U)


def subtract(B: np.ndarray, l1: float) -> np.ndarray:
    return np.ascontiguousarray(B - B.dtype.type(l1) if l1 else B)


def exact_tol(dtype: np.dtype) -> Any:
    """What counts as no gain any more, as a share of the first sweep's."""
    return dtype.type(1e-18 if dtype == np.float64 else 1e-10)


def fold(X: Any, V: np.ndarray, penalty: Penalty) -> tuple[np.ndarray, np.ndarray]:
    """The codes (m,k) of new rows, and the objective of each row."""
    U, G, B = np.zeros((X.shape[0], V.shape[1]), V.dtype), V.T @ V, np.asarray(X @ V)
    solve_exactly(bend(G, penalty.l2), subtract(B, penalty.l1), U)
    u, square = U.astype(np.float64), X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    misfit = 0.5 * (square - 2 * (u * B).sum(axis=1) + np.einsum("ic,cb,ib->i", u, G.astype(np.float64), u))
    return U, np.maximum(misfit, 0) + penalty.l1 * u.sum(axis=1) + 0.5 * penalty.l2 * (u**2).sum(axis=1)


# --- missing or weighted cells ------------------------------------------------------------------------------


class Unknown(NamedTuple):
    """What one side should be where it is not known: a missing cell counts κ e_i f_j and stands at t_i s_j."""

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
    """How far a half-step goes, and what the missing cells count in it."""

    sweeps: int
    kappa: float
    tol: float = ENOUGH


def solve_cells(
    X: sparse.csr_array,
    w: np.ndarray,
    U: np.ndarray,
    e: np.ndarray,
    t: np.ndarray,
    V: np.ndarray,
    rest: tuple,
    plan: Plan,
) -> tuple[np.ndarray, np.ndarray]:
    """The half-step of one block, and both costs of each of its rows."""
    U, cost, number = U.copy(), np.empty((X.shape[0], 2)), V.dtype.type
    f, s, G, g, total = rest
    how = (plan.sweeps, number(plan.tol), number(plan.kappa))
    nnls_cells(X.indptr, X.indices, X.data, w, V, *how, e, t, f, s, G, g, total, U, cost)
    return U, cost


def solve_side(side: Side, out: Unknown, U: np.ndarray, V: np.ndarray, plan: Plan) -> tuple[np.ndarray, float, float]:
    """All rows of one side given the other; costs are summed row by row, so cuts do not show."""
    engine = Engine()
    rest = (out.f, out.s, *out.totals(V))
    rows = [side.blocks.rows(A) for A in (U, out.e, out.t)]
    shared = [engine.broadcast(value) for value in (V, rest, plan)]
    found = engine.gather(engine.map(solve_cells, side.blocks, side.weights, *rows, *shared))
    D, P = np.concatenate([cost for _, cost in found]).sum(axis=0)
    return np.concatenate([U for U, _ in found]), float(D), float(P)


class MaskedSquared:
    """The problem where cells are missing or weighted; all known cells are in memory, and so is U."""

    def __init__(self, cells: Observed, holes: Holes):
        self.cells, self.holes = cells, holes
        self.out = describe_unknown(cells, holes)

    def unexplained(self, U: np.ndarray, V: np.ndarray) -> float:
        return self.holes.unexplained(solve_side(self.cells.rows, self.out[0], U, V, Plan(0, 0.0))[1])

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        ((U,),) = kept
        plan = Plan(DENSE_SWEEPS, self.unexplained(U, V))
        U, *_ = solve_side(self.cells.rows, self.out[0], U, V, plan)
        V, D, P = solve_side(self.cells.cols, self.out[1], V, U, plan)
        return Rows([(U,)]), V, self.holes.objective(D, P)

    def finish(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        """The best codes given V; how far the known cells are from them; and the κ that was used."""
        ((U,),) = kept
        kappa = self.unexplained(U, V)
        U, D, _ = solve_side(self.cells.rows, self.out[0], U, V, Plan(EXACT, kappa, exact_tol(V.dtype)))
        return Rows([(U,)]), D, kappa


def fold_known(
    X: np.ndarray, V: np.ndarray, share: np.ndarray, means: np.ndarray, kappa: float
) -> tuple[np.ndarray, np.ndarray]:
    """The codes (m,k) of new rows with missing cells, and the objective of each row over its known ones."""
    c, U, (m, d) = known(X), np.zeros((X.shape[0], V.shape[1]), V.dtype), X.shape
    out = Unknown(share.astype(V.dtype), np.ones(m, V.dtype), np.ones(d, V.dtype), means)
    plan = Plan(EXACT, kappa, exact_tol(V.dtype))
    U, cost = solve_cells(c, np.ones(c.nnz, V.dtype), U, out.e, out.t, V, (out.f, out.s, *out.totals(V)), plan)
    return U, cost[:, 0]
