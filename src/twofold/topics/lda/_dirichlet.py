"""The prior α (k,) of the documents' topics, learned.

    maximize  Σ_i w_i E log p(θ_i | α)   for shares θ_i (k,) that have a distribution each
One step:  ψ(α_c) ← ψ(Σα) + the mean of E log θ_ic

    maximize  Σ_i w_i log p(n_i | α)   for topic counts n_i (k,), drawn from shares with this prior
One step:  α_c ← α_c Σ_i w_i [ψ(n_ic + α_c) − ψ(α_c)] / Σ_i w_i [ψ(n_i + Σα) − ψ(Σα)]

The second needs whole counts: ψ is so curved near 0 that an expected count in their place is misleading.
Reference: Minka 2000 (both fixed points).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import polygamma, psi

from twofold.kernels.lda import dirichlet_sums

MIN_ALPHA, MAX_ALPHA = 1e-4, 1e3  # bounds for a topic in no document, and for one with equal shares in all
MAX_FACTOR = 2.0  # of α in one step: the topics of the first sweeps are not reliable


class Logs(NamedTuple):
    """Sums over documents whose shares have a Dirichlet distribution each."""

    total: np.ndarray  # (k,) Σ w E log θ
    documents: float


class Counts(NamedTuple):
    """Sums over documents whose topic counts are known."""

    above: np.ndarray  # (k,)
    below: float


def sum_logs(gamma: np.ndarray, w: np.ndarray) -> Logs:
    """Sum over documents with Dirichlets gamma (m,k)."""
    gamma = gamma.astype(np.float64)
    logs = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
    return Logs(w.astype(np.float64) @ logs, float(w.sum(dtype=np.float64)))


def sum_counts(counts: np.ndarray, alpha: np.ndarray, w: np.ndarray) -> Counts:
    """Sum over documents with topic counts (m,k)."""
    above = np.zeros(len(alpha))
    return Counts(above, float(dirichlet_sums(counts, alpha, w, above)))


def step(alpha: np.ndarray, s: Logs | Counts) -> np.ndarray:
    """Make one step of either fixed point.

    >>> rng = np.random.default_rng(0)
    >>> counts = np.array([rng.multinomial(200, p) for p in rng.dirichlet([0.2, 1.0], size=2000)], dtype=float)
    >>> alpha = np.ones(2)
    >>> for _ in range(200):
    ...     alpha = step(alpha, sum_counts(counts, alpha, np.ones(2000)))
    >>> alpha.round(1)
    array([0.2, 1. ])
    """
    if isinstance(s, Logs):
        new = inverse_digamma(psi(alpha.sum()) + s.total / s.documents) if s.documents > 0 else alpha
    else:
        new = alpha * (s.above / s.below) if s.below > 0 else alpha
    return np.clip(np.clip(new, alpha / MAX_FACTOR, alpha * MAX_FACTOR), MIN_ALPHA, MAX_ALPHA)


def inverse_digamma(y: np.ndarray) -> np.ndarray:
    """x > 0 with ψ(x) = y, by Newton's method.

    >>> inverse_digamma(psi(np.array([0.01, 1.0, 50.0]))).round(6).tolist()
    [0.01, 1.0, 50.0]
    """
    x = np.where(y >= -2.22, np.exp(np.minimum(y, 50.0)) + 0.5, -1 / (np.minimum(y, -2.0) - psi(1.0)))
    for _ in range(5):
        x = x - (psi(x) - y) / polygamma(1, x)
    return x
