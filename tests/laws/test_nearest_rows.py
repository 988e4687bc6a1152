"""NearestRows: the group of the nearest labeled row, and none beyond max_distance."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from twofold import InputError, NearestRows


def draw(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(80, 3)) * [1, 10, 0.1] + [0, 1e4, 5], rng.integers(-1, 3, 80), rng


def test_rows_go_with_the_nearest_and_labeled_rows_keep_their_group():
    X, groups, rng = draw()
    model, new = NearestRows().fit(X, groups), X[rng.permutation(80)] + 0.3 * rng.normal(size=(80, 3))
    gaps = cdist(new, X)
    np.testing.assert_array_equal(model.predict(X), groups)
    np.testing.assert_array_equal(model.predict(new), groups[gaps.argmin(axis=1)])
    np.testing.assert_allclose(model.transform(new)[:, 0], gaps.min(axis=1), rtol=1e-6)


def test_beyond_its_reach_is_an_outlier():
    X, _, _ = draw()
    model = NearestRows(max_distance=1.0).fit(X, np.zeros(80, int))
    assert model.predict(X + [0.9, 0, 0]).max() == 0
    assert model.predict(X[:5] + [1e4, 0, 0]).tolist() == [-1] * 5


def test_units_can_be_taken_in():
    X, groups, rng = draw()
    scale = X.std(axis=0)
    model, new = NearestRows(max_distance=2.0).fit(X / scale, groups), X + rng.normal(size=X.shape) * scale
    np.testing.assert_array_equal(model.rescaled(scale).predict(new), model.predict(new / scale))


def test_what_is_no_group_is_refused():
    X, groups, _ = draw()
    for wrong in (groups[:5], groups - 5, groups + 0.5):
        with pytest.raises(InputError, match="the group of every row"):
            NearestRows().fit(X, wrong)
