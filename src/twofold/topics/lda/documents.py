"""Documents as the solvers of LDA read them: counts in blocks, blocks in mini-batches; and the mixtures of new ones.

Bounds of blocks and batches depend on the data alone, never on threads or on where the data lies. A batch takes every
B-th block, so that all batches of a corpus sorted by subject have the same subjects.

New documents fold in with fixed topics: θ_c ∝ α_c + Σ_j x_j γ_jc,  γ_jc ∝ θ_c p(j | c), repeated to convergence.

The prior α (k,) of the documents' topics is learned:

    maximize  Σ_i w_i E log p(θ_i | α)   for shares θ_i (k,) that have a distribution each
One step:  ψ(α_c) ← ψ(Σα) + the mean of E log θ_ic

    maximize  Σ_i w_i log p(n_i | α)   for topic counts n_i (k,), drawn from shares with this prior
One step:  α_c ← α_c Σ_i w_i [ψ(n_ic + α_c) − ψ(α_c)] / Σ_i w_i [ψ(n_i + Σα) − ψ(Σα)]

The second needs whole counts: ψ is so curved near 0 that an expected count in their place is misleading.
Reference: Minka 2000 (both fixed points).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import polygamma, psi

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.sources.base import even_rows
from twofold.core.engine.local import Engine, engine_for
from twofold.kernels.lda import dirichlet_sums, fold_in, log_likelihood

MAX_FLOAT64_CELLS = 10**6  # of a float64 table that is computed in float64
MAX_PASSES, TOLERANCE = 200, 1e-5  # of folding in; the change of topic counts, as a share of the document's length
MIN_ALPHA, MAX_ALPHA = 1e-4, 1e3  # bounds for a topic in no document, and for one with equal shares in all
MAX_FACTOR = 2.0  # of α in one step: the topics of the first sweeps are not reliable
LANES = 16  # a row of topics is padded to a multiple of it, so that compiled loops have no remainder


class Corpus(NamedTuple):
    """The data and the settings that all sweeps share."""

    engine: Engine
    blocks: Blocks
    w: np.ndarray | None
    words: np.ndarray  # (d,) count of each word, with weights
    documents: float  # number of documents, with weights
    k: int
    alpha: np.ndarray  # (k,) at the start
    learn: bool
    beta: float
    seed: int
    init: np.ndarray | None  # (k,d)

    @property
    def dtype(self) -> np.dtype:
        """The precision to work in: single is enough for the counts of a large corpus."""
        n, d = self.blocks.shape
        return np.dtype(np.float32) if n * d > MAX_FLOAT64_CELLS else self.blocks.dtype

    def start_counts(self, rng: np.random.Generator) -> np.ndarray:
        """Topic counts to start from (d,k): the counts of each word divided at random, or like `init`."""
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


class Batches(NamedTuple):
    """Mini-batches: their blocks and the weights of their rows."""

    blocks: list
    weights: list[Rows]

    def split(self, kept: Rows) -> Kept:
        """Rows of all blocks as a Rows for each batch."""
        if isinstance(kept, Kept):
            return kept
        ends = np.cumsum([len(b) for b in self.blocks])
        return Kept(Rows(kept[e - len(b) : e]) for e, b in zip(ends, self.blocks, strict=True))


class Kept(Rows):
    """A Rows for each batch: what its blocks keep."""

    def local(self) -> Iterator:
        return (item for rows in self for item in rows.local())


def finer(blocks: Blocks, cells: int) -> Blocks:
    """Sparse counts in blocks of `cells` stored values; dense ones as they are."""
    return Blocks(blocks.source.finer(cells)) if blocks.is_sparse else blocks


def batches(blocks: Blocks, w: np.ndarray | None, size: int) -> Batches:
    """Mini-batches of about `size` blocks, each of every B-th block."""
    rows, count = blocks.rows(w), max(1, len(blocks) // size)
    if count == 1:
        return Batches([blocks], [rows])
    chosen = [np.arange(b, len(blocks), count) for b in range(count)]
    return Batches(
        [_take_blocks(blocks, which) for which in chosen], [Rows(rows[i] for i in which) for which in chosen]
    )


def runs(blocks: Blocks, w: np.ndarray | None, size: int) -> Batches:
    """Mini-batches of `size` consecutive documents."""
    n, weights, pieces = blocks.shape[0], list[Rows](), list[Blocks]()
    for a in range(0, n, size):
        b = min(a + size, n)
        cuts = np.append(np.arange(a, b, even_rows((b - a, blocks.shape[1]), blocks.dtype)), b)
        if is_read_by_workers(blocks):
            pieces.append(cut_rows_on_cluster(blocks, np.arange(a, b), cuts - a))
        else:
            pieces.append(Blocks(blocks.source))
            pieces[-1].bounds = cuts
        weights.append(Rows(None if w is None else w[i:j] for i, j in pairwise(cuts)))
    return Batches(pieces, weights)


def _take_blocks(blocks: Blocks, which: np.ndarray) -> Blocks:
    if not is_read_by_workers(blocks):
        return Batch(blocks, which)
    rows = [np.arange(blocks.bounds[i], blocks.bounds[i + 1]) for i in which]
    return cut_rows_on_cluster(blocks, np.concatenate(rows), np.cumsum([0, *map(len, rows)]))


def is_read_by_workers(blocks: Blocks) -> bool:
    return blocks.source.is_lazy or type(engine_for(blocks)) is not Engine


def cut_rows_on_cluster(blocks: Blocks, rows: np.ndarray, bounds: np.ndarray) -> Blocks:
    """Some rows, cut at these bounds, for a cluster, which reads rows by their numbers."""
    source = blocks.source.some(rows)
    source.bounds = bounds
    return Blocks(source)


def blend(
    counts: np.ndarray, batch: np.ndarray, target: float, total: float, rho: float, reuse: bool = False
) -> np.ndarray:
    """(1 − ρ) counts + ρ · target / total · batch; overwrites `batch`, and `counts` if `reuse`."""
    if total <= 0:
        return counts
    if rho == 1:
        return np.multiply(batch, target / total, out=batch)
    mean = np.multiply(counts, 1 - rho, out=counts if reuse else None)
    mean += np.multiply(batch, rho * target / total, out=batch)
    return mean


def as_counts(X: Any, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A block's data, indices and indptr for the kernels; zeros of a dense block are left out."""
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
    """Return whether every cell is a finite number that is not negative."""
    cells = X.data if sparse.issparse(X) else X
    return cells.size == 0 or bool(cells.min() >= 0 and np.isfinite(cells.max()))


