"""Fused expectation maximization, against the array of n × d × k posteriors."""

import numpy as np
import pytest
from scipy import sparse

from twofold.kernels.plsa import em_counts, em_fold


def table(seed=0, n=20, d=15, k=4):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, size=(n, d)).astype(float)
    X[2] = 0
    return sparse.csr_array(X), rng.dirichlet(np.ones(k), size=n), rng.dirichlet(np.ones(d), size=k).T.copy()


def twin(X, w, U, V, beta, passes):
    """Posteriors of every cell and topic, spelled out."""
    for _ in range(passes):
        joint = (U[:, None, :] * V[None]) ** beta  # (n,d,k)
        q = joint / joint.sum(axis=2, keepdims=True)
        loglik = (X * np.log(joint.sum(axis=2))).sum(axis=1)
        counts = X[:, :, None] * q
        new = counts.sum(axis=1)
        U = np.where(X.any(axis=1, keepdims=True), new / np.maximum(new.sum(axis=1, keepdims=True), 1e-300), U)
    return U, np.einsum("n,ndk->dk", w, counts), loglik


@pytest.mark.parametrize("beta", [1.0, 0.7])
@pytest.mark.parametrize("passes", [1, 3])
def test_fused_equals_the_posteriors(beta, passes):
    X, U, V = table()
    w = np.random.default_rng(1).random(X.shape[0])
    expected = twin(X.toarray(), w, U, V, beta, passes)
    raised, T, loglik = V**beta, np.zeros(V.shape), np.empty(len(U))
    em_counts(X.indptr, X.indices, X.data, w, raised, beta, passes, U, T, loglik)
    np.testing.assert_allclose(U, expected[0], atol=1e-12)
    np.testing.assert_allclose(T * raised, expected[1], atol=1e-12)
    np.testing.assert_allclose(loglik, expected[2], atol=1e-10)


def test_folding_is_the_same_step_repeated():
    X, U, V = table()
    expected = twin(X.toarray(), np.ones(len(U)), U, V, 1.0, 6)[0]
    em_fold(X.indptr, X.indices, X.data, V, 1.0, 6, 0.0, U)
    np.testing.assert_allclose(U, expected, atol=1e-12)


def test_words_of_no_topic_are_left_out():
    X, U, V = table()
    V[5] = 0
    without = X.toarray()
    without[:, 5] = 0
    S, other = sparse.csr_array(without), U.copy()
    em_fold(X.indptr, X.indices, X.data, V, 1.0, 4, 0.0, U)
    em_fold(S.indptr, S.indices, S.data, V, 1.0, 4, 0.0, other)
    np.testing.assert_allclose(U, other, atol=1e-14)
