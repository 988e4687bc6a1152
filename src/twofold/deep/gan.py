"""The generative adversarial network: a generator learns from a critic, which learns to separate its images from
real ones.

    min over G  max over D   V = E_x log D(x) + E_z log(1 − D(G(z))),     z ~ N(0, I)
    for the best critic D* = p/(p + p_θ):  V = 2 JS(p ‖ p_θ) − log 4,  so a critic's V bounds the divergence from below
    with l = D's log-odds:  log D = −softplus(−l),  log(1 − D) = −softplus(l)

One epoch:  every batch  a step of the critic up V, then a step of the generator down it (or down −E log D)

With a variational autoencoder as the generator, images are judged by the critic instead of pixel by pixel:

    encoder  lowers  KL(q(z|x) ‖ N(0, I)) + ½‖f(x) − f(x̃)‖²          f: input of the critic's last layer
    decoder  lowers  ½‖f(x) − f(x̃)‖² + share · (−log D of x̃ and of images from the prior)
    critic   raises  V = E log D(x) + E log(1 − D(x̃ or from the prior))         x̃ the image of a draw from q(z|x)

One epoch:  every batch  a step of the critic, of the encoder, of the decoder
References: Goodfellow et al. 2014; Mescheder, Geiger & Nowozin 2018 (R1); Miyato et al. 2018 (spectral norm);
Larsen et al. 2016 (with an autoencoder).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table
from twofold.deep._network import ImageModel, Shape, build_dense, check_count, init_weights
from twofold.deep._rows import NetworkRows
from twofold.deep._train import Player, seed_torch
from twofold.deep._variational import Coder, CollapseWarning, Variational
from twofold.deep.vae import CODER_SIZES, build_coder

SIZES = {"dense": (256, 256), "convolutional": (32, 64)}
BETAS = (0.5, 0.99)  # less momentum than usual: the goal of each moves with the other
DIVERSITY_SAMPLES = 256  # images drawn after an epoch to measure their variance
COLLAPSE_VARIANCE_RATIO = 0.1  # of the data's variance: below, the generator has collapsed


class Generator(nn.Module):
    """Noise (n,k) to images (n,c,h,w) from 0 to 1, by dense layers or by convolutions that double the image."""

    def __init__(self, shape: Shape, k: int, hidden: list[int], architecture: str):
        super().__init__()
        self.shape = shape
        c, h, w = shape
        if architecture == "dense":
            self.layers = build_dense([k, *hidden, c * h * w], "relu")
            return
        sizes = [(h, w)]
        for _ in hidden:
            sizes.append((-(-sizes[-1][0] // 2), -(-sizes[-1][1] // 2)))
        a, (sh, sw) = hidden[-1], sizes[-1]
        layers: list[nn.Module] = [nn.Linear(k, a * sh * sw), nn.ReLU(), nn.Unflatten(1, (a, sh, sw))]
        for (a, b), size in zip(pairwise([*hidden[::-1], c]), sizes[-2::-1], strict=True):
            layers += [nn.Upsample(size=size), nn.Conv2d(a, b, 3, padding=1), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])
        init_weights(self.layers, "relu")

    def forward(self, z: Tensor) -> Tensor:
        return torch.sigmoid(self.layers(z)).reshape(-1, *self.shape)


class Critic(nn.Module):
    """Images (n,c,h,w) to the log-odds (n,) that they are real; `features` are the input of the last layer."""

    def __init__(self, shape: Shape, hidden: list[int], architecture: str, spectral: bool):
        super().__init__()
        c, h, w = shape
        layers: list[nn.Module] = []
        if architecture == "dense":
            layers.append(nn.Flatten())
            for a, b in pairwise([c * h * w, *hidden]):
                layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
            wide = hidden[-1] if hidden else c * h * w
        else:
            for a, b in pairwise([c, *hidden]):
                layers += [nn.Conv2d(a, b, 3, stride=2, padding=1), nn.LeakyReLU(0.2)]
                h, w = -(-h // 2), -(-w // 2)
            layers.append(nn.Flatten())
            wide = hidden[-1] * h * w
        self.body, self.head = nn.Sequential(*layers), nn.Linear(wide, 1)
        init_weights(self.body, "relu")
        if spectral:
            for layer in [*self.body, self.head]:
                if isinstance(layer, (nn.Linear, nn.Conv2d)):
                    spectral_norm(layer)

    def features(self, x: Tensor) -> Tensor:
        return self.body(x - 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))[:, 0]


def compute_value(real: Tensor, fake: Tensor) -> Tensor:
    """V for the critic's log-odds of real and of generated images."""
    return -F.softplus(-real).mean() - F.softplus(fake).mean()


