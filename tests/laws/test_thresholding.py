"""Thresholds take noise and leave what stands above it, in any orthonormal basis, wherever a signal begins."""

import numpy as np
import pytest
import pywt

from twofold import InputError, PCABasis
from twofold.signals import DCT, Fourier, Gabor, Haar, Wavelet, denoise_image, denoise_signal, estimate_sigma, threshold
from twofold.signals.thresholding import sure_level, universal_level

BASES = [DCT(), Fourier(), Haar(), Wavelet(), Wavelet(wavelet="sym8")]


def estimate_risk(codes, level):
    """Stein's unbiased estimate of E‖soft(c) − truth‖² for coefficients with noise of 1."""
    size = np.abs(codes, dtype=np.float64).ravel()
    return float(size.size - 2 * np.count_nonzero(size <= level) + np.square(np.minimum(size, level)).sum())


def steps(d=512):
    return 7 * np.sign(np.sin(np.linspace(0, 9, d))) + np.linspace(0, 3, d)


def noise(shape, sigma=1.0, seed=0):
    return np.random.default_rng(seed).normal(scale=sigma, size=shape)


@pytest.mark.parametrize("method", ["hard", "soft"])
@pytest.mark.parametrize("level", [0.0, 0.3, 1.7, np.inf])
def test_thresholds_are_those_of_pywavelets(method, level):
    codes = noise((7, 30))
    left, lost = threshold(codes, level, method)
    np.testing.assert_allclose(left, pywt.threshold(codes, level, method) if level < np.inf else 0 * codes)
    assert lost == pytest.approx(np.sum((codes - left) ** 2))


def test_stein_is_right_on_average():
    # the mean over draws of the estimate is the mean of the true risk: within six standard errors of their difference
    rng = np.random.default_rng(0)
    truth = np.concatenate([np.zeros(40), np.linspace(-6, 6, 24)])
    for level in (0.5, 1.5, 3.0):
        gaps = []
        for _ in range(400):
            codes = truth + rng.normal(size=truth.size)
            gaps.append(estimate_risk(codes, level) - np.sum((threshold(codes, level, "soft")[0] - truth) ** 2))
        assert abs(np.mean(gaps)) < 6 * np.std(gaps) / np.sqrt(len(gaps))


def test_no_level_has_less_estimated_risk_than_the_one_that_is_chosen():
    codes = np.concatenate([noise(200), noise(60, 8.0, seed=1)])
    best = estimate_risk(codes, sure_level(codes))
    others = np.linspace(0, universal_level(codes.size), 500)
    assert best <= min(estimate_risk(codes, level) for level in others) + 1e-9


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("options", [{}, {"method": "soft"}, {"method": "soft", "level": "universal"}])
def test_of_pure_noise_nearly_nothing_is_left(basis, options):
    # the averages that are kept are few; of the rest the universal level lets through one coefficient in 512 or so
    pure = noise(4096)
    assert denoise_signal(pure, 1.0, basis=basis, **options).std() < 0.25


@pytest.mark.parametrize("basis", BASES)
def test_bands_are_every_coefficient_once_and_without_a_threshold_nothing_changes(basis):
    for d in (1, 2, 7, 64, 100):
        bands = basis._bands((d,))
        assert bands.shape == (d,) and bands.min() == 0
    x = steps(100)
    np.testing.assert_allclose(denoise_signal(x, 1.0, basis=basis, level=0.0), x, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"method": "soft"}])
def test_cycle_spinning_does_not_mind_where_a_signal_begins(options):
    noisy = steps(256) + noise(256)
    basis = Haar(levels=4)  # its grid repeats itself every 16 steps
    expected = denoise_signal(noisy, 1.0, basis=basis, shifts=16, **options)
    for move in (1, 5, 16):
        moved = denoise_signal(np.roll(noisy, move), 1.0, basis=basis, shifts=16, **options)
        np.testing.assert_allclose(np.roll(moved, -move), expected, atol=1e-10)
    moved = denoise_signal(np.roll(noisy, 1), 1.0, basis=basis, shifts=1, **options)
    assert np.abs(np.roll(moved, -1) - denoise_signal(noisy, 1.0, basis=basis, shifts=1, **options)).max() > 0.1


@pytest.mark.parametrize("method", ["hard", "soft"])
@pytest.mark.parametrize("name", ["Blocks", "Bumps", "HeaviSine", "Doppler"])
def test_noise_falls_and_spinning_helps(name, method):
    clean = pywt.data.demo_signal(name, 1024)
    clean = 7 * clean / clean.std()
    noisy = clean + noise(1024)
    left = [np.std(denoise_signal(noisy, method=method, shifts=shifts) - clean) for shifts in (1, 16)]
    assert left[1] < left[0] < 1


def test_it_is_what_pywavelets_gives_by_hand():
    noisy = steps(256) + noise(256)
    level = universal_level(256)
    codes = pywt.wavedec(noisy, "sym8", "periodization", 4)
    by_hand = pywt.waverec([codes[0], *(pywt.threshold(c, level, "hard") for c in codes[1:])], "sym8", "periodization")
    found = denoise_signal(noisy, 1.0, basis=Wavelet(wavelet="sym8", levels=4), shifts=1)
    np.testing.assert_allclose(found, by_hand, atol=1e-9)


