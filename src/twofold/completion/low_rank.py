"""A matrix that is sparse plus low-rank, its products, and its leading singular triplets from a warm start.

    A = S + L Rᵀ        S (n,d) stored in the known cells    L (n,r), R (d,r)

Filling the holes of X from a low-rank M gives P_Ω(X − M) + M: a matrix without holes that is never written down.
Its singular triplets come from products alone. From right vectors V that were good for a matrix close by, the
search space K = [V, residuals, residuals of these, …] grows until the wanted ones stand still (Rayleigh and Ritz;
Musco & Musco 2015 for the block Krylov space). A truncated K still gives the best matrix whose rows lie in its
span, which is what keeps the objectives of the models from rising.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.blocks import Rows
from twofold.core.engine import Engine
from twofold.core.observed import Observed, Side
from twofold.core.seeds import generator
from twofold.kernels.lowrank import cell_dots, csr_dot

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


def places(cells: Observed) -> Places:
    """The places of the known cells, ready for products."""
    X = cells.X
    order = sparse.csr_array((np.arange(X.nnz), X.indices, X.indptr), shape=X.shape).T.tocsr()
    order.sort_indices()
    return Places(X.shape, _cut(cells.rows), _cut(cells.cols), order.data)


def _cut(side: Side) -> Cut:
    found = Rows()
    for i in range(len(side.blocks)):
        block = side.blocks[i]
        found.append((block.indptr.astype(np.int64), block.indices.astype(np.int32)))
    cells = np.cumsum([0, *(len(indices) for _, indices in found)])
    return Cut(side.blocks.bounds, cells, found)


def _parts(values: np.ndarray, bounds: np.ndarray) -> Rows:
    return Rows(values[a:b] for a, b in zip(bounds[:-1], bounds[1:], strict=True))


def at_cells(where: Places, L: np.ndarray, R: np.ndarray) -> np.ndarray:
    """L Rᵀ in the known cells, in the order of the rows."""
    engine = Engine()
    parts = engine.map(_looked_up, where.rows.places, _parts(L, where.rows.bounds), engine.broadcast(R))
    return np.concatenate(engine.gather(parts))


def _looked_up(place: tuple, L: np.ndarray, R: np.ndarray) -> np.ndarray:
    out = np.empty(len(place[1]))
    cell_dots(*place, L, R, out)
    return out


class Sum(NamedTuple):
    """A = S + L Rᵀ, with the values of S in both orders."""

    where: Places
    across: np.ndarray
    down: np.ndarray
    L: np.ndarray
    R: np.ndarray


def plus(where: Places, values: np.ndarray, L: np.ndarray | None = None, R: np.ndarray | None = None) -> Sum:
    """The sum of what stands in the known cells and of a low-rank matrix."""
    n, d = where.shape
    left, right = np.empty((n, 0)) if L is None else L, np.empty((d, 0)) if R is None else R
    return Sum(where, values, values[where.turn], left, right)


def dot(A: Sum, V: np.ndarray) -> np.ndarray:
    """A V, (n,l)."""
    return _product(A.where.rows, A.across, A.L, A.R.T @ V, V)


def turned_dot(A: Sum, Y: np.ndarray) -> np.ndarray:
    """Aᵀ Y, (d,l)."""
    return _product(A.where.cols, A.down, A.R, A.L.T @ Y, Y)


def _product(cut: Cut, values: np.ndarray, L: np.ndarray, inner: np.ndarray, V: np.ndarray) -> np.ndarray:
    engine = Engine()
    shared = engine.broadcast(inner), engine.broadcast(np.ascontiguousarray(V))
    parts = engine.map(_block_product, cut.places, _parts(values, cut.cells), _parts(L, cut.bounds), *shared)
    return np.concatenate(engine.gather(parts))


def _block_product(place: tuple, x: np.ndarray, L: np.ndarray, inner: np.ndarray, V: np.ndarray) -> np.ndarray:
    out = L @ inner if L.shape[1] else np.zeros((len(L), V.shape[1]))
    csr_dot(*place, x, V, out)
    return out


class Triplets(NamedTuple):
    """A V = L with orthonormal V (d,m) and orthogonal L (n,m), whose columns have the lengths s (m,), descending."""

    L: np.ndarray
    s: np.ndarray
    V: np.ndarray


def start_block(where: Places, width: int, seed: int) -> np.ndarray:
    """Orthonormal right vectors to begin with, when nothing is known."""
    d = where.shape[1]
    return np.linalg.qr(generator(seed).standard_normal((d, min(width, d))))[0]


def leading(
    A: Sum, V: np.ndarray, *, k: int | None = None, above: float = 0.0, tol: float = 1e-6, most: int = 30
) -> Triplets:
    """The k leading triplets, or all with s > `above`, and a few guards behind them.

    `V` is where to begin. The space is enlarged by the residuals AᵀA v − s² v of the triplets that have not come
    within tol·s₁·s of standing still, at most `most` times; it always contains the span of V.
    """
    K = np.linalg.qr(V)[0]
    AK = dot(A, K)
    SK = turned_dot(A, AK)
    for step in range(most + 1):
        values, W = np.linalg.eigh(AK.T @ AK)
        s, W = np.sqrt(np.maximum(values[::-1], 0.0)), W[:, ::-1]
        wanted = int((s > above).sum()) if k is None else k
        keep = min(wanted + GUARD, len(s))
        if step == most or K.shape[1] >= min(A.where.shape):
            break
        Wk, scale = W[:, :keep], s[:keep]
        rest = SK @ Wk - (K @ Wk) * scale**2  # (d,keep)
        moving = np.linalg.norm(rest, axis=0) > max(tol, 1e-14) * s[0] * np.maximum(scale, above)
        if not moving[:wanted].any() and wanted < len(s):
            break
        Q = _beyond(K, rest[:, moving])
        AQ = dot(A, Q)
        K, AK, SK = np.hstack([K, Q]), np.hstack([AK, AQ]), np.hstack([SK, turned_dot(A, AQ)])
    W = W[:, :keep]
    return Triplets(AK @ W, s[:keep], K @ W)


def _beyond(K: np.ndarray, B: np.ndarray) -> np.ndarray:
    """An orthonormal basis of what B has outside the span of K; twice, for orthogonality."""
    B = B - K @ (K.T @ B)
    Q = np.linalg.qr(B)[0][:, : K.shape[0] - K.shape[1]]
    return np.linalg.qr(Q - K @ (K.T @ Q))[0]
