"""Basis pursuit: the least sum of sizes, by two ways that must agree, and by its conditions of optimality."""

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from twofold import InputError, SparseCoder, load
from twofold.signals import basis_pursuit, basis_pursuit_denoise, orthogonal_matching_pursuit


def problem(m=30, d=80, K=4, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros(d)
    x[rng.choice(d, K, replace=False)] = rng.normal(size=K) + np.sign(rng.normal(size=K))
    A = rng.normal(size=(m, d)) / np.sqrt(m)
    return A, A @ x, x


@pytest.mark.parametrize("solver", ["lp", "admm"])
@pytest.mark.parametrize("seed", range(4))
def test_few_numbers_are_recovered(solver, seed):
    A, y, x = problem(seed=seed)
    np.testing.assert_allclose(basis_pursuit(A, y, solver=solver), x, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_where_it_fails_both_ways_fail_alike(seed):
    A, y, x = problem(K=25, seed=seed)
    exact, split = (basis_pursuit(A, y, solver=solver) for solver in ("lp", "admm"))
    np.testing.assert_allclose(np.abs(exact).sum(), np.abs(split).sum(), rtol=1e-5)
    np.testing.assert_allclose(A @ split, y, atol=1e-8)
    assert np.abs(exact).sum() <= np.abs(x).sum() + 1e-9
    assert np.count_nonzero(np.abs(exact) > 1e-9) <= 30  # a corner of the program


def test_no_sign_pattern_can_lower_the_sum():
    """Duality: some Aᵀv has size 1 at most, and is the sign of x wherever x is not zero."""
    A, y, _ = problem(K=20, seed=1)
    x = basis_pursuit(A, y, solver="lp")
    used = np.abs(x) > 1e-9
    v = np.linalg.lstsq(A[:, used].T, np.sign(x[used]), rcond=None)[0]
    np.testing.assert_allclose(A[:, used].T @ v, np.sign(x[used]), atol=1e-8)
    if np.count_nonzero(used) == len(A):  # then v is the only one
        assert np.abs(A.T @ v).max() <= 1 + 1e-8


def test_operators_do():
    A, y, x = problem()
    np.testing.assert_allclose(basis_pursuit(aslinearoperator(A), y), x, atol=1e-6)
    found = basis_pursuit_denoise(aslinearoperator(A), y, reg=0.01)
    np.testing.assert_allclose(found, basis_pursuit_denoise(A, y, reg=0.01), atol=1e-10)


@pytest.mark.parametrize("reg", [0.01, 0.1, 0.5])
def test_denoising_meets_its_conditions_and_the_peer(reg):
    A, y, _ = problem()
    y = y + 0.05 * np.random.default_rng(1).normal(size=len(y))
    x = basis_pursuit_denoise(A, y, reg=reg, tol=1e-10)
    slope = A.T @ (y - A @ x)
    assert np.abs(slope).max() <= reg * (1 + 1e-6)
    np.testing.assert_allclose(slope[np.abs(x) > 1e-9], reg * np.sign(x[np.abs(x) > 1e-9]), rtol=1e-5)
    peer = Lasso(alpha=reg / len(y), fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A, y)
    np.testing.assert_allclose(x, peer.coef_, atol=1e-6)


def test_the_noise_decides_how_much_is_explained():
    A, y, x = problem(m=50)
    noisy = y + 0.05 * np.random.default_rng(1).normal(size=len(y))
    found = basis_pursuit_denoise(A, noisy, sigma=0.05)
    np.testing.assert_allclose(np.linalg.norm(A @ found - noisy), 0.05 * np.sqrt(50), rtol=2e-3)
    assert np.linalg.norm(found - x) < 0.2 * np.linalg.norm(x)
    assert not basis_pursuit_denoise(A, noisy, sigma=100).any()


def test_nothing_measured_is_nothing():
    A, _, _ = problem()
    assert not basis_pursuit(A, np.zeros(30)).any()
    assert not basis_pursuit(A, np.zeros(30), solver="admm").any()
    assert not basis_pursuit_denoise(A, np.zeros(30), reg=0.1).any()


def test_too_few_steps_are_said():
    A, y, _ = problem()
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        basis_pursuit(A, y, solver="admm", max_iter=3)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        basis_pursuit_denoise(A, y, reg=0.01, max_iter=3)


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda A, y: basis_pursuit(A, y[:3]), "measurements"),
        (lambda A, y: basis_pursuit(A, y, solver="no"), "not one of"),
        (lambda A, y: basis_pursuit(aslinearoperator(A), y, solver="lp"), "admm"),
        (lambda A, y: basis_pursuit(A * np.nan, y), "NaN"),
        (lambda A, y: basis_pursuit(np.vstack([A[:1], A[:1]]), [0.0, 1.0]), "no x has"),
        (lambda A, y: basis_pursuit_denoise(A, y), "reg"),
        (lambda A, y: basis_pursuit_denoise(A, y, reg=1, sigma=1), "not both"),
        (lambda A, y: basis_pursuit_denoise(A, y, sigma=-1), "sigma=-1"),
    ],
)
def test_bad_input_is_named(call, word):
    A, y, _ = problem()
    with pytest.raises(InputError, match=word):
        call(A, y)


def test_a_coder_codes_as_the_pursuit_does(tmp_path):
    rng = np.random.default_rng(0)
    D, X = rng.normal(size=(40, 20)), rng.normal(size=(15, 20))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    coder = SparseCoder(D, transform_n_nonzero_coefs=3).fit(X)
    codes = coder.transform(X)
    np.testing.assert_allclose(codes, orthogonal_matching_pursuit(D, X, n_nonzero=3).toarray(), atol=1e-10)
    np.testing.assert_allclose(coder.inverse_transform(codes), codes @ D)
    assert coder.transform(X.astype(np.float32)).dtype == np.float32
    coder.save(tmp_path / "coder.twofold")
    np.testing.assert_array_equal(load(tmp_path / "coder.twofold").transform(X), codes)
    with pytest.raises(InputError, match="20 numbers"):
        SparseCoder(D).fit(X[:, :5])
    X[3, 4] = np.nan
    with pytest.raises(InputError, match=r"X\[3, 4\]"):
        coder.transform(X)
