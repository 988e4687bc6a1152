"""Sums over the rows of one block, in float64 for any dtype of the data."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def column_sums(X, w, shift, weight, first, second):
    """Add Σw, Σw(x−shift), Σw(x−shift)² of each column, skipping NaN; X (n,d), w (n,), the rest (d,) float64."""
    n, d = X.shape
    for i in range(n):
        wi = w[i]
        for j in range(d):
            v = np.float64(X[i, j]) - shift[j]
            seen = v == v
            v = v if seen else 0.0
            weight[j] += wi if seen else 0.0
            first[j] += wi * v
            second[j] += wi * v * v


@njit(cache=True, nogil=True)
def row_sum(X, w, out):
    """Add Σ w x to out (d,) float64."""
    n, d = X.shape
    for i in range(n):
        wi = w[i]
        for j in range(d):
            out[j] += wi * np.float64(X[i, j])


@njit(cache=True, nogil=True)
def csr_column_sums(data, indices, indptr, w, first, second):
    """Add Σwx and Σwx² of each column of a CSR block."""
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            v = np.float64(data[p])
            first[indices[p]] += w[i] * v
            second[indices[p]] += w[i] * v * v


@njit(cache=True, nogil=True)
def csr_gram(data, indices, indptr, w, G):
    """Add XᵀWX of a CSR block to the upper triangle of G (d,d) float64; indices sorted within rows."""
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            v = w[i] * np.float64(data[p])
            row = G[indices[p]]
            for q in range(p, indptr[i + 1]):
                row[indices[q]] += v * np.float64(data[q])


@njit(cache=True, nogil=True)
def csr_gram_rows(data, indices, indptr, lo, G):
    """Add rows lo, lo + 1, … of the upper triangle of XᵀX of a CSR block to G (m,d); indices sorted within rows."""
    hi = lo + G.shape[0]
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            if lo <= indices[p] < hi:
                v, row = np.float64(data[p]), G[indices[p] - lo]
                for q in range(p, indptr[i + 1]):
                    row[indices[q]] += v * np.float64(data[q])
