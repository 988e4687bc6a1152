"""Worked examples of matrix completion in the notes; docs/learn/concordance.md names the sets."""

import numpy as np
import pytest
import torch
from scipy import sparse

from twofold import ALS, SVP, linalg
from twofold.completion import recovery_report
from twofold.deep import minimize


def test_the_loss_of_a_product_is_not_convex():
    """Perez Jensen § 2.1: the Hessian at 0 is [[0, −a], [−a, 0]], with eigenvalues ±a."""
    a = 1.7
    hessian = torch.autograd.functional.hessian(
        lambda w: 0.5 * (a - w[0] * w[1]) ** 2, torch.zeros(2, dtype=torch.float64)
    ).numpy()
    np.testing.assert_allclose(hessian, [[0, -a], [-a, 0]], atol=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(hessian), [-a, a])


def test_balanced_gradient_flow_has_a_closed_form():
    """Perez Jensen § 2.1: x(t) = a + (ac − a²)/(c exp(2at) + a − c) from u = v = √c."""
    a, c, rate = 1.0, 0.04, 1e-3
    way = []
    minimize(
        lambda w: 0.5 * (a - w[0] * w[1]) ** 2, [np.sqrt(c)] * 2, "sgd",
        gradient=lambda w: (w[0] * w[1] - a) * w[::-1], learning_rate=rate, max_iter=3000, tol=0, callback=way.append,
    )  # fmt: skip
    x = np.array([u * v for u, v in way])
    t = rate * np.arange(1, len(x) + 1)
    np.testing.assert_allclose(x, a + (a * c - a**2) / (c * np.exp(2 * a * t) + a - c), atol=2e-3)
    np.testing.assert_allclose(x[[999, 1999, 2999]], [0.2354, 0.6946, 0.9439], atol=2e-3)


def test_matrices_of_low_rank_are_not_a_convex_set():
    """Fei § 3.4.1: the middle of two matrices of rank 1 has rank 2."""
    one, two = np.diag([1.0, 0.0]), np.diag([0.0, 1.0])
    assert [np.linalg.matrix_rank(M) for M in (one, two, (one + two) / 2)] == [1, 1, 2]


def test_the_best_matrix_of_rank_one():
    """Perez Jensen § 2.1: c = √λ₁, loss ½(‖A‖² − λ₁), u and v the leading eigenvectors of AAᵀ and AᵀA."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(7, 5))
    values, vectors = np.linalg.eigh(A.T @ A)
    U, s, Zt = linalg.truncated_svd(A, 1)
    assert s[0] == pytest.approx(np.sqrt(values[-1]))
    assert abs(Zt[0] @ vectors[:, -1]) == pytest.approx(1)
    assert 0.5 * linalg.norm(A - U * s @ Zt) ** 2 == pytest.approx(0.5 * (linalg.norm(A) ** 2 - values[-1]))
    start = rng.normal(size=12)

    def loss(w):
        return 0.5 * ((A - np.outer(w[:7], w[7:])) ** 2).sum()

    def slope(w):
        rest = np.outer(w[:7], w[7:]) - A
        return np.concatenate([rest @ w[7:], w[:7] @ rest])

    found = minimize(loss, start, "sgd", gradient=slope, learning_rate=0.05, max_iter=2000)
    np.testing.assert_allclose(np.outer(found.x[:7], found.x[7:]), U * s @ Zt, atol=1e-4)


@pytest.mark.parametrize(("n", "k"), [(20, 1), (30, 3), (12, 5)])
def test_degrees_of_freedom(n, k):
    """Perez Jensen § 2.2: k + 2 Σ (n − i) = 2nk − k²."""
    M = np.random.default_rng(n).normal(size=(n, k)) @ np.random.default_rng(k).normal(size=(k, n))
    assert k + 2 * sum(n - i for i in range(1, k + 1)) == 2 * n * k - k**2
    assert recovery_report(M, k).degrees_of_freedom == 2 * n * k - k**2


def test_a_matrix_of_rank_five_from_one_cell_in_twenty():
    """Erdogdu, matrix completion: 1000 × 1000, 50,000 cells known, 10,000 numbers to find."""
    rng = np.random.default_rng(0)
    U, Z = rng.normal(size=(1000, 5)), rng.normal(size=(1000, 5))
    at = rng.choice(1000 * 1000, 50_000, replace=False)
    rows, cols = np.divmod(at, 1000)
    X = sparse.csr_array(((U[rows] * Z[cols]).sum(axis=1), (rows, cols)), shape=(1000, 1000))
    truth = U @ Z.T
    for model in (SVP(5, max_iter=400), ALS(5, reg=1e-6, max_iter=400, random_state=0)):
        found = model.fit(X).complete(X)
        assert np.linalg.norm(found - truth) <= 1e-2 * np.linalg.norm(truth), model


def test_norms():
    """Çetin § 11.3; Fei § 3.4.3: ‖A‖₂ ≤ ‖A‖_F ≤ ‖A‖_* ≤ √r ‖A‖_F ≤ r ‖A‖₂, and rank ≥ ‖A‖_* where ‖A‖₂ ≤ 1."""
    for seed, rank in ((0, 1), (1, 3), (2, 6)):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(8, rank)) @ rng.normal(size=(rank, 6))
        spectral, frobenius, nuclear = (linalg.norm(A, kind) for kind in ("spectral", "frobenius", "nuclear"))
        chain = np.array([spectral, frobenius, nuclear, np.sqrt(rank) * frobenius, rank * spectral])
        assert (np.diff(chain) >= -1e-9 * chain[-1]).all()
        assert linalg.norm(A / spectral, "nuclear") <= rank * (1 + 1e-12)
