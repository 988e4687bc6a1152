"""Calls of scikit-learn's documentation for KMeans, GaussianMixture and SparseCoder show the same with our classes."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.decomposition import MiniBatchDictionaryLearning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    adjusted_rand_score,
    silhouette_samples,
    silhouette_score,
)
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from twofold import GaussianMixture, KMeans, SparseCoder

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*collapsed:UserWarning"),
]


SIX = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])


# --- KMeans -------------------------------------------------------------------------------------------------


def test_two_clusters_of_six_points():
    model = KMeans(n_clusters=2, random_state=0, n_init="auto").fit(SIX)
    assert len(set(model.labels_[:3])) == len(set(model.labels_[3:])) == 1 and model.labels_[0] != model.labels_[3]
    assert list(model.predict([[0, 0], [12, 3]])) == [model.labels_[0], model.labels_[3]]
    np.testing.assert_allclose(np.sort(model.cluster_centers_, axis=0), [[1, 2], [10, 2]])


def test_where_kmeans_goes_wrong_and_a_mixture_does_not():
    X, y = make_blobs(n_samples=1500, random_state=170)
    turned = X @ [[0.60834549, -0.63667341], [-0.40887718, 0.85253229]]
    cut = KMeans(n_clusters=3, random_state=170).fit_predict(turned)
    soft = GaussianMixture(n_components=3, random_state=0).fit_predict(turned)
    assert adjusted_rand_score(y, cut) < 0.8 < adjusted_rand_score(y, soft)


def test_uneven_sizes_need_several_starts():
    X, y = make_blobs(n_samples=1500, random_state=170)
    few = np.vstack((X[y == 0][:500], X[y == 1][:100], X[y == 2][:10]))
    truth = np.repeat([0, 1, 2], [500, 100, 10])
    found = KMeans(n_clusters=3, n_init=10, random_state=0).fit_predict(few)
    assert adjusted_rand_score(truth, found) > 0.95


def test_silhouettes_choose_the_number_of_clusters():
    X, _ = make_blobs(500, centers=4, cluster_std=1, center_box=(-10.0, 10.0), shuffle=True, random_state=1)
    scores = {}
    for n_clusters in (2, 3, 4, 5, 6):
        labels = KMeans(n_clusters=n_clusters, random_state=10, n_init=10).fit_predict(X)
        scores[n_clusters] = silhouette_score(X, labels)
        assert silhouette_samples(X, labels).mean() == pytest.approx(scores[n_clusters])
    assert sorted(scores, key=scores.get)[-2:] == [4, 2]  # two pairs first, then the four that were planted


def test_distances_to_centers_as_features_in_a_grid_search():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X[:800] / 16, y[:800], random_state=42)
    pipeline = Pipeline([("kmeans", KMeans(random_state=42, n_init=1)), ("logistic", LogisticRegression())])
    search = GridSearchCV(pipeline, {"kmeans__n_clusters": [3, 40]}, cv=3).fit(X_train, y_train)
    assert search.best_params_ == {"kmeans__n_clusters": 40}
    assert search.score(X_test, y_test) > 0.85


def test_names_of_columns_with_set_output():
    X = load_iris(as_frame=True).data
    out = KMeans(3, random_state=0).set_output(transform="pandas").fit(X).transform(X)
    assert list(out.columns) == ["kmeans0", "kmeans1", "kmeans2"] and out.index.equals(X.index)


# --- GaussianMixture ----------------------------------------------------------------------------------------


def test_two_gaussians_of_six_points():
    model = GaussianMixture(n_components=2, random_state=0).fit(SIX)
    np.testing.assert_allclose(np.sort(model.means_, axis=0), [[1, 2], [10, 2]], atol=1e-6)
    assert len(set(model.predict([[0, 0], [12, 3]]))) == 2


@pytest.mark.parametrize("kind", ["spherical", "diag", "tied", "full"])
def test_classes_of_iris_from_their_means(kind):
    """Components begin at the means of the classes, so that labels are those of the classes."""
    X, y = load_iris(return_X_y=True)
    train, test = next(iter(StratifiedKFold(n_splits=4).split(X, y)))
    model = GaussianMixture(n_components=3, covariance_type=kind, max_iter=20, random_state=0)
    model.means_init = np.array([X[train][y[train] == i].mean(axis=0) for i in range(3)])
    model.fit(X[train])
    assert (model.predict(X[train]) == y[train]).mean() > 0.85
    assert (model.predict(X[test]) == y[test]).mean() > 0.8


def make_stretched(n=500, seed=0):
    """A long Gaussian across a round one."""
    rng = np.random.RandomState(seed)
    return np.concatenate([rng.randn(n, 2) @ [[0.0, -0.1], [1.7, 0.4]], 0.7 * rng.randn(n, 2) + [-6, 3]])


def bic_score(estimator, X):
    return -estimator.bic(X)


def test_the_density_on_a_grid():
    """Of two clouds far apart; it is one in all."""
    rng = np.random.RandomState(0)
    X = np.vstack([rng.randn(300, 2) + [20, 20], rng.randn(300, 2) @ [[0.0, -0.7], [3.5, 0.7]]])
    model = GaussianMixture(n_components=2, covariance_type="full", random_state=0).fit(X)
    side = np.linspace(-20.0, 40.0, 240)
    xx, yy = np.meshgrid(side, side)
    density = np.exp(model.score_samples(np.array([xx.ravel(), yy.ravel()]).T))
    assert density.sum() * (side[1] - side[0]) ** 2 == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_ellipses_from_covariances(kind):
    """The matrices that are drawn as ellipses, whatever the kind."""
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(make_stretched())
    for n in range(3):
        S = {
            "full": lambda n=n: model.covariances_[n][:2, :2],
            "tied": lambda: model.covariances_[:2, :2],
            "diag": lambda n=n: np.diag(model.covariances_[n][:2]),
            "spherical": lambda n=n: np.eye(2) * model.covariances_[n],
        }[kind]()
        P = {
            "full": lambda n=n: model.precisions_[n],
            "tied": lambda: model.precisions_,
            "diag": lambda n=n: np.diag(model.precisions_[n]),
            "spherical": lambda n=n: np.eye(2) * model.precisions_[n],
        }[kind]()
        lengths = 2.0 * np.sqrt(2.0) * np.sqrt(np.linalg.eigvalsh(S))
        assert (lengths > 0).all()
        np.testing.assert_allclose(P @ S, np.eye(2), atol=1e-8)


def test_a_sine_with_noise_is_drawn_anew():
    """Ten Gaussians along a curve; what is drawn from them lies along it."""
    rng = np.random.RandomState(0)
    step = 4.0 * np.pi / 100
    x = np.arange(100) * step - 6.0
    X = np.c_[x + rng.normal(0, 0.1, 100), 3.0 * (np.sin(x) + rng.normal(0, 0.2, 100))]
    model = GaussianMixture(n_components=10, covariance_type="full", max_iter=100, random_state=0).fit(X)
    rows, labels = model.sample(200)
    assert rows.shape == (200, 2) and (np.diff(labels) >= 0).all() and labels.max() <= 9
    assert np.abs(rows[:, 1] - 3.0 * np.sin(rows[:, 0])).mean() < 1.5


def test_clusterings_are_compared_in_one_loop():
    """Labels are taken from labels_ where a model has it, and from predict where not."""
    X, y = make_blobs(n_samples=300, cluster_std=[1.0, 2.5, 0.5], random_state=170)
    X = StandardScaler().fit_transform(X)
    for model in (KMeans(n_clusters=3, random_state=0), GaussianMixture(3, random_state=0)):
        fitted = clone(model).fit(X)
        labels = fitted.labels_.astype(int) if hasattr(fitted, "labels_") else fitted.predict(X)
        assert adjusted_rand_score(y, labels) > 0.7


def test_a_warm_start_sweep_by_sweep():
    X = make_stretched()
    model = GaussianMixture(2, warm_start=True, max_iter=1, init_params="random", random_state=0)
    bounds = [model.fit(X).lower_bound_ for _ in range(5)]
    assert (np.diff(bounds) >= -1e-9).all() and bounds[-1] > bounds[0]


# --- SparseCoder --------------------------------------------------------------------------------------------


def test_codes_of_two_signals():
    X = np.array([[-1, -1, -1], [0, 0, 3]])
    atoms = np.array([[0, 1, 0], [-1, -1, 2], [1, 1, 1], [0, 1, 1], [0, 2, 1]], dtype=np.float64)
    coder = SparseCoder(dictionary=atoms, transform_algorithm="lasso_lars", transform_alpha=1e-10)
    np.testing.assert_allclose(coder.transform(X), [[0, 0, -1, 0, 0], [0, 1, 1, 0, 0]], atol=1e-8)


def ricker(resolution, n_components):
    """Wavelets of one width, side by side, and of several widths."""
    parts = []
    for width in (10, 50, 100, 500, 1000):
        x, center = np.arange(resolution), np.linspace(0, resolution - 1, n_components // 5)[:, None]
        scaled = (x - center) ** 2 / width**2
        parts.append((1 - scaled) * np.exp(-scaled / 2))
    D = np.vstack(parts)
    return D / np.linalg.norm(D, axis=1, keepdims=True)


@pytest.mark.parametrize(
    "algorithm, alpha, n_nonzero", [("omp", None, 15), ("lasso_lars", 2, None), ("lasso_cd", 2, None)]
)
def test_a_step_in_wavelets(algorithm, alpha, n_nonzero):
    resolution = 512
    D = ricker(resolution, 100)
    y = np.where(np.arange(resolution) < resolution / 4, 3.0, -1.0)[None]
    coder = SparseCoder(
        dictionary=D, transform_n_nonzero_coefs=n_nonzero, transform_alpha=alpha, transform_algorithm=algorithm
    )
    code = coder.transform(y)
    left = ((y - code @ D) ** 2).sum() / (y**2).sum()
    assert 0 < np.count_nonzero(code) < 60 and left < 0.2


def test_patches_of_a_picture_with_learned_atoms():
    """More atoms, better patches; a dictionary that was learned elsewhere."""
    digits = load_digits().data[:400]
    mean = digits.mean(axis=0)
    X = (digits - mean) / 16
    learned = MiniBatchDictionaryLearning(n_components=40, alpha=1, max_iter=5, random_state=0).fit(X).components_
    errors = []
    for options in (
        {"transform_n_nonzero_coefs": 1},
        {"transform_n_nonzero_coefs": 2},
        {"transform_n_nonzero_coefs": 8},
    ):
        coder = SparseCoder(learned, transform_algorithm="omp", **options).fit(X)
        errors.append(np.linalg.norm(X - coder.inverse_transform(coder.transform(X))))
    assert errors[0] > errors[1] > errors[2]
    sparse = SparseCoder(learned).set_params(transform_algorithm="lasso_lars", transform_alpha=0.5).transform(X)
    assert (sparse == 0).mean() > 0.3


def test_codes_as_features_in_a_pipeline():
    """Parts of both signs apart, for a linear classifier."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600]
    atoms = np.linalg.qr(np.random.default_rng(0).normal(size=(64, 40)))[0].T
    coder = SparseCoder(atoms, transform_n_nonzero_coefs=5, split_sign=True)
    assert coder.fit(X).transform(X).shape == (600, 80)
    model = make_pipeline(coder, LogisticRegression(C=10)).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.4  # one in ten by chance
