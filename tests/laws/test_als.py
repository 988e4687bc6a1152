"""Laws of alternating least squares over known cells."""

import numpy as np
import pytest
from scipy import sparse

from tests.laws.completion import compute_objective as objective
from tests.laws.completion import plant
from twofold import ALS, Biases, InputError
from twofold.completion._auto_ridge import RANKS
from twofold.core.data.blocks import as_blocks
from twofold.core.data.known_cells import find_known_cells
from twofold.core.numerics.alternating_ridge import Plan, Ridge, features, spread_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KINDS = {
    "cholesky": {"solver": "cholesky"},
    "cg": {"solver": "cg"},
    "unbiased": {"solver": "cholesky", "biases": False},
    "unbiased cg": {"solver": "cg", "biases": False},
    "nonnegative": {"nonnegative": True},
    "nonnegative unbiased": {"nonnegative": True, "biases": False},
}
kinds = pytest.mark.parametrize("kind", KINDS)
both = pytest.mark.parametrize("biases", [False, True], ids=["factors", "biases"])


def fit(X, k=3, sample_weight=None, reg=0.1, **options):
    return ALS(k, reg=reg, random_state=0, **options).fit(X, sample_weight=sample_weight)


RIDGES = [{"reg": "auto"}, {"reg_power": 0.0}, {"reg_power": 0.5}, {"reg": "auto", "reg_power": 1}]
RIDGES = [{"solver": "cholesky", "biases": biases} | ridge for ridge in RIDGES for biases in (False, True)]


@pytest.mark.parametrize("options", [*(KINDS[k] for k in KINDS if "cg" not in k), *RIDGES], ids=str)
def test_objective_is_the_formula(options):
    X, w = plant(), np.random.default_rng(1).random((50, 40)) + 0.1
    for weights in (None, w):
        model = fit(X, max_iter=4, sample_weight=weights, **options)
        np.testing.assert_allclose(model.history_["objective"][-1], objective(model, X, weights), rtol=1e-9)
        assert (model.bias_reg_ is not None) == (model.biases and model.reg == "auto")


def test_objective_of_cg_is_the_formula_before_the_last_exact_half_step():
    X = plant()
    model = fit(X, solver="cg", max_iter=4)
    best = objective(model, X)
    assert best <= model.history_["objective"][-1] * (1 + 1e-12)
    settled = fit(X, solver="cg", max_iter=300, tol=1e-12)
    np.testing.assert_allclose(settled.history_["objective"][-1], objective(settled, X), rtol=1e-6)


@both
def test_a_half_step_is_a_ridge_regression_a_row(biases):
    X = plant()
    cells = find_known_cells(as_blocks(X))
    rng, k, lam, (mean, s) = np.random.default_rng(2), 3, 0.4, spread_of(cells)
    Z = rng.normal(size=(40, k + biases))
    plan = Plan(cells, k, mean, s, Ridge(lam, True), 0)
    U, cost = plan.half(cells.rows, np.zeros((50, k + biases)), Z)
    seen, offset = features(Z, k, mean, np.sqrt(s))
    total = 0.0
    for i in range(50):
        j = np.flatnonzero(~np.isnan(X[i]))
        A = seen[j].T @ seen[j] + lam * len(j) * np.eye(k + biases)
        u = np.linalg.solve(A, seen[j].T @ (X[i, j] - offset[j])) if len(j) else np.zeros(k + biases)
        np.testing.assert_allclose(U[i], u, rtol=1e-8, atol=1e-10)
        total += ((X[i, j] - offset[j] - seen[j] @ u) ** 2).sum() + lam * len(j) * (u @ u)
    np.testing.assert_allclose(cost, total, rtol=1e-10)


@both
def test_conjugate_gradients_end_where_cholesky_does(biases):
    X, until = plant(), {"tol": 1e-13, "max_iter": 1000, "biases": biases}
    exact, quick = fit(X, solver="cholesky", **until), fit(X, solver="cg", **until)
    assert exact.solver_ == "cholesky" and quick.solver_ == "cg"
    np.testing.assert_allclose(quick.history_["objective"][-1], exact.history_["objective"][-1], rtol=1e-6)
    np.testing.assert_allclose(quick.predict(X), exact.predict(X), atol=1e-2)


@kinds
@pytest.mark.parametrize("unit", [1e-8, 1e6])
def test_units_do_not_matter(kind, unit):
    X = plant()
    here, there = fit(X, max_iter=8, **KINDS[kind]), fit(X * unit, max_iter=8, **KINDS[kind])
    np.testing.assert_allclose(there.predict(X * unit), unit * here.predict(X), rtol=1e-4, atol=1e-4 * unit)
    ratio = np.array(there.history_["objective"]) / np.array(here.history_["objective"])
    np.testing.assert_allclose(ratio, unit**2, rtol=1e-5)


@kinds
def test_a_level_does_not_matter_with_biases(kind):
    if "unbiased" in kind:
        pytest.skip("has no mean to take it")
    X = plant()
    np.testing.assert_allclose(
        fit(X + 100, **KINDS[kind]).predict(X + 100), 100 + fit(X, **KINDS[kind]).predict(X), atol=1e-4
    )


