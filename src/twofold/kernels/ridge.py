"""Ridge regressions, one per row, over the row's known cells.

    u_i = argmin  Σ_{j in Ω_i} w_ij (x_ij − o_j − ⟨u, z_j⟩)²  +  uᵀ B u  +  Σ_a λ_ia u_a²

    Z (d,k) the other side's factor    o (d,) an offset for each column    B (k,k) a quadratic shared by all rows
    λ (m,2) a row's ridge, and that of its last feature, which may be a bias

With B = 0 this is a half-step of completion; with B = ZᵀZ, of implicit completion, where every cell has a small weight.
`cost[i]` is the minimum, which needs no further pass: at the solution it is Σ w (x − o)² − ⟨u, right-hand side⟩.
"""

import numpy as np
from numba import njit

from twofold.kernels.cholesky import factor, solve

TINY = 1e-30
MIN_RELATIVE_SQUARE = np.float32(1e-13)  # of squared residuals; less is rounding in single precision
FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FAST)
def _gather_cells(start, stop, indices, x, w, Z, offset, V, t):
    """Copy the row's cells side by side: √w z_j to V, √w (x − o_j) to t; returns Σ w (x − o)²."""
    total = 0.0
    k = Z.shape[1]
    for q in range(start, stop):
        j = indices[q]
        s = np.sqrt(w[q])
        gap = s * (x[q] - offset[j])
        t[q - start] = gap
        total += np.float64(gap) * np.float64(gap)
        for a in range(k):
            V[q - start, a] = s * Z[j, a]
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def _normal(V, t, base, lam, A, b):
    """Write A = VᵀV + B + Λ, by BLAS, and b = Vᵀt."""
    k = b.size
    np.dot(V.T, V, A)
    for a in range(k):
        for c in range(k):
            A[a, c] += base[a, c]
        A[a, a] += lam[0] if a < k - 1 else lam[1]
        b[a] = 0
    for q in range(t.size):
        for a in range(k):
            b[a] += t[q] * V[q, a]


@njit(cache=True, nogil=True, fastmath=FAST)
def ridge_cholesky(indptr, indices, x, w, Z, offset, base, lam, U, cost):
    """Solve each row exactly; U (m,k) is overwritten."""
    k = Z.shape[1]
    most = max(1, np.max(indptr[1:] - indptr[:-1]))
    V, t = np.empty((most, k), Z.dtype), np.empty(most, Z.dtype)
    A, b = np.empty((k, k), Z.dtype), np.empty(k, Z.dtype)
    for i in range(U.shape[0]):
        m = indptr[i + 1] - indptr[i]
        total = _gather_cells(indptr[i], indptr[i + 1], indices, x, w, Z, offset, V, t)
        if m == 0:
            U[i] = 0
            cost[i] = 0
            continue
        _normal(V[:m], t[:m], base, lam[i], A, b)
        for a in range(k):
            U[i, a] = b[a]
        factor(A, A.dtype.type(TINY))
        solve(A, U[i])
        for a in range(k):
            total -= np.float64(b[a]) * np.float64(U[i, a])
        cost[i] = total


@njit(cache=True, nogil=True, fastmath=FAST)
def _apply_normal(V, m, base, shared, lam, p, out):
    """Write (VᵀV + B + Λ) p."""
    k = p.size
    for a in range(k):
        out[a] = lam[0] * p[a]
    out[k - 1] = lam[1] * p[k - 1]
    if shared:
        for a in range(k):
            s = p[a]
            for c in range(k):
                out[c] += base[a, c] * s
    for q in range(m):
        s = p.dtype.type(0)
        for a in range(k):
            s += V[q, a] * p[a]
        for a in range(k):
            out[a] += s * V[q, a]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def ridge_cg(indptr, indices, x, w, Z, offset, base, shared, lam, steps, U, cost):
    """Improve each row of U (m,k) by a few conjugate gradient steps, in place."""
    k = Z.shape[1]
    most = max(1, np.max(indptr[1:] - indptr[:-1]))
    V, t = np.empty((most, k), Z.dtype), np.empty(most, Z.dtype)
    b, r, p, Ap = np.empty(k, Z.dtype), np.empty(k, Z.dtype), np.empty(k, Z.dtype), np.empty(k, Z.dtype)
    for i in range(U.shape[0]):
        m = indptr[i + 1] - indptr[i]
        total = _gather_cells(indptr[i], indptr[i + 1], indices, x, w, Z, offset, V, t)
        if m == 0:
            U[i] = 0
            cost[i] = 0
            continue
        u = U[i]
        _residual(V, m, t, base, shared, lam[i], u, b, r, Ap)
        rr, bb = Z.dtype.type(0), Z.dtype.type(0)
        for a in range(k):
            p[a] = r[a]
        for a in range(k):
            rr += r[a] * r[a]
            bb += b[a] * b[a]
        for _ in range(steps):
            if rr <= bb * MIN_RELATIVE_SQUARE:
                break
            _apply_normal(V, m, base, shared, lam[i], p, Ap)
            curve = Z.dtype.type(0)
            for a in range(k):
                curve += p[a] * Ap[a]
            step = rr / curve
            new = Z.dtype.type(0)
            for a in range(k):
                u[a] += step * p[a]
                r[a] -= step * Ap[a]
            for a in range(k):
                new += r[a] * r[a]
            turn = new / rr
            for a in range(k):
                p[a] = r[a] + turn * p[a]
            rr = new
        for a in range(k):
            total -= np.float64(u[a]) * (np.float64(b[a]) + np.float64(r[a]))
        cost[i] = total


