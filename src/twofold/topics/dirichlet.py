"""The prior of the documents' topics, learned.

    maximise  Σ_i w_i log p(n_i | α)   over α (k,): topic counts n_i (k,) drawn from shares with a Dirichlet(α) prior

One step:  α_c ← α_c Σ_i w_i [ψ(n_ic + α_c) − ψ(α_c)] / Σ_i w_i [ψ(n_i + Σα) − ψ(Σα)]
Reference: Minka 2000 (fixed point of the Dirichlet-multinomial).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.kernels.lda import dirichlet_sums

LEAST, MOST = 1e-4, 1e3  # a topic that nobody has, and one that everybody has alike, stop here
CALM = 2.0  # a step changes no α by more than this factor: the first topics say little


class Sums(NamedTuple):
    """What a block's documents add."""

    above: np.ndarray  # (k,)
    below: float


def evidence(counts: np.ndarray, alpha: np.ndarray, w: np.ndarray) -> Sums:
    """The sums of a step over documents with topic counts (m,K), of which the first k columns are topics."""
    above = np.zeros(len(alpha))
    return Sums(above, float(dirichlet_sums(counts, alpha, w, above)))


def step(alpha: np.ndarray, s: Sums) -> np.ndarray:
    """One step of the fixed point.

    >>> rng = np.random.default_rng(0)
    >>> counts = np.array([rng.multinomial(200, p) for p in rng.dirichlet([0.2, 1.0], size=2000)], dtype=float)
    >>> alpha = np.ones(2)
    >>> for _ in range(200):
    ...     alpha = step(alpha, evidence(counts, alpha, np.ones(2000)))
    >>> alpha.round(1)
    array([0.2, 1. ])
    """
    if s.below <= 0:
        return alpha
    return np.clip(alpha * np.clip(s.above / s.below, 1 / CALM, CALM), LEAST, MOST)
