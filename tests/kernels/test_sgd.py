"""Gradient steps against plain NumPy."""

import numpy as np
import pytest
from scipy import sparse

from twofold.kernels.sgd import row_gradients, sgd_cells

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
biased = pytest.mark.parametrize("bias", [0, 1], ids=["factors", "biases"])
N, D, K = 9, 7, 3


def cells(dtype, seed=0):
    rng = np.random.default_rng(seed)
    known = rng.random((N, D)) < 0.6
    known[2], known[:, 5] = False, False
    X = sparse.csr_array(known * rng.normal(size=(N, D)).astype(dtype))
    rows = np.repeat(np.arange(N, dtype=np.int32), np.diff(X.indptr))
    return X, rows, (rng.random(X.nnz) + 0.2).astype(dtype)


def state(dtype, p, seed=1):
    rng = np.random.default_rng(seed)
    U, Z = rng.normal(size=(N, p)).astype(dtype), rng.normal(size=(D, p)).astype(dtype)
    return U, Z, (rng.random(N) + 0.5).astype(dtype), (rng.random(D) + 0.5).astype(dtype)


def ridges(dtype, p):
    """Of rows and columns, the last feature with one of its own; and the same feature by feature."""
    rng = np.random.default_rng(3)
    both = [(0.1 * rng.random((m, 2))).astype(dtype) for m in (N, D)]
    return both, [np.repeat(lam.astype(float), [K, 1], axis=1)[:, :p] for lam in both]


def step_plainly(rows, cols, x, w, bias, mean, unit, LU, LZ, rate, growth, U, Z, GU, GZ):
    """The same steps in float64, a cell a turn: features of u are (z, unit), those of z are (u, unit)."""
    U, Z, GU, GZ = (a.astype(float) for a in (U, Z, GU, GZ))
    total = 0.0
    for i, j, v, weight in zip(rows, cols, x.astype(float), w.astype(float), strict=True):
        u, z = U[i].copy(), Z[j].copy()
        seen_u, seen_z = z.copy(), u.copy()
        if bias:
            seen_u[K], seen_z[K] = unit, unit
        e = v - mean - u[:K] @ z[:K] - (unit * (u[K] + z[K]) if bias else 0.0)
        total += weight * (e**2 + LU[i] @ u**2 + LZ[j] @ z**2)
        gu, gz = weight * (e * seen_u - LU[i] * u), weight * (e * seen_z - LZ[j] * z)
        U[i] += rate / np.sqrt(GU[i]) * gu
        Z[j] += rate / np.sqrt(GZ[j]) * gz
        GU[i] += growth * (gu**2).mean()
        GZ[j] += growth * (gz**2).mean()
    return total, U, Z, GU, GZ


@dtypes
@biased
@pytest.mark.parametrize("growth", [1, 0], ids=["falling", "plain"])
def test_sgd_steps_cell_by_cell(dtype, bias, growth):
    X, rows, w = cells(dtype)
    now = state(dtype, K + bias)
    order = np.random.default_rng(2).permutation(X.nnz)
    given = rows[order], X.indices[order].astype(np.int32), X.data[order], w[order]
    lam, each = ridges(dtype, K + bias)
    expected = step_plainly(*given, bias, 0.3, 1.2, *each, 0.1, growth, *now)
    total = sgd_cells(*given, K, dtype(0.3), dtype(1.2), *lam, dtype(0.1), dtype(growth), *now)
    close = {"rtol": 2e-3, "atol": 2e-4} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-12}
    for found, wanted in zip((total, *now), expected, strict=True):
        np.testing.assert_allclose(found, wanted, **close)
    assert all(a.dtype == dtype for a in now)
    assert np.array_equal(now[0][2], state(dtype, K + bias)[0][2])  # a row without cells stays where it is


@dtypes
def test_no_cells_no_steps(dtype):
    now = state(dtype, K)
    empty = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, dtype), np.empty(0, dtype)
    total = sgd_cells(*empty, K, dtype(0), dtype(1), *ridges(dtype, K)[0], dtype(0.1), dtype(1), *now)
    assert total == 0 and all(np.array_equal(a, b) for a, b in zip(now, state(dtype, K), strict=True))


def loss(X, w, Z, offset, lam, i, u):
    at = slice(X.indptr[i], X.indptr[i + 1])
    j, v = X.indices[at], w[at].astype(float)
    return v @ (X.data[at] - offset[j] - Z[j].astype(float) @ u) ** 2 + lam[i] @ u**2


@dtypes
def test_row_gradients_are_numerical_gradients_over_the_curvature(dtype):
    X, _, w = cells(dtype)
    U, Z, _, offset = state(dtype, K)
    offset, given = np.resize(offset, D).astype(dtype), ridges(dtype, K)[0][0]
    given[2] = 0  # as where a row has no cells
    lam = np.repeat(given.astype(float), [K - 1, 1], axis=1)
    G, cost = np.full((N, K), np.nan, dtype), np.full(N, np.nan)
    row_gradients(X.indptr, X.indices, X.data, w, Z, offset, given, U, G, cost)
    close = {"rtol": 1e-3, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-7, "atol": 1e-8}
    for i in range(N):
        at = slice(X.indptr[i], X.indptr[i + 1])
        j, v, u, step = X.indices[at], w[at].astype(float), U[i].astype(float), 1e-4
        np.testing.assert_allclose(cost[i], loss(X, w, Z, offset, lam, i, u), **close)
        if i == 2:
            assert not G[i].any() and cost[i] == 0
            continue
        ahead = [loss(X, w, Z, offset, lam, i, u + step * e) for e in np.eye(K)]
        back = [loss(X, w, Z, offset, lam, i, u - step * e) for e in np.eye(K)]
        slope = (np.array(ahead) - back) / (2 * step)
        bound = v @ (Z[j].astype(float) ** 2).sum(axis=1) + lam[i].max()  # trace of the half Hessian, or more
        np.testing.assert_allclose(G[i], slope / 2 / bound, **close)
        half = (Z[j].T.astype(float) * v) @ Z[j] + np.diag(lam[i])
        assert np.linalg.eigvalsh(half)[-1] <= bound * (1 + 1e-6)
