"""LDA by collapsed Gibbs sampling.

    p(z = c | all other tokens) ∝ (n_ic + α_c)(n_jc + β)/(n_c + dβ)   for a token of word j in document i
    n_ic (n,k) topics of a document    n_jc (d,k) topics of a word    n_c = Σ_j n_jc

One sweep:  each block   draws new topics for all its tokens, from n_jc before the sweep and its own changes
            then once    n_jc ← n_jc + every block's changes; α by the documents' counts
The objective is minus the mean log-likelihood of a token given all others, as the sweep meets them; it is noisy.
References: Griffiths & Steyvers 2004; Newman et al. 2009 (blocks side by side).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.engine.local import add
from twofold.core.seeds import generator
from twofold.kernels.gibbs import LANES, sample_topics
from twofold.topics._nonnegative import find_cell
from twofold.topics.lda.documents import Corpus, PriorCounts, as_counts, finer, pad, step_alpha, sum_counts

BURN_IN = 0.5  # share of the sweeps whose samples are not averaged
MAX_FALL = 0.01  # of the objective from the third to the last quarter of the sweeps, if the sampler has converged
MAX_COUNT, MAX_WORD_TOTAL = 2**16, 2**24  # of a word in a document; in all of them, so that float32 counts exactly
CELLS_PER_WORD = 8  # of a block, so that its work is much more than the sum of its topic counts


class State(NamedTuple):
    """The sample, and the sum of the samples after burn-in, whose mean is the result."""

    counts: np.ndarray  # (d,k)
    alpha: np.ndarray  # (k,)
    total: np.ndarray  # (d,k)
    samples: int
    third: float  # the objective, summed over the third quarter of the sweeps
    fourth: float
    kept: Rows  # of (z (tokens,),)


class Shared(NamedTuple):
    """The values that all blocks read: the counts before the sweep."""

    counts: np.ndarray  # (d,K) float32
    totals: np.ndarray  # (K,)
    alpha: np.ndarray  # (k,)
    beta: float
    learn: bool
    seed: int
    sweep: int


class Sums(NamedTuple):
    """Sums over a block: whole numbers, exact in float32."""

    change: np.ndarray  # (d,K)
    logp: float
    tokens: int
    prior: PriorCounts


def repeat_rows(X: Any, w: np.ndarray | None) -> Any:
    """A document of weight 2 is two documents."""
    return X if w is None else X[np.repeat(np.arange(X.shape[0]), w.astype(np.int64))]


def draw_topics(
    X: Any, w: np.ndarray | None, at: int, k: int, seed: int, init: np.ndarray | None
) -> tuple[tuple, np.ndarray]:
    """Draw the first topics of a block's tokens; return them and their counts (d,k)."""
    data, indices, _ = as_counts(repeat_rows(X, w), np.dtype(np.int64))
    words = np.repeat(indices, data)
    u = generator(seed, 0, at).random(len(words))
    if init is None:
        z = (u * k).astype(np.int32)
    else:
        upto = np.cumsum(init.T + 1e-12, axis=1)  # (d,k)
        z = (u[:, None] * upto[words, -1:] >= upto[words]).sum(axis=1).clip(0, k - 1).astype(np.int32)
    counts = np.bincount(words.astype(np.int64) * k + z, minlength=X.shape[1] * k)
    return (z,), counts.reshape(X.shape[1], k).astype(np.float64)


def resample(X: Any, w: np.ndarray | None, at: int, kept: tuple, s: Shared) -> tuple[tuple, Sums]:
    """Draw new topics for a block's tokens; return them and the change of the counts."""
    X, k, K = repeat_rows(X, w), len(s.alpha), s.counts.shape[1]
    z, own, counts = kept[0].copy(), np.zeros((X.shape[0], K), s.counts.dtype), s.counts.copy()
    uniform = generator(s.seed, s.sweep + 1, at).random(len(z), dtype=np.float32)
    priors = pad(s.alpha, np.float32, LANES), np.float32(s.beta), k
    logp = sample_topics(*as_counts(X, np.dtype(np.int64)), z, counts, s.totals.copy(), *priors, uniform, own)
    counts -= s.counts
    documents = own[:, :k] if s.learn else own[:0, :k]
    prior = sum_counts(documents, s.alpha, np.ones(len(documents)))
    return (z,), Sums(counts, float(logp), len(z), prior)


