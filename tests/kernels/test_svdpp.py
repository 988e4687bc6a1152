"""Variational kernels against plain NumPy."""

import numpy as np
import pytest
from scipy import sparse

from twofold.kernels.svdpp import pattern_sums, posterior_rows, row_sums

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
N, D, P = 11, 9, 4
T = P * (P + 1) // 2
LOWER = np.tril_indices(P)


def cells(dtype, seed=0):
    rng = np.random.default_rng(seed)
    known = rng.random((N, D)) < 0.5
    known[3], known[:, 6] = False, False
    X = sparse.csr_array(known * rng.normal(size=(N, D)).astype(dtype))
    return X, (rng.random(X.nnz) + 0.2).astype(dtype)


def draw_moments(dtype, seed=1):
    """Moments of D Gaussian vectors φ and of offsets c, drawn as means of squares so that they fit together."""
    rng = np.random.default_rng(seed)
    phi, c = rng.normal(size=(20, D, P)), rng.normal(size=(20, D))
    full = np.einsum("sja,sjb->jab", phi, phi) / 20
    Q, F = full[:, LOWER[0], LOWER[1]], phi.mean(axis=0)
    G, h = (phi * c[..., None]).mean(axis=0), np.column_stack([c.mean(axis=0), (c**2).mean(axis=0)])
    return tuple(np.ascontiguousarray(a, dtype) for a in (Q, F, G, h)), (phi, c)


def unpack(A):
    M = np.zeros((P, P))
    M[LOWER] = A
    return M + M.T - np.diag(np.diag(M))


def close(dtype):
    return {"rtol": 1e-3, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-10}


@dtypes
def test_pattern_sums_add_over_the_stored_cells(dtype):
    X, _ = cells(dtype)
    Y = np.random.default_rng(2).normal(size=(D, P)).astype(dtype)
    out = np.full((N, P), np.nan, dtype)
    pattern_sums(X.indptr, X.indices, Y, out)
    np.testing.assert_allclose(out, (X.toarray() != 0) @ Y, **close(dtype))
    assert not out[3].any()


@dtypes
def test_row_sums_are_expectations_over_the_cells(dtype):
    X, w = cells(dtype)
    moments, (phi, c) = draw_moments(dtype)
    for i in range(N):
        at = slice(X.indptr[i], X.indptr[i + 1])
        A, b = np.full(T, np.nan, dtype), np.full(P, np.nan, dtype)
        total = row_sums(X.indptr[i], X.indptr[i + 1], X.indices, X.data, w, *moments, A, b)
        j, x, v = X.indices[at], X.data[at].astype(float), w[at].astype(float)
        gap = x - c[:, j]  # (draws, cells)
        np.testing.assert_allclose(total, (v * gap**2).mean(axis=0).sum(), **close(dtype))
        np.testing.assert_allclose(b, ((v * gap)[..., None] * phi[:, j]).mean(axis=0).sum(axis=0), **close(dtype))
        np.testing.assert_allclose(unpack(A), np.einsum("q,sqa,sqb->ab", v, phi[:, j], phi[:, j]) / 20, **close(dtype))


@dtypes
def test_posterior_rows_are_gaussian_regressions(dtype):
    X, w = cells(dtype)
    moments, (phi, c) = draw_moments(dtype)
    rng = np.random.default_rng(3)
    prior, lam, tau = rng.normal(size=(N, P)).astype(dtype), (rng.random(P) + 0.5).astype(dtype), dtype(1.7)
    U, V, left, logdet = np.empty((N, P), dtype), np.empty((N, T), dtype), np.empty(N), np.empty(N)
    posterior_rows(X.indptr, X.indices, X.data, w, *moments, prior, lam, tau, U, V, left, logdet)
    assert U.dtype == V.dtype == dtype
    for i in range(N):
        at = slice(X.indptr[i], X.indptr[i + 1])
        j, x, v = X.indices[at], X.data[at].astype(float), w[at].astype(float)
        seen = np.einsum("q,sqa,sqb->ab", v, phi[:, j], phi[:, j]) / 20
        pull = np.einsum("q,sq,sqa->a", v, x - c[:, j], phi[:, j]) / 20
        precision = np.diag(lam.astype(float)) + float(tau) * seen
        mean, cov = np.linalg.solve(precision, lam * prior[i] + float(tau) * pull), np.linalg.inv(precision)
        np.testing.assert_allclose(U[i], mean, **close(dtype))
        np.testing.assert_allclose(unpack(V[i]), cov, **close(dtype))
        np.testing.assert_allclose(logdet[i], np.linalg.slogdet(precision)[1], **close(dtype))
        squares = (v * (x - c[:, j]) ** 2).mean(axis=0).sum() - 2 * mean @ pull
        squares += np.trace(seen @ (cov + np.outer(mean, mean)))  # E Σ w (x − c − ⟨φ, u⟩)²
        np.testing.assert_allclose(left[i], squares, **close(dtype))
    assert left[3] == 0  # a row without cells keeps its prior
