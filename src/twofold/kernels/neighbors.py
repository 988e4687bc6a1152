"""Neighborhoods: similar lines of a sparse table, and predictions of a cell from the known neighbors of its line.

    dot  = Σ g r g' r'    own = Σ g r² g'    other = Σ g g' r'²    count = Σ g g'     over the cells known in both lines
    s    = max(count − 1, 0) / (count − 1 + shrinkage) · dot / √(own · other)

    r deviations from a baseline    g square roots of weights    a line is a row of A (m,p), or a column of B (p,q)

One line of A at a time meets all columns of B in an accumulator of q entries (Gustavson's product, row by row), and
only its strongest similarities are kept: no m × q table is ever formed. A prediction reads a place's neighbors from
strong to weak and stops when enough of them are known in the line:

    Σ v r / (Σ |v| + damping)    v = s |s|^(power − 1)
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def accumulate_products(a, b, indices, r, g, Bptr, Bind, Br, Bg, sums, touched):
    """Add the four sums of one line with every line that shares a cell with it; returns the number of those lines."""
    n_lines = 0
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
                touched[n_lines] = line
                n_lines += 1
            sums[line, 0] += grt * grs
            sums[line, 1] += grrt * gs
            sums[line, 2] += gt * (grs * rs)  # in this order two lines have sums of the same bits both ways
            sums[line, 3] += gt * gs
    return n_lines


@njit(cache=True, nogil=True)
def shrink_correlation(sums, shrinkage):
    """Return the shrunken correlation of four sums; 0 if a line equals its baseline, or only one cell is shared."""
    size = sums[1] * sums[2]
    count = sums[3] - 1.0
    if size <= 0.0 or count <= 0.0:
        return 0.0
    return count / (count + shrinkage) * sums[0] / np.sqrt(size)


@njit(cache=True, nogil=True)
def reorder(n_lines, touched, score, order):
    places, scores = touched[:n_lines][order], score[:n_lines][order]
    for t in range(n_lines):
        touched[t], score[t] = places[t], scores[t]


@njit(cache=True, nogil=True)
def select_strongest(n_lines, touched, score, max_lines):
    """Move the strongest of the first `n_lines` to the front, strongest first, ties by place; returns their number."""
    if n_lines > max_lines:
        strength = np.abs(score[:n_lines])
        weakest = np.partition(strength, n_lines - max_lines)[n_lines - max_lines]
        room = (
            max_lines - (strength > weakest).sum()
        )  # for lines exactly as strong as the last, the first places of them
        last = np.sort(touched[:n_lines][strength == weakest])[room - 1]
        kept = 0
        for t in range(n_lines):
            if strength[t] > weakest or (strength[t] == weakest and touched[t] <= last):
                touched[kept], score[kept] = touched[t], score[t]
                kept += 1
        n_lines = kept
    reorder(n_lines, touched, score, np.argsort(touched[:n_lines]))
    reorder(n_lines, touched, score, np.argsort(-np.abs(score[:n_lines]), kind="mergesort"))
    return n_lines


@njit(cache=True, nogil=True)
def find_similar(indptr, indices, r, g, Bptr, Bind, Br, Bg, places, shrinkage, index, value, count, sums):
    """Write each line's strongest similarities to lines of B, strongest first, as many as `index` has columns.

    `places[t]` is the place in B of line t of A, which is left out, or -1. Line t's results are the first `count[t]` of
    index[t] and value[t], both (m, max_lines). `sums` (q,4) is scratch memory, zero before and after.
    """
    q, max_lines = sums.shape[0], index.shape[1]
    touched, score = np.empty(q, np.int64), np.empty(q)
    for t in range(places.size):
        n_lines = accumulate_products(indptr[t], indptr[t + 1], indices, r, g, Bptr, Bind, Br, Bg, sums, touched)
        kept = 0
        for f in range(n_lines):
            line = touched[f]
            strength = shrink_correlation(sums[line], shrinkage)
            sums[line] = 0.0
            if strength != 0.0 and line != places[t]:
                touched[kept], score[kept] = line, strength
                kept += 1
        kept = select_strongest(kept, touched, score, max_lines)
        for f in range(kept):
            index[t, f], value[t, f] = touched[f], score[f]
        count[t] = kept


@njit(cache=True, nogil=True)
def average_neighbors(start, stop, Sind, s, known, n_neighbors, power, damping):
    """Return the shrunken mean of the known neighbors start..stop; `known` is a line, NaN where no cell is known."""
    total, size, used = 0.0, damping, 0
    for f in range(start, stop):
        gap = known[Sind[f]]
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
def interpolate(indptr, indices, r, Sptr, Sind, s, lines, places, n_neighbors, power, damping, known, out):
    """Write out[t]: the prediction for column places[t] of row lines[t] from its neighbors; faster for sorted lines.

    The neighbors of a place are a row of S, strongest first; a line is a row of (indptr, indices, r). `known` is as
    long as a line, NaN before and after.
    """
    now = -1
    for t in range(lines.size):
        if lines[t] != now:
            if now >= 0:
                known[indices[indptr[now] : indptr[now + 1]]] = np.nan
            now = lines[t]
            for f in range(indptr[now], indptr[now + 1]):
                known[indices[f]] = r[f]
        j = places[t]
        out[t] = average_neighbors(Sptr[j], Sptr[j + 1], Sind, s, known, n_neighbors, power, damping)
    if now >= 0:
        known[indices[indptr[now] : indptr[now + 1]]] = np.nan


@njit(cache=True, nogil=True)
def interpolate_all(indptr, indices, r, Sptr, Sind, s, n_neighbors, power, damping, known, out):
    """Write the same for every line and every place: out (lines, places)."""
    for i in range(out.shape[0]):
        for f in range(indptr[i], indptr[i + 1]):
            known[indices[f]] = r[f]
        for j in range(out.shape[1]):
            out[i, j] = average_neighbors(Sptr[j], Sptr[j + 1], Sind, s, known, n_neighbors, power, damping)
        known[indices[indptr[i] : indptr[i + 1]]] = np.nan