def fold_counts(X: Any, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """α and the expected topic counts (m,K) of a block, padding included; NaN if a cell is no count."""
    if not is_usable(X):
        return np.full((X.shape[0], len(alpha)), np.nan, topics.dtype)
    counts = np.zeros((X.shape[0], len(alpha)), topics.dtype)
    fold_in(*as_counts(X, topics.dtype), topics, alpha, counts, MAX_PASSES, TOLERANCE)
    return np.maximum(counts, 0) + alpha


def mixtures(X: Any, topics: np.ndarray, alpha: np.ndarray, k: int) -> np.ndarray:
    """The same without padding (m,k)."""
    return np.ascontiguousarray(fold_counts(X, topics, alpha)[:, :k])


def fold_mixtures(X: Any, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """p(topic | document) (m,K) of a block, padding included; NaN if a cell is no count."""
    counts = fold_counts(X, topics, alpha)
    return counts / counts.sum(axis=1, keepdims=True)


def score_counts(X: Any, topics: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(2,m): the log-likelihood of each document given its topic shares, and its tokens that any topic knows."""
    out = np.empty((2, X.shape[0]))
    log_likelihood(*as_counts(X, topics.dtype), topics, shares, *out)
    return out


def document_scores(X: Any, topics: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(m,2): `score_counts` of each document with its own mixture; NaN if a cell is no count."""
    shares = fold_mixtures(X, topics, alpha)
    if np.isnan(shares).any():
        return np.full((X.shape[0], 2), np.nan)
    return score_counts(X, topics, shares).T.astype(topics.dtype)


# --- the prior --------------------------------------------------------------------------------------


class PriorLogs(NamedTuple):
    """Sums over documents whose shares have a Dirichlet distribution each."""

    total: np.ndarray  # (k,) Σ w E log θ
    documents: float


class PriorCounts(NamedTuple):
    """Sums over documents whose topic counts are known."""

    above: np.ndarray  # (k,)
    below: float


def sum_logs(gamma: np.ndarray, w: np.ndarray) -> PriorLogs:
    """Sum over documents with Dirichlets gamma (m,k)."""
    gamma = gamma.astype(np.float64)
    logs = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
    return PriorLogs(w.astype(np.float64) @ logs, float(w.sum(dtype=np.float64)))


def sum_counts(counts: np.ndarray, alpha: np.ndarray, w: np.ndarray) -> PriorCounts:
    """Sum over documents with topic counts (m,k)."""
    above = np.zeros(len(alpha))
    return PriorCounts(above, float(dirichlet_sums(counts, alpha, w, above)))


def step_alpha(alpha: np.ndarray, s: PriorLogs | PriorCounts) -> np.ndarray:
    """Make one step of either fixed point.

    >>> rng = np.random.default_rng(0)
    >>> counts = np.array([rng.multinomial(200, p) for p in rng.dirichlet([0.2, 1.0], size=2000)], dtype=float)
    >>> alpha = np.ones(2)
    >>> for _ in range(200):
    ...     alpha = step_alpha(alpha, sum_counts(counts, alpha, np.ones(2000)))
    >>> alpha.round(1)
    array([0.2, 1. ])
    """
    if isinstance(s, PriorLogs):
        new = inverse_digamma(psi(alpha.sum()) + s.total / s.documents) if s.documents > 0 else alpha
    else:
        new = alpha * (s.above / s.below) if s.below > 0 else alpha
    return np.clip(np.clip(new, alpha / MAX_FACTOR, alpha * MAX_FACTOR), MIN_ALPHA, MAX_ALPHA)


def inverse_digamma(y: np.ndarray) -> np.ndarray:
    """x > 0 with ψ(x) = y, by Newton's method.

    >>> inverse_digamma(psi(np.array([0.01, 1.0, 50.0]))).round(6).tolist()
    [0.01, 1.0, 50.0]
    """
    x = np.where(y >= -2.22, np.exp(np.minimum(y, 50.0)) + 0.5, -1 / (np.minimum(y, -2.0) - psi(1.0)))
    for _ in range(5):
        x = x - (psi(x) - y) / polygamma(1, x)
    return x