def generator_loss(fake: Tensor, kind: str) -> Tensor:
    """Its part of V, or −E log D, whose gradient does not vanish when the critic is confident."""
    return -F.softplus(fake).mean() if kind == "minimax" else F.softplus(-fake).mean()


def critic_loss(critic: Critic, x: Tensor, fakes: list[Tensor], weight: float) -> tuple[Tensor, Tensor]:
    """−V, with R1, ½ weight E‖∇ₓ l(x)‖² at real images, added; and V alone."""
    x = x.detach().requires_grad_(weight > 0)
    real = critic(x)
    v = compute_value(real, torch.cat([critic(fake.detach()) for fake in fakes]))
    if weight == 0:
        return -v, v
    (slope,) = torch.autograd.grad(real.sum(), x, create_graph=True)
    return -v + 0.5 * weight * slope.square().flatten(1).sum(dim=1).mean(), v


def compute_divergence(v: Tensor) -> Tensor:
    """The Jensen-Shannon divergence that a critic can prove, in nats: at most log 2."""
    return 0.5 * (v + math.log(4.0))


class Adversaries(nn.Module):
    """Generator and critic."""

    def __init__(self, model: GAN):
        super().__init__()
        sizes = model._choose_hidden_sizes(SIZES)
        if model.architecture == "convolutional" and not sizes:
            raise InputError("hidden_layer_sizes=(): convolutions need channels, as (32, 64).")
        self.generator = Generator(model._shape, model.n_components, sizes, model.architecture)
        self.critic = Critic(model._shape, sizes, model.architecture, model.penalty == "spectral")
        self.k = model.n_components

    def draw(self, n: int, device: torch.device) -> Tensor:
        """n generated images."""
        return self.generator(torch.randn(n, self.k, device=device))


