"""Codes under the generalized Kullback–Leibler divergence, row by row over the stored cells.

    minimize  Σ_j (ŷ_j − x_j log ŷ_j) + ½ λ ‖u‖²   over u ≥ 0        ŷ_j = ⟨u, v_j⟩

Only cells with x > 0 are computed one by one: the linear terms of all cells together are ⟨u, s⟩ with s = Σ_j v_j.

One coordinate at a time by Newton's method. The function is self-concordant with the constant 1/√(smallest x). So the
full step never increases it if the step is upwards or short, and a damped step never does otherwise. If the smallest x
is small, the cells give a better bound: along a step by which no cell loses more than the share a of its ŷ, the
curvature grows by 1/(1 − a) at most. So the full step is safe up to a = ½, and one divided by 1 + a beyond. A step down
also goes at least as far as the multiplicative rule, which never overshoots (without λ).
References: Hsieh & Dhillon 2011; Hien & Gillis 2021 (damping).
"""

import numpy as np
from numba import njit

from twofold.kernels.min_max import larger, smaller

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}
TINY = 1e-30
MAX_FULL_DECREMENT = 0.683802  # Newton decrement up to which the full step of a self-concordant function decreases it
MAX_LOST_SHARE = 0.5  # share of ŷ that a cell may lose by a full step


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def _predict_cells(u, Z, m, y):
    """Write ŷ = Zᵀu over the m gathered cells, always above zero."""
    for q in range(m):
        y[q] = TINY
    for c in range(u.size):
        t = u[c]
        if t != 0:
            for q in range(m):
                y[q] += t * Z[c, q]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def _sum_ratios(x, y, z, m):
    """Return Σ x z/ŷ and Σ x z²/ŷ² over the gathered cells."""
    first, second = x.dtype.type(0), x.dtype.type(0)
    for q in range(m):
        t = z[q] / y[q]
        p = x[q] * t
        first += p
        second += p * t
    return first, second


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def _max_ratio(y, z, m):
    """Return the largest z/ŷ of a cell."""
    most = y.dtype.type(0)
    for q in range(m):
        most = larger(most, z[q] / y[q])
    return most


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def _newton_step(old, s, ridge, pull, curve, steep, y, z, m):
    """Return the Newton update of one coordinate at `old`, with the gradient s + λ old − pull; `steep` is the constant
    of the function."""
    gradient = s + ridge * old - pull
    curve += ridge
    if curve <= 0:
        return old * 0 if gradient > 0 else old
    step = gradient / curve
    if gradient <= 0:
        return old - step
    decrement = steep * step * np.sqrt(curve)
    if decrement > MAX_FULL_DECREMENT:
        lost = decrement if steep <= 1 else step * _max_ratio(y, z, m)
        if lost > MAX_LOST_SHARE:
            step /= 1 + lost
    far = old * pull / s if ridge == 0 else old
    return max(min(old - step, far), old * 0)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def _descend_row(u, s, ridge, x, Z, m, y, passes, tol):
    """Improve u in place by a few passes over its coordinates, and update y. Stops when u no longer changes."""
    least = x[0]
    for q in range(m):
        least = smaller(least, x[q])
    steep, floor = x.dtype.type(1) / np.sqrt(least), x.dtype.type(TINY)
    for _ in range(passes):
        moved, size = x.dtype.type(0), x.dtype.type(0)
        for c in range(u.size):
            pull, curve = _sum_ratios(x, y, Z[c], m)
            old = u[c]
            new = _newton_step(old, s[c], ridge, pull, curve, steep, y, Z[c], m)
            step = x.dtype.type(new - old)
            if step != 0:
                u[c] = new
                for q in range(m):
                    y[q] = max(y[q] + step * Z[c, q], floor)
            moved += abs(step) * s[c]
            size += u[c] * s[c]
        if moved <= tol * size:
            break
        _predict_cells(u, Z, m, y)  # exact again, so that rounding does not add up


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def _solve_row(start, stop, indices, x, V, s, ridge, passes, tol, u, Z, xs, y, ratio):
    """Improve the code of one row over its cells with x > 0 and write x/ŷ; returns Σ x log ŷ."""
    k, m = u.size, 0
    for q in range(start, stop):
        ratio[q] = 0
        if x[q] > 0:
            xs[m] = x[q]
            for c in range(k):
                Z[c, m] = V[indices[q], c]
            m += 1
    if m == 0:
        u[:] = 0
        return 0.0
    _predict_cells(u, Z, m, y)
    if passes > 0:
        _descend_row(u, s, ridge, xs, Z, m, y, passes, tol)
    total, m = 0.0, 0
    for q in range(start, stop):
        if x[q] > 0:
            ratio[q] = x[q] / y[m]
            total += np.float64(x[q]) * np.log(np.float64(y[m]))
            m += 1
    return total


@njit(cache=True, nogil=True)
def newton_counts(indptr, indices, x, V, s, ridge, passes, tol, U, ratio, cost):
    """Improve rows of counts: unstored cells are zeros, and s (k,) = Σ_j v_j (+ λ) is the same for all rows.

    U (m,k) is improved in place, ratio becomes x/ŷ, cost[i] = ⟨u_i, s⟩ + ½ λ ‖u_i‖² − Σ x log ŷ, with λ = ridge.
    Without passes, U does not change.
    """
    k, most = V.shape[1], max(1, np.max(indptr[1:] - indptr[:-1]))
    Z, xs, y = np.empty((k, most), V.dtype), np.empty(most, V.dtype), np.empty(most, V.dtype)
    for i in range(U.shape[0]):
        total = _solve_row(indptr[i], indptr[i + 1], indices, x, V, s, ridge, passes, tol, U[i], Z, xs, y, ratio)
        cost[i] = -total
        for c in range(k):
            cost[i] += np.float64(U[i, c]) * (np.float64(s[c]) + 0.5 * np.float64(ridge) * np.float64(U[i, c]))


@njit(cache=True, nogil=True)
def newton_cells(indptr, indices, x, w, V, passes, tol, U, ratio, cost):
    """Improve rows of known cells with weights: x is w·x, zeros are stored, each row has its own s_i = Σ_j w_ij v_j."""
    k, most = V.shape[1], max(1, np.max(indptr[1:] - indptr[:-1]))
    Z, xs, y = np.empty((k, most), V.dtype), np.empty(most, V.dtype), np.empty(most, V.dtype)
    s = np.empty(k, V.dtype)
    for i in range(U.shape[0]):
        s[:] = 0
        for q in range(indptr[i], indptr[i + 1]):
            for c in range(k):
                s[c] += w[q] * V[indices[q], c]
        total = _solve_row(
            indptr[i], indptr[i + 1], indices, x, V, s, V.dtype.type(0), passes, tol, U[i], Z, xs, y, ratio
        )
        cost[i] = -total
        for c in range(k):
            cost[i] += np.float64(U[i, c]) * np.float64(s[c])
