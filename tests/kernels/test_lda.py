"""The compiled loops of topic models against plain NumPy."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import psi

from twofold.kernels.lda import (
    count_dirichlet_topics,
    count_topics,
    digamma,
    dirichlet_sums,
    fit_dirichlets,
    fold_in,
    log_likelihood,
)

both = pytest.mark.parametrize("dtype", [np.float32, np.float64])
RTOL = {np.float32: 2e-4, np.float64: 1e-9}


def case(dtype, k=5, d=12, n=9):
    rng = np.random.default_rng(k)
    X = rng.poisson(0.8, size=(n, d)).astype(dtype)
    X[2] = 0  # an empty document
    topics = rng.dirichlet(np.ones(d), size=k).T.astype(dtype)
    topics[4] = 0  # a word that no topic knows
    S = sparse.csr_array(X)
    cells = S.data, S.indices.astype(np.int32), S.indptr.astype(np.int64)
    return X, cells, np.ascontiguousarray(topics), rng.random(k).astype(dtype) + dtype(0.1), rng


def chances(X, topics, theta):
    """γ (n,d,k), zero for unknown words."""
    joint = theta[:, None] * topics[None].astype(np.float64)
    total = joint.sum(axis=2, keepdims=True)
    return np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)


@both
@pytest.mark.parametrize("passes", [1, 4])
def test_fold_in(dtype, passes):
    X, cells, topics, alpha, _ = case(dtype)
    counts = np.zeros((len(X), len(alpha)), dtype)
    fold_in(*cells, topics, alpha, counts, passes, -1.0)
    expected = np.zeros((len(X), len(alpha)))
    for _ in range(passes):
        expected = np.einsum("ij,ijc->ic", X, chances(X, topics, expected + alpha))
    np.testing.assert_allclose(counts, expected, rtol=RTOL[dtype], atol=1e-5)
    assert not counts[2].any()


def test_fold_in_stops_when_nothing_moves():
    X, cells, topics, alpha, _ = case(np.float64)
    some, more = (np.zeros((len(X), len(alpha))) for _ in range(2))
    fold_in(*cells, topics, alpha, some, 10_000, 1e-3)
    fold_in(*cells, topics, alpha, more, 10_000, 0.0)
    known = np.delete(X, 4, axis=1).sum(axis=1, keepdims=True)
    assert not np.array_equal(some, more) and np.all(np.abs(some - more) <= 0.1 * known)


@both
def test_expected_counts(dtype):
    X, cells, topics, alpha, rng = case(dtype)
    counts, w = rng.random((len(X), len(alpha))).astype(dtype), rng.random(len(X)).astype(dtype)
    theta = (counts + alpha).astype(np.float64)
    out = np.zeros_like(topics)
    logp, tokens = count_topics(*cells, topics, alpha, counts, w, out)
    gamma = chances(X, topics, theta)
    np.testing.assert_allclose(out, np.einsum("i,ij,ijc->jc", w, X, gamma), rtol=RTOL[dtype], atol=1e-6)
    np.testing.assert_allclose(counts, np.einsum("ij,ijc->ic", X, gamma), rtol=RTOL[dtype], atol=1e-6)
    p = (theta / theta.sum(axis=1, keepdims=True)) @ topics.T
    known = p > 0
    assert tokens == pytest.approx((w[:, None] * X)[known].sum(), rel=1e-5)
    assert logp == pytest.approx(((w[:, None] * X)[known] * np.log(p[known])).sum(), rel=1e-5)


@both
def test_log_likelihood(dtype):
    X, cells, topics, alpha, rng = case(dtype)
    shares = rng.dirichlet(alpha, size=len(X)).astype(dtype)
    logp, tokens = np.empty(len(X)), np.empty(len(X))
    log_likelihood(*cells, topics, shares, logp, tokens)
    p = shares.astype(np.float64) @ topics.T
    np.testing.assert_allclose(logp, (X * np.log(np.where(p > 0, p, 1))).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(tokens, (X * (p > 0)).sum(axis=1))


def test_digamma():
    for x in [1e-6, 0.01, 0.3, 1.0, 5.999, 6.0, 40.0, 1e8]:
        assert digamma(x) == pytest.approx(psi(x), rel=1e-13)


def test_dirichlet_sums():
    rng = np.random.default_rng(0)
    n, alpha, w = rng.poisson(2.0, size=(30, 4)).astype(float), np.array([0.1, 0.5, 1, 3]), rng.random(30)
    above = np.zeros(4)
    below = dirichlet_sums(n, alpha, w, above)
    np.testing.assert_allclose(above, w @ (psi(n + alpha) - psi(alpha)), rtol=1e-10)
    assert below == pytest.approx(w @ (psi(n.sum(axis=1) + alpha.sum()) - psi(alpha.sum())))


@both
def test_variational(dtype):
    X, cells, topics, alpha, rng = case(dtype)
    k, w = len(alpha), rng.random(len(X)).astype(dtype)
    gamma = np.tile(alpha, (len(X), 1)) + dtype(1)
    expected = gamma.astype(np.float64)
    fit_dirichlets(*cells, topics, alpha, k, gamma, 3, -1.0)
    means = lambda g: np.exp(psi(g) - psi(g.sum(axis=1, keepdims=True)))  # noqa: E731
    for _ in range(3):
        expected = alpha + np.einsum("ij,ijc->ic", X, chances(X, topics, means(expected)))
    np.testing.assert_allclose(gamma, expected, rtol=RTOL[dtype])
    out = np.zeros_like(topics)
    count_dirichlet_topics(*cells, topics, k, gamma, w, out)
    r = chances(X, topics, means(expected))
    np.testing.assert_allclose(out, np.einsum("i,ij,ijc->jc", w, X, r), rtol=10 * RTOL[dtype], atol=1e-6)
