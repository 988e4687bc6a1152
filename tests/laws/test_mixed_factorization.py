"""A loss for each column: descent, optima, holes, blocks, and dedicated models where columns are of one kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit, logsumexp, softmax

import twofold
from twofold import PCA, Factorization
from twofold.core.checks import InputError
from twofold.factors import (
    L1,
    Categorical,
    Free,
    Huber,
    KSparse,
    Logistic,
    NonNegative,
    OneHot,
    Ordinal,
    Orthonormal,
    Poisson,
    Ridge,
    Simplex,
    Squared,
    UnitNorm,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KINDS = [Squared(), Ordinal(4), Huber(0.5), Logistic(), Categorical(3), Squared(), Poisson("log"), Categorical(4)]
OWNERS = np.array([0, 1, 1, 1, 2, 3, 4, 4, 4, 5, 6, 7, 7, 7, 7])
TIGHT = {"tol": 1e-13, "max_iter": 4000, "random_state": 0}
PAIRS = [
    (Free(), Free()),
    (Ridge(0.3), Ridge(0.5)),
    (NonNegative(), NonNegative()),
    (Simplex(), L1(0.3)),
    (OneHot(), Ridge(0.1)),
    (KSparse(1), Ridge(0.5)),
    (UnitNorm(), Ridge(0.5)),
]
pairs = pytest.mark.parametrize(("left", "right"), PAIRS, ids=repr)


def make_table(n=60, seed=0, share=0.0):
    """Eight columns of six kinds that follow from two hidden numbers of each row; `share` of the cells is unknown."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(n, 2))

    def direction(width=1):
        return U @ rng.normal(size=(2, width)) * 1.5

    X = np.column_stack(
        [
            direction()[:, 0] + 0.3 * rng.normal(size=n),
            np.digitize(direction()[:, 0] + rng.logistic(size=n), [-1.5, 0.0, 2.0]),
            direction()[:, 0] + rng.standard_t(2, size=n) + 4,
            rng.random(n) < expit(direction()[:, 0]),
            (direction(3) + rng.gumbel(size=(n, 3))).argmax(axis=1),
            20 * direction()[:, 0] + rng.normal(size=n) + 100,
            rng.poisson(np.exp(0.4 * direction()[:, 0] + 1)),
            (direction(4) + rng.gumbel(size=(n, 4))).argmax(axis=1),
        ]
    ).astype(float)
    X[:4, 7] = range(4)  # every level occurs
    X[:4, 1] = range(4)
    return np.where(rng.random(X.shape) < share, np.nan, X)


def cell_losses(X, M):
    """The loss (n,d) of every known cell, by its definition; 0 of a hole. M has the columns of OWNERS."""
    out = np.zeros(X.shape)
    for j, loss in enumerate(KINDS):
        here = ~np.isnan(X[:, j])
        x, m = X[here, j], M[here][:, j == OWNERS]
        match loss:
            case Squared():
                each = 0.5 * (x - m[:, 0]) ** 2
            case Huber(delta):
                r = np.abs(x - m[:, 0])
                each = np.where(r < delta, 0.5 * r**2, delta * r - 0.5 * delta**2)
            case Logistic():
                each = -np.log(np.where(x == 1, expit(m[:, 0]), expit(-m[:, 0])))
            case Poisson():
                each = np.exp(m[:, 0]) - x * m[:, 0] - x + x * np.log(np.maximum(x, 1))
            case Categorical():
                each = logsumexp(m, axis=1) - m[np.arange(len(x)), x.astype(int)]
            case Ordinal():
                each = -np.log(np.where(x[:, None] > np.arange(3), expit(m), expit(-m))).sum(axis=1)
        out[here, j] = each
    return out


def slopes(X, M, h=1e-6):
    """Derivatives (n,D) of the definition above, by differences."""
    out = np.empty(M.shape)
    for c in range(M.shape[1]):
        step = h * (np.arange(M.shape[1]) == c)
        out[:, c] = (cell_losses(X, M + step) - cell_losses(X, M - step))[:, OWNERS[c]] / (2 * h)
    return out


