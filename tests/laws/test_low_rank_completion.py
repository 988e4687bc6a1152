"""Laws of completion by low rank and nuclear norm: SVT, SVP, SVDImpute, SoftImpute, and what can be recovered."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from twofold import SVP, SVT, InputError, SoftImpute, SVDImpute
from twofold.completion._sparse_low_rank import (
    add_low_rank,
    compute_at_cells,
    draw_start,
    find_leading,
    index_cells,
    multiply,
    multiply_transposed,
)
from twofold.completion.recovery import compute_sample_bound, recovery_report
from twofold.core.data.blocks import as_blocks
from twofold.core.data.known_cells import find_known_cells
from twofold.linalg import norm, shrink

FIXED = (SVP, SVDImpute)  # models of a given rank


def plant(n=60, d=50, k=2, share=0.4, noise=0.0, seed=0):
    """A matrix of rank k, and the same with most of it hidden."""
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(n, k)) @ rng.normal(size=(k, d))
    known = rng.random((n, d)) < share
    known[np.arange(n), np.arange(n) % d] = known[np.arange(d) % n, np.arange(d)] = True
    return M, np.where(known, M + noise * rng.normal(size=(n, d)), np.nan)


def models(k=2):
    return [SVT(random_state=0), SoftImpute(1.0, random_state=0), *(kind(k, random_state=0) for kind in FIXED)]


NAMES = [type(m).__name__ for m in models()]
every = pytest.mark.parametrize("model", NAMES, indirect=True)


@pytest.fixture
def model(request):
    """A new model of this name; or the one that is given."""
    return models()[NAMES.index(request.param)] if isinstance(request.param, str) else clone(request.param)


def thin(H):
    """The known cells as stored cells."""
    known = ~np.isnan(H)
    rows, cols = np.nonzero(known)
    return sparse.csr_array((H[known], (rows, cols)), shape=H.shape)


def of(model):
    return model.row_factors_ @ model.components_ + model.column_bias_


# ---- the operator ------------------------------------------------------------------------------------------------


def sum_of(H, r=3):
    rng = np.random.default_rng(3)
    cells = find_known_cells(as_blocks(H))
    where = index_cells(cells)
    L, R = rng.normal(size=(H.shape[0], r)), rng.normal(size=(H.shape[1], r))
    return add_low_rank(where, cells.X.data, L, R), np.nan_to_num(H) + L @ R.T


@pytest.mark.usefixtures("small_blocks")
def test_the_operator_is_the_matrix_it_stands_for():
    A, D = sum_of(plant(200, 90)[1])
    assert len(A.where.rows.places) > 1 and len(A.where.cols.places) > 1
    V, Y = np.random.default_rng(4).normal(size=(90, 4)), np.random.default_rng(5).normal(size=(200, 4))
    np.testing.assert_allclose(multiply(A, V), D @ V)
    np.testing.assert_allclose(multiply_transposed(A, Y), D.T @ Y)
    known = ~np.isnan(plant(200, 90)[1])
    np.testing.assert_allclose(compute_at_cells(A.where, A.L, A.R), (A.L @ A.R.T)[known])


@pytest.mark.parametrize("shape", [(60, 50), (20, 90), (90, 20), (7, 5)])
def test_leading_triplets_are_numpy_s(shape):
    A, D = sum_of(plant(*shape)[1])
    U, s, Vt = np.linalg.svd(D, full_matrices=False)
    found = find_leading(A, draw_start(A.where, 6, 0), k=4, tol=1e-12)
    np.testing.assert_allclose(found.s[:4], s[:4], rtol=1e-8)
    np.testing.assert_allclose(found.L[:, :4] @ found.V[:, :4].T, (U[:, :4] * s[:4]) @ Vt[:4], atol=1e-6 * s[0])
    np.testing.assert_allclose(found.V.T @ found.V, np.eye(found.V.shape[1]), atol=1e-10)


@pytest.mark.parametrize("at", [0, 1, 7, 20])
def test_all_triplets_above_a_threshold_are_found(at):
    A, D = sum_of(plant()[1])
    s = np.linalg.svd(D, compute_uv=False)
    above = s[at] * 0.999
    found = find_leading(A, draw_start(A.where, 3, 0), above=above, tol=1e-10)
    assert (found.s > above).sum() == at + 1
    np.testing.assert_allclose(found.s[: at + 1], s[: at + 1], rtol=1e-6)


# ---- recovery ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["SVT", "SVP", "SVDImpute"], indirect=True)
def test_planted_low_rank_is_recovered(model):
    M, H = plant(share=0.6)
    model.fit(H)
    assert model.converged_
    assert np.linalg.norm(of(model) - M) < (1e-3 if isinstance(model, SVT) else 1e-4) * np.linalg.norm(M)
    np.testing.assert_allclose(model.singular_values_, np.linalg.svd(M, compute_uv=False)[:2], rtol=1e-3)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_svt_is_exact_on_the_known_cells(tol):
    H = plant(share=0.6, noise=0.1)[1]
    model = SVT(tau=1.0, tol=tol, max_iter=3000, random_state=0).fit(H)  # noise is met the sooner, the lower tau
    known = ~np.isnan(H)
    assert np.linalg.norm(of(model)[known] - H[known]) <= 1.001 * tol * np.linalg.norm(H[known])


def test_svt_minimises_what_it_says():
    """At the optimum M = shrink(Y, τ) for a Y that is zero outside the known cells: its dual value equals its cost."""
    H = plant(share=0.5)[1]
    model = SVT(tol=1e-7, max_iter=3000, random_state=0).fit(H)
    s = model.singular_values_
    cost = model.tau_ * s.sum() + 0.5 * (s**2).sum()
    np.testing.assert_allclose(-model.history_["objective"][-1], cost, rtol=1e-5)


def test_units_do_not_matter():
    H = plant(share=0.6)[1]
    for model, scaled in zip(models()[2:] + [SVT(random_state=0)], models()[2:] + [SVT(random_state=0)], strict=True):
        np.testing.assert_allclose(of(scaled.fit(1024 * H)), 1024 * of(model.fit(H)), rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize("factor", [0.1, 1.0, 50.0])
def test_svt_converges_whatever_the_step(factor):
    M, H = plant(share=0.6)
    model = SVT(step=2.0 * factor, max_iter=5000, random_state=0).fit(H)
    assert model.converged_ and np.linalg.norm(of(model) - M) < 2e-3 * np.linalg.norm(M)


@pytest.mark.parametrize("kind", FIXED)
def test_fixed_rank_is_stationary(kind):
    """The gradient vanishes on the tangent space: no small change of either factor helps."""
    H = plant(noise=0.3)[1]
    model = kind(2, tol=1e-13, max_iter=3000, random_state=0).fit(H)
    G = np.where(np.isnan(H), 0.0, H - of(model))
    U, Z = np.linalg.qr(model.row_factors_)[0], np.linalg.qr(model.components_.T)[0]
    assert np.abs(G @ Z).max() < 1e-4 and np.abs(G.T @ U).max() < 1e-4


def test_svp_and_svd_impute_find_the_same_minimum():
    H = plant(noise=0.3)[1]
    costs = [kind(2, tol=1e-10, max_iter=3000, random_state=0).fit(H).history_["objective"][-1] for kind in FIXED]
    np.testing.assert_allclose(*costs, rtol=1e-6)


# ---- the nuclear norm --------------------------------------------------------------------------------------------


def cells_of(H, model):
    return np.where(np.isnan(H), 0.0, H - of(model))


@pytest.mark.parametrize("reg", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_soft_impute_meets_the_optimality_conditions(reg, weighted):
    """W∘residual = λ(U Zᵀ + B) with ‖B‖₂ ≤ 1 on the complement of M's row and column space."""
    H = plant(noise=0.5)[1]
    W = np.random.default_rng(6).integers(1, 5, H.shape) if weighted else np.ones(H.shape)
    model = SoftImpute(reg, tol=1e-14, max_iter=5000, random_state=0).fit(H, sample_weight=W if weighted else None)
    G = W * cells_of(H, model)
    s = model.singular_values_
    U, Z = model.row_factors_ / np.sqrt(s), (model.components_.T / np.sqrt(s))
    np.testing.assert_allclose(U.T @ U, np.eye(len(s)), atol=1e-8)
    np.testing.assert_allclose(Z.T @ Z, np.eye(len(s)), atol=1e-8)
    np.testing.assert_allclose(U.T @ G, reg * Z.T, atol=1e-3 * reg)
    np.testing.assert_allclose(G @ Z, reg * U, atol=1e-3 * reg)
    assert norm(G, "spectral") <= reg * (1 + 1e-3)
    cost = 0.5 * (W * cells_of(H, model) ** 2).sum() + reg * norm(of(model), "nuclear")
    np.testing.assert_allclose(model.history_["objective"][-1], cost, rtol=1e-10)


