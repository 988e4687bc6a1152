"""Laws of means and biases: what is minimized is minimal, and the limits are the means everyone knows."""

import numpy as np
import pytest
from sklearn.base import clone

from twofold import Biases, InputError, MeanImpute


def table(n=60, d=15, share=0.4, seed=0, dtype=np.float64):
    """A mean, row effects, column effects and noise; an empty row and an empty column."""
    rng = np.random.default_rng(seed)
    X = 3 + 0.7 * rng.normal(size=(n, 1)) + rng.normal(size=d) + rng.normal(size=(n, d))
    X[rng.random(X.shape) > share] = np.nan
    X[5], X[:, 3] = np.nan, np.nan
    return X.astype(dtype)


def gradient(model, X, w):
    """Derivatives of the penalised squares by the mean, the rows' and the columns' biases."""
    gap = np.where(w > 0, np.nan_to_num(X) - model.mean_ - model.row_bias_[:, None] - model.column_bias_, 0) * w
    rows, cols = model.reg_
    return gap.sum(), gap.sum(axis=1) - rows * model.row_bias_, gap.sum(axis=0) - cols * model.column_bias_


@pytest.mark.parametrize("reg", ["auto", 3.0, (0.5, 20.0), 0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_biases_are_jointly_optimal(reg, weighted):
    X = table()
    w = np.random.default_rng(1).random(X.shape) if weighted else np.ones(X.shape)
    model = Biases(reg=reg, tol=0, max_iter=2000).fit(X, sample_weight=w if weighted else None)
    for part in gradient(model, X, np.where(np.isnan(X), 0, w)):
        np.testing.assert_allclose(part, 0, atol=1e-6)  # the objective, flat here, stands still first


def test_the_objective_is_what_it_says():
    X = table()
    model = Biases(reg=(2.0, 5.0)).fit(X)
    squares = np.nansum((X - model.predict(X)) ** 2)
    penalty = 2 * (model.row_bias_**2).sum() + 5 * (model.column_bias_**2).sum()
    assert model.history_["objective"][-1] == pytest.approx(squares + penalty, rel=1e-6)


def test_no_other_pseudo_counts_have_a_lower_objective():
    X = table(n=200)
    N, mass = np.count_nonzero(~np.isnan(X)), [(~np.isnan(X)).sum(axis=a) for a in (1, 0)]

    def criterion(model):
        squares = Biases(reg=model, tol=0, max_iter=3000).fit(X).history_["objective"][-1]
        occam = sum(np.log1p(m / lam).sum() for m, lam in zip(mass, model, strict=True))
        return 0.5 * (N * np.log(2 * np.pi * np.e * squares / N) + occam)

    best = Biases(tol=0).fit(X)
    assert best.history_["objective"][-1] == pytest.approx(criterion(best.reg_), rel=1e-10)
    rows, cols = best.reg_
    for other in [(1.3 * rows, cols), (rows / 1.3, cols), (rows, 1.3 * cols), (rows, cols / 1.3)]:
        assert criterion(other) > criterion(best.reg_)


def test_huge_pseudo_counts_give_the_mean():
    X = table()
    np.testing.assert_allclose(Biases(reg=1e12).fit(X).predict(X), np.nanmean(X), rtol=1e-9)


def test_none_on_a_full_table_give_the_two_way_means():
    X = np.random.default_rng(0).normal(size=(7, 5))
    model = Biases(reg=0).fit(X)
    np.testing.assert_allclose(model.mean_, X.mean())
    np.testing.assert_allclose(model.row_bias_, X.mean(axis=1) - X.mean(), atol=1e-12)
    np.testing.assert_allclose(model.column_bias_, X.mean(axis=0) - X.mean(), atol=1e-12)


def test_the_unit_does_not_matter_and_the_weights_only_relatively():
    X = table()
    exact = Biases(tol=0)
    model, larger = exact.fit(X), clone(exact).fit(100 * X - 7)
    heavier = clone(exact).fit(X, sample_weight=np.full(60, 9.0))
    np.testing.assert_allclose(larger.predict(100 * X - 7), 100 * model.predict(X) - 7, rtol=1e-5)
    np.testing.assert_allclose(np.array(heavier.reg_), 9 * np.array(model.reg_), rtol=1e-5)
    rows, cols = np.nonzero(np.isnan(X))
    np.testing.assert_allclose(heavier.predict(rows, cols), model.predict(rows, cols), rtol=1e-6)


MODELS = [Biases(), Biases(reg=4.0)] + [
    MeanImpute(s, normalize=n) for s in ("global", "row", "column") for n in (None, "row", "column")
]
every_model = pytest.mark.parametrize("model", MODELS, ids=str)


@every_model
@pytest.mark.parametrize(
    "X",
    [
        np.array([[2.0]]),
        np.array([[np.nan, 4.0], [np.nan, np.nan]]),
        np.full((4, 3), 5.0),
        np.zeros((3, 3)),
        np.where(np.eye(4) > 0, 1e8, np.nan),
    ],
    ids=["one cell", "one known", "all equal", "zeros", "diagonal"],
)
def test_tables_with_one_value_are_filled_with_it(model, X):
    value = np.nanmean(X)
    np.testing.assert_allclose(model.fit(X).transform(X), value, rtol=1e-7)
    rows, cols = np.nonzero(np.isnan(X))
    np.testing.assert_allclose(model.predict(rows, cols), value, rtol=1e-7)


def test_a_new_row_without_cells_is_an_average_row():
    X = table()
    model = Biases().fit(X)
    new = np.full((1, X.shape[1]), np.nan)
    assert model.fold_in(new) == [[0]] and model.row_bias_[5] == 0 and model.column_bias_[3] == 0
    np.testing.assert_allclose(model.predict(new)[0], model.mean_ + model.column_bias_)


def test_an_additive_table_is_completed_exactly():
    rng = np.random.default_rng(0)
    truth = 10 + rng.normal(size=(40, 1)) + rng.normal(size=12)
    X = np.where(rng.random(truth.shape) < 0.5, truth, np.nan)
    np.testing.assert_allclose(Biases().fit(X).transform(X), truth, rtol=1e-4)


@pytest.mark.parametrize("reg", [(1.0,), (1.0, -2.0), (1.0, np.inf), ("a", 1.0)])
def test_unusable_pseudo_counts_are_refused(reg):
    with pytest.raises(InputError, match="pair"):
        Biases(reg=reg).fit(table())


@pytest.mark.parametrize("strategy, axis", [("global", None), ("row", 1), ("column", 0)])
def test_plain_means_are_numpy_s(strategy, axis):
    X = np.delete(np.delete(table(), 5, axis=0), 3, axis=1)
    expected = np.broadcast_to(np.nanmean(X, axis=axis, keepdims=True), X.shape)
    np.testing.assert_allclose(MeanImpute(strategy).fit(X).predict(X), expected)


@pytest.mark.parametrize("normalize, axis, across", [("row", 1, 0), ("column", 0, 1)])
def test_normalised_means_are_means_of_z_scores_mapped_back(normalize, axis, across):
    X = np.delete(np.delete(table(share=0.7), 5, axis=0), 3, axis=1)
    mean, std = (f(X, axis=axis, keepdims=True) for f in (np.nanmean, np.nanstd))
    z = np.nanmean((X - mean) / std, axis=across, keepdims=True)
    strategy = {"row": "column", "column": "row"}[normalize]
    np.testing.assert_allclose(MeanImpute(strategy, normalize=normalize).fit(X).predict(X), mean + std * z)
    for pointless in (normalize, "global"):  # z averages to zero along its own line
        found = MeanImpute(pointless, normalize=normalize).fit(X).predict(X)
        np.testing.assert_allclose(found, np.broadcast_to(mean, X.shape), atol=1e-12)


def test_a_row_without_spread_takes_that_within_all_rows():
    X = np.array([[0.0, 2.0, 4.0], [10.0, 40.0, 10.0], [7.0, np.nan, np.nan], [np.nan] * 3])
    model = MeanImpute(normalize="row").fit(X)
    within = np.sqrt(np.nanmean((X[:3] - np.nanmean(X[:3], axis=1, keepdims=True)) ** 2))
    z = model.column_codes_[2]
    np.testing.assert_allclose(model.predict(X)[2], 7 + within * z)
    np.testing.assert_allclose(model.predict(X)[3], np.nanmean(X[:3]) + within * z)


def test_integer_weights_are_repeated_rows_to_column_means():
    X, w = table(), np.random.default_rng(0).integers(1, 4, 60)
    for normalize in (None, "row"):
        weighted = MeanImpute(normalize=normalize).fit(X, sample_weight=w)
        repeated = MeanImpute(normalize=normalize).fit(np.repeat(X, w, axis=0))
        np.testing.assert_allclose(weighted.column_codes_, repeated.column_codes_, atol=1e-12)
