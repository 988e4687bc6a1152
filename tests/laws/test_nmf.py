"""Laws of non-negative factorization."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment

import twofold
from twofold.core.checks import InputError
from twofold.datasets.bundled import digits
from twofold.topics.nmf.nmf import NMF

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SOLVERS = [("frobenius", "cd"), ("frobenius", "als"), ("frobenius", "mu"), ("kullback-leibler", "newton")]
SOLVERS += [("kullback-leibler", "mu")]
FALLING = [pair for pair in SOLVERS if pair[1] != "als"]
LOSSES = ["frobenius", "kullback-leibler"]


def table(n=120, d=25, k=4, noise=0.2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.gamma(0.5, size=(n, k)) @ rng.gamma(0.5, size=(k, d)) + noise * rng.random((n, d))


def holes(X, share=0.2, seed=1):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def divergence(X, Y, loss):
    if loss == "frobenius":
        return 0.5 * ((X - Y) ** 2).sum()
    return (np.where(X > 0, X * np.log(np.where(X > 0, X / Y, 1)), 0) - X + Y).sum()


@pytest.mark.parametrize(("loss", "solver"), FALLING)
@pytest.mark.parametrize("options", [{}, {"alpha_W": 0.01, "l1_ratio": 0.5}], ids=["", "penalty"])
@pytest.mark.parametrize("w", [None, np.random.default_rng(1).random(120)], ids=["", "weights"])
def test_objective_never_rises(loss, solver, w, options):
    model = NMF(5, beta_loss=loss, solver=solver, tol=0, max_iter=100, random_state=0, **options)
    path = np.array(model.fit(table(), sample_weight=w).history_["objective"])
    assert len(path) > 50 and np.all(np.diff(path) <= 0)
    assert path[-1] < 0.9 * path[0]


@pytest.mark.parametrize(("loss", "solver"), SOLVERS)
def test_the_figures_are_those_of_the_factors(loss, solver):
    X = table()
    model = NMF(4, beta_loss=loss, solver=solver, random_state=0)
    U = model.fit_transform(X)
    assert U.min() >= 0 and model.components_.min() >= 0
    misfit = divergence(X, U @ model.components_, loss)
    assert model.reconstruction_err_ == pytest.approx(np.sqrt(2 * misfit), rel=1e-8)
    assert -model.score(X) * len(X) == pytest.approx(misfit, rel=1e-8)
    assert misfit <= model.history_["objective"][-1] * (1 + 1e-9)
    np.testing.assert_allclose(model.inverse_transform(U), U @ model.components_)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_end_meets_the_conditions_of_a_minimum(loss):
    X = table(seed=2)
    model = NMF(4, beta_loss=loss, tol=1e-11, max_iter=3000, random_state=0)
    U, Z = model.fit_transform(X), model.components_
    assert model.converged_
    pull = (U @ Z - X) if loss == "frobenius" else 1 - X / (U @ Z)
    for gradient, factor in ((pull @ Z.T, U), (U.T @ pull, Z)):
        scale = np.abs(gradient).max() + np.abs(X).max()
        assert gradient.min() > -1e-3 * scale
        assert np.abs(gradient * factor).max() < 1e-3 * scale * factor.max()


def test_solvers_meet():
    X = table(60, 15, 3)
    for loss in LOSSES:
        ends = [
            NMF(3, beta_loss=one, solver=solver, tol=1e-6, max_iter=10_000, random_state=0).fit(X).reconstruction_err_
            for one, solver in FALLING
            if one == loss
        ]
        assert max(ends) <= min(ends) * 1.01


@pytest.mark.parametrize("loss", LOSSES)
def test_planted_parts_are_found(loss):
    rng = np.random.default_rng(0)
    parts = np.kron(np.eye(5), np.ones(6)) * rng.uniform(0.5, 1.5, size=30)
    X = rng.gamma(0.3, size=(300, 5)) @ parts + 0.01 * rng.random((300, 30))
    Z = NMF(5, beta_loss=loss, random_state=0).fit(X).components_
    unit = lambda A: A / np.linalg.norm(A, axis=1, keepdims=True)  # noqa: E731
    likeness = unit(Z) @ unit(parts).T
    assert likeness[linear_sum_assignment(-likeness)].min() > 0.99


@pytest.mark.parametrize("loss", LOSSES)
class TestHoles:
    def test_what_lies_under_the_mask_does_not_matter(self, loss):
        X = table()
        W = (np.random.default_rng(1).random(X.shape) < 0.8).astype(float)
        one = NMF(3, beta_loss=loss, max_iter=40, random_state=0).fit(X, sample_weight=W)
        other = NMF(3, beta_loss=loss, max_iter=40, random_state=0).fit(np.where(W > 0, X, 99.0), sample_weight=W)
        gone = NMF(3, beta_loss=loss, max_iter=40, random_state=0).fit(np.where(W > 0, X, np.nan))
        np.testing.assert_array_equal(one.components_, other.components_)
        np.testing.assert_allclose(one.components_, gone.components_, rtol=1e-9, atol=1e-12)

    def test_no_holes_is_ordinary(self, loss):
        X = table()
        one = NMF(3, beta_loss=loss, max_iter=40, random_state=0).fit(X, sample_weight=np.ones(X.shape))
        other = NMF(3, beta_loss=loss, max_iter=40, random_state=0).fit(X)
        np.testing.assert_allclose(one.history_["objective"], other.history_["objective"], rtol=1e-6)
        np.testing.assert_allclose(one.components_, other.components_, rtol=1e-4, atol=1e-6)

    def test_cells_of_weight_two_count_twice(self, loss):
        X = table()
        w = np.random.default_rng(2).integers(1, 4, len(X)).astype(float)
        one = NMF(3, beta_loss=loss, max_iter=30, random_state=0, init="random")
        by_cell = one.fit(X, sample_weight=np.repeat(w[:, None], X.shape[1], axis=1)).history_["objective"]
        by_row = one.fit(X, sample_weight=w).history_["objective"]
        np.testing.assert_allclose(by_cell[-1], by_row[-1], rtol=1e-2)

    def test_sparse_weights_choose_cells_of_sparse_data(self, loss):
        X = np.where(table() > 1, table(), 0)
        W = (np.random.default_rng(1).random(X.shape) < 0.8).astype(float)
        fit = NMF(3, beta_loss=loss, init="random", max_iter=40, random_state=0).fit
        dense = fit(X, sample_weight=W)
        stored = fit(sparse.csr_array(X), sample_weight=sparse.csr_array(W))
        np.testing.assert_allclose(dense.components_, stored.components_, rtol=1e-9, atol=1e-12)

    def test_holes_are_filled_by_what_is_known(self, loss):
        X = table(300, noise=0.0)
        H = holes(X, 0.15)
        model = NMF(4, beta_loss=loss, tol=1e-7, max_iter=500, random_state=0).fit(H)
        error = (model.inverse_transform(model.transform(H)) - X)[np.isnan(H)]
        assert np.sqrt((error**2).mean()) < 0.2 * X.std()

    @pytest.mark.parametrize("k", [10, 20])
    def test_nothing_runs_wild_where_nothing_is_known(self, loss, k):
        X = digits().data[::3].astype(float)
        H = holes(X, 0.3)
        model = NMF(k, beta_loss=loss, tol=1e-4, max_iter=100, random_state=0)
        filled = model.fit_transform(H) @ model.components_
        new = model.inverse_transform(model.transform(holes(X, 0.3, seed=2)))
        for guess, gone in ((filled, np.isnan(H)), (new, np.isnan(holes(X, 0.3, seed=2)))):
            rmse, means = (np.sqrt(((Y - X)[gone] ** 2).mean()) for Y in (guess, np.nanmean(H, axis=0)))
            assert rmse < 0.87 * means and guess[gone].max() < 3 * X.max()


@pytest.mark.parametrize(("loss", "solver"), SOLVERS)
def test_weights_are_repeated_rows(loss, solver):
    X = table()
    w = np.random.default_rng(0).integers(0, 4, len(X))
    model = NMF(4, beta_loss=loss, solver=solver, max_iter=30, random_state=0)
    one = model.fit(X, sample_weight=w).components_
    np.testing.assert_allclose(model.fit(np.repeat(X, w, axis=0)).components_, one, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("loss", "solver"), SOLVERS)
def test_sparse_equals_dense(loss, solver):
    X = np.where(table() > 1, table(), 0)
    model = NMF(4, beta_loss=loss, solver=solver, tol=1e-10, max_iter=3000, random_state=0)
    dense, codes = model.fit(X).reconstruction_err_, model.transform(X)
    np.testing.assert_allclose(model.transform(sparse.csr_array(X)), codes, rtol=1e-6, atol=1e-8)
    assert model.fit(sparse.csr_array(X)).reconstruction_err_ == pytest.approx(dense, rel=1e-3)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("loss", "solver"), [pair for pair in SOLVERS if pair[1] in ("als", "mu")])
def test_bits_do_not_depend_on_where_and_how(loss, solver, tmp_path):
    """For the solvers that the contract does not ask."""
    da = pytest.importorskip("dask.array")
    X = table(300)
    np.save(tmp_path / "x.npy", X)
    pl.DataFrame(X).write_parquet(tmp_path / "x.parquet")
    model = NMF(4, beta_loss=loss, solver=solver, max_iter=12, random_state=0)
    with twofold.config(threads=1):
        codes = model.fit_transform(X)
    expected, path = model.components_, model.history_["objective"]
    lazy = da.from_array(X, chunks=(77, 9))
    for source in (X, np.asfortranarray(X), tmp_path / "x.npy", tmp_path / "x.parquet", lazy):
        with twofold.config(threads=3):
            model.fit(source)
        assert np.array_equal(model.components_, expected) and model.history_["objective"] == path
    with twofold.config(threads=2):
        assert np.array_equal(model.fit_transform(tmp_path / "x.npy"), codes)


@pytest.mark.parametrize(("loss", "solver"), SOLVERS)
def test_single_precision_stays(loss, solver):
    X = table().astype(np.float32)
    model = NMF(4, beta_loss=loss, solver=solver, max_iter=60, random_state=0)
    codes = model.fit_transform(X)
    assert codes.dtype == model.components_.dtype == model.transform(X).dtype == np.float32
    double = NMF(4, beta_loss=loss, solver=solver, max_iter=60, random_state=0).fit(X.astype(float))
    assert model.reconstruction_err_ == pytest.approx(double.reconstruction_err_, rel=2e-2)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("missing", [False, True])
def test_fitted_rows_folded_in_again_get_their_codes(loss, missing):
    X = holes(table()) if missing else table()
    model = NMF(4, beta_loss=loss, random_state=0)
    codes = model.fit_transform(X)
    np.testing.assert_allclose(model.transform(X), codes, atol=1e-6 * codes.max())
    np.testing.assert_allclose(model.transform(X[:7]), codes[:7], atol=1e-6 * codes.max())


def test_a_penalty_makes_codes_sparse():
    X = table()
    model = NMF(6, l1_ratio=1.0, random_state=0)
    zeros = [float((model.set_params(alpha_W=alpha).fit_transform(X) < 1e-9).mean()) for alpha in (0.0, 0.05, 0.2)]
    assert zeros[0] < zeros[1] < zeros[2]


@pytest.mark.parametrize(("loss", "solver"), SOLVERS)
@pytest.mark.parametrize("init", ["nndsvd", "random"])
def test_degenerate_tables(loss, solver, init):
    X = table(20, 8)
    X[3], X[:, 2], X[:, 5] = 0, 0, 1
    for Y in (X, np.zeros((5, 4)), X[:1], np.ones((6, 1)), np.ones((6, 5))):
        model = NMF(3, beta_loss=loss, solver=solver, init=init, max_iter=20, random_state=0)
        codes = model.fit_transform(Y)
        assert codes.shape == (len(Y), 3) and np.isfinite(codes).all() and np.isfinite(model.components_).all()
        assert np.isfinite(model.transform(Y)).all() and np.isfinite(model.reconstruction_err_)
    more = NMF(12, beta_loss=loss, solver=solver, init=init, max_iter=20, random_state=0).fit(X)
    assert more.components_.shape == (12, 8)


@pytest.mark.parametrize("loss", LOSSES)
def test_given_parts_are_where_it_begins(loss):
    X = table()
    best = NMF(4, beta_loss=loss, tol=1e-9, max_iter=5000, random_state=0).fit(X)
    first = [
        NMF(4, beta_loss=loss, init=init, max_iter=1, random_state=0).fit(X).reconstruction_err_
        for init in (best.components_[::-1], "nndsvd", "random")
    ]
    # Under KL zeros are lifted a little first, since its rule multiplies.
    assert first[0] < 1.05 * best.reconstruction_err_ and min(first[1:]) > 1.2 * first[0]


def test_refusals():
    X = table()
    X[3, 7] = -0.2
    with pytest.raises(InputError, match=r"X\[3, 7\] is -0.2; NMF needs X >= 0"):
        NMF(2).fit(X)
    with pytest.raises(InputError, match=r"X\[3, 7\] is -0.2"):
        NMF(2).fit(sparse.csr_array(X))
    model = NMF(2, random_state=0).fit(np.abs(X))
    with pytest.raises(InputError, match=r"X\[3, 7\] is -0.2"):
        model.transform(X)
    for options in ({"solver": "newton"}, {"beta_loss": "kullback-leibler", "solver": "cd"}):
        with pytest.raises(InputError, match="solver"):
            NMF(2, **options).fit(np.abs(X))
    with pytest.raises(InputError, match=r"alpha_W=1\.0 and alpha_H='same' do not work with missing"):
        NMF(2, alpha_W=1.0).fit(holes(np.abs(X)))
    with pytest.raises(InputError, match=r"sample_weight has shape \(2, 2\)"):
        NMF(2).fit(np.abs(X), sample_weight=np.ones((2, 2)))