def row_costs(model, X, U):
    """Return what these codes cost, by the definition: without the penalty of the components."""
    loss = (cell_losses(X, U @ model.components_ + model.intercept_) * model.scales_).sum()
    return loss + model._choices()[1].values(U).sum()


def find_units(model, X):
    """Return the standard deviations of the columns of numbers (D,), in which a scaled model penalizes Z; else 1."""
    numbers = np.isin(OWNERS, [0, 2, 5]) & model.scale
    return np.where(numbers, np.nanstd(X, axis=0)[OWNERS], 1.0)


def objective(model, X, U):
    """Return what the fitted components and these codes cost, by the definition."""
    right = model._choices()[2]
    first = np.unique(OWNERS, return_index=True)[1]
    once = np.ones(len(OWNERS), bool)
    once[OWNERS == 1] = False
    once[first[1]] = True  # the equal columns of ordered levels count once
    return row_costs(model, X, U) + right.values((model.components_ / find_units(model, X))[:, once]).sum()


def fit(X, left=Ridge(0.3), right=Ridge(0.5), k=2, sample_weight=None, **params):  # noqa: B008
    params = {"intercept": True, "random_state": 0, **params}
    return Factorization(k, loss=KINDS, left=left, right=right, **params).fit(X, sample_weight=sample_weight)


# ---- descent and optimum -----------------------------------------------------------------------------------------


@pairs
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_objective_never_rises_and_is_what_it_says(left, right, scale, share):
    X = make_table(share=share)
    model = fit(X, left, right, scale=scale, tol=0.0, max_iter=15)
    path = np.array(model.history_["objective"])
    assert np.all(np.diff(path) <= 0) and path[-1] < path[0]
    codes = model.transform(X)
    np.testing.assert_allclose(left.prox(codes, 0.0), codes, atol=1e-9)
    np.testing.assert_array_equal(model.owners_, OWNERS)
    assert np.ptp(model.components_[:, OWNERS == 1], axis=1).max() == 0
    if not isinstance(left, KSparse | UnitNorm):  # of those, the best code need not be found
        assert objective(model, X, codes) <= path[-1] * (1 + 1e-9)
        assert -model.score(X) * len(X) == pytest.approx(row_costs(model, X, codes))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_the_end_is_stationary(scale, share):
    X = make_table(share=share)
    model = fit(X, scale=scale, **TIGHT)
    U, Z = model.transform(X), model.components_
    assert objective(model, X, U) == pytest.approx(model.history_["objective"][-1], rel=1e-8)
    S = slopes(X, U @ Z + model.intercept_) * model.scales_[OWNERS]
    ordered = OWNERS == 1
    size = np.abs(S).max()
    np.testing.assert_allclose(S @ Z.T + 0.3 * U, 0, atol=2e-3 * size * np.abs(Z).max())
    pull, units = U.T @ S, find_units(model, X)
    at_rest = pull * units + 0.5 * Z / units
    np.testing.assert_allclose(at_rest[:, ~ordered], 0, atol=5e-3 * (size * units * np.abs(U).max()).max())
    np.testing.assert_allclose(
        pull[:, ordered].sum(axis=1) + 0.5 * Z[:, ordered][:, 0], 0, atol=5e-3 * size * np.abs(U).max()
    )
    np.testing.assert_allclose(S.sum(axis=0), 0, atol=5e-3 * size)


def test_thresholds_of_ordered_levels_are_in_order():
    model = fit(make_table(n=200), tol=1e-9, max_iter=2000)
    assert np.all(np.diff(model.intercept_[OWNERS == 1]) < 0)


