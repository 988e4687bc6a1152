"""The posterior of Gaussian codes when cells are missing: one small Cholesky factor per pattern of holes."""

import numpy as np
from numba import njit

from twofold.kernels.cholesky import factor, invert


@njit(cache=True, nogil=True, error_model="numpy")
def _unpack(packed, ridge, A):
    """Write a packed lower triangle, with the ridge on its diagonal, to the lower half of A."""
    at = 0
    for a in range(A.shape[0]):
        for b in range(a + 1):
            A[a, b] = packed[at]
            at += 1
        A[a, a] += ridge


@njit(cache=True, nogil=True, error_model="numpy")
def posterior(M, B, w, order, starts, ridge, means, quad, logdet, second):
    """Compute codes of rows grouped by pattern.

    M (P,k(k+1)/2) packed WᵀΨ⁻¹W over each pattern's observed cells; B (n,k) WᵀΨ⁻¹x of each row; order (n,) rows
    sorted by pattern, starts (P+1,). With A_p = M_p + ridge·I it writes means (n,k) = A⁻¹b, quad (n,) = bᵀA⁻¹b,
    logdet (P,) = log|A_p|, and second (P,(k+1)(k+2)/2) = Σ_rows w(cov + z̃z̃ᵀ), packed, with z̃ = (z, 1).
    """
    k = B.shape[1]
    A = np.empty((k, k))
    y = np.empty(k)
    for p in range(M.shape[0]):
        _unpack(M[p], ridge, A)
        logdet[p] = factor(A, 0.0)
        invert(A)
        total = 0.0
        for r in range(starts[p], starts[p + 1]):
            i = order[r]
            q = 0.0
            for a in range(k):
                t = 0.0
                for b in range(a + 1):
                    t += A[a, b] * B[i, b]
                y[a] = t
                q += t * t
            quad[i] = q
            for a in range(k):
                t = 0.0
                for b in range(a, k):
                    t += A[b, a] * y[b]
                means[i, a] = t
            wi = w[i]
            total += wi
            at = 0
            for a in range(k):
                t = wi * means[i, a]
                for b in range(a + 1):
                    second[p, at] += t * means[i, b]
                    at += 1
            for a in range(k):
                second[p, at] += wi * means[i, a]
                at += 1
        at = 0
        for a in range(k):
            for b in range(a + 1):
                t = 0.0
                for m in range(a, k):
                    t += A[m, a] * A[m, b]
                second[p, at] += total * t
                at += 1
        second[p, at + k] += total


@njit(cache=True, nogil=True, error_model="numpy")
def hole_variances(M, mask, W, psi, variance):
    """Write the variance ψ_j + W_jᵀA⁻¹W_j of every hole, one row per pattern, with A_p = M_p + I.

    M (P,k(k+1)/2) packed WᵀΨ⁻¹W over each pattern's observed cells; mask and variance (P,d); W (d,k), psi (d,).
    """
    d, k = W.shape
    A = np.empty((k, k))
    for p in range(M.shape[0]):
        _unpack(M[p], 1.0, A)
        factor(A, 0.0)
        invert(A)
        for j in range(d):
            if mask[p, j]:
                continue
            q = psi[j]
            for a in range(k):
                t = 0.0
                for b in range(a + 1):
                    t += A[a, b] * W[j, b]
                q += t * t
            variance[p, j] = q
