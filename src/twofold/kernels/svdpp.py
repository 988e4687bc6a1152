"""Inner loops of variational factor models: Gaussian posteriors of rows given the moments of the columns.

Symmetric (p,p) matrices are packed: their lower half row by row, t = p(p+1)/2 numbers, so that adding one over a row's
cells is one run over contiguous memory.
"""

import numpy as np
from numba import njit

from twofold.kernels.cholesky import factor, invert

TINY = 1e-30
FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FAST)
def pattern_sums(indptr, indices, Y, out):
    """Write out_i = Σ_j Y_j over the stored cells of each row."""
    p = Y.shape[1]
    for i in range(out.shape[0]):
        row = out[i]
        row[:] = 0
        for q in range(indptr[i], indptr[i + 1]):
            y = Y[indices[q]]
            for a in range(p):
                row[a] += y[a]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def row_sums(start, stop, indices, x, w, Q, F, G, h, A, b):
    """Sum w E[φφᵀ] to A (packed) and w (x E[φ] − E[cφ]) to b over a row's cells; returns Σ w E[(x − c)²]."""
    total = 0.0
    t, p = A.size, b.size
    A[:] = 0
    b[:] = 0
    for q in range(start, stop):
        j = indices[q]
        v, weight = x[q], w[q]
        for a in range(t):
            A[a] += weight * Q[j, a]
        for a in range(p):
            b[a] += weight * (v * F[j, a] - G[j, a])
        total += np.float64(weight) * (np.float64(v) * (v - h[j, 0] - h[j, 0]) + h[j, 1])
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def posterior_rows(indptr, indices, x, w, Q, F, G, h, prior, lam, tau, U, V, left, logdet):
    """Write the Gaussian posterior of every row: mean U (m,p), covariance V (m,t) packed, squares left, log|precision|.

    precision = diag(λ) + τ Σ w E[φφᵀ],   mean = precision⁻¹ (λ∘prior + τ Σ w (x E[φ] − E[cφ]))
    """
    m, p = U.shape
    A, b = np.empty(Q.shape[1], Q.dtype), np.empty(p, Q.dtype)
    M, r = np.empty((p, p), Q.dtype), np.empty(p, Q.dtype)
    for i in range(m):
        total = row_sums(indptr[i], indptr[i + 1], indices, x, w, Q, F, G, h, A, b)
        at = 0
        for a in range(p):
            for c in range(a + 1):
                M[a, c] = tau * A[at]
                at += 1
            M[a, a] += lam[a]
            r[a] = tau * b[a] + lam[a] * prior[i, a]
        logdet[i] = factor(M, M.dtype.type(TINY))
        invert(M)
        _from_factor(M, r, U[i], V[i])
        at = 0
        for a in range(p):
            total -= 2.0 * np.float64(U[i, a]) * b[a]
            for c in range(a):
                total += 2.0 * np.float64(A[at]) * (V[i, at] + U[i, a] * U[i, c])
                at += 1
            total += np.float64(A[at]) * (V[i, at] + U[i, a] * U[i, a])
            at += 1
        left[i] = total


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _from_factor(L, r, u, v):
    """Write u = LᵀL r and v = LᵀL packed, for a lower L."""
    p = r.size
    at = 0
    for a in range(p):
        u[a] = 0
    for a in range(p):
        for c in range(a + 1):
            s = L.dtype.type(0)
            for e in range(a, p):
                s += L[e, a] * L[e, c]
            v[at] = s
            at += 1
            u[a] += s * r[c]
            if c < a:
                u[c] += s * r[a]