def solver(c: Corpus, max_iter: int) -> tuple[State, Callable[[State, int], loop.Sweep]]:
    """The first state, and the sweep."""
    check_whole(c)
    d = c.blocks.shape[1]
    blocks = finer(c.blocks, max(2**15, CELLS_PER_WORD * d))
    w, at = blocks.rows(c.w), Rows(range(len(blocks)))
    begin = c.engine.map(draw_topics, blocks, w, at, *(c.engine.broadcast(v) for v in (c.k, c.seed, c.init)))
    kept, counts = c.engine.reduce(add, begin, keep=True)

    def sweep(s: State, t: int) -> loop.Sweep:
        shown = pad(s.counts, np.float32, LANES)
        totals = shown.sum(axis=0, dtype=np.float64)
        shared = c.engine.broadcast(Shared(shown, totals, s.alpha, c.beta, c.learn, c.seed, t))
        kept, sums = c.engine.reduce(add, c.engine.map(resample, blocks, w, at, s.kept, shared), keep=True)
        counts = s.counts + sums.change[:, : c.k]
        alpha = step_alpha(s.alpha, sums.prior) if c.learn else s.alpha
        late, objective = t >= int(BURN_IN * max_iter), -sums.logp / max(sums.tokens, 1)
        third, fourth = (old + objective * (4 * t // max_iter == q) for q, old in ((2, s.third), (3, s.fourth)))
        new = State(counts, alpha, s.total + counts if late else s.total, s.samples + late, third, fourth, kept)
        extra = {"alpha": float(alpha.sum())}
        return loop.Sweep(new, objective, extra, done=t == max_iter - 1, converged=has_settled(third, fourth, max_iter))

    return State(counts, c.alpha, np.zeros((d, c.k)), 0, 0.0, 0.0, kept), sweep


def has_settled(third: float, fourth: float, sweeps: int) -> bool:
    """Return whether the mean objective of the last quarter is hardly below that of the third."""
    if sweeps < 4:
        return False
    sizes = np.bincount(4 * np.arange(sweeps) // sweeps)
    return third / sizes[2] - fourth / sizes[3] <= MAX_FALL * abs(fourth / sizes[3])


def check_whole(c: Corpus) -> None:
    """Raise if a weight or a count is not whole, or too large."""
    remedy = 'learning_method="gibbs" draws tokens one by one'
    if c.w is not None and (c.w != np.floor(c.w)).any():
        i = int(np.argmax(c.w != np.floor(c.w)))
        raise InputError(f'sample_weight[{i}] is {c.w[i]:g}; {remedy} and needs whole weights. Use "scvb0".')
    good = all(c.engine.gather(c.engine.map(_can_sample, c.blocks)))
    cell = None if good else find_cell(c.blocks, lambda x: (x != np.floor(x)) | (x > MAX_COUNT))
    if cell is not None:
        raise InputError(
            f"X[{cell.row}, {cell.column}] is {cell.value:g}; {remedy} and needs whole counts to {MAX_COUNT}. Round or "
            'scale them, or use learning_method="scvb0".'
        )
    if c.words.max() >= MAX_WORD_TOTAL:
        j = int(np.argmax(c.words))
        raise InputError(f'word {j} occurs {c.words[j]:g} times; {remedy} and counts to 2^24. Use "scvb0".')


def _can_sample(X: Any) -> bool:
    data, _, _ = as_counts(X, X.dtype)
    return bool(((data == np.floor(data)) & (data <= MAX_COUNT)).all())
