"""Components have no order of their own, and columns no units of their own: models can be told otherwise."""

import numpy as np
import pytest
from scipy import sparse

import twofold
from twofold import (
    NMF,
    PCA,
    PLSA,
    PPCA,
    BayesianPCA,
    FactorAnalysis,
    GaussianMixture,
    KMeans,
    KMedoids,
    LatentDirichletAllocation,
    LinearAutoencoder,
    Mixture,
    MixtureOfPPCA,
    NearestRows,
    VectorQuantizer,
)
from twofold.core.checks import InputError
from twofold.core.estimator import Reorderable, Rescalable

N, D, K = 70, 5, 3  # all different, so that a shape says what an axis is
ORDER = np.array([2, 0, 1])
SCALE = np.array([1.0, 10.0, 0.1, 3.0, 0.5])
KINDS = ("full", "tied", "diag", "spherical", "fixed")

REORDERABLE = {
    "kmeans": KMeans(K, random_state=0),
    "codes": VectorQuantizer(K, random_state=0),
    "medoids": KMedoids(K, random_state=0),
    **{f"gaussians-{kind}": GaussianMixture(K, covariance_type=kind, random_state=0) for kind in KINDS},
    **{f"mixture-{name}": Mixture(name, K, random_state=0) for name in ("gaussian", "gaussian-diag", "poisson")},
    "planes": MixtureOfPPCA(K, n_latent=2, random_state=0),
    "autoencoder": LinearAutoencoder(K, random_state=0),
    "nmf": NMF(K, random_state=0),
    "plsa": PLSA(K, random_state=0),
    "lda": LatentDirichletAllocation(K, random_state=0),
}
RESCALABLE = {
    "kmeans": KMeans(K, random_state=0),
    "codes": VectorQuantizer(K, random_state=0),
    "rows": NearestRows(max_distance=9.0),
    **{f"gaussians-{kind}": GaussianMixture(K, covariance_type=kind, random_state=0) for kind in KINDS},
    "pca": PCA(2),
    "correlations": PCA(2, scale=True),
    "whitened": PCA(2, whiten=True),
    "ppca": PPCA(2),
    "bayesian": BayesianPCA(4),
    "factors": FactorAnalysis(2, random_state=0),
}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    centers = rng.integers(0, 30, size=(K, D))
    return rng.poisson(centers[rng.integers(K, size=N)]).astype(float) + rng.random((N, D))


