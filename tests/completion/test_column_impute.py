"""ColumnImpute: every column is what its own model makes of it."""

import numpy as np
import pytest

import twofold
from tests.completion.test_forest_impute import LEVELS, hide, make_mixed
from twofold import PPCA, ColumnImpute, ForestImpute, InputError, MeanImpute


def test_each_column_is_that_of_its_model():
    X = np.random.default_rng(0).normal(size=(80, 3)) @ np.random.default_rng(1).normal(size=(3, 4))
    shown, _ = hide(X)
    models = [PPCA(1, scale=True, random_state=0), ForestImpute(5, random_state=0)]
    both = ColumnImpute(models, chosen=[0, 1, 0, 1]).fit(shown).transform(shown)
    low, high = np.nanmin(shown, axis=0), np.nanmax(shown, axis=0)
    alone = [np.clip(model.fit(shown).impute(shown), low, high) for model in models]
    np.testing.assert_allclose(both[:, ::2], alone[0][:, ::2], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(both[:, 1::2], alone[1][:, 1::2], rtol=1e-6, atol=1e-9)


def test_means_of_categories_are_modes():
    shown, holes = hide(make_mixed())
    filled, unsure = ColumnImpute([MeanImpute()], levels=LEVELS).fit(shown).impute(shown, return_std=True)
    for j, n_levels in enumerate(LEVELS):
        own, known = holes[:, j], shown[~holes[:, j], j]
        if n_levels:
            counts = np.bincount(known.astype(int))
            assert (filled[own, j] == counts.argmax()).all()
            np.testing.assert_allclose(unsure[own, j], 1 - counts.max() / counts.sum())
        else:
            np.testing.assert_allclose(filled[own, j], known.mean(), atol=1e-12)


def test_guesses_are_what_the_column_can_hold():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.poisson(2, 200), rng.integers(0, 2, 200), rng.normal(size=200)]).astype(float)
    shown, holes = hide(X, 0.3)
    model = ColumnImpute([PPCA(2, random_state=0)], levels=[0, 2, 0], whole=[True, False, False]).fit(shown)
    filled = model.transform(shown)
    assert (filled[:, 0] == np.round(filled[:, 0])).all() and np.isin(filled[:, 1], [0, 1]).all()
    assert (filled >= np.nanmin(shown, axis=0)).all() and (filled <= np.nanmax(shown, axis=0)).all()
    np.testing.assert_array_equal(filled[~holes], X[~holes])


def test_saved_and_loaded_fills_the_same(tmp_path):
    shown, _ = hide(make_mixed())
    models = [ForestImpute(5, levels=LEVELS, random_state=0), MeanImpute()]
    model = ColumnImpute(models, chosen=[0, 1, 0, 1, 0], levels=LEVELS).fit(shown)
    model.save(tmp_path / "m.twofold")
    np.testing.assert_array_equal(twofold.load(tmp_path / "m.twofold").transform(shown), model.transform(shown))


def test_a_column_without_a_model_is_refused():
    with pytest.raises(InputError, match="chosen"):
        ColumnImpute([MeanImpute()], chosen=[0, 1]).fit([[1.0, 2.0], [2.0, 1.0]])