def test_soft_impute_is_at_the_optimum_in_few_sweeps_though_few_cells_are_known():
    """Shrinkage alone moves a factor by the share of cells that are known: of one in forty, hundreds of sweeps."""
    rng = np.random.default_rng(7)
    M = rng.normal(size=(600, 5)) @ rng.normal(size=(5, 500))
    H = np.where(rng.random(M.shape) < 0.025, M + 0.3 * rng.normal(size=M.shape), np.nan)
    model = SoftImpute(4.0, random_state=0).fit(H)
    assert model.converged_ and model.n_iter_ <= 40
    assert norm(cells_of(H, model), "spectral") <= 4.0 * 1.01


@pytest.mark.parametrize("tau", [0.0, 1.0, 30.0])
def test_soft_impute_of_a_whole_table_is_shrinkage(tau):
    M = plant(noise=0.5, share=2.0)[1]
    model = SoftImpute(tau, tol=1e-14, random_state=0).fit(M)
    np.testing.assert_allclose(of(model), shrink(M, tau), atol=1e-5)
    left = np.maximum(np.linalg.svd(M, compute_uv=False) - tau, 0)
    np.testing.assert_allclose(model.singular_values_, left[left > 1e-9], rtol=1e-5)


def test_a_large_reg_gives_zero_and_a_smaller_one_does_not():
    H = plant()[1]
    top = norm(np.nan_to_num(H), "spectral")
    assert not of(SoftImpute(1.0001 * top, random_state=0).fit(H)).any()
    assert of(SoftImpute(0.99 * top, random_state=0).fit(H)).any()


