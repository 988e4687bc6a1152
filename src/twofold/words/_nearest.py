"""The nearest of many vectors, a few megabytes of cosines at a time.

    S_b = Q_b Wᵀ / |w|  (m,V)   for a block of m queries Q_b (m,k) of length 1, over the words W (V,k)

The cosines of all queries with all words never exist together: a block's are overwritten by the next. Blocks depend
on the shapes alone, so the number of threads changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from twofold.core.data.blocks import Rows
from twofold.core.data.sources import rows_per_block
from twofold.core.engine.local import Engine
from twofold.kernels.top_k import select_best

MANY = 32  # queries for which a copy of the words pays
GROUP = 16  # blocks that share their memory: fresh memory for each would cost as much as the product


class Lists(NamedTuple):
    """The best words of some queries, best first; -1 and -inf where there are no more."""

    words: np.ndarray  # (m,n)
    scores: np.ndarray  # (m,n)


def empty_lists(m: int, n: int, dtype: Any) -> Lists:
    return Lists(np.empty((m, n), np.int64), np.empty((m, n), dtype))


class Excluded(NamedTuple):
    """The words that each query excludes: words[starts[i] : starts[i + 1]] for query i."""

    starts: np.ndarray  # (m+1,)
    words: np.ndarray

    def part(self, a: int, b: int) -> Excluded:
        """For the queries from a to b."""
        starts = self.starts[a : b + 1]
        return Excluded(starts - starts[0], self.words[starts[0] : starts[-1]])

    def within(self, lo: int, hi: int) -> Excluded:
        """As far as they lie between two words, and counted from the first of these."""
        inside = (self.words >= lo) & (self.words < hi)
        return Excluded(np.concatenate([[0], np.cumsum(inside)])[self.starts].astype(np.int64), self.words[inside] - lo)


def exclude(lists: list[np.ndarray]) -> Excluded:
    """What each query leaves out, from a list a query."""
    starts = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Excluded(starts, np.concatenate([np.empty(0, np.int64), *lists]).astype(np.int64))


def row_norms(W: np.ndarray) -> np.ndarray:
    """Euclidean lengths (V,), summed in float64, a block at a time."""
    parts = [np.square(W[a:b], dtype=np.float64).sum(axis=1) for a, b in cut_range(0, len(W), 2**14)]
    return np.sqrt(np.concatenate(parts))


def normalize_rows(W: np.ndarray, norms: np.ndarray | None = None) -> np.ndarray:
    """Rows of length 1; zero rows stay zero."""
    norms = row_norms(W) if norms is None else norms
    return W / np.where(norms > 0, norms, 1.0).astype(W.dtype)[:, None]


def cosines(Q: np.ndarray, W: np.ndarray, norms: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Of queries of length 1 with words (m,V); NaN for zero vectors, which have no direction and so never rank."""
    out = np.matmul(Q, W.T, out=out)
    return np.multiply(out, _invert(norms, W.dtype), out=out)


def _invert(norms: np.ndarray, dtype: Any) -> np.ndarray:
    there = norms > np.finfo(dtype).tiny  # below it, one over it is infinite
    return np.where(there, 1 / np.where(there, norms, 1.0), np.nan).astype(dtype)


def find_nearest(
    Q: np.ndarray,
    W: np.ndarray,
    norms: np.ndarray,
    n: int,
    left: Excluded | None = None,
    handicap: np.ndarray | None = None,
) -> Lists:
    """For each query Q (m,k) of length 1 the n words of the greatest cosine, less each word's handicap (V,)."""
    m, n, engine = len(Q), min(n, len(W)), Engine()
    left = Excluded(np.zeros(m + 1, np.int64), np.empty(0, np.int64)) if left is None else left
    score: Callable = cosines if handicap is None else partial(_subtract_handicap, handicap=handicap)
    if m > MANY:
        Q, W, score = *_scale(Q, W, norms, handicap), _products
    step = rows_per_block(len(W), W.dtype)
    shared = (Q, W, norms, n, left, score, step)
    groups = engine.map(_search_group, Rows(cut_range(0, m, step * GROUP)), *(engine.broadcast(s) for s in shared))
    return Lists(*(np.concatenate(part) for part in zip(*engine.gather(groups), strict=True)))


def _subtract_handicap(
    Q: np.ndarray, W: np.ndarray, norms: np.ndarray, out: np.ndarray, handicap: np.ndarray
) -> np.ndarray:
    return np.subtract(cosines(Q, W, norms, out), handicap, out=out)


def _products(Q: np.ndarray, W: np.ndarray, norms: np.ndarray, out: np.ndarray) -> np.ndarray:
    return np.matmul(Q, W.T, out=out)


def _scale(
    Q: np.ndarray, W: np.ndarray, norms: np.ndarray, handicap: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Queries and words whose plain products are the scores: for many queries cheaper than going over all scores."""
    W = W * _invert(norms, W.dtype)[:, None]
    if handicap is None:
        return Q, W
    return np.column_stack([Q, np.ones(len(Q), Q.dtype)]), np.column_stack([W, -handicap.astype(W.dtype)])


def _search_group(
    group: tuple[int, int],
    Q: np.ndarray,
    W: np.ndarray,
    norms: np.ndarray,
    n: int,
    left: Excluded,
    score: Callable,
    step: int,
) -> Lists:
    first, last = group
    S, found = np.empty((min(step, last - first), len(W)), W.dtype), empty_lists(last - first, n, W.dtype)
    for a, b in cut_range(first, last, step):
        rows = slice(a - first, b - first)
        select_best(score(Q[a:b], W, norms, S[: b - a]), *left.part(a, b), found.words[rows], found.scores[rows])
    return found


def cut_range(a: int, b: int, step: int) -> Iterator[tuple[int, int]]:
    """From a to b in equal steps."""
    return ((at, min(at + step, b)) for at in range(a, b, step))
