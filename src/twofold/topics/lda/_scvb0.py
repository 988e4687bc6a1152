"""LDA by stochastic collapsed variational inference of order zero (SCVB0).

    γ_ijc ∝ (N_jc + β)/(N_c + dβ) · (N_ic + α_c)   the chance that word j of document i is of topic c
    N_ic = Σ_j x_ij γ_ijc (n,k)     N_jc = Σ_i x_ij γ_ijc (d,k)     N_c = Σ_j N_jc

One sweep:  each block   a few passes of N_ic ← Σ_j x_ij γ_ijc given N_jc, then its share of N_jc
            each batch   N_jc ← (1 − ρ) N_jc + ρ · (that of the batch, scaled to the corpus); α once a sweep
The objective is minus the mean log-likelihood of a token under the current estimates of both factors (plug-in).
References: Asuncion, Welling, Smyth & Teh 2009 (CVB0); Foulds et al. 2013 (SCVB0).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from twofold.core import loop
from twofold.core.data.blocks import Rows
from twofold.core.engine.local import add
from twofold.core.seeds import generator
from twofold.kernels.lda import count_topics, fit_dirichlets, fold_in
from twofold.topics.lda import _dirichlet
from twofold.topics.lda.documents import Corpus, Kept, as_counts, as_weights, batches, finer, pad

PASSES = 3  # over a document a sweep, from where the last sweep left it
COLD = 10  # the same from nothing
CELLS = 8  # times the words: a block's work is then well above that of adding up its topic counts
BATCH = 16  # blocks
KEPT = 256 * 10**6  # bytes the documents' own counts may take, or else they start anew every sweep
DECAY = 0.7  # ρ_t = (1 + t)^−DECAY, but at least a batch's share of the corpus
PATIENCE = 2  # sweeps before α is learned
ENOUGH = 1000  # documents to learn α from, a sweep
PRIOR_PASSES, CLOSE = 50, 1e-3  # passes over them, until a document's numbers move by less than CLOSE a topic


class State(NamedTuple):
    """The shared factor, its prior, and what every block remembers of its documents."""

    counts: np.ndarray  # (d,k)
    alpha: np.ndarray  # (k,)
    kept: Rows  # of (counts (m,K),)


class Shared(NamedTuple):
    """What the documents are shown."""

    topics: np.ndarray  # (d,K)
    alpha: np.ndarray  # (k,)
    passes: int
    keep: bool
    every: int  # which documents α is learned from: every so many, or none if 0


class Sums(NamedTuple):
    """What a block adds."""

    counts: np.ndarray  # (d,k)
    logp: float
    tokens: float
    prior: _dirichlet.Logs


def word_shares(counts: np.ndarray, beta: float) -> np.ndarray:
    """p(word | topic), word-major: (N_jc + β)/(N_c + dβ)."""
    shares = counts + beta
    return np.divide(shares, counts.sum(axis=0) + len(counts) * beta, out=shares)


def update_documents(X: Any, w: np.ndarray | None, kept: tuple | None, s: Shared) -> tuple[tuple | None, Sums]:
    """The rows' half-step: a block's documents fold in, and say which topic counts they expect."""
    dtype, k = s.topics.dtype, len(s.alpha)
    cells, alpha, w = as_counts(X, dtype), pad(s.alpha, dtype), as_weights(w, X.shape[0], dtype)
    own = np.zeros((X.shape[0], len(alpha)), dtype) if kept is None else kept[0]
    found = np.zeros_like(s.topics)
    fold_in(*cells, s.topics, alpha, own, s.passes - 1, -1.0)
    logp, tokens = count_topics(*cells, s.topics, alpha, own, w, found)
    prior = sum_prior(X, w, own, alpha, s)
    return (own,) if s.keep else None, Sums(found[:, :k].astype(np.float64), logp, tokens, prior)


def sum_prior(X: Any, w: np.ndarray, own: np.ndarray, alpha: np.ndarray, s: Shared) -> _dirichlet.Logs:
    """What some documents say about α. Expected counts cannot tell; a variational Dirichlet a document can."""
    k, some = len(s.alpha), slice(None, None, s.every or None)
    if not s.every:
        return _dirichlet.Logs(np.zeros(k), 0.0)
    gamma = own[some] + alpha
    fit_dirichlets(*as_counts(X[some], s.topics.dtype), s.topics, alpha, k, gamma, PRIOR_PASSES, CLOSE)
    return _dirichlet.sum_logs(gamma[:, :k], w[some])


def rate(t: int, count: int) -> float:
    """How much the t-th batch of all moves the topic counts, when `count` batches make a sweep."""
    return 1.0 if count == 1 else max((1.0 + t) ** -DECAY, 1.0 / count)


def solver(c: Corpus) -> tuple[State, Callable[[State, int], loop.Sweep]]:
    """Where the loop starts, and its sweep."""
    n, d = c.blocks.shape
    parts = batches(finer(c.blocks, max(2**15, CELLS * d)), c.w, BATCH)
    keep = n * (c.k + 16) * c.dtype.itemsize <= KEPT
    tokens = float(c.words.sum())

    def sweep(s: State, t: int) -> loop.Sweep:
        counts, kept, found = s.counts, parts.split(s.kept), []
        every = max(1, n // ENOUGH) if c.learn and t >= PATIENCE else 0
        for b, (blocks, w) in enumerate(zip(*parts, strict=True)):
            shared = Shared(pad(word_shares(counts, c.beta), c.dtype), s.alpha, PASSES if keep else COLD, keep, every)
            kept[b], sums = c.engine.reduce(
                add, c.engine.map(update_documents, blocks, w, kept[b], c.engine.broadcast(shared)), keep=True
            )
            counts = blend(
                counts, sums, tokens, rate(t * len(parts.blocks) + b, len(parts.blocks)), own=counts is not s.counts
            )
            sums = sums._replace(counts=np.empty(0))  # which are in `counts` now
            found.append(sums)
        alpha = _dirichlet.step(s.alpha, reduce(add, (f.prior for f in found))) if every else s.alpha
        logp, seen = sum(f.logp for f in found), sum(f.tokens for f in found)
        return loop.Sweep(State(counts, alpha, kept), -logp / seen, {"alpha": float(alpha.sum())})

    nothing = Kept(Rows([None] * len(b)) for b in parts.blocks)
    return State(c.topic_counts(generator(c.seed)), c.alpha, nothing), sweep


def blend(counts: np.ndarray, sums: Sums, tokens: float, rho: float, own: bool = False) -> np.ndarray:
    """Topic counts moved towards those of a batch, scaled to as many tokens as the corpus has.

    Those of the batch are used up, and so is `counts` if it is our own.
    """
    share = sums.counts.sum()
    if share <= 0:
        return counts
    if rho == 1:
        return np.multiply(sums.counts, tokens / share, out=sums.counts)
    moved = np.multiply(counts, 1 - rho, out=counts if own else None)
    moved += np.multiply(sums.counts, rho * tokens / share, out=sums.counts)
    return moved


def minibatch(c: Corpus, counts: np.ndarray, alpha: np.ndarray) -> Sums:
    """What a mini-batch of new documents says, given the topic counts so far."""
    shared = c.engine.broadcast(Shared(pad(word_shares(counts, c.beta), c.dtype), alpha, COLD, False, int(c.learn)))
    nothing = Rows([None] * len(c.blocks))
    return c.engine.reduce(
        add, c.engine.map(update_documents, c.blocks, c.blocks.rows(c.w), nothing, shared), keep=True
    )[1]
