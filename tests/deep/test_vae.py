"""Laws of the variational autoencoder: its bound, its gradients, what it learns, what it warns of."""

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits

import twofold
from twofold import PCA, PPCA, VAE, Checkpoint, EarlyStopping, InputError
from twofold.deep._gaussians import Bernoulli, Diagonal, Gaussian, log_standard
from twofold.deep._variational import CollapseWarning, compute_loss

QUICK = {"hidden_layer_sizes": (128,), "learning_rate_init": 3e-3, "random_state": 0}
TINY = {"n_components": 3, "hidden_layer_sizes": (16,), "learning_rate_init": 3e-3, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    """Grey digits from 0 to 16, shuffled: training and test rows."""
    X = load_digits().data
    X = X[np.random.default_rng(0).permutation(len(X))]
    return X[:1400], X[1400:]


@pytest.fixture(scope="module")
def binary(digits):
    """The same, binarised once for all."""
    return tuple((X >= 8).astype(float) for X in digits)


@pytest.fixture(scope="module")
def drawn(binary):
    return VAE(12, max_iter=25, **QUICK).fit(binary[0])


@pytest.fixture(scope="module")
def grey(digits):
    return VAE(8, output="gaussian", max_iter=40, **QUICK).fit(digits[0].reshape(-1, 8, 8))


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


# ---- formulas ------------------------------------------------------------------------------------------------------


def test_the_divergence_in_closed_form_is_its_average_over_draws():
    rng = torch.Generator().manual_seed(0)
    q = Diagonal(torch.randn(5, 4, generator=rng), torch.randn(5, 4, generator=rng))
    z = q.draw(torch.randn(20_000, 5, 4, generator=rng))
    each = q.log_density(z) - log_standard(z)
    error = each.std(0) / len(each) ** 0.5
    assert ((each.mean(0) - q.kl()).abs() < 5 * error).all()
    torch.testing.assert_close(q.kl_each().sum(1), q.kl())


def test_densities_are_those_of_torch():
    torch.manual_seed(0)
    mean, log_variance, z = torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)
    normal = torch.distributions.Normal(mean, (0.5 * log_variance).exp())
    torch.testing.assert_close(Diagonal(mean, log_variance).log_density(z), normal.log_prob(z).sum(1))
    pixels = np.random.default_rng(0).random((6, 1, 2, 2), dtype=np.float32)
    a, x = torch.randn(6, 1, 2, 2), torch.from_numpy(pixels).round()
    for output in (Bernoulli((1, 2, 2)), Gaussian((1, 2, 2), "pixel", 1.0), Gaussian((1, 2, 2), 0.3, 1.0)):
        output.learn(pixels)
        output.eval()
        if isinstance(output, Bernoulli):
            law = torch.distributions.Bernoulli(output.mean(a))
        else:
            law = torch.distributions.Normal(output.mean(a), output.variance().sqrt())
        torch.testing.assert_close(output.log_density(x, a), law.log_prob(x).flatten(1).sum(1), rtol=1e-4, atol=1e-4)
        draws = torch.stack([output.draw(a) for _ in range(2000)])
        torch.testing.assert_close(draws.mean(0), law.mean, rtol=0, atol=float(6 * law.stddev.max() / 2000**0.5))


# ---- the bound and the likelihood ----------------------------------------------------------------------------------


def test_the_likelihood_is_never_below_the_bound(drawn, binary):
    X = binary[1][:200]
    bound, likelihood = drawn.elbo(X, 64, random_state=1), drawn.log_likelihood(X, 64, random_state=1)
    assert (likelihood >= bound).all() and likelihood.mean() > bound.mean() + 0.1
    np.testing.assert_allclose(drawn.elbo(X, 1), drawn.log_likelihood(X, 1))
    few, many = drawn.log_likelihood(X, 4).mean(), drawn.log_likelihood(X, 512).mean()
    assert bound.mean() < few < many