def test_cell_weights_weigh_the_formula():
    """At the optimum no small change of any parameter helps, in the weighted formula and not in another."""
    X, w = plant(20, 15), np.random.default_rng(4).random((20, 15)) * 3
    model = fit(X, 2, sample_weight=w, tol=1e-14, max_iter=2000)
    least, rng = objective(model, X, w), np.random.default_rng(5)
    for name in ("row_factors_", "components_", "row_bias_", "column_bias_"):
        value = getattr(model, name)
        for _ in range(5):
            step = 1e-4 * rng.normal(size=value.shape)
            slope = []
            for sign in (1, -1):
                setattr(model, name, value + sign * step)
                slope.append(objective(model, X, w))
            setattr(model, name, value)
            assert min(slope) >= least * (1 - 1e-9)
            assert abs(slope[0] - slope[1]) < 1e-2 * abs(slope[0] + slope[1] - 2 * least) + 1e-6 * least


@pytest.mark.parametrize("biases", [False, True])
def test_nonnegative_factors_are_nonnegative(biases):
    model = fit(plant(), nonnegative=True, biases=biases)
    assert (model.components_ >= 0).all() and (model.row_factors_ >= 0).all()
    assert (model.components_ == 0).any()  # the bound is felt
    assert (model.fold_in(plant(seed=1)) >= 0).all()
    if biases:
        assert (model.row_bias_ < 0).any() and (model.column_bias_ < 0).any()


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_table_is_recovered(solver, seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 60))
    X = np.where(rng.random(truth.shape) < 0.4, truth, np.nan)
    model = fit(X, 2, reg=1e-7, biases=False, solver=solver, tol=1e-4, max_iter=300)
    assert np.linalg.norm(model.predict(X) - truth) < 1e-3 * np.linalg.norm(truth)


@kinds
def test_new_rows_join_as_they_fold_in(kind):
    X = plant()
    model = fit(X[:40], **KINDS[kind])
    first, folded = model.predict([0, 39], [1, 3]), model.predict(X[40:])
    factors = model.fold_in(X[40:])
    assert model.add_rows(X[40:]) is model and model.n_rows_ == 50
    np.testing.assert_array_equal(model.row_factors_[40:], factors)
    rows, cols = np.repeat(np.arange(10), 40), np.tile(np.arange(40), 10)
    np.testing.assert_allclose(model.predict(40 + rows, cols), folded[rows, cols], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.predict([0, 39], [1, 3]), first)
    with pytest.raises(InputError, match="0 to 49"):
        model.predict([50], [0])


@kinds
def test_new_columns_join_as_turned_rows_fold_in(kind):
    X = plant()
    model = fit(X[:, :30], **KINDS[kind])
    turned = ALS(3, reg=0.1, **KINDS[kind])  # the same model with its sides exchanged
    for name in ("n_iter_", "converged_", "history_", "mean_", "spread_", "reg_"):
        setattr(turned, name, getattr(model, name))
    turned.components_, turned.row_factors_ = np.ascontiguousarray(model.row_factors_.T), model.components_.T.copy()
    turned.column_bias_, turned.row_bias_ = model.row_bias_, model.column_bias_
    turned.n_rows_, turned.n_features_in_ = 30, 50
    first, folded = model.predict([0, 39], [1, 3]), turned.predict(X[:, 30:].T)
    model.add_columns(X[:, 30:])
    assert model.n_features_in_ == 40 and model.predict(X).shape == (50, 40)
    rows, cols = np.repeat(np.arange(50), 10), np.tile(np.arange(10), 50)
    np.testing.assert_allclose(model.predict(rows, 30 + cols), folded[cols, rows], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.predict([0, 39], [1, 3]), first)
    with pytest.raises(InputError, match=r"49 rows.*has 50"):
        model.add_columns(X[:49, :2])


def test_columns_that_were_left_out_are_nearly_as_good():
    X = plant(200, 40, noise=0.2)
    held = np.random.default_rng(6).random(X.shape) < 0.2
    shown = np.where(held, np.nan, X)
    asked = held & ~np.isnan(X)
    grown = fit(shown[:, :30]).add_columns(shown[:, 30:])
    errors = [np.sqrt(((model.predict(*np.nonzero(asked)) - X[asked]) ** 2).mean()) for model in (fit(shown), grown)]
    assert errors[1] < 1.2 * errors[0] < 0.6 * np.nanstd(X)


def test_a_stronger_ridge_shrinks():
    X = plant()
    sizes = [np.linalg.norm(fit(X, reg=reg).components_) for reg in (0.01, 0.1, 1.0, 10.0)]
    assert np.all(np.diff(sizes) < 0)
    rows, cols = np.nonzero(~np.isnan(X))
    np.testing.assert_allclose(fit(X, reg=1e6).predict(rows, cols), np.nanmean(X), rtol=1e-3)


def test_sparse_zeros_that_are_stored_are_known():
    X = np.where(np.isnan(plant()), np.nan, np.round(plant()))
    rows, cols = np.nonzero(~np.isnan(X))
    S = sparse.csr_array((X[rows, cols], (rows, cols)), shape=X.shape)
    assert (S.data == 0).any()
    np.testing.assert_array_equal(fit(S).components_, fit(X).components_)


