"""Gradient steps of factorizations: one cell after the other, or all cells of a row at once.

    error e = x − m − s (b + c) − ⟨u, z⟩,   loss w (e² + λ_i ‖u‖² + λ'_i b² + λ_j ‖z‖² + λ'_j c²) a cell

U (n,p) and Z (d,p) hold the factors in their first k columns and, if p = k + 1, the bias in the last, in units s.
λ (n,2) and (d,2) are the ridges of each row and column, and those of their biases.
"""

import numpy as np
from numba import njit

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def sgd_cells(rows, cols, x, w, k, mean, unit, LU, LZ, rate, growth, U, Z, GU, GZ):
    """Take a step for each cell in turn; U, Z and the sums of squared gradients GU (n,), GZ (d,) change in place.

    The rate of a row is rate/√G: one number per row, which falls as its gradients add up, times `growth`; with growth 0
    it stays. Returns the sum of the losses before each step.
    """
    p, zero, total = U.shape[1], U.dtype.type(0), 0.0
    share = growth / U.dtype.type(p)
    for q in range(rows.size):
        u, z, lu, lz = U[rows[q]], Z[cols[q]], LU[rows[q]], LZ[cols[q]]
        uu, uz, zz = zero, zero, zero
        for a in range(k):
            uu += u[a] * u[a]
            uz += u[a] * z[a]
            zz += z[a] * z[a]
        e, size = x[q] - mean - uz, lu[0] * uu + lz[0] * zz
        if p > k:
            e -= unit * (u[k] + z[k])
            size += lu[1] * u[k] * u[k] + lz[1] * z[k] * z[k]
        total += np.float64(w[q]) * (np.float64(e) * np.float64(e) + np.float64(size))
        su, sz = rate / np.sqrt(GU[rows[q]]), rate / np.sqrt(GZ[cols[q]])
        pull, hu, hz = w[q] * e, w[q] * lu[0], w[q] * lz[0]
        both = pull * (uz + uz)  # the gradients pull z − hu u and pull u − hz z, squared
        sum_u = max(pull * pull * zz - both * hu + hu * hu * uu, zero)
        sum_z = max(pull * pull * uu - both * hz + hz * hz * zz, zero)
        for a in range(k):
            gu, gz = pull * z[a] - hu * u[a], pull * u[a] - hz * z[a]
            u[a] += su * gu
            z[a] += sz * gz
        if p > k:
            gu, gz = pull * unit - w[q] * lu[1] * u[k], pull * unit - w[q] * lz[1] * z[k]
            sum_u += gu * gu
            sum_z += gz * gz
            u[k] += su * gu
            z[k] += sz * gz
        GU[rows[q]] += sum_u * share
        GZ[cols[q]] += sum_z * share
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def row_gradients(indptr, indices, x, w, Z, offset, lam, U, G, cost):
    """Write each row's full gradient of Σ w (x − o − ⟨u, z⟩)² + Σ_a λ_a u_a², divided by a bound on its curvature.

    Z (d,p) are features, as in a ridge half-step; λ (m,2) the row's ridge and that of its last feature. cost[i] is the
    row's own loss.
    """
    p = Z.shape[1]
    for i in range(U.shape[0]):
        total, bound = 0.0, U.dtype.type(0)
        G[i] = 0
        for q in range(indptr[i], indptr[i + 1]):
            z = Z[indices[q]]
            e = x[q] - offset[indices[q]]
            size = U.dtype.type(0)
            for a in range(p):
                e -= U[i, a] * z[a]
                size += z[a] * z[a]
            for a in range(p):
                G[i, a] -= w[q] * e * z[a]
            total += np.float64(w[q]) * np.float64(e) * np.float64(e)
            bound += w[q] * size
        bound = max(bound + max(lam[i, 0], lam[i, 1]), U.dtype.type(1e-30))
        for a in range(p):
            hold = lam[i, 0] if a < p - 1 else lam[i, 1]
            total += np.float64(hold) * np.float64(U[i, a]) * np.float64(U[i, a])
        for a in range(p):
            hold = lam[i, 0] if a < p - 1 else lam[i, 1]
            G[i, a] = (G[i, a] + hold * U[i, a]) / bound
        cost[i] = total
