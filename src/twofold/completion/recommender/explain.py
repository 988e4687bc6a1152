"""What carried a recommendation, a prediction as a sum over the items a user has rated; items and users like another.

A user's factor is a ridge regression, so it is linear in the ratings:

    u = A⁻¹ Σ_j w_j z_j (x_j − o_j)      A = Σ_j w_j z_j z_jᵀ + B + λI
    x̂_t − o_t = ⟨u, z_t⟩ = Σ_j  w_j ⟨z_t, A⁻¹ z_j⟩ (x_j − o_j)

and the share of item j is its term. Where a model is no regression, the share of j is how much the prediction moves
when j joins the items before it, averaged over two opposite orders. Either way the shares add up to the prediction less
what a user without ratings is predicted.
References: Hu, Koren & Volinsky 2008, section 5; Shapley 1953.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from twofold.completion.biases import Biases
from twofold.completion.ease import EASE
from twofold.completion.implicit_als import fold_counts
from twofold.completion.model import Factors, fold_rows
from twofold.completion.neighborhood import Neighborhood
from twofold.completion.popularity import Popularity
from twofold.completion.ratings_table import count_items
from twofold.completion.svd_plus_plus import Moments
from twofold.completion.svd_plus_plus import fold_rows as fold_posterior
from twofold.core.checks import InputError
from twofold.core.numerics.alternating_ridge import Ridge, hold_rows

CHUNK = 2**22  # predicted cells at a time
HALF_TRUST_RATINGS = 20.0  # ratings at which a similarity is shrunk by half


def split_prediction(model: Any, x: sparse.csr_array, col: int) -> np.ndarray:
    """(known cells,) the share of each known cell of the row x (1,d) in the model's value in column `col`."""
    if getattr(model, "normalization_", None) is not None:  # every cell changes the mean and the spread
        return _split_by_joining(model, x, col)
    if isinstance(model, Neighborhood):  # its own shares, and those in the row's bias
        contribution = np.asarray(model.contributions(x.indices, x.data, col), dtype=np.float64)
        return contribution + _split_bias(x, *model._folding()[1][:2])
    if isinstance(model, EASE):
        return np.asarray(model.contributions(x.indices, x.data, col), dtype=np.float64)
    if isinstance(model, Popularity):
        return np.zeros(x.nnz)
    if isinstance(model, Biases):
        return _split_bias(x, *model._folding()[1])
    if isinstance(model, Factors):
        fold, state = model._folding()
        if fold is fold_rows and state[2].floor is None:
            return _split_ridge(x, col, *state)
        if fold is fold_counts:
            return _split_counts(x, col, *state)
        if fold is fold_posterior:
            return _split_posterior(x, col, *state)
    return _split_by_joining(model, x, col)


def _split_bias(x: sparse.csr_array, offset: np.ndarray, lam: float) -> np.ndarray:
    """A row's bias is a shrunk mean of what its cells deviate."""
    return (x.data - offset[x.indices].astype(np.float64)) / (x.nnz + lam)


def _split_ridge(x: sparse.csr_array, col: int, Z: np.ndarray, offset: np.ndarray, ridge: Ridge) -> np.ndarray:
    V = Z[x.indices].astype(np.float64)  # (cells,p)
    held = np.diag(np.repeat(hold_rows(np.array([len(V)]), ridge)[0], [V.shape[1] - 1, 1]))
    return _solve_terms(V, np.ones(len(V)), x.data - offset[x.indices].astype(np.float64), held, Z[col])


def _split_counts(
    x: sparse.csr_array, col: int, Z: np.ndarray, base: np.ndarray, ridge: Ridge, alpha: float
) -> np.ndarray:
    w = alpha * x.data.astype(np.float64)
    safe = np.where(w > 0, w, 1.0)
    held = base + hold_rows(w.sum(keepdims=True), ridge)[0, 0] * np.eye(len(base))
    return _solve_terms(Z[x.indices].astype(np.float64), w, (1 + w) / safe, held, Z[col])


def _split_posterior(
    x: sparse.csr_array, col: int, Y: np.ndarray, moments: Moments, lam: np.ndarray, tau: float, mean: float
) -> np.ndarray:
    """SVD++: a cell contributes its value and, through the prior mean Σ y_j/√n, its presence."""
    at, p, wide = x.indices, Y.shape[1], np.float64
    a, c = np.tril_indices(p)
    A = np.diag(lam.astype(wide))
    A[a, c] += tau * moments.Q[at].sum(axis=0, dtype=wide)
    A[c[a != c], a[a != c]] = A[a[a != c], c[a != c]]
    contribution = tau * ((x.data - wide(mean))[:, None] * moments.F[at] - moments.G[at])  # (cells,p)
    there = lam * Y[at].astype(wide) / np.sqrt(max(len(at), 1))
    return (contribution + there) @ np.linalg.solve(A, moments.F[col].astype(wide))


