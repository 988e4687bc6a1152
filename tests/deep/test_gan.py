"""Laws of the adversarial models: what the best critic is, what the game lowers, and when it fails."""

import warnings

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.spatial.distance import jensenshannon
from scipy.stats import norm

from twofold import GAN, VAEGAN
from twofold.deep._rows import hold_rows
from twofold.deep._train import FALLING, Feed, Optimizer, Player, run_epoch
from twofold.deep._variational import CollapseWarning
from twofold.deep.gan import Critic, compute_divergence, compute_value, critic_loss, generator_loss


class Options:
    learning_rate_init, alpha, batch_size, max_iter, shuffle = 5e-3, 0.0, 1000, 60, True


def test_the_best_critic_is_the_share_of_the_real_density():
    rng = np.random.default_rng(0)
    real, fake = rng.normal(0.3, 0.1, size=(8000, 1)), rng.normal(0.6, 0.15, size=(8000, 1))
    data = tuple(torch.from_numpy(D.reshape(-1, 1, 1, 1).astype(np.float32)) for D in (real, fake))
    feed = Feed(hold_rows(data[0].numpy()), data, torch.device("cpu"))
    torch.manual_seed(0)
    critic = Critic((1, 1, 1), [32, 32], "dense", spectral=False)
    player = Player(list(critic.parameters()), lambda x, y, done: (critic_loss(critic, x, [y], 0.0)[0], {}))
    optimizer = Optimizer("adam", player.parameters)
    for t in range(8):
        found = run_epoch(
            Options, critic, [player], [optimizer], feed, 0, t, lambda done: 5e-3 * FALLING["cosine"](done)
        )
    p, q = norm(0.3, 0.1).pdf, norm(0.6, 0.15).pdf
    x = np.linspace(0.1, 0.9, 81)
    with torch.no_grad():
        guess = torch.sigmoid(critic(torch.from_numpy(x.reshape(-1, 1, 1, 1).astype(np.float32)))).numpy()
    assert np.abs(guess - p(x) / (p(x) + q(x))).max() < 0.08
    js = quad(lambda x: 0.5 * p(x) * np.log(2 * p(x) / (p(x) + q(x))), -1, 2)[0]
    js += quad(lambda x: 0.5 * q(x) * np.log(2 * q(x) / (p(x) + q(x))), -1, 2)[0]
    assert float(compute_divergence(torch.tensor(-found["objective"]))) == pytest.approx(js, abs=0.02)


def test_the_value_is_the_formula():
    real, fake = torch.randn(50, dtype=torch.float64), torch.randn(40, dtype=torch.float64)
    D = torch.sigmoid
    expected = D(real).log().mean() + (1 - D(fake)).log().mean()
    assert compute_value(real, fake).item() == pytest.approx(expected.item())
    assert generator_loss(fake, "minimax").item() == pytest.approx((1 - D(fake)).log().mean().item())
    assert generator_loss(fake, "non-saturating").item() == pytest.approx(-D(fake).log().mean().item())


def test_a_sure_critic_leaves_the_minimax_generator_without_a_slope():
    slopes = {}
    for kind in ("minimax", "non-saturating"):
        sure = torch.tensor([-15.0], requires_grad=True)
        generator_loss(sure, kind).backward()
        slopes[kind] = sure.grad.abs().item()
    assert slopes["minimax"] < 1e-5
    assert slopes["non-saturating"] > 0.9


def test_r1_is_the_squared_slope_of_the_log_odds():
    torch.manual_seed(0)
    critic = Critic((1, 2, 2), [8], "dense", spectral=False)
    x, fake = torch.rand(5, 1, 2, 2), torch.rand(5, 1, 2, 2)
    with_it, without = (critic_loss(critic, x, [fake], w)[0].item() for w in (3.0, 0.0))
    slopes = [torch.autograd.functional.jacobian(lambda image: critic(image[None])[0], image) for image in x]
    expected = 1.5 * torch.stack([s.square().sum() for s in slopes]).mean().item()
    assert with_it - without == pytest.approx(expected, rel=1e-4)


def histogram_divergence(a, b):
    bins = np.linspace(-4, 4, 41)
    P, Q = (np.histogram(x, bins)[0] + 1e-9 for x in (a, b))
    return jensenshannon(P, Q) ** 2


@pytest.mark.parametrize("loss", ["non-saturating", pytest.param("minimax", marks=pytest.mark.soak)])
def test_the_divergence_falls_on_a_line(loss):
    rng = np.random.default_rng(0)
    X = np.where(rng.random(2000) < 0.5, rng.normal(-2, 0.4, 2000), rng.normal(2, 0.4, 2000))[:, None]

    def apart(epochs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CollapseWarning)
            model = GAN(
                2, hidden_layer_sizes=(32, 32), loss=loss, learning_rate_init=2e-3, max_iter=epochs, random_state=0
            ).fit(X)
        return histogram_divergence(X[:, 0], model.sample(4000, random_state=1)[:, 0])

    end = apart(25)
    assert end < 0.4 * apart(1)
    assert end < 0.2


@pytest.fixture(scope="module")
def pictures(digits):
    return digits.reshape(-1, 8, 8)


def nearest(samples, X):
    """Mean squared distance of each sample to the nearest real picture."""
    A, B = samples.reshape(len(samples), -1), X.reshape(len(X), -1)
    return (((A[:, None] - B[None]) ** 2).sum(axis=2)).min(axis=1).mean()


@pytest.mark.parametrize(
    "options", [{}, {"penalty": "spectral"}, {"architecture": "convolutional", "hidden_layer_sizes": (8, 16)}]
)
def test_samples_are_nearer_to_digits_than_noise_is(pictures, options):
    model = GAN(8, max_iter=8, random_state=0, **{"hidden_layer_sizes": (64,), **options}).fit(pictures)
    drawn = model.sample(100, random_state=0)
    noise = np.random.default_rng(0).permuted(pictures[:100].reshape(100, -1), axis=1).reshape(-1, 8, 8)
    assert drawn.shape == (100, 8, 8)
    assert drawn.min() >= 0
    assert drawn.max() <= 16
    assert nearest(drawn, pictures) < 0.8 * nearest(noise, pictures)
    assert np.isfinite(model.history_["diversity"]).all()
    judged = model.judge(pictures)
    assert ((judged >= 0) & (judged <= 1)).all()


def test_a_collapse_is_said():
    X = np.random.default_rng(0).normal(size=(300, 2))
    with pytest.warns(CollapseWarning, match="hardly differ"):
        GAN(
            1, hidden_layer_sizes=(4,), solver="sgd", learning_rate_init=0.1, alpha=320.0, max_iter=2, random_state=0
        ).fit(X)


def test_a_vaegan_codes_and_draws(pictures):
    train, test = pictures[::2], pictures[1::2]
    model = VAEGAN(12, hidden_layer_sizes=(128,), learning_rate_init=2e-3, max_iter=15, random_state=0).fit(train)
    lost = ((model.reconstruct(test) - test) ** 2).sum(axis=(1, 2)).mean()
    assert lost < 0.5 * ((test - train.mean(axis=0)) ** 2).sum(axis=(1, 2)).mean()
    drawn = model.sample(100, random_state=0)
    noise = np.random.default_rng(0).permuted(pictures[:100].reshape(100, -1), axis=1)
    assert nearest(drawn, pictures) < 0.8 * nearest(noise, pictures)
    assert {"features", "kl", "pixels", "divergence", "diversity"} <= set(model.history_)
