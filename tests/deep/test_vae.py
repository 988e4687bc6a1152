"""Laws of the generators with Gaussian codes: their bound, their gradients, what they learn, what they warn of."""

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

import twofold
from twofold import DLGM, PCA, PPCA, VAE, EarlyStopping, InputError
from twofold.deep import CollapseWarning

pytestmark = pytest.mark.filterwarnings("ignore::twofold.deep._variational.CollapseWarning")
QUICK = {"learning_rate_init": 4e-3, "max_iter": 20, "random_state": 0}
TINY = {"learning_rate_init": 3e-3, "max_iter": 3, "random_state": 0}
SMALL = {"n_components": 3, "hidden_layer_sizes": (16,), **TINY}
MODELS = {
    "VAE": lambda: VAE(12, hidden_layer_sizes=(96,), **QUICK),
    "DLGM": lambda: DLGM((4, 8), hidden_layer_sizes=64, **QUICK),
    "rank-one": lambda: DLGM((4, 8), hidden_layer_sizes=64, covariance="rank-one", **QUICK),
}


@pytest.fixture(scope="module", params=MODELS)
def coder(request, binary):
    return MODELS[request.param]().fit(binary[0])


@pytest.fixture(scope="module")
def gray(parts):
    return VAE(8, hidden_layer_sizes=(96,), output="gaussian", **{**QUICK, "max_iter": 30}).fit(
        parts[0].reshape(-1, 8, 8)
    )


@pytest.fixture(scope="module")
def linear():
    """A plane with noise, and a linear autoencoder of it: both generators are x = W z + m + noise."""
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.normal(size=(8, 2)))[0].T * [[2], [1]]
    X = 0.5 * rng.normal(size=(1500, 8)) + 5 + rng.normal(size=(1500, 2)) @ W
    model = VAE(
        2, hidden_layer_sizes=(), output="gaussian", learning_rate_init=0.03, batch_size=50, max_iter=25, random_state=0
    )
    return X[:1000], X[1000:], model.fit(X[:1000])


def test_noise_enters_at_every_layer(binary):
    """A change of any layer's numbers changes the picture, and reaches only what lies below that layer."""
    model = DLGM((2, 3, 4), hidden_layer_sizes=(7, 6, 5), activation="tanh", max_iter=1, random_state=0)
    model.fit(binary[0][:200])
    np.testing.assert_array_equal(model.layer_, [3] * 2 + [2] * 3 + [1] * 4)
    slope = torch.func.jacrev(lambda z: model.module_.generate(z[None])[0])(torch.ones(9))
    assert (slope.flatten(0, -2).abs().sum(0) > 0).all()
    seen = []
    hooks = [m.register_forward_hook(lambda m, i, out: seen.append(out)) for m in model.module_.falls]
    for j in (0, 2, 5):
        z = torch.zeros(2, 9)
        z[1, j] = 1.0
        model.module_.generate(z)
    for hook in hooks:
        hook.remove()
    moved = [bool((h[0] - h[1]).abs().max() > 1e-5) for h in seen]
    assert moved == [True, True, False, True, False, False]  # T_2 and T_1 see what was put in above them


# ---- the bound and the likelihood ----------------------------------------------------------------------------------


def test_the_likelihood_is_never_below_the_bound(coder, binary):
    X = binary[1][:200]
    bound, likelihood = coder.elbo(X, 64, random_state=1), coder.log_likelihood(X, 64, random_state=1)
    assert (likelihood >= bound).all() and likelihood.mean() > bound.mean() + 0.1
    np.testing.assert_allclose(coder.elbo(X, 1), coder.log_likelihood(X, 1))
    assert coder.log_likelihood(X, 4).mean() < coder.log_likelihood(X, 256).mean()


def test_the_bound_is_the_objective_of_the_training(coder, binary):
    """On average over draws: closed-form divergence there, weights of draws here."""
    history = coder.history_
    last = history["reconstruction"][-1] + history["kl"][-1]
    assert history["objective"][-1] == pytest.approx(last)
    assert history["objective"][0] < history["reconstruction"][0] + 0.5 * history["kl"][0]  # the warm-up
    assert coder.elbo(binary[0]).mean() == pytest.approx(-last, abs=0.4)
    if getattr(coder, "covariance", "diagonal") == "diagonal":  # else the numbers are dependent
        assert coder.latent_kl_.sum() == pytest.approx(history["kl"][-1], rel=0.1)


def test_importance_sampling_finds_the_known_likelihood_of_a_linear_model(linear):
    test, model = linear[1].copy(), linear[2]
    noise = float(model.module_.output.variance()) * (model.range_[1] - model.range_[0]) ** 2
    mean = model.inverse_transform(np.zeros((1, 2)))[0]
    W = model.inverse_transform(np.eye(2)) - mean
    test[0] *= 2  # far beyond the range of the fit
    exact = multivariate_normal(mean, W.T @ W + noise * np.eye(8)).logpdf(test)
    found = model.log_likelihood(test, 500)
    np.testing.assert_allclose(found.mean(), exact.mean(), atol=0.01)
    np.testing.assert_allclose(found, exact, rtol=0.01, atol=0.1)