@dataclass(eq=False, repr=False)
class GAN(ImageModel):
    """Generative adversarial network, for images or rows.

    Parameters
    ----------
    n_components : int, default=32
        Numbers of the noise that an image is made from.
    hidden_layer_sizes : tuple of int or None, default=None
        Units of the dense layers, (256, 256) if None; for convolutions, channels of each, (32, 64) if None.
    architecture : {"dense", "convolutional"}, default="dense"
    loss : {"non-saturating", "minimax"}, default="non-saturating"
        The loss of the generator: −E log D(G(z)), or E log(1 − D(G(z))), which hardly changes when the critic is
        confident.
    penalty : {"r1", "spectral", "none"}, default="r1"
        What keeps the critic smooth: the squared slope of its log-odds at real images, weights of spectral norm 1, or
        nothing.
    penalty_weight : float, default=1.0
        Of R1.
    image_shape, solver, alpha, learning_rate, learning_rate_init, batch_size, max_iter, device, random_state
        As in :class:`VAE`.

    Attributes
    ----------
    weights_, module_
        Weights by name; the torch module, with ``generator`` and ``critic``.
    image_shape_, range_
        Shape of an image; black and white.
    history_, n_iter_, converged_
        The objective is V; "divergence" the Jensen-Shannon divergence that the critic can prove, ½(V + log 4);
        "generator" the loss of the generator; "diversity" the variance of its images as a share of the data's. None
        of them needs to fall: it is a game. A CollapseWarning follows if the images hardly differ.

    References
    ----------
    Goodfellow et al. (2014), *NIPS* 27. Mescheder, Geiger & Nowozin (2018), *ICML*. Miyato et al. (2018), *ICLR*.

    Examples
    --------
    >>> from twofold import GAN
    >>> rng = np.random.default_rng(0)
    >>> ring = rng.uniform(0, 2 * np.pi, size=1000)
    >>> X = np.stack([np.cos(ring), np.sin(ring)], axis=1)
    >>> model = GAN(4, hidden_layer_sizes=(32, 32), max_iter=30, learning_rate_init=2e-3, random_state=0).fit(X)
    >>> radius = np.linalg.norm(model.sample(500, random_state=0), axis=1)
    >>> bool(abs(radius.mean() - 1) < 0.15)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "loss": [StrOptions({"non-saturating", "minimax"})],
        "penalty": [StrOptions({"r1", "spectral", "none"})],
        "penalty_weight": [Interval(Real, 0, None, closed="left")],
    }

    n_components: int = 32
    _: KW_ONLY
    hidden_layer_sizes: tuple[int, ...] | None = None
    architecture: str = "dense"
    loss: str = "non-saturating"
    penalty: str = "r1"
    penalty_weight: float = 1.0
    learning_rate: str = "linear"

    def _build(self) -> Adversaries:
        return Adversaries(self)

    def _make_players(self, module: Any) -> list[Player]:
        weight = self.penalty_weight if self.penalty == "r1" else 0.0

        def critic(x: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            loss, v = critic_loss(module.critic, x, [module.draw(len(x), x.device)], weight)
            return loss, {"objective": v, "divergence": compute_divergence(v)}

        def maker(x: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            loss = generator_loss(module.critic(module.draw(len(x), x.device)), self.loss)
            return loss, {"generator": loss}

        return [
            Player(list(module.critic.parameters()), critic, BETAS),
            Player(list(module.generator.parameters()), maker, BETAS),
        ]

    def _make_note(self, module: Any, rows: NetworkRows, seed: int) -> Callable[[dict], dict[str, float]]:
        return measure_diversity(module, rows, seed)

    def _check_result(self, rows: NetworkRows) -> None:
        warn_of_collapse(self)

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> np.ndarray:
        """New images or rows."""
        size = check_count("n_samples", n_samples), self.n_components
        noise = generator(seed_of(random_state)).standard_normal(size, dtype=np.float32)
        return self._restore_images(self._through(lambda module, z: module.generator(z), noise))

    def judge(self, X: Table) -> np.ndarray:
        """The critic's probability (n,) that an image is real rather than generated."""
        return self._through(lambda module, x: torch.sigmoid(module.critic(x)), self._read(X))


def measure_diversity(module: Any, rows: NetworkRows, seed: int) -> Callable[[dict], dict[str, float]]:
    """A function that notes, after an epoch, the variance of drawn images as a share of the data's."""
    spread = float(rows.moments().variance.sum())

    def note(parts: dict) -> dict[str, float]:
        with torch.no_grad(), seed_torch(seed):
            variance = float(module.draw(DIVERSITY_SAMPLES, next(module.parameters()).device).var(dim=0).sum())
        return {"diversity": variance / spread if spread else 1.0}

    return note


def warn_of_collapse(model: Any) -> None:
    """Warn if the images of a generator hardly differ."""
    share = model.history_["diversity"][-1]
    if share < COLLAPSE_VARIANCE_RATIO:
        fact = f"images of {type(model).__name__} hardly differ: their variance is {share:.1%} of the data's (collapse)"
        advice = "Lower learning_rate, or give penalty='r1' with a larger penalty_weight."
        warnings.warn(CollapseWarning(fact, advice), stacklevel=loop.outside())


