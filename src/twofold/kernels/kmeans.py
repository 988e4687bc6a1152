"""Inner loops of k-means: nearest centers from products, bounds by groups of centers, sums of the rows that moved."""

import numpy as np
from numba import njit

from twofold.kernels.min_max import smaller

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}
STRIP = 128  # rows side by side: their columns and results stay in the nearest cache


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def assign_directly(X, mean, Z, label, best):
    """Find the nearest of the centers mean + Z of each row, and its squared distance, in one pass, for few columns.

    Rows are processed side by side, one column after the other, so that every step is the same for neighbors in memory.
    Columns come in fours, the last four padded with zeros.
    """
    (n, d), k, kind = X.shape, Z.shape[0], X.dtype.type
    wide, even = -(-d // 4) * 4, k + k % 2
    T, W, base = np.zeros((wide, STRIP), X.dtype), np.zeros((even, wide), X.dtype), np.full(even, kind(np.inf))
    for c in range(k):
        for j in range(d):
            W[c, j] = kind(-2) * Z[c, j]
        base[c] = np.sum(Z[c] * Z[c])
    own, least, at = np.empty(STRIP, X.dtype), np.empty(STRIP, X.dtype), np.empty(STRIP, np.int32)
    one, two = np.empty(STRIP, X.dtype), np.empty(STRIP, X.dtype)
    for start in range(0, n, STRIP):
        m = min(STRIP, n - start)
        for r in range(0, m, 4):  # four rows, whose numbers become neighbors, at a time
            i = start + r
            a, b, c, e = X[i], X[min(i + 1, n - 1)], X[min(i + 2, n - 1)], X[min(i + 3, n - 1)]
            for j in range(d):
                t, center = T[j], mean[j]
                t[r], t[r + 1], t[r + 2], t[r + 3] = a[j] - center, b[j] - center, c[j] - center, e[j] - center
        own[:] = kind(0)
        least[:] = kind(np.inf)
        at[:] = 0
        for j in range(d):
            t = T[j]
            for r in range(STRIP):
                own[r] += t[r] * t[r]
        for c in range(0, k, 2):
            this, that, v, w = np.int32(c), np.int32(c + 1), W[c], W[c + 1]
            one[:] = base[c]
            two[:] = base[c + 1]
            for j in range(0, wide, 4):
                t0, t1, t2, t3 = T[j], T[j + 1], T[j + 2], T[j + 3]
                v0, v1, v2, v3 = v[j], v[j + 1], v[j + 2], v[j + 3]
                w0, w1, w2, w3 = w[j], w[j + 1], w[j + 2], w[j + 3]
                for r in range(STRIP):
                    one[r] += (t0[r] * v0 + t1[r] * v1) + (t2[r] * v2 + t3[r] * v3)
                    two[r] += (t0[r] * w0 + t1[r] * w1) + (t2[r] * w2 + t3[r] * w3)
            for r in range(STRIP):
                at[r] = this if one[r] < least[r] else at[r]
                least[r] = min(one[r], least[r])
            for r in range(STRIP):
                at[r] = that if two[r] < least[r] else at[r]
                least[r] = min(two[r], least[r])
        for r in range(m):
            label[start + r] = at[r]
            best[start + r] = max(least[r] + own[r], kind(0))


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def take_minima(V, base, label, best):
    """Find the smallest base[c] + V[i,c] of each row and its column; V (m,k) is overwritten by the sums."""
    m, k = V.shape
    for i in range(m):
        row = V[i]
        least, at = row[0] + base[0], k - 1
        for c in range(k):
            row[c] += base[c]
            least = smaller(least, row[c])
        for c in range(k):
            at = min(at, c if row[c] == least else k)
        label[i] = at
        best[i] = least


@njit(cache=True, nogil=True)
def group_minima(V, starts, label, lower):
    """Write to lower (m,g) the smallest value of each row in every group of columns, except that of its own label."""
    for i in range(V.shape[0]):
        for g in range(starts.size - 1):
            least = V.dtype.type(np.inf)
            for c in range(starts[g], starts[g + 1]):
                if c != label[i]:
                    least = min(least, V[i, c])
            lower[i, g] = least


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _square_distance(X, i, Z, c):
    """Return ‖x_i − z_c‖²."""
    s = X.dtype.type(0)
    for j in range(X.shape[1]):
        gap = X[i, j] - Z[c, j]
        s += gap * gap
    return s


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _four_square_distances(X, i, Z, c):
    """Return the same for c … c+3 at once, which loads the row once and hides the latency of the sums."""
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
def _scan_group(X, i, Z, a, b, current, distances):
    """Return the smallest and second smallest distance to the centers a … b−1 except `current`, and the nearest."""
    c = a
    while c < b:
        if b - a >= 4:
            c = min(c, b - 4)  # the last four may overlap those before: cheaper than one by one
            distances[c - a], distances[c - a + 1], distances[c - a + 2], distances[c - a + 3] = _four_square_distances(
                X, i, Z, c
            )
            c += 4
        else:
            distances[c - a] = _square_distance(X, i, Z, c)
            c += 1
    first, second, at = X.dtype.type(np.inf), X.dtype.type(np.inf), current
    for c in range(a, b):  # without branches, which the processor could not predict
        v = X.dtype.type(np.inf) if c == current else distances[c - a]
        second = min(second, max(first, v))
        at = c if v < first else at
        first = min(first, v)
    return np.sqrt(first), np.sqrt(second), at


@njit(cache=True, nogil=True)
def reassign(X, Z, label, upper, lower, drift, retreat, group, starts, half, moved, former):
    """Assign rows to centers with bounds (Yinyang); returns the number of rows that changed their center.

    Centers are sorted by group, group g being starts[g]..starts[g+1]. upper (n,) bounds the distance to the current
    center from above, lower (n,g) those to all others of a group from below. drift (k,) is the distance that centers
    moved, retreat (g,) the largest of a group, half (k,) half the distance to the nearest other center. A group is
    searched only if its bound does not exclude it. Rows that moved go to `moved`, their old centers to `former`.
    """
    distances = np.empty(Z.shape[0], X.dtype)
    count = 0
    for i in range(label.size):
        current = label[i]
        u = upper[i] + drift[current]
        least = lower[i, 0] - retreat[0]
        for g in range(retreat.size):
            lower[i, g] -= retreat[g]
            least = min(least, lower[i, g])
        if u > least and u > half[current]:
            u = np.sqrt(_square_distance(X, i, Z, current))
        if u <= least or u <= half[current]:
            upper[i] = u
            continue
        best, now = u, current
        for g in range(retreat.size):
            if lower[i, g] >= best:
                continue
            first, second, at = _scan_group(X, i, Z, starts[g], starts[g + 1], current, distances)
            if first < best:
                lower[i, g] = second
                lower[i, group[now]] = min(lower[i, group[now]], best)
                best, now = first, at
            else:
                lower[i, g] = first
        upper[i] = best
        if now != current:
            lower[i, group[current]] = min(lower[i, group[current]], u)
            label[i] = now
            moved[count] = i
            former[count] = current
            count += 1
    return count


@njit(cache=True, nogil=True)
def move_rows(X, shift, w, rows, old, label, counts, sums):
    """Subtract moved rows from the sums of their old center and add them to the new; old is −1 if there was none."""
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