@njit(cache=True, nogil=True, fastmath=FAST)
def ridge_blocks(indptr, indices, x, w, Z, offset, base, shared, lam, size, U, cost):
    """Improve each row of U by exact solves for `size` features at a time, the others fixed."""
    k, most = Z.shape[1], max(1, np.max(indptr[1:] - indptr[:-1]))
    V, t, rows = np.empty((most, k), Z.dtype), np.empty(most, Z.dtype), np.empty((4, k), Z.dtype)
    b, r, p, Ap = rows[0], rows[1], rows[2], rows[3]
    for i in range(U.shape[0]):
        u, m = U[i], indptr[i + 1] - indptr[i]
        if m == 0:
            u[:] = 0
            cost[i] = 0
            continue
        total = _gather_cells(indptr[i], indptr[i + 1], indices, x, w, Z, offset, V, t)
        _residual(V, m, t, base, shared, lam[i], u, b, r, Ap)
        for first in range(0, k, size):
            last = min(first + size, k)
            near = V[:m, first:last].copy()
            A = np.dot(near.T, near)
            for a in range(first, last):
                for c in range(first, last):
                    A[a - first, c - first] += base[a, c]
                A[a - first, a - first] += lam[i, 0] if a < k - 1 else lam[i, 1]
            p[:] = 0
            for a in range(first, last):
                p[a] = r[a]
            factor(A, A.dtype.type(TINY))
            solve(A, p[first:last])
            _apply_normal(V, m, base, shared, lam[i], p, Ap)
            for a in range(k):
                u[a] += p[a]
                r[a] -= Ap[a]
        for a in range(k):
            total -= np.float64(u[a]) * (np.float64(b[a]) + np.float64(r[a]))
        cost[i] = total


@njit(cache=True, nogil=True, fastmath=FAST)
def _residual(V, m, t, base, shared, lam, u, b, r, Ap):
    """Write b = Vᵀt and r = b − (VᵀV + B + Λ) u, in one pass over the cells."""
    k = u.size
    for a in range(k):
        b[a] = 0
        r[a] = -lam[0] * u[a]
    r[k - 1] = -lam[1] * u[k - 1]
    if shared:
        for a in range(k):
            s = u[a]
            for c in range(k):
                r[c] -= base[a, c] * s
    for q in range(m):
        s = u.dtype.type(0)
        for a in range(k):
            s += V[q, a] * u[a]
        gap = t[q] - s
        for a in range(k):
            b[a] += t[q] * V[q, a]
            r[a] += gap * V[q, a]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def ridge_bounded(indptr, indices, x, w, Z, offset, base, lam, floor, sweeps, U, cost):
    """Improve each row of U by coordinate descent, with u ≥ floor in every entry."""
    k = Z.shape[1]
    most = max(1, np.max(indptr[1:] - indptr[:-1]))
    V, t = np.empty((most, k), Z.dtype), np.empty(most, Z.dtype)
    A, b, r = np.empty((k, k), Z.dtype), np.empty(k, Z.dtype), np.empty(k, Z.dtype)
    for i in range(U.shape[0]):
        m = indptr[i + 1] - indptr[i]
        total = _gather_cells(indptr[i], indptr[i + 1], indices, x, w, Z, offset, V, t)
        if m == 0:
            U[i] = 0
            cost[i] = 0
            continue
        u = U[i]
        _normal(V[:m], t[:m], base, lam[i], A, b)
        for a in range(k):
            s = b[a]
            for c in range(k):
                s -= A[a, c] * u[c]
            r[a] = s
        for _ in range(sweeps):
            moved, largest = Z.dtype.type(0), Z.dtype.type(0)
            for a in range(k):
                new = max(u[a] + r[a] / A[a, a], floor[a])
                step = new - u[a]
                largest = max(largest, abs(new))
                if step != 0:
                    u[a] = new
                    moved = max(moved, abs(step))
                    for c in range(k):
                        r[c] -= step * A[a, c]
            if moved <= 1e-7 * largest:
                break
        for a in range(k):
            total -= np.float64(u[a]) * (np.float64(b[a]) + np.float64(r[a]))
        cost[i] = total
