"""LDA by collapsed Gibbs sampling.

    p(z = c | all other tokens) ∝ (n_ic + α_c)(n_jc + β)/(n_c + dβ)   for a token of word j in document i
    n_ic (n,k) topics of a document    n_jc (d,k) topics of a word    n_c = Σ_j n_jc

One sweep:  each block   draws all its tokens' topics anew, seeing n_jc as it was before the sweep and its own changes
            then once    n_jc ← n_jc + every block's changes; α by the documents' counts
A token costs as many operations as its document has topics: the rest of the chance is proposed by alias tables.
The objective is minus the mean log-likelihood of a token under the topics before the sweep and the new
mixtures (plug-in), which is noisy.
References: Griffiths & Steyvers 2004; Newman et al. 2009 (blocks side by side); Li et al. 2014 (alias tables).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from twofold.core import loop
from twofold.core.blocks import Rows
from twofold.core.checks import InputError
from twofold.core.engine import add
from twofold.core.seeds import generator
from twofold.kernels.gibbs import alias_tables, sample_topics
from twofold.kernels.lda import log_likelihood
from twofold.topics import dirichlet
from twofold.topics.corpus import Corpus, as_counts, padded
from twofold.topics.scvb0 import topics_of

BURN_IN = 0.5  # of the sweeps, whose samples are not averaged


class State(NamedTuple):
    """The sample, and the sum of the samples after burn-in."""

    counts: np.ndarray  # (d,k)
    alpha: np.ndarray  # (k,)
    total: np.ndarray  # (d,k)
    samples: int
    kept: Rows  # of (z (tokens,),)


class Shared(NamedTuple):
    """What the blocks are shown: the counts before the sweep, and the alias tables made from them."""

    counts: np.ndarray  # (d,k)
    alpha: np.ndarray  # (k,)
    beta: float
    topics: np.ndarray  # (d,K) as they were
    mass: np.ndarray  # (d,k)
    keep: np.ndarray  # (d,k)
    other: np.ndarray  # (d,k)
    seed: int
    sweep: int


class Sums(NamedTuple):
    """What a block adds."""

    change: np.ndarray  # (d,k)
    logp: float
    tokens: float
    prior: dirichlet.Counts


def tokens_of(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """A block's tokens as words, document after document, and where each document starts."""
    data, indices, indptr = as_counts(X, np.dtype(np.int64))
    return np.repeat(indices, data), np.concatenate([[0], np.cumsum(data)])[indptr]


def deal(X: Any, at: int, k: int, seed: int, init: np.ndarray | None) -> tuple[tuple, np.ndarray]:
    """The first topics of a block's tokens, at random or by the starting topics, and their counts (d,k)."""
    words, _ = tokens_of(X)
    u = generator(seed, 0, at).random(len(words))
    if init is None:
        z = (u * k).astype(np.int32)
    else:
        upto = np.cumsum(init.T + 1e-12, axis=1)  # (d,k)
        z = (u[:, None] * upto[words, -1:] >= upto[words]).sum(axis=1).clip(0, k - 1).astype(np.int32)
    counts = np.bincount(words.astype(np.int64) * k + z, minlength=X.shape[1] * k)
    return (z,), counts.reshape(X.shape[1], k).astype(np.float64)


def resample(X: Any, at: int, kept: tuple, s: Shared) -> tuple[tuple, Sums]:
    """The rows' half-step: new topics for a block's tokens, and what that changes."""
    words, starts = tokens_of(X)
    (z,), k = kept, len(s.alpha)
    own, counts = np.zeros((X.shape[0], k)), s.counts.copy()
    uniform = generator(s.seed, s.sweep + 1, at).random((len(words), 2))
    totals = counts.sum(axis=0, dtype=np.float64)
    sample_topics(words, starts, z, counts, totals, s.alpha, s.beta, s.mass, s.keep, s.other, uniform, own)
    shares = (own + s.alpha) / (own.sum(axis=1, keepdims=True) + s.alpha.sum())
    logp, tokens = np.empty(len(own)), np.empty(len(own))
    log_likelihood(*as_counts(X, s.topics.dtype), s.topics, padded(shares, s.topics.dtype), logp, tokens)
    prior = dirichlet.counts_of(own, s.alpha, np.ones(len(own)))
    return (z,), Sums((counts - s.counts).astype(np.float64), float(logp.sum()), float(tokens.sum()), prior)


def tables(topics: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The part of the chances that does not depend on the document, α_c (n_jc + β)/(n_c + dβ), and its alias tables."""
    mass = (topics * alpha).astype(np.float32)
    keep, other = np.empty_like(mass), np.empty(mass.shape, np.int32)
    alias_tables(mass, keep, other)
    return mass, keep, other


def solver(c: Corpus, max_iter: int) -> tuple[State, Callable[[State, int], loop.Sweep]]:
    """Where the loop starts, and its sweep."""
    check_whole(c)
    at, d = Rows(range(len(c.blocks))), c.blocks.shape[1]
    begin = c.engine.map(deal, c.blocks, at, *(c.engine.broadcast(v) for v in (c.k, c.seed, c.init)))
    kept, counts = c.engine.reduce(add, begin, keep=True)

    def sweep(s: State, t: int) -> loop.Sweep:
        topics = topics_of(s.counts, c.beta)
        single = np.dtype(np.float32)  # counts below 2^24 are exact in it
        shown = Shared(
            s.counts.astype(single), s.alpha, c.beta, padded(topics, single), *tables(topics, s.alpha), c.seed, t
        )
        kept, sums = c.engine.reduce(
            add, c.engine.map(resample, c.blocks, at, s.kept, c.engine.broadcast(shown)), keep=True
        )
        counts = s.counts + sums.change
        alpha = dirichlet.step(s.alpha, sums.prior) if c.learn else s.alpha
        late = t >= int(BURN_IN * max_iter)
        new = State(counts, alpha, s.total + counts if late else s.total, s.samples + late, kept)
        objective = -sums.logp / max(sums.tokens, 1)
        return loop.Sweep(new, objective, {"alpha": float(alpha.sum())}, done=t == max_iter - 1)

    return State(counts, c.alpha, np.zeros((d, c.k)), 0, kept), sweep


def check_whole(c: Corpus) -> None:
    """Tokens can be drawn one by one only where counts are whole and count alike."""
    if c.w is not None:
        raise InputError(
            'solver="gibbs" draws tokens one by one and takes no sample_weight. Repeat rows, or use "scvb0".'
        )
    places = c.engine.gather(c.engine.map(_first_part, c.blocks))
    for start, place in zip(c.blocks.bounds, places, strict=False):
        if place is not None:
            raise InputError(
                f'X[{int(start) + place[0]}, {place[1]}] is {place[2]:g}; solver="gibbs" needs whole counts up to '
                '2^24. Round them, or use solver="scvb0".'
            )


def _first_part(X: Any) -> tuple[int, int, float] | None:
    data, indices, indptr = as_counts(X, X.dtype)
    bad = (data != np.floor(data)) | (data > 2**24)
    if not bad.any():
        return None
    at = int(np.argmax(bad))
    return int(np.searchsorted(indptr, at, side="right")) - 1, int(indices[at]), float(data[at])


def topic_counts(s: State) -> np.ndarray:
    """The mean of the samples after burn-in; before, the last sample."""
    return s.total / s.samples if s.samples else s.counts
