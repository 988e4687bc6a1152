"""The compiled posterior of Gaussian codes against plain NumPy."""

import numpy as np
import pytest

from twofold.kernels.ppca_posterior import hole_variances, posterior


def pack(A):
    return A[np.tril_indices(len(A))]


def positive(k, seed):
    R = np.random.default_rng(seed).normal(size=(k, k + 2))
    return R @ R.T


@pytest.mark.parametrize("ridge", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_posterior(k, ridge):
    rng = np.random.default_rng(k)
    n, groups = 23, 4
    pattern = rng.integers(0, groups - 1, n)  # the last pattern has no rows
    order = np.argsort(pattern, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(pattern, minlength=groups)))
    A = [positive(k, 10 + p) for p in range(groups)]
    B, w = rng.normal(size=(n, k)), rng.random(n)
    if ridge:  # a pattern without cells leaves the prior
        A[1], B[pattern == 1] = np.zeros((k, k)), 0.0
    means, quad, logdet = np.empty((n, k)), np.empty(n), np.empty(groups)
    second = np.zeros((groups, (k + 1) * (k + 2) // 2))
    posterior(np.array([pack(a) for a in A]), B, w, order, starts, ridge, means, quad, logdet, second)
    for p in range(groups):
        S = A[p] + ridge * np.eye(k)
        mine = np.flatnonzero(pattern == p)
        z = np.linalg.solve(S, B[mine].T).T
        np.testing.assert_allclose(means[mine], z, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(quad[mine], (B[mine] * z).sum(axis=1), rtol=1e-8, atol=1e-10)
        assert logdet[p] == pytest.approx(np.linalg.slogdet(S)[1], abs=1e-12)
        one = np.column_stack([z, np.ones(len(mine))])  # (z, 1)
        expected = (one * w[mine, None]).T @ one
        expected[:k, :k] += w[mine].sum() * np.linalg.inv(S)
        np.testing.assert_allclose(second[p], pack(expected), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("k", [0, 1, 3])
def test_hole_variances(k):
    rng = np.random.default_rng(k)
    W, psi, mask = rng.normal(size=(6, k)), 0.1 + rng.random(6), rng.random((5, 6)) < 0.6
    mask[0], mask[1] = False, True
    M = np.array([pack((W[seen].T / psi[seen]) @ W[seen]) for seen in mask]).reshape(5, -1)
    variance = np.full(mask.shape, -1.0)
    hole_variances(M, mask, W, psi, variance)
    S = W @ W.T + np.diag(psi)
    for seen, found in zip(mask, variance, strict=True):
        gain = np.linalg.solve(S[np.ix_(seen, seen)], S[np.ix_(seen, ~seen)])
        np.testing.assert_allclose(found[~seen], np.diag(S[np.ix_(~seen, ~seen)] - S[np.ix_(~seen, seen)] @ gain))
        assert (found[seen] == -1).all()