@dataclass(eq=False, repr=False)
class VAEGAN(Variational):
    """Variational autoencoder with a critic: reconstructions are compared by the features of the critic.

    Squared errors of pixels blur; errors of a critic's features do not. The critic is trained beside the two networks.

    Parameters
    ----------
    beta : float, default=0.2
        Weight of the KL term. Errors of features are small numbers: with 1 the code may lose its use.
    share : float, default=0.1
        Weight of the critic's term in the loss of the decoder.
    penalty_weight : float, default=1.0
        Weight of R1, which keeps the critic smooth.
    n_components, hidden_layer_sizes, architecture, activation, warm_up, image_shape, solver, alpha, learning_rate, \
learning_rate_init, batch_size, max_iter, device, random_state
        As in :class:`VAE`; the critic has the layers of the encoder.

    Attributes
    ----------
    latent_kl_, active_, image_shape_, range_
        As in :class:`VAE`.
    weights_, module_
        Weights by name; the torch module, with ``recognize``, ``generate`` and ``critic``.
    history_, n_iter_, converged_
        The objective is the loss of the encoder, with its parts "features" and "kl"; "divergence" and "diversity" as
        in :class:`GAN`; "pixels" the squared error of an image, pixels from 0 to 1.

    Notes
    -----
    Likelihoods are those of the decoder as the Bernoulli output of a :class:`VAE`, which it was not trained for.

    References
    ----------
    Larsen, Sønderby, Larochelle & Winther (2016), *ICML* 48, 1558-1566.

    Examples
    --------
    >>> from twofold import VAEGAN, datasets
    >>> X = datasets.digits().images
    >>> model = VAEGAN(8, hidden_layer_sizes=(64,), max_iter=5, random_state=0).fit(X)
    >>> model.transform(X).shape, model.sample(3, random_state=0).shape
    ((1797, 8), (3, 8, 8))
    """

    _parameter_constraints: ClassVar[dict] = {
        "share": [Interval(Real, 0, None, closed="left")],
        "penalty_weight": [Interval(Real, 0, None, closed="left")],
    }

    n_components: int = 32
    _: KW_ONLY
    hidden_layer_sizes: tuple[int, ...] | None = None
    architecture: str = "dense"
    share: float = 0.1
    penalty_weight: float = 1.0
    beta: float = 0.2

    def _build(self) -> Coder:
        module = build_coder(self)
        module.critic = Critic(self._shape, self._choose_hidden_sizes(CODER_SIZES), self.architecture, spectral=False)
        return module

    def _make_note(self, module: Any, rows: NetworkRows, seed: int) -> Callable[[dict], dict[str, float]]:
        return measure_diversity(module, rows, seed)

    def _check_result(self, rows: NetworkRows) -> None:
        super()._check_result(rows)
        warn_of_collapse(self)

    def _make_players(self, module: Any) -> list[Player]:
        """Encoder, decoder and critic."""

        def reconstruct(x: Tensor) -> tuple[Any, Tensor]:
            q = module.posterior(x)
            z = q.draw(torch.randn(len(x), self.n_components, device=x.device))
            return q, module.output.mean(module.generate(z))

        def compare(x: Tensor, other: Tensor) -> Tensor:
            return 0.5 * (module.critic.features(x).detach() - module.critic.features(other)).square().sum(dim=1).mean()

        def encoder(x: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            q, again = reconstruct(x)
            kl, features = q.kl().mean(), compare(x, again)
            pixels = (x - again).square().flatten(1).sum(dim=1).mean()
            return features + self._kl_weight(done) * kl, {"features": features, "kl": kl, "pixels": pixels}

        def decoder(x: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            with torch.no_grad():
                z = module.posterior(x).draw(torch.randn(len(x), self.n_components, device=x.device))
            again = module.output.mean(module.generate(z))
            logits = module.critic(torch.cat([again, module.draw(len(x), x.device)]))
            word = generator_loss(logits, "non-saturating")
            return compare(x, again) + self.share * word, {"generator": word}

        def critic(x: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            with torch.no_grad():
                fakes = [reconstruct(x)[1], module.draw(len(x), x.device)]
            loss, v = critic_loss(module.critic, x, fakes, self.penalty_weight)
            return loss, {"divergence": compute_divergence(v)}

        halves = module.encoder, module.decoder, module.critic
        return [
            Player(list(half.parameters()), loss, BETAS)
            for half, loss in zip(halves, (encoder, decoder, critic), strict=True)
        ]
