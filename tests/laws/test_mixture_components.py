"""Laws of the general mixture: every component gives planted parameters back, and EM climbs, whatever the density."""

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

import twofold
from twofold import GaussianMixture, Mixture
from twofold.clusters import Bernoulli, Gaussian, Multinomial, Poisson, ProbabilisticPCA

WEIGHTS = np.array([0.5, 0.3, 0.2])


def plant(kind, n=3000, d=12, seed=0):
    """Rows of three components, their labels, and the parameter that tells the components apart (3,d)."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=WEIGHTS)
    if kind == "bernoulli":
        truth = rng.choice([0.1, 0.9], (3, d))
        return (rng.random((n, d)) < truth[y]).astype(float), y, truth
    if kind == "poisson":
        truth = rng.choice([1.0, 4.0, 12.0], (3, d))
        return rng.poisson(truth[y]).astype(float), y, truth
    if kind == "multinomial":
        truth = rng.dirichlet(np.full(d, 0.5), 3)
        return np.array([rng.multinomial(rng.integers(5, 200), truth[c]) for c in y], dtype=float), y, truth
    truth = 6 * rng.normal(size=(3, d))
    lines = 3 * rng.normal(size=(3, d))
    noise = 0.7 if kind.startswith("ppca") else np.array([0.5, 1.0, 2.0])[y, None]
    along = rng.normal(size=(n, 1)) * lines[y] if kind.startswith("ppca") or kind == "gaussian" else 0
    return truth[y] + along + noise * rng.normal(size=(n, d)), y, truth


KINDS = ["bernoulli", "poisson", "multinomial", "gaussian", "gaussian-diag", "gaussian-spherical", "ppca"]
COUNTS = ["bernoulli", "poisson", "multinomial"]
every = pytest.mark.parametrize("kind", KINDS)


def match(centers, truth):
    """Return the order that matches components with the planted ones."""
    gaps = np.abs(centers[:, None] - truth[None]).sum(axis=2)
    rows, columns = linear_sum_assignment(gaps)
    return rows[np.argsort(columns)]


@every
def test_planted_parameters_are_recovered(kind):
    X, y, truth = plant(kind)
    model = Mixture(kind, 3, n_init=3, random_state=0).fit(X)
    order = match(model.parameters_[0], truth)
    scale = np.abs(truth).max()
    np.testing.assert_allclose(model.parameters_[0][order] / scale, truth / scale, atol=0.1)
    np.testing.assert_allclose(model.weights_[order], WEIGHTS, atol=0.04)
    assert adjusted_rand_score(y, model.predict(X)) > 0.8


@every
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # five components for three
def test_likelihood_never_falls(kind, weighted):
    X, _, _ = plant(kind, 500)
    w = np.random.default_rng(1).random(len(X)) if weighted else None
    model = Mixture(kind, 5, tol=1e-8, max_iter=500, random_state=0).fit(X, sample_weight=w)
    objective = np.array(model.history_["objective"])
    assert len(objective) > 3 and np.all(np.diff(objective) <= 1e-7 * np.abs(objective[:-1]))
    assert model.score(X) == pytest.approx(-objective[-1], rel=1e-3) or weighted


def reference(kind, X, theta):
    if kind == "bernoulli":
        return stats.bernoulli(theta[0]).logpmf(X).sum(axis=1)
    if kind == "poisson":
        return stats.poisson(theta[0]).logpmf(X).sum(axis=1)
    if kind == "multinomial":
        return stats.multinomial.logpmf(X, X.sum(axis=1).astype(int), theta[0] / theta[0].sum())
    S = theta[1] @ theta[1].T + theta[2] * np.eye(len(theta[0])) if kind == "ppca" else theta[1]
    return stats.multivariate_normal(theta[0], np.diag(S) if S.ndim == 1 else S).logpdf(X)


@every
def test_densities_are_scipy_s(kind):
    X, _, _ = plant(kind, 300)
    model = Mixture(kind, 3, random_state=0).fit(X)
    joint = np.column_stack(
        [np.log(w) + reference(kind, X, [p[c] for p in model.parameters_]) for c, w in enumerate(model.weights_)]
    )
    np.testing.assert_allclose(model.score_samples(X), np.logaddexp.reduce(joint, axis=1), rtol=1e-7)
    np.testing.assert_allclose(
        model.predict_proba(X), np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]), atol=1e-7
    )
    assert np.array_equal(model.predict(X), joint.argmax(axis=1))


@pytest.mark.parametrize("kind", COUNTS)
def test_sparse_equals_dense(kind):
    X, _, _ = plant(kind, 600)
    dense, thin = (Mixture(kind, 3, random_state=0).fit(Y) for Y in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(thin.score_samples(sparse.csr_array(X)), dense.score_samples(X), rtol=1e-6)
    np.testing.assert_array_equal(thin.predict(X), thin.predict(sparse.csr_array(X)))


@pytest.mark.parametrize("kind", COUNTS)
def test_same_bits_wherever_the_rows_lie(kind, small_blocks, tmp_path):
    da = pytest.importorskip("dask.array")
    X, _, _ = plant(kind, 500)
    np.save(tmp_path / "x.npy", X)
    with twofold.config(threads=1):
        expected = Mixture(kind, 3, random_state=0).fit(X)
    with twofold.config(threads=3):
        for place in (X, tmp_path / "x.npy", da.from_array(X, chunks=(97, 5))):
            found = Mixture(kind, 3, random_state=0).fit(place)
            assert all(np.array_equal(a, b) for a, b in zip(expected.parameters_, found.parameters_, strict=True))
            assert np.array_equal(expected.weights_, found.weights_)


@every
def test_integer_weights_equal_repetition(kind):
    X, _, _ = plant(kind, 600)
    w = np.random.default_rng(2).integers(0, 4, len(X))
    options = {"tol": 1e-11, "max_iter": 2000, "random_state": 0}
    weighted = Mixture(kind, 3, **options).fit(X, sample_weight=w)
    repeated = Mixture(kind, 3, **options).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), rtol=1e-4)


@every
def test_samples_come_from_the_model(kind):
    X, _, _ = plant(kind)
    model = Mixture(kind, 3, random_state=0).fit(X)
    drawn, label = model.sample(6000, random_state=1)
    assert drawn.shape == (6000, 12) and adjusted_rand_score(label, model.predict(drawn)) > 0.85
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.15 * X.std(axis=0).max())
    assert model.score(drawn) == pytest.approx(model.score(X), rel=0.1)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_gaussian_components_are_the_gaussian_mixture(kind, offset):
    X, _, _ = plant("gaussian", 800, d=4)
    X = X + offset
    options = {"tol": 1e-9, "max_iter": 2000, "random_state": 0}
    general = Mixture(f"gaussian-{kind}", 3, **options).fit(X)
    special = GaussianMixture(3, covariance_type=kind, **options).fit(X)
    assert general.score(X) == pytest.approx(special.score(X), abs=1e-4)
    assert general.bic(X) == pytest.approx(special.bic(X), rel=1e-4)
    assert general.aic(X) == pytest.approx(special.aic(X), rel=1e-4)


def test_one_ppca_component_is_ppca():
    X, _, _ = plant("ppca", 400, d=6)
    one, plain = Mixture("ppca-2", 1, random_state=0).fit(X), twofold.PPCA(2).fit(X)
    np.testing.assert_allclose(one.score_samples(X), plain.score_samples(X), rtol=1e-4)
    assert one.bic(X) == pytest.approx(plain.bic(X), rel=1e-4)


@pytest.mark.parametrize(
    "component, free",
    [
        ("bernoulli", 12),
        ("poisson", 12),
        ("multinomial", 11),
        ("gaussian", 12 + 78),
        ("gaussian-diag", 24),
        ("ppca-2", 36),
    ],
)
def test_criteria_count_the_free_parameters(component, free):
    kind = component.partition("-")[0]
    X, _, _ = plant(kind, 400)
    model = Mixture(component, 3, random_state=0).fit(X)
    total = -2 * model.score_samples(X).sum()
    assert model.aic(X) == pytest.approx(total + 2 * (3 * free + 2))
    assert model.bic(X) == pytest.approx(total + np.log(len(X)) * (3 * free + 2))


@pytest.mark.parametrize(
    "component, name",
    [
        (Bernoulli(), "bernoulli"),
        (Poisson(), "poisson"),
        (Multinomial(), "multinomial"),
        (Gaussian("diag"), "gaussian-diag"),
        (ProbabilisticPCA(2), "ppca-2"),
    ],
)
def test_names_stand_for_objects_and_only_names_are_saved(component, name, tmp_path):
    X, _, _ = plant(name.partition("-")[0], 300)
    named, given = Mixture(name, 3, random_state=0).fit(X), Mixture(component, 3, random_state=0).fit(X)
    np.testing.assert_array_equal(named.score_samples(X), given.score_samples(X))
    named.save(tmp_path / "m.twofold")
    np.testing.assert_array_equal(twofold.load(tmp_path / "m.twofold").score_samples(X), named.score_samples(X))
    with pytest.raises(twofold.InputError, match=r"given by name"):
        given.save(tmp_path / "n.twofold")
    assert not (tmp_path / "n.twofold").exists()


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_cells_without_a_density_are_refused_with_their_place(kind, make, small_blocks):
    X, _, _ = plant(kind, 300)
    model = Mixture(kind, 2, random_state=0).fit(X)
    X[217, 5] = -1.0
    for use in (model.fit, model.predict, model.predict_proba, model.score_samples):
        with pytest.raises(twofold.InputError, match=r"X\[217, 5\] is -1"):
            use(make(X))


def test_a_column_that_is_always_or_never_seen_does_no_harm():
    X, _, _ = plant("bernoulli", 300)
    X[:, 0], X[:, 1] = 0.0, 1.0
    for kind in COUNTS:
        model = Mixture(kind, 3, random_state=0).fit(X)
        assert np.isfinite(model.score_samples(1 - X)).all() and np.isfinite(model.score_samples(X)).all()


def test_floors_are_the_maximum_under_the_bounds():
    """No other point of the simplex above the floors is likelier than the one estimated."""
    rng = np.random.default_rng(0)
    x, low = np.array([0.0, 0.2, 3.0, 40.0, 5.0]), np.full(5, 0.02)
    p, _ = Multinomial(low=low).estimate((np.ones(1), x))
    assert p.sum() == pytest.approx(1) and np.all(p >= low * (1 - 1e-9))
    others = low + (1 - low.sum()) * rng.dirichlet(np.ones(5), 2000)
    assert np.all(np.log(others) @ x <= np.log(p) @ x + 1e-12)


class Exponential:
    """A user's own component, with nothing but the three methods."""

    def log_density(self, X, theta):
        return -(X / theta[0] + np.log(theta[0])).sum(axis=1)

    def sums(self, X, w):
        return w.sum(), w @ X

    def estimate(self, sums):
        return (sums[1] / sums[0],)


