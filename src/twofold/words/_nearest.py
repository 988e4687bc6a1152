"""The nearest of many vectors, a few megabytes of cosines at a time.

    S_b = Q_b Wᵀ / |w|  (m,V)   for a block of m queries Q_b (m,k) of length 1, over the words W (V,k)

Cosines exist for one block of queries at a time. Blocks depend on the shapes alone, so the number of threads changes no
bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.data.sources import rows_per_block
from twofold.core.engine.local import Engine
from twofold.kernels.top_k import select_best

MIN_QUERIES_FOR_COPY = 32  # above it, a scaled copy of the words is faster
BLOCKS_PER_TASK = 16  # which share their memory: new memory for each would cost as much as the product


class Lists(NamedTuple):
    """The best words of some queries, best first; the rest is -1 and -inf."""

    words: np.ndarray  # (m,n)
    scores: np.ndarray  # (m,n)


def empty_lists(m: int, n: int, dtype: Any) -> Lists:
    return Lists(np.empty((m, n), np.int64), np.empty((m, n), dtype))


class Excluded(NamedTuple):
    """The words that each query excludes: words[starts[i] : starts[i + 1]] for query i."""

    starts: np.ndarray  # (m+1,)
    words: np.ndarray

    def part(self, a: int, b: int) -> Excluded:
        """Those of the queries a..b."""
        starts = self.starts[a : b + 1]
        return Excluded(starts - starts[0], self.words[starts[0] : starts[-1]])

    def within(self, lo: int, hi: int) -> Excluded:
        """Those among the words lo..hi, counted from lo."""
        inside = (self.words >= lo) & (self.words < hi)
        return Excluded(np.concatenate([[0], np.cumsum(inside)])[self.starts].astype(np.int64), self.words[inside] - lo)


def exclude(lists: list[np.ndarray]) -> Excluded:
    """Excluded words from a list for each query."""
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
    """Cosines (m,V) of queries of length 1 with words; NaN for zero vectors, which then never rank."""
    out = np.matmul(Q, W.T, out=out)
    return np.multiply(out, _invert(norms, W.dtype), out=out)


def _invert(norms: np.ndarray, dtype: Any) -> np.ndarray:
    usable = norms > np.finfo(dtype).tiny  # the inverse of a smaller norm is infinite
    return np.where(usable, 1 / np.where(usable, norms, 1.0), np.nan).astype(dtype)


def find_nearest(
    Q: np.ndarray, W: np.ndarray, norms: np.ndarray, n: int, left: Excluded | None = None,
    handicap: np.ndarray | None = None,
) -> Lists:  # fmt: skip
    """For each query Q (m,k) of length 1 the n words of the greatest cosine, less each word's handicap (V,)."""
    m, n, engine = len(Q), min(n, len(W)), Engine()
    left = Excluded(np.zeros(m + 1, np.int64), np.empty(0, np.int64)) if left is None else left
    score: Callable = cosines if handicap is None else partial(_subtract_handicap, handicap=handicap)
    if m > MIN_QUERIES_FOR_COPY:
        Q, W, score = *_scale(Q, W, norms, handicap), _products
    step = rows_per_block(len(W), W.dtype)
    shared = (Q, W, norms, n, left, score, step)
    groups = engine.map(
        _search_group, Rows(cut_range(0, m, step * BLOCKS_PER_TASK)), *(engine.broadcast(s) for s in shared)
    )
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
    """Queries and words whose products are the scores: faster for many queries than a pass over all scores."""
    W = W * _invert(norms, W.dtype)[:, None]
    if handicap is None:
        return Q, W
    return np.column_stack([Q, np.ones(len(Q), Q.dtype)]), np.column_stack([W, -handicap.astype(W.dtype)])


def _search_group(
    group: tuple[int, int], Q: np.ndarray, W: np.ndarray, norms: np.ndarray, n: int, left: Excluded, score: Callable,
    step: int,
) -> Lists:  # fmt: skip
    first, last = group
    S, found = np.empty((min(step, last - first), len(W)), W.dtype), empty_lists(last - first, n, W.dtype)
    for a, b in cut_range(first, last, step):
        rows = slice(a - first, b - first)
        select_best(score(Q[a:b], W, norms, S[: b - a]), *left.part(a, b), found.words[rows], found.scores[rows])
    return found