def test_a_linear_autoencoder_reaches_probabilistic_pca(linear):
    train, test, model = linear
    best = PPCA(2).fit(train)
    assert model.log_likelihood(train, 100).mean() < best.score(train) + 0.005  # nothing linear is better
    assert model.score(train) > best.score(train) - 0.02
    assert model.log_likelihood(test, 100).mean() == pytest.approx(best.score(test), abs=0.02)


def test_densities_are_on_the_scale_of_the_data(parts):
    small = VAE(output="gaussian", **SMALL).fit(parts[0])
    large = VAE(output="gaussian", **SMALL).fit(10 * parts[0])
    change = 64 * np.log(10)
    np.testing.assert_allclose(large.elbo(10 * parts[1]) + change, small.elbo(parts[1]), atol=0.05)
    assert large.history_["objective"][-1] - change == pytest.approx(small.history_["objective"][-1], abs=0.05)


@pytest.mark.parametrize("noise", ["shared", "pixel", 2.5])
def test_the_noise_is_what_pictures_leave(parts, noise):
    model = VAE(output="gaussian", noise=noise, **{**SMALL, "max_iter": 8}).fit(parts[0])
    noise_drawn = model.sample(3000, random_state=0, noise=True) - model.sample(3000, random_state=0)
    if noise == 2.5:
        assert noise_drawn.std() == pytest.approx(2.5, rel=0.02)
        return
    left = (parts[0] - model.reconstruct(parts[0])) ** 2  # below what draws of the code leave
    found = noise_drawn.var(axis=0)
    assert 0.9 * left.mean() < found.mean() < 1.5 * left.mean()
    assert (np.corrcoef(left.mean(axis=0), found)[0, 1] > 0.9) == (noise == "pixel")


def test_a_row_has_the_same_value_in_any_company(coder, binary):
    X = binary[1][:50]
    np.testing.assert_allclose(coder.elbo(X[::-1])[::-1], coder.elbo(X), rtol=1e-5)
    np.testing.assert_allclose(coder.log_likelihood(X[7:9], 20), coder.log_likelihood(X, 20)[7:9], rtol=1e-5)
    assert not np.allclose(coder.elbo(X, random_state=1), coder.elbo(X, random_state=2), rtol=1e-5)


# ---- what they learn -----------------------------------------------------------------------------------------------


def test_the_likelihood_beats_independent_pixels(coder, binary):
    train, test = binary
    p = (train.sum(axis=0) + 0.5) / (len(train) + 1)
    independent = (test * np.log(p) + (1 - test) * np.log(1 - p)).sum(axis=1).mean()
    assert coder.score(test) > independent + 2
    assert coder.score(test) == pytest.approx(coder.score_samples(test).mean())


def test_samples_look_like_the_data_on_average(coder, gray, binary, parts):
    difference = np.abs(coder.sample(1000, random_state=0).mean(axis=0) - binary[0].mean(axis=0))
    assert difference.mean() < 0.06 and difference.max() < 0.25
    assert set(np.unique(coder.sample(50, random_state=0, noise=True))) == {0.0, 1.0}
    pictures = gray.sample(1000, random_state=0)
    difference = np.abs(pictures.mean(axis=0).ravel() - parts[0].mean(axis=0))
    assert pictures.shape == (1000, 8, 8) and difference.mean() < 0.5 and difference.max() < 2
    spread = gray.sample(1000, random_state=0, noise=True).std(axis=0).ravel()
    assert np.corrcoef(spread, parts[0].std(axis=0))[0, 1] > 0.8


def test_reconstruction_beats_pca_with_as_many_numbers_as_are_in_use(gray, parts):
    train, test = parts
    deep = DLGM((4, 4), hidden_layer_sizes=96, output="gaussian", **{**QUICK, "max_iter": 30}).fit(train)
    for model, X in ((gray, test.reshape(-1, 8, 8)), (deep, test)):
        pca = PCA(int(model.active_.sum())).fit(train)
        error = np.square(test - model.reconstruct(X).reshape(-1, 64)).sum(axis=1).mean()
        assert error < np.square(test - pca.inverse_transform(pca.transform(test))).sum(axis=1).mean()


