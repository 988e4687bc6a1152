"""LDA by variational Bayes, over the whole corpus at a time or over mini-batches.

    q(θ_i) = Dirichlet(γ_i) (n,k)     q(φ_c) = Dirichlet(λ_c) (k,d)     maximize the evidence lower bound

One sweep:  each block   γ_i ← α + Σ_j x_ij r_ij,  r_ijc ∝ exp(E log θ_ic + E log φ_cj), to convergence
            batch        then once    λ ← β + Σ_i x_ij r_ijc
            online       each batch   λ ← (1 − ρ) λ + ρ (β + (documents / those of the batch) Σ_i x_ij r_ijc),
                                      ρ_t = (offset + t)^−decay,  t = 1, 2, … batches
The objective is minus the mean log-likelihood of a token under the means of both factors (plug-in); α is learned once
a sweep from the mean of E log θ_i.

    ELBO(λ) = Σ_i (Σ_j x_ij log Σ_c exp(E log θ_ic + E log φ_cj) − KL(q(θ_i) ‖ p(θ_i))) − Σ_c KL(q(φ_c) ‖ p(φ_c))

The evidence of a document, given topics and prior:   p(x | Z, α) = ∫ Π_j (Σ_c θ_c Z_cj)^x_j Dirichlet(θ | α) dθ
From below, for q(θ) = Dirichlet(γ):   Σ_j x_j log Σ_c exp(E log θ_c) Z_cj − KL(q(θ) ‖ p(θ | α))
By importance sampling:   the mean of p(x | θ_s) p(θ_s) / q(θ_s) over θ_s ~ q, a mixture of Dirichlet(α + h (γ − α))
References: Blei, Ng & Jordan 2003; Hoffman, Blei & Bach 2010; Wallach et al. 2009; Owen & Zhou 2000 (mixtures).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, psi

from twofold.core import loop
from twofold.core.engine.local import add
from twofold.core.seeds import generator
from twofold.kernels.lda import count_dirichlet_topics, estimate_evidence, fit_dirichlets
from twofold.topics.lda._scvb0 import FIRST_ALPHA_SWEEP, word_shares
from twofold.topics.lda.documents import (
    Batches,
    Corpus,
    PriorLogs,
    as_counts,
    as_weights,
    blend,
    finer,
    is_usable,
    pad,
    runs,
    score_counts,
    step_alpha,
    sum_logs,
)

CELLS_PER_BLOCK = 2**14  # or the number of words, if that is more
BOUND_PASSES, BOUND_TOLERANCE = 200, 1e-5  # of `elbo`; the change of γ a topic
PROPOSAL_SCALES = np.array([1.0, 0.5, 0.25, 0.1])  # h of the Dirichlets that importance sampling draws from


class Plan(NamedTuple):
    """Settings of the sweeps."""

    max_passes: int  # over a document
    tolerance: float  # a document is done when its γ move by less than this a topic
    size: int | None = None  # documents of a batch; None is all of them
    offset: float = 10.0
    decay: float = 0.7

    def rate(self, t: int) -> float:
        """The step of the t-th batch, t = 1, 2, …"""
        return (self.offset + t) ** -self.decay


class State(NamedTuple):
    """Topic counts, which are λ − β, and the documents' prior."""

    counts: np.ndarray  # (d,k)
    alpha: np.ndarray  # (k,)


class Shared(NamedTuple):
    """The values that all documents read."""

    chances: np.ndarray  # (d,K) exp E log φ
    topics: np.ndarray  # (d,K) the means of φ
    alpha: np.ndarray  # (k,)
    max_passes: int
    tolerance: float


class Sums(NamedTuple):
    """Sums over a block."""

    counts: np.ndarray  # (d,k)
    logp: float
    tokens: float
    documents: float
    prior: PriorLogs