def cut_range(a: int, b: int, step: int) -> Iterator[tuple[int, int]]:
    """Cut a..b into equal steps."""
    return ((at, min(at + step, b)) for at in range(a, b, step))


# --- analogies: a is to b as c is to which word w? -----------------------------------------------------------------
#
#   additive         cos(w, b − a + c)                              vectors of length 1
#   multiplicative   cos'(w, b) cos'(w, c) / (cos'(w, a) + ε)       cos' = (1 + cos) / 2, ε = 1e-6
#
# Both need only the cosines of w with a, b and c, and questions share their words: nine hundred distinct words in the
# usual twenty thousand questions. So the cosines of those with a tile of the vocabulary are one product, and each
# question is a few sums over rows of it, which are still in the cache.

ANALOGY_METHODS = ("additive", "multiplicative")
EPSILON = 1e-6  # in the divisor of the multiplicative score
TILE_BYTES = 16 * 2**20  # of cosines, which many questions read
QUESTIONS_PER_BATCH = 64


class Questions(NamedTuple):
    """Questions by the rows of their words' vectors."""

    U: np.ndarray  # (u,k) the different words of all questions, at length 1
    trios: np.ndarray  # (m,3) a, b, c among them


def solve_questions(
    questions: np.ndarray, W: np.ndarray, norms: np.ndarray, n: int, left: Excluded, method: str
) -> Lists:
    """The n best words for each question (a, b, c) of `questions` (m,3), rows of W (V,k); scores as in `method`."""
    if method not in ANALOGY_METHODS:
        raise InputError(f'method={method!r} is not "additive" or "multiplicative".')
    words, trios = np.unique(questions, return_inverse=True)
    asked = Questions(normalize_rows(W[words], norms[words]), trios.reshape(questions.shape))
    width = max(64, TILE_BYTES // max(1, len(words) * W.itemsize))
    engine = Engine()
    shared = (asked, W, norms, min(n, len(W)), left, method)
    tiles = engine.map(_in_tile, Rows(cut_range(0, len(W), width)), *(engine.broadcast(s) for s in shared))
    found = _merge(engine.gather(tiles), min(n, len(W)))
    if method == "multiplicative":
        return found
    A, B, C = (asked.U[asked.trios[:, j]].astype(np.float64) for j in range(3))
    length = np.linalg.norm(B - A + C, axis=1)
    return Lists(found.words, found.scores / np.where(length > 0, length, 1.0)[:, None])


def _in_tile(
    tile: tuple[int, int], asked: Questions, W: np.ndarray, norms: np.ndarray, n: int, left: Excluded, method: str
) -> Lists:
    """The n best words of every question among those of one tile."""
    lo, hi = tile
    G = cosines(asked.U, W[lo:hi], norms[lo:hi])  # (u,t)
    if method == "multiplicative":
        G = G * G.dtype.type(0.5) + G.dtype.type(0.5)
    m, combine = len(asked.trios), _product if method == "multiplicative" else _sum
    lists, excluded = empty_lists(m, n, G.dtype), left.within(lo, hi)
    for a, b in cut_range(0, m, QUESTIONS_PER_BATCH):
        out = combine(*(G[asked.trios[a:b, j]] for j in range(3)))
        select_best(out, *excluded.part(a, b), lists.words[a:b], lists.scores[a:b])
    return Lists(np.where(lists.words < 0, -1, lists.words + lo), lists.scores)


def _sum(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    B -= A
    B += C
    return B


def _product(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    B *= C
    A += A.dtype.type(EPSILON)
    B /= A
    return B


def _merge(parts: list[Lists], n: int) -> Lists:
    """The n best of the tiles' lists; of equal ones the earlier word."""
    words, scores = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    return Lists(np.take_along_axis(words, order, axis=1), np.take_along_axis(scores, order, axis=1))
