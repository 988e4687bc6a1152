"""Non-negative least squares for many small problems at once, by coordinate descent.

    u = argmin  ½ u G uᵀ − ⟨b, u⟩   over u ≥ 0          for every row b of B

    G (k,k) shared by all rows    B (m,k) right-hand sides    U (m,k) the rows' start, and their result

Rows are independent given G. They are processed in tiles of 128, one row per lane, so that every operation is a whole
vector. Each row stops by its own rule, so the other rows of its tile do not change its result.
References: Cichocki & Phan 2009 (HALS); Gillis & Glineur 2012 (several sweeps while G stays); Lawson & Hanson 1974
(active sets).
"""

import numpy as np
from numba import njit

from twofold.kernels.cholesky import factor, solve

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}
TILE = 128
ROUNDING_TOLERANCE = 1e-12  # relative; larger values are not rounding in float64


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def load_rows(G, B, U, start, m, u, r):
    """Load rows start … start+m−1 as lanes: u takes them, r the negative gradient b − uG."""
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


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def sweep_coordinates(G, inverse, live, u, r, step, moved):
    """Set every coordinate once to its best value, in the lanes that are live; `moved` sums the gain of each lane."""
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
    """Improve U (m,k) in place; a row stops when a sweep gains less than tol times the gain of its first one.

    A component whose Gᵢᵢ is zero explains nothing: its coordinate does not change.
    """
    k, zero, one = G.shape[0], G.dtype.type(0), G.dtype.type(1)
    u, r = np.empty((k, TILE), G.dtype), np.empty((k, TILE), G.dtype)
    step, moved, first = np.empty(TILE, G.dtype), np.empty(TILE, G.dtype), np.empty(TILE, G.dtype)
    live, inverse = np.empty(TILE, G.dtype), np.empty(k, G.dtype)
    for c in range(k):
        inverse[c] = one / G[c, c] if G[c, c] > zero else zero
    for start in range(0, U.shape[0], TILE):
        m = min(TILE, U.shape[0] - start)
        load_rows(G, B, U, start, m, u, r)
        live[:] = one
        for s in range(sweeps):
            moved[:] = zero
            sweep_coordinates(G, inverse, live, u, r, step, moved)
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


@njit(cache=True, nogil=True, error_model="numpy")
def find_entering_coordinate(G, b, u):
    """Return the zero coordinate whose rise would gain most, or −1; slopes within rounding do not count."""
    k, best, new = u.size, 0.0, -1
    for c in range(k):
        best = max(best, ROUNDING_TOLERANCE * abs(b[c]))
    for c in range(k):
        if u[c] == 0 and G[c, c] > 0:
            t = float(b[c])
            for a in range(k):
                t -= G[c, a] * u[a]
            if t > best:
                best, new = t, c
    return new


@njit(cache=True, nogil=True, error_model="numpy")
def solve_active_set(G, b, u, at, p, A, s):
    """Move the first p coordinates in `at` towards their common minimum, up to a zero; returns how many stay."""
    for a in range(p):
        s[a] = b[at[a]]
        for c in range(a + 1):
            A[a, c] = G[at[a], at[c]]
    factor(A[:p, :p], ROUNDING_TOLERANCE * A[0, 0])
    solve(A[:p, :p], s[:p])
    far, blocked = 1.0, -1
    for a in range(p):
        if s[a] <= 0 and u[at[a]] < far * (u[at[a]] - s[a]):
            far, blocked = u[at[a]] / (u[at[a]] - s[a]), a
    stay = 0
    for a in range(p):
        c = at[a]
        u[c] = max(u[c] + far * (s[a] - u[c]), 0.0) if a != blocked else 0.0
        if u[c] > 0:
            at[stay] = c
            stay += 1
    return stay


