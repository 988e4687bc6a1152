"""ForestImpute: trees as arrays predict what scikit-learn's do, and forests fill what depends on other columns."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier

import twofold
from twofold import ForestImpute, InputError, ModelFileError
from twofold.completion.forest_impute import as_arrays, join_trees
from twofold.kernels.trees import average_leaves


def make_mixed(n=400, seed=0):
    """Two numbers, their product, the sign of one, and a category of three levels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return np.column_stack([x, x[:, 0] * x[:, 1], x[:, 0] > 0, np.digitize(x[:, 1], [-0.5, 0.5])])


LEVELS = [0, 0, 0, 2, 3]


def hide(X, share=0.1, seed=1):
    holes = np.random.default_rng(seed).random(X.shape) < share
    return np.where(holes, np.nan, X), holes


@pytest.mark.parametrize("cls", [ExtraTreesRegressor, RandomForestClassifier])
def test_arrays_of_trees_predict_what_the_forest_predicts(cls):
    rng = np.random.default_rng(0)
    F = rng.normal(size=(200, 4)).astype(np.float32)
    y = np.digitize(F[:, 0] + F[:, 1] * F[:, 2], [-1, 0.5])
    forest = cls(5, random_state=0).fit(F, y)
    levels = getattr(forest, "classes_", None)
    n_levels = 0 if levels is None else 3
    trees = join_trees([as_arrays(one.tree_, np.arange(4), n_levels, levels) for one in forest.estimators_], axis=1)
    new = rng.normal(size=(100, 4)).astype(np.float32)
    found = average_leaves(new, trees.roots[0], *trees[1:], n_levels or 2)
    expected = forest.predict(new)[:, None] if levels is None else forest.predict_proba(new)
    np.testing.assert_allclose(found[:, : expected.shape[1]], expected, atol=1e-6)


def test_blanks_are_filled_and_known_cells_stay():
    X = make_mixed()
    shown, holes = hide(X)
    model = ForestImpute(levels=LEVELS, random_state=0).fit(shown)
    filled, unsure = model.impute(shown, return_std=True)
    np.testing.assert_array_equal(filled[~holes], X[~holes])
    assert not np.isnan(filled).any() and (unsure[~holes] == 0).all()
    assert np.isin(filled[:, 3], [0, 1]).all() and np.isin(filled[:, 4], [0, 1, 2]).all()
    assert (filled == X)[holes[:, 3], 3].mean() > 0.8
    product = holes[:, 2]
    assert np.mean((filled - X)[product, 2] ** 2) < 0.5 * X[:, 2].var()  # no linear model can


def test_rows_of_the_fit_are_filled_like_new_ones():
    shown, _ = hide(make_mixed())
    model = ForestImpute(levels=LEVELS, random_state=0).fit(shown)
    np.testing.assert_array_equal(model.transform(shown)[50:60], model.transform(shown[50:60]))


def test_columns_without_blanks_in_the_fit_get_trees_unless_told_otherwise():
    X = make_mixed()
    shown = X.copy()
    shown[:40, 0] = np.nan
    new, holes = hide(make_mixed(seed=5))
    holes[:, 0] = False
    error = {}
    for columns in ("all", "blank"):
        filled = ForestImpute(levels=LEVELS, columns=columns, random_state=0).fit(shown).transform(new)
        error[columns] = np.mean((filled == make_mixed(seed=5))[holes[:, 3], 3])
    assert error["all"] > error["blank"] + 0.15


def test_a_sure_guess_is_more_often_right():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 2))
    flag = np.where(x[:, 1] > 0, x[:, 0] > 0, rng.random(1000) < 0.5)  # a coin decides in half of the rows
    X = np.column_stack([x, flag])
    shown = X.copy()
    shown[:300, 2] = np.nan
    filled, unsure = ForestImpute(levels=[0, 0, 2], random_state=0).fit(shown).impute(shown, return_std=True)
    right, chance = (filled == X)[:300, 2], 1 - unsure[:300, 2]
    assert (chance >= 0.5 - 1e-6).all()
    sure = chance > np.median(chance)
    assert right[sure].mean() > right[~sure].mean() + 0.15


def test_threads_do_not_change_a_bit():
    shown, _ = hide(make_mixed())
    out = []
    for threads in (1, 2):
        with twofold.config(threads=threads):
            out.append(ForestImpute(5, levels=LEVELS, random_state=3).fit(shown).transform(shown))
    np.testing.assert_array_equal(*out)


def test_wrong_codes_are_refused():
    with pytest.raises(InputError, match="column 1"):
        ForestImpute(levels=[0, 2]).fit([[1.0, 0.0], [2.0, 2.0]])
    with pytest.raises(InputError, match="levels"):
        ForestImpute(levels=[0]).fit([[1.0, 0.0], [2.0, 2.0]])


@pytest.mark.parametrize("damage", ["nexts_", "roots_", "leaves_"])
def test_a_file_whose_trees_lead_outside_their_arrays_is_refused(tmp_path, damage):
    shown, _ = hide(make_mixed(60))
    model = ForestImpute(3, levels=LEVELS, random_state=0).fit(shown)
    model.leaves_ = model.leaves_[:-9] if damage == "leaves_" else model.leaves_
    model.nexts_ = model.nexts_ + (damage == "nexts_") * 10**9
    model.roots_ = model.roots_ + (damage == "roots_") * 10**9
    model.save(tmp_path / "m.twofold")
    with pytest.raises(ModelFileError, match="outside"):
        twofold.load(tmp_path / "m.twofold")
