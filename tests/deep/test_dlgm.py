"""Laws of the deep latent Gaussian model: noise at every layer, its bound, what it learns."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import twofold
from twofold import DLGM, PCA, VAE, Checkpoint, InputError
from twofold.deep._gaussians import RankOne, Stacked, log_standard
from twofold.deep._variational import CollapseWarning

TINY = {"n_components": (2, 3), "hidden_layer_sizes": 16, "learning_rate_init": 3e-3, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X = load_digits().data
    X = X[np.random.default_rng(0).permutation(len(X))]
    return X[:1400], X[1400:]


@pytest.fixture(scope="module")
def binary(digits):
    """Binarised once for all."""
    return tuple((X >= 8).astype(float) for X in digits)


@pytest.fixture(scope="module", params=["diagonal", "rank-one"])
def drawn(request, binary):
    options = {"learning_rate_init": 4e-3, "max_iter": 20, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        return DLGM((4, 8), hidden_layer_sizes=64, covariance=request.param, **options).fit(binary[0])


def correlated(seed, n=5, k=4):
    g = torch.Generator().manual_seed(seed)
    return RankOne(*(torch.randn(n, k, generator=g, dtype=torch.float64) for _ in range(3)))


# ---- formulas ------------------------------------------------------------------------------------------------------


def test_one_correlated_direction_is_a_gaussian_with_that_precision():
    """Oracle: torch's Gaussian with the precision D + uuᵀ written out."""
    q = correlated(0)
    precision = torch.diag_embed((-q.log_variance).exp()) + q.direction[:, :, None] * q.direction[:, None]
    law = torch.distributions.MultivariateNormal(q.mean, precision_matrix=precision)
    z = torch.randn(7, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(q.log_density(z), law.log_prob(z))
    prior = torch.distributions.MultivariateNormal(torch.zeros(4).double(), torch.eye(4).double())
    torch.testing.assert_close(q.kl(), torch.distributions.kl_divergence(law, prior))
    R = torch.stack([q.draw(e) - q.mean for e in torch.eye(4).double()[:, None].expand(4, 5, 4)], dim=2)  # (n,k,k)
    torch.testing.assert_close(R @ R.mT, law.covariance_matrix)
    own = torch.distributions.Normal(q.mean, law.variance.sqrt())
    torch.testing.assert_close(
        q.kl_each(), torch.distributions.kl_divergence(own, torch.distributions.Normal(0.0, 1.0))
    )


def test_the_divergence_of_all_layers_is_its_average_over_draws():
    q = Stacked((correlated(0, k=3), correlated(1, k=4)))
    noise = torch.randn(20_000, 5, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    z = q.draw(noise)
    each = q.log_density(z) - log_standard(z)
    assert ((each.mean(0) - q.kl()).abs() < 5 * each.std(0) / len(each) ** 0.5).all()


def test_noise_enters_at_every_layer(binary):
    """A change of any layer's numbers changes the picture, and reaches only what lies below that layer."""
    model = DLGM((2, 3, 4), hidden_layer_sizes=(7, 6, 5), activation="tanh", max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
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


# ---- the bound, and what it learns ---------------------------------------------------------------------------------


def test_the_likelihood_is_never_below_the_bound(drawn, binary):
    X = binary[1][:200]
    bound, likelihood = drawn.elbo(X, 64, random_state=1), drawn.log_likelihood(X, 64, random_state=1)
    assert (likelihood >= bound).all() and likelihood.mean() > bound.mean() + 0.1
    assert drawn.log_likelihood(X, 4).mean() < drawn.log_likelihood(X, 256).mean()


def test_the_bound_is_the_objective_of_the_training(drawn, binary):
    history = drawn.history_
    last = history["reconstruction"][-1] + history["kl"][-1]
    assert history["objective"][-1] == pytest.approx(last)
    assert history["objective"][0] < history["reconstruction"][0] + 0.2 * history["kl"][0]  # the warm-up
    assert drawn.elbo(binary[0]).mean() == pytest.approx(-last, abs=0.4)


def test_the_likelihood_beats_independent_pixels(drawn, binary):
    train, test = binary
    p = (train.sum(axis=0) + 0.5) / (len(train) + 1)
    apart = (test * np.log(p) + (1 - test) * np.log(1 - p)).sum(axis=1).mean()
    assert drawn.score(test) > apart + 2


def test_samples_look_like_the_data_on_average(drawn, binary):
    found = drawn.sample(1000, random_state=0).mean(axis=0) - binary[0].mean(axis=0)
    assert np.abs(found).mean() < 0.06 and np.abs(found).max() < 0.25
    pixels = drawn.sample(50, random_state=0, noise=True)
    assert set(np.unique(pixels)) == {0.0, 1.0}


def test_reconstruction_beats_pca_with_as_many_numbers_as_are_in_use(digits):
    train, test = digits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        model = DLGM(
            (4, 4), hidden_layer_sizes=96, output="gaussian", learning_rate_init=4e-3, max_iter=30, random_state=0
        ).fit(train)
    pca = PCA(int(model.active_.sum())).fit(train)
    left = np.square(test - pca.inverse_transform(pca.transform(test))).sum(axis=1).mean()
    assert np.square(test - model.reconstruct(test)).sum(axis=1).mean() < left


def test_collapse_is_said_layer_by_layer(digits):
    with pytest.warns(CollapseWarning, match=r"5 of the 5 .*0 in layer 2, 1 in layer 2, 2 in layer 1"):
        model = DLGM(**{**TINY, "beta": 300.0, "max_iter": 10, "learning_rate_init": 0.01}).fit(digits[0])
    assert not model.active_.any()


# ---- manners -------------------------------------------------------------------------------------------------------


def test_one_layer_has_the_codes_of_an_autoencoder(binary):
    model = DLGM(3, hidden_layer_sizes=16, learning_rate_init=3e-3, max_iter=2, random_state=0, beta=0.1).fit(binary[0])
    other = VAE(3, hidden_layer_sizes=(16,), learning_rate_init=3e-3, max_iter=2, random_state=0, beta=0.1).fit(
        binary[0]
    )
    assert model.transform(binary[1]).shape == other.transform(binary[1]).shape
    assert list(model.get_feature_names_out()) == ["dlgm0", "dlgm1", "dlgm2"]


@pytest.mark.filterwarnings("ignore::twofold.deep._variational.CollapseWarning")
@pytest.mark.parametrize("covariance", ["diagonal", "rank-one"])
def test_same_seed_same_bits_from_a_file_and_a_checkpoint(binary, tmp_path, covariance):
    X = binary[0][:300].reshape(-1, 8, 8)

    def fresh():
        return DLGM(**TINY, covariance=covariance)

    class Stop(Checkpoint):
        def write(self, progress, stoppers):
            super().write(progress, stoppers)
            if len(progress.history) == 2:
                raise KeyboardInterrupt

    first = fresh().fit(X)
    first.save(tmp_path / "m.twofold")
    with pytest.raises(KeyboardInterrupt):
        fresh().set_callbacks(Stop(tmp_path / "c")).fit(X)
    resumed = fresh().set_callbacks(Checkpoint(tmp_path / "c")).fit(X)
    for other in (fresh().fit(X), twofold.load(tmp_path / "m.twofold"), resumed):
        for name in ("transform", "reconstruct", "elbo", "log_likelihood"):
            np.testing.assert_array_equal(getattr(other, name)(X), getattr(first, name)(X))
        np.testing.assert_array_equal(other.sample(5, random_state=3), first.sample(5, random_state=3))


def test_a_walk_begins_and_ends_at_the_reconstructions(drawn, binary):
    walk = drawn.interpolate(binary[1][0], binary[1][1], 4)
    np.testing.assert_allclose(walk[[0, -1]], drawn.reconstruct(binary[1][:2]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wish", [{"n_components": ()}, {"hidden_layer_sizes": (3, 4, 5)}])
def test_layers_that_do_not_fit_are_refused(binary, wish):
    with pytest.raises(InputError, match="Give as many of both"):
        DLGM(**{**TINY, **wish}).fit(binary[0])
