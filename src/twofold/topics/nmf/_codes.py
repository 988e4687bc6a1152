"""Codes of new rows, given the parts of a non-negative factorization, and what they cost.

u = argmin  ½‖x − u Z‖² + λ Σ u     or     Σ x log(x/ŷ) − x + ŷ      over u ≥ 0, over the known cells of x
Missing cells stand at their column's mean and count κ (nmf_holes).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from twofold.core.data.known_cells import known
from twofold.topics.nmf import _kl, _kl_masked, _squared
from twofold.topics.nmf._holes import shares
from twofold.topics.nmf._squared_masked import Beyond, Plan, solve


def fold(X: Any, V: np.ndarray, l1: float, loss: str, means: np.ndarray, kappa: float) -> np.ndarray:
    """The codes (m,k) of new rows."""
    return costed(X, V, l1, loss, means, kappa)[0]


def row_costs(X: Any, V: np.ndarray, l1: float, loss: str, means: np.ndarray, kappa: float) -> np.ndarray:
    """The objective of each new row (m,) over its known cells, with its best code."""
    return costed(X, V, l1, loss, means, kappa)[1]


def costed(
    X: Any, V: np.ndarray, l1: float, loss: str, means: np.ndarray, kappa: float
) -> tuple[np.ndarray, np.ndarray]:
    """Codes and costs. A negative cell gives a code that is no number, so that it is refused by name."""
    X = X.astype(V.dtype, copy=False)
    values = X.data if sparse.issparse(X) else X
    holes = not sparse.issparse(X) and bool(np.isnan(X).any())
    if (values < 0).any() or not np.isfinite(np.nansum(values)) or (sparse.issparse(X) and np.isnan(values).any()):
        return np.full((X.shape[0], V.shape[1]), np.nan, V.dtype), np.full(X.shape[0], np.nan)
    if not holes:
        return _all_squared(X, V, l1) if loss == "squared" else _all_kl(X, V)
    share = shares((~np.isnan(X)).sum(axis=1), X.shape[1])
    return (_known_squared if loss == "squared" else _known_kl)(X, V, share, means, kappa)


def _all_squared(X: Any, V: np.ndarray, l1: float) -> tuple[np.ndarray, np.ndarray]:
    U, G, B = np.zeros((X.shape[0], V.shape[1]), V.dtype), V.T @ V, np.asarray(X @ V)
    _squared.to_the_end(G, _squared.less(B, l1), U)
    u, square = U.astype(np.float64), X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    misfit = 0.5 * (square - 2 * (u * B).sum(axis=1) + np.einsum("ic,cb,ib->i", u, G.astype(np.float64), u))
    return U, np.maximum(misfit, 0) + l1 * u.sum(axis=1)


def _known_squared(
    X: np.ndarray, V: np.ndarray, share: np.ndarray, means: np.ndarray, kappa: float
) -> tuple[np.ndarray, np.ndarray]:
    c, U, (m, d) = known(X), np.zeros((X.shape[0], V.shape[1]), V.dtype), X.shape
    out = Beyond(share.astype(V.dtype), np.ones(m, V.dtype), np.ones(d, V.dtype), means)
    plan = Plan(_squared.EXACT, kappa, _squared.end_of(V.dtype))
    U, cost = solve(c, np.ones(c.nnz, V.dtype), U, out.e, out.t, V, (out.f, out.s, *out.over_all(V)), plan)
    return U, cost[:, 0]


def _named(X: Any, V: np.ndarray) -> tuple[Any, np.ndarray]:
    """Where codes under KL begin; columns that no part has cannot be explained and are left out."""
    nobody = V.max(axis=1) <= 0
    if nobody.any():
        X = X @ sparse.diags_array((~nobody).astype(X.dtype)) if sparse.issparse(X) else np.where(nobody, 0, X)
    mass = np.asarray(X.sum(axis=1) if sparse.issparse(X) else np.nansum(X, axis=1)).ravel() / max(
        float(V.sum()), 1e-300
    )
    return X, np.repeat(mass.astype(V.dtype)[:, None], V.shape[1], axis=1)


def _all_kl(X: Any, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    X, U = _named(X, V)
    c = _kl.Cells(sparse.csr_array(X))
    _, cost = _kl.newton(c, V, U, _kl.to_the_end(V.dtype))
    x = c.X.data.astype(np.float64)
    return U, np.maximum(cost + np.asarray(c.like(xlogy(x, x) - x).sum(axis=1)).ravel(), 0)


def _known_kl(
    X: np.ndarray, V: np.ndarray, share: np.ndarray, means: np.ndarray, kappa: float
) -> tuple[np.ndarray, np.ndarray]:
    X, U = _named(X, V)
    t = _kl_masked.filled(X, None, share, np.where(V.max(axis=1) > 0, means, 0))
    _kl.newton(t.cells(kappa), V, U, _kl.to_the_end(V.dtype))
    return U, _kl_masked.divergences(t, U, V)[:, 0]
