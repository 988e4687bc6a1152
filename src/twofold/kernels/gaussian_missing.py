"""Gaussian rows with missing cells: densities and conditional expectations.

With m cells seen and h holes in a pattern, S = LLᵀ and W = L⁻¹:

    few holes    y = W(x − mean) with zeros in the holes; W[:, holes] = QR;  the row's distance is that of y from the
                 span of Q, the holes are mean − R⁻¹Qᵀy, their covariance is (RᵀR)⁻¹, and log|S[seen, seen]| is
                 log|S| + log|RᵀR|:  dh² for a pattern and one product with W for all rows
    many holes   the Cholesky factor of S[seen, seen]: m³/6 for a pattern
"""

import numpy as np
from numba import njit

Array = np.ndarray


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
def has_few_holes(m, h):
    """Tell whether h holes beside m seen cells cost less than the cells."""
    return h > 0 and 12 * (m + h) * h * h < m * m * m + 12 * m * m


@njit(cache=True, nogil=True, error_model="numpy")
def _list_cells(mask, seen, gone):
    """Write the columns that are observed in a pattern and those that are not; returns the number of the former."""
    m, h = 0, 0
    for j in range(mask.size):
        if mask[j]:
            seen[m] = j
            m += 1
        else:
            gone[h] = j
            h += 1
    return m


@njit(cache=True, nogil=True, error_model="numpy")
def _orthogonalize(WT, gone, h, Q, R):
    """Write W[:, gone] = QᵀR, with orthonormal rows of Q, by modified Gram-Schmidt; returns log|RᵀR|."""
    d = WT.shape[0]
    logdet = 0.0
    for a in range(h):
        Q[a] = WT[gone[a]]
        for b in range(a):
            t = 0.0
            for j in range(d):
                t += Q[b, j] * Q[a, j]
            R[b, a] = t
            for j in range(d):
                Q[a, j] -= t * Q[b, j]
        R[a, a] = np.sqrt(np.sum(Q[a] * Q[a]))
        Q[a] /= R[a, a]
        logdet += 2 * np.log(R[a, a])
    return logdet


@njit(cache=True, nogil=True, error_model="numpy")
def _invert(R, h, V):
    """Write the inverse V of the upper triangular R."""
    for b in range(h):
        V[b, b] = 1 / R[b, b]
        for a in range(b - 1, -1, -1):
            t = 0.0
            for c in range(a + 1, b + 1):
                t += R[a, c] * V[c, b]
            V[a, b] = -t / R[a, a]


@njit(cache=True, nogil=True, error_model="numpy")
def _project(y, Q, h, z):
    """Take the span of Q off y, in place, and write its coordinates z."""
    for a in range(h):
        t = 0.0
        for j in range(y.size):
            t += Q[a, j] * y[j]
        z[a] = t
        for j in range(y.size):
            y[j] -= t * Q[a, j]


def whiten(x: Array, mask: Array, order: Array, starts: Array, mean: Array, S: Array) -> tuple[Array, Array, float]:
    """The rows (n,d) times Wᵀ, with zeros in the holes; Wᵀ (d,d); log|S|. Empty if no pattern has few holes."""
    seen = mask.sum(axis=1)
    few = np.array([has_few_holes(m, mask.shape[1] - m) for m in seen])
    if not few.any():
        return np.empty((0, 0)), np.empty((0, 0)), 0.0
    L = np.linalg.cholesky(S)
    WT = np.ascontiguousarray(np.linalg.inv(L).T)
    there = np.empty(x.shape, bool)
    there[order] = np.repeat(mask, np.diff(starts), axis=0)
    return np.where(there, x - mean, 0.0) @ WT, WT, 2 * float(np.log(np.diag(L)).sum())


def log_density(x: Array, mask: Array, order: Array, starts: Array, mean: Array, S: Array, logp: Array) -> None:
    """Write log N of the observed cells of each row; x (n,d), mask (P,d) of observed cells, rows grouped by pattern."""
    _log_density(x, mask, order, starts, mean, S, *whiten(x, mask, order, starts, mean, S), logp)


