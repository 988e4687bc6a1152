"""Non-negative least squares, against SciPy's active-set method and against the obvious loop."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls as active_set

from twofold.kernels.nnls import nnls, nnls_active_set, nnls_cells


def twin(G, B, U, sweeps):
    """Coordinate descent row by row, all sweeps."""
    U = U.copy()
    for _ in range(sweeps):
        for c in np.flatnonzero(np.diag(G) > 0):
            U[:, c] = np.maximum(U[:, c] + (B[:, c] - U @ G[:, c]) / G[c, c], 0)
    return U


def problem(n, k, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    V, U = rng.random((k + 5, k)).astype(dtype), rng.random((n, k)).astype(dtype)
    X = rng.normal(size=(n, k + 5)).astype(dtype)
    return V, X, U, V.T @ V, X @ V


@pytest.mark.parametrize("n", [1, 127, 128, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sweeps_equal_the_loop(n, dtype):
    *_, U, G, B = problem(n, 6, dtype)
    expected = twin(G.astype(float), B.astype(float), U.astype(float), 3)
    nnls(G, B, U, 3, dtype(-1))
    np.testing.assert_allclose(U, expected, rtol=0, atol=2e-5 if dtype == np.float32 else 1e-12)


def test_the_end_is_the_minimum():
    V, X, U, G, B = problem(40, 5)
    nnls(G, B, U, 20_000, 0.0)
    expected = np.array([active_set(V, x)[0] for x in X])
    assert (expected == 0).any() and (expected > 0).any()
    np.testing.assert_allclose(U, expected, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("before", [0, 1, 5])
def test_active_sets_arrive_from_anywhere(before, dtype):
    *_, U, G, B = problem(60, 7, dtype)
    nnls(G, B, U, before, dtype(0))
    done = np.zeros(60, bool)
    nnls_active_set(G.astype(float), B, U, done)
    for u, b in zip(U, B.astype(float), strict=True):
        pull = b - G.astype(float) @ u
        assert np.all(u >= 0) and pull.max() < 1e-5 * abs(b).max() and abs(pull @ u) <= 1e-5 * abs(b @ u)
    assert done.all() and (U == 0).any()


def test_active_sets_give_up_where_parts_are_alike():
    *_, U, G, B = problem(20, 4)
    G[3], B[:, 3] = G[2], B[:, 2]
    G[:, 3] = G[:, 2]
    before, done = U.copy(), np.ones(20, bool)
    nnls_active_set(G, B, U, done)
    for i in range(20):
        if done[i]:
            pull = B[i] - G @ U[i]
            assert pull.max() < 1e-6 * abs(B[i]).max() and abs(pull @ U[i]) < 1e-6
        else:
            assert np.array_equal(U[i], before[i])


def test_companions_do_not_show():
    *_, U, G, B = problem(200, 7)
    one, order = U.copy(), np.random.default_rng(1).permutation(200)
    other = U[order].copy()
    nnls(G, B, one, 50, 0.01)
    nnls(G, B[order].copy(), other, 50, 0.01)
    assert np.array_equal(one[order], other)


def test_a_dead_component_stays():
    *_, U, G, B = problem(30, 4)
    G[2] = G[:, 2] = B[:, 2] = 0
    before = U.copy()
    nnls(G, B, U, 10, 0.0)
    np.testing.assert_array_equal(U[:, 2], before[:, 2])
    assert np.isfinite(U).all() and not np.array_equal(U, before)


@pytest.mark.parametrize("kappa", [0.0, 0.3])
def test_known_cells_and_what_is_beyond_equal_the_minimum_over_all(kappa):
    rng = np.random.default_rng(2)
    V, X = rng.random((12, 3)), rng.random((25, 12))
    W = rng.random(X.shape) * (rng.random(X.shape) < 0.7)
    W[4], W[5] = 0, 1
    e, t, f, s = rng.random(25), rng.random(25), rng.random(12), rng.random(12)
    e[5] = 0  # everything is known there
    cells = sparse.csr_array(W)
    x = X[np.repeat(np.arange(25), np.diff(cells.indptr)), cells.indices]
    U, cost = rng.random((25, 3)), np.empty((25, 2))
    beyond = (kappa, e, t, f, s, (V.T * f) @ V, V.T @ (f * s), float(f @ s**2))
    nnls_cells(cells.indptr, cells.indices, x, cells.data, V, 50_000, 0.0, *beyond, U, cost)
    for i in np.setdiff1d(range(25), 4):
        known = W[i] > 0
        w, y = np.where(known, W[i], kappa * e[i] * f), np.where(known, X[i], t[i] * s)
        best, left = active_set(np.sqrt(w)[:, None] * V, np.sqrt(w) * y)
        np.testing.assert_allclose(U[i], best, atol=1e-7)
        assert cost[i, 0] + kappa * cost[i, 1] == pytest.approx(0.5 * left**2, abs=1e-10)
        assert cost[i, 0] == pytest.approx(0.5 * W[i] @ (X[i] - V @ U[i]) ** 2)
    assert np.all(U[4] == 0)
    before = U.copy()
    nnls_cells(cells.indptr, cells.indices, x, cells.data, V, 0, 0.0, *beyond, U, again := np.empty((25, 2)))
    assert np.array_equal(U, before) and np.array_equal(again, cost)