def test_a_component_of_one_s_own(small_blocks, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.3
    X = rng.exponential(np.where(y[:, None], 15.0, 1.0), (2000, 3))
    model = Mixture(Exponential(), 2, random_state=0).fit(X)
    order = np.argsort(model.weights_)
    np.testing.assert_allclose(model.parameters_[0][order].mean(axis=1), [15.0, 1.0], rtol=0.07)
    assert adjusted_rand_score(y, model.predict(X)) > 0.85
    total = -2 * model.score_samples(X).sum()
    assert model.aic(X) == pytest.approx(total + 2 * (6 + 1))  # without n_parameters, the numbers in theta
    assert np.all(np.diff(model.history_["objective"]) <= 1e-12)
    np.save(tmp_path / "x.npy", X)
    again = Mixture(Exponential(), 2, random_state=0).fit(tmp_path / "x.npy")
    np.testing.assert_array_equal(again.parameters_[0], model.parameters_[0])
    with pytest.raises(twofold.InputError, match="sample"):
        model.sample(3)
    with pytest.raises(twofold.InputError, match="given by name"):
        model.save(tmp_path / "m.twofold")
    with pytest.raises(TypeError, match="Sparse"):
        model.fit(sparse.csr_array(X))


def test_wrong_components_are_refused():
    X, _, _ = plant("gaussian", 100)
    for wrong in ("normal", "ppca-x", "bernoulli-2", "gaussian-round"):
        with pytest.raises(twofold.InputError, match=rf"component='{wrong}'.*bernoulli"):
            Mixture(wrong).fit(X)
    with pytest.raises(ValueError, match="component"):
        Mixture(object()).fit(X)
    with pytest.raises(twofold.InputError, match="n_latent=12"):
        Mixture("ppca-12").fit(X)

    class List(Exponential):
        def estimate(self, sums):
            return [sums[1] / sums[0]]

    with pytest.raises(twofold.InputError, match=r"tuple of arrays"):
        Mixture(List()).fit(np.abs(X))

    class Cells(Exponential):
        def log_density(self, X, theta):
            return -X / theta[0]

    with pytest.raises(twofold.InputError, match=r"log_density returned shape \(100, 12\)"):
        Mixture(Cells()).fit(np.abs(X))
