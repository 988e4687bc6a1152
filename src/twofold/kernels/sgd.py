"""Gradient steps of factorizations: one cell after the other, or all of a row's at once.

    error e = x − m − s (b + c) − ⟨u, z⟩,   loss w (e² + λ ‖(u, b)‖² + λ ‖(z, c)‖²) a cell

U (n,p) and Z (d,p) hold the factors in their first k columns and, if p = k + 1, the bias in the last, in units s.
"""

import numpy as np
from numba import njit

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def sgd_cells(rows, cols, x, w, k, mean, unit, lam, rate, U, Z, GU, GZ):
    """A step for each cell in turn; U, Z and the sums of squared gradients GU (n,), GZ (d,) change in place.

    The rate of a row is rate/√G: one number a row, which falls as its gradients add up. Returns the loss met.
    """
    p, zero, total = U.shape[1], U.dtype.type(0), 0.0
    share = U.dtype.type(1) / U.dtype.type(p)
    for q in range(rows.size):
        u, z = U[rows[q]], Z[cols[q]]
        uu, uz, zz = zero, zero, zero
        for a in range(k):
            uu += u[a] * u[a]
            uz += u[a] * z[a]
            zz += z[a] * z[a]
        e, size = x[q] - mean - uz, uu + zz
        if p > k:
            e -= unit * (u[k] + z[k])
            size += u[k] * u[k] + z[k] * z[k]
        total += np.float64(w[q]) * (np.float64(e) * np.float64(e) + np.float64(lam) * np.float64(size))
        su, sz = rate / np.sqrt(GU[rows[q]]), rate / np.sqrt(GZ[cols[q]])
        pull, hold = w[q] * e, w[q] * lam
        both = pull * hold * (uz + uz)  # the gradients pull z − hold u and pull u − hold z, squared
        sum_u = max(pull * pull * zz - both + hold * hold * uu, zero)
        sum_z = max(pull * pull * uu - both + hold * hold * zz, zero)
        for a in range(k):
            gu, gz = pull * z[a] - hold * u[a], pull * u[a] - hold * z[a]
            u[a] += su * gu
            z[a] += sz * gz
        if p > k:
            gu, gz = pull * unit - hold * u[k], pull * unit - hold * z[k]
            sum_u += gu * gu
            sum_z += gz * gz
            u[k] += su * gu
            z[k] += sz * gz
        GU[rows[q]] += sum_u * share
        GZ[cols[q]] += sum_z * share
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def row_gradients(indptr, indices, x, w, Z, offset, lam, U, G, cost):
    """Each row's full gradient of Σ w (x − o − ⟨u, z⟩)² + λ n ‖u‖², divided by a bound on its curvature.

    Z (d,p) are features, as in a ridge half-step. cost[i] is the row's own loss.
    """
    p = Z.shape[1]
    for i in range(U.shape[0]):
        total, mass, bound = 0.0, U.dtype.type(0), U.dtype.type(0)
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
            mass += w[q]
            bound += w[q] * size
        bound = max(bound + lam * mass, U.dtype.type(1e-30))
        for a in range(p):
            total += np.float64(lam) * np.float64(mass) * np.float64(U[i, a]) * np.float64(U[i, a])
        for a in range(p):
            G[i, a] = (G[i, a] + lam * mass * U[i, a]) / bound
        cost[i] = total