def expect(counts: np.ndarray, alpha: np.ndarray, beta: float, dtype: np.dtype, plan: Plan) -> Shared:
    """exp E log φ and E φ under Dirichlet(counts + β), word-major."""
    topics = pad(word_shares(counts, beta), dtype)
    return Shared(pad(chances(counts + beta), dtype), topics, alpha, *plan[:2])


def expect_logs(lam: np.ndarray, axis: int) -> np.ndarray:
    """E log p under Dirichlets with these numbers along an axis."""
    logs = psi(lam)
    logs -= psi(lam.sum(axis=axis, keepdims=True))
    return logs


def chances(lam: np.ndarray) -> np.ndarray:
    """exp E log φ (d,k), each word's from its largest: only the ratios between its topics matter, and rare words do not
    underflow."""
    logs = expect_logs(lam, axis=0)
    most = logs.max(axis=1, keepdims=True)
    logs -= np.where(np.isfinite(most), most, 0.0)  # of a word that no topic knows, zeros
    return np.exp(logs, out=logs)


def fold_dirichlets(
    X: Any, topics: np.ndarray, alpha: np.ndarray, k: int, max_passes: int, tolerance: float
) -> np.ndarray:
    """γ (m,k) of the documents of a block, given exp E log φ (d,K); NaN if a cell is no count."""
    if not is_usable(X):
        return np.full((X.shape[0], k), np.nan, topics.dtype)
    gamma = np.ones((X.shape[0], topics.shape[1]), topics.dtype)
    fit_dirichlets(*as_counts(X, topics.dtype), topics, alpha, k, gamma, max_passes, tolerance)
    return np.ascontiguousarray(gamma[:, :k])


