"""Documents as the solvers of LDA see them: counts in blocks, blocks in mini-batches.

Where blocks and batches are cut depends on the data alone, never on threads or on where it lies. A batch takes every
B-th block, so that a corpus sorted by subject still gives batches that are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import Engine, add, engine_for

FEW = 10**6  # cells of a table up to which float64 is computed in float64
LANES = 16  # numbers a row of topics is filled up to a multiple of, so that compiled loops have no ragged end


class Corpus(NamedTuple):
    """What stays the same over the sweeps."""

    engine: Engine
    blocks: Blocks
    w: np.ndarray | None
    words: np.ndarray  # (d,) how often each occurs, with weights
    documents: float  # how many there are, with weights
    k: int
    alpha: np.ndarray  # (k,) at the start
    learn: bool
    beta: float
    seed: int
    init: np.ndarray | None  # (k,d)

    @property
    def dtype(self) -> np.dtype:
        """The precision to work in. Counts of a large corpus need no more than single."""
        n, d = self.blocks.shape
        return np.dtype(np.float32) if n * d > FEW else self.blocks.dtype

    def topic_counts(self, rng: np.random.Generator) -> np.ndarray:
        """Where to begin (d,k): every word's occurrences dealt out to the topics, at random or like `init`."""
        if self.init is not None:
            return self.init.T * (self.words.sum() / self.k)
        parts = rng.standard_exponential((len(self.words), self.k))
        return parts * (self.words / parts.sum(axis=1))[:, None]


class Batch(Sequence):
    """Some blocks of a `Blocks`, in their order."""

    def __init__(self, blocks: Blocks, which: np.ndarray):
        self.blocks, self.which = blocks, which

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, i: Any) -> Any:
        return self.blocks[int(self.which[i])]


class Batches(NamedTuple):
    """Mini-batches: their blocks and the weights of their rows."""

    blocks: list
    weights: list[Rows]

    def split(self, kept: Rows) -> Kept:
        """What the blocks keep, cut as the batches are."""
        if isinstance(kept, Kept):
            return kept
        ends = np.cumsum([len(b) for b in self.blocks])
        return Kept(Rows(kept[e - len(b) : e]) for e, b in zip(ends, self.blocks, strict=True))


class Kept(Rows):
    """What the blocks of every batch keep: a Rows a batch."""

    def local(self) -> list:
        return [item for rows in self for item in rows.local()]


def finer(blocks: Blocks, cells: int) -> Blocks:
    """Sparse counts cut after so many stored values; everything else as it is."""
    return Blocks(blocks.source.finer(cells)) if blocks.is_sparse else blocks


def batches(blocks: Blocks, w: np.ndarray | None, size: int) -> Batches:
    """Mini-batches of about `size` blocks, each taking every B-th."""
    rows, count = blocks.rows(w), max(1, len(blocks) // size)
    if count == 1:
        return Batches([blocks], [rows])
    chosen = [np.arange(b, len(blocks), count) for b in range(count)]
    return Batches([_some(blocks, which) for which in chosen], [Rows(rows[i] for i in which) for which in chosen])


def _some(blocks: Blocks, which: np.ndarray) -> Any:
    if not blocks.source.is_lazy:
        return Batch(blocks, which)
    # Where a cluster has the rows it must be told which; blocks are equally long but for the last, which stays last.
    rows = np.concatenate([np.arange(blocks.bounds[i], blocks.bounds[i + 1]) for i in which])
    return Blocks(blocks.source.some(rows))


def as_counts(X: Any, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A block's data, indices and indptr as the kernels want them; zeros of a dense block are left out."""
    X = X if sparse.issparse(X) else sparse.csr_array(X)
    return X.data.astype(dtype, copy=False), X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)


def weights_of(w: np.ndarray | None, rows: int, dtype: np.dtype) -> np.ndarray:
    return np.ones(rows, dtype) if w is None else w.astype(dtype)


def padded(topics: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """(d,k) → (d,K), K the next multiple of `LANES` (of 8 for few topics), filled up with zeros."""
    k = topics.shape[-1]
    lanes = LANES if k > 8 else 8
    out = np.zeros((*topics.shape[:-1], -(-k // lanes) * lanes), dtype)
    out[..., :k] = topics
    return out


def usable(X: Any) -> bool:
    """Whether every cell is a finite number that is not negative."""
    cells = X.data if sparse.issparse(X) else X
    return cells.size == 0 or bool(cells.min() >= 0 and np.isfinite(cells.max()))


def _word_counts(X: Any, w: np.ndarray | None) -> tuple[np.ndarray, int]:
    if not usable(X):
        return np.zeros(X.shape[1]), 1
    w = np.ones(X.shape[0]) if w is None else w
    return np.asarray(X.T @ w, dtype=np.float64).ravel(), 0


def survey(blocks: Blocks, w: np.ndarray | None) -> np.ndarray | None:
    """How often each word occurs (d,), with weights; None if a cell is no count."""
    engine = engine_for(blocks)
    words, bad = engine.reduce(add, engine.map(_word_counts, blocks, blocks.rows(w)))
    return None if bad else words


def starting_topics(init: Any, k: int, d: int) -> np.ndarray:
    """The user's topics, rows summing to one."""
    topics = np.asarray(init, dtype=np.float64)
    if topics.shape != (k, d):
        raise InputError(f"init has shape {topics.shape}; {(k, d)} is needed, a row of word weights for each topic.")
    if not (np.isfinite(topics).all() and topics.min() >= 0 and topics.sum(axis=1).min() > 0):
        raise InputError("init must hold finite weights >= 0, with at least one word in every row.")
    return topics / topics.sum(axis=1, keepdims=True)


def prior_of(value: Any, k: int) -> np.ndarray:
    """doc_topic_prior as one number a topic."""
    alpha = np.asarray(value, dtype=np.float64)
    if alpha.ndim == 0:
        return np.full(k, float(alpha))
    if alpha.shape != (k,) or not (np.isfinite(alpha).all() and alpha.min() > 0):
        raise InputError(f'doc_topic_prior is {value}; give "learned", one number > 0, or {k} of them.')
    return alpha
