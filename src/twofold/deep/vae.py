"""The variational autoencoder.

    minimize  mean over rows of  −E_q log p(x|z) + β KL(q(z|x) ‖ N(0, I))
    q(z|x) = N(m(x), diag v(x)) or N(m(x), U(x)U(x)ᵀ) from the encoder,  p(x|z) around the decoder's image
    x (c,h,w) an image   z (k,) its code

One epoch:  every batch  a draw of z a row, or more, and a step of both networks along the gradient
References: Kingma & Welling 2014; Higgins et al. 2017 (β); Williams 1992 (REINFORCE).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor, nn

from twofold.core.params import StrOptions
from twofold.deep._network import ACTIVATIONS, build_dense, init_weights
from twofold.deep._variational import Coder, Posterior, Variational, count_numbers, read_posterior

CODER_SIZES = {"dense": (500, 500), "convolutional": (32, 64)}


class DenseCoder(Coder):
    """d - hidden - 2k, or more with correlations, and k - hidden reversed - d."""

    def __init__(self, model: Any):
        super().__init__(model)
        hidden, d, k = model._choose_hidden_sizes(CODER_SIZES), math.prod(self.shape), self.n_codes
        self.encoder = build_dense([d, *hidden, count_numbers(self.covariance, k)], model.activation)
        self.decoder = build_dense([k, *hidden[::-1], d], model.activation)
        init_weights(self.encoder[-1], "identity")
        init_weights(self.decoder[-1], "identity")

    def recognize(self, x: Tensor) -> Posterior:
        return read_posterior(self.covariance, self.encoder(x.flatten(1)), self.n_codes)

    def generate(self, z: Tensor) -> Tensor:  # (n,k) -> (n,c,h,w)
        return self.decoder(z).reshape(-1, *self.shape)


class ConvolutionalCoder(Coder):
    """Convolutions that halve the image, one for each number of channels, a dense layer, and the same way back."""

    def __init__(self, model: Any):
        super().__init__(model)
        act, (c, h, w) = ACTIVATIONS[model.activation], self.shape
        down: list[nn.Module] = []
        up: list[nn.Module] = []
        for i, (a, b) in enumerate(pairwise([c, *model._choose_hidden_sizes(CODER_SIZES)])):
            # (a,h,w) -> (b,⌈h/2⌉,⌈w/2⌉), and back to an even or odd size as it was
            down += [nn.Conv2d(a, b, 3, stride=2, padding=1), act()]
            back = nn.ConvTranspose2d(b, a, 3, stride=2, padding=1, output_padding=(1 - h % 2, 1 - w % 2))
            up = [back, *([act()] if i else []), *up]
            h, w = -(-h // 2), -(-w // 2)
        d, wide, numbers = b * h * w, 4 * b, count_numbers(self.covariance, self.n_codes)
        self.encoder = nn.Sequential(*down, nn.Flatten(), nn.Linear(d, wide), act(), nn.Linear(wide, numbers))
        narrow = [nn.Linear(self.n_codes, wide), act(), nn.Linear(wide, d), act(), nn.Unflatten(1, (b, h, w))]
        self.decoder = nn.Sequential(*narrow, *up)
        init_weights(self, model.activation)
        init_weights(self.encoder[-1], "identity")
        init_weights(self.decoder[-1], "identity")

    def recognize(self, x: Tensor) -> Posterior:
        return read_posterior(self.covariance, self.encoder(x), self.n_codes)

    def generate(self, z: Tensor) -> Tensor:  # (n,k) -> (n,c,h,w)
        return self.decoder(z)


def build_coder(model: Any) -> Coder:
    """The networks of a VAE or VAEGAN."""
    return DenseCoder(model) if model.architecture == "dense" else ConvolutionalCoder(model)


@dataclass(eq=False, repr=False)
class VAE(Variational):
    """Variational autoencoder: images as draws from a network whose input is Gaussian noise.

    An encoder estimates the codes z that an image x may have come from, q(z|x) = N(m, diag v); a decoder makes images
    of codes, p(x|z). Both are learned together by the evidence lower bound

        log p(x) ≥ E_q log p(x|z) − KL(q(z|x) ‖ N(0, I)),      KL = ½ Σ m² + v − 1 − log v.

    Likelihoods are in nats an image. With ``output="bernoulli"`` a gray value counts as that share of a white
    pixel (cross-entropy); for a likelihood of binary images binarize them first, once for all (static) or again for
    every use (dynamic), and report which; values beyond the range of the fit are cut off at it. With
    ``output="gaussian"`` densities are those of the data's own scale.

    Parameters
    ----------
    n_components : int, default=32
        Numbers in a code.
    hidden_layer_sizes : tuple of int or None, default=None
        Units of the encoder's hidden layers, which the decoder has in reverse: (500, 500) if None. For convolutions,
        channels of each, (32, 64) if None; each halves the image. () with Gaussian output is probabilistic PCA.
    architecture : {"dense", "convolutional"}, default="dense"
    activation : {"relu", "logistic", "tanh", "identity"}, default="relu"
    output : {"bernoulli", "gaussian"}, default="bernoulli"
    noise : {"shared", "pixel"} or float, default="shared"
        Of Gaussian output: one variance, learned, for all pixels, or one for each; or a given standard deviation.
    beta : float, default=1.0
        Weight of the KL term. Above 1 the code contains less information, number by number.
    warm_up : float, default=0.1
        Share of the training over which that weight grows from 0.
    covariance : {"diagonal", "full"}, default="diagonal"
        Of q(z|x): numbers that do not depend on each other, or any covariance UUᵀ, U triangular.
    n_draws : int, default=1
        Draws of the code for each row and step: more of them make gradients less noisy, and cost more time.
    gradient : {"reparameterized", "reinforce"}, default="reparameterized"
        How the encoder learns: through the code, or by REINFORCE with a running baseline, which is far noisier.
    image_shape : tuple or None, default=None
        (h, w) or (h, w, c) of images that come as rows; None takes a square if there is one.
    solver, alpha, learning_rate, learning_rate_init, batch_size, max_iter, device, random_state
        As in :class:`MLPClassifier`.

    Attributes
    ----------
    latent_kl_ : ndarray of shape (k,)
        The KL term of each number of the code, in nats: its information about an image, on average over the data.
    active_ : ndarray of bool, shape (k,)
        True where that is at least 0.01. If some are not, `fit` warns with a CollapseWarning.
    weights_, module_
        Weights by name, and the torch module, which maps pixels from 0 to 1 to their reconstruction.
    image_shape_, range_
        Shape of an image; black and white.
    history_, n_iter_, converged_
        Columns "reconstruction", −E_q log p(x|z), and "kl", means over an epoch, whose sum is the negative ELBO. The
        objective is what is minimized, reconstruction + w β kl: the negative ELBO if β = 1, once w has grown to 1.

    References
    ----------
    Kingma & Welling (2014), *ICLR*. Higgins et al. (2017), *ICLR*. Burda, Grosse & Salakhutdinov (2016), *ICLR*.

    Examples
    --------
    >>> from twofold import VAE, datasets
    >>> X = datasets.digits().images
    >>> model = VAE(8, hidden_layer_sizes=(128,), learning_rate_init=3e-3, max_iter=12, random_state=0).fit(X)
    >>> model.transform(X).shape, model.sample(3, random_state=0).shape
    ((1797, 8), (3, 8, 8))
    >>> bool(model.log_likelihood(X[:100]).mean() > model.elbo(X[:100]).mean())
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "covariance": [StrOptions({"diagonal", "full"})],
        "gradient": [StrOptions({"reparameterized", "reinforce"})],
    }

    n_components: int = 32
    _: KW_ONLY
    hidden_layer_sizes: tuple[int, ...] | None = None
    architecture: str = "dense"
    output: str = "bernoulli"
    noise: str | float = "shared"  # type: ignore[assignment]
    covariance: str = "diagonal"
    n_draws: int = 1
    gradient: str = "reparameterized"
    batch_size: int | str = 100

    def _build(self) -> Coder:
        return build_coder(self)
