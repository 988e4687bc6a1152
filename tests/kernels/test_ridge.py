"""Ridge half-steps against plain NumPy, row by row."""

import numpy as np
import pytest
from scipy import sparse

from twofold.kernels.ridge import ridge_blocks, ridge_bounded, ridge_cg, ridge_cholesky

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
bases = pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
N, D, K = 19, 13, 4


def problem(dtype, shared, seed=0, share=0.5):
    """Cells with an empty row and an empty column, weights, features, offsets, ridges, a quadratic for all."""
    rng = np.random.default_rng(seed)
    known = rng.random((N, D)) < share
    known[4], known[:, 2] = False, False
    X = sparse.csr_array(known * rng.normal(size=(N, D)).astype(dtype))
    w = rng.random(X.nnz).astype(dtype) * 2
    Z, offset = rng.normal(size=(D, K)).astype(dtype), rng.normal(size=D).astype(dtype)
    base = (Z.T @ Z if shared else np.zeros((K, K))).astype(dtype)
    return (X.indptr, X.indices, X.data, w, Z, offset, base), (rng.random((N, 2)) + 0.1).astype(dtype)


def normal_equations(cells, lam):
    """For every row the matrix, the right-hand side, and the cost of u as a function."""
    indptr, indices, x, w, Z, offset, base = (np.asarray(a, float if a.dtype.kind == "f" else a.dtype) for a in cells)
    for i in range(N):
        at = slice(indptr[i], indptr[i + 1])
        V, t, v = Z[indices[at]], x[at] - offset[indices[at]], w[at]
        held = np.repeat(lam[i].astype(float), [K - 1, 1])  # the last feature has a ridge of its own
        A, b = (V.T * v) @ V + base + np.diag(held), V.T @ (v * t)
        yield A, b, lambda u, V=V, t=t, v=v, held=held: v @ (t - V @ u) ** 2 + u @ base @ u + held @ u**2


def outputs(dtype, seed=1):
    return np.random.default_rng(seed).normal(size=(N, K)).astype(dtype), np.full(N, np.nan)


def close(dtype, at_best=1e-9):
    return dict.fromkeys(("rtol", "atol"), 2e-4 if dtype == np.float32 else at_best)


def conjugate_gradients(A, b, u, steps):
    r = b - A @ u
    p = r.copy()
    for _ in range(steps):
        step = r @ r / (p @ A @ p)
        u, new = u + step * p, r - step * A @ p
        r, p = new, new + new @ new / (r @ r) * p
    return u


def solve_blocks(A, b, u):
    u = u.copy()
    for block in (slice(0, 3), slice(3, K)):
        u[block] += np.linalg.solve(A[block, block], (b - A @ u)[block])
    return u


SOLVERS = {  # the kernel, and its twin for one row
    "cholesky": (
        lambda cells, shared, lam, *out: ridge_cholesky(*cells, lam, *out),
        lambda A, b, u: np.linalg.solve(A, b),
    ),
    "one step": (
        lambda cells, shared, lam, *out: ridge_cg(*cells, shared, lam, 1, *out),
        lambda A, b, u: conjugate_gradients(A, b, u, 1),
    ),
    "three steps": (
        lambda cells, shared, lam, *out: ridge_cg(*cells, shared, lam, 3, *out),
        lambda A, b, u: conjugate_gradients(A, b, u, 3),
    ),
    "blocks": (lambda cells, shared, lam, *out: ridge_blocks(*cells, shared, lam, 3, *out), solve_blocks),
}


@dtypes
@bases
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_is_its_twin(dtype, shared, solver):
    run, twin = SOLVERS[solver]
    cells, lam = problem(dtype, shared)
    U, cost = outputs(dtype)
    start = U.astype(float)
    run(cells, shared, lam, U, cost)
    assert U.dtype == dtype
    for i, (A, b, price) in enumerate(normal_equations(cells, lam)):
        np.testing.assert_allclose(U[i], np.zeros(K) if i == 4 else twin(A, b, start[i]), **close(dtype))
        np.testing.assert_allclose(cost[i], price(U[i].astype(float)), **close(dtype))
    assert not U[4].any() and cost[4] == 0


@dtypes
@bases
def test_cg_never_costs_more_and_ends_at_cholesky(dtype, shared):
    cells, lam = problem(dtype, shared)
    U, cost = outputs(dtype)
    before = [price(u) for u, (_, _, price) in zip(U.astype(float), normal_equations(cells, lam), strict=True)]
    ridge_cg(*cells, shared, lam, 1, U, cost)
    assert np.all(cost <= np.array(before) * (1 + 1e-5))
    ridge_cg(*cells, shared, lam, 50, U, cost)
    exact, least = outputs(dtype)
    ridge_cholesky(*cells, lam, exact, least)
    np.testing.assert_allclose(U, exact, **close(dtype))
    np.testing.assert_allclose(cost, least, **close(dtype))


def descend(A, b, u, floor, sweeps):
    """Coordinate descent, one entry after the other."""
    u = u.copy()
    for _ in range(sweeps):
        for a in range(K):
            u[a] = max(u[a] + (b[a] - A[a] @ u) / A[a, a], floor[a])
    return u


@dtypes
@bases
def test_bounded_rows_are_the_best_above_their_floor(dtype, shared):
    cells, lam = problem(dtype, shared)
    floor = np.array([0.0, 0.0, -0.3, -1e30], dtype)
    U, cost = outputs(dtype)
    U = np.maximum(U, floor)
    ridge_bounded(*cells, lam, floor, 500, U, cost)
    for i, (A, b, price) in enumerate(normal_equations(cells, lam)):
        u, slope = U[i].astype(float), A @ U[i] - b
        if i == 4:
            assert not U[i].any() and cost[i] == 0
            continue
        # The kernel stops when no entry moves by 1e-7.
        np.testing.assert_allclose(u, descend(A, b, u, floor.astype(float), 500), **close(dtype, 1e-6))
        bound = u <= floor
        assert np.all(u >= floor) and np.all(slope[bound] > -1e-3)  # pressing against the floor
        np.testing.assert_allclose(slope[~bound], 0, atol=1e-2 if dtype == np.float32 else 1e-5)
        np.testing.assert_allclose(cost[i], price(u), **close(dtype))


@dtypes
def test_without_a_floor_that_binds_bounded_is_cholesky(dtype):
    cells, lam = problem(dtype, False)
    (U, cost), (exact, least) = outputs(dtype), outputs(dtype)
    ridge_bounded(*cells, lam, np.full(K, -1e30, dtype), 2000, U, cost)
    ridge_cholesky(*cells, lam, exact, least)
    np.testing.assert_allclose(U, exact, rtol=1e-3, atol=1e-3 if dtype == np.float32 else 1e-5)
    np.testing.assert_allclose(cost, least, rtol=1e-4, atol=1e-4)
