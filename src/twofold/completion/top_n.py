"""The best items of every user, a few megabytes of scores at a time.

    S_b (m,d) scores of a block of m users; what they have seen is left out; the n best of each row remain

The scores of all users, n·d numbers, never exist together: a block's are overwritten by the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.scorer import Scorer
from twofold.core.data.blocks import Rows
from twofold.core.data.sources import rows_per_block
from twofold.core.engine.local import Engine
from twofold.kernels.top_k import select_best

GROUP = 64  # blocks whose lists are handed on together


class Lists(NamedTuple):
    """The best columns of some rows, best first, -1 where a list is shorter, and their scores."""

    items: np.ndarray  # (m,n)
    scores: np.ndarray  # (m,n)


def rank_items(
    scorer: Scorer, hidden: sparse.csr_array, rows: np.ndarray, n: int
) -> Iterator[tuple[np.ndarray, Lists]]:
    """For some rows of the fitted table, group by group: the rows, and their n best columns not stored in `hidden`."""
    engine, d = Engine(), hidden.shape[1]
    step = rows_per_block(d, scorer.dtype)
    shared = (hidden, min(n, d), scorer)
    for start in range(0, len(rows), step * GROUP):
        group = rows[start : start + step * GROUP]
        blocks = Rows(group[at : at + step] for at in range(0, len(group), step))
        if scorer.in_threads:
            found = engine.gather(engine.map(rank_block, blocks, *(engine.broadcast(s) for s in shared)))
        else:
            found = [rank_block(block, *shared) for block in blocks]
        yield group, join_lists(found)


def join_lists(parts: list[Lists]) -> Lists:
    return Lists(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def rank_block(rows: np.ndarray, hidden: sparse.csr_array, n: int, scorer: Scorer) -> Lists:
    """The n best columns of some rows that are not stored in `hidden`."""
    S, known = scorer.score(rows), hidden[rows]
    out = Lists(np.empty((len(rows), n), np.int64), np.empty((len(rows), n), S.dtype))
    select_best(S, known.indptr, known.indices, *out)
    return Lists(out.items, scorer.shift(rows, out.scores))


def rank_row(scores: np.ndarray, seen: np.ndarray, n: int) -> Lists:
    """The n best columns of one row of scores (d,), those in `seen` left out."""
    n = min(n, len(scores))
    out = Lists(np.empty((1, n), np.int64), np.empty((1, n), scores.dtype))
    select_best(scores[None].copy(), np.array([0, len(seen)]), seen.astype(np.int64), *out)
    there = out.items[0] >= 0
    return Lists(out.items[0, there], out.scores[0, there])
