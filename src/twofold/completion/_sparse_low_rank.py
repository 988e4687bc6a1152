"""A matrix that is sparse plus low-rank, its products, and its leading singular triplets from a warm start.

    A = S + L Rᵀ        S (n,d) stored in the known cells    L (n,r), R (d,r)

Filling the holes of X from a low-rank M gives P_Ω(X − M) + M: a matrix without holes that is never written down.
Its singular triplets come from products alone. From right vectors V that were good for a matrix close by, the
search space K = [V, residuals, residuals of these, …] grows until the wanted ones stand still (Rayleigh and Ritz;
Musco & Musco 2015 for the block Krylov space). A truncated K still gives the best matrix whose rows lie in its
span, which is what keeps the objectives of the models from rising.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.model import Factors, fold_rows
from twofold.core.data.blocks import Rows
from twofold.core.data.known_cells import Observed, Side
from twofold.core.engine.local import Engine
from twofold.core.numerics.alternating_ridge import STEPS, Ridge
from twofold.core.numerics.krylov import extend_basis
from twofold.core.seeds import generator
from twofold.core.types import Seed
from twofold.kernels.ridge import ridge_cg
from twofold.kernels.sparse_low_rank import cell_dots, csr_dot
from twofold.linalg import fix_signs

GUARD = 5  # vectors carried beside the wanted ones, so that another one that rises is seen


class Cut(NamedTuple):
    """One orientation of the known cells, cut for threads."""

    bounds: np.ndarray  # rows where the blocks begin
    cells: np.ndarray  # and the cells
    places: Rows  # (indptr, indices) of each block


class Places(NamedTuple):
    """Where the known cells are, along the rows and along the columns."""

    shape: tuple[int, int]
    rows: Cut
    cols: Cut
    turn: np.ndarray  # cells in the order of the rows → in that of the columns


def index_cells(cells: Observed) -> Places:
    """The places of the known cells, ready for products."""
    X = cells.X
    order = sparse.csr_array((np.arange(X.nnz), X.indices, X.indptr), shape=X.shape).T.tocsr()
    order.sort_indices()
    return Places(X.shape, _cut_side(cells.rows), _cut_side(cells.cols), order.data)


def _cut_side(side: Side) -> Cut:
    found = Rows()
    for i in range(len(side.blocks)):
        block = side.blocks[i]
        found.append((block.indptr.astype(np.int64), block.indices.astype(np.int32)))
    cells = np.cumsum([0, *(len(indices) for _, indices in found)])
    return Cut(side.blocks.bounds, cells, found)


def _split_blocks(values: np.ndarray, bounds: np.ndarray) -> Rows:
    return Rows(values[a:b] for a, b in pairwise(bounds))


def compute_at_cells(where: Places, L: np.ndarray, R: np.ndarray) -> np.ndarray:
    """L Rᵀ in the known cells, in the order of the rows."""
    engine = Engine()
    parts = engine.map(_compute_block, where.rows.places, _split_blocks(L, where.rows.bounds), engine.broadcast(R))
    return np.concatenate(engine.gather(parts))


def _compute_block(place: tuple, L: np.ndarray, R: np.ndarray) -> np.ndarray:
    out = np.empty(len(place[1]))
    indptr, indices = place
    cell_dots(indptr, indices, L, R, out)
    return out


class Sum(NamedTuple):
    """A = S + L Rᵀ, with the values of S in both orders."""

    where: Places
    across: np.ndarray
    down: np.ndarray
    L: np.ndarray
    R: np.ndarray


def add_low_rank(where: Places, values: np.ndarray, L: np.ndarray | None = None, R: np.ndarray | None = None) -> Sum:
    """The sum of what stands in the known cells and of a low-rank matrix."""
    n, d = where.shape
    left, right = np.empty((n, 0)) if L is None else L, np.empty((d, 0)) if R is None else R
    return Sum(where, values, values[where.turn], left, right)


def multiply(A: Sum, V: np.ndarray) -> np.ndarray:
    """A V, (n,l)."""
    return _multiply_side(A.where.rows, A.across, A.L, A.R.T @ V, V)


def multiply_transposed(A: Sum, Y: np.ndarray) -> np.ndarray:
    """Aᵀ Y, (d,l)."""
    return _multiply_side(A.where.cols, A.down, A.R, A.L.T @ Y, Y)


def _multiply_side(cut: Cut, values: np.ndarray, L: np.ndarray, inner: np.ndarray, V: np.ndarray) -> np.ndarray:
    engine = Engine()
    shared = engine.broadcast(inner), engine.broadcast(np.ascontiguousarray(V))
    parts = engine.map(
        _multiply_block, cut.places, _split_blocks(values, cut.cells), _split_blocks(L, cut.bounds), *shared
    )
    return np.concatenate(engine.gather(parts))


def _multiply_block(place: tuple, x: np.ndarray, L: np.ndarray, inner: np.ndarray, V: np.ndarray) -> np.ndarray:
    out = L @ inner if L.shape[1] else np.zeros((len(L), V.shape[1]))
    indptr, indices = place
    csr_dot(indptr, indices, x, V, out)
    return out


def improve_side(cut: Cut, x: np.ndarray, w: np.ndarray, U: np.ndarray, Z: np.ndarray, lam: float) -> np.ndarray:
    """U moved a few conjugate gradient steps, each row for itself, toward the ridge regressions of its cells on Z."""
    engine = Engine()
    cells = _split_blocks(x, cut.cells), _split_blocks(w, cut.cells), _split_blocks(U, cut.bounds)
    shared = engine.broadcast(np.ascontiguousarray(Z)), engine.broadcast(lam)
    parts = engine.map(_improve_block, cut.places, *cells, *shared)
    return np.concatenate(engine.gather(parts))


def _improve_block(place: tuple, x: np.ndarray, w: np.ndarray, U: np.ndarray, Z: np.ndarray, lam: float) -> np.ndarray:
    U, none = U.copy(), np.zeros((Z.shape[1], Z.shape[1]))
    cells = place[0].astype(np.int32), place[1], x, w  # as models that keep blocks have them: one compiled kernel
    ridge_cg(*cells, Z, np.zeros(len(Z)), none, False, np.full((len(U), 2), lam), STEPS, U, np.empty(len(U)))
    return U


class Triplets(NamedTuple):
    """A V = L with orthonormal V (d,m) and orthogonal L (n,m), whose columns have the lengths s (m,), descending."""

    L: np.ndarray
    s: np.ndarray
    V: np.ndarray


def draw_start(where: Places, width: int, seed: int) -> np.ndarray:
    """Orthonormal right vectors to begin with, when nothing is known."""
    d = where.shape[1]
    return np.linalg.qr(generator(seed).standard_normal((d, min(width, d))))[0]


def find_leading(
    A: Sum, V: np.ndarray, *, k: int | None = None, above: float = 0.0, tol: float = 1e-6, max_steps: int = 30
) -> Triplets:
    """The triplets with s > `above`, k of them at most, and a few guards behind them.

    `V` is where to begin. The space is enlarged by the residuals AᵀA v − s² v of the triplets that have not come
    within tol·s₁·s of standing still, at most `max_steps` times; it always contains the span of V.
    """
    K = np.linalg.qr(V)[0]
    AK = multiply(A, K)
    SK = multiply_transposed(A, AK) if max_steps else AK
    for step in range(max_steps + 1):
        values, W = np.linalg.eigh(AK.T @ AK)
        s, W = np.sqrt(np.maximum(values[::-1], 0.0)), W[:, ::-1]
        wanted = min(int((s > above).sum()), len(s) if k is None else k)
        W, s = W[:, : wanted + GUARD], s[: wanted + GUARD]
        if step == max_steps or K.shape[1] >= len(K):
            break
        rest = SK @ W - (K @ W) * s**2  # (d,keep)
        size = np.linalg.norm(rest, axis=0)
        bound = s[0] * np.maximum(s, above)
        moving = size > max(tol, 1e-14) * bound
        if not moving[: max(wanted, 1)].any():
            moving = size > 1e-14 * bound  # all help to see what may hide
            if not (moving.any() and _may_hide(s, size, wanted, k, above)):
                break
        Q = extend_basis(K, rest[:, moving])
        AQ = multiply(A, Q)
        K, AK = np.hstack([K, Q]), np.hstack([AK, AQ])
        if step + 1 < max_steps:
            SK = np.hstack([SK, multiply_transposed(A, AQ)])
    return Triplets(AK @ W, s, K @ W)


def _may_hide(s: np.ndarray, size: np.ndarray, wanted: int, k: int | None, above: float) -> bool:
    """Return True if another triplet may be wanted: none is behind, or its s², known up to its residual, may rise."""
    if wanted == k:
        return False
    return wanted == len(s) or bool(s[wanted] ** 2 + 10 * size[wanted] > above**2 > 0)


# ---- what the models on it share ---------------------------------------------------------------------------------


class LowRank(Factors):
    """Base class: M = L Rᵀ as balanced factors; a row without a known cell gets the mean factor."""

    singular_values_: np.ndarray

    def _limit_rank(self, cells: Observed) -> int:
        """n_components, checked; None means the default, or what a third of the known cells can determine."""
        k, (n, d) = min(self._rank(cells.shape), *cells.shape), cells.shape
        if self.n_components is not None:
            return k
        ranks = np.arange(1, k + 1)
        return max(1, int((ranks * (n + d - ranks) <= cells.X.nnz / 3).sum()))

    def _ridge(self) -> Ridge:
        """Least squares: a ridge that only decides what the known cells leave open."""
        Z = self.components_
        tiny = 1e-12 if Z.dtype == np.float64 else 1e-6
        return Ridge(tiny * float((Z.astype(np.float64) ** 2).sum(axis=0).max(initial=0.0)), False)

    def _folding(self) -> tuple[Callable, tuple]:
        return fold_or_mean, (self.row_factors_.mean(axis=0), *super()._folding()[1])


class FixedRank(LowRank):
    """Base class of the models of a given rank k, from the squared error alone."""

    def __init__(
        self,
        n_components: int | None = None,
        *,
        normalize: str | None = None,
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state


def make_attributes(cells: Observed, k: int = 1, **more: Any) -> Callable[[Any], dict]:
    """Make a function from a state with M = L Rᵀ to attributes: at least k components, and `more`."""
    return lambda state: {**balance_factors(cells, state.L, state.R, k), **more}


def balance_factors(cells: Observed, L: np.ndarray, R: np.ndarray, k: int) -> dict:
    """L Rᵀ, with orthogonal L and orthonormal R, as U√S and √S Zᵀ; where nothing is known, the mean factor."""
    (n, d), dtype = cells.shape, cells.dtype
    missing = max(k - L.shape[1], 0)
    L, R = np.hstack([L, np.zeros((n, missing))]), np.hstack([R, np.zeros((d, missing))])
    s = np.linalg.norm(L, axis=0)
    root = np.sqrt(s)
    signs = fix_signs(R.T)
    U, Z = L * (signs / np.where(root > 0, root, 1.0)), (R * (signs * root)).T
    U = fill_with_means(U, cells.rows.mass > 0)
    Z = fill_with_means(Z.T, cells.cols.mass > 0).T
    return {
        "components_": np.ascontiguousarray(Z, dtype=dtype),
        "row_factors_": np.ascontiguousarray(U, dtype=dtype),
        "singular_values_": s.astype(dtype),
        "row_bias_": np.zeros(n, dtype),
        "column_bias_": np.zeros(d, dtype),
        "mean_": 0.0,
    }


def fill_with_means(U: np.ndarray, known: np.ndarray) -> np.ndarray:
    """U, its rows without a known cell replaced by the mean of the others."""
    return U if known.all() else np.where(known[:, None], U, U[known].mean(axis=0))


def fold_or_mean(X: sparse.csr_array, mean: np.ndarray, *regression: Any) -> np.ndarray:
    """New rows by their regressions, or the mean factor (k,) where a row has no known cell."""
    U = fold_rows(X, *regression)
    U[np.diff(X.indptr) == 0] = mean
    return U