# ---- the ridge ---------------------------------------------------------------------------------------------------


def test_the_plain_ridge_is_the_same_in_every_row():
    X = plant()
    model = fit(X, reg_power=0.0, biases=False, tol=1e-12, max_iter=500)
    Z = model.components_
    for i in (0, 7, 30):
        j = np.flatnonzero(~np.isnan(X[i]))
        u = np.linalg.solve(Z[:, j] @ Z[:, j].T + model.reg_ * np.eye(3), Z[:, j] @ X[i, j])
        np.testing.assert_allclose(model.row_factors_[i], u, rtol=1e-6)


def noisy(n, d, share, size, noise, seed=0, k=2):
    """Biases and factors of some size under noise: what is known, and what is true."""
    rng = np.random.default_rng(seed)
    truth = 3 + rng.normal(size=(n, 1)) + rng.normal(size=d) + size * rng.normal(size=(n, k)) @ rng.normal(size=(k, d))
    return np.where(rng.random((n, d)) < share, truth + noise * rng.normal(size=(n, d)), np.nan), truth


def error(model, X, truth):
    return np.sqrt(((model.predict(X) - truth) ** 2).mean())


def test_auto_keeps_to_the_biases_where_factors_are_noise():
    X, _ = noisy(150, 80, 0.1, 0.0, 1.0)
    model = fit(X, 10, reg="auto")
    assert not model.components_.any() and not model.row_factors_.any()
    np.testing.assert_allclose(model.predict(X), Biases().fit(X).predict(X), atol=1e-4)


@pytest.mark.parametrize("shape", [(200, 20), (150, 100)])
def test_few_factors_are_found_to_be_few(shape):
    X, truth = noisy(*shape, 0.6, 1.0, 0.7)
    found, full = (ALS(k, random_state=0).fit(X) for k in ("auto", None))
    assert error(found, X, truth) < error(full, X, truth)
    assert len(found.components_) < len(full.components_) == min(20, shape[1])
    assert set(found.path_["n_components"]) == {len(full.components_), *(k for k in RANKS if k < shape[1])}


def test_factors_that_are_given_stay_as_many():
    X = plant()
    for model in (ALS(5, random_state=0), ALS(5, reg=0.1), ALS(reg=0.1), ALS(None, reg=0.1)):
        model.set_params(max_iter=100, tol=1e-2)
        assert len(model.fit(X).components_) == (5 if model.n_components == 5 else 20)


def test_auto_is_at_home_above_zero():
    X, truth = noisy(150, 80, 0.1, 0.0, 1.0)
    model = fit(X, 10, reg="auto", nonnegative=True)
    assert (model.components_ >= 0).all() and error(model, X, truth) < 1.2 * error(Biases().fit(X), X, truth)


@both
def test_auto_goes_down_to_nothing_without_noise(biases):
    X, truth = noisy(100, 60, 0.4, 1.0, 0.0)
    model = fit(X, 8, reg="auto", biases=biases)
    assert error(model, X, truth) < 0.02 * truth.std()
    assert model.reg_ < 0.01 * model.path_["reg"][0]


@pytest.mark.parametrize("noise", [0.3, 1.0, 3.0])
def test_auto_is_near_the_best_of_many(noise):
    X, truth = noisy(200, 100, 0.3, 1.0, noise)
    errors = [error(fit(X, 10, reg=reg, reg_power=0.5), X, truth) for reg in (0.01, 0.03, 0.1, 0.2, 0.4)]
    assert error(fit(X, 10, reg="auto"), X, truth) < 1.2 * min(*errors, error(Biases().fit(X), X, truth))


def test_auto_folds_in_and_takes_new_columns():
    X = plant()
    model = fit(X[:, :30], reg="auto")
    np.testing.assert_allclose(model.fold_in(X[:, :30]), model.row_factors_, rtol=1e-8, atol=1e-10)
    model.add_columns(X[:, 30:])
    j, lam = 33, model.reg_ * np.sqrt((~np.isnan(X[:, 33])).sum())
    i = np.flatnonzero(~np.isnan(X[:, j]))
    F = np.column_stack([model.row_factors_[i], np.ones(len(i))])
    held = np.diag([lam] * 3 + [model.bias_reg_[1]])
    found = np.linalg.solve(F.T @ F + held, F.T @ (X[i, j] - model.mean_ - model.row_bias_[i]))
    np.testing.assert_allclose(np.append(model.components_[:, j], model.column_bias_[j]), found, rtol=1e-7)


def test_auto_manages_with_a_handful_of_cells():
    X = np.full((4, 3), np.nan)
    X[0, 0], X[1, 1], X[2, 0], X[3, 2] = 1.0, 2.0, 3.0, 2.0
    assert np.isfinite(fit(X, 2, reg="auto").predict(X)).all()
    assert np.isfinite(fit(np.full((6, 5), 2.0), 2, reg="auto").predict(X[:, [0, 1, 2, 0, 1]])).all()
