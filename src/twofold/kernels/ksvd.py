"""K-SVD's atoms, one after the other: each with its coefficients, while the others stay fixed.

    R = X − U D (n,d)    signals i that use atom j:  E_i = R_i + u_ij d_j
    d_j ← Σ u_ij E_i, scaled to length 1;   u_ij ← ⟨E_i, d_j⟩

One power step towards the leading singular vector of E replaces the vector itself. Codes are sorted by atom: those
of atom j are places start[j]..start[j+1] of `rows` and `values`. Reference: Rubinstein, Zibulevsky & Elad 2008.
"""

import numpy as np
from numba import njit

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def update_atoms(R, D, start, rows, values):
    """Update atoms D (k,d), coefficients and residuals in place. An atom with a zero direction does not change."""
    k, d = D.shape
    g = np.empty(d, D.dtype)
    for j in range(k):
        first, last = start[j], start[j + 1]
        if first == last:
            continue
        atom = D[j]
        square = g[0] * 0
        g[:] = 0
        for t in range(first, last):
            v, r = values[t], R[rows[t]]
            square += v * v
            for a in range(d):
                g[a] += v * r[a]
        length = square * 0
        for a in range(d):
            g[a] += square * atom[a]
        for a in range(d):
            length += g[a] * g[a]
        if length <= 0:
            continue
        scale = 1 / np.sqrt(length)
        turned = length * 0
        for a in range(d):
            g[a] *= scale
        for a in range(d):
            turned += g[a] * atom[a]
        for t in range(first, last):
            v, r = values[t], R[rows[t]]
            new = v * turned
            for a in range(d):
                new += r[a] * g[a]
            for a in range(d):
                r[a] += v * atom[a] - new * g[a]
            values[t] = new
        for a in range(d):
            atom[a] = g[a]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def update_atoms_seen(R, seen, D, start, rows, values):
    """Update the same if only some numbers of a signal are observed: seen (n,d), and R is 0 elsewhere."""
    k, d = D.shape
    g, weight, new = np.empty(d, D.dtype), np.empty(d, D.dtype), np.empty(d, D.dtype)
    for j in range(k):
        first, last = start[j], start[j + 1]
        if first == last:
            continue
        atom = D[j]
        g[:] = 0
        weight[:] = 0
        for t in range(first, last):
            v, i = values[t], rows[t]
            for a in range(d):
                if seen[i, a]:
                    g[a] += v * R[i, a]
                    weight[a] += v * v
        length = g[0] * 0
        for a in range(d):  # numbers that no signal shows do not change
            new[a] = atom[a] + (g[a] / weight[a] if weight[a] > 0 else g[a] * 0)
        for a in range(d):
            length += new[a] * new[a]
        if length <= 0:
            continue
        scale = 1 / np.sqrt(length)
        for a in range(d):
            new[a] *= scale
        for t in range(first, last):
            v, i = values[t], rows[t]
            above, below = length * 0, length * 0
            for a in range(d):
                if seen[i, a]:
                    above += (R[i, a] + v * atom[a]) * new[a]
                    below += new[a] * new[a]
            u = above / below if below > 0 else v
            for a in range(d):
                if seen[i, a]:
                    R[i, a] += v * atom[a] - u * new[a]
            values[t] = u
        for a in range(d):
            atom[a] = new[a]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def descend_atoms(D, UU, UX, min_square):
    """Update atoms D (k,d) in place, each in turn to the best for ΣUᵀU (k,k) and ΣUᵀX (k,d) given the others:

    d_j ← d_j + (UX_j − UU_j D) / UU_jj

    An atom whose UU_jj is below `min_square`, or that would vanish, does not change.
    """
    k, d = D.shape
    g = np.empty(d, D.dtype)
    for j in range(k):
        if UU[j, j] <= min_square:
            continue
        for b in range(d):
            g[b] = UX[j, b]
        for i in range(k):
            a, atom = UU[j, i], D[i]
            if i != j:
                for b in range(d):
                    g[b] -= a * atom[b]
        length = g[0] * 0
        for b in range(d):
            g[b] /= UU[j, j]
        for b in range(d):
            length += g[b] * g[b]
        if length > 0:
            D[j] = g
