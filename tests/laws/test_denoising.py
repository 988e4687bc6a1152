"""Denoising takes the noise and leaves the picture, whatever the picture is made of."""

import numpy as np
import pytest
from scipy.ndimage import uniform_filter

from twofold.signals import denoise_image, estimate_sigma
from twofold.signals.images import patches
from twofold.signals.images.channels import OPPONENT


def scene(h=80, w=88):
    """Smooth shades, sharp edges and a fine pattern, in 0..255."""
    y, x = np.mgrid[:h, :w] / 80
    picture = 60 + 80 * y + 40 * np.sin(3 * x)
    picture[(x - 0.5) ** 2 + (y - 0.4) ** 2 < 0.06] += 60
    picture[h // 2 :, : w // 3] += 25 * np.sign(np.sin(120 * (x + 0.5 * y)))[h // 2 :, : w // 3]
    return picture.clip(0, 255)


def noise(sigma, shape, seed=0):
    return np.random.default_rng(seed).normal(scale=sigma, size=shape)


def psnr(image, clean):
    return 10 * np.log10(255**2 / np.mean((np.asarray(image, dtype=float) - clean) ** 2))


@pytest.mark.parametrize(("sigma", "rise"), [(10, 4), (30, 6)])
def test_it_beats_averaging_and_fixed_cosines(sigma, rise):
    clean = scene()
    noisy = clean + noise(sigma, clean.shape)
    learned = psnr(denoise_image(noisy, sigma, random_state=0), clean)
    fixed = psnr(denoise_image(noisy, sigma, max_iter=0, random_state=0), clean)
    assert learned > psnr(noisy, clean) + rise
    assert learned > max(psnr(uniform_filter(noisy, size), clean) for size in (3, 5)) + 1
    assert learned > fixed


def test_it_is_the_weighted_average_of_the_coded_patches():
    # over a dictionary that never gets to code, because all patches are noise, a patch becomes its mean
    flat = noise(1, (24, 30))
    means = np.zeros((24, 30))
    for i in range(24 - 7):
        for j in range(30 - 7):
            means[i : i + 8, j : j + 8] += flat[i : i + 8, j : j + 8].mean()
    trust = 30 / 255 * np.subtract(*np.percentile(flat, [99, 1])) / 2
    expected = (means + trust * flat) / (patches.count_patches((24, 30), 8) + trust)
    np.testing.assert_allclose(denoise_image(flat, 2.0, method="ksvd"), expected, atol=1e-6)


@pytest.mark.parametrize("sigma", [2.0, 10.0, 40.0])
def test_noise_is_estimated_within_five_percent(sigma):
    y, x = np.mgrid[:200, :201]
    smooth = 100 + 50 * np.sin(x / 30) * np.cos(y / 40)
    assert estimate_sigma(smooth + noise(sigma, smooth.shape)) == pytest.approx(sigma, rel=0.05)
    colors = np.stack([smooth, 0.5 * smooth, 255 - smooth], axis=2)
    assert estimate_sigma(colors + noise(sigma, colors.shape)) == pytest.approx(sigma, rel=0.05)


@pytest.mark.parametrize("sigma", [None, 0, 20])
@pytest.mark.parametrize("shape", [(20, 30), (20, 30, 3), (1, 1), (3, 2), (1, 40), (5, 5, 4)])
def test_constant_pictures_stay(shape, sigma):
    image = np.full(shape, 77, np.uint8)
    np.testing.assert_array_equal(denoise_image(image, sigma), image)
    np.testing.assert_allclose(denoise_image(image / 3.0, sigma), image / 3.0, rtol=1e-6)


def test_pictures_smaller_than_a_patch_are_denoised_too():
    image = np.full((4, 60), 100.0) + noise(10, (4, 60))
    assert denoise_image(image, 10).std() < 0.5 * image.std()


def test_faint_noise_in_a_deep_picture_is_found():
    clean = 200 * scene(40, 40)
    image = (clean + noise(5, clean.shape)).astype(np.uint16)  # one part in ten thousand
    result = denoise_image(image, 5, max_iter=1, random_state=0).astype(float)
    assert np.abs(result - image).max() < 6 * 5  # nothing goes that is larger than noise
    smooth = np.s_[2:12, -12:-2]
    assert np.std((result - clean)[smooth]) < 0.8 * np.std((image - clean)[smooth])


def test_what_is_not_sparse_stays():
    texture = noise(100, (40, 40))
    np.testing.assert_allclose(denoise_image(texture, 1.0, max_iter=2, random_state=0), texture, atol=0.5)


def test_colours_are_turned_without_changing_the_noise():
    np.testing.assert_allclose(OPPONENT @ OPPONENT.T, np.eye(3), atol=1e-15)
    grey = np.repeat(scene()[..., None], 3, axis=2) @ OPPONENT.T
    assert np.abs(grey[..., 1:]).max() < 1e-10


def test_strips_make_the_same_picture(monkeypatch):
    image = scene() + noise(20, (80, 88))
    whole = denoise_image(image, 20, max_iter=2, random_state=0)
    monkeypatch.setattr(patches, "PLACES_PER_STRIP", 500)
    assert len(patches.cut_strips(image.shape, 8)) > 10
    np.testing.assert_allclose(denoise_image(image, 20, max_iter=2, random_state=0), whole, rtol=1e-9)


@pytest.mark.parametrize(("shape", "size"), [((20, 31), 8), ((8, 8), 8), ((9, 30), 8), ((5, 7), 1), ((7, 12), 5)])
def test_patches_laid_back_make_the_picture(shape, size, monkeypatch):
    monkeypatch.setattr(patches, "PLACES_PER_STRIP", 50)
    image = noise(1, shape)
    total = np.zeros(shape)
    for rows in patches.cut_strips(shape, size):
        some = patches.take_patches(image, size, rows)
        first = rows.start * (shape[1] - size + 1)
        np.testing.assert_array_equal(some, patches.take_patches_at(image, size, first + np.arange(len(some))))
        total[rows.start : rows.stop + size - 1] += patches.sum_patches(some, size, shape[1])
    np.testing.assert_allclose(total, image * patches.count_patches(shape, size))


@pytest.mark.parametrize("sigma", [0.02, 0.2, 2.0])
def test_noise_far_below_the_edges_goes_too(sigma):
    clean = 250.0 * (np.add.outer(np.arange(64), np.arange(64)) % 16 > 7)  # covariances of very different directions
    noisy = (clean + noise(sigma, clean.shape)).astype(np.float32)
    assert np.std(denoise_image(noisy, sigma) - clean) < 0.5 * sigma
