"""Gaussian rows with missing cells: densities and conditional expectations, one Cholesky factor per pattern."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def _factor(S, seen, m, L):
    """Write the Cholesky factor L of S over the m seen columns; returns log|S|."""
    logdet = 0.0
    for a in range(m):
        for b in range(a + 1):
            t = S[seen[a], seen[b]]
            for c in range(b):
                t -= L[a, c] * L[b, c]
            if a == b:
                L[a, a] = np.sqrt(t)
                logdet += np.log(t)
            else:
                L[a, b] = t / L[b, b]
    return logdet


@njit(cache=True, nogil=True, error_model="numpy")
def _list_seen(mask, seen):
    """Write the columns that are observed in a pattern; returns their number."""
    m = 0
    for j in range(mask.size):
        if mask[j]:
            seen[m] = j
            m += 1
    return m


@njit(cache=True, nogil=True, error_model="numpy")
def log_density(x, mask, order, starts, mean, S, logp):
    """Write log N of the observed cells of each row; x (n,d), mask (P,d) of observed cells, rows grouped by pattern."""
    d = x.shape[1]
    L, y, seen = np.empty((d, d)), np.empty(d), np.empty(d, np.int64)
    for p in range(mask.shape[0]):
        m = _list_seen(mask[p], seen)
        constant = _factor(S, seen, m, L) + m * np.log(2 * np.pi)
        for r in range(starts[p], starts[p + 1]):
            i = order[r]
            q = 0.0
            for a in range(m):
                t = np.float64(x[i, seen[a]]) - mean[seen[a]]
                for b in range(a):
                    t -= L[a, b] * y[b]
                y[a] = t / L[a, a]
                q += y[a] * y[a]
            logp[i] = -0.5 * (constant + q)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_holes(x, w, mask, order, starts, mean, S, filled, extra):
    """Fill the holes of each row with their expectation given the other cells; add Σw·Cov(holes) to extra (d,d)."""
    d = x.shape[1]
    L, y, z = np.empty((d, d)), np.empty(d), np.empty(d)
    seen, gone, R = np.empty(d, np.int64), np.empty(d, np.int64), np.empty((d, d))
    for p in range(mask.shape[0]):
        m, h = 0, 0
        for j in range(d):
            if mask[p, j]:
                seen[m] = j
                m += 1
            else:
                gone[h] = j
                h += 1
        _factor(S, seen, m, L)
        total = 0.0
        for r in range(starts[p], starts[p + 1]):
            i = order[r]
            total += w[i]
            for a in range(m):
                filled[i, seen[a]] = x[i, seen[a]]
                t = np.float64(x[i, seen[a]]) - mean[seen[a]]
                for b in range(a):
                    t -= L[a, b] * y[b]
                y[a] = t / L[a, a]
            for a in range(m - 1, -1, -1):  # z = S⁻¹(x − mean)
                t = y[a]
                for b in range(a + 1, m):
                    t -= L[b, a] * z[b]
                z[a] = t / L[a, a]
            for g in range(h):
                t = mean[gone[g]]
                for a in range(m):
                    t += S[gone[g], seen[a]] * z[a]
                filled[i, gone[g]] = t
        for g in range(h):  # R = L⁻¹ S[seen, gone]; Cov = S[gone, gone] − RᵀR
            for a in range(m):
                t = S[seen[a], gone[g]]
                for b in range(a):
                    t -= L[a, b] * R[b, g]
                R[a, g] = t / L[a, a]
            for f in range(g + 1):
                t = S[gone[g], gone[f]]
                for a in range(m):
                    t -= R[a, g] * R[a, f]
                extra[gone[g], gone[f]] += total * t
                if f != g:
                    extra[gone[f], gone[g]] += total * t


@njit(cache=True, nogil=True, error_model="numpy")
def hole_variances(mask, S, variance):
    """Write the variance of every hole given the observed cells, one row per pattern; mask and variance (P,d)."""
    d = S.shape[0]
    L, y, seen = np.empty((d, d)), np.empty(d), np.empty(d, np.int64)
    for p in range(mask.shape[0]):
        m = _list_seen(mask[p], seen)
        _factor(S, seen, m, L)
        for j in range(d):
            if mask[p, j]:
                continue
            q = S[j, j]
            for a in range(m):  # y = L⁻¹ S[seen, j]
                t = S[seen[a], j]
                for b in range(a):
                    t -= L[a, b] * y[b]
                y[a] = t / L[a, a]
                q -= y[a] * y[a]
            variance[p, j] = q