def test_a_smaller_reg_has_a_larger_nuclear_norm_and_a_smaller_error():
    H = plant(noise=0.5)[1]
    fits = [SoftImpute(reg, tol=1e-9, random_state=0).fit(H) for reg in (20.0, 10.0, 5.0, 1.0)]
    assert (np.diff([m.singular_values_.sum() for m in fits]) > 0).all()
    assert (np.diff([(cells_of(H, m) ** 2).sum() for m in fits]) < 0).all()


def test_the_chosen_reg_is_near_the_best():
    M, H = plant(100, 80, 3, 0.4, 0.5)
    model = SoftImpute(random_state=0).fit(H)
    holes = np.isnan(H)
    error = {reg: norm((of(SoftImpute(reg, random_state=0).fit(H)) - M) * holes) for reg in model.path_["reg"]}
    assert model.reg_ in error and error[model.reg_] <= 1.1 * min(error.values())
    assert len(model.path_["reg"]) == len(model.path_["rmse"]) == len(model.path_["rank"])


def test_rank_is_capped():
    H = plant(noise=0.5)[1]
    assert SoftImpute(0.5, n_components=2, random_state=0).fit(H).components_.shape == (2, 50)


def test_centring_is_fitting_what_is_left():
    H = plant(noise=0.5)[1] + np.arange(50.0)
    mean = np.nanmean(H, axis=0)
    model, plain = (SoftImpute(2.0, center=c, random_state=0) for c in (True, False))
    np.testing.assert_allclose(of(model.fit(H)), of(plain.fit(H - mean)) + mean, atol=1e-6)
    row = np.full((1, 50), np.nan)
    np.testing.assert_allclose(model.predict(row)[0], of(model).mean(axis=0), atol=1e-8)


# ---- new rows, kinds of input, weights ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        SVT(tol=1e-8, max_iter=5000, random_state=0),
        SVP(2, tol=1e-10, random_state=0),
        SVDImpute(2, tol=1e-10, max_iter=2000, random_state=0),
        SoftImpute(1.0, tol=1e-14, max_iter=5000, random_state=0),
        SoftImpute(1.0, center=True, tol=1e-14, max_iter=5000, random_state=0),
    ],
    indirect=True,
)
def test_a_fitted_row_folded_in_again_gets_its_own_factor(model):
    H = plant(share=0.6)[1]
    model.fit(H)
    np.testing.assert_allclose(model.fold_in(H), model.row_factors_, atol=2e-3)
    np.testing.assert_allclose(model.predict(H), of(model), atol=5e-3)
    rows, cols = np.nonzero(np.isnan(H))
    np.testing.assert_allclose(model.complete(H)[rows, cols], model.predict(rows, cols), atol=5e-3)


