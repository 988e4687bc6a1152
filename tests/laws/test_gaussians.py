"""Laws of the linear-Gaussian models: PPCA, Bayesian PCA, factor analysis, and their mixtures and classifier."""

import numpy as np
import pytest
import scipy.linalg as sla
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from twofold import PCA, PPCA, BayesianPCA, FactorAnalysis, MixtureOfPPCA, PPCAClassifier, load


def rows(n=200, d=7, k=2, noise=0.5, seed=0):
    """Rows of a PPCA model."""
    rng = np.random.default_rng(seed)
    plane = rng.normal(size=(n, k)) @ (2 * rng.normal(size=(k, d)))
    return plane + rng.normal(size=d) + noise * rng.normal(size=(n, d))


def punch_holes(X, share=0.25, seed=1):
    H = np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)
    H[:, 0] = X[:, 0]  # every row keeps a cell
    return H


def angle(A, B):
    return sla.subspace_angles(A.T, B.T).max()


MODELS = {
    "PPCA": PPCA(2, random_state=0),
    "PPCA em": PPCA(2, solver="em", random_state=0),
    "FactorAnalysis": FactorAnalysis(2, random_state=0),
    "BayesianPCA": BayesianPCA(random_state=0),
}


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def model(request):
    return request.param.fit(rows())


def covariance(model):
    """WWᵀ + noise, by hand."""
    W = model.loadings_
    return W @ W.T + np.diag(np.broadcast_to(model.noise_variance_, len(W)))


# ---- density, codes, holes ---------------------------------------------------------------------------------------


def test_log_density_is_the_gaussian_s(model):
    X = rows(20, seed=3)
    expected = multivariate_normal(model.mean_, covariance(model)).logpdf(X)
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-9)
    assert model.score(X) == pytest.approx(expected.mean())
    np.testing.assert_allclose(model.get_covariance(), covariance(model), rtol=1e-12)


def test_log_density_of_a_row_with_holes_is_the_marginal_s(model):
    X, C = punch_holes(rows(30, seed=4)), covariance(model)
    for x, found in zip(X, model.score_samples(X), strict=True):
        s = ~np.isnan(x)
        assert found == pytest.approx(multivariate_normal(model.mean_[s], C[np.ix_(s, s)]).logpdf(x[s]), rel=1e-9)


def test_codes_are_gaussian_conditioning(model):
    X, C, W = punch_holes(rows(30, seed=4)), covariance(model), model.loadings_
    X[0, :] = rows(1, seed=5)
    means, covariances = model.posterior(X)
    np.testing.assert_array_equal(means, model.transform(X))
    for x, mean, cov in zip(X, means, covariances, strict=True):
        s = ~np.isnan(x)
        gain = W[s].T @ np.linalg.inv(C[np.ix_(s, s)])  # Cov(z, x) Cov(x)⁻¹
        np.testing.assert_allclose(mean, gain @ (x - model.mean_)[s], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(cov, np.eye(W.shape[1]) - gain @ W[s], rtol=1e-7, atol=1e-9)


def test_a_row_of_holes_has_the_prior_s_code(model):
    means, covariances = model.posterior(np.full((1, 7), np.nan))
    np.testing.assert_allclose(means, 0, atol=1e-12)
    np.testing.assert_allclose(covariances[0], np.eye(means.shape[1]), atol=1e-12)
    assert model.score_samples(np.full((1, 7), np.nan)) == pytest.approx([0.0], abs=1e-12)


def test_imputation_is_the_conditional_expectation(model):
    H, C = punch_holes(rows(30, seed=4)), covariance(model)
    H[1] = np.nan
    filled, std = model.impute(H, return_std=True)
    np.testing.assert_array_equal(filled, model.impute(H))
    for x, f, sd in zip(H, filled, std, strict=True):
        s, u = ~np.isnan(x), np.isnan(x)
        gain = C[np.ix_(u, s)] @ np.linalg.inv(C[np.ix_(s, s)])
        np.testing.assert_allclose(f[u], model.mean_[u] + gain @ (x - model.mean_)[s], rtol=1e-7)
        np.testing.assert_allclose(sd[u], np.sqrt(np.diag(C[np.ix_(u, u)] - gain @ C[np.ix_(s, u)])), rtol=1e-7)
        assert np.array_equal(f[s], x[s]) and not sd[s].any()


def test_samples_follow_the_model(model):
    X = model.sample(200_000, random_state=0)
    assert X.shape == (200_000, 7)
    np.testing.assert_allclose(X.mean(axis=0), model.mean_, atol=0.05)
    C = covariance(model)
    np.testing.assert_allclose(np.cov(X.T), C, atol=0.02 * np.abs(C).max())
    assert np.array_equal(model.sample(5, random_state=3), model.sample(5, random_state=3))
    assert not np.array_equal(model.sample(5, random_state=3), model.sample(5, random_state=4))


def test_criteria_count_parameters(model):
    X = rows(seed=6)
    d, k = model.loadings_.shape
    free = d * k - k * (k - 1) / 2 + d + np.size(model.noise_variance_)
    total = -2 * model.score_samples(X).sum()
    assert model.aic(X) == pytest.approx(total + 2 * free)
    assert model.bic(X) == pytest.approx(total + free * np.log(len(X)))


# ---- PPCA --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(200, 7), (15, 40)])
@pytest.mark.parametrize("k", [1, 3])
def test_em_reaches_the_closed_form(shape, k):
    X = rows(*shape, k=3, seed=2)
    closed = PPCA(k, solver="closed").fit(X)
    em = PPCA(k, solver="em", tol=1e-14, max_iter=20_000, random_state=0).fit(X)
    assert em.score(X) == pytest.approx(closed.score(X), rel=1e-8)
    assert em.noise_variance_ == pytest.approx(closed.noise_variance_, rel=1e-4)
    assert angle(em.components_, closed.components_) < 1e-3
    assert closed.history_["objective"][-1] == pytest.approx(-closed.score(X), rel=1e-9)
    assert em.history_["objective"][-1] == pytest.approx(-em.score(X), rel=1e-8)


def test_closed_form_is_tipping_and_bishop_s():
    X = rows()
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    values, vectors = values[::-1], vectors[:, ::-1]
    model = PPCA(2).fit(X)
    assert model.noise_variance_ == pytest.approx(values[2:].mean())
    np.testing.assert_allclose(model.explained_variance_, values[:2])
    np.testing.assert_allclose(np.abs(np.sum(model.components_.T * vectors[:, :2], axis=0)), 1.0)
    norms = (model.loadings_**2).sum(axis=0)
    np.testing.assert_allclose(norms, values[:2] - values[2:].mean())
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-12)