@njit(cache=True, nogil=True, error_model="numpy")
def nnls_active_set(G, B, U, done):
    """Solve nearly converged rows exactly, in place, by active sets: G (k,k) in float64.

    The coordinates above zero go to their common minimum; one that would become negative stops at zero, and one at zero
    that would rise joins. done[i] is True if row i is solved. If parts are nearly equal it may not be; the row then
    does not change.
    """
    k = G.shape[0]
    A, s, u, at = np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k + 1, np.int64)
    for i in range(U.shape[0]):
        p, done[i] = 0, False
        for c in range(k):
            u[c] = U[i, c]
            if u[c] > 0 and G[c, c] > 0:
                at[p] = c
                p += 1
        for _ in range(3 * k):
            stay = solve_active_set(G, B[i], u, at, p, A, s) if p > 0 else 0
            if stay == p:
                new = find_entering_coordinate(G, B[i], u)
                if new < 0:
                    done[i] = True
                    break
                at[p] = new
                stay = p + 1
            p = stay
        if done[i]:
            for c in range(k):
                U[i, c] = u[c]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_cell_equations(start, stop, indices, x, w, V, e, t, f, s, A, b, scaled, plain):
    """Add Σ (w − e f_j) v_j v_jᵀ to A and Σ (w x − e f_j t s_j) v_j to b, over one row's known cells."""
    k = V.shape[1]
    for q in range(start, stop):
        j = indices[q]
        more, pull = w[q] - e * f[j], w[q] * x[q] - e * f[j] * t * s[j]
        for a in range(k):
            scaled[q - start, a] = more * V[j, a]
            plain[q - start, a] = V[j, a]
            b[a] += pull * V[j, a]
    A += np.dot(scaled[: stop - start].T, plain[: stop - start])


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
def descend_cell_row(A, b, min_curvature, u, r, sweeps, tol):
    """Improve u in place by coordinate descent, as in `nnls`; a curvature below `min_curvature` is rounding."""
    k, zero = u.size, u.dtype.type(0)
    for a in range(k):
        left = b[a]
        for c in range(k):
            left -= A[a, c] * u[c]
        r[a] = left
    first = zero
    for sweep in range(sweeps):
        moved = zero
        for a in range(k):
            if A[a, a] > min_curvature[a]:
                step = max(u[a] + r[a] / A[a, a], zero) - u[a]
                if step != zero:
                    u[a] += step
                    moved += step * step * A[a, a]
                    for c in range(k):
                        r[c] -= step * A[a, c]
        if sweep == 0:
            first = moved
        if moved <= tol * first:
            break


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def measure_cell_cost(start, stop, indices, x, w, V, u, e, t, f, s, G, g, total, cost):
    """Write ½ Σ w (x − ŷ)² over the known cells and ½ e Σ f (ŷ − t s)² over the others: all less the known."""
    k, misfit, doubt = u.size, 0.0, 0.0
    for q in range(start, stop):
        j, y = indices[q], 0.0
        for a in range(k):
            y += u[a] * V[j, a]
        misfit += w[q] * (x[q] - y) ** 2
        doubt -= f[j] * (y - t * s[j]) ** 2
    if e > 0:
        doubt += t * t * total
        for a in range(k):
            bent = 0.0
            for c in range(k):
                bent += G[a, c] * u[c]
            doubt += u[a] * (bent - 2 * t * g[a])
    cost[0], cost[1] = 0.5 * misfit, 0.5 * e * max(doubt, 0.0)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def nnls_cells(indptr, indices, x, w, V, sweeps, tol, kappa, e, t, f, s, G, g, total, U, cost):
    """Solve each row for its known cells and a target for the others: u_i ≥ 0, in place, minimizes

        ½ Σ_known w_ij (x_ij − ⟨u, v_j⟩)² + ½ κ e_i Σ_others f_j (⟨u, v_j⟩ − t_i s_j)²

    V (d,k) is the other side, G (k,k) = Σ f v vᵀ, g (k,) = Σ f s v, total = Σ f s² over all of it; cost (m,2) receives
    both sums, the second without κ. A row without known cells gets zeros. Without sweeps, U does not
    change.
    """
    k, zero, most = V.shape[1], V.dtype.type(0), max(1, np.max(indptr[1:] - indptr[:-1]))
    A, b, r, min_curvature = np.empty((k, k), V.dtype), np.empty(k, V.dtype), np.empty(k, V.dtype), np.empty(k, V.dtype)
    scaled, plain = np.empty((most, k), V.dtype), np.empty((most, k), V.dtype)
    rounding = V.dtype.type(16) * np.finfo(V.dtype).eps
    for i in range(U.shape[0]):
        start, stop, u, own = indptr[i], indptr[i + 1], U[i], kappa * e[i]
        if start == stop:
            u[:] = zero
        elif sweeps > 0:
            for a in range(k):
                b[a], min_curvature[a] = own * t[i] * g[a], rounding * own * G[a, a]
                for c in range(k):
                    A[a, c] = own * G[a, c]
            add_cell_equations(start, stop, indices, x, w, V, own, t[i], f, s, A, b, scaled, plain)
            descend_cell_row(A, b, min_curvature, u, r, sweeps, tol)
        measure_cell_cost(start, stop, indices, x, w, V, u, e[i], t[i], f, s, G, g, total, cost[i])
