"""How likely a document is, whatever its mixture: the evidence of LDA with its topics and prior held fixed.

    p(x | Z, α) = ∫ Π_j (Σ_c θ_c Z_cj)^x_j Dirichlet(θ | α) dθ

From below by the bound, for q(θ) = Dirichlet(γ):   Σ_j x_j log Σ_c exp(E log θ_c) Z_cj − KL(q(θ) ‖ p(θ | α))
By importance sampling:   the mean of p(x | θ_s) p(θ_s) / q(θ_s) over draws θ_s ~ q,
                          a mixture of Dirichlet(α + h (γ − α)) for some h

The q of the bound is narrower than the posterior where topics overlap, so that draws from it alone would miss some of
it: those with h < 1 reach further out.
References: Blei, Ng & Jordan 2003 (bound); Wallach et al. 2009 (evaluation); Owen & Zhou 2000 (mixtures).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.kernels.lda import estimate_evidence, log_likelihood
from twofold.topics.lda._variational import divergences, expected_logs, fold_dirichlets
from twofold.topics.lda.documents import as_counts, is_usable, pad

PASSES, CLOSE = 200, 1e-5  # of the bound: until γ moves by less than this a topic
HEAT = np.array([1.0, 0.5, 0.25, 0.1])


def fold(X: Any, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """γ (m,k) of the documents of a block, given p(word | topic) (d,K), without the words that no topic knows."""
    return fold_dirichlets(X, topics, pad(alpha, np.float64), len(alpha), PASSES, CLOSE)


def bounds(X: Any, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(m,): the bound of each document; NaN if a cell is no count."""
    gamma = fold(X, topics, alpha)
    if np.isnan(gamma).any():
        return np.full(X.shape[0], np.nan)
    logs, out = expected_logs(gamma, axis=1), np.empty((2, X.shape[0]))
    log_likelihood(*as_counts(X, np.dtype(np.float64)), topics, pad(np.exp(logs), np.float64), *out)
    return out[0] - divergences(gamma, logs, alpha)


def sample(X: Any, topics: np.ndarray, alpha: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """(m,2): the estimate of each document's log-likelihood, and its standard error; NaN if a cell is no count."""
    if not is_usable(X):
        return np.full((X.shape[0], 2), np.nan)
    out = np.empty((2, X.shape[0]))
    settings = alpha, len(alpha), fold(X, topics, alpha), HEAT, draws, np.uint64(seed)
    estimate_evidence(*as_counts(X, np.dtype(np.float64)), topics, *settings, *out)
    return out.T
