"""Non-negative least squares, many small ones at once, by coordinate descent.

    u = argmin  ½ u G uᵀ − ⟨b, u⟩   over u ≥ 0          for every row b of B

    G (k,k) what all rows share    B (m,k) right-hand sides    U (m,k) where each row stands, and what it becomes

Rows are independent given G. They are worked on in tiles of 128, one row a lane, so that every operation is a whole
vector; a row stops by its own rule, so its companions never show in its result.
References: Cichocki & Phan 2009 (HALS); Gillis & Glineur 2012 (several sweeps while G stays).
"""

import numpy as np
from numba import njit

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}
TILE = 128


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _loaded(G, B, U, start, m, u, r):
    """Rows start … start+m−1 as lanes: u holds them, r the negative gradient b − uG."""
    k, zero = G.shape[0], G.dtype.type(0)
    for c in range(k):
        for lane in range(TILE):
            u[c, lane] = zero
            r[c, lane] = zero
    for lane in range(m):
        for c in range(k):
            u[c, lane] = U[start + lane, c]
            r[c, lane] = B[start + lane, c]
    for c in range(k):
        for a in range(k):
            g = G[c, a]
            for lane in range(TILE):
                r[a, lane] -= g * u[c, lane]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _swept(G, inverse, live, u, r, step, moved):
    """Every coordinate once to its best value, in the lanes that are live; moved collects what each lane gained."""
    k, zero = G.shape[0], G.dtype.type(0)
    for c in range(k):
        for lane in range(TILE):
            new = max(u[c, lane] + r[c, lane] * inverse[c], zero)
            step[lane] = (new - u[c, lane]) * live[lane]
            u[c, lane] += step[lane]
            moved[lane] += step[lane] * step[lane] * G[c, c]
        for a in range(k):
            g = G[c, a]
            for lane in range(TILE):
                r[a, lane] -= g * step[lane]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def nnls(G, B, U, sweeps, tol):
    """U (m,k) improved in place; a row stops when a sweep gains less than tol times what its first one gained.

    A component whose Gᵢᵢ is zero explains nothing: its coordinate stays where it is.
    """
    k, zero, one = G.shape[0], G.dtype.type(0), G.dtype.type(1)
    u, r = np.empty((k, TILE), G.dtype), np.empty((k, TILE), G.dtype)
    step, moved, first = np.empty(TILE, G.dtype), np.empty(TILE, G.dtype), np.empty(TILE, G.dtype)
    live, inverse = np.empty(TILE, G.dtype), np.empty(k, G.dtype)
    for c in range(k):
        inverse[c] = one / G[c, c] if G[c, c] > zero else zero
    for start in range(0, U.shape[0], TILE):
        m = min(TILE, U.shape[0] - start)
        _loaded(G, B, U, start, m, u, r)
        live[:] = one
        for s in range(sweeps):
            moved[:] = zero
            _swept(G, inverse, live, u, r, step, moved)
            left = zero
            for lane in range(TILE):
                if s == 0:
                    first[lane] = moved[lane]
                live[lane] = one if moved[lane] > tol * first[lane] else zero
                left += live[lane]
            if left == zero:
                break
        for lane in range(m):
            for c in range(k):
                U[start + lane, c] = u[c, lane]


@njit(cache=True, nogil=True, fastmath=FAST)
def _cell_normal(start, stop, indices, x, w, V, A, b, rows):
    """A = Σ w v_j v_jᵀ and b = Σ w x v_j over one row's known cells; returns Σ w x²."""
    k, total = V.shape[1], 0.0
    for q in range(start, stop):
        j, s = indices[q], np.sqrt(w[q])
        for a in range(k):
            rows[q - start, a] = s * V[j, a]
    A[:] = np.dot(rows[: stop - start].T, rows[: stop - start])
    b[:] = 0
    for q in range(start, stop):
        j, t = indices[q], w[q] * x[q]
        total += np.float64(t) * np.float64(x[q])
        for a in range(k):
            b[a] += t * V[j, a]
    return total


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def nnls_cells(indptr, indices, x, w, V, sweeps, tol, U, cost):
    """Each row given its own known cells: u_i minimises ½ Σ_j w_ij (x_ij − ⟨u, v_j⟩)² over u ≥ 0, in place.

    V (d,k) is the other side; cost[i] becomes the minimum reached. A row without cells gets zeros.
    """
    k, zero = V.shape[1], V.dtype.type(0)
    A, b, r = np.empty((k, k), V.dtype), np.empty(k, V.dtype), np.empty(k, V.dtype)
    rows = np.empty((max(1, np.max(indptr[1:] - indptr[:-1])), k), V.dtype)
    for i in range(U.shape[0]):
        u = U[i]
        if indptr[i + 1] == indptr[i]:
            u[:] = zero
            cost[i] = 0.0
            continue
        total = _cell_normal(indptr[i], indptr[i + 1], indices, x, w, V, A, b, rows)
        for a in range(k):
            r[a] = b[a]
            for c in range(k):
                r[a] -= A[a, c] * u[c]
        first = zero
        for s in range(sweeps):
            moved = zero
            for a in range(k):
                if A[a, a] > zero:
                    step = max(u[a] + r[a] / A[a, a], zero) - u[a]
                    if step != zero:
                        u[a] += step
                        moved += step * step * A[a, a]
                        for c in range(k):
                            r[c] -= step * A[a, c]
            if s == 0:
                first = moved
            if moved <= tol * first:
                break
        for a in range(k):
            total -= np.float64(u[a]) * (np.float64(b[a]) + np.float64(r[a]))
        cost[i] = 0.5 * max(total, 0.0)
