"""Bases keep lengths, give signals back, and are what the books define."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold import InputError, PCABasis
from twofold.signals import DCT, Fourier, Gabor, Haar, Union, Wavelet, keep_largest, threshold

BASES = [Fourier(), DCT(), Haar(), Wavelet(wavelet="db2"), Wavelet(wavelet="sym4", levels=2)]
PLANES = [Fourier(2), DCT(2), Haar(2), Wavelet(2, wavelet="db2")]


@pytest.mark.parametrize("basis", BASES, ids=repr)
@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 13, 64, 100])
def test_any_length_has_an_orthonormal_basis(basis, d):
    D = basis.matrix(d)
    np.testing.assert_allclose(D @ D.T, np.eye(d), atol=1e-9)
    X = np.random.default_rng(d).normal(size=(5, d))
    C = basis.analyze(X)
    np.testing.assert_allclose(C, X @ D.T, atol=1e-9)
    np.testing.assert_allclose(basis.synthesize(C), X, atol=1e-9)
    np.testing.assert_allclose((C**2).sum(), (X**2).sum())  # Parseval


@pytest.mark.parametrize("basis", PLANES, ids=repr)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (8, 8), (6, 9), (16, 4)])
def test_so_has_any_image(basis, shape):
    k = np.prod(shape)
    D = basis.matrix(shape)
    np.testing.assert_allclose(D @ D.T, np.eye(k), atol=1e-9)
    X = np.random.default_rng(k).normal(size=(2, 3, *shape))
    C = basis.analyze(X)
    assert C.shape == X.shape
    np.testing.assert_allclose(basis.synthesize(C), X, atol=1e-9)
    np.testing.assert_allclose((C**2).sum(), (X**2).sum())


def test_haar_matrices_are_the_textbook_s():
    r = np.sqrt(2)
    four = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [r, -r, 0, 0], [0, 0, r, -r]]) / 2
    np.testing.assert_allclose(Haar().matrix(4), four, atol=1e-15)
    eight = np.zeros((8, 8))
    eight[0], eight[1] = 1, [1, 1, 1, 1, -1, -1, -1, -1]
    eight[2, :4], eight[3, 4:] = [r, r, -r, -r], [r, r, -r, -r]
    for i in range(4):
        eight[4 + i, 2 * i : 2 * i + 2] = [2, -2]
    np.testing.assert_allclose(Haar().matrix(8), eight / np.sqrt(8), atol=1e-15)


def test_atoms_of_dct_and_fourier_are_waves():
    n = np.arange(8)
    np.testing.assert_allclose(DCT().matrix(8)[3], 0.5 * np.cos(np.pi * 3 * (2 * n + 1) / 16), atol=1e-12)
    n = np.arange(9)
    D = Fourier().matrix(9)
    np.testing.assert_allclose(D[3], np.sqrt(2 / 9) * np.cos(2 * np.pi * 2 * n / 9), atol=1e-12)
    np.testing.assert_allclose(D[4], np.sqrt(2 / 9) * np.sin(2 * np.pi * 2 * n / 9), atol=1e-12)


@pytest.mark.parametrize(
    ("basis", "shape"),
    [
        (DCT(2), (5, 4)),
        (Gabor(), (30,)),
        (Gabor(phases=2), (30,)),
        (Gabor(step=3), (30,)),
        (Gabor(2), (9, 12)),
        (Gabor(2, phases=2, step=2), (8, 10)),
        (Union(DCT(), Haar(), shape=16), (16,)),
        (Union(DCT(2), Gabor(2, step=2), shape=(6, 8)), (6, 8)),
    ],
    ids=repr,
)
def test_analysis_and_synthesis_are_products_with_the_atoms(basis, shape):
    rng, D, A = np.random.default_rng(0), basis.matrix(shape), basis.operator(shape)
    x, codes = rng.normal(size=shape), rng.normal(size=basis.coefficients(shape))
    np.testing.assert_allclose(np.linalg.norm(D, axis=1), 1)
    np.testing.assert_allclose(basis.analyze(x).ravel(), D @ x.ravel(), atol=1e-12)
    np.testing.assert_allclose(basis.synthesize(codes).ravel(), codes.ravel() @ D, atol=1e-12)
    np.testing.assert_allclose(A.T @ x.ravel(), D @ x.ravel(), atol=1e-12)
    np.testing.assert_allclose(A @ codes.ravel(), codes.ravel() @ D, atol=1e-12)
    if isinstance(basis, Union):
        np.testing.assert_allclose(D, np.vstack([one.matrix(shape) for one in basis.bases]), atol=1e-12)
        np.testing.assert_allclose(sum(basis.separate(codes)).ravel(), codes @ D, atol=1e-12)


@pytest.mark.parametrize("basis", [*BASES, Gabor()], ids=repr)
def test_single_precision_stays(basis):
    X = np.random.default_rng(0).normal(size=(3, 12)).astype(np.float32)
    assert basis.analyze(X).dtype == np.float32
    assert basis.synthesize(basis.analyze(X)).dtype == np.float32


def test_no_basis_of_its_size_loses_less_than_pca():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20)) @ rng.normal(size=(20, 20)) * np.linspace(0.1, 3, 20)
    pca = PCABasis().fit(X)
    np.testing.assert_allclose(pca.synthesize(pca.analyze(X)), X)
    centered = X - X.mean(axis=0)
    for k in (1, 5, 19):
        left = (pca.analyze(X)[:, :k] ** 2).sum()
        for basis in BASES:
            energy = np.sort((basis.analyze(centered) ** 2).sum(axis=0))[-k:].sum()
            assert left >= energy * (1 - 1e-9)


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(0, 45), st.floats(0, 3), st.integers(0, 2**32 - 1))
def test_what_is_dropped_is_what_is_lost(d, n, level, seed):
    x = np.random.default_rng(seed).normal(size=d)
    for basis in (DCT(), Haar()):
        C = basis.analyze(x)
        for kept, lost in (keep_largest(C, n), threshold(C, level)):
            np.testing.assert_allclose(((x - basis.synthesize(kept)) ** 2).sum(), lost, atol=1e-9)
        assert np.count_nonzero(keep_largest(C, n)[0]) <= n


def test_the_largest_are_the_best_to_keep():
    C = np.random.default_rng(0).normal(size=30)
    rng = np.random.default_rng(1)
    best = keep_largest(C, 7)[1]
    for _ in range(50):
        others = rng.choice(30, 23, replace=False)
        assert best <= (C[others] ** 2).sum() + 1e-12


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: DCT(3), "ndim=3"),
        (lambda: DCT(2).analyze(np.ones(4)), "shape"),
        (lambda: DCT().analyze(["a", "b"]), "real numbers"),
        (lambda: Wavelet(wavelet="nothing").analyze(np.ones(8)), "nothing"),
        (lambda: Wavelet(wavelet="bior2.2").analyze(np.ones(8)), "orthogonal"),
        (lambda: Union(shape=3), "one basis or more"),
        (lambda: Union(DCT(), Haar(2), shape=3), "all for signals"),
        (lambda: Union(DCT(), Haar(), shape=8).analyze(np.ones(9)), "8"),
        (lambda: Union(DCT(), Haar(), shape=8).synthesize(np.ones(9)), "16 atoms"),
        (lambda: threshold(np.ones(3), -1), "level=-1"),
        (lambda: keep_largest(np.ones(3), -1), "n=-1"),
        (lambda: Gabor(phases=3), "phases=3"),
        (lambda: Gabor(step=0), "step=0"),
        (lambda: Gabor(step=4).analyze(np.ones(30)), "does not divide"),
    ],
)
def test_bad_input_is_named(call, word):
    with pytest.raises(InputError, match=word):
        call()


def test_a_grid_has_the_atoms_of_its_places():
    every, third = Gabor(phases=2).matrix(30), Gabor(phases=2, step=3).matrix(30)
    np.testing.assert_allclose(third, every.reshape(-1, 30, 30)[:, ::3].reshape(-1, 30), atol=1e-12)


@pytest.mark.parametrize("phase", [0.0, 0.7, np.pi / 2, 2.5])
def test_a_wave_of_any_phase_is_two_atoms(phase):
    n = np.arange(64) - 24
    x = np.exp(-(n**2) / 18) * np.cos(0.8 * n + phase)
    pair = Gabor(phases=2, frequencies=(0.8,)).matrix(64).reshape(2, 64, 64)[:, 24]  # the cosine and the sine there
    (cosine, sine), *_ = np.linalg.lstsq(pair.T, x, rcond=None)
    np.testing.assert_allclose(np.array([cosine, sine]) @ pair, x, atol=1e-12)
    alone = np.linalg.lstsq(pair[:1].T, x, rcond=None)[0] @ pair[:1]
    assert np.allclose(alone, x) == (phase == 0)
