"""Collapsed Gibbs sampling, against the obvious loop and against the exact posterior."""

import numpy as np
import pytest
from scipy import sparse

from twofold.kernels.gibbs import LANES, sample_topics


def twin(X, z, counts, alpha, beta, k, uniform):
    """Token by token; topics are ordered by their place in a row of 16, as the kernel lays them out."""
    z, counts, own, logp = z.copy(), counts.astype(float), np.zeros((X.shape[0], counts.shape[1])), 0.0
    order = [c for lane in range(LANES) for c in range(lane, k, LANES)]
    documents = np.repeat(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.data)
    np.add.at(own, (documents, z), 1)
    for t, (i, j) in enumerate(zip(documents, np.repeat(X.indices, X.data), strict=True)):
        for n in (own[i], counts[j]):
            n[z[t]] -= 1
        share = (own[i] + alpha) / (own[i].sum() + alpha.sum())
        p = (share * (counts[j] + beta) / (counts.sum(axis=0) + len(counts) * beta))[order]
        z[t] = order[np.searchsorted(np.cumsum(p), uniform[t] * p.sum(), side="right")]
        logp += np.log(p.sum())
        for n in (own[i], counts[j]):
            n[z[t]] += 1
    return z, counts, own, logp


@pytest.mark.parametrize("k", [1, 3, 16, 17, 50])
def test_sweeps_equal_the_loop(k):
    rng, d, K = np.random.default_rng(k), 20, -(-k // LANES) * LANES
    X = sparse.csr_array(rng.poisson(0.7, size=(30, d)) * (np.arange(30) != 4)[:, None])
    tokens = int(X.sum())
    z, alpha = rng.integers(0, k, tokens).astype(np.int32), np.zeros(K)
    alpha[:k] = rng.random(k)
    counts = np.zeros((d, K))
    np.add.at(counts, (np.repeat(X.indices, X.data), z), 1)
    uniform, own, totals = rng.random(tokens), np.zeros((30, K)), counts.sum(axis=0)
    expected = twin(X, z, counts, alpha, 0.1, k, uniform)
    logp = sample_topics(X.data, X.indices, X.indptr, z, counts, totals, alpha, 0.1, k, uniform, own)
    for got, wanted in zip((z, counts, own), expected, strict=False):
        np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(totals, counts.sum(axis=0))
    assert logp == pytest.approx(expected[3])


def test_sweeps_sample_the_posterior():
    """Two documents, four tokens, two topics: the sweeps visit assignments as often as their exact chance."""
    words, k, d = np.array([0, 0, 1, 2], np.int32), 2, 3
    X = sparse.csr_array([[2, 0, 0], [0, 1, 1]])
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
    rng, z, seen = np.random.default_rng(0), np.zeros(4, np.int32), np.zeros(16)
    counts, prior = np.zeros((d, LANES), np.float32), np.zeros(LANES, np.float32)
    prior[:k] = alpha
    np.add.at(counts, (words, z), 1)
    totals = counts.sum(axis=0, dtype=float)
    for u in rng.random((40_000, 4), dtype=np.float32):
        own = np.zeros((2, LANES), np.float32)
        sample_topics(X.data, X.indices, X.indptr, z, counts, totals, prior, np.float32(beta), k, u, own)
        seen[z @ [8, 4, 2, 1]] += 1
    assert counts.sum() == 4 and np.array_equal(own.sum(axis=1), [2, 2])
    np.testing.assert_allclose(seen / seen.sum(), exact, atol=0.012)