@every
def test_row_and_column_order_do_not_matter(model):
    H = plant(share=0.6)[1]
    i, j = np.random.default_rng(7).permutation(60), np.random.default_rng(8).permutation(50)
    tight = model.set_params(tol=1e-8, max_iter=3000)
    expected = of(tight.fit(H))
    np.testing.assert_allclose(of(tight.fit(H[i][:, j])), expected[i][:, j], atol=1e-2 * np.abs(expected).max())


@pytest.mark.parametrize("kind", [*FIXED, lambda k, **o: SoftImpute(1.0, **o)])
def test_weights_are_those_of_the_squared_error(kind):
    H = plant(noise=0.3)[1]
    W = np.random.default_rng(9).integers(1, 6, H.shape).astype(float)
    model = kind(2, random_state=0, tol=1e-9, max_iter=3000).fit(H, sample_weight=W)
    error = 0.5 * (W * cells_of(H, model) ** 2).sum()
    penalty = model.singular_values_.sum() if isinstance(model, SoftImpute) else 0.0
    np.testing.assert_allclose(model.history_["objective"][-1], error + penalty, rtol=1e-8)
    plain = kind(2, random_state=0, tol=1e-9, max_iter=3000).fit(H)
    assert error < 0.5 * (W * cells_of(H, plain) ** 2).sum()


def test_svt_refuses_weights_that_differ():
    H = plant(share=0.6)[1]
    np.testing.assert_array_equal(
        of(SVT(random_state=0).fit(H, sample_weight=np.full(60, 3.0))), of(SVT(random_state=0).fit(H))
    )
    with pytest.raises(InputError, match="meets every known cell exactly"):
        SVT().fit(H, sample_weight=np.arange(1.0, 61.0))


# ---- edges -------------------------------------------------------------------------------------------------------

defaults = pytest.mark.parametrize("kind", [SVT, SVP, SVDImpute, SoftImpute])


@defaults
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_and_columns_without_cells_get_the_means(kind):
    M, H = plant(noise=0.01)
    H, M = H + 3, M + 3
    H[4], H[:, 7] = np.nan, np.nan
    model = kind(random_state=0).fit(H)
    fit = of(model)
    others, kept = np.arange(60) != 4, np.arange(50) != 7
    np.testing.assert_allclose(fit[4], fit[others].mean(axis=0), atol=1e-8)
    np.testing.assert_allclose(fit[:, 7], fit[:, kept].mean(axis=1), atol=1e-8)
    np.testing.assert_allclose(model.fold_in(H[4:5])[0], model.row_factors_[4], atol=1e-8)
    assert 1 < fit[4].mean() < 5


# ---- the constrained form ----------------------------------------------------------------------------------------


def project_on_ball(M, radius):
    """The nearest matrix whose singular values have a sum of at most `radius`."""
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    if s.sum() > radius:
        over = (np.cumsum(s) - radius) / np.arange(1, len(s) + 1)
        s = np.maximum(s - over[np.flatnonzero(s > over)[-1]], 0)
    return U * s @ Vt


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_a_radius_bounds_the_nuclear_norm(share):
    """Projected gradient steps, which keep to the ball, end at the same matrix."""
    X = plant(25, 20, 3, share=0.7, noise=0.3)[0]
    known = ~np.isnan(X)
    radius = share * np.linalg.svd(np.where(known, X, 0), compute_uv=False).sum()
    M = np.zeros(X.shape)
    for _ in range(2000):
        M = project_on_ball(M + np.where(known, X - M, 0), radius)
    model = SoftImpute(radius=radius, tol=1e-9, max_iter=5000, random_state=0).fit(X)
    assert model.singular_values_.sum() == pytest.approx(radius, rel=1e-3)
    np.testing.assert_allclose(model.row_factors_ @ model.components_, M, atol=5e-3 * abs(M).max())


