"""Small Cholesky factors against LAPACK's."""

import numpy as np
import pytest

from twofold.kernels.cholesky import factor, invert, solve

sizes = pytest.mark.parametrize("k", [1, 2, 5, 12])
dtypes = pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-3)])


def positive(k, dtype):
    R = np.random.default_rng(k).normal(size=(k, 2 * k + 2))
    return (R @ R.T).astype(dtype)


@sizes
@dtypes
def test_factor_and_its_inverse(k, dtype, rtol):
    A = positive(k, dtype)
    L = np.tril(A)
    assert factor(L, dtype(0)) == pytest.approx(np.linalg.slogdet(A.astype(float))[1], rel=rtol)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), rtol=rtol, atol=rtol)
    invert(L)
    np.testing.assert_allclose(np.tril(L), np.linalg.inv(np.linalg.cholesky(A.astype(float))), rtol=rtol, atol=rtol)


@sizes
@dtypes
def test_solve(k, dtype, rtol):
    A, b = positive(k, dtype), np.arange(1, k + 1).astype(dtype)
    L, x = A.copy(), b.copy()  # the upper half is never read
    factor(L, dtype(0))
    solve(L, x)
    np.testing.assert_allclose(x, np.linalg.solve(A.astype(float), b), rtol=rtol, atol=rtol)


def test_pivots_are_held_up():
    A = np.ones((3, 3))
    factor(A, 1e-6)
    assert np.isfinite(A).all() and np.diag(A).min() == pytest.approx(1e-3)
