"""LDA by online variational Bayes.

    q(θ_i) = Dirichlet(γ_i) (n,k)     q(φ_c) = Dirichlet(λ_c) (k,d)     maximise the evidence lower bound

One sweep:  each block   γ_i ← α + Σ_j x_ij r_ij,  r_ijc ∝ exp(E log θ_ic + E log φ_cj), to convergence
            each batch   λ ← (1 − ρ) λ + ρ (β + (tokens / those of the batch) Σ_i x_ij r_ijc),  ρ_t = (1 + t)^−0.7
The objective is minus the mean log-likelihood of a token under the means of both factors (plug-in); α is learned once
a sweep from the mean of E log θ_i.
Reference: Hoffman, Blei & Bach 2010.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy.special import psi

from twofold.core import loop
from twofold.core.engine.local import add
from twofold.core.seeds import generator
from twofold.kernels.lda import log_likelihood, variational, variational_counts
from twofold.topics.lda import _dirichlet
from twofold.topics.lda._documents import Corpus, as_counts, as_weights, batches, finer, pad
from twofold.topics.lda._scvb0 import PATIENCE, blend, word_shares

PASSES, CLOSE = 100, 1e-3  # a document is done when its γ move by less than CLOSE a topic
CELLS = 2**14  # stored counts a block, if the words are not more
BATCH = 8  # blocks
DECAY = 0.7


class State(NamedTuple):
    """Topic counts, which are λ − β, and the documents' prior."""

    counts: np.ndarray  # (d,k)
    alpha: np.ndarray  # (k,)


class Shared(NamedTuple):
    """What the documents are shown."""

    chances: np.ndarray  # (d,K) exp E log φ
    topics: np.ndarray  # (d,K) the means of φ
    alpha: np.ndarray  # (k,)


class Sums(NamedTuple):
    """What a block adds."""

    counts: np.ndarray  # (d,k)
    logp: float
    tokens: float
    prior: _dirichlet.Logs


def expect(counts: np.ndarray, alpha: np.ndarray, beta: float, dtype: np.dtype) -> Shared:
    """exp E log φ and E φ under Dirichlet(counts + β), word-major."""
    lam = counts + beta
    logs = psi(lam) - psi(lam.sum(axis=0))
    # Only the ratios between the topics of a word matter: taken from the largest, rare words do not underflow.
    return Shared(
        pad(np.exp(logs - logs.max(axis=1, keepdims=True)), dtype), pad(word_shares(counts, beta), dtype), alpha
    )


def update_documents(X: Any, w: np.ndarray | None, s: Shared) -> Sums:
    """The rows' half-step: a block's variational Dirichlets, and the topic counts they expect."""
    dtype, k = s.topics.dtype, len(s.alpha)
    cells, alpha, w = as_counts(X, dtype), pad(s.alpha, dtype), as_weights(w, X.shape[0], dtype)
    lengths = np.asarray(X.sum(axis=1), dtype=np.float64).reshape(-1, 1)
    gamma = pad(s.alpha + lengths / k, dtype)
    found = np.zeros_like(s.topics)
    variational(*cells, s.chances, alpha, k, gamma, PASSES, CLOSE)
    variational_counts(*cells, s.chances, k, gamma, w, found)
    logp, tokens = np.empty(len(gamma)), np.empty(len(gamma))
    log_likelihood(*cells, s.topics, gamma / gamma.sum(axis=1, keepdims=True), logp, tokens)
    prior = _dirichlet.sum_logs(gamma[:, :k], w)
    return Sums(found[:, :k].astype(np.float64), float(logp @ w), float(tokens @ w), prior)


def rate(t: int, count: int) -> float:
    """The step of the t-th batch; a batch that is the whole corpus leaves nothing to remember."""
    return 1.0 if count == 1 else (1.0 + t) ** -DECAY


def solver(c: Corpus) -> tuple[State, Callable[[State, int], loop.Sweep]]:
    """Where the loop starts, and its sweep."""
    parts = batches(finer(c.blocks, max(CELLS, c.blocks.shape[1])), c.w, BATCH)
    tokens = float(c.words.sum())

    def sweep(s: State, t: int) -> loop.Sweep:
        counts, found = s.counts, []
        for b, (blocks, w) in enumerate(zip(*parts, strict=True)):
            shared = c.engine.broadcast(expect(counts, s.alpha, c.beta, c.dtype))
            sums = c.engine.reduce(add, c.engine.map(update_documents, blocks, w, shared))
            counts = blend(counts, sums, tokens, rate(t * len(parts.blocks) + b, len(parts.blocks)))
            found.append(sums)
        alpha = s.alpha
        if c.learn and t >= PATIENCE:
            alpha = _dirichlet.step(alpha, reduce(add, (f.prior for f in found)))
        logp, seen = sum(f.logp for f in found), sum(f.tokens for f in found)
        return loop.Sweep(State(counts, alpha), -logp / max(seen, 1e-300), {"alpha": float(alpha.sum())})

    return State(c.topic_counts(generator(c.seed)), c.alpha), sweep


def minibatch(c: Corpus, counts: np.ndarray, alpha: np.ndarray) -> Sums:
    """What a mini-batch of new documents says, given the topic counts so far."""
    shared = c.engine.broadcast(expect(counts, alpha, c.beta, c.dtype))
    return c.engine.reduce(add, c.engine.map(update_documents, c.blocks, c.blocks.rows(c.w), shared))
