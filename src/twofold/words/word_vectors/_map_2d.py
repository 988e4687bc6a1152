"""Vectors as points of the plane, to be looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.core.seeds import seed_of
from twofold.linalg import truncated_svd


def plane(X: np.ndarray, method: str, random_state: Any) -> np.ndarray:
    """Rows (n,k) as places (n,2): by the two directions of greatest variance, or by t-SNE."""
    n = len(X)
    if method not in ("pca", "tsne"):
        raise InputError(f'method={method!r} is not "pca" or "tsne".')
    if method == "tsne" and n > 3:
        from sklearn.manifold import TSNE  # a second to import, and hardly ever wanted

        perplexity, method = min(30.0, (n - 1) / 3), "barnes_hut" if n > 500 else "exact"
        return TSNE(
            2, init="pca", perplexity=perplexity, method=method, random_state=seed_of(random_state)
        ).fit_transform(X)
    places = np.zeros((n, 2))
    k = min(2, *X.shape)
    if k:
        U, s, _ = truncated_svd(X, k, center=True)
        places[:, :k] = U * s
    return places
