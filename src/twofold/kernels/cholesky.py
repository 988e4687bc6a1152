"""Small Cholesky factors, for kernels that need one per row."""

import numpy as np
from numba import njit

SUMS = {"nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy", forceinline=True)
def factor(A, floor):
    """In place: A (k,k) symmetric positive definite → its lower factor L, pivots at least `floor`; returns log|A|.

    Only the lower half is read and written.
    """
    k = A.shape[0]
    logdet = 0.0
    for j in range(k):
        s = A[j, j]
        for m in range(j):
            s -= A[j, m] * A[j, m]
        s = max(s, floor)
        logdet += np.log(np.float64(s))
        A[j, j] = np.sqrt(s)
        for i in range(j + 1, k):
            t = A[i, j]
            for m in range(j):
                t -= A[i, m] * A[j, m]
            A[i, j] = t / A[j, j]
    return logdet


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy", forceinline=True)
def invert(L):
    """In place: a lower factor L → L⁻¹, by forward substitution, column by column."""
    k = L.shape[0]
    one = L.dtype.type(1)
    for j in range(k):
        L[j, j] = one / L[j, j]
        for i in range(j + 1, k):
            t = L.dtype.type(0)
            for m in range(j, i):
                t += L[i, m] * L[m, j]
            L[i, j] = -t / L[i, i]


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy", forceinline=True)
def solve(L, b):
    """In place: b → x with L Lᵀ x = b."""
    k = b.size
    for a in range(k):
        s = b[a]
        for c in range(a):
            s -= L[a, c] * b[c]
        b[a] = s / L[a, a]
    for a in range(k - 1, -1, -1):
        b[a] /= L[a, a]
        for c in range(a):
            b[c] -= L[a, c] * b[a]
