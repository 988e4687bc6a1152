"""A variational autoencoder whose images are judged by a critic instead of pixel by pixel.

    encoder  lowers  KL(q(z|x) ‖ N(0, I)) + ½‖f(x) − f(x̃)‖²          f: input of the critic's last layer
    decoder  lowers  ½‖f(x) − f(x̃)‖² + share · (−log D of x̃ and of images from the prior)
    critic   raises  V = E log D(x) + E log(1 − D(x̃ or from the prior))         x̃ the image of a draw from q(z|x)

One epoch:  every batch  a step of the critic, of the encoder, of the decoder
Reference: Larsen et al. 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from twofold.core.params import Interval
from twofold.deep._train import Player
from twofold.deep._variational import Coder, Variational
from twofold.deep.gan import (
    BETAS,
    Critic,
    compute_divergence,
    critic_loss,
    generator_loss,
    measure_diversity,
    warn_of_collapse,
)
from twofold.deep.vae import HIDDEN, build_coder


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
        module.critic = Critic(self._shape, self._choose_hidden_sizes(HIDDEN), self.architecture, spectral=False)
        return module

    def _make_note(self, module: Any, pixels: np.ndarray, seed: int) -> Callable[[dict], dict[str, float]]:
        return measure_diversity(module, pixels, seed)

    def _check_result(self, pixels: np.ndarray) -> None:
        self._measure_codes(pixels)
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
