"""Non-negative factorization of the known cells alone, or of cells that count differently, under squared error.

    minimise  D = ½ Σ_Ω w_ij (x_ij − ⟨u_i, z_j⟩)²   over  U ≥ 0, Z ≥ 0, and a little of what is outside Ω: nmf_holes
    X (n,d) known in the cells Ω, seen along its rows and along its columns   U (n,k)   V = Zᵀ (d,k)

One sweep:  each row     u_i ← non-negative least squares over its known cells, given V
            each column  v_j ← the same, sides exchanged
What all cells would add is one k×k matrix for all rows; a row takes back what its known cells have of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows, as_blocks
from twofold.core.data.known_cells import Observed, Side, observed, sides
from twofold.core.engine.local import Engine
from twofold.kernels.nnls import nnls_cells
from twofold.topics.nmf._holes import Holes
from twofold.topics.nmf._squared import DENSE_SWEEPS, ENOUGH, EXACT, end_of


def known_cells(blocks: Blocks, weights: Any, name: str) -> Observed:
    """The cells that count. In sparse data an unstored cell is a zero like any other: its weight says if it counts."""
    if not blocks.is_sparse or np.ndim(weights) < 2:
        return observed(blocks, weights, name)
    if weights.shape != blocks.shape:
        raise InputError(f"sample_weight has shape {weights.shape}; one weight a cell of X {blocks.shape} is needed.")
    X = sparse.vstack([blocks[b] for b in range(len(blocks))], format="csr")
    W = sparse.csr_array(weights).astype(X.dtype)
    W.sum_duplicates()
    W.eliminate_zeros()
    if not (np.isfinite(W.data) & (W.data > 0)).all():
        raise InputError(
            "sample_weight has a cell that is negative or not finite; set 0 where a cell should not count."
        )
    row = np.repeat(np.arange(X.shape[0]), np.diff(W.indptr))
    values = np.asarray(X[row, W.indices]).ravel()
    return sides(sparse.csr_array((values, W.indices, W.indptr), shape=X.shape), W)


def without_weightless(cells: Observed, stored: bool) -> Blocks:
    """The table with holes where a cell does not count; zeros there if it came as sparse."""
    if stored:
        return as_blocks(cells.X)
    X = np.full(cells.shape, np.nan, cells.dtype)
    X[np.repeat(np.arange(cells.shape[0]), np.diff(cells.X.indptr)), cells.X.indices] = cells.X.data
    return as_blocks(X)


class Beyond(NamedTuple):
    """What one side should be where it is not known: a missing cell counts κ e_i f_j and stands at t_i s_j."""

    e: np.ndarray  # (rows of this side,)
    t: np.ndarray
    f: np.ndarray  # (rows of the other side,)
    s: np.ndarray

    def over_all(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Σ f v vᵀ, Σ f s v and Σ f s² over the other side."""
        weighted = V * self.f[:, None]
        return weighted.T @ V, weighted.T @ self.s, float(self.f @ self.s**2)


def beyond(cells: Observed, holes: Holes) -> tuple[Beyond, Beyond]:
    """Along the rows, and along the columns."""
    (n, d), dtype = cells.shape, cells.dtype
    share = holes.share.astype(dtype)
    holed = (np.bincount(cells.X.indices, minlength=d) < n).astype(dtype)
    return (
        Beyond(share, np.ones(n, dtype), np.ones(d, dtype), holes.means),
        Beyond(holed, holes.means, share, np.ones(n, dtype)),
    )


class Plan(NamedTuple):
    """How far a half-step goes, and what the missing cells count in it."""

    sweeps: int
    kappa: float
    tol: float = ENOUGH


def solve(
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
    nnls_cells(
        X.indptr,
        X.indices,
        X.data,
        w,
        V,
        plan.sweeps,
        number(plan.tol),
        number(plan.kappa),
        e,
        t,
        f,
        s,
        G,
        g,
        total,
        U,
        cost,
    )
    return U, cost


def half(side: Side, out: Beyond, U: np.ndarray, V: np.ndarray, plan: Plan) -> tuple[np.ndarray, float, float]:
    """All rows of one side given the other; costs are summed row by row, so cuts do not show."""
    engine = Engine()
    rest = (out.f, out.s, *out.over_all(V))
    rows = [side.blocks.rows(A) for A in (U, out.e, out.t)]
    shared = [engine.broadcast(value) for value in (V, rest, plan)]
    found = engine.gather(engine.map(solve, side.blocks, side.weights, *rows, *shared))
    D, P = np.concatenate([cost for _, cost in found]).sum(axis=0)
    return np.concatenate([U for U, _ in found]), float(D), float(P)


class Masked:
    """The problem as the sweeps see it; all cells are in the memory of this machine, and so is U."""

    def __init__(self, cells: Observed, holes: Holes):
        self.cells, self.holes = cells, holes
        self.out = beyond(cells, holes)

    def unexplained(self, U: np.ndarray, V: np.ndarray) -> float:
        return self.holes.unexplained(half(self.cells.rows, self.out[0], U, V, Plan(0, 0.0))[1])

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        ((U,),) = kept
        plan = Plan(DENSE_SWEEPS, self.unexplained(U, V))
        U, *_ = half(self.cells.rows, self.out[0], U, V, plan)
        V, D, P = half(self.cells.cols, self.out[1], V, U, plan)
        return Rows([(U,)]), V, self.holes.objective(D, P)

    def settled(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        """Codes to the end, given V; how far the known cells are; and the κ that was used."""
        ((U,),) = kept
        kappa = self.unexplained(U, V)
        U, D, _ = half(self.cells.rows, self.out[0], U, V, Plan(EXACT, kappa, end_of(V.dtype)))
        return Rows([(U,)]), D, kappa
