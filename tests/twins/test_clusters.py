"""KMeans, GaussianMixture and SparseCoder beside scikit-learn's: the same names mean the same."""

import warnings

import numpy as np
import pytest
import sklearn.cluster
import sklearn.decomposition
import sklearn.mixture
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

from twofold import GaussianMixture, InputError, KMeans, Mixture, SparseCoder
from twofold.clusters.mixtures.components import Gaussian

KINDS = ["full", "tied", "diag", "spherical"]
IRIS, DIGITS = load_iris().data, load_digits().data
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# --- k-means ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-4, 1e-2, 0])
@pytest.mark.parametrize("k", [5, 20])
def test_kmeans_from_the_same_centers_takes_the_same_sweeps(k, tol):
    options = {"init": DIGITS[:k], "n_init": 1, "tol": tol}
    ours, theirs = KMeans(k, **options).fit(DIGITS), sklearn.cluster.KMeans(k, **options).fit(DIGITS)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert ours.n_iter_ == theirs.n_iter_ and ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-10)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, atol=1e-9)
    np.testing.assert_allclose(ours.transform(DIGITS[:9]), theirs.transform(DIGITS[:9]), atol=1e-6)
    assert ours.score(DIGITS) == pytest.approx(theirs.score(DIGITS), rel=1e-10)


def test_kmeans_may_begin_where_a_function_says():
    seen = []

    def first(X, n_clusters, random_state):
        seen.append((X.shape, random_state.__class__))
        return X[:n_clusters].copy()

    model = KMeans(4, init=first).fit(IRIS)
    assert seen == [((150, 4), np.random.RandomState)] * 10
    assert model.inertia_ == pytest.approx(KMeans(4, init=IRIS[:4], n_init=1).fit(IRIS).inertia_)


def test_a_start_of_another_shape_is_refused():
    for init in (IRIS[:3], lambda X, k, random_state: X[:2]):
        with pytest.raises(InputError, match=r"init has shape \(\d, 4\); \(4, 4\) centers"):
            KMeans(4, init=init).fit(IRIS)


def test_what_auto_means_for_starts():
    """One for k-means++ and for centers that are given, ten for those drawn without looking."""
    for init, starts in (("k-means++", 1), ("random", 10)):
        auto = KMeans(6, init=init, random_state=0).fit(IRIS)
        said = KMeans(6, init=init, n_init=starts, random_state=0).fit(IRIS)
        assert auto.inertia_ == said.inertia_


# --- mixtures -----------------------------------------------------------------------------------------------


def start_both(kind, k=3):
    """A start that both can begin from."""
    start = sklearn.mixture.GaussianMixture(k, covariance_type=kind, random_state=1, max_iter=1).fit(IRIS)
    return {"weights_init": start.weights_, "means_init": start.means_, "precisions_init": start.precisions_}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_iter", [1, 100])
