"""Codes of new rows, given the parts of a non-negative factorization, and what they cost.

u = argmin  ½‖x − u Z‖² + λ Σ u     or     Σ x log(x/ŷ) − x + ŷ      over u ≥ 0, over the known cells of x
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from twofold.core.observed import known
from twofold.kernels.nnls import nnls, nnls_cells
from twofold.topics import nmf_kl, nmf_squared


def fold(X: Any, V: np.ndarray, l1: float, loss: str) -> np.ndarray:
    """The codes (m,k) of new rows."""
    return costed(X, V, l1, loss)[0]


def row_costs(X: Any, V: np.ndarray, l1: float, loss: str) -> np.ndarray:
    """The objective of each new row (m,), with its best code."""
    return costed(X, V, l1, loss)[1]


def costed(X: Any, V: np.ndarray, l1: float, loss: str) -> tuple[np.ndarray, np.ndarray]:
    """Codes and costs. A negative cell gives a code that is no number, so that it is refused by name."""
    X = X.astype(V.dtype, copy=False)
    values = X.data if sparse.issparse(X) else X
    holes = not sparse.issparse(X) and bool(np.isnan(X).any())
    if (values < 0).any() or not np.isfinite(np.nansum(values)) or (sparse.issparse(X) and np.isnan(values).any()):
        return np.full((X.shape[0], V.shape[1]), np.nan, V.dtype), np.full(X.shape[0], np.nan)
    if loss == "kl":
        return _kl(X, V, holes)
    return _known_squared(X, V) if holes else _squared(X, V, l1)


def _squared(X: Any, V: np.ndarray, l1: float) -> tuple[np.ndarray, np.ndarray]:
    U, G, B = np.zeros((X.shape[0], V.shape[1]), V.dtype), V.T @ V, np.asarray(X @ V)
    nnls(G, nmf_squared.less(B, l1), U, nmf_squared.EXACT, nmf_squared.end_of(V.dtype))
    u, square = U.astype(np.float64), X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    misfit = 0.5 * (square - 2 * (u * B).sum(axis=1) + np.einsum("ic,cb,ib->i", u, G.astype(np.float64), u))
    return U, np.maximum(misfit, 0) + l1 * u.sum(axis=1)


def _known_squared(X: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    c, U, cost = known(X), np.zeros((X.shape[0], V.shape[1]), V.dtype), np.empty(X.shape[0])
    ones = np.ones(c.nnz, V.dtype)
    nnls_cells(c.indptr, c.indices, c.data, ones, V, nmf_squared.EXACT, nmf_squared.end_of(V.dtype), U, cost)
    return U, cost


def _kl(X: Any, V: np.ndarray, holes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Columns that no part has cannot be explained and are left out."""
    c = nmf_kl.cells_of(X, None, holes)
    named = V.max(axis=1) > 0
    x = np.where(named[c.X.indices], c.X.data, 0)
    c = c._replace(X=sparse.csr_array((x, c.X.indices, c.X.indptr), shape=X.shape))
    mass = np.asarray(c.X.sum(axis=1)).ravel() / max(float(V.sum()), 1e-300)
    U = np.repeat(mass.astype(V.dtype)[:, None], V.shape[1], axis=1)
    _, cost = nmf_kl.newton(c, V, U, nmf_kl.Rule("newton", holes, nmf_kl.EXACT, nmf_kl.end_of(V.dtype)))
    x = x.astype(np.float64)
    logs = sparse.csr_array((xlogy(x, x) - x, c.X.indices, c.X.indptr), shape=X.shape)
    return U, np.maximum(cost + np.asarray(logs.sum(axis=1)).ravel(), 0)
