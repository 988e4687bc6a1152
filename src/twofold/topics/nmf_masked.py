"""Non-negative factorization of the known cells alone, or of cells that count differently, under squared error.

    minimise  ½ Σ_Ω w_ij (x_ij − ⟨u_i, z_j⟩)²   over  U ≥ 0, Z ≥ 0
    X (n,d) known in the cells Ω, seen along its rows and along its columns   U (n,k)   V = Zᵀ (d,k)

One sweep:  each row     u_i ← non-negative least squares over its known cells, given V
            each column  v_j ← the same, sides exchanged
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from twofold.core.blocks import Blocks, Rows, as_blocks
from twofold.core.checks import InputError
from twofold.core.engine import Engine
from twofold.core.observed import Observed, Side, observed, sides
from twofold.kernels.nnls import nnls_cells
from twofold.topics.nmf_squared import DENSE_SWEEPS, ENOUGH, EXACT, end_of


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


def kl_constant(cells: Observed) -> float:
    """Σ w (x log x − x) over the known cells."""
    x, w = cells.X.data.astype(np.float64), cells.W.data.astype(np.float64)
    return float(w @ (xlogy(x, x) - x))


def solve(X: sparse.csr_array, w: np.ndarray, U: np.ndarray, V: np.ndarray, end: bool) -> tuple[np.ndarray, np.ndarray]:
    """The half-step of one block, and the cost of each of its rows."""
    U, cost = U.copy(), np.empty(X.shape[0])
    sweeps, tol = (EXACT, end_of(V.dtype)) if end else (DENSE_SWEEPS, V.dtype.type(ENOUGH))
    nnls_cells(X.indptr, X.indices, X.data, w, V, sweeps, tol, U, cost)
    return U, cost


def half(side: Side, U: np.ndarray, V: np.ndarray, end: bool = False) -> tuple[np.ndarray, float]:
    """All rows of one side given the other; the cost is summed row by row, so cuts do not show."""
    engine = Engine()
    shared = (engine.broadcast(V), engine.broadcast(end))
    found = engine.gather(engine.map(solve, side.blocks, side.weights, side.blocks.rows(U), *shared))
    return np.concatenate([f[0] for f in found]), float(np.concatenate([f[1] for f in found]).sum())


class Masked:
    """The problem as the sweeps see it; all cells are in the memory of this machine, and so is U."""

    def __init__(self, cells: Observed):
        self.cells = cells

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        U, _ = half(self.cells.rows, kept[0][0], V)
        V, cost = half(self.cells.cols, V, U)
        return Rows([(U,)]), V, cost

    def settled(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float]:
        U, cost = half(self.cells.rows, kept[0][0], V, end=True)
        return Rows([(U,)]), cost
