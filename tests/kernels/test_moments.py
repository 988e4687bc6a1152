"""The compiled sums against plain NumPy."""

import numpy as np
import pytest
from scipy import sparse

from twofold.kernels.moments import column_sums, csr_column_sums, csr_gram, csr_gram_rows, row_sum

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def rows(dtype, n=37, d=5):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)).astype(dtype), rng.random(n), rng.normal(size=d)


def thin(dtype, n=37, d=6):
    rng = np.random.default_rng(1)
    D = np.where(rng.random((n, d)) < 0.3, rng.normal(size=(n, d)), 0.0).astype(dtype)
    D[4] = 0  # an empty row
    D[:, 2] = 0  # an empty column
    return D, sparse.csr_array(D), rng.random(n)


@dtypes
@pytest.mark.parametrize("n", [0, 37])
def test_column_sums(dtype, n):
    X, w, shift = rows(dtype, n)
    X[3:4, 1] = X[9:10, 1] = X[9:10, 4] = np.nan
    weight, first, second = np.ones(5), np.full(5, 2.0), np.full(5, 3.0)  # adds to what is there
    column_sums(X, w, shift, weight, first, second)
    v = X.astype(np.float64) - shift
    np.testing.assert_allclose(weight, 1 + (w[:, None] * ~np.isnan(v)).sum(axis=0))
    np.testing.assert_allclose(first, 2 + np.nansum(w[:, None] * v, axis=0))
    np.testing.assert_allclose(second, 3 + np.nansum(w[:, None] * v**2, axis=0))


@dtypes
def test_row_sum(dtype):
    X, w, _ = rows(dtype)
    out = np.ones(5)
    row_sum(X, w, out)
    np.testing.assert_allclose(out, 1 + w @ X.astype(np.float64))


@dtypes
def test_csr_column_sums(dtype):
    D, S, w = thin(dtype)
    first, second = np.ones(6), np.full(6, 2.0)
    csr_column_sums(S.data, S.indices, S.indptr, w, first, second)
    np.testing.assert_allclose(first, 1 + w @ D.astype(np.float64))
    np.testing.assert_allclose(second, 2 + w @ D.astype(np.float64) ** 2)


@dtypes
def test_csr_gram(dtype):
    D, S, w = thin(dtype)
    G = np.ones((6, 6))
    csr_gram(S.data, S.indices, S.indptr, w, G)
    D = D.astype(np.float64)
    np.testing.assert_allclose(np.triu(G), np.triu(1 + (D * w[:, None]).T @ D))
    assert np.array_equal(np.tril(G, -1), np.tril(np.ones((6, 6)), -1))  # the lower half is not touched


def test_csr_gram_rows_are_those_of_the_gram_matrix():
    S = sparse.random_array((60, 11), density=0.4, format="csr", rng=np.random.default_rng(0))
    S.sort_indices()
    whole = np.triu((S.T @ S).toarray())
    for lo, hi in ((0, 11), (3, 7), (10, 11)):
        G = np.zeros((hi - lo, 11))
        csr_gram_rows(S.data, S.indices, S.indptr, lo, G)
        assert np.allclose(G, whole[lo:hi])