def test_convolutions_learn_pictures_of_any_shape(parts):
    X = np.repeat(parts[0].reshape(-1, 8, 8)[:700, :7, :, None], 2, axis=3).astype(np.uint8)  # (n,7,8,2)
    options = {"architecture": "convolutional", "hidden_layer_sizes": (16, 32), "output": "gaussian", "batch_size": 25}
    model = VAE(4, learning_rate_init=0.01, max_iter=8, random_state=0, **options).fit(X)
    assert model.transform(X).shape == (700, 4) and model.active_.all()
    assert model.reconstruct(X).shape == X.shape == model.sample(700).shape
    assert np.square(X - model.reconstruct(X)).mean() < 0.75 * X.var(axis=0).mean()


# ---- the terms, and collapse ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [1.0, 4.0])
def test_the_weight_of_the_divergence_grows_to_beta_in_the_warm_up(parts, beta):
    history = VAE(beta=beta, warm_up=0.5, **{**SMALL, "max_iter": 4}).fit(parts[0]).history_
    weight = np.subtract(history["objective"], history["reconstruction"]) / history["kl"]
    assert 0 < weight[0] < 0.5 * beta < weight[1] < beta
    np.testing.assert_allclose(weight[2:], beta, rtol=1e-4)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (VAE(3, hidden_layer_sizes=(16,)), r"3 of the 3 latent numbers are not in use \(0, 1, 2\)"),
        (DLGM((2, 3), hidden_layer_sizes=16), r"5 of the 5 .*0 in layer 2, 1 in layer 2, 2 in layer 1"),
    ],
)
def test_collapse_is_said_by_number_and_layer(parts, model, message):
    model.set_params(**{**TINY, "beta": 300.0, "max_iter": 10, "learning_rate_init": 0.01})
    with pytest.warns(CollapseWarning, match=message):
        model.fit(parts[0])
    assert not model.active_.any() and (model.latent_kl_ < 0.01).all()


def test_no_warning_where_the_code_is_used(parts):
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        model = VAE(output="gaussian", beta=0.1, **SMALL).fit(parts[0])
    assert model.active_.all()


# ---- use -----------------------------------------------------------------------------------------------------------


def test_a_walk_begins_and_ends_at_the_reconstructions(gray, coder, parts, binary):
    a, b = parts[1][:2].reshape(2, 8, 8)
    walk = gray.interpolate(a, b, 5)
    assert walk.shape == (5, 8, 8)
    np.testing.assert_allclose(walk[[0, -1]], gray.reconstruct(np.stack([a, b])), rtol=1e-4, atol=1e-4)
    middle = gray.inverse_transform(gray.transform(np.stack([a, b])).mean(axis=0, keepdims=True))
    np.testing.assert_allclose(walk[2], middle[0], rtol=1e-4, atol=1e-4)
    walk = coder.interpolate(*binary[1][:2], n_steps=3)
    np.testing.assert_allclose(walk[[0, -1]], coder.reconstruct(binary[1][:2]), rtol=1e-4, atol=1e-5)


def test_a_callback_may_draw_in_the_middle_of_a_fit(parts):
    drawing = EarlyStopping(score=lambda model: model.sample(2, random_state=0).mean())
    VAE(**SMALL).set_callbacks(drawing).fit(parts[0])
    assert len(drawing.scores_) > 1


def test_one_layer_has_the_codes_of_an_autoencoder(binary):
    model = DLGM(3, hidden_layer_sizes=16, **TINY).fit(binary[0])
    assert model.transform(binary[1]).shape == (len(binary[1]), 3)
    assert list(model.get_feature_names_out()) == ["dlgm0", "dlgm1", "dlgm2"]


def test_what_cannot_be_used_is_said(coder, binary):
    X = binary[1][:3]
    with pytest.raises(InputError, match="n_draws=0"):
        coder.log_likelihood(X, 0)
    with pytest.raises(InputError, match="n_steps=1"):
        coder.interpolate(X[0], X[1], 1)
    with pytest.raises(InputError, match=r"makes numbers \(n, 12\)"):
        coder.inverse_transform(np.zeros((2, 3)))
    for layers in ({"n_components": ()}, {"hidden_layer_sizes": (3, 4, 5)}):
        with pytest.raises(InputError, match="Give as many of both"):
            DLGM(**{"n_components": (2, 3), **layers}).fit(X)


@pytest.mark.parametrize(
    "options", [{"covariance": "full"}, {"n_draws": 3}, {"architecture": "convolutional", "covariance": "full"}]
)
def test_other_posteriors_train_and_are_saved(parts, options, tmp_path):
    X = parts[0][:200].reshape(-1, 8, 8)
    hidden = (8,) if "architecture" in options else (32,)
    model = VAE(3, hidden_layer_sizes=hidden, max_iter=6, random_state=0, **options).fit(X)
    model.save(tmp_path / "m.twofold")
    again = twofold.load(tmp_path / "m.twofold")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert model.history_["objective"][-1] < model.history_["objective"][0]
    assert (model.log_likelihood(X[:20]) >= model.elbo(X[:20], 128) - 1e-3).all()