def _solve_terms(V: np.ndarray, w: np.ndarray, gap: np.ndarray, held: np.ndarray, z: np.ndarray) -> np.ndarray:
    if not len(V):
        return np.empty(0)
    A = (V.T * w) @ V + held
    return w * gap * (V @ np.linalg.solve(A, z.astype(np.float64)))


def _split_by_joining(model: Any, x: sparse.csr_array, col: int) -> np.ndarray:
    """The mean of what each cell adds to those before it, and to those after it."""
    m = x.nnz
    forward, backward = np.zeros(m + 1), np.zeros(m + 1)  # the prediction from the first, and the last, s cells
    for out, index, data in ((forward, x.indices, x.data), (backward, x.indices[::-1], x.data[::-1])):
        step = max(1, CHUNK // x.shape[1])
        for start in range(0, m + 1, step):
            sizes = np.arange(start, min(start + step, m + 1))
            rows = [sparse.csr_array((data[:s], index[:s], [0, s]), shape=x.shape) for s in sizes]
            known = sparse.vstack(rows, format="csr")
            known.sort_indices()
            out[sizes] = model.predict(known)[:, col]
    return (np.diff(forward) + np.diff(backward)[::-1]) / 2


# ---- similar items ---------------------------------------------------------------------------------------------------


def compare_items(model: Any, X: sparse.csr_array, col: int) -> np.ndarray:
    """(d,) the similarity of every item to item `col`.

        cos(x_j, x_t) · n_j / (n_j + 20)      for EASE, x_j the users that have seen item j
        cos(z_j, z_t) · n_j / (n_j + 20)      for a model with column factors; n_j ratings of item j
        a model's own                         for one that keeps similarities of items
        cos(r_j, r_t) · n_j / (n_j + 20)      for any other, r_j the ratings of item j less each user's mean

    The factors of an item with few ratings have a random direction: its similarities are shrunk.
    """
    if isinstance(model, EASE):
        return _compare_ratings(model.seen_, col, center=False) * _trust(X)
    own = getattr(model, "similarities_", None)
    if own is not None and getattr(model, "kind", "item") == "item":
        return np.asarray(own[[col]].toarray()).ravel().astype(np.float64)
    Z = getattr(model, "components_", None)
    if Z is not None and Z.shape[0] > 1:
        norms = np.sqrt((Z.astype(np.float64) ** 2).sum(axis=0))
        cosines = (Z[:, col] @ Z) / np.maximum(norms * norms[col], 1e-300)
    else:
        cosines = _compare_ratings(X, col)
    return cosines * _trust(X)


def compare_users(model: Any, X: sparse.csr_array, row: int) -> np.ndarray:
    """(n,) the similarity of every user to user `row`: as for items, with the sides exchanged.

    Of a model with factors these are compared, of any other the ratings, less each item's mean.
    """
    U = getattr(model, "row_factors_", None)
    if U is not None and U.shape[1] > 1:
        norms = np.sqrt((U.astype(np.float64) ** 2).sum(axis=1))
        cosines = (U @ U[row]) / np.maximum(norms * norms[row], 1e-300)
    elif not sparse.issparse(X):
        raise InputError("users are compared by their ratings, which are not in memory. Use a model with factors.")
    else:
        cosines = _compare_ratings(X.T.tocsr(), row, center=not isinstance(model, EASE))
    counts = np.diff(X.indptr)
    return cosines * (counts / (counts + HALF_TRUST_RATINGS))


def _trust(X: sparse.csr_array) -> np.ndarray:
    """(d,) the factor in [0, 1) by which the similarities of each item are shrunk."""
    counts = count_items(X)
    return counts / (counts + HALF_TRUST_RATINGS)


def _compare_ratings(X: sparse.csr_array, col: int, center: bool = True) -> np.ndarray:
    if not sparse.issparse(X):
        raise InputError("items are compared by their ratings, which are not in memory. Use a model with factors.")
    counts = np.maximum(np.diff(X.indptr), 1)
    means = np.asarray(X.sum(axis=1)).ravel() / counts * center
    data = X.data.astype(np.float64) - np.repeat(means, np.diff(X.indptr))
    if not data.any():  # implicit data, all equal: only presence counts
        data = np.ones_like(data)
    R = sparse.csr_array((data, X.indices, X.indptr), shape=X.shape).tocsc()
    norms = np.sqrt(np.asarray(R.multiply(R).sum(axis=0)).ravel())
    return np.asarray((R.T @ R[:, [col]]).todense()).ravel() / np.maximum(norms * norms[col], 1e-300)