def test_no_other_parameters_are_likelier():
    X, rng = rows(), np.random.default_rng(0)
    model = PPCA(2).fit(X)
    for size in (1e-3, 1e-2, 1e-1):
        W = model.loadings_ + size * rng.normal(size=(7, 2))
        noise = model.noise_variance_ * np.exp(size * rng.normal())
        mean = model.mean_ + size * rng.normal(size=7)
        assert multivariate_normal(mean, W @ W.T + noise * np.eye(7)).logpdf(X).mean() <= model.score(X)


def test_without_noise_it_is_pca():
    X = rows(noise=1e-5)
    pca, ppca = PCA(2).fit(X), PPCA(2).fit(X)
    assert angle(pca.components_, ppca.components_) < 1e-6
    np.testing.assert_allclose(
        ppca.inverse_transform(ppca.transform(X)), pca.inverse_transform(pca.transform(X)), atol=1e-7
    )


def test_refitting_samples_recovers_the_model():
    model = PPCA(2).fit(rows())
    again = PPCA(2).fit(model.sample(100_000, random_state=0))
    assert angle(model.components_, again.components_) < 0.01
    assert again.noise_variance_ == pytest.approx(model.noise_variance_, rel=0.02)
    np.testing.assert_allclose(again.explained_variance_, model.explained_variance_, rtol=0.03)


def test_holes_cost_little_and_imputation_beats_the_means():
    X = rows(400)
    H = punch_holes(X)
    model = PPCA(2, random_state=0).fit(H)
    assert angle(model.components_, PPCA(2).fit(X).components_) < 0.1
    holes = np.isnan(H)
    error = (model.impute(H) - X)[holes]
    assert np.sqrt((error**2).mean()) < 0.5 * (np.nanmean(H, axis=0) - X)[holes].std()


def test_expected_errors_of_imputation_are_honest():
    X = rows(2000)
    H = punch_holes(X)
    filled, std = PPCA(2, random_state=0).fit(H).impute(H, return_std=True)
    holes = np.isnan(H)
    assert ((filled - X)[holes] / std[holes]).std() == pytest.approx(1.0, abs=0.05)


# ---- factor analysis, Bayesian PCA -------------------------------------------------------------------------------


def test_factor_analysis_does_not_care_about_units():
    X, units = rows(400), np.array([1e-3, 1, 1e3, 5, 1e2, 1e-2, 1])
    plain = FactorAnalysis(2, tol=1e-10, max_iter=5000, random_state=0).fit(X)
    scaled = FactorAnalysis(2, tol=1e-10, max_iter=5000, random_state=0).fit(X * units)
    assert plain.score(X) == pytest.approx(scaled.score(X * units) + np.log(units).sum(), rel=1e-3)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_bayesian_pca_finds_the_planted_dimension(k, tmp_path):
    X = rows(400, 10, k, noise=0.5, seed=k)
    model = BayesianPCA(random_state=0).fit(X)
    assert model.n_active_ == k == len(model.components_) == model.loadings_.shape[1]
    assert len(model.alpha_) == 9 and model.transform(X).shape == (400, k)
    assert angle(model.components_, PCA(k).fit(X).components_) < 0.05
    model.save(tmp_path / "m.twofold")
    np.testing.assert_array_equal(load(tmp_path / "m.twofold").transform(X), model.transform(X))
    assert BayesianPCA(random_state=0).fit(punch_holes(X, 0.1)).n_active_ == k


# ---- mixtures, and one density a class -------------------------------------------------------------------------


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
