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
from twofold.topics.lda.documents import (
    Corpus,
    Kept,
    PriorLogs,
    as_counts,
    as_weights,
    batches,
    blend,
    finer,
    pad,
    step_alpha,
    sum_logs,
)

PASSES = 3  # over a document a sweep, from the counts of the last sweep
FIRST_PASSES = 10  # the same from zero
CELLS_PER_WORD = 8  # of a block, so that its work is much more than the sum of its topic counts
BLOCKS_PER_BATCH = 16
MAX_KEPT_BYTES = 256 * 10**6  # of the documents' own counts; if they need more, they start from zero every sweep
DECAY = 0.7  # ρ_t = (1 + t)^−DECAY, but at least a batch's share of the corpus
FIRST_ALPHA_SWEEP = 2  # in which α is learned
ALPHA_DOCUMENTS = 1000  # to learn α from, a sweep
ALPHA_PASSES, ALPHA_TOLERANCE = 50, 1e-3  # over them; the change of a document's numbers a topic


class State(NamedTuple):
    """The topics, the prior, and the counts that every block keeps of its documents."""

    counts: np.ndarray  # (d,k)
    alpha: np.ndarray  # (k,)
    kept: Rows  # of (counts (m,K),)


class Shared(NamedTuple):
    """The values that all documents read."""

    topics: np.ndarray  # (d,K)
    alpha: np.ndarray  # (k,)
    passes: int
    keep: bool
    every: int  # α is learned from every `every`-th document; from none if 0


class Sums(NamedTuple):
    """Sums over a block."""

    counts: np.ndarray  # (d,k)
    logp: float
    tokens: float
    prior: PriorLogs


def word_shares(counts: np.ndarray, beta: float) -> np.ndarray:
    """p(word | topic), word-major: (N_jc + β)/(N_c + dβ)."""
    shares = counts + beta
    return np.divide(shares, counts.sum(axis=0) + len(counts) * beta, out=shares)


def update_documents(X: Any, w: np.ndarray | None, kept: tuple | None, s: Shared) -> tuple[tuple | None, Sums]:
    """Fold in the documents of a block; return their counts and their sums."""
    dtype, k = s.topics.dtype, len(s.alpha)
    cells, alpha, w = as_counts(X, dtype), pad(s.alpha, dtype), as_weights(w, X.shape[0], dtype)
    own = np.zeros((X.shape[0], len(alpha)), dtype) if kept is None else kept[0]
    found = np.zeros_like(s.topics)
    fold_in(*cells, s.topics, alpha, own, s.passes - 1, -1.0)
    logp, tokens = count_topics(*cells, s.topics, alpha, own, w, found)
    prior = sum_prior(X, w, own, alpha, s)
    return (own,) if s.keep else None, Sums(found[:, :k].astype(np.float64), logp, tokens, prior)


def sum_prior(X: Any, w: np.ndarray, counts: np.ndarray, alpha: np.ndarray, s: Shared) -> PriorLogs:
    """Sums for α over some documents, of a variational Dirichlet each: expected counts are no substitute."""
    k, some = len(s.alpha), slice(None, None, s.every or None)
    if not s.every:
        return PriorLogs(np.zeros(k), 0.0)
    gamma = counts[some] + alpha
    fit_dirichlets(*as_counts(X[some], s.topics.dtype), s.topics, alpha, k, gamma, ALPHA_PASSES, ALPHA_TOLERANCE)
    return sum_logs(gamma[:, :k], w[some])


def rate(t: int, count: int) -> float:
    """The weight of the t-th batch in the topic counts, when `count` batches make a sweep."""
    return 1.0 if count == 1 else max((1.0 + t) ** -DECAY, 1.0 / count)


def solver(c: Corpus) -> tuple[State, Callable[[State, int], loop.Sweep]]:
    """The first state, and the sweep."""
    n, d = c.blocks.shape
    parts = batches(finer(c.blocks, max(2**15, CELLS_PER_WORD * d)), c.w, BLOCKS_PER_BATCH)
    keep = n * (c.k + 16) * c.dtype.itemsize <= MAX_KEPT_BYTES
    tokens = float(c.words.sum())

    def sweep(s: State, t: int) -> loop.Sweep:
        counts, kept, found = s.counts, parts.split(s.kept), []
        every = max(1, n // ALPHA_DOCUMENTS) if c.learn and t >= FIRST_ALPHA_SWEEP else 0
        for b, (blocks, w) in enumerate(zip(*parts, strict=True)):
            topics = pad(word_shares(counts, c.beta), c.dtype)
            shared = c.engine.broadcast(Shared(topics, s.alpha, PASSES if keep else FIRST_PASSES, keep, every))
            folded = c.engine.map(update_documents, blocks, w, kept[b], shared)
            kept[b], sums = c.engine.reduce(add, folded, keep=True)
            rho = rate(t * len(parts.blocks) + b, len(parts.blocks))
            counts = blend(counts, sums.counts, tokens, sums.counts.sum(), rho, reuse=counts is not s.counts)
            found.append(sums._replace(counts=np.empty(0)))  # they are in `counts` now
        alpha = step_alpha(s.alpha, reduce(add, (f.prior for f in found))) if every else s.alpha
        logp, seen = sum(f.logp for f in found), sum(f.tokens for f in found)
        return loop.Sweep(State(counts, alpha, kept), -logp / seen, {"alpha": float(alpha.sum())})

    nothing = Kept(Rows([None] * len(b)) for b in parts.blocks)
    return State(c.start_counts(generator(c.seed)), c.alpha, nothing), sweep


def learn_batch(c: Corpus, counts: np.ndarray, alpha: np.ndarray) -> Sums:
    """Sums over a mini-batch of new documents, given the topic counts so far."""
    shared = Shared(pad(word_shares(counts, c.beta), c.dtype), alpha, FIRST_PASSES, False, int(c.learn))
    nothing = Rows([None] * len(c.blocks))
    folded = c.engine.map(update_documents, c.blocks, c.blocks.rows(c.w), nothing, c.engine.broadcast(shared))
    return c.engine.reduce(add, folded, keep=True)[1]