# ---- the dedicated models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "columns"),
    [(Squared(), [0, 5]), (Logistic(), [3]), (Poisson("log"), [6]), (Huber(0.5), [0, 2, 5])],
    ids=repr,
)
def test_a_list_of_equal_losses_is_the_loss(loss, columns):
    X = np.repeat(make_table(share=0.1)[:, columns], 3, axis=1)
    params = {"left": Ridge(0.3), "right": Ridge(0.5), "intercept": True, "max_iter": 10, "random_state": 0}
    one = Factorization(2, loss=loss, **params).fit(X)
    other = Factorization(2, loss=[loss] * X.shape[1], **params).fit(X)
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(one.complete(X), other.complete(X))


def test_numbers_alone_are_principal_components():
    """Huber's loss with a bound beyond all residuals is squared error: the two kinds together give PCA's plane."""
    X = (
        np.random.default_rng(0).normal(size=(80, 3))
        @ np.random.default_rng(1).normal(size=(3, 6))
        * [1, 2, 3, 40, 5, 60]
    )
    X += 0.3 * np.random.default_rng(2).normal(size=X.shape)
    kinds = [Squared(), Huber(1e9)] * 3
    model = Factorization(2, loss=kinds, intercept=True, scale=True, **TIGHT).fit(X)
    pca = PCA(2, scale=True).fit(X)
    np.testing.assert_allclose(model.scales_, 2 / X.var(axis=0), rtol=1e-6)
    expected = pca.inverse_transform(pca.transform(X))
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), expected, atol=1e-4 * np.abs(X).max())
    rest = ((X - expected) ** 2 / X.var(axis=0)).sum()
    assert model.history_["objective"][-1] == pytest.approx(rest, rel=1e-7)


def yes_or_no(n=80, d=6):
    rng = np.random.default_rng(3)
    X = (rng.random((n, d)) < expit(rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)))).astype(float)
    return np.where(rng.random(X.shape) < 0.1, np.nan, X)


def test_two_ordered_levels_are_yes_or_no():
    X, params = yes_or_no(), {"left": Ridge(0.3), "right": Ridge(0.5), "intercept": True, **TIGHT}
    yes = Factorization(2, loss=Logistic(), **params).fit(X)
    two = Factorization(2, loss=Ordinal(2), **params).fit(X)
    mixed = Factorization(2, loss=[Logistic(), Ordinal(2)] * 3, **params).fit(X)
    for other in (two, mixed):
        assert other.history_["objective"][-1] == pytest.approx(yes.history_["objective"][-1], rel=1e-7)
    np.testing.assert_allclose(
        two.level_probabilities(two.transform(X), 1), yes.level_probabilities(yes.transform(X), 1), atol=1e-3
    )


def test_two_categories_are_yes_or_no():
    """With z in (−z/2, z/2) the ridge is half as large: ½ 2α ‖z/2‖² · 2 = ½ α ‖z‖²."""
    X, params = yes_or_no(), {"left": Ridge(0.3), "intercept": True, **TIGHT}
    yes = Factorization(2, loss=Logistic(), right=Ridge(0.5), **params).fit(X)
    two = Factorization(2, loss=Categorical(2), right=Ridge(1.0), **params).fit(X)
    assert two.history_["objective"][-1] == pytest.approx(yes.history_["objective"][-1], rel=1e-6)
    np.testing.assert_allclose(two.components_[:, ::2], -two.components_[:, 1::2], atol=1e-3)
    both = [model.level_probabilities(model.transform(X), 2) for model in (yes, two)]
    np.testing.assert_allclose(*both, atol=2e-3)


def test_clusters_of_categories_have_the_shares_of_their_rows():
    X = make_table(n=200)
    model = fit(X, OneHot(), Free(), k=3, tol=1e-12, max_iter=2000)
    groups = model.transform(X).argmax(axis=1)
    M = model.components_ + model.intercept_
    for c in np.unique(groups):
        shares = np.bincount(X[groups == c, 4].astype(int), minlength=3) / np.sum(groups == c)
        np.testing.assert_allclose(softmax(M[c, OWNERS == 4]), shares, atol=1e-3)
        assert M[c, OWNERS == 5] == pytest.approx(X[groups == c, 5].mean(), rel=1e-3)


