"""The prior of the documents' topics, learned.

    maximise  Σ_i w_i log p(n_i | α)   over α (k,): topic counts n_i (k,) drawn from shares with a Dirichlet(α) prior

One step:  α_c ← α_c Σ_i w_i [ψ(n_ic + α_c) − ψ(α_c)] / Σ_i w_i [ψ(n_i + Σα) − ψ(Σα)]
Or, where shares θ_i have a distribution themselves, maximise Σ_i w_i E log p(θ_i | α):
One step:  ψ(α_c) ← ψ(Σα) + the mean of E log θ_ic
Reference: Minka 2000 (both fixed points); Teh, Newman & Welling 2006 (counts that are not certain).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import polygamma, psi

from twofold.kernels.lda import dirichlet_sums

LEAST, MOST = 1e-4, 1e3  # a topic that nobody has, and one that everybody has alike, stop here
CALM = 2.0  # a step changes no α by more than this factor: the first topics say little


class Sums(NamedTuple):
    """What a block's documents add."""

    above: np.ndarray  # (k,)
    below: float


def evidence(counts: np.ndarray, spread: np.ndarray, alpha: np.ndarray, w: np.ndarray) -> Sums:
    """The sums of a step over documents whose topic counts have these means and variances (m,K)."""
    above = np.zeros(len(alpha))
    return Sums(above, float(dirichlet_sums(counts, spread, alpha, w, above)))


def step(alpha: np.ndarray, s: Sums) -> np.ndarray:
    """One step of the fixed point.

    >>> rng = np.random.default_rng(0)
    >>> counts = np.array([rng.multinomial(200, p) for p in rng.dirichlet([0.2, 1.0], size=2000)], dtype=float)
    >>> alpha = np.ones(2)
    >>> for _ in range(200):
    ...     alpha = step(alpha, evidence(counts, 0 * counts, alpha, np.ones(2000)))
    >>> alpha.round(1)
    array([0.2, 1. ])
    """
    if s.below <= 0:
        return alpha
    return np.clip(alpha * np.clip(s.above / s.below, 1 / CALM, CALM), LEAST, MOST)


def step_from_logs(alpha: np.ndarray, mean_log: np.ndarray) -> np.ndarray:
    """One step of the fixed point for shares, given the mean of E log θ (k,)."""
    new = inverse_digamma(psi(alpha.sum()) + mean_log)
    return np.clip(np.clip(new, alpha / CALM, alpha * CALM), LEAST, MOST)


def inverse_digamma(y: np.ndarray) -> np.ndarray:
    """x > 0 with ψ(x) = y, by Newton's method.

    >>> inverse_digamma(psi(np.array([0.01, 1.0, 50.0]))).round(6)
    array([1.e-02, 1.e+00, 5.e+01])
    """
    x = np.where(y >= -2.22, np.exp(np.minimum(y, 50.0)) + 0.5, -1 / (np.minimum(y, -2.0) - psi(1.0)))
    for _ in range(5):
        x = x - (psi(x) - y) / polygamma(1, x)
    return x
