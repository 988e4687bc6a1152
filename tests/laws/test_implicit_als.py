"""Laws of the factorization of clicks and counts, against weighted least squares over every cell."""

import numpy as np
import pytest
from scipy import sparse

from twofold import ImplicitALS, InputError
from twofold.completion import implicit_als

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
solvers = pytest.mark.parametrize("solver", ["cholesky", "cg", "blocks"])
powers = pytest.mark.parametrize("power", [0.0, 0.5, 1.0])


@pytest.fixture(autouse=True)
def two_factors_a_block(monkeypatch):
    monkeypatch.setattr(implicit_als, "BLOCK", 2)


def counts(n=40, d=25, kinds=3, seed=0):
    """People of a few kinds come back to the columns of their kind; row 4 and column 2 are empty."""
    rng = np.random.default_rng(seed)
    kind, of = rng.integers(kinds, size=n), rng.integers(kinds, size=d)
    R = rng.poisson(np.where(kind[:, None] == of, 1.5, 0.1)).astype(float)
    R[4], R[:, 2] = 0, 0
    return R


def fit(R, k=3, sample_weight=None, **options):
    return ImplicitALS(k, random_state=0, **{"reg": 2.0, "alpha": 4.0, **options}).fit(R, sample_weight=sample_weight)


def preference(R, alpha=4.0):
    """Return the target of every cell and its weight."""
    return (R > 0).astype(float), 1 + alpha * R


def ridges(C, power, reg=2.0):
    """λ_i of every row: that of a typical one, between rows and columns, is `reg`."""
    typical = np.sqrt(C.sum(axis=1).mean() * C.sum(axis=0).mean())
    return reg * (C.sum(axis=1) / typical) ** power


def objective(model, R, power=1.0):
    P, C = preference(R)
    U, Z = model.row_factors_, model.components_
    held = ridges(C, power) @ (U**2).sum(axis=1) + ridges(C.T, power) @ (Z**2).sum(axis=0)
    return (C * (P - U @ Z) ** 2).sum() + held


def regressions(R, Z, power=1.0):
    """Every row's weighted ridge regression on Z (k,d), over all cells."""
    P, C = preference(R)
    each = zip(P, C, ridges(C, power), strict=True)
    return np.array([np.linalg.solve((Z * c) @ Z.T + lam * np.eye(len(Z)), Z @ (c * p)) for p, c, lam in each])


@solvers
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_objective_never_rises(solver, dtype):
    cost = np.array(fit(counts().astype(dtype), solver=solver, tol=0.0, max_iter=25).history_["objective"])
    assert len(cost) > 3
    assert np.all(np.diff(cost) <= (1e-5 if dtype == np.float32 else 1e-10) * cost[:-1])


@powers
@pytest.mark.parametrize("sweeps", [1, 5])
def test_objective_is_the_formula_over_every_cell(sweeps, power):
    model = fit(counts(), solver="cholesky", max_iter=sweeps, reg_power=power)
    np.testing.assert_allclose(model.history_["objective"][-1], objective(model, counts(), power), rtol=1e-10)


@pytest.mark.parametrize("solver", ["cg", "blocks"])
def test_the_objective_of_other_solvers_is_met_or_beaten_by_the_exact_rows_at_the_end(solver):
    model = fit(counts(), solver=solver, max_iter=3)
    assert objective(model, counts()) <= model.history_["objective"][-1] * (1 + 1e-12)


@solvers
@powers
def test_rows_are_weighted_regressions_over_every_cell(solver, power):
    model = fit(counts(), solver=solver, max_iter=4, reg_power=power)
    again = regressions(counts(), model.components_, power)
    np.testing.assert_allclose(model.row_factors_, again, rtol=1e-8, atol=1e-10)


@solvers
def test_converged_columns_are_regressions_too(solver):
    R = counts()
    model = fit(R, solver=solver, tol=1e-15, max_iter=3000)
    again = regressions(R.T, model.row_factors_.T)
    np.testing.assert_allclose(model.components_.T, again, atol=1e-4)


def test_one_block_of_all_factors_is_cholesky(monkeypatch):
    monkeypatch.setattr(implicit_als, "BLOCK", 3)
    exact, block = fit(counts(), solver="cholesky", max_iter=3), fit(counts(), solver="blocks", max_iter=3)
    np.testing.assert_allclose(block.components_, exact.components_, rtol=1e-8)


@pytest.mark.parametrize("solver", ["cg", "blocks"])
def test_other_solvers_end_where_cholesky_does(solver):
    until = {"tol": 1e-14, "max_iter": 2000}
    exact, quick = fit(counts(), solver="cholesky", **until), fit(counts(), solver=solver, **until)
    np.testing.assert_allclose(quick.history_["objective"][-1], exact.history_["objective"][-1], rtol=1e-8)
    np.testing.assert_allclose(quick.predict(counts()), exact.predict(counts()), atol=1e-3)


@pytest.mark.parametrize("again", [lambda R: sparse.csr_array(R), lambda R: np.where(R == 0, np.nan, R)])
def test_unstored_zero_and_unknown_all_mean_not_seen(again):
    np.testing.assert_array_equal(fit(counts()).components_, fit(again(counts())).components_)


def test_weights_multiply_counts():
    R, w = counts(), np.random.default_rng(1).random((40, 25)) * 3
    np.testing.assert_allclose(fit(R, sample_weight=w).components_, fit(R * w).components_, rtol=1e-9)
    half = fit(R, sample_weight=np.full(40, 0.5)).components_
    np.testing.assert_allclose(half, fit(R, alpha=2.0).components_, rtol=1e-9)


def test_it_recommends_what_the_kind_likes():
    rng = np.random.default_rng(0)
    kind, of = np.arange(120) % 3, np.arange(30) % 3
    seen = (rng.random((120, 30)) < 0.4) & (kind[:, None] == of)
    model = fit(seen.astype(float))
    preferred = model.predict(seen.astype(float))
    unseen = ~seen
    mine = np.broadcast_to(kind[:, None] == of, seen.shape)
    assert preferred[mine & unseen].min() > preferred[~mine].max()


def test_counts_below_zero_are_refused_with_their_place():
    R = counts()
    R[3, 7] = -2
    with pytest.raises(InputError, match=r"X\[3, 7\] is -2.*ALS"):
        fit(R)
    model = fit(counts())
    for method in (model.predict, model.transform, model.fold_in):
        with pytest.raises(InputError, match=r"X\[3, 7\] is -2"):
            method(R)


@pytest.mark.usefixtures("small_blocks")
def test_counts_below_zero_in_late_blocks_have_their_place_too():
    R = np.tile(counts(), (8, 1))
    model = fit(R)
    R[301, 7] = -2
    with pytest.raises(InputError, match=r"X\[301, 7\] is -2"):
        model.predict(R)


def test_nothing_seen_is_refused():
    with pytest.raises(InputError, match="only zeros"):
        fit(np.zeros((5, 4)))