# ---- scales ------------------------------------------------------------------------------------------------------


def test_every_column_costs_one_a_cell_at_its_best_constant():
    X = make_table(share=0.2)
    scales = fit(X, scale=True, max_iter=1).scales_
    for j in (0, 5):
        assert 1 / scales[j] == pytest.approx(0.5 * np.nanvar(X[:, j]), rel=1e-6)
    for j in (3, 4, 7):
        share = np.unique(X[~np.isnan(X[:, j]), j], return_counts=True)[1] / np.sum(~np.isnan(X[:, j]))
        assert 1 / scales[j] == pytest.approx(-(share * np.log(share)).sum(), rel=1e-6)
    known = X[~np.isnan(X[:, 2]), 2]
    tried = np.array([Huber(0.5).value(known, np.full(known.shape, m)).mean() for m in np.linspace(0, 8, 4001)])
    assert 1 / scales[2] == pytest.approx(tried.min(), rel=1e-4)


def test_units_of_columns_do_not_matter_with_scales():
    X = make_table(share=0.1)
    Y = X.copy()
    Y[:, 0], Y[:, 5] = 1000 * X[:, 0] + 7, 0.01 * X[:, 5]
    start = np.random.default_rng(0).normal(size=(2, len(OWNERS)))
    sizes = np.where(OWNERS == 0, 1000.0, np.where(OWNERS == 5, 0.01, 1.0))
    for right in (Free(), Ridge(0.5), L1(0.3), UnitNorm()):
        kept = [loss for loss in KINDS if not isinstance(loss, Ordinal)]
        here = OWNERS != 1
        columns = [j for j in range(8) if j != 1]
        made = {"left": Ridge(0.3), "right": right, "intercept": True, "scale": True, "tol": 0.0, "max_iter": 20}
        one = Factorization(2, loss=kept, init=start[:, here], **made).fit(X[:, columns])
        other = Factorization(2, loss=kept, init=(start * sizes)[:, here], **made).fit(Y[:, columns])
        np.testing.assert_allclose(other.history_["objective"], one.history_["objective"], rtol=1e-7)
        np.testing.assert_allclose(other.transform(Y[:, columns]), one.transform(X[:, columns]), rtol=1e-3, atol=1e-5)


def test_a_constant_column_and_an_unknown_one_are_survived():
    X = make_table()
    X[:, 4], X[:, 5], X[:, 7] = 2.0, 3.0, np.nan
    model = fit(X, scale=True, max_iter=50)
    assert np.isfinite(model.complete(X)).all()
    np.testing.assert_array_equal(model.scales_[[5, 7]], 1.0)
    np.testing.assert_array_equal(model.complete(X)[:, 4], 2.0)


# ---- holes and weights -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [False, True])
def test_what_lies_in_a_hole_is_not_looked_at(scale):
    X = make_table()
    W = (np.random.default_rng(1).random(X.shape) < 0.8).astype(float)
    other = np.where(W > 0, X, np.array([99, 3, 99, 1, 2, 99, 99, 3]))
    one = fit(X, scale=scale, max_iter=20, sample_weight=W)
    for Y, weights in ((other, W), (np.where(W > 0, X, np.nan), W)):
        np.testing.assert_array_equal(
            fit(Y, scale=scale, max_iter=20, sample_weight=weights).components_, one.components_
        )
    gone = fit(np.where(W > 0, X, np.nan), scale=scale, max_iter=20)
    np.testing.assert_allclose(gone.components_, one.components_, rtol=1e-6, atol=1e-8)


