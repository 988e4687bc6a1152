"""Scores of whole rows, and the best columns of each. Every completion model makes a scorer.

s_ij     how high column j belongs in the list of row i; a part that is the same in the whole row is added last

The scores of all rows, n·d numbers, never exist together: a few megabytes are ranked, then overwritten by the next.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.data.blocks import Rows
from twofold.core.data.sources import rows_per_block
from twofold.core.engine.local import Engine
from twofold.kernels.top_k import select_best

BLOCKS_PER_GROUP = 64  # whose lists are handed on together
_own = threading.local()  # each thread's scores: fresh memory for every block would cost as much as the product


class Scorer(ABC):
    """Scores of the rows of a fitted table."""

    dtype: np.dtype
    in_threads: bool = True  # False where `score` uses the engine, which must not wait for itself

    @abstractmethod
    def score(self, rows: np.ndarray) -> np.ndarray:
        """(m,d) what ranks the columns of some rows; the next call may overwrite it."""

    def shift(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Add to scores of these rows what is the same in a whole row, which ranks nothing."""
        return scores

    def score_fully(self, rows: np.ndarray) -> np.ndarray:
        """(m,d) the scores, shifted, in memory of their own."""
        return self.shift(rows, np.array(self.score(rows)))


class ProductScorer(Scorer):
    """Scores that are one product, U Z: of U (n,p), or (n,p-1) if the last feature of every row is 1, and Z (p,d)."""

    def __init__(self, U: np.ndarray, Z: np.ndarray, bias: np.ndarray):
        self.U, self.Z, self.bias, self.dtype = U, Z, bias, Z.dtype

    def score(self, rows: np.ndarray) -> np.ndarray:
        size, kept = len(rows) * self.Z.shape[1], getattr(_own, "scores", None)
        if kept is None or kept.dtype != self.dtype or kept.size < size:
            kept = _own.scores = np.empty(size, self.dtype)
        U = self.U[rows]
        if U.shape[1] < len(self.Z):
            U = np.column_stack([U, np.ones(len(rows), U.dtype)])
        return np.matmul(U, self.Z, out=kept[:size].reshape(len(rows), -1))

    def shift(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return scores + self.bias[rows, None]


class FoldScorer(Scorer):
    """Scores of rows folded in again, for models whose holes then hold what `predict(rows, cols)` gives."""

    def __init__(self, model: Any, X: Any, dtype: np.dtype):
        self.X, self.codes, self.dtype = X, model._both(), dtype

    def score(self, rows: np.ndarray) -> np.ndarray:
        fold, state, value, shared = self.codes
        return np.array(value(fold(self.X[rows], *state), *shared))


class CellScorer(Scorer):
    """Scores cell by cell, for any model."""

    in_threads = False
    dtype = np.dtype(np.float64)

    def __init__(self, model: Any):
        self.model = model

    def score(self, rows: np.ndarray) -> np.ndarray:
        d = self.model.n_features_in_
        return self.model.predict(np.repeat(rows, d), np.tile(np.arange(d), len(rows))).reshape(len(rows), d)


class ExtendedScorer(Scorer):
    """Scores of the fitted columns and, after them, of new ones: `extend` makes them (m,new) of the scores (m,d)."""

    def __init__(self, known: Scorer, extend: Callable[[np.ndarray], np.ndarray]):
        self.known, self.extend, self.dtype, self.in_threads = known, extend, known.dtype, known.in_threads

    def score(self, rows: np.ndarray) -> np.ndarray:
        S = self.known.score_fully(rows)
        return np.hstack([S, self.extend(S).astype(S.dtype)])


# ---- lists --------------------------------------------------------------------------------------------------------


class Lists(NamedTuple):
    """The best columns of some rows, best first, -1 where a list is shorter, and their scores."""

    items: np.ndarray  # (m,n)
    scores: np.ndarray  # (m,n)


def rank_items(
    scorer: Scorer, hidden: sparse.csr_array, rows: np.ndarray, n: int, barred: np.ndarray | None = None
) -> Iterator[tuple[np.ndarray, Lists]]:
    """For some rows of the fitted table, group by group: the rows, and their n best columns not stored in `hidden`.

    `barred` columns are in no list.
    """
    engine, d = Engine(), hidden.shape[1]
    step = rows_per_block(d, scorer.dtype)
    shared = (hidden, min(n, d), scorer, barred)
    for start in range(0, len(rows), step * BLOCKS_PER_GROUP):
        group = rows[start : start + step * BLOCKS_PER_GROUP]
        blocks = Rows(group[at : at + step] for at in range(0, len(group), step))
        if scorer.in_threads:
            found = engine.gather(engine.map(rank_block, blocks, *(engine.broadcast(s) for s in shared)))
        else:
            found = [rank_block(block, *shared) for block in blocks]
        yield group, join_lists(found)


def join_lists(parts: list[Lists]) -> Lists:
    return Lists(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def rank_block(
    rows: np.ndarray, hidden: sparse.csr_array, n: int, scorer: Scorer, barred: np.ndarray | None = None
) -> Lists:
    """The n best columns of some rows that are not stored in `hidden`."""
    found = rank_scores(scorer.score(rows), hidden[rows], n, barred)
    return Lists(found.items, scorer.shift(rows, found.scores))


def rank_scores(S: np.ndarray, seen: Any, n: int, barred: np.ndarray | None = None) -> Lists:
    """The n best columns of rows of scores (m,d), those stored in `seen` (m,d) left out; S is overwritten."""
    n = min(n, S.shape[1])
    if barred is not None:
        S[:, barred] = -np.inf
    out = Lists(np.empty((len(S), n), np.int64), np.empty((len(S), n), S.dtype))
    select_best(S, seen.indptr, seen.indices, *out)
    return out


def rank_row(scores: np.ndarray, seen: np.ndarray, n: int) -> Lists:
    """The n best columns of one row of scores (d,), those in `seen` left out."""
    hidden = sparse.csr_array((np.ones(len(seen)), seen, [0, len(seen)]), shape=(1, len(scores)))
    out = rank_scores(scores[None].copy(), hidden, n)
    there = out.items[0] >= 0
    return Lists(out.items[0, there], out.scores[0, there])
