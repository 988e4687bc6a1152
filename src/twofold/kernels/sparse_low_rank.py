"""Sparse and low-rank matrices: a factorization at the known cells, a sparse product, connected components."""

import numpy as np
from numba import njit

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FAST)
def cell_dots(indptr, indices, U, Z, out):
    """Write out[q] = ⟨u_i, z_j⟩ for the q-th stored cell (i, j) of a CSR pattern; U (m,k), Z (d,k)."""
    k = U.shape[1]
    for i in range(U.shape[0]):
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            s = U.dtype.type(0)
            for a in range(k):
                s += U[i, a] * Z[j, a]
            out[q] = s


@njit(cache=True, nogil=True, fastmath=FAST)
def csr_dot(indptr, indices, x, V, out):
    """Add S V to out for a CSR matrix S (m,d) and V (d,l)."""
    width = V.shape[1]
    for i in range(out.shape[0]):
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            s = x[q]
            for a in range(width):
                out[i, a] += s * V[j, a]


@njit(cache=True, nogil=True)
def label_components(indptr, indices, columns):
    """Label the connected parts of the graph of rows and columns that a CSR pattern joins; also returns their number.

    Rows come first, then columns; a label is the number of the part, counted in the order of its first member.
    """
    n = indptr.size - 1
    parent = np.arange(n + columns)
    for i in range(n):
        for q in range(indptr[i], indptr[i + 1]):
            a, b = i, n + indices[q]
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            parent[max(a, b)] = min(a, b)
    label, count = np.empty(n + columns, np.int64), 0
    for a in range(n + columns):
        b = a
        while parent[b] != b:
            b = parent[b]
        if b == a:
            label[a] = count
            count += 1
        else:
            label[a] = label[b]
    return label, count
