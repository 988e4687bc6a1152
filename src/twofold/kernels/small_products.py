"""Products of small blocks of rows, six at a time, for which a call of a matrix library takes too long.

    G = X Yᵀ  (N,M)        X ← X + G Y,   row by row of a large matrix

A block is some rows of S numbers, copied one after the other into a line that stays in the first cache; G[i, j] is
G[i * width + j]. Blocks and G have room for an even number of rows and columns.
"""

import numpy as np
from numba import njit

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, error_model="numpy")
def copy_rows(A, rows, n, block):
    """Copy A[rows[i]] to block[i]."""
    S = A.shape[1]
    for i in range(n):
        row, to = A[rows[i]], block[i * S : (i + 1) * S]
        for a in range(S):
            to[a] = row[a]


# The next five are inlined so that no references to slices are counted, and they sum before they store. In this form
# they become plain vector instructions, at half the cost of other forms.


@njit(inline="always")
def dots6(x, y, S, out):
    """Write out[j] = ⟨x, y_j⟩ for six rows of a block, with one load of x."""
    s0 = s1 = s2 = s3 = s4 = s5 = np.float32(0)
    for a in range(S):
        v = x[a]
        s0 += v * y[a]
        s1 += v * y[S + a]
        s2 += v * y[2 * S + a]
        s3 += v * y[3 * S + a]
        s4 += v * y[4 * S + a]
        s5 += v * y[5 * S + a]
    out[0], out[1], out[2], out[3], out[4], out[5] = s0, s1, s2, s3, s4, s5


@njit(inline="always")
def dots2(x, y, S, out):
    s0 = s1 = np.float32(0)
    for a in range(S):
        s0 += x[a] * y[a]
        s1 += x[a] * y[S + a]
    out[0], out[1] = s0, s1


@njit(inline="always")
def add6(x, y, S, g):
    """Add Σ_j g_j y_j to x for six rows of a block."""
    g0, g1, g2, g3, g4, g5 = g[0], g[1], g[2], g[3], g[4], g[5]
    for a in range(S):
        near, far = g0 * y[a] + g1 * y[S + a] + g2 * y[2 * S + a], g3 * y[3 * S + a] + g4 * y[4 * S + a]
        total = near + far + g5 * y[5 * S + a]
        x[a] += total


@njit(inline="always")
def add4(x, y, S, g):
    g0, g1, g2, g3 = g[0], g[1], g[2], g[3]
    for a in range(S):
        total = g0 * y[a] + g1 * y[S + a] + g2 * y[2 * S + a] + g3 * y[3 * S + a]
        x[a] += total


@njit(inline="always")
def add2(x, y, S, g):
    g0, g1 = g[0], g[1]
    for a in range(S):
        total = g0 * y[a] + g1 * y[S + a]
        x[a] += total


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def products(xs, ys, N, M, S, G, width):
    """Write G[i, j] = ⟨x_i, y_j⟩; beside an odd last column an unused one is computed."""
    for i in range(N):
        x, j = xs[i * S : (i + 1) * S], 0
        while j + 6 <= M:
            dots6(x, ys[j * S : (j + 6) * S], S, G[i * width + j : i * width + j + 6])
            j += 6
        while j < M:
            dots2(x, ys[j * S : (j + 2) * S], S, G[i * width + j : i * width + j + 2])
            j += 2


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def add_products(A, rows, n, block, m, G, width):
    """Add Σ_j G[i, j] block[j] to A[rows[i]], one row after the other, so that a repeated row moves twice."""
    S = A.shape[1]
    for i in range(n):
        x, j = A[rows[i]], 0
        while j + 6 <= m:
            add6(x, block[j * S : (j + 6) * S], S, G[i * width + j : i * width + j + 6])
            j += 6
        while j + 4 <= m:
            add4(x, block[j * S : (j + 4) * S], S, G[i * width + j : i * width + j + 4])
            j += 4
        while j < m:
            add2(x, block[j * S : (j + 2) * S], S, G[i * width + j : i * width + j + 2])
            j += 2
