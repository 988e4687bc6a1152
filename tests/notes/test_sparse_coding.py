"""Worked examples of sparse coding in the notes; docs/learn/concordance.md names the sets."""

import numpy as np
import pytest

from twofold.signals import (
    Fourier,
    Haar,
    coherence,
    keep_largest,
    matching_pursuit,
    orthogonal_matching_pursuit,
    recovery_bound,
    sparsest_code,
)


def test_matching_pursuit_that_never_ends():
    """Formula sheet, matching pursuit: two steps halve what is left, without end."""
    U = np.array([[1, 0], [np.sqrt(2) / 2, np.sqrt(2) / 2], [np.sqrt(3) / 2, 1 / 2]])
    errors = matching_pursuit(U, [0.0, 1.0], n_steps=40).errors
    np.testing.assert_allclose(errors[::2], 0.5 ** np.arange(21), rtol=1e-9)
    assert errors[-1] > 0
    exact = orthogonal_matching_pursuit(U, np.array([0.0, 1.0]), n_nonzero=2)
    np.testing.assert_allclose(exact @ U, [0, 1], atol=1e-12)  # two atoms were enough


def test_matching_pursuit_that_takes_a_detour():
    """Formula sheet, matching pursuit: three atoms where two would do."""
    U, x = np.array([[1, 0], [0, 1], [np.sqrt(2) / 2, np.sqrt(2) / 2]]), np.array([2.0, 1.0])
    assert np.isclose((U @ x).max(), 3 / np.sqrt(2)) and np.argmax(U @ x) == 2
    found = matching_pursuit(U, x, n_steps=3)
    np.testing.assert_allclose(found.codes, [0.5, -0.5, 3 / np.sqrt(2)], atol=1e-12)
    np.testing.assert_allclose(found.errors, [np.sqrt(5), np.sqrt(0.5), 0.5, 0], atol=1e-12)
    np.testing.assert_allclose(np.array([2.0, 1.0, 0.0]) @ U, x)


@pytest.mark.parametrize("d", [4, 16, 64])
def test_an_atom_added_to_a_basis_has_a_coherence_of_at_least_one_over_the_root_of_d(d):
    """Fei § 9.2.1; Çetin § 9.3."""
    basis = Haar().matrix(d)
    assert coherence(basis) == pytest.approx(0, abs=1e-12)
    least = np.full(d, 1 / np.sqrt(d)) @ basis  # equal products with all atoms
    assert coherence(np.vstack([basis, least])) == pytest.approx(1 / np.sqrt(d))
    for seed in range(20):
        u = np.random.default_rng(seed).normal(size=d)
        assert coherence(np.vstack([basis, u / np.linalg.norm(u)])) >= 1 / np.sqrt(d) - 1e-12


def test_a_basis_that_can_hardly_be_inverted():
    """Fei § 9.2.2."""
    e = 1e-10
    U = 0.5 * np.array([[1, 1], [1 + e, 1 - e]])
    stated = np.array([[1 - 1 / e, 1 / e], [1 + 1 / e, -1 / e]])
    np.testing.assert_allclose(np.linalg.inv(U), stated, rtol=1e-5)  # a relative error of 1e-16 · 2e10
    assert np.linalg.cond(U) == pytest.approx(2e10, rel=1e-3)
    assert recovery_bound(U) < 1.01  # no two atoms can be told apart


def test_two_planes_need_two_atoms_of_four():
    """Fei § 9.2.1: points on two planes in R³, four atoms, K = 2, no error; a basis needs three."""
    rng = np.random.default_rng(0)
    first, second = (np.linalg.qr(rng.normal(size=(3, 2)))[0].T for _ in range(2))
    X = np.vstack([rng.normal(size=(50, 2)) @ plane for plane in (first, second)])

    four, basis = np.vstack([first, second]), np.linalg.svd(X, full_matrices=False)[2]
    for x in X:
        code = sparsest_code(four, x)
        assert np.count_nonzero(code) <= 2
        np.testing.assert_allclose(code @ four, x, atol=1e-8)
        assert np.count_nonzero(sparsest_code(basis, x)) == 3


def test_energy_lost_is_the_energy_dropped():
    """Fei § 9.1.2: 3 % of the Fourier coefficients of a noisy trend; § 9.1.4: one in sixteen wavelets of a picture."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 1000)
    trend = np.sin(2 * np.pi * t) + 0.5 * np.cos(6 * np.pi * t)
    x = trend + 0.1 * rng.normal(size=1000)
    codes, lost = keep_largest(Fourier().analyze(x), 30)
    smooth = Fourier().synthesize(codes)
    assert ((x - smooth) ** 2).sum() == pytest.approx(lost)
    assert ((trend - smooth) ** 2).sum() < ((trend - x) ** 2).sum()  # what went was mostly noise
    picture = np.add.outer(np.arange(64.0), np.arange(64.0)) + 50 * (np.indices((64, 64)).sum(axis=0) > 70)
    haar = Haar(ndim=2)
    codes, lost = keep_largest(haar.analyze(picture), 64 * 64 // 16)
    assert ((picture - haar.synthesize(codes)) ** 2).sum() == pytest.approx(lost)
