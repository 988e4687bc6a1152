"""New documents fold in: their mixtures, the topics held fixed.

θ_c ∝ α_c + Σ_j x_j γ_jc,   γ_jc ∝ θ_c p(j | c)   repeated until it stands still
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.kernels.lda import fold_in, log_likelihood
from twofold.topics.lda._batches import as_counts, usable

PASSES, CLOSE = 200, 1e-5  # until the topic counts move by less than this share of the document's length


def folded(X: Any, topics: np.ndarray, alpha: np.ndarray, passes: int = PASSES) -> np.ndarray:
    """p(topic | document) (m,K) of a block, padding included; NaN if a cell is no count."""
    if not usable(X):
        return np.full((X.shape[0], len(alpha)), np.nan, topics.dtype)
    counts = np.zeros((X.shape[0], len(alpha)), topics.dtype)
    fold_in(*as_counts(X, topics.dtype), topics, alpha, counts, passes, CLOSE)
    shares = np.maximum(counts, 0) + alpha
    return shares / shares.sum(axis=1, keepdims=True)


def mixtures(X: Any, topics: np.ndarray, alpha: np.ndarray, k: int) -> np.ndarray:
    return np.ascontiguousarray(folded(X, topics, alpha)[:, :k])


def document_scores(X: Any, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(m,2): each document's log-likelihood, and its tokens that any topic knows."""
    shares, out = folded(X, topics, alpha), np.empty((2, X.shape[0]))
    if np.isnan(shares).any():
        return np.full((X.shape[0], 2), np.nan)
    log_likelihood(*as_counts(X, topics.dtype), topics, shares, *out)
    return out.T.astype(topics.dtype)
