"""Inner loops of k-means: two nearest centres, Hamerly's bounds, sums of the rows that moved."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def best_two(G, base, best, second, label):
    """Smallest and second smallest of base[c] + G[c,i] over c, and where; G (k,m), base (k,), the rest (m,).

    Centres are the outer loop, so that the inner one runs over rows side by side and becomes vector code.
    """
    k, m = G.shape
    for i in range(m):
        best[i] = np.inf
        second[i] = np.inf
        label[i] = 0
    for c in range(k):
        b = base[c]
        for i in range(m):
            v = b + G[c, i]
            closer = v < best[i]
            other = best[i] if closer else v
            second[i] = min(second[i], other)
            label[i] = c if closer else label[i]
            best[i] = v if closer else best[i]


@njit(cache=True, nogil=True)
def loosen(label, upper, lower, drift, most, runner_up, farthest, half, active):
    """Move the bounds by how far the centres moved; list the rows whose centre may have changed, return how many.

    upper (n,) bounds the distance to the own centre, lower (n,) to all others; drift (k,); most and runner_up are
    the two largest drifts, farthest the centre of the largest; half (k,) is half the way to the nearest other centre.
    """
    count = 0
    for i in range(label.size):
        c = label[i]
        upper[i] += drift[c]
        lower[i] -= runner_up if c == farthest else most
        if upper[i] > lower[i] and upper[i] > half[c]:
            active[count] = i
            count += 1
    return count


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def tighten(X, Z, label, upper, lower, half, active, count):
    """Replace the upper bound of active rows by the distance itself; keep those still in doubt, return how many."""
    d = X.shape[1]
    kept = 0
    for a in range(count):
        i = active[a]
        c = label[i]
        s = upper[i] * 0
        for j in range(d):
            gap = X[i, j] - Z[c, j]
            s += gap * gap
        upper[i] = np.sqrt(s)
        if upper[i] > lower[i] and upper[i] > half[c]:
            active[kept] = i
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def move(X, shift, w, rows, old, new, counts, sums):
    """Take moved rows out of their old centre's sums and into the new one's; old is −1 where there was none."""
    d = X.shape[1]
    moved = 0
    for r in range(rows.size):
        a, b = old[r], new[r]
        if a == b:
            continue
        moved += 1
        i = rows[r]
        counts[b] += w[i]
        for j in range(d):
            sums[b, j] += w[i] * (np.float64(X[i, j]) - shift[j])
        if a >= 0:
            counts[a] -= w[i]
            for j in range(d):
                sums[a, j] -= w[i] * (np.float64(X[i, j]) - shift[j])
    return moved
