"""Groups of similar patches against plain NumPy."""

import numpy as np
import pytest

from twofold.kernels.similar_patches import clean_rows, invert_covariance


def clean_plainly(noisy, pilot, second, size, radius, n, step):
    """The same, group by group, with eigenvectors of the covariance."""
    h, w = noisy.shape
    sums, counts = np.zeros((h, w)), np.zeros((h, w))
    down, across = h - size + 1, w - size + 1
    for i in {*range(0, down, step), down - 1}:
        for j in {*range(0, across, step), across - 1}:
            rows = range(max(i - radius, 0), min(i + radius, down - 1) + 1)
            columns = range(max(j - radius, 0), min(j + radius, across - 1) + 1)
            near = [(a, b) for a in rows for b in columns]
            guide = np.array([pilot[a : a + size, b : b + size].ravel() for a, b in near])
            best = np.argsort(((guide - pilot[i : i + size, j : j + size].ravel()) ** 2).sum(axis=1))[:n]
            Y = np.array([noisy[a : a + size, b : b + size].ravel() for a, b in near])[best]
            values, axes = np.linalg.eigh(np.cov(guide[best].T))
            gains = values / (values + 1) if second else (values - 1) / values
            clean = Y.mean(axis=0) + (Y - Y.mean(axis=0)) @ (axes * gains) @ axes.T
            for q, patch in zip(best, clean, strict=True):
                a, b = near[q]
                sums[a : a + size, b : b + size] += patch.reshape(size, size)
                counts[a : a + size, b : b + size] += 1
    return sums, counts


@pytest.mark.parametrize("second", [False, True])
def test_a_group_is_shrunk_in_its_principal_directions(second):
    rng = np.random.default_rng(0)
    noisy = 9 * rng.normal(size=(17, 19))  # so wild that no pivot is held up
    pilot = noisy + rng.normal(size=noisy.shape) if second else noisy
    expected = clean_plainly(noisy, pilot, second, 3, 6, 40, 2)
    sums, counts = np.zeros((1, 17, 19)), np.zeros((17, 19))
    clean_rows(noisy[None], pilot[None], pilot, second, 3, 6, 40, 2, 1.2, (0, 15), 0, sums, counts)
    np.testing.assert_array_equal(counts, expected[1])
    np.testing.assert_allclose(sums[0], expected[0], rtol=1e-9)


def test_few_patches_are_filled_up_with_noise():
    group = np.zeros((1, 4))
    np.testing.assert_allclose(invert_covariance(group, 0.0, 8), 9 / 8 * np.eye(4))
