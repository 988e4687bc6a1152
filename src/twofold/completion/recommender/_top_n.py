"""The best items of every user, a few megabytes of scores at a time.

    S_b = U_b Z + offset  (m,d)   for a block of m users; what they have seen is left out; the n best of each row remain

The scores of all users, n·d numbers, never exist together: a block's are overwritten by the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion._base import Factors
from twofold.completion.ease import EASE
from twofold.completion.neighborhood import Neighborhood
from twofold.completion.popularity import Popularity
from twofold.core.data.blocks import Rows
from twofold.core.data.sources import rows_per_block
from twofold.core.engine.local import Engine
from twofold.kernels.top_k import best

GROUP = 64  # blocks whose lists are handed on together

_own = threading.local()  # each thread's scores: fresh memory for every block would cost as much as the product


class Lists(NamedTuple):
    """The best columns of some rows, best first, -1 where a row has no more, and their scores."""

    items: np.ndarray  # (m,n)
    scores: np.ndarray  # (m,n)


def rank_items(
    model: Any, seen: sparse.csr_array, rows: np.ndarray, n: int, hidden: sparse.csr_array | None = None
) -> Iterator[tuple[np.ndarray, Lists]]:
    """For some rows of the fitted table, group by group: the rows, and their n best columns not stored in `hidden`.

    None means `seen`, the table itself.
    """
    engine, d = Engine(), seen.shape[1]
    score, state, dtype = choose_scorer(model, seen)
    step = rows_per_block(d, dtype)
    threaded = score is not _score_cells and not (isinstance(state, WithNew) and state.score is _score_cells)
    shared = (seen if hidden is None else hidden, min(n, d), score, state)
    for start in range(0, len(rows), step * GROUP):
        group = rows[start : start + step * GROUP]
        blocks = Rows(group[at : at + step] for at in range(0, len(group), step))
        if threaded:
            found = engine.gather(engine.map(rank_block, blocks, *(engine.broadcast(s) for s in shared)))
        else:  # the model's own predictions may use the engine, which must not wait for itself
            found = [rank_block(block, *shared) for block in blocks]
        yield group, Lists(*(np.concatenate(part) for part in zip(*found, strict=True)))


def rank_block(rows: np.ndarray, seen: sparse.csr_array, n: int, score: Callable, state: Any) -> Lists:
    """The n best columns of some rows that are not stored in `seen`."""
    S, known = score(rows, state), seen[rows]
    out = Lists(np.empty((len(rows), n), np.int64), np.empty((len(rows), n), S.dtype))
    best(S, known.indptr, known.indices, *out)
    return Lists(out.items, out.scores + state.bias[rows, None]) if isinstance(state, Product) else out


class Product(NamedTuple):
    """Scores that are one product; what is the same in a whole row ranks nothing and is added last."""

    U: np.ndarray  # (n,p), or (n,p-1) if the last feature of every row is 1
    Z: np.ndarray  # (p,d)
    bias: np.ndarray  # (n,)


class WithNew(NamedTuple):
    """Scores of the fitted columns, and after them those of new ones, which are made of them."""

    score: Callable
    state: Any
    dtype: np.dtype
    extend: Callable  # scores (m,d) → (m,new)


def add_new(model: Any, seen: sparse.csr_array, extend: Callable) -> WithNew:
    """A model of more columns than it was fitted to."""
    return WithNew(*choose_scorer(model, seen), extend)


def score_known(score: Callable, state: Any, rows: np.ndarray) -> np.ndarray:
    """(m,d) scores of whole rows, in memory of their own."""
    S = np.array(score(rows, state))
    return S + state.bias[rows, None] if isinstance(state, Product) else S


def _score_with_new(rows: np.ndarray, model: WithNew) -> np.ndarray:
    S = score_known(model.score, model.state, rows)
    return np.hstack([S, model.extend(S).astype(S.dtype)])


def choose_scorer(model: Any, seen: sparse.csr_array) -> tuple[Callable, Any, np.dtype]:
    """A function (rows, state) → scores (m,d) that may be overwritten, its state, and their dtype."""
    if isinstance(model, WithNew):
        return _score_with_new, model, model.dtype
    if isinstance(model, Product):
        return _score_product, model, model.Z.dtype
    if isinstance(model, Factors) and type(model)._trained is Factors._trained:
        Z, offset = model.components_, model.column_bias_ + model.components_.dtype.type(model.mean_)
        U, bias, lines = model.row_factors_, model.row_bias_, model.normalization_
        if lines is not None and lines.by_row:
            U, Z = lines.scale[:, None] * np.column_stack([U, np.ones_like(bias)]), np.vstack([Z, offset])
            return _score_product, Product(U, Z, lines.center + lines.scale * bias), Z.dtype
        if lines is not None:  # a row's bias ranks, in columns of different scale
            U, Z = np.column_stack([U, bias]), lines.scale * np.vstack([Z, np.ones_like(offset)])
            offset, bias = lines.center + lines.scale * offset, np.zeros_like(bias)
        if offset.any():  # as one more factor, 1 in all rows, so that no second pass over the scores is needed
            Z = np.vstack([Z, offset])
        return _score_product, Product(U, Z, bias), Z.dtype
    if isinstance(model, EASE):
        return _score_rows, (model.seen_, model._both()), model.weights_.dtype
    if isinstance(model, Popularity):
        n, share = model.n_rows_, model.popularity_
        return _score_product, Product(np.ones((n, 1), share.dtype), share[None], np.zeros(n, share.dtype)), share.dtype
    if isinstance(model, Neighborhood) and model.kind == "item":
        return _score_rows, (seen, model._both()), model.residuals_.dtype
    return _score_cells, model, np.dtype(np.float64)


def _score_product(rows: np.ndarray, p: Product) -> np.ndarray:
    size, kept = len(rows) * p.Z.shape[1], getattr(_own, "scores", None)
    if kept is None or kept.dtype != p.Z.dtype or kept.size < size:
        kept = _own.scores = np.empty(size, p.Z.dtype)
    U = p.U[rows]
    if U.shape[1] < len(p.Z):
        U = np.column_stack([U, np.ones(len(rows), U.dtype)])
    return np.matmul(U, p.Z, out=kept[:size].reshape(len(rows), -1))


def _score_rows(rows: np.ndarray, state: tuple) -> np.ndarray:
    """Rows folded in again, which for this model gives the same in their holes as asking cell by cell."""
    X, (fold, folding, value, valuing) = state
    return np.array(value(fold(X[rows], *folding), *valuing))


def _score_cells(rows: np.ndarray, model: Any) -> np.ndarray:
    d = model.n_features_in_
    return model.predict(np.repeat(rows, d), np.tile(np.arange(d), len(rows))).reshape(len(rows), d)


def rank_row(scores: np.ndarray, seen: np.ndarray, n: int) -> Lists:
    """The n best columns of one row of scores (d,), those in `seen` left out."""
    n = min(n, len(scores))
    out = Lists(np.empty((1, n), np.int64), np.empty((1, n), scores.dtype))
    best(scores[None].copy(), np.array([0, len(seen)]), seen.astype(np.int64), *out)
    there = out.items[0] >= 0
    return Lists(out.items[0, there], out.scores[0, there])
