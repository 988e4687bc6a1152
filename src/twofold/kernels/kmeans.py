"""Inner loops of k-means: nearest centres from products, bounds by groups of centres, sums of the rows that moved."""

import numpy as np
from numba import njit

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def nearest(V, base, label, best):
    """The smallest of base[c] + V[i,c] for each row, and where; V (m,k) is overwritten by the sums."""
    m, k = V.shape
    for i in range(m):
        row = V[i]
        least = row[0] + base[0]
        for c in range(k):
            row[c] += base[c]
            least = min(least, row[c])
        at = 0
        while at < k - 1 and row[at] != least:
            at += 1
        label[i] = at
        best[i] = least


@njit(cache=True, nogil=True)
def group_minima(V, starts, label, lower):
    """For each row the smallest value in every group of columns, that of its own label left out; lower (m,g)."""
    for i in range(V.shape[0]):
        for g in range(starts.size - 1):
            least = V.dtype.type(np.inf)
            for c in range(starts[g], starts[g + 1]):
                if c != label[i]:
                    least = min(least, V[i, c])
            lower[i, g] = least


@njit(cache=True, nogil=True, fastmath=FAST)
def _one(X, i, Z, c):
    """‖x_i − z_c‖²."""
    s = X.dtype.type(0)
    for j in range(X.shape[1]):
        gap = X[i, j] - Z[c, j]
        s += gap * gap
    return s


@njit(cache=True, nogil=True, fastmath=FAST)
def _four(X, i, Z, c):
    """The same for c … c+3 at once, which loads the row once and hides the latency of the sums."""
    s0 = X.dtype.type(0)
    s1, s2, s3 = s0, s0, s0
    for j in range(X.shape[1]):
        x = X[i, j]
        g0, g1, g2, g3 = x - Z[c, j], x - Z[c + 1, j], x - Z[c + 2, j], x - Z[c + 3, j]
        s0 += g0 * g0
        s1 += g1 * g1
        s2 += g2 * g2
        s3 += g3 * g3
    return s0, s1, s2, s3


@njit(cache=True, nogil=True)
def _group(X, i, Z, a, b, own, found):
    """Smallest and second smallest distance to the centres a … b−1 other than `own`, and the nearest."""
    c = a
    while c < b:
        if b - a >= 4:
            c = min(c, b - 4)  # the last four may overlap those before: cheaper than one by one
            found[c - a], found[c - a + 1], found[c - a + 2], found[c - a + 3] = _four(X, i, Z, c)
            c += 4
        else:
            found[c - a] = _one(X, i, Z, c)
            c += 1
    first, second, at = X.dtype.type(np.inf), X.dtype.type(np.inf), own
    for c in range(a, b):  # without branches, which could not be foretold
        v = X.dtype.type(np.inf) if c == own else found[c - a]
        second = min(second, max(first, v))
        at = c if v < first else at
        first = min(first, v)
    return np.sqrt(first), np.sqrt(second), at


@njit(cache=True, nogil=True)
def reassign(X, Z, label, upper, lower, drift, retreat, group, starts, half, moved, former):
    """One sweep over rows with bounds (Yinyang); returns how many rows changed their centre.

    Centres are sorted by group, group g being starts[g]..starts[g+1]. upper (n,) bounds the distance to the own
    centre from above, lower (n,g) those to all others of a group from below. drift (k,) is how far centres moved,
    retreat (g,) the largest of a group, half (k,) half the way to the nearest other centre. A group is looked into
    only if its bound does not rule it out. Rows that moved go to `moved`, their old centres to `former`.
    """
    found = np.empty(Z.shape[0], X.dtype)
    count = 0
    for i in range(label.size):
        own = label[i]
        u = upper[i] + drift[own]
        least = lower[i, 0] - retreat[0]
        for g in range(retreat.size):
            lower[i, g] -= retreat[g]
            least = min(least, lower[i, g])
        if u > least and u > half[own]:
            u = np.sqrt(_one(X, i, Z, own))
        if u <= least or u <= half[own]:
            upper[i] = u
            continue
        best, now = u, own
        for g in range(retreat.size):
            if lower[i, g] >= best:
                continue
            first, second, at = _group(X, i, Z, starts[g], starts[g + 1], own, found)
            if first < best:
                lower[i, g] = second
                lower[i, group[now]] = min(lower[i, group[now]], best)
                best, now = first, at
            else:
                lower[i, g] = first
        upper[i] = best
        if now != own:
            lower[i, group[own]] = min(lower[i, group[own]], u)
            label[i] = now
            moved[count] = i
            former[count] = own
            count += 1
    return count


@njit(cache=True, nogil=True)
def move(X, shift, w, rows, old, label, counts, sums):
    """Take moved rows out of their old centre's sums and into the new one's; old is −1 where there was none."""
    d = X.shape[1]
    for r in range(rows.size):
        i = rows[r]
        a, b = old[r], label[i]
        counts[b] += w[i]
        for j in range(d):
            sums[b, j] += w[i] * (np.float64(X[i, j]) - shift[j])
        if a >= 0:
            counts[a] -= w[i]
            for j in range(d):
                sums[a, j] -= w[i] * (np.float64(X[i, j]) - shift[j])