@njit(cache=True, nogil=True, error_model="numpy")
def _log_density(x, mask, order, starts, mean, S, white, WT, whole, logp):
    d = x.shape[1]
    L, y = np.empty((d, d)), np.empty(d)
    z, seen, gone = np.empty(d), np.empty(d, np.int64), np.empty(d, np.int64)
    Q, R = np.empty((d, d)), np.empty((d, d))
    for p in range(mask.shape[0]):
        m = _list_cells(mask[p], seen, gone)
        few = has_few_holes(m, d - m)
        logdet = whole + _orthogonalize(WT, gone, d - m, Q, R) if few else _factor(S, seen, m, L)
        constant = logdet + m * np.log(2 * np.pi)
        for r in range(starts[p], starts[p + 1]):
            i = order[r]
            q = 0.0
            if few:
                y[:] = white[i]
                _project(y, Q, d - m, z)
                for j in range(d):
                    q += y[j] * y[j]
            else:
                _solve_lower(x, i, seen, m, mean, L, y)
                for a in range(m):
                    q += y[a] * y[a]
            logp[i] = -0.5 * (constant + q)


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_lower(x, i, seen, m, mean, L, y):
    """Write y = L⁻¹(x − mean) of the cells seen in row i."""
    for a in range(m):
        t = np.float64(x[i, seen[a]]) - mean[seen[a]]
        for b in range(a):
            t -= L[a, b] * y[b]
        y[a] = t / L[a, a]


def fill_holes(
    x: Array, w: Array, mask: Array, order: Array, starts: Array, mean: Array, S: Array, filled: Array, extra: Array
) -> None:
    """Fill the holes of each row with their expectation given the other cells; add Σw·Cov(holes) to extra (d,d)."""
    _fill_holes(x, w, mask, order, starts, mean, S, *whiten(x, mask, order, starts, mean, S)[:2], filled, extra)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_holes(x, w, mask, order, starts, mean, S, white, WT, filled, extra):
    d = x.shape[1]
    L, y, z = np.empty((d, d)), np.empty(d), np.empty(d)
    seen, gone = np.empty(d, np.int64), np.empty(d, np.int64)
    Q, R, V = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    for p in range(mask.shape[0]):
        m = _list_cells(mask[p], seen, gone)
        h = d - m
        few = has_few_holes(m, h)
        if few:
            _orthogonalize(WT, gone, h, Q, R)
            _invert(R, h, V)
        else:
            _factor(S, seen, m, L)
        total = 0.0
        for r in range(starts[p], starts[p + 1]):
            i = order[r]
            total += w[i]
            for a in range(m):
                filled[i, seen[a]] = x[i, seen[a]]
            if few:
                y[:] = white[i]
                _project(y, Q, h, z)
                for g in range(h):
                    t = mean[gone[g]]
                    for a in range(g, h):
                        t -= V[g, a] * z[a]
                    filled[i, gone[g]] = t
            else:
                _solve_lower(x, i, seen, m, mean, L, y)
                _fill_row(i, seen, gone, m, h, mean, S, L, y, z, filled)
        if few:
            _add_inverse(V, gone, h, total, extra)
        else:
            _add_covariance(seen, gone, m, h, S, L, R, total, extra)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_row(i, seen, gone, m, h, mean, S, L, y, z, filled):
    """Fill row i from y = L⁻¹(x − mean) of its seen cells."""
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


@njit(cache=True, nogil=True, error_model="numpy")
def _add_inverse(V, gone, h, total, extra):
    """Add total·VVᵀ, the covariance of the holes, to extra."""
    for g in range(h):
        for f in range(g + 1):
            t = 0.0
            for a in range(g, h):
                t += V[g, a] * V[f, a]
            extra[gone[g], gone[f]] += total * t
            if f != g:
                extra[gone[f], gone[g]] += total * t


@njit(cache=True, nogil=True, error_model="numpy")
def _add_covariance(seen, gone, m, h, S, L, R, total, extra):
    """Add total·(S[gone, gone] − RᵀR) with R = L⁻¹S[seen, gone], the covariance of the holes, to extra."""
    for g in range(h):
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


def hole_variances(mask: Array, S: Array, variance: Array) -> None:
    """Write the variance of every hole given the observed cells, one row per pattern; mask and variance (P,d)."""
    none, one = np.empty(0, np.int64), np.zeros(len(mask) + 1, np.int64)
    WT = whiten(np.empty((0, len(S))), mask, none, one, np.zeros(len(S)), S)[1]
    _hole_variances(mask, S, WT, variance)


@njit(cache=True, nogil=True, error_model="numpy")
def _hole_variances(mask, S, WT, variance):
    d = S.shape[0]
    L, y = np.empty((d, d)), np.empty(d)
    Q, R, V = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    seen, gone = np.empty(d, np.int64), np.empty(d, np.int64)
    for p in range(mask.shape[0]):
        m = _list_cells(mask[p], seen, gone)
        if has_few_holes(m, d - m):
            _orthogonalize(WT, gone, d - m, Q, R)
            _invert(R, d - m, V)
            for g in range(d - m):
                variance[p, gone[g]] = np.sum(V[g, g : d - m] ** 2)
            continue
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