def test_pictures_are_what_pywavelets_gives_by_hand():
    image = 80.0 * (np.add.outer(np.arange(64), np.arange(48)) > 60) + noise((64, 48), 5.0)
    codes = pywt.wavedec2(image, "db4", "periodization", 2)
    soft = [tuple(pywt.threshold(c, 15.0, "soft") for c in bands) for bands in codes[1:]]
    by_hand = pywt.waverec2([codes[0], *soft], "db4", "periodization")
    found = denoise_image(image, 5.0, method="soft", basis=Wavelet(2, "db4", 2), level=3.0, shifts=1)
    np.testing.assert_allclose(found, by_hand, atol=1e-9)


def test_a_picture_is_cleaned_by_thresholds_too():
    rows, columns = np.mgrid[:96, :96]
    clean = 60.0 + 80 * ((rows - 40) ** 2 + (columns - 50) ** 2 < 700) + rows
    noisy = clean + noise(clean.shape, 20.0)
    for options in ({"method": "hard"}, {"method": "soft"}, {"method": "hard", "basis": DCT(2)}):
        assert np.std(denoise_image(noisy, **options) - clean) < 0.5 * 20
    colors = np.clip(np.dstack([noisy, noisy[::-1], noisy.T]), 0, 255).astype(np.uint8)
    found = denoise_image(colors, method="soft")
    assert found.shape == colors.shape and found.dtype == np.uint8


def test_the_basis_may_be_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) @ rng.normal(scale=6, size=(3, 40))
    noisy = X + rng.normal(size=X.shape)
    found = denoise_signal(noisy, 1.0, basis=PCABasis().fit(noisy))
    assert np.std(found - X) < 0.5


@pytest.mark.parametrize("dtype", [np.int16, np.uint8, np.float32, np.float64])
def test_shape_and_dtype_are_kept_and_signals_are_apart(dtype):
    x = np.stack([100 + 5 * steps(200), 80 + 3 * steps(200)]) + noise((2, 200), 4.0)
    x = x.astype(dtype)
    before = x.copy()
    found = denoise_signal(x)
    assert found.shape == x.shape and found.dtype == x.dtype
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(found[1], denoise_signal(x[1]))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int16])
def test_the_largest_integers_stay_in_their_range(dtype):
    top = np.iinfo(dtype).max
    x = np.full(64, top, dtype=dtype)
    x[::2] -= top // 7
    assert (denoise_signal(x, float(top) / 20) > top // 2).all()


def test_units_and_an_offset_do_not_matter():
    noisy = steps() + noise(512)
    expected = denoise_signal(noisy)
    np.testing.assert_allclose((denoise_signal(noisy * 2.0**50 + 2.0**52) - 2.0**52) / 2.0**50, expected, atol=1e-9)


@pytest.mark.parametrize("x", [np.zeros(50), np.full(50, 3.5), np.ones(1), np.arange(2.0), np.arange(5)])
def test_without_noise_signals_stay(x):
    np.testing.assert_array_equal(denoise_signal(x), x)
    np.testing.assert_array_equal(denoise_signal(x, 0), x)


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 40.0])
def test_noise_in_a_signal_is_estimated_within_ten_percent(sigma):
    # the median of 4000 sizes of noise has a standard error of 1.2 %
    x = sigma * (10 * np.sin(np.arange(8000) / 100) + 50 * (np.arange(8000) > 3000) + noise(8000))
    assert estimate_sigma(x) == pytest.approx(sigma, rel=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: denoise_signal([1.0, np.nan]), r"x\[1\] is nan.*interp"),
        (lambda: denoise_signal(3.0), r"\(\.\.\., d\)"),
        (lambda: denoise_signal(["a"]), "numbers along"),
        (lambda: denoise_signal(np.ones(9), -1), "sigma=-1"),
        (lambda: denoise_image(np.ones((9, 9)), np.nan), "sigma=nan"),
        (lambda: denoise_image(np.ones((9, 9)), "much"), "sigma='much'"),
        (lambda: denoise_signal(np.ones(9), method="firm"), "firm.*hard"),
        (lambda: denoise_signal(np.ones(9), level="best"), "'best'.*universal"),
        (lambda: denoise_signal(np.ones(9), level=-1.0), "level=-1.0"),
        (lambda: denoise_signal(np.ones(9), level="sure"), 'method="soft"'),
        (lambda: denoise_signal(np.ones(9), shifts=0), "shifts=0"),
        (lambda: denoise_signal(np.ones(9), basis=Gabor()), "basis_pursuit_denoise"),
        (lambda: denoise_signal(np.ones(9), basis=DCT(2)), "ndim=1"),
        (lambda: denoise_image(np.ones((9, 9)), method="bm3d"), "ksvd"),
        (lambda: denoise_image(np.ones((9, 9)), shifts=4), "shifts=4.*hard"),
        (lambda: threshold([1.0], 1.0, "firm"), "firm"),
    ],
)
def test_what_cannot_be_used_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
