"""Similar lines of a sparse table, and what they say about its cells.

A line is a row or a column. Similarities S (m,q) are CSR arrays whose rows run from strong to weak, so that the first
few known neighbours of a place are met by walking along its row; deviations R are cells less their baseline.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.data.blocks import Rows
from twofold.core.engine.local import Engine
from twofold.kernels import neighbors as kernels

WORK = 2**20  # pairs of cells that meet in one block of lines
LINES = 1024  # lines of a block at most
REQUESTS = 2**14  # cells predicted in one block


class Rule(NamedTuple):
    """How similarities are made and used."""

    shrinkage: float
    n_similar: int
    n_neighbors: int
    power: float
    damping: float


def find_similarities(
    A: sparse.csr_array, B: sparse.csr_array, g: Any, h: Any, rule: Rule, same: bool
) -> sparse.csr_array:
    """The strongest similarities of the rows of A (m,p) to the columns of B (p,q), strongest first: (m,q).

    g and h are square roots of the weights of their cells; `same` says that line t of A is line t of B.
    """
    most = min(rule.n_similar, B.shape[1])
    engine = Engine()
    cuts = _cut_lines(A, B)
    spans = Rows(pairwise(cuts))
    shared = [engine.broadcast(s) for s in (A, B, g, h, rule.shrinkage, most, same)]
    parts = engine.gather(engine.map(_compare_block, spans, *shared))
    return _join_blocks(parts, (A.shape[0], B.shape[1]))


def _join_blocks(parts: list, shape: tuple[int, int]) -> sparse.csr_array:
    count, index, value = (np.concatenate([part[a] for part in parts]) for a in range(3))
    return sparse.csr_array((value, index, np.append(0, np.cumsum(count))), shape=shape)


def sort_by_strength(S: sparse.csr_array) -> sparse.csr_array:
    """S itself, unless its owner's dealings with it have sorted its rows by column: then ordered again."""
    row, strength = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr)), np.abs(S.data)
    if not ((np.diff(strength) > 0) & (np.diff(row) == 0)).any():
        return S
    order = np.lexsort((S.indices, -strength, row))
    return sparse.csr_array((S.data[order], S.indices[order], S.indptr), shape=S.shape)


def _cut_lines(A: sparse.csr_array, B: sparse.csr_array) -> np.ndarray:
    """Where the lines of A are cut into blocks of about equal work; it depends on the cells alone."""
    meets = np.append(0, np.cumsum(np.diff(B.indptr)[A.indices], dtype=np.int64))[A.indptr]
    by_work = np.searchsorted(meets, np.arange(WORK, meets[-1], WORK))
    return np.unique(np.concatenate([by_work, np.arange(0, A.shape[0], LINES), [A.shape[0]]]))


def _compare_block(span: tuple, A: Any, B: Any, g: Any, h: Any, shrinkage: float, most: int, same: bool) -> tuple:
    start, stop = span
    own = np.arange(start, stop) if same else np.full(stop - start, -1)
    index, value = np.empty((len(own), most), np.int32), np.empty((len(own), most), A.dtype)
    count = np.empty(len(own), np.int64)
    given = (A.indptr[start : stop + 1], A.indices, A.data, g, B.indptr, B.indices, B.data, h)
    kernels.similar(*given, own, float(shrinkage), index, value, count, np.zeros((B.shape[1], 4)))
    kept = np.arange(most) < count[:, None]
    return count, index[kept], value[kept]


def predict_deviations(
    R: sparse.csr_array, S: sparse.csr_array, lines: np.ndarray, places: np.ndarray, rule: Rule
) -> np.ndarray:
    """What the neighbours of place t (a row of S) that are known in line t (a row of R) say: one number a request."""
    engine, order = Engine(), np.argsort(lines, kind="stable")
    cuts = [*range(0, len(order), REQUESTS), len(order)]
    chosen = Rows(order[a:b] for a, b in pairwise(cuts))
    asked = [Rows(a[at] for at in chosen) for a in (lines, places)]
    parts = engine.gather(engine.map(_predict_requests, *asked, *(engine.broadcast(s) for s in (R, S, rule))))
    out = np.empty(len(order), R.dtype)
    for at, part in zip(chosen, parts, strict=True):
        out[at] = part
    return out


def _predict_requests(
    lines: np.ndarray, places: np.ndarray, R: sparse.csr_array, S: sparse.csr_array, rule: Rule
) -> np.ndarray:
    out = np.empty(len(lines), R.dtype)
    given = (R.indptr, R.indices, R.data, S.indptr, S.indices, S.data, lines, places)
    kernels.interpolate(*given, rule.n_neighbors, rule.power, rule.damping, np.full(R.shape[1], np.nan), out)
    return out


def predict_all_deviations(R: sparse.csr_array, S: sparse.csr_array, rule: Rule) -> np.ndarray:
    """What neighbours say in every line (row of R) about every place (row of S)."""
    out = np.empty((R.shape[0], S.shape[0]), R.dtype)
    given = (R.indptr, R.indices, R.data, S.indptr, S.indices, S.data)
    kernels.interpolate_all(*given, rule.n_neighbors, rule.power, rule.damping, np.full(R.shape[1], np.nan), out)
    return out


def compare_to_fitted(R: sparse.csr_array, fitted: sparse.csr_array, rule: Rule) -> sparse.csr_array:
    """Similarities (m,n) of new rows to the fitted ones; one after the other, because a block is one thread's."""
    most, ones = min(rule.n_similar, fitted.shape[1]), np.ones(max(R.nnz, fitted.nnz), R.dtype)
    spans = [(a, min(a + LINES, R.shape[0])) for a in range(0, R.shape[0], LINES)]
    parts = [_compare_block(span, R, fitted, ones, ones, rule.shrinkage, most, False) for span in spans]
    return _join_blocks(parts, (R.shape[0], fitted.shape[1]))


def split_deviation(known: sparse.csr_array, S: sparse.csr_array, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """The neighbours (one row of S) that one line (of known cells) has, and what each adds."""
    here = np.full(S.shape[1], np.nan)
    here[known.indices] = known.data
    there = np.nonzero(~np.isnan(here[S.indices]))[0][: rule.n_neighbors]
    near, s = S.indices[there], S.data[there].astype(np.float64)
    v = np.sign(s) * np.abs(s) ** rule.power
    return near, v * here[near] / (np.abs(v).sum() + rule.damping or 1.0)