@pytest.mark.parametrize("reg_covar", [1e-6, 0.1])
def test_one_step_and_the_end_of_em_are_theirs(kind, max_iter, reg_covar):
    """After as many steps: ours look at the trend of the last ones before they say that they have converged."""
    options = {"covariance_type": kind, "reg_covar": reg_covar, **start_both(kind)}
    ours = GaussianMixture(3, max_iter=max_iter, **options).fit(IRIS)
    usual = sklearn.mixture.GaussianMixture(3, max_iter=max_iter, **options).fit(IRIS)
    assert ours.n_iter_ >= usual.n_iter_ and ours.converged_ == usual.converged_
    theirs = sklearn.mixture.GaussianMixture(3, max_iter=ours.n_iter_, tol=0, **options).fit(IRIS)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_", "lower_bounds_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-9, err_msg=name)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_)
    for method in ("score", "score_samples", "predict_proba", "predict", "bic", "aic"):
        np.testing.assert_allclose(getattr(ours, method)(IRIS), getattr(theirs, method)(IRIS), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.*collapsed:UserWarning")
def test_constant_columns_and_tiny_scales_have_a_finite_fit(kind):
    X = IRIS.copy()
    X[:, 2] = 1.0
    assert np.isfinite(GaussianMixture(3, covariance_type=kind, random_state=0).fit(X).score(X))
    assert np.isfinite(GaussianMixture(3, covariance_type=kind, random_state=0).fit(1e-6 * IRIS).score(1e-6 * IRIS))
    with pytest.raises(InputError, match=r"column 2 of X is constant.*Drop it, or raise reg_covar"):
        GaussianMixture(3, covariance_type=kind, reg_covar=0).fit(X)


def test_columns_smaller_than_the_floor_are_named():
    with pytest.warns(UserWarning, match=r"reg_covar=1e-06 alone.*Column 1 has a variance.*scale it"):
        GaussianMixture(2, random_state=0).fit(1e-6 * IRIS)


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("kind", [*KINDS, "fixed"])
@pytest.mark.filterwarnings("ignore:.*collapsed:UserWarning")
def test_every_start_leads_uphill(init, kind, small_blocks):
    begin = GaussianMixture(3, covariance_type=kind, init_params=init, max_iter=0, random_state=0).fit(IRIS)
    end = GaussianMixture(3, covariance_type=kind, init_params=init, tol=1e-6, max_iter=200, random_state=0).fit(IRIS)
    assert begin.n_iter_ == 0 and begin.lower_bounds_ == [] and begin.means_.shape == (3, 4)
    assert end.lower_bound_ > end.lower_bounds_[0] and end.score(IRIS) > begin.score(IRIS)
    if init in ("k-means++", "random_from_data"):
        assert all((row == IRIS).all(axis=1).any() for row in begin.means_.round(9))
    elif init == "random":
        np.testing.assert_allclose(begin.means_, np.tile(IRIS.mean(axis=0), (3, 1)), atol=1.5)


def test_starts_work_with_holes_and_weights():
    H = np.where(np.random.default_rng(0).random(IRIS.shape) < 0.1, np.nan, IRIS)
    w = np.arange(150) % 3
    for init in ("kmeans", "k-means++", "random", "random_from_data"):
        model = GaussianMixture(2, init_params=init, random_state=0).fit(H, sample_weight=w)
        assert np.isfinite(model.means_).all() and np.isfinite(model.score_samples(H)).all()


def test_a_warm_start_goes_on():
    whole = GaussianMixture(3, max_iter=12, tol=0, random_state=0).fit(IRIS)
    model = GaussianMixture(3, max_iter=4, tol=0, warm_start=True, random_state=0)
    bounds = [b for _ in range(3) for b in model.fit(IRIS).lower_bounds_]
    np.testing.assert_allclose(bounds, whole.lower_bounds_)
    np.testing.assert_allclose(model.means_, whole.means_)
    done = GaussianMixture(3, warm_start=True, random_state=0).fit(IRIS)
    assert done.fit(IRIS).n_iter_ == 1  # the last bound is remembered
    with pytest.raises(InputError, match="warm_start=True"):
        done.set_params(n_components=4).fit(IRIS)


def test_given_means_alone_are_kept_in_their_order():
    centers = IRIS[[0, 60, 140]]
    begin = GaussianMixture(3, means_init=centers, max_iter=0).fit(IRIS)
    np.testing.assert_allclose(begin.means_, centers)
    nearest = ((IRIS[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(begin.weights_, np.bincount(nearest) / 150)


@pytest.mark.parametrize(
    "start, words",
    [
        ({"weights_init": [0.5, 0.5, 0.5]}, "add up to 1"),
        ({"weights_init": [1.0]}, r"weights_init has shape \(1,\)"),
        ({"means_init": np.ones((3, 2))}, r"means_init has shape \(3, 2\).*\(3, 4\)"),
        ({"precisions_init": np.ones((3, 4, 4))}, "positive definite"),
        ({"precisions_init": np.eye(4)}, r"\(3, 4, 4\)"),
        ({"precisions_init": np.eye(4), "covariance_type": "fixed"}, "Leave it out"),
    ],
)
def test_a_start_that_is_none_is_refused(start, words):
    with pytest.raises(InputError, match=words):
        GaussianMixture(3, **start).fit(IRIS)


def test_samples_come_by_component_and_from_the_seed_of_the_model():
    model = GaussianMixture(3, random_state=0).fit(IRIS)
    rows, labels = model.sample(500)
    assert np.array_equal(labels, np.sort(labels)) and set(labels) == {0, 1, 2}
    np.testing.assert_array_equal(rows, model.sample(500)[0])
    assert not np.array_equal(rows, model.sample(500, random_state=1)[0])
    with pytest.raises(InputError, match="n_samples=0"):
        model.sample(0)


def test_components_of_a_mixture_have_the_same_floor():
    """A mixture of one: the covariance of the rows, and reg_covar on its diagonal."""
    for reg in (1e-6, 0.5):
        ours = Mixture(Gaussian(reg_covar=reg), 1, random_state=0).fit(IRIS).parameters_[1][0]
        theirs = sklearn.mixture.GaussianMixture(1, reg_covar=reg).fit(IRIS).covariances_[0]
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


# --- sparse codes -------------------------------------------------------------------------------------------

ATOMS = np.random.default_rng(0).normal(size=(40, 20))
SIGNALS = np.random.default_rng(1).normal(size=(25, 20))


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("algorithm", ["omp", "lasso_cd", "lasso_lars", "lars", "threshold"])
@pytest.mark.parametrize("more", [{}, {"split_sign": True}, {"transform_alpha": 0.3, "transform_n_nonzero_coefs": 4}])
def test_codes_are_theirs(algorithm, more, unit):
    atoms = ATOMS / np.linalg.norm(ATOMS, axis=1, keepdims=True) if unit else ATOMS
    options = {"transform_algorithm": algorithm, **more}
    ours, theirs = SparseCoder(atoms, **options), sklearn.decomposition.SparseCoder(atoms, **options)
    codes = ours.transform(SIGNALS)  # without a fit, as there
    np.testing.assert_allclose(codes, theirs.transform(SIGNALS), atol=1e-9)
    np.testing.assert_allclose(ours.inverse_transform(codes), theirs.inverse_transform(codes), atol=1e-9)
    assert ours.fit(SIGNALS).n_components_ == 40 and ours.n_features_in_ == 20
    single = ours.transform(SIGNALS.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, codes, atol=1e-3)


@pytest.mark.parametrize("algorithm", ["lasso_cd", "lasso_lars", "threshold"])
def test_positive_codes_are_theirs(algorithm):
    options = {"transform_algorithm": algorithm, "positive_code": True, "transform_alpha": 0.2}
    codes = SparseCoder(ATOMS, **options).transform(SIGNALS)
    assert codes.min() == 0
    np.testing.assert_allclose(codes, sklearn.decomposition.SparseCoder(ATOMS, **options).transform(SIGNALS), atol=1e-9)


def test_split_codes_have_two_columns_an_atom():
    coder = SparseCoder(ATOMS, split_sign=True).set_output(transform="pandas")
    codes = coder.fit(SIGNALS).transform(SIGNALS)
    assert codes.shape == (25, 80) and codes.min().min() == 0
    plain = SparseCoder(ATOMS).transform(SIGNALS)
    np.testing.assert_allclose(codes.to_numpy()[:, :40] - codes.to_numpy()[:, 40:], plain)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"positive_code": True}, "omp.*Use lasso_cd"),
        ({"transform_algorithm": "lars", "positive_code": True}, "lars.*Use lasso_cd"),
        ({"transform_algorithm": "lasso_cd", "error": 0.1}, 'for transform_algorithm="omp"'),
        ({"transform_algorithm": "lasso"}, "lasso_cd"),
    ],
)
def test_what_an_algorithm_cannot_do_is_refused(options, words):
    for use in (lambda coder: coder.fit(SIGNALS), lambda coder: coder.transform(SIGNALS)):
        with pytest.raises(InputError, match=words):
            use(SparseCoder(ATOMS, **options))
    with pytest.raises(InputError, match="20 numbers"):
        SparseCoder(ATOMS).transform(SIGNALS[:, :5])


def test_an_error_that_is_small_enough_ends_the_pursuit():
    coder = SparseCoder(ATOMS, error=0.5)
    left = np.linalg.norm(SIGNALS - coder.inverse_transform(coder.transform(SIGNALS)), axis=1)
    assert left.max() <= 0.5 and coder.score(SIGNALS) == pytest.approx(-0.5 * (left**2).mean())


def test_no_convergence_is_said_as_everywhere():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GaussianMixture(3, max_iter=1, random_state=0).fit(IRIS)
        GaussianMixture(3, max_iter=0, random_state=0).fit(IRIS)
    assert [w.category for w in caught] == [ConvergenceWarning]
