"""Neighbourhoods: which lines of a sparse table are alike, and what a line's known neighbours say about a cell.

    dot  = Σ g r g' r'    own = Σ g r² g'    other = Σ g g' r'²    count = Σ g g'     over the cells both lines know
    s    = max(count − 1, 0) / (count − 1 + shrinkage) · dot / √(own · other)

    r deviations from a baseline    g square roots of weights    a line is a row of A (m,p), or a column of B (p,q)

One line of A at a time meets all columns of B in an accumulator of q entries (Gustavson's product, row by row), and
only its strongest similarities are kept: no m × q table ever exists. A prediction walks a place's neighbours from
strong to weak and stops when enough of them are known in the line:

    Σ v r / (Σ |v| + damping)    v = s |s|^(power − 1)
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
        grt = gt * rt
        grrt = grt * rt
        for s in range(Bptr[i], Bptr[i + 1]):
            line = Bind[s]
            rs, gs = np.float64(Br[s]), np.float64(Bg[s])
            grs = gs * rs
            if sums[line, 3] == 0.0:
                touched[found] = line
                found += 1
            sums[line, 0] += grt * grs
            sums[line, 1] += grrt * gs
            sums[line, 2] += gt * (grs * rs)  # bracketed so that two lines see the same bits of each other
            sums[line, 3] += gt * gs
    return found


@njit(cache=True, nogil=True)
def _similarity(sums, shrinkage):
    """The shrunk correlation from its four sums; 0 where a line never leaves its baseline, or one cell is all."""
    size = sums[1] * sums[2]
    count = sums[3] - 1.0
    if size <= 0.0 or count <= 0.0:
        return 0.0
    return count / (count + shrinkage) * sums[0] / np.sqrt(size)


@njit(cache=True, nogil=True)
def _reorder(found, touched, score, order):
    places, scores = touched[:found][order], score[:found][order]
    for t in range(found):
        touched[t], score[t] = places[t], scores[t]


@njit(cache=True, nogil=True)
def _strongest(found, touched, score, most):
    """The strongest of the first `found` come to the front, strongest first, ties by place; returns how many."""
    if found > most:
        strength = np.abs(score[:found])
        least = np.partition(strength, found - most)[found - most]
        room = most - (strength > least).sum()  # for those exactly as strong as the last; the first places win
        last = np.sort(touched[:found][strength == least])[room - 1]
        kept = 0
        for t in range(found):
            if strength[t] > least or (strength[t] == least and touched[t] <= last):
                touched[kept], score[kept] = touched[t], score[t]
                kept += 1
        found = kept
    _reorder(found, touched, score, np.argsort(touched[:found]))
    _reorder(found, touched, score, np.argsort(-np.abs(score[:found]), kind="mergesort"))
    return found


@njit(cache=True, nogil=True)
def similar(indptr, indices, r, g, Bptr, Bind, Br, Bg, own, shrinkage, index, value, count, sums):
    """For each line of A its strongest similarities to lines of B, strongest first, as many as `index` has room for.

    `own[t]` is line t's own place in B, which is left out, or -1. Line t's results are the first `count[t]` of
    index[t] and value[t], both (m, most). `sums` (q,4) is room to work in, zero before and after.
    """
    q, most = sums.shape[0], index.shape[1]
    touched, score = np.empty(q, np.int64), np.empty(q)
    for t in range(own.size):
        found = _gathered(indptr[t], indptr[t + 1], indices, r, g, Bptr, Bind, Br, Bg, sums, touched)
        kept = 0
        for f in range(found):
            line = touched[f]
            strength = _similarity(sums[line], shrinkage)
            sums[line] = 0.0
            if strength != 0.0 and line != own[t]:
                touched[kept], score[kept] = line, strength
                kept += 1
        kept = _strongest(kept, touched, score, most)
        for f in range(kept):
            index[t, f], value[t, f] = touched[f], score[f]
        count[t] = kept


@njit(cache=True, nogil=True)
def _said(start, stop, Sind, s, here, n_neighbors, power, damping):
    """The damped mean of the neighbours start..stop that are known `here`."""
    total, size, used = 0.0, damping, 0
    for f in range(start, stop):
        gap = here[Sind[f]]
        if np.isnan(gap):
            continue
        strength = np.float64(abs(s[f])) ** power
        size += strength
        total += strength * gap if s[f] > 0 else -strength * gap
        used += 1
        if used == n_neighbors:
            break
    return total / size if size > 0.0 else 0.0


@njit(cache=True, nogil=True)
def interpolate(indptr, indices, r, Sptr, Sind, s, lines, places, n_neighbors, power, damping, here, out):
    """out[t] is what the neighbours of places[t] say in line lines[t]; quickest if equal lines stand together.

    The neighbours of a place are a row of S, strongest first; a line is a row of (indptr, indices, r). `here` is as
    long as a line, NaN before and after.
    """
    now = -1
    for t in range(lines.size):
        if lines[t] != now:
            if now >= 0:
                here[indices[indptr[now] : indptr[now + 1]]] = np.nan
            now = lines[t]
            for f in range(indptr[now], indptr[now + 1]):
                here[indices[f]] = r[f]
        j = places[t]
        out[t] = _said(Sptr[j], Sptr[j + 1], Sind, s, here, n_neighbors, power, damping)
    if now >= 0:
        here[indices[indptr[now] : indptr[now + 1]]] = np.nan


@njit(cache=True, nogil=True)
def interpolate_all(indptr, indices, r, Sptr, Sind, s, n_neighbors, power, damping, here, out):
    """The same for every line and every place: out (lines, places)."""
    for i in range(out.shape[0]):
        for f in range(indptr[i], indptr[i + 1]):
            here[indices[f]] = r[f]
        for j in range(out.shape[1]):
            out[i, j] = _said(Sptr[j], Sptr[j + 1], Sind, s, here, n_neighbors, power, damping)
        here[indices[indptr[i] : indptr[i + 1]]] = np.nan
