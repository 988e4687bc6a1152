"""Neighbourhoods: which lines of a sparse table are alike, and what a line's known neighbours say about a cell.

    dot  = Σ g r g' r'    own = Σ g r² g'    other = Σ g g' r'²    count = Σ g g'     over the cells both lines know
    s    = max(count − 1, 0) / (count − 1 + shrinkage) · dot / √(own · other)

    r deviations from a baseline    g square roots of weights    a line is a row of A (m,p), or a column of B (p,q)

One line of A at a time meets all columns of B in an accumulator of q entries (Gustavson's product, row by row), and
only its `most` strongest similarities are kept: no m × q table ever exists.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _gathered(a, b, indices, r, g, Bptr, Bind, Br, Bg, sums, touched):
    """The four sums of one line with every line it shares a cell with; returns how many those are."""
    found = 0
    for t in range(a, b):
        i = indices[t]
        rt, gt = np.float64(r[t]), np.float64(g[t])
        grt, grrt = gt * rt, gt * rt * rt
        for s in range(Bptr[i], Bptr[i + 1]):
            l = Bind[s]
            rs, gs = np.float64(Br[s]), np.float64(Bg[s])
            if sums[l, 3] == 0.0:
                touched[found] = l
                found += 1
            grs = gs * rs
            sums[l, 0] += grt * grs
            sums[l, 1] += grrt * gs
            sums[l, 2] += gt * grs * rs
            sums[l, 3] += gt * gs
    return found


@njit(cache=True, nogil=True)
def _similarity(sums, shrinkage):
    """The shrunk correlation from its four sums; 0 where a line never leaves its baseline."""
    size = sums[1] * sums[2]
    count = sums[3] - 1.0
    if size <= 0.0 or count <= 0.0:
        return 0.0
    return count / (count + shrinkage) * sums[0] / np.sqrt(size)


@njit(cache=True, nogil=True)
def _strongest(found, touched, score, most):
    """Moves the `most` strongest of the first `found` to the front, strongest first, ties by place; how many."""
    if found > most:
        strengths = np.abs(score[:found])
        least = np.partition(strengths, found - most)[found - most]
        above = 0
        for t in range(found):
            above += strengths[t] > least
        room = most - above  # for those that are exactly as strong as the last one; the lowest places win
        level = np.sort(touched[:found][strengths == least])[room - 1]
        kept = 0
        for t in range(found):
            if strengths[t] > least or (strengths[t] == least and touched[t] <= level):
                touched[kept], score[kept] = touched[t], score[t]
                kept += 1
        found = kept
    by_place = np.argsort(touched[:found])
    touched[:found], score[:found] = touched[:found][by_place], score[:found][by_place]
    order = np.argsort(-np.abs(score[:found]), kind="mergesort")
    touched[:found], score[:found] = touched[:found][order], score[:found][order]
    return found


@njit(cache=True, nogil=True)
def similar(indptr, indices, r, g, Bptr, Bind, Br, Bg, own, shrinkage, most, index, value, count):
    """For each line of A its `most` strongest similarities to the lines of B, strongest first.

    `own[t]` is line t's own place in B, which is left out, or -1. Line t's results are the first `count[t]` of
    index[t] and value[t], both (m, most).
    """
    q = max(np.max(Bind) + 1 if Bind.size else 0, 1)
    sums = np.zeros((q, 4))
    touched, score = np.empty(q, np.int64), np.empty(q)
    for t in range(own.size):
        found = _gathered(indptr[t], indptr[t + 1], indices, r, g, Bptr, Bind, Br, Bg, sums, touched)
        kept = 0
        for s in range(found):
            l = touched[s]
            strength = _similarity(sums[l], shrinkage)
            sums[l] = 0.0
            if strength != 0.0 and l != own[t]:
                touched[kept], score[kept] = l, strength
                kept += 1
        kept = _strongest(kept, touched, score, most)
        index[t, :kept], value[t, :kept] = touched[:kept], score[:kept]
        count[t] = kept
