"""Documents as the solvers of LDA see them: counts in blocks, blocks in mini-batches; and the mixtures of new ones.

Where blocks and batches are cut depends on the data alone, never on threads or on where it lies. A batch takes every
B-th block, so that a corpus sorted by subject still gives batches that are alike.

New documents fold in with the topics held fixed: θ_c ∝ α_c + Σ_j x_j γ_jc,  γ_jc ∝ θ_c p(j | c), repeated until it
stands still.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.sources.base import Source, even_rows
from twofold.core.engine.local import Engine, engine_for
from twofold.kernels.lda import fold_in, log_likelihood

FEW = 10**6  # cells of a table up to which float64 is computed in float64
PASSES, CLOSE = 200, 1e-5  # of folding in, until topic counts move by less than this share of the document's length
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


class Batch(Blocks):
    """Some blocks of a `Blocks`, in their order."""

    def __init__(self, blocks: Blocks, which: np.ndarray):
        self.blocks, self.which, self.source = blocks, which, blocks.source
        self.block_bytes = blocks.block_bytes

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, i: Any) -> Any:
        return self.blocks[int(self.which[i])]


class Runs(Blocks):
    """Some rows of a source that follow each other, in pieces."""

    def __init__(self, source: Source, bounds: np.ndarray):
        super().__init__(source)
        self.bounds = bounds


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

    def local(self) -> Iterator:
        return (item for rows in self for item in rows.local())


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


def runs(blocks: Blocks, w: np.ndarray | None, size: int) -> Batches:
    """Mini-batches of `size` documents that follow each other."""
    n, weights = blocks.shape[0], []
    pieces: list[Any] = []
    for a in range(0, n, size):
        b = min(a + size, n)
        step = even_rows((b - a, blocks.shape[1]), blocks.dtype)
        cuts = np.append(np.arange(a, b, step), b)
        pieces.append(_there(blocks, np.arange(a, b), cuts - a) if _apart(blocks) else Runs(blocks.source, cuts))
        weights.append(Rows(None if w is None else w[i:j] for i, j in pairwise(cuts)))
    return Batches(pieces, weights)


def _some(blocks: Blocks, which: np.ndarray) -> Any:
    if not _apart(blocks):
        return Batch(blocks, which)
    rows = [np.arange(blocks.bounds[i], blocks.bounds[i + 1]) for i in which]
    return _there(blocks, np.concatenate(rows), np.cumsum([0, *map(len, rows)]))


def _apart(blocks: Blocks) -> bool:
    """Whether the rows are read by workers of a cluster."""
    return blocks.source.is_lazy or type(engine_for(blocks)) is not Engine


def _there(blocks: Blocks, rows: np.ndarray, bounds: np.ndarray) -> Blocks:
    """Some rows, cut at these bounds. Where a cluster has the rows it must be told which."""
    source = blocks.source.some(rows)
    source.bounds = bounds
    return Blocks(source)


def as_counts(X: Any, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A block's data, indices and indptr as the kernels want them; zeros of a dense block are left out."""
    X = X if sparse.issparse(X) else sparse.csr_array(X)
    return X.data.astype(dtype, copy=False), X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)


def as_weights(w: np.ndarray | None, rows: int, dtype: np.dtype) -> np.ndarray:
    return np.ones(rows, dtype) if w is None else w.astype(dtype)


def pad(topics: np.ndarray, dtype: Any, lanes: int | None = None) -> np.ndarray:
    """(…,k) → (…,K), K the next multiple of `lanes` (by default `LANES`, or 8 for few topics), filled with zeros."""
    k = topics.shape[-1]
    lanes = lanes or (LANES if k > 8 else 8)
    out = np.zeros((*topics.shape[:-1], -(-k // lanes) * lanes), dtype)
    out[..., :k] = topics
    return out


def is_usable(X: Any) -> bool:
    """Whether every cell is a finite number that is not negative."""
    cells = X.data if sparse.issparse(X) else X
    return cells.size == 0 or bool(cells.min() >= 0 and np.isfinite(cells.max()))


def fold_counts(X: Any, topics: np.ndarray, alpha: np.ndarray, passes: int = PASSES) -> np.ndarray:
    """α and the expected topic counts (m,K) of a block, padding included; NaN if a cell is no count."""
    if not is_usable(X):
        return np.full((X.shape[0], len(alpha)), np.nan, topics.dtype)
    counts = np.zeros((X.shape[0], len(alpha)), topics.dtype)
    fold_in(*as_counts(X, topics.dtype), topics, alpha, counts, passes, CLOSE)
    return np.maximum(counts, 0) + alpha


def fold_mixtures(X: Any, topics: np.ndarray, alpha: np.ndarray, passes: int = PASSES) -> np.ndarray:
    """p(topic | document) (m,K) of a block, padding included; NaN if a cell is no count."""
    counts = fold_counts(X, topics, alpha, passes)
    return counts / counts.sum(axis=1, keepdims=True)


def mixtures(X: Any, topics: np.ndarray, alpha: np.ndarray, k: int) -> np.ndarray:
    """α and the expected topic counts (m,k) of a block; NaN if a cell is no count."""
    return np.ascontiguousarray(fold_counts(X, topics, alpha)[:, :k])


def document_scores(X: Any, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(m,2): each document's log-likelihood, and its tokens that any topic knows."""
    shares, out = fold_mixtures(X, topics, alpha), np.empty((2, X.shape[0]))
    if np.isnan(shares).any():
        return np.full((X.shape[0], 2), np.nan)
    log_likelihood(*as_counts(X, topics.dtype), topics, shares, *out)
    return out.T.astype(topics.dtype)