def test_only_holes_are_filled_and_every_column_in_its_own_terms():
    X = make_table(n=300)
    H = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    model = fit(H, scale=True)
    filled, gone = model.complete(H), np.isnan(H)
    np.testing.assert_array_equal(filled[~gone], X[~gone])
    for j, levels in ((1, 4), (4, 3), (7, 4)):
        assert np.isin(filled[:, j], range(levels)).all()
        mode = np.bincount(H[~gone[:, j], j].astype(int)).argmax()
        assert np.mean(filled[gone[:, j], j] == X[gone[:, j], j]) > np.mean(X[gone[:, j], j] == mode)
    assert filled[:, 3].min() >= 0 and filled[:, 3].max() <= 1


def test_probabilities_are_those_of_the_cells():
    X = make_table(share=0.1)
    model = fit(X)
    U = model.transform(X)
    cells = model.inverse_transform(U)
    for j, levels in ((1, 4), (3, 2), (4, 3), (7, 4)):
        P = model.level_probabilities(U, j)
        assert P.shape == (60, levels) and P.min() >= 0
        np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.level_probabilities(U, 4).argmax(axis=1), cells[:, 4])
    np.testing.assert_array_equal((model.level_probabilities(U, 1).cumsum(axis=1) < 0.5).sum(axis=1), cells[:, 1])
    np.testing.assert_allclose(model.level_probabilities(U, 3)[:, 1], cells[:, 3])


def test_a_row_of_weight_two_is_two_rows():
    X, w = make_table(share=0.1), np.random.default_rng(3).integers(0, 4, 60)
    start = np.random.default_rng(0).normal(size=(2, len(OWNERS)))
    one = fit(X, scale=True, init=start, tol=0.0, max_iter=10, sample_weight=w)
    two = fit(np.repeat(X, w, axis=0), scale=True, init=start, tol=0.0, max_iter=10)
    np.testing.assert_allclose(two.history_["objective"], one.history_["objective"], rtol=1e-7)
    np.testing.assert_allclose(two.components_, one.components_, rtol=1e-4, atol=1e-6)


def test_hidden_columns_are_scored_by_their_loss():
    X = make_table(n=300)
    better, worse = fit(X, scale=True), fit(X, scale=True, left=Ridge(1e6))
    assert better.heldout_score(make_table(n=300, seed=0)) > worse.heldout_score(make_table(n=300, seed=0))
    assert worse.heldout_score(X) == pytest.approx(-1, rel=1e-2)  # constants cost one a cell


# ---- blocks, files, edges ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("weighted", [False, True])
def test_sources_and_threads_do_not_matter(tmp_path, weighted):
    da = pytest.importorskip("dask.array")
    X = make_table(n=400, share=0.1)
    W = np.random.default_rng(1).random(X.shape) if weighted else None
    np.save(tmp_path / "x.npy", X)
    with twofold.config(threads=1):
        expected = fit(X, scale=True, max_iter=6, sample_weight=W)
        codes = expected.transform(X)
    for source in (X, tmp_path / "x.npy", da.from_array(X, chunks=(77, 5))):
        with twofold.config(threads=3):
            model = fit(source, scale=True, max_iter=6, sample_weight=W)
            assert np.array_equal(model.components_, expected.components_)
            assert np.array_equal(np.asarray(model.transform(source)), codes)


def test_files_keep_the_losses_of_columns(tmp_path):
    X = make_table(share=0.1)
    model = fit(X, scale=True, max_iter=10)
    model.save(tmp_path / "m.twofold")
    back = twofold.load(tmp_path / "m.twofold")
    assert back.loss == KINDS and np.array_equal(back.complete(X), model.complete(X))
    model.owners_ = model.owners_[::-1].copy()
    model.save(tmp_path / "wrong.twofold")
    with pytest.raises(twofold.ModelFileError, match="owners_"):
        twofold.load(tmp_path / "wrong.twofold")


def test_single_precision_stays():
    X = make_table(share=0.1).astype(np.float32)
    model = fit(X, scale=True, max_iter=5)
    codes = model.transform(X)
    for found in (model.components_, model.intercept_, codes, model.inverse_transform(codes), model.complete(X)):
        assert found.dtype == np.float32


