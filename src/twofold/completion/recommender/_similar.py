"""Items that are like another one, by what a model of the lists knows of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from twofold.completion.ease import EASE
from twofold.completion.ratings_table import count_items
from twofold.core.checks import InputError

HALF_TRUST_RATINGS = 20.0  # ratings at which a similarity is shrunk by half


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