def test_the_bound_is_the_objective_of_the_training(drawn, binary):
    """On average over draws: closed-form divergence there, weights of draws here."""
    again = np.mean([drawn.elbo(binary[0], 8, random_state=s).mean() for s in range(3)])
    last = drawn.history_["reconstruction"][-1] + drawn.history_["kl"][-1]
    assert again == pytest.approx(-last, abs=0.3)
    assert drawn.latent_kl_.sum() == pytest.approx(drawn.history_["kl"][-1], rel=0.05)


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


def test_densities_are_on_the_scale_of_the_data(digits):
    small = VAE(output="gaussian", **TINY).fit(digits[0])
    large = VAE(output="gaussian", **TINY).fit(10 * digits[0])
    change = 64 * np.log(10)
    np.testing.assert_allclose(large.elbo(10 * digits[1]) + change, small.elbo(digits[1]), atol=0.05)
    assert large.history_["objective"][-1] - change == pytest.approx(small.history_["objective"][-1], abs=0.05)


@pytest.mark.parametrize("noise", ["shared", "pixel", 2.5])
def test_the_noise_is_what_pictures_leave(digits, noise):
    model = VAE(output="gaussian", noise=noise, **{**TINY, "max_iter": 8}).fit(digits[0])
    drawn = model.sample(3000, random_state=0, noise=True) - model.sample(3000, random_state=0)
    if noise == 2.5:
        assert drawn.std() == pytest.approx(2.5, rel=0.02)
        return
    left = (digits[0] - model.reconstruct(digits[0])) ** 2  # below what draws of the code leave
    found = drawn.var(axis=0)
    assert 0.9 * left.mean() < found.mean() < 1.5 * left.mean()
    assert (np.corrcoef(left.mean(axis=0), found)[0, 1] > 0.9) == (noise == "pixel")


def test_a_row_has_the_same_value_in_any_company(drawn, binary):
    X = binary[1][:50]
    np.testing.assert_allclose(drawn.elbo(X[::-1])[::-1], drawn.elbo(X), rtol=1e-5)
    np.testing.assert_allclose(drawn.log_likelihood(X[7:9], 20), drawn.log_likelihood(X, 20)[7:9], rtol=1e-5)
    assert not np.allclose(drawn.elbo(X, random_state=1), drawn.elbo(X, random_state=2), rtol=1e-5)


# ---- what it learns ------------------------------------------------------------------------------------------------


def factorised(train, test):
    """Mean log-likelihood of pixels that know nothing of each other."""
    p = (train.sum(axis=0) + 0.5) / (len(train) + 1)
    return float((test * np.log(p) + (1 - test) * np.log(1 - p)).sum(axis=1).mean())


def test_the_likelihood_beats_independent_pixels(drawn, binary):
    assert drawn.score(binary[1]) > factorised(*binary) + 2
    assert drawn.score(binary[1]) == pytest.approx(drawn.score_samples(binary[1]).mean())


def test_reconstruction_beats_pca_of_equal_size(grey, digits):
    train, test = digits
    pca = PCA(8).fit(train)
    left = np.square(test - grey.reconstruct(test.reshape(-1, 8, 8)).reshape(-1, 64)).sum(axis=1).mean()
    assert left < np.square(test - pca.inverse_transform(pca.transform(test))).sum(axis=1).mean()


def test_samples_look_like_the_data_on_average(grey, digits):
    drawn = grey.sample(1000, random_state=0)
    assert drawn.shape == (1000, 8, 8)
    apart = np.abs(drawn.mean(axis=0).ravel() - digits[0].mean(axis=0))
    assert apart.mean() < 0.5 and apart.max() < 2
    spread = grey.sample(1000, random_state=0, noise=True).std(axis=0).ravel()
    assert np.corrcoef(spread, digits[0].std(axis=0))[0, 1] > 0.8


