"""New documents under given topics.

u = argmax  Σ_j x_j log ⟨u, v_j⟩   over mixtures u (k,)        V (d,k) p(word | topic)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from twofold.kernels.kl import newton_counts
from twofold.kernels.plsa import em_counts, em_fold

EXACT = 500  # passes at most


def counts_of(X: Any, dtype: np.dtype) -> sparse.csr_array:
    return sparse.csr_array(X).astype(dtype, copy=False)


def fold(X: Any, V: np.ndarray, share: np.ndarray, beta: float) -> np.ndarray:
    """p(topic | document) of new documents; one without a known word gets the topics' share."""
    return folded(X, V, share, beta)[0]


def log_likelihoods(X: Any, V: np.ndarray, share: np.ndarray, beta: float) -> np.ndarray:
    """(m,2): Σ_j x log p(word | document), and the tokens, of words some topic knows."""
    U, X = folded(X, V, share, beta)
    if np.isnan(U).any():
        return np.full((len(U), 2), np.nan)
    loglik, T = np.empty(len(U)), np.zeros(V.shape)
    em_counts(X.indptr, X.indices, X.data, np.ones(len(U)), V, V.dtype.type(1), 1, U.copy(), T, loglik)
    return np.column_stack([loglik, np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()])


def folded(X: Any, V: np.ndarray, share: np.ndarray, beta: float) -> tuple[np.ndarray, sparse.csr_array]:
    """Mixtures, and the counts without words that no topic has. The untempered optimum is that of NMF under the
    Kullback-Leibler divergence with topics that sum to 1, and Newton's method is there sooner than EM."""
    X, dtype = counts_of(X, V.dtype), V.dtype
    if (X.data < 0).any() or not np.isfinite(X.data.sum()):
        return np.full((X.shape[0], len(share)), np.nan, dtype), X
    x = np.where(np.asarray(V.max(axis=1) > 0)[X.indices], X.data, 0)
    X = sparse.csr_array((x, X.indices, X.indptr), shape=X.shape)
    tokens = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    U = np.tile(share.astype(dtype), (X.shape[0], 1))
    end = dtype.type(1e-10 if dtype == np.float64 else 1e-5)
    if beta == 1.0:
        U = np.ascontiguousarray(np.repeat(tokens[:, None] / len(share), len(share), axis=1), dtype=dtype)
        ratio, cost = np.empty_like(x), np.empty(len(U))
        ones = np.ones(len(share), dtype)
        newton_counts(X.indptr, X.indices, x, V, ones, EXACT, end, U, ratio, cost)
        size = U.sum(axis=1, keepdims=True)
        U = np.where(size > 0, U / np.where(size > 0, size, 1), share.astype(dtype))
    else:
        em_fold(X.indptr, X.indices, x, V ** dtype.type(beta), dtype.type(beta), EXACT, end, U)
    return U, X


def tokens_by_topic(X: Any, V: np.ndarray, share: np.ndarray, beta: float) -> np.ndarray:
    U, X = folded(X, V, share, beta)
    return U.astype(np.float64) * np.asarray(X.sum(axis=1, dtype=np.float64)).reshape(-1, 1)


def topic_tokens(X: Any, w: np.ndarray | None, V: np.ndarray, share: np.ndarray, beta: float) -> np.ndarray:
    given = tokens_by_topic(X, V, share, beta)
    return given.sum(axis=0) if w is None else w @ given
