"""Laws of mixtures of PPCA, and of the classifier made of one density a class."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from twofold import PPCA, MixtureOfPPCA, PPCAClassifier


def rows(n=200, d=7, k=2, noise=0.5, seed=0):
    """Rows of a PPCA model."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, k)) @ (2 * rng.normal(size=(k, d))) + rng.normal(size=d) + noise * rng.normal(size=(n, d))
    )


def punch_holes(X, share=0.25, seed=1):
    H = np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)
    H[:, 0] = X[:, 0]  # every row keeps a cell
    return H


def clusters(n=300, d=6, seed=0, apart=6.0):
    rng = np.random.default_rng(seed)
    centers, lines = apart * rng.normal(size=(3, d)), 1.5 * rng.normal(size=(3, d))
    y = np.arange(n) % 3
    return centers[y] + rng.normal(size=(n, 1)) * lines[y] + 0.5 * rng.normal(size=(n, d)), y


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_mixture_of_one_is_ppca(share):
    X = punch_holes(rows(), share) if share else rows()
    one = MixtureOfPPCA(1, n_latent=2, tol=1e-12, max_iter=5000, random_state=0).fit(X)
    plain = PPCA(2, tol=1e-12, max_iter=5000, random_state=0).fit(X)
    np.testing.assert_allclose(one.score_samples(X), plain.score_samples(X), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(one.weights_, [1.0])
    np.testing.assert_allclose(one.predict_proba(X), 1.0)
    assert one.bic(X) == pytest.approx(plain.bic(X), rel=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.15])
def test_a_mixture_recovers_planted_clusters(share):
    X, y = clusters()
    X = punch_holes(X, share) if share else X
    model = MixtureOfPPCA(3, n_latent=1, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.predict(X)) > 0.95
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert np.array_equal(chances.argmax(axis=1), model.predict(X))
    np.testing.assert_allclose(np.sort(model.weights_), 1 / 3, atol=0.03)


def test_the_mixture_s_density_is_the_sum_of_its_gaussians():
    X, _ = clusters()
    model = MixtureOfPPCA(3, n_latent=2, random_state=0).fit(X)
    parts = [
        w * multivariate_normal(m, W @ W.T + s * np.eye(6)).pdf(X)
        for w, m, W, s in zip(model.weights_, model.means_, model.loadings_, model.noise_variance_, strict=True)
    ]
    np.testing.assert_allclose(model.score_samples(X), np.log(np.sum(parts, axis=0)), rtol=1e-7)
    np.testing.assert_allclose(model.predict_proba(X), np.transpose(parts / np.sum(parts, axis=0)), atol=1e-7)


def test_mixture_samples_and_criteria():
    X, _ = clusters()
    model = MixtureOfPPCA(3, n_latent=1, random_state=0).fit(X)
    drawn, labels = model.sample(3000, random_state=0)
    assert adjusted_rand_score(labels, model.predict(drawn)) > 0.95
    free = 3 * (6 + 6 + 1) + 2
    total = -2 * model.score_samples(X).sum()
    assert model.aic(X) == pytest.approx(total + 2 * free)
    assert model.bic(X) == pytest.approx(total + free * np.log(len(X)))
    assert model.bic(X) < MixtureOfPPCA(1, n_latent=1, random_state=0).fit(X).bic(X)


def test_a_mixture_imputes_within_the_right_cluster():
    X, _ = clusters()
    H = punch_holes(X, 0.15)
    model = MixtureOfPPCA(3, n_latent=1, random_state=0).fit(H)
    filled, std = model.impute(H, return_std=True)
    holes = np.isnan(H)
    assert np.array_equal(filled[~holes], H[~holes]) and not std[~holes].any()
    alone = PPCA(1, random_state=0).fit(H).impute(H)
    assert ((filled - X)[holes] ** 2).mean() < 0.3 * ((alone - X)[holes] ** 2).mean()


def test_the_classifier_is_bayes_rule():
    X, y = clusters(90, apart=0.7)
    w = np.ones(90)
    w[y == 2] = 2.0
    model = PPCAClassifier(2, random_state=0).fit(X, y, sample_weight=w)
    densities = []
    for c in range(3):
        one = PPCA(2).fit(X[y == c])
        C = one.loadings_ @ one.loadings_.T + one.noise_variance_ * np.eye(6)
        densities.append(w[y == c].sum() / w.sum() * multivariate_normal(one.mean_, C).pdf(X))
    expected = np.transpose(densities / np.sum(densities, axis=0))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-7)
    assert np.array_equal(model.predict(X), model.classes_[expected.argmax(axis=1)])
    assert model.score(X, y) > 0.6


def test_the_classifier_beats_chance_on_new_rows_with_holes_and_names():
    names = np.array(["ape", "bee", "cat"])
    X, y = clusters(300, apart=2.0)
    model = PPCAClassifier(1, random_state=0).fit(punch_holes(X[:200], 0.1), names[y[:200]])
    assert list(model.classes_) == list(names)
    assert model.score(punch_holes(X[200:], 0.3, seed=9), names[y[200:]]) > 0.8
