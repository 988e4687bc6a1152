"""The n best of every row of scores, with some columns left out.

The n best so far are a heap whose root is the worst of them. Only a score above the root is inserted, which is rare
after the first columns. Of equal scores the lower column is the better.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _ranks_behind(s, j, t, c):
    """True if (s, j) ranks behind (t, c)."""
    return s < t or (s == t and j > c)


@njit(cache=True, nogil=True)
def _sink(items, scores, size, s, j):
    """Replace the root by (s, j) and restore the heap below it."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _ranks_behind(scores[child + 1], items[child + 1], scores[child], items[child]):
            child += 1
        if not _ranks_behind(scores[child], items[child], s, j):
            break
        scores[at], items[at] = scores[child], items[child]
        at = child
    scores[at], items[at] = s, j


@njit(cache=True, nogil=True)
def select_best(S, indptr, indices, items, scores):
    """Fill items, scores (m,n) with the best columns of S (m,d), best first; -1 and -inf if a row has fewer.

    Columns in indices[indptr[i]:indptr[i+1]] are left out; their scores in S are overwritten. NaN never ranks.
    """
    m, d = S.shape
    n = items.shape[1]
    none = S.dtype.type(-np.inf)
    for i in range(m):
        for q in range(indptr[i], indptr[i + 1]):
            S[i, indices[q]] = none
        top, score = items[i], scores[i]
        top[:] = -1
        score[:] = none
        row = S[i]
        for j in range(d):
            if row[j] > score[0]:
                _sink(top, score, n, row[j], j)
        for last in range(n - 1, 0, -1):  # the root, the worst of the rest, goes to the end
            s, j = score[0], top[0]
            tail_s, tail_j = score[last], top[last]
            _sink(top, score, last, tail_s, tail_j)
            score[last], top[last] = s, j