def _bound(X: Any, gamma: np.ndarray, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(m,): Σ_j x_j log Σ_c exp(E log θ_c) topics_jc − KL(Dirichlet(γ) ‖ Dirichlet(α)) of each document."""
    logs = expect_logs(gamma, axis=1)
    return score_counts(X, topics, pad(np.exp(logs), np.float64))[0] - divergences(gamma, logs, alpha)


def document_bounds(X: Any, lam: np.ndarray, alpha: np.ndarray, max_passes: int, tolerance: float) -> np.ndarray:
    """(m,2): the term of each document in the ELBO, given λ (d,k), and its tokens; NaN if a cell is no count."""
    padded = pad(alpha, np.float64)
    gamma = fold_dirichlets(X, pad(chances(lam), np.float64), padded, len(alpha), max_passes, tolerance)
    if np.isnan(gamma).any():
        return np.full((X.shape[0], 2), np.nan)
    topics = pad(np.exp(expect_logs(lam, axis=0)), np.float64)
    return np.stack([_bound(X, gamma, topics, alpha), np.asarray(X.sum(axis=1)).ravel()], axis=1)


def divergences(gamma: np.ndarray, logs: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """KL(Dirichlet(γ) ‖ Dirichlet(prior)) of every row of γ (m,k), given its E log."""
    own = gammaln(gamma.sum(axis=1)) - gammaln(gamma).sum(axis=1)
    return own - gammaln(prior.sum()) + gammaln(prior).sum() + ((gamma - prior) * logs).sum(axis=1)


def update_documents(X: Any, w: np.ndarray | None, s: Shared) -> Sums:
    """Find the variational Dirichlets of a block; return the topic counts that they expect."""
    dtype, k = s.topics.dtype, len(s.alpha)
    cells, alpha, w = as_counts(X, dtype), pad(s.alpha, dtype), as_weights(w, X.shape[0], dtype)
    lengths = np.asarray(X.sum(axis=1), dtype=np.float64).reshape(-1, 1)
    gamma = pad(s.alpha + lengths / k, dtype)
    found = np.zeros_like(s.topics)
    fit_dirichlets(*cells, s.chances, alpha, k, gamma, s.max_passes, s.tolerance)
    count_dirichlet_topics(*cells, s.chances, k, gamma, w, found)
    logp, tokens = score_counts(X, s.topics, gamma / gamma.sum(axis=1, keepdims=True))
    prior = sum_logs(gamma[:, :k], w)
    return Sums(found[:, :k].astype(np.float64), float(logp @ w), float(tokens @ w), float(w.sum()), prior)


def solver(c: Corpus, plan: Plan) -> tuple[State, Callable[[State, int], loop.Sweep]]:
    """The first state, and the sweep."""
    if plan.size is None:
        whole = finer(c.blocks, max(CELLS_PER_BLOCK, c.blocks.shape[1]))
        parts = Batches([whole], [whole.rows(c.w)])
    else:
        parts = runs(c.blocks, c.w, plan.size)

    def sweep(s: State, t: int) -> loop.Sweep:
        counts, found = s.counts, []
        for b, (blocks, w) in enumerate(zip(*parts, strict=True)):
            shared = c.engine.broadcast(expect(counts, s.alpha, c.beta, c.dtype, plan))
            sums = c.engine.reduce(add, c.engine.map(update_documents, blocks, w, shared))
            rho = 1.0 if plan.size is None else plan.rate(t * len(parts.blocks) + b + 1)
            if rho == 1:
                counts = sums.counts
            else:
                counts = blend(counts, sums.counts, c.documents, sums.documents, rho, reuse=counts is not s.counts)
            found.append(sums._replace(counts=np.empty(0)))  # they are in `counts` now
        alpha = s.alpha
        if c.learn and t >= FIRST_ALPHA_SWEEP:
            alpha = step_alpha(alpha, reduce(add, (f.prior for f in found)))
        logp, seen = sum(f.logp for f in found), sum(f.tokens for f in found)
        return loop.Sweep(State(counts, alpha), -logp / max(seen, 1e-300), {"alpha": float(alpha.sum())})

    return State(start_counts(c), c.alpha), sweep


def start_counts(c: Corpus) -> np.ndarray:
    """Topic counts to start from (d,k): about 1 everywhere, or like `init` with mean 1, less than a sweep adds."""
    if c.init is None:
        return generator(c.seed).gamma(100.0, 0.01, (len(c.words), c.k))
    return c.init.T / c.init.mean()


def learn_batch(c: Corpus, counts: np.ndarray, alpha: np.ndarray, plan: Plan) -> Sums:
    """Sums over a mini-batch of new documents, given the topic counts so far."""
    shared = c.engine.broadcast(expect(counts, alpha, c.beta, c.dtype, plan))
    return c.engine.reduce(add, c.engine.map(update_documents, c.blocks, c.blocks.rows(c.w), shared))


# --- the evidence of a document, whatever its mixture -----------------------------------------------------------


def fold_exactly(X: Any, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """γ (m,k) of the documents of a block, given p(word | topic) (d,K), without the words that no topic knows."""
    return fold_dirichlets(X, topics, pad(alpha, np.float64), len(alpha), BOUND_PASSES, BOUND_TOLERANCE)


def bound_evidence(X: Any, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(m,): the lower bound of each document's log-likelihood; NaN if a cell is no count."""
    gamma = fold_exactly(X, topics, alpha)
    return np.full(X.shape[0], np.nan) if np.isnan(gamma).any() else _bound(X, gamma, topics, alpha)


def sample_evidence(X: Any, topics: np.ndarray, alpha: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """(m,2): the estimate of each document's log-likelihood, and its standard error; NaN if a cell is no count.

    The q of the bound is narrower than the posterior where topics overlap; the draws with h < 1 reach the rest.
    """
    if not is_usable(X):
        return np.full((X.shape[0], 2), np.nan)
    out = np.empty((2, X.shape[0]))
    settings = alpha, len(alpha), fold_exactly(X, topics, alpha), PROPOSAL_SCALES, draws, np.uint64(seed)
    estimate_evidence(*as_counts(X, np.dtype(np.float64)), topics, *settings, *out)
    return out.T
