"""The compiled loops of topic models against plain NumPy."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import psi

from twofold.kernels.gibbs import alias_tables, sample_topics
from twofold.kernels.lda import (
    digamma,
    dirichlet_sums,
    expected_counts,
    fold_in,
    log_likelihood,
    variational,
    variational_counts,
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
    logp, tokens = expected_counts(*cells, topics, alpha, counts, w, out)
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
    variational(*cells, topics, alpha, k, gamma, 3, -1.0)
    means = lambda g: np.exp(psi(g) - psi(g.sum(axis=1, keepdims=True)))  # noqa: E731
    for _ in range(3):
        expected = alpha + np.einsum("ij,ijc->ic", X, chances(X, topics, means(expected)))
    np.testing.assert_allclose(gamma, expected, rtol=RTOL[dtype])
    out = np.zeros_like(topics)
    variational_counts(*cells, topics, k, gamma, w, out)
    r = chances(X, topics, means(expected))
    np.testing.assert_allclose(out, np.einsum("i,ij,ijc->jc", w, X, r), rtol=10 * RTOL[dtype], atol=1e-6)


@both
def test_alias_tables_hold_the_distribution(dtype):
    mass = np.random.default_rng(0).dirichlet(np.full(7, 0.3), size=20).astype(dtype) * dtype(5)
    mass[3] = 1
    keep, other = np.empty_like(mass), np.empty(mass.shape, np.int32)
    alias_tables(mass, keep, other)
    for row, k, o in zip(mass, keep, other, strict=True):
        back = k / 7.0 + np.bincount(o, weights=(1 - k) / 7.0, minlength=7)
        np.testing.assert_allclose(back, row / row.sum(), atol=1e-6)


def test_gibbs_samples_the_posterior():
    """Two documents, four tokens, two topics: the sweeps visit assignments as often as their exact chance."""
    words, starts, k, d = np.array([0, 0, 1, 2], np.int32), np.array([0, 2, 4]), 2, 3
    alpha, beta = np.array([0.5, 0.8]), 0.3
    every = np.array(np.meshgrid(*[[0, 1]] * 4, indexing="ij")).reshape(4, -1).T  # 16 assignments

    def joint(z):
        """p(z, words) up to a constant, token after token."""
        own, of, total, p = np.zeros((2, k)), np.zeros((d, k)), np.zeros(k), 1.0
        for t, c in enumerate(z):
            i = int(t >= 2)
            p *= (
                (own[i, c] + alpha[c]) / (own[i].sum() + alpha.sum()) * (of[words[t], c] + beta) / (total[c] + d * beta)
            )
            own[i, c], of[words[t], c], total[c] = own[i, c] + 1, of[words[t], c] + 1, total[c] + 1
        return p

    exact = np.array([joint(z) for z in every])
    exact /= exact.sum()
    rng, z = np.random.default_rng(0), np.zeros(4, np.int32)
    mass = rng.random((d, k)).astype(np.float32) + np.float32(0.1)  # stale on purpose: the test must make up for it
    keep, other = np.empty_like(mass), np.empty(mass.shape, np.int32)
    alias_tables(mass, keep, other)
    seen = np.zeros(16)
    for _ in range(40_000):
        counts = np.zeros((d, k), np.float32)
        np.add.at(counts, (words, z), 1)
        totals, own = counts.sum(axis=0, dtype=float), np.zeros((2, k))
        sample_topics(words, starts, z, counts, totals, alpha, beta, mass, keep, other, rng.random((4, 2)), own)
        assert (
            counts.sum() == 4 and np.array_equal(totals, counts.sum(axis=0)) and np.array_equal(own.sum(axis=1), [2, 2])
        )
        seen[z @ [8, 4, 2, 1]] += 1
    np.testing.assert_allclose(seen / seen.sum(), exact, atol=0.012)