def answers(model, X):
    """Return what a model says about rows, each answer with whether it has a column a component."""
    for name, by_component in [("transform", True), ("predict_proba", True), ("score_samples", False)]:
        if hasattr(model, name) and not isinstance(model, VectorQuantizer):
            yield name, by_component, np.asarray(getattr(model, name)(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", REORDERABLE)
class TestReordered:
    def test_answers_are_permuted(self, name, X):
        model = REORDERABLE[name].fit(X)
        again = model.reordered(ORDER)
        if hasattr(model, "predict"):
            np.testing.assert_array_equal(ORDER[again.predict(X)], model.predict(X))
        for (what, by_component, before), (_, _, after) in zip(answers(model, X), answers(again, X), strict=True):
            if name == "lda" and what == "score_samples":  # sampled: topics in another order have other draws
                error = np.hypot(*(m.log_likelihood(X, return_std=True)[1] for m in (model, again)))
                assert (np.abs(after - before) <= 8 * error + 1e-6 * np.abs(before)).all()
                continue
            np.testing.assert_allclose(after, before[:, ORDER] if by_component else before, rtol=1e-6, err_msg=what)

    def test_there_and_back(self, name, X):
        model = REORDERABLE[name].fit(X)
        again = model.reordered(ORDER).reordered(np.argsort(ORDER))
        for key, value in vars(model).items():
            np.testing.assert_equal(getattr(again, key), value)

    def test_every_attribute_is_accounted_for(self, name, X):
        """Whatever has an axis of k entries is declared, and whatever is declared has one."""
        model = REORDERABLE[name].fit(X)
        model = model.partial_fit(X) if hasattr(model, "partial_fit") else model
        declared = model._component_axes
        found = {}
        for key, value in vars(model).items():
            if not key.endswith("_") or key in model._component_numbers:
                continue
            parts = {key: value}
            if hasattr(value, "_fields"):
                parts = {f"{key}.{field}": part for field, part in value._asdict().items()}
            elif isinstance(value, tuple):
                parts = {key: value[0]}
                assert all(part.shape[declared[key]] == K for part in value)
            for place, part in parts.items():
                axes = [axis for axis, size in enumerate(np.shape(part)) if size == K]
                if axes and isinstance(part, np.ndarray):
                    found[place] = axes
        assert found.keys() == {key for key in declared if hasattr(model, key.partition(".")[0])}
        assert all(axes == [declared[key]] for key, axes in found.items())

    def test_what_is_no_order_is_refused(self, name, X):
        model = REORDERABLE[name].fit(X)
        for order in ([0, 1], [0, 1, 1], [1, 2, 3], [[0, 1, 2]]):
            with pytest.raises(InputError, match="every number from 0 to 2 is needed, once"):
                model.reordered(order)


def test_learning_goes_on_in_the_new_order(X):
    for model in (KMeans(K, random_state=0), GaussianMixture(K, random_state=0), LatentDirichletAllocation(K)):
        model.fit(X[:40]).partial_fit(X[40:60])
        other = model.reordered(ORDER)
        before = model.partial_fit(X[60:])
        np.testing.assert_allclose(other.partial_fit(X[60:]).components_, before.components_[ORDER], rtol=1e-9)


def test_a_copy_leaves_the_model_alone(X):
    model = KMeans(K, random_state=0).fit(X)
    centers, labels = model.cluster_centers_.copy(), model.labels_.copy()
    model.reordered(ORDER), model.rescaled(SCALE)
    np.testing.assert_array_equal(model.cluster_centers_, centers)
    np.testing.assert_array_equal(model.labels_, labels)
    assert not hasattr(model, "scale_")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", RESCALABLE)
class TestRescaled:
    def test_raw_rows_are_answered_as_scaled_ones_were(self, name, X):
        model = RESCALABLE[name].fit(X / SCALE)
        raw = model.rescaled(SCALE)
        if hasattr(model, "predict"):
            np.testing.assert_array_equal(raw.predict(X), model.predict(X / SCALE))
        for (what, _, before), (_, _, after) in zip(answers(model, X / SCALE), answers(raw, X), strict=True):
            shift = np.log(SCALE).sum() if what == "score_samples" else 0.0
            np.testing.assert_allclose(after, before - shift, rtol=1e-6, atol=1e-9, err_msg=what)

    def test_rows_come_back_in_their_own_units(self, name, X):
        model = RESCALABLE[name].fit(X / SCALE)
        raw = model.rescaled(SCALE)
        for center in ("means_", "mean_", "cluster_centers_"):
            if hasattr(model, center):
                np.testing.assert_allclose(getattr(raw, center), getattr(model, center) * SCALE)
        if hasattr(model, "inverse_transform"):
            codes = model.transform(X / SCALE)
            np.testing.assert_allclose(raw.inverse_transform(codes), model.inverse_transform(codes) * SCALE)

    def test_twice_is_once_with_the_product(self, name, X):
        model = RESCALABLE[name].fit(X)
        twice, once = model.rescaled(SCALE).rescaled(SCALE + 1), model.rescaled(SCALE * (SCALE + 1))
        for (what, _, before), (_, _, after) in zip(answers(once, X), answers(twice, X), strict=True):
            np.testing.assert_allclose(after, before, rtol=1e-6, err_msg=what)

    def test_a_fit_forgets_the_scale(self, name, X):
        model = RESCALABLE[name].fit(X)
        again = model.rescaled(SCALE).set_params(**model.get_params()).fit(X)
        for (what, _, before), (_, _, after) in zip(answers(model, X), answers(again, X), strict=True):
            np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-9, err_msg=what)

    def test_what_is_no_scale_is_refused(self, name, X):
        for scale in (np.zeros(D), np.ones(D + 1), np.full(D, np.nan), 2.0):
            with pytest.raises(InputError, match="5 finite numbers above 0"):
                RESCALABLE[name].fit(X).rescaled(scale)

    def test_a_file_keeps_it(self, name, X, tmp_path):
        raw = RESCALABLE[name].fit(X / SCALE).rescaled(SCALE)
        raw.save(tmp_path / "raw.twofold")
        loaded = twofold.load(tmp_path / "raw.twofold")
        for (what, _, before), (_, _, after) in zip(answers(raw, X), answers(loaded, X), strict=True):
            np.testing.assert_array_equal(after, before, err_msg=what)


def test_scaled_batches_move_scaled_centers(X):
    model = KMeans(K, random_state=0).fit(X[:50] / SCALE)
    raw = model.rescaled(SCALE).partial_fit(X[50:])
    np.testing.assert_allclose(raw.cluster_centers_, model.partial_fit(X[50:] / SCALE).cluster_centers_ * SCALE)


def test_sparse_rows_are_scaled_too(X):
    S = sparse.csr_array(np.where(X > 10, X, 0.0))
    model = KMeans(K, random_state=0).fit(sparse.csr_array(S / SCALE))
    np.testing.assert_array_equal(model.rescaled(SCALE).predict(S), model.predict(sparse.csr_array(S / SCALE)))


def test_every_model_with_these_methods_is_here():
    for base, models in [(Reorderable, REORDERABLE), (Rescalable, RESCALABLE)]:
        public = {name for name in twofold._MODELS if issubclass(getattr(twofold, name), base)}
        assert public == {type(model).__name__ for model in models.values()}
