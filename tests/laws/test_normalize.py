"""z-scores before a completion model: the same model by hand, and back."""

from copy import copy

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import twofold
from twofold import ALS, SVP, SVT, GradientFactorization, Neighborhood, Recommender, SoftImpute, SVDImpute, SVDPlusPlus

MODELS = [
    ALS(2, reg=0.1, random_state=0),
    ALS(2, random_state=0),
    GradientFactorization(2, reg=0.1, random_state=0),
    SVDImpute(2, max_iter=30, random_state=0),
    SVP(2, max_iter=30, random_state=0),
    SVT(max_iter=30, random_state=0),
    SoftImpute(1.0, random_state=0),
    SVDPlusPlus(2, max_iter=30, random_state=0),
    Neighborhood(5),
    Neighborhood(5, kind="user"),
]


def _table(seed=0, n=60, d=25):
    """Rows and columns of many levels and units; the last row has one known cell, the one before it all equal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.1 * rng.normal(size=(n, d))
    X *= np.exp(rng.normal(size=(n, 1)) + rng.normal(size=d))
    X += 10 * rng.normal(size=(n, 1)) + rng.normal(size=d)
    X[rng.random(X.shape) < 0.4] = np.nan
    X[-1] = np.nan
    X[-1, 3] = 7.0
    X[-2, ~np.isnan(X[-2])] = 4.0
    return X


def _moments(X):
    """Center and scale of every row by the formula, and what stands in for those of a row that has none."""
    there = ~np.isnan(X)
    n = there.sum(axis=1)
    center = np.nanmean(X, axis=1)
    gaps = np.where(there, X - center[:, None], 0.0)
    s, own = np.sqrt((gaps**2).sum() / n.sum()), np.sqrt((gaps**2).sum(axis=1) / n)
    equal = own < 1e-12
    return center, np.where(equal, s, s * (np.where(equal, s, own) / s) ** ((n - 1) / (n + 4)))


def _clone(model, **changes):
    return type(model)(**{**model.get_params(), **changes})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # 30 sweeps say as much as all
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("side", ["row", "column"])
def test_is_the_model_of_the_standardized_table_and_back(model, side):
    X = _table()
    ours = _clone(model, normalize=side).fit(X)
    center, scale = ours.normalization_.center, ours.normalization_.scale
    np.testing.assert_allclose((center, scale), _moments(X if side == "row" else X.T), rtol=1e-10)
    if side == "row":
        center, scale = center[:, None], scale[:, None]
    by_hand = _clone(model).fit((X - center) / scale)
    rows, cols = (a.ravel() for a in np.indices(X.shape))
    goal = center + scale * by_hand.predict(rows, cols).reshape(X.shape)
    np.testing.assert_allclose(ours.predict(rows, cols).reshape(X.shape), goal, rtol=1e-6, atol=1e-6)
    goal = center + scale * by_hand.predict((X - center) / scale)
    np.testing.assert_allclose(ours.predict(X), goal, rtol=1e-6, atol=1e-6)
    full = ours.complete(X)
    np.testing.assert_array_equal(full[~np.isnan(X)], X[~np.isnan(X)])
    np.testing.assert_allclose(full[np.isnan(X)], goal[np.isnan(X)], rtol=1e-6, atol=1e-6)
    if hasattr(by_hand, "components_"):
        np.testing.assert_allclose(ours.fold_in(X), by_hand.fold_in((X - center) / scale), rtol=1e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(ours.fold_in(X), ours.predict(X))


def test_new_rows_are_standardized_by_their_own_cells():
    X, new = _table(), _table(1)
    model = ALS(2, reg=0.1, normalize="row", random_state=0).fit(X)
    lines = model.normalization_.measure(sparse.csr_array(([1.0, 3.0], [0, 2], [0, 2]), shape=(1, 25)))
    assert lines.center[0] == 2.0
    assert min(1.0, lines.spread) <= lines.scale[0] <= max(1.0, lines.spread)
    shifted = model.predict(new + 100.0) - 100.0
    np.testing.assert_allclose(shifted, model.predict(new), rtol=1e-6, atol=1e-6)
    nothing = model.predict(np.full((1, 25), np.nan))
    np.testing.assert_allclose(
        nothing, lines.mean + lines.spread * (model.mean_ + model.column_bias_)[None], rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("side", ["row", "column"])
def test_the_unit_does_not_matter(side):
    X = _table()
    models = [ALS(2, reg=0.1, normalize=side, random_state=0).fit(a) for a in (X, 1000 * X - 50)]
    np.testing.assert_allclose(models[1].predict(X * 1000 - 50), 1000 * models[0].predict(X) - 50, rtol=1e-6, atol=1e-3)


def test_a_table_of_equal_cells_is_divided_by_one():
    X = np.where(np.eye(6) > 0, np.nan, 3.0)
    model = ALS(1, reg=0.1, normalize="column", random_state=0).fit(X)
    np.testing.assert_array_equal(model.normalization_.scale, np.ones(6))
    np.testing.assert_allclose(model.complete(X), 3.0)


@pytest.mark.parametrize("side", ["row", "column"])
def test_files_and_refits(side, tmp_path):
    X = _table()
    model = ALS(2, reg=0.1, normalize=side, random_state=0).fit(X)
    model.save(tmp_path / "a.twofold")
    np.testing.assert_array_equal(twofold.load(tmp_path / "a.twofold").predict(X), model.predict(X))
    for wrong in ({"center": X[0, :0]}, {"scale": -model.normalization_.scale}, {"side": "both"}, {"mean": np.inf}):
        damaged = copy(model)
        damaged.normalization_ = model.normalization_._replace(**wrong)
        damaged.save(tmp_path / "b.twofold")
        with pytest.raises(ValueError, match="normalization_"):
            twofold.load(tmp_path / "b.twofold")
    plain = model.set_params(normalize=None).fit(X)
    assert plain.normalization_ is None
    np.testing.assert_array_equal(plain.predict(X), ALS(2, reg=0.1, random_state=0).fit(X).predict(X))


@pytest.mark.parametrize("side", ["row", "column"])
def test_rows_and_columns_join(side):
    X = _table()[:-1]
    model = ALS(2, reg=0.1, normalize=side, random_state=0).fit(X[:40])
    said = model.predict(X[40:])
    model.add_rows(X[40:])
    rows, cols = (a.ravel() for a in np.indices(said.shape))
    np.testing.assert_allclose(model.predict(rows + 40, cols).reshape(said.shape), said, rtol=1e-9, atol=1e-9)
    column = X[:, [0]]
    model.add_columns(column)
    there = ~np.isnan(column[:, 0])
    new = model.predict(np.arange(len(X)), np.full(len(X), 25))
    assert np.corrcoef(new[there], column[there, 0])[0, 1] > 0.8  # it is a column they know already


@pytest.mark.parametrize("side", ["row", "column"])
@pytest.mark.parametrize("kind", ["item", "user"])
def test_contributions_are_in_the_units_of_the_table(side, kind):
    X = _table()
    model = Neighborhood(5, kind=kind, normalize=side).fit(X)
    cols, target = np.flatnonzero(~np.isnan(X[0])), int(np.flatnonzero(np.isnan(X[0]))[0])
    lines, line = model.normalization_, 0 if side == "row" else target
    center, scale = (a[line] if side == "row" else a for a in (lines.center, lines.scale))
    baseline = model.baseline_.predict((X[:1] - center) / scale)[0, target]
    goal = model.predict(X[:1])[0, target]
    said = lines.center[line] + lines.scale[line] * baseline + model.contributions(cols, X[0, cols], target).sum()
    np.testing.assert_allclose(said, goal, rtol=1e-6)


def test_a_word_that_is_no_side_is_refused():
    with pytest.raises(ValueError, match="normalize"):
        ALS(normalize="rows").fit(_table())


@pytest.mark.parametrize("side", ["row", "column"])
def test_recommender_lists_reasons_and_updates_are_in_the_units_of_the_table(side):
    X = _table()[:-2]
    i, j = np.nonzero(~np.isnan(X))
    ratings = pl.DataFrame({"user": i.astype(str), "item": j.astype(str), "rating": X[i, j]})
    rec = Recommender(ALS(2, reg=0.1, normalize=side, random_state=0), clip=False).fit(ratings)
    users, items = rec.users_.tolist(), rec.items_.tolist()
    best, row = rec.recommend("5", n=3), users.index("5")
    goal = rec.model_.predict(np.full(3, row), np.array([items.index(c) for c in best["item"]]))
    np.testing.assert_allclose(best["rating"], goal, rtol=1e-6)
    whole = rec.model_.predict(np.full(len(items), row), np.arange(len(items)))
    assert goal[0] == pytest.approx(whole[rec.ratings_[[row]].toarray()[0] == 0].max())
    shares, nobody = rec.explain("5", best["item"][0], n=None)["share"], np.full((1, len(items)), np.nan)
    empty = rec.model_.predict(nobody)[0, items.index(best["item"][0])]
    assert shares.sum() == pytest.approx(goal[0] - empty)
    grown = rec.add_ratings(pl.DataFrame({"user": ["5", "new"], "item": ["3", "new"], "rating": [2.0, 5.0]}))
    assert len(grown.model_.normalization_.center) == grown.ratings_.shape[side == "column"]
    row, d = grown.users_.tolist().index("5"), grown.ratings_.shape[1]
    said = grown.model_.predict(np.full(d, row), np.arange(d))
    np.testing.assert_allclose(said, grown.model_.predict(grown.ratings_[[row]])[0], rtol=1e-6)
