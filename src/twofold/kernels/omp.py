"""Batch orthogonal matching pursuit: the codes of many signals over one dictionary.

    G = D Dᵀ (k,k)   B = X Dᵀ (m,k)      a step: the best-correlated atom joins, all coefficients are refitted

The coefficients are not solved for in every step. Instead the selected atoms are orthogonalized one by one (not
scaled): P holds their correlations with all atoms, so that a step only subtracts a multiple of one of its rows from the
correlations of the residual. The triangle L, from which the coefficients follow at the end, is built at the same time:
the selected atoms' part of G is L diag(rest) Lᵀ, with ones on L's diagonal.
Reference: Rubinstein, Zibulevsky & Elad 2008.
"""

import numpy as np
from numba import njit

from twofold.kernels.min_max import larger

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", inline="always")
def _next_row(P, s, g, w):
    """Write P[s] = g − Σ_{t<s} w_t P[t], four rows at a time; w is 0 from s on, so the last four may be fewer."""
    k = len(g)
    row = P[s]
    if s == 0:
        for j in range(k):
            row[j] = g[j]
        return
    a, b, c, d = w[0], w[1], w[2], w[3]
    p, q, u, v = P[0], P[min(1, s - 1)], P[min(2, s - 1)], P[min(3, s - 1)]
    for j in range(k):
        row[j] = g[j] - (a * p[j] + b * q[j] + c * u[j] + d * v[j])
    for t in range(4, s, 4):
        a, b, c, d = w[t], w[t + 1], w[t + 2], w[t + 3]
        p, q, u, v = P[t], P[min(t + 1, s - 1)], P[min(t + 2, s - 1)], P[min(t + 3, s - 1)]
        for j in range(k):
            row[j] -= a * p[j] + b * q[j] + c * u[j] + d * v[j]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", inline="always")
def _argmax_abs(R):
    """Return the first place of the largest |R|."""
    k, best = len(R), abs(R[0])
    for j in range(k):
        best = larger(best, abs(R[j]))
    first = k - 1
    for j in range(k):
        first = min(first, j if abs(R[j]) == best else k)
    return first


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def omp(G, B, squares, max_error, rounding, min_new_share, index, value, count):
    """Compute codes of the m signals whose correlations are the rows of B.

    squares (m,) ‖x‖²; max_error (m,) the squared error at which to stop; rounding (m,) the largest squared correlation
    with an atom of length 1 that counts as zero; min_new_share: an atom adds nothing if a smaller share of it is new.
    Written: index (m,s), value (m,s) and count (m,), with s the maximum of atoms in a code. Codes of fewer atoms do not
    change the rest.
    """
    m, k = B.shape
    most = index.shape[1]
    P = np.empty((most, k), B.dtype)
    L = np.zeros((most, most + 3), B.dtype)
    R = np.empty(k, B.dtype)
    c, rest = np.empty(most, B.dtype), np.empty(most, B.dtype)
    for i in range(m):
        for j in range(k):
            R[j] = B[i, j]
        left, s = squares[i], 0
        while s < most and left > max_error[i]:
            j = _argmax_abs(R)
            new = G[j, j]
            for t in range(s):
                L[s, t] = P[t, j] / rest[t]
            for t in range(s):
                new -= L[s, t] * L[s, t] * rest[t]
            if new <= min_new_share * G[j, j] or R[j] * R[j] <= rounding[i] * G[j, j]:
                break
            _next_row(P, s, G[j], L[s])
            rest[s], c[s] = new, R[j] / new
            left -= c[s] * R[j]
            row, step = P[s], c[s]
            for a in range(k):
                R[a] -= step * row[a]
            R[j] = 0
            index[i, s] = j
            s += 1
        count[i] = s
        for t in range(s - 1, -1, -1):  # Lᵀ x = c
            x = c[t]
            for u in range(t + 1, s):
                x -= L[u, t] * value[i, u]
            value[i, t] = x


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def omp_seen(D, X, seen, max_error, rounding, min_new_share, index, value, count):
    """Compute the same if only some numbers of a signal are observed: X (m,d), seen (m,d).

    The atoms are then cut to the observed numbers of each signal and compared by their length there, so a Gram matrix
    does not pay. Coefficients are those of D's atoms (k,d).
    """
    m, d = X.shape
    k, most = len(D), index.shape[1]
    Q = np.empty((most, d), X.dtype)
    L = np.empty((most, most), X.dtype)
    r, c, square = np.empty(d, X.dtype), np.empty(most, X.dtype), np.empty(k, X.dtype)
    for i in range(m):
        left = X[0, 0] * 0
        for a in range(d):
            r[a] = X[i, a] if seen[i, a] else X[0, 0] * 0
        for a in range(d):
            left += r[a] * r[a]
        for j in range(k):
            length = left * 0
            for a in range(d):
                length += D[j, a] * D[j, a] * seen[i, a]
            square[j] = length
        longest, s = square.max(), 0
        while s < most and left > max_error[i]:
            j, best = 0, left * 0
            for b in range(k):
                atom, dot = D[b], left * 0
                for a in range(d):
                    dot += atom[a] * r[a]
                gain = dot * dot / square[b] if square[b] > min_new_share * longest else left * 0
                if gain > best:
                    j, best = b, gain
            if best <= rounding[i]:
                break
            q = Q[s]
            for a in range(d):
                q[a] = D[j, a] * seen[i, a]
            for t in range(s):
                share = left * 0
                for a in range(d):
                    share += Q[t, a] * q[a]
                for a in range(d):
                    q[a] -= share * Q[t, a]
                L[s, t] = share
            new = left * 0
            for a in range(d):
                new += q[a] * q[a]
            if new <= min_new_share * square[j]:
                break
            L[s, s] = np.sqrt(new)
            share = left * 0
            for a in range(d):
                q[a] /= L[s, s]
            for a in range(d):
                share += q[a] * r[a]
            for a in range(d):
                r[a] -= share * q[a]
            c[s] = share
            left -= share * share
            index[i, s] = j
            s += 1
        count[i] = s
        for t in range(s - 1, -1, -1):
            x = c[t]
            for u in range(t + 1, s):
                x -= L[u, t] * value[i, u]
            value[i, t] = x / L[t, t]