def test_one_row_and_rows_without_anything_known():
    X = make_table(share=0.1)
    X[5] = np.nan
    model = fit(X, scale=True, max_iter=20)
    np.testing.assert_allclose(model.transform(X)[5], 0, atol=1e-9)
    assert np.isfinite(fit(X[:1], scale=True, max_iter=5).transform(X)).all()


def test_what_does_not_go_together_is_refused():
    X = make_table()

    def require_refusal(match, X=X, **params):
        with pytest.raises(InputError, match=match):
            Factorization(2, **{"loss": KINDS, "intercept": True, **params}).fit(X)

    require_refusal(r"list of 7 and X has 8 columns", loss=KINDS[:7])
    require_refusal(r"loss\[1\] is 'logistic'", loss=[Squared(), "logistic"])
    require_refusal(r"loss\[0\] is Poisson.*link=\"log\"", loss=[Poisson(), Squared()])
    require_refusal("empty", loss=[])
    require_refusal("intercept=True", intercept=False)
    require_refusal("right=Orthonormal", right=Orthonormal())
    require_refusal("sparse", X=sparse.csr_array(X))
    for value in (3.0, -1.0, 0.5):
        Y = X.copy()
        Y[9, 4] = value
        require_refusal(
            rf"X\[9, 4\] is {value:g}; loss=Categorical\(n_levels=3\) needs a whole number from 0 to 2", X=Y
        )
    model = fit(X, max_iter=3)
    with pytest.raises(InputError, match=r"X\[9, 4\] is 0.5"):
        model.transform(Y)
    for column, match in ((0, "no levels"), (8, "columns 0 to 7")):
        with pytest.raises(InputError, match=match):
            model.level_probabilities(model.transform(X), column)
    for part in (Categorical, Ordinal):
        with pytest.raises(InputError, match="n_levels"):
            part(1)


# ---- the losses themselves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Categorical(2), Categorical(5), Ordinal(2), Ordinal(5)], ids=repr)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([0.1, 1.0, 10.0]))
def test_slopes_are_derivatives_and_parabolas_bend_at_least_as_much(loss, seed, size):
    rng = np.random.default_rng(seed)
    X, M = rng.integers(0, loss.n_levels, size=(4, 3)).astype(float), size * rng.normal(size=(4, 3 * loss.width))
    h = 1e-5
    slope, curvature = loss.slope(X, M), loss.curvature(X, M)
    bends = np.empty((4, 3, loss.width, loss.width))
    for c in range(loss.width):
        step = np.tile(h * (np.arange(loss.width) == c), 3)
        expected = (loss.value(X, M + step) - loss.value(X, M - step)) / (2 * h)
        np.testing.assert_allclose(slope.reshape(4, 3, -1)[:, :, c], expected, atol=1e-5)
        bends[:, :, c] = ((loss.slope(X, M + step) - loss.slope(X, M - step)) / (2 * h)).reshape(4, 3, -1)
    above = curvature.reshape(4, 3, -1)[:, :, :, None] * np.eye(loss.width) - bends
    assert np.linalg.eigvalsh(above).min() > -1e-5


@pytest.mark.parametrize("loss", [Categorical(4), Ordinal(4)], ids=repr)
def test_a_level_costs_least_where_it_is_certain(loss):
    X = np.arange(4.0)[:, None]
    above = 2.0 * (np.arange(3) < X) - 1
    sure = 60 * (np.eye(4) if loss.width == 4 else above)
    np.testing.assert_allclose(loss.value(X, sure), 0, atol=1e-12)
    np.testing.assert_array_equal(loss.mean(sure), X)
    np.testing.assert_allclose(loss.probabilities(sure), np.eye(4), atol=1e-12)
    for value in (0.0, 1e3, -1e3):
        for name in ("value", "slope", "curvature"):
            assert np.isfinite(getattr(loss, name)(X, np.full((4, loss.width), value))).all()
