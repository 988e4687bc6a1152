"""LDA by variational Bayes, over the whole corpus at a time or over mini-batches.

    q(θ_i) = Dirichlet(γ_i) (n,k)     q(φ_c) = Dirichlet(λ_c) (k,d)     maximise the evidence lower bound

One sweep:  each block   γ_i ← α + Σ_j x_ij r_ij,  r_ijc ∝ exp(E log θ_ic + E log φ_cj), to convergence
            batch        then once    λ ← β + Σ_i x_ij r_ijc
            online       each batch   λ ← (1 − ρ) λ + ρ (β + (documents / those of the batch) Σ_i x_ij r_ijc),
                                      ρ_t = (offset + t)^−decay,  t = 1, 2, … batches
The objective is minus the mean log-likelihood of a token under the means of both factors (plug-in); α is learned once
a sweep from the mean of E log θ_i.

    ELBO(λ) = Σ_i (Σ_j x_ij log Σ_c exp(E log θ_ic + E log φ_cj) − KL(q(θ_i) ‖ p(θ_i))) − Σ_c KL(q(φ_c) ‖ p(φ_c))
References: Blei, Ng & Jordan 2003; Hoffman, Blei & Bach 2010.
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
from twofold.kernels.lda import count_dirichlet_topics, fit_dirichlets, log_likelihood
from twofold.topics.lda import _dirichlet
from twofold.topics.lda._scvb0 import PATIENCE, word_shares
from twofold.topics.lda.documents import Batches, Corpus, as_counts, as_weights, finer, is_usable, pad, runs

CELLS = 2**14  # stored counts a block, if the words are not more


class Plan(NamedTuple):
    """How the corpus is gone through."""

    passes: int  # over a document at most
    close: float  # a document is done when its γ move by less than this a topic
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
    """What the documents are shown."""

    chances: np.ndarray  # (d,K) exp E log φ
    topics: np.ndarray  # (d,K) the means of φ
    alpha: np.ndarray  # (k,)
    passes: int
    close: float


class Sums(NamedTuple):
    """What a block adds."""

    counts: np.ndarray  # (d,k)
    logp: float
    tokens: float
    documents: float
    prior: _dirichlet.Logs


def expect(counts: np.ndarray, alpha: np.ndarray, beta: float, dtype: np.dtype, plan: Plan) -> Shared:
    """exp E log φ and E φ under Dirichlet(counts + β), word-major."""
    topics = pad(word_shares(counts, beta), dtype)
    return Shared(pad(chances(counts + beta), dtype), topics, alpha, plan.passes, plan.close)


def expected_logs(lam: np.ndarray, axis: int) -> np.ndarray:
    """E log p under Dirichlets with these numbers along an axis."""
    logs = psi(lam)
    logs -= psi(lam.sum(axis=axis, keepdims=True))
    return logs


def chances(lam: np.ndarray) -> np.ndarray:
    """exp E log φ (d,k), each word's from its largest: only the ratios between its topics matter, and rare words do not
    underflow."""
    logs = expected_logs(lam, axis=0)
    most = logs.max(axis=1, keepdims=True)
    logs -= np.where(np.isfinite(most), most, 0.0)  # of a word that no topic knows, zeros
    return np.exp(logs, out=logs)


def fold_dirichlets(X: Any, topics: np.ndarray, alpha: np.ndarray, k: int, passes: int, close: float) -> np.ndarray:
    """γ (m,k) of the documents of a block, given exp E log φ (d,K); NaN if a cell is no count."""
    if not is_usable(X):
        return np.full((X.shape[0], k), np.nan, topics.dtype)
    gamma = np.ones((X.shape[0], topics.shape[1]), topics.dtype)
    fit_dirichlets(*as_counts(X, topics.dtype), topics, alpha, k, gamma, passes, close)
    return np.ascontiguousarray(gamma[:, :k])


def document_bounds(X: Any, lam: np.ndarray, alpha: np.ndarray, passes: int, close: float) -> np.ndarray:
    """(m,2): what each document adds to the ELBO, given λ (d,k), and its tokens."""
    gamma = fold_dirichlets(X, pad(chances(lam), np.float64), pad(alpha, np.float64), len(alpha), passes, close)
    if np.isnan(gamma).any():
        return np.full((X.shape[0], 2), np.nan)
    logs, out = expected_logs(gamma, axis=1), np.empty((2, X.shape[0]))
    topics = pad(np.exp(expected_logs(lam, axis=0)), np.float64)
    log_likelihood(*as_counts(X, np.dtype(np.float64)), topics, pad(np.exp(logs), np.float64), *out)
    return np.stack([out[0] - divergences(gamma, logs, alpha), np.asarray(X.sum(axis=1)).ravel()], axis=1)


def divergences(gamma: np.ndarray, logs: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """KL(Dirichlet(γ) ‖ Dirichlet(prior)) of every row of γ (m,k), given its E log."""
    own = gammaln(gamma.sum(axis=1)) - gammaln(gamma).sum(axis=1)
    return own - gammaln(prior.sum()) + gammaln(prior).sum() + ((gamma - prior) * logs).sum(axis=1)


def update_documents(X: Any, w: np.ndarray | None, s: Shared) -> Sums:
    """The rows' half-step: a block's variational Dirichlets, and the topic counts they expect."""
    dtype, k = s.topics.dtype, len(s.alpha)
    cells, alpha, w = as_counts(X, dtype), pad(s.alpha, dtype), as_weights(w, X.shape[0], dtype)
    lengths = np.asarray(X.sum(axis=1), dtype=np.float64).reshape(-1, 1)
    gamma = pad(s.alpha + lengths / k, dtype)
    found = np.zeros_like(s.topics)
    fit_dirichlets(*cells, s.chances, alpha, k, gamma, s.passes, s.close)
    count_dirichlet_topics(*cells, s.chances, k, gamma, w, found)
    logp, tokens = np.empty(len(gamma)), np.empty(len(gamma))
    log_likelihood(*cells, s.topics, gamma / gamma.sum(axis=1, keepdims=True), logp, tokens)
    prior = _dirichlet.sum_logs(gamma[:, :k], w)
    return Sums(found[:, :k].astype(np.float64), float(logp @ w), float(tokens @ w), float(w.sum()), prior)


def move(counts: np.ndarray, sums: Sums, documents: float, rho: float, own: bool = False) -> np.ndarray:
    """Topic counts moved towards those of a batch, as if all documents were like it.

    Those of the batch are used up, and so is `counts` if it is our own.
    """
    if sums.documents <= 0:
        return counts
    moved = np.multiply(counts, 1 - rho, out=counts if own else None)
    moved += np.multiply(sums.counts, rho * documents / sums.documents, out=sums.counts)
    return moved


def solver(c: Corpus, plan: Plan) -> tuple[State, Callable[[State, int], loop.Sweep]]:
    """Where the loop starts, and its sweep."""
    if plan.size is None:
        whole = finer(c.blocks, max(CELLS, c.blocks.shape[1]))
        parts = Batches([whole], [whole.rows(c.w)])
    else:
        parts = runs(c.blocks, c.w, plan.size)

    def sweep(s: State, t: int) -> loop.Sweep:
        counts, found = s.counts, []
        for b, (blocks, w) in enumerate(zip(*parts, strict=True)):
            shared = c.engine.broadcast(expect(counts, s.alpha, c.beta, c.dtype, plan))
            sums = c.engine.reduce(add, c.engine.map(update_documents, blocks, w, shared))
            rho = 1.0 if plan.size is None else plan.rate(t * len(parts.blocks) + b + 1)
            counts = sums.counts if rho == 1 else move(counts, sums, c.documents, rho, own=counts is not s.counts)
            sums = sums._replace(counts=np.empty(0))  # which are in `counts` now
            found.append(sums)
        alpha = s.alpha
        if c.learn and t >= PATIENCE:
            alpha = _dirichlet.step(alpha, reduce(add, (f.prior for f in found)))
        logp, seen = sum(f.logp for f in found), sum(f.tokens for f in found)
        return loop.Sweep(State(counts, alpha), -logp / max(seen, 1e-300), {"alpha": float(alpha.sum())})

    return State(first_counts(c), c.alpha), sweep


def first_counts(c: Corpus) -> np.ndarray:
    """Where to begin (d,k): about 1 everywhere, or like `init` with 1 in the mean, so that it is soon forgotten."""
    if c.init is None:
        return generator(c.seed).gamma(100.0, 0.01, (len(c.words), c.k))
    return c.init.T / c.init.mean()


def minibatch(c: Corpus, counts: np.ndarray, alpha: np.ndarray, plan: Plan) -> Sums:
    """What a mini-batch of new documents says, given the topic counts so far."""
    shared = c.engine.broadcast(expect(counts, alpha, c.beta, c.dtype, plan))
    return c.engine.reduce(add, c.engine.map(update_documents, c.blocks, c.blocks.rows(c.w), shared))
