"""Codes under the Kullback–Leibler divergence: they descend, and they end where the conditions of a minimum hold."""

import numpy as np
import pytest
from scipy import sparse

from twofold.kernels.kl import newton_cells, newton_counts


def table(seed=0, n=40, d=30, k=5):
    rng = np.random.default_rng(seed)
    V = rng.gamma(0.5, size=(d, k))
    X = rng.poisson(rng.gamma(0.3, size=(n, k)) @ V.T * 3).astype(float) * rng.choice([0.01, 1.0], size=(n, 1))
    X[3] = 0
    return X, V, rng.gamma(1.0, size=(n, k))


def cost_of(X, U, V):
    Y = U @ V.T
    return (Y - np.where(X > 0, X * np.log(np.where(X > 0, Y, 1)), 0)).sum(axis=1)


def run(X, U, V, passes, tol=0.0):
    S = sparse.csr_array(X)
    U, ratio, cost = U.copy(), np.empty(S.nnz), np.empty(len(U))
    newton_counts(S.indptr, S.indices, S.data, V, V.sum(axis=0), 0.0, passes, tol, U, ratio, cost)
    return U, ratio, cost, S


@pytest.mark.parametrize("seed", range(5))
def test_no_pass_goes_up(seed):
    X, V, U = table(seed)
    costs = np.array([cost_of(X, run(X, U, V, passes)[0], V) for passes in range(8)])
    full = X.any(axis=1)
    assert (np.diff(costs[:, full], axis=0) <= 1e-9).all()
    assert (costs[3, full] < costs[0, full]).all()


def test_the_end_is_a_minimum():
    X, V, U = table()
    U, ratio, cost, S = run(X, U, V, 5000)
    gradient = V.sum(axis=0) - sparse.csr_array((ratio, S.indices, S.indptr), shape=S.shape) @ V
    full = X.any(axis=1)
    assert (gradient[full] > -1e-5).all() and np.abs(gradient * U)[full].max() < 1e-5
    assert not U[3].any()
    np.testing.assert_allclose(cost, cost_of(X, U, V), atol=1e-8)
    np.testing.assert_allclose(ratio, S.data / (U @ V.T)[S.nonzero()], rtol=1e-9)


def test_known_cells_all_of_them_equal_counts():
    X, V, U = table()
    n, d = X.shape
    full = sparse.csr_array(np.ones((n, d)))
    one, other = run(X, U, V, 4)[0], U.copy()
    ratio, cost = np.empty(n * d), np.empty(n)
    newton_cells(full.indptr, full.indices, X.ravel(), np.ones(n * d), V, 4, 0.0, other, ratio, cost)
    np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ratio.reshape(n, d)[X > 0], X[X > 0] / (other @ V.T)[X > 0], rtol=1e-9)