def test_convolutions_learn_pictures_of_any_shape(digits):
    X = np.repeat(digits[0].reshape(-1, 8, 8)[:700, :7, :, None], 2, axis=3).astype(np.uint8)  # (n,7,8,2)
    options = {
        "architecture": "convolutional",
        "hidden_layer_sizes": (16, 32),
        "output": "gaussian",
        "learning_rate_init": 0.01,
    }
    model = VAE(4, batch_size=25, max_iter=8, random_state=0, **options).fit(X)
    assert model.transform(X).shape == (700, 4) and model.active_.all()
    assert model.reconstruct(X).shape == X.shape == model.sample(700).shape
    assert np.square(X - model.reconstruct(X)).mean() < 0.75 * X.var(axis=0).mean()


# ---- the terms, and collapse ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [1.0, 4.0])
def test_the_objective_is_the_sum_of_its_terms(digits, beta):
    history = VAE(beta=beta, warm_up=0.0, **TINY).fit(digits[0]).history_
    total = np.add(history["reconstruction"], beta * np.array(history["kl"]))
    np.testing.assert_allclose(history["objective"], total, rtol=1e-5)


def test_the_weight_of_the_divergence_grows_in_the_warm_up(digits):
    history = VAE(warm_up=0.5, **{**TINY, "max_iter": 4}).fit(digits[0]).history_
    weight = np.subtract(history["objective"], history["reconstruction"]) / history["kl"]
    assert 0 < weight[0] < 0.5 < weight[1] < 1
    np.testing.assert_allclose(weight[2:], 1, rtol=1e-4)


def test_collapse_is_said_aloud(digits):
    with pytest.warns(CollapseWarning, match=r"3 of the 3 latent numbers are not in use \(0, 1, 2\)"):
        model = VAE(beta=300.0, **{**TINY, "max_iter": 10, "learning_rate_init": 0.01}).fit(digits[0])
    assert not model.active_.any() and (model.latent_kl_ < 0.01).all()


def test_no_warning_where_the_code_is_used(digits):
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        model = VAE(output="gaussian", beta=0.1, **TINY).fit(digits[0])
    assert model.active_.all()


# ---- manners -------------------------------------------------------------------------------------------------------


def test_a_walk_begins_and_ends_at_the_reconstructions(grey, drawn, digits, binary):
    a, b = digits[1][:2].reshape(2, 8, 8)
    walk = grey.interpolate(a, b, 5)
    assert walk.shape == (5, 8, 8)
    np.testing.assert_allclose(walk[[0, -1]], grey.reconstruct(np.stack([a, b])), rtol=1e-4, atol=1e-4)
    middle = grey.inverse_transform(grey.transform(np.stack([a, b])).mean(axis=0, keepdims=True))
    np.testing.assert_allclose(walk[2], middle[0], rtol=1e-4, atol=1e-4)
    assert drawn.interpolate(*binary[1][:2], n_steps=3).shape == (3, 64)


def test_rows_and_pictures_are_the_same(digits):
    X = digits[0][:300]
    rows, pictures = VAE(**TINY).fit(X), VAE(**TINY).fit(X.reshape(-1, 8, 8))
    np.testing.assert_array_equal(rows.transform(X), pictures.transform(X.reshape(-1, 8, 8)))
    np.testing.assert_array_equal(rows.reconstruct(X), pictures.reconstruct(X.reshape(-1, 8, 8)).reshape(-1, 64))


@pytest.mark.parametrize("options", [{}, {"output": "gaussian", "gradient": "reinforce"}])
def test_same_seed_same_bits_and_a_file_changes_nothing(digits, tmp_path, options):
    X = digits[0][:300]
    first, second = (VAE(**TINY, **options).fit(X) for _ in range(2))
    first.save(tmp_path / "m.twofold")
    for other in (second, twofold.load(tmp_path / "m.twofold")):
        for name in ("transform", "reconstruct", "elbo", "log_likelihood"):
            np.testing.assert_array_equal(getattr(other, name)(X), getattr(first, name)(X))
        np.testing.assert_array_equal(other.sample(5, random_state=3), first.sample(5, random_state=3))
        np.testing.assert_array_equal(other.active_, first.active_)
    assert not np.array_equal(VAE(**{**TINY, "random_state": 1}, **options).fit(X).transform(X), first.transform(X))


