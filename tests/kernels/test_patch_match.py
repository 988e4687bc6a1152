"""Matches of patches against a search of all places."""

import numpy as np

from twofold.kernels.patch_match import improve_matches, measure_matches, vote


def test_matches_of_a_repeated_pattern_are_found():
    rng = np.random.default_rng(0)
    image = np.tile(rng.normal(size=(8, 8, 1)), (5, 5, 1))  # every patch is there again, 8 pixels away
    size, h = 5, 36
    usable = np.ones((h, h), bool)
    usable[10:20, 10:20] = False
    places = np.argwhere(~usable)
    matches, distances = np.zeros((h, h, 2), np.int64), np.full((h, h), np.inf)
    measure_matches(image, places, matches, size, distances)
    windows = np.lib.stride_tricks.sliding_window_view(image[..., 0], (size, size))
    np.testing.assert_allclose(distances[10, 12], np.sum((windows[10, 12] - windows[0, 0]) ** 2))
    state = np.array([7], np.uint64)
    before = distances[~usable].copy()
    for turn in range(12):
        improve_matches(image, places, usable, size, matches, distances, turn % 2 == 1, state)
    assert (distances[~usable] <= before).all() and usable[tuple(matches[~usable].T)].all()
    assert (distances[~usable] < 1e-20).all()  # chance finds one, and neighbors take it over
    np.testing.assert_array_equal(distances[usable], np.inf)
    sums, counts = np.zeros_like(image), np.zeros((40, 40))
    vote(image, places, matches, np.full(len(places), 2.0), size, sums, counts)
    np.testing.assert_allclose(sums[counts > 0] / counts[counts > 0][:, None], image[counts > 0])
    assert counts.sum() == 2 * size**2 * len(places)
