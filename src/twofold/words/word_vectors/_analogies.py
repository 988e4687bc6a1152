"""Analogies, many at a time: a is to b as c is to which word w?

    additive         cos(w, b − a + c)                              vectors of length 1
    multiplicative   cos'(w, b) cos'(w, c) / (cos'(w, a) + ε)       cos' = (1 + cos) / 2, ε = 1e-6

Both need nothing but the cosines of w with a, b and c, and questions share their words: nine hundred different ones in
the usual twenty thousand questions. So the cosines of those with a tile of the vocabulary are one product, and every
question is a few sums over rows of it that are still in the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.engine.local import Engine
from twofold.kernels.top_k import select_best
from twofold.words._nearest import Excluded, Lists, cosines, cut_range, empty_lists, normalize_rows

METHODS = ("additive", "multiplicative")
EPSILON = 1e-6  # keeps the multiplicative score from dividing by nothing
TILE_BYTES = 16 * 2**20  # of cosines, which are read again and again
BATCH = 64  # questions scored together


class Questions(NamedTuple):
    """Questions by the rows of their words' vectors."""

    U: np.ndarray  # (u,k) the different words of all questions, at length 1
    trios: np.ndarray  # (m,3) a, b, c among them


def solve(questions: np.ndarray, W: np.ndarray, norms: np.ndarray, n: int, left: Excluded, method: str) -> Lists:
    """The n best words for each question (a, b, c) of `questions` (m,3), rows of W (V,k); scores as in `method`."""
    if method not in METHODS:
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
    found, mine = empty_lists(m, n, G.dtype), left.within(lo, hi)
    for a, b in cut_range(0, m, BATCH):
        out = combine(*(G[asked.trios[a:b, j]] for j in range(3)))
        select_best(out, *mine.part(a, b), found.words[a:b], found.scores[a:b])
    return Lists(np.where(found.words < 0, -1, found.words + lo), found.scores)


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
