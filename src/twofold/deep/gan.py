"""The generative adversarial network: a generator learns from a critic who learns to tell its pictures from real ones.

    min over G  max over D   V = E_x log D(x) + E_z log(1 − D(G(z))),     z ~ N(0, I)

One epoch:  every batch  a step of the critic up V, then a step of the generator down it (or down −E log D)
References: Goodfellow et al. 2014; Mescheder, Geiger & Nowozin 2018 (R1); Miyato et al. 2018 (spectral norm).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.estimator import fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.deep._adversarial import HIDDEN, Critic, Generator, compute_divergence, critic_loss, generator_loss
from twofold.deep._images import IMAGES, ImageNetwork
from twofold.deep._network import TRAINING, check_layer_sizes
from twofold.deep._train import Player, seed_torch
from twofold.deep._variational import CollapseWarning

BETAS = (0.5, 0.99)  # less momentum than usual: the goal of each moves with the other
WATCHED = 256  # pictures drawn after an epoch to see how much they differ
ALIKE = 0.1  # of the data's variance: below, the generator has collapsed


class Adversaries(nn.Module):
    """Generator and critic."""

    def __init__(self, model: GAN):
        super().__init__()
        shape = model._channels, model.image_shape_[0], model.image_shape_[1]
        hidden = HIDDEN[model.architecture] if model.hidden is None else model.hidden
        sizes = check_layer_sizes("hidden", hidden)
        if model.architecture == "convolutional" and not sizes:
            raise InputError("hidden=(): convolutions need channels, as (32, 64).")
        self.generator = Generator(shape, model.n_components, sizes, model.architecture)
        self.critic = Critic(shape, sizes, model.architecture, model.penalty == "spectral")


class GAN(ImageNetwork):
    """Generative adversarial network, for pictures or rows.

    Parameters
    ----------
    n_components : int, default=32
        Numbers of the noise that a picture is made from.
    hidden : tuple of int or None, default=None
        Units of the dense layers, (256, 256) if None; for convolutions, channels of each, (32, 64) if None.
    architecture : {"dense", "convolutional"}, default="dense"
    loss : {"non-saturating", "minimax"}, default="non-saturating"
        What the generator lowers: −E log D(G(z)), or E log(1 − D(G(z))), which hardly moves while the critic is sure.
    penalty : {"r1", "spectral", "none"}, default="r1"
        What keeps the critic smooth: the squared slope of its log-odds at real pictures, weights of spectral norm 1, or
        nothing.
    penalty_weight : float, default=1.0
        Of R1.
    image_shape : tuple or None, default=None
        (h, w) or (h, w, c) of pictures that come as rows; None takes a square if there is one.
    optimizer, learning_rate, schedule, weight_decay, batch_size, max_iter, device, random_state
        As in :class:`MLPClassifier`.

    Attributes
    ----------
    weights_, module_
        Weights by name; the torch module, with ``generator`` and ``critic``.
    image_shape_, range_
        Shape of a picture; black and white.
    history_, n_iter_, converged_
        The objective is V; "divergence" the Jensen-Shannon divergence that the critic can prove, ½(V + log 4);
        "generator" what the generator lowers; "diversity" the variance of its pictures as a share of the data's. None
        of them needs to fall: it is a game. A CollapseWarning says when the pictures have become all alike.

    References
    ----------
    Goodfellow et al. (2014), *NIPS* 27. Mescheder, Geiger & Nowozin (2018), *ICML*. Miyato et al. (2018), *ICLR*.

    Examples
    --------
    >>> from twofold import GAN
    >>> rng = np.random.default_rng(0)
    >>> ring = rng.uniform(0, 2 * np.pi, size=1000)
    >>> X = np.stack([np.cos(ring), np.sin(ring)], axis=1)
    >>> model = GAN(4, hidden=(32, 32), max_iter=30, learning_rate=2e-3, random_state=0).fit(X)
    >>> radius = np.linalg.norm(model.sample(500, random_state=0), axis=1)
    >>> bool(abs(radius.mean() - 1) < 0.15)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden": ["array-like", None],
        "architecture": [StrOptions(set(HIDDEN))],
        "loss": [StrOptions({"non-saturating", "minimax"})],
        "penalty": [StrOptions({"r1", "spectral", "none"})],
        "penalty_weight": [Interval(Real, 0, None, closed="left")],
        **IMAGES,
        **TRAINING,
    }

    def __init__(
        self,
        n_components: int = 32,
        *,
        hidden: tuple[int, ...] | None = None,
        architecture: str = "dense",
        loss: str = "non-saturating",
        penalty: str = "r1",
        penalty_weight: float = 1.0,
        image_shape: tuple[int, ...] | None = None,
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        schedule: str = "linear",
        weight_decay: float = 0.0,
        batch_size: int = 64,
        max_iter: int = 50,
        device: str = "auto",
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.hidden = hidden
        self.architecture = architecture
        self.loss = loss
        self.penalty = penalty
        self.penalty_weight = penalty_weight
        self.image_shape = image_shape
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.device = device
        self.random_state = random_state

    def _build(self) -> Adversaries:
        return Adversaries(self)

    @fitting
    def fit(self, X: Any, y: Any = None) -> GAN:
        """Let both play over pictures X, (n,h,w), (n,h,w,c), or rows (n,d)."""
        blocks, pixels, _ = self._pictures(X, reset=True)
        seed = self._seed()
        module = self._fresh(seed)
        weight = self.penalty_weight if self.penalty == "r1" else 0.0

        def made(x: Tensor) -> Tensor:
            return module.generator(torch.randn(len(x), self.n_components, device=x.device))

        def critic(x: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            loss, v = critic_loss(module.critic, x, [made(x)], weight)
            return loss, {"objective": v, "divergence": compute_divergence(v)}

        def maker(x: Tensor, done: float) -> tuple[Tensor, dict[str, Tensor]]:
            loss = generator_loss(module.critic(made(x)), self.loss)
            return loss, {"generator": loss}

        players = [
            Player(list(module.critic.parameters()), critic, BETAS),
            Player(list(module.generator.parameters()), maker, BETAS),
        ]
        note = watch_diversity(
            pixels, lambda: made(torch.zeros(WATCHED, device=next(module.parameters()).device)), seed
        )
        self._train(module, players, (pixels,), blocks, seed, X=X, note=note)
        warn_if_alike(self)
        return self

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """New pictures or rows."""
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples={n_samples!r}: give a whole number of at least 1.")
        noise = generator(seed_of(random_state)).standard_normal((int(n_samples), self.n_components), dtype=np.float32)
        return self._as_given(self._through(lambda module, z: module.generator(z), noise))

    def judge(self, X: Any) -> np.ndarray:
        """The critic's probability (n,) that a picture is real rather than generated."""
        _, pixels, _ = self._pictures(X)
        return self._through(lambda module, x: torch.sigmoid(module.critic(x)), pixels)


def watch_diversity(pixels: np.ndarray, draw: Callable[[], Tensor], seed: int) -> Callable[[dict], dict[str, float]]:
    """What to note after an epoch: the variance of drawn pictures as a share of the data's."""
    spread = float(pixels.var(axis=0, dtype=np.float64).sum())

    def note(parts: dict) -> dict[str, float]:
        with torch.no_grad(), seed_torch(seed):
            found = float(draw().var(dim=0).sum())
        return {"diversity": found / spread if spread else 1.0}

    return note


def warn_if_alike(model: Any) -> None:
    """Say that a generator has collapsed."""
    share = model.history_["diversity"][-1]
    if share < ALIKE:
        warnings.warn(
            f"the pictures of {type(model).__name__} are nearly alike: their variance is {share:.1%} of the data's "
            "(collapse). Lower learning_rate, or give penalty='r1' with a larger penalty_weight.",
            CollapseWarning,
            stacklevel=loop.outside(),
        )
