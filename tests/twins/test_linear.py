"""PCA and factor analysis mean what they mean in scikit-learn: the same numbers from the same table."""

import numpy as np
import pytest
from sklearn import decomposition as theirs

import twofold

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)) @ RNG.normal(size=(3, 8)) + RNG.normal(size=(300, 8)) * np.linspace(0.5, 1.5, 8) + 4.0


@pytest.mark.parametrize("k", [0, 1, 3, 8, None, 0.9, "mle"])
def test_pca_describes_the_data_by_the_same_gaussian(k):
    here, there = twofold.PCA(k).fit(X), theirs.PCA(k, svd_solver="full").fit(X)
    assert (here.n_components_, here.n_samples_) == (there.n_components_, there.n_samples_)
    np.testing.assert_allclose(here.get_covariance(), there.get_covariance(), atol=1e-10)
    np.testing.assert_allclose(here.get_precision(), there.get_precision(), atol=1e-10)
    np.testing.assert_allclose(here.score_samples(X), there.score_samples(X), rtol=1e-5)
    np.testing.assert_allclose(here.get_precision() @ here.get_covariance(), np.eye(8), atol=1e-10)


def test_the_covariance_of_a_scaled_or_whitened_pca_is_that_of_the_columns():
    scaled, plain = twofold.PCA(scale=True).fit(X), np.cov(X.T)
    np.testing.assert_allclose(scaled.get_covariance(), plain, atol=1e-10)
    np.testing.assert_allclose(scaled.get_precision() @ plain, np.eye(8), atol=1e-10)
    np.testing.assert_allclose(twofold.PCA(whiten=True).fit(X).get_covariance(), plain, atol=1e-10)


def test_rows_of_all_batches_are_counted():
    model = twofold.PCA(2)
    for part in np.array_split(X, 3):
        model.partial_fit(part)
    assert model.n_samples_ == len(X)


@pytest.mark.parametrize("k", [0, 2, 3])
def test_factor_analysis_finds_the_same_gaussian(k):
    here = twofold.FactorAnalysis(k, tol=1e-12, max_iter=5000).fit(X)
    there = theirs.FactorAnalysis(k, tol=1e-7, max_iter=5000, svd_method="lapack").fit(X)
    np.testing.assert_allclose(here.noise_variance_, there.noise_variance_, rtol=1e-3)
    np.testing.assert_allclose(here.get_covariance(), there.get_covariance(), atol=2e-3)
    np.testing.assert_allclose(here.get_precision(), there.get_precision(), atol=2e-3)
    np.testing.assert_allclose(here.get_precision() @ here.get_covariance(), np.eye(8), atol=1e-9)
    assert here.loglike_[-1] == pytest.approx(there.loglike_[-1], rel=1e-6)
    assert here.loglike_[-1] == pytest.approx(here.score(X) * len(X), rel=1e-6)


def criterion(L, gamma):
    return (L**4).sum() - gamma / len(L) * ((L**2).sum(axis=0) ** 2).sum()


@pytest.mark.parametrize(("rotation", "gamma"), [("varimax", 1.0), ("quartimax", 0.0)])
def test_rotated_factors_are_those_of_scikit_learn_up_to_sign(rotation, gamma):
    options = {"rotation": rotation, "max_iter": 5000}
    here = twofold.FactorAnalysis(3, tol=1e-12, **options).fit(X)
    there = theirs.FactorAnalysis(3, tol=1e-7, svd_method="lapack", **options).fit(X)
    assert criterion(here.components_.T, gamma) >= criterion(there.components_.T, gamma) * (1 - 1e-3)
    overlap = here.components_ @ there.components_.T
    pair = np.abs(overlap).argmax(axis=1)
    assert sorted(pair) == [0, 1, 2]
    signs = np.sign(overlap[np.arange(3), pair])
    np.testing.assert_allclose(here.components_, there.components_[pair] * signs[:, None], atol=0.03)
    plain = twofold.FactorAnalysis(3, tol=1e-12, max_iter=5000).fit(X)
    np.testing.assert_allclose(here.get_covariance(), plain.get_covariance(), atol=1e-9)
    assert criterion(here.components_.T, gamma) > criterion(plain.components_.T, gamma)


def test_noise_to_begin_with_leads_to_the_same_place_and_must_fit():
    plain, given = (
        twofold.FactorAnalysis(3, noise_variance_init=noise, tol=1e-13, max_iter=5000).fit(X)
        for noise in (None, np.full(8, 0.3))
    )
    assert plain.loglike_[0] != given.loglike_[0]
    np.testing.assert_allclose(plain.get_covariance(), given.get_covariance(), atol=1e-3)
    with pytest.raises(ValueError, match="noise_variance_init has shape"):
        twofold.FactorAnalysis(3, noise_variance_init=np.ones(7)).fit(X)
    with pytest.raises(ValueError, match="noise_variance_init has shape"):
        twofold.FactorAnalysis(3, noise_variance_init=-np.ones(8)).fit(X)