def test_a_radius_that_does_not_bind_leaves_no_penalty():
    X = plant(25, 20, 2, share=0.9)[0]
    wide = SoftImpute(radius=1e6, random_state=0, max_iter=2000).fit(X)
    assert wide.reg_ == 0 and np.nanmax(abs(X - wide.predict(X))) < 1e-2 * np.nanmax(abs(X))
    with pytest.raises(InputError, match="twice"):
        SoftImpute(reg=1.0, radius=1.0).fit(X)


# ---- the report --------------------------------------------------------------------------------------------------


def test_a_table_of_ones_has_no_coherence_beyond_one():
    X = np.ones((6, 5))
    X[0, 0] = X[3, 2] = np.nan
    report = recovery_report(X, 1)
    assert report.degrees_of_freedom == 1 * (6 + 5 - 1) and report.known == 28 and report.share == 28 / 30
    np.testing.assert_allclose([report.row_coherence, report.column_coherence, report.cross_coherence], 1, rtol=1e-4)
    np.testing.assert_allclose(report.sample_bound, 64 * 11 * np.log(12) ** 2, rtol=1e-3)
    assert (report.groups, report.empty_rows, report.empty_columns) == (1, 0, 0)
    assert (report.least_in_row, report.least_in_column) == (4, 5)
    assert report.possible and "rank" in str(report)


def test_incoherence_is_the_least_bound_on_single_entries():
    """The definition, entry by entry, on a square table of rank 3."""
    M = plant(30, 30, 3, share=1.0)[0]
    report = recovery_report(M, 3)
    U, _, Vt = np.linalg.svd(M)
    P, Q, E = U[:, :3] @ U[:, :3].T, Vt[:3].T @ Vt[:3], U[:, :3] @ Vt[:3]
    entries = [abs(P - 0.1 * np.eye(30)).max(), abs(Q - 0.1 * np.eye(30)).max(), abs(E).max()]
    assert report.incoherence == pytest.approx(max(entries) * 30 / np.sqrt(3), rel=1e-4)
    assert report.incoherence_bound == pytest.approx(report.incoherence**2 * 30 * 3 * np.log(30) ** 6)


def test_a_spike_is_as_coherent_as_can_be():
    X = np.zeros((6, 5))
    X[2, 3] = 4.0
    report = recovery_report(X, 1)
    np.testing.assert_allclose([report.row_coherence, report.column_coherence], [6, 5], rtol=1e-6)
    np.testing.assert_allclose(report.cross_coherence, np.sqrt(30), rtol=1e-6)
    np.testing.assert_allclose(report.sample_bound, compute_sample_bound((6, 5), 1, 6.0, np.sqrt(30)), rtol=1e-6)


def make_groups():
    X = np.full((5, 6), np.nan)
    X[:2, :3], X[2:, 3:] = 1.0, 2.0
    return X


def hide(k, at):
    X = plant(20, 15, k, share=0.9)[0]
    X[at] = np.nan
    return X


@pytest.mark.parametrize(
    "X, k, figures, words",
    [
        (make_groups(), 1, {"groups": 2}, "2 groups"),
        (hide(3, np.s_[4, 2:]), 3, {"least_in_row": 2}, "fewer than the rank 3"),
        (hide(1, np.s_[:, 5]), 1, {"empty_columns": 1}, "no known cell"),
        (plant(20, 15, 1, share=0.1)[1], 5, {}, "cannot determine"),
    ],
)
def test_what_cannot_be_recovered_is_said(X, k, figures, words):
    report = recovery_report(X, k)
    assert not report.possible and words in report.verdict
    assert all(getattr(report, name) == value for name, value in figures.items())


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_rank_is_found_and_recovery_hoped_for(k):
    report = recovery_report(plant(80, 70, k, share=0.6)[1])
    assert report.estimated and report.n_components == k and report.hopeful and report.residual < 1e-3


def test_noise_is_not_recovered_exactly():
    report = recovery_report(plant(80, 70, 2, share=0.6, noise=0.5)[1])
    assert report.possible and not report.hopeful and "approximation" in report.verdict


def test_a_rank_that_cannot_be_is_refused():
    with pytest.raises(InputError, match="n_components=9"):
        recovery_report(np.ones((8, 8)), 9)
