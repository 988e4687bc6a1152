"""Non-negative least squares, many small ones at once, by coordinate descent.

    u = argmin  ½ u G uᵀ − ⟨b, u⟩   over u ≥ 0          for every row b of B

    G (k,k) what all rows share    B (m,k) right-hand sides    U (m,k) where each row stands, and what it becomes

Rows are independent given G. They are worked on in tiles of 128, one row a lane, so that every operation is a whole
vector; a row stops by its own rule, so its companions never show in its result.
References: Cichocki & Phan 2009 (HALS); Gillis & Glineur 2012 (several sweeps while G stays); Lawson & Hanson 1974
(active sets).
"""

import numpy as np
from numba import njit

from twofold.kernels.cholesky import factor, solve

FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}
TILE = 128
SURE = 1e-12  # relative to what it is compared with: what is no rounding in float64


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
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


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", forceinline=True)
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


@njit(cache=True, nogil=True, error_model="numpy")
def _freest(G, b, u):
    """The zero coordinate that would gain most by rising, or −1: all but rounding of what b can pull counts."""
    k, best, new = u.size, 0.0, -1
    for c in range(k):
        best = max(best, SURE * abs(b[c]))
    for c in range(k):
        if u[c] == 0 and G[c, c] > 0:
            t = float(b[c])
            for a in range(k):
                t -= G[c, a] * u[a]
            if t > best:
                best, new = t, c
    return new


@njit(cache=True, nogil=True, error_model="numpy")
def _solved(G, b, u, at, p, A, s):
    """The first p coordinates in `at` go to their common minimum, or as far as none becomes negative; how many stay."""
    for a in range(p):
        s[a] = b[at[a]]
        for c in range(a + 1):
            A[a, c] = G[at[a], at[c]]
    factor(A[:p, :p], SURE * A[0, 0])
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
def nnls_end(G, B, U, done):
    """Rows that are nearly there to the very end, in place, by active sets: G (k,k) in float64.

    The coordinates above zero go to their common minimum; one that would become negative stops at zero, and one at zero
    that would rise joins. done[i] says whether row i arrived: where parts are nearly alike it may not, and stays as it
    was.
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
            stay = _solved(G, B[i], u, at, p, A, s) if p > 0 else 0
            if stay == p:
                new = _freest(G, B[i], u)
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
def _cell_normal(start, stop, indices, x, w, V, e, t, f, s, A, b, scaled, plain):
    """A += Σ (w − e f_j) v_j v_jᵀ and b += Σ (w x − e f_j t s_j) v_j over one row's known cells."""
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
def _cell_descent(A, b, least, u, r, sweeps, tol):
    """u improved in place by coordinate descent, as in `nnls`; a curvature below `least` is rounding."""
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
            if A[a, a] > least[a]:
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
def _cell_cost(start, stop, indices, x, w, V, u, e, t, f, s, G, g, total, cost):
    """½ Σ w (x − ŷ)² over the known cells, ½ e Σ f (ŷ − t s)² over the others: those over all less those known."""
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
    """Each row given its own known cells, and what it should be elsewhere: u_i in place, over u ≥ 0, minimises

        ½ Σ_known w_ij (x_ij − ⟨u, v_j⟩)² + ½ κ e_i Σ_others f_j (⟨u, v_j⟩ − t_i s_j)²

    V (d,k) is the other side, G (k,k) = Σ f v vᵀ, g (k,) = Σ f s v, total = Σ f s² over all of it; cost (m,2) becomes
    both sums, the second without κ. A row without known cells gets zeros. With no sweeps, U stays.
    """
    k, zero, most = V.shape[1], V.dtype.type(0), max(1, np.max(indptr[1:] - indptr[:-1]))
    A, b, r, least = np.empty((k, k), V.dtype), np.empty(k, V.dtype), np.empty(k, V.dtype), np.empty(k, V.dtype)
    scaled, plain = np.empty((most, k), V.dtype), np.empty((most, k), V.dtype)
    rounding = V.dtype.type(16) * np.finfo(V.dtype).eps
    for i in range(U.shape[0]):
        start, stop, u, own = indptr[i], indptr[i + 1], U[i], kappa * e[i]
        if start == stop:
            u[:] = zero
        elif sweeps > 0:
            for a in range(k):
                b[a], least[a] = own * t[i] * g[a], rounding * own * G[a, a]
                for c in range(k):
                    A[a, c] = own * G[a, c]
            _cell_normal(start, stop, indices, x, w, V, own, t[i], f, s, A, b, scaled, plain)
            _cell_descent(A, b, least, u, r, sweeps, tol)
        _cell_cost(start, stop, indices, x, w, V, u, e[i], t[i], f, s, G, g, total, cost[i])