@pytest.mark.parametrize("options", [{}, {"output": "gaussian", "gradient": "reinforce"}])
def test_a_stopped_fit_goes_on_to_the_same_bits(digits, tmp_path, options):
    X = digits[0][:300]
    whole = VAE(**TINY, **options).fit(X)

    class Stop(Checkpoint):
        def write(self, progress, stoppers):
            super().write(progress, stoppers)
            if len(progress.history) == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        VAE(**TINY, **options).set_callbacks(Stop(tmp_path / "c")).fit(X)
    resumed = VAE(**TINY, **options).set_callbacks(Checkpoint(tmp_path / "c")).fit(X)
    np.testing.assert_array_equal(resumed.elbo(X), whole.elbo(X))
    assert resumed.history_["kl"] == whole.history_["kl"]


def test_early_stopping_keeps_the_best_epoch(digits):
    stop = EarlyStopping(digits[1], patience=1)
    model = VAE(**{**TINY, "max_iter": 6}).set_callbacks(stop).fit(digits[0])
    assert model.score(digits[1]) == pytest.approx(max(stop.scores_))
    drawing = EarlyStopping(score=lambda model: model.sample(2, random_state=0).mean())  # in the middle of a fit, too
    VAE(**TINY).set_callbacks(drawing).fit(digits[0])
    assert len(drawing.scores_) > 1


def test_what_cannot_be_used_is_said(drawn, binary):
    X = binary[1][:3]
    with pytest.raises(InputError, match="n_draws=0"):
        drawn.log_likelihood(X, 0)
    with pytest.raises(InputError, match="n_steps=1"):
        drawn.interpolate(X[0], X[1], 1)
    with pytest.raises(InputError, match=r"makes numbers \(n, 12\)"):
        drawn.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(InputError, match="n_samples=0"):
        drawn.sample(0)
    with pytest.raises(InputError, match="units of each layer"):
        VAE(hidden_layer_sizes=(0,)).fit(X)


# ---- more draws, and correlations ------------------------------------------------------------------------------------


def test_several_draws_average_the_gradient(digits):
    """L draws a row have the same gradient on average, with 1/L of the variance."""
    model = VAE(4, hidden_layer_sizes=(16,), max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = model.fit(digits[0][:50].reshape(-1, 8, 8)).module_
    x = torch.from_numpy(np.asarray(digits[0][:50], np.float32).reshape(-1, 1, 8, 8) / 16)
    last = module.encoder[-1].bias

    def gradients(draws, n=400):
        g = torch.Generator().manual_seed(draws)
        shape = (draws, 50, 4) if draws > 1 else (50, 4)
        found = [
            torch.autograd.grad(compute_loss(module, x, torch.randn(shape, generator=g), 1.0)[0], last)[0]
            for _ in range(n)
        ]
        return torch.stack(found).double()

    one, many = gradients(1), gradients(4)
    error = (one.var(0) / len(one) + many.var(0) / len(many)).sqrt()
    assert ((one.mean(0) - many.mean(0)).abs() < 6 * error + 1e-6).all()
    ratio = float(one.var(0).sum() / many.var(0).sum())
    assert 2.5 < ratio < 6.5  # 4 but for chance


@pytest.mark.parametrize(
    "options", [{"covariance": "full"}, {"n_draws": 3}, {"architecture": "convolutional", "covariance": "full"}]
)
def test_other_posteriors_train_and_are_saved(digits, options, tmp_path):
    X = digits[0][:200].reshape(-1, 8, 8)
    hidden = (8,) if "architecture" in options else (32,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = VAE(3, hidden_layer_sizes=hidden, max_iter=6, random_state=0, **options).fit(X)
    model.save(tmp_path / "m.twofold")
    again = twofold.load(tmp_path / "m.twofold")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert model.history_["objective"][-1] < model.history_["objective"][0]
    assert (model.log_likelihood(X[:20]) >= model.elbo(X[:20], 128) - 1e-3).all()
