"""Deep latent Gaussian models: noise is injected at every layer of the generator.

    h_L = G_L z_L,   h_l = T_l(h_l+1) + G_l z_l,   x ~ p(x | T_0(h_1))        z_l ~ N(0, I), layers L … 1 from the top
    q(z|x) = Π N(z_l; m_l(x), C_l(x)),  from layer to layer of the recognizing network, upwards
    minimize  mean over rows of  −E_q log p(x|z) + β Σ_l KL(q(z_l|x) ‖ N(0, I))

One epoch:  every batch  one draw of all z_l a row, and a step of both networks along the gradient
Reference: Rezende, Mohamed & Wierstra 2014.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from numbers import Integral
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from twofold.core.checks import InputError
from twofold.core.params import Interval, StrOptions
from twofold.deep._network import build_dense, check_layer_sizes, init_weights
from twofold.deep._variational import Coder, Diagonal, Posterior, Stacked, Variational, count_numbers, read_posterior


class Layers(Coder):
    """A generator with noise at every layer, and the recognizer that climbs the other way. Lists run from the top."""

    def __init__(self, model: DLGM):
        codes, hidden, activation = *model._layer_sizes(), model.activation
        super().__init__(model, sum(codes))
        self.codes, covariance, d = codes, self.covariance, math.prod(self.shape)
        below = [d, *hidden[::-1]]  # units from the image upwards
        self.climbs = nn.ModuleList([build_dense([a, b, b], activation, last=True) for a, b in pairwise(below)])
        self.heads = nn.ModuleList(
            [nn.Linear(b, count_numbers(covariance, k)) for b, k in zip(hidden[::-1], codes[::-1], strict=True)]
        )
        self.injects = nn.ModuleList([nn.Linear(k, b, bias=False) for k, b in zip(codes, hidden, strict=True)])
        self.falls = nn.ModuleList([build_dense([a, b, b], activation) for a, b in pairwise(hidden)])
        self.last = build_dense([hidden[-1], hidden[-1], d], activation)
        for m in (self.heads, self.injects, self.last[-1]):
            init_weights(m, "identity")

    def recognize(self, x: Tensor) -> Posterior:  # (n,c,h,w) -> means and spreads (n,K) of all layers
        up, found = x.flatten(1), []
        for climb, head, k in zip(self.climbs, self.heads, self.codes[::-1], strict=True):
            up = climb(up)  # (n,hidden_l)
            found.append(read_posterior(self.covariance, head(up), k))
        found.reverse()
        if self.covariance == "diagonal":  # one step for all layers
            return Diagonal(*(torch.cat(parts, dim=1) for parts in zip(*found, strict=True)))
        return Stacked(tuple(found))

    def generate(self, z: Tensor) -> Tensor:  # (n,K) -> (n,c,h,w)
        parts = z.split(self.codes, dim=1)
        h = self.injects[0](parts[0])  # (n,hidden_L)
        for fall, inject, part in zip(self.falls, self.injects[1:], parts[1:], strict=True):
            h = fall(h) + inject(part)  # (n,hidden_l)
        return self.last(h).reshape(-1, *self.shape)


@dataclass(eq=False, repr=False)
class DLGM(Variational):
    """Deep latent Gaussian model: a variational autoencoder with Gaussian noise at every layer of the generator.

        h_L = G_L z_L,   h_l = T_l(h_l+1) + G_l z_l,   x ~ p(x | T_0(h_1)),      z_l ~ N(0, I)

    The T_l are networks of one hidden layer, the G_l matrices. The code of an image is all of z, the numbers of the
    top layer first. Likelihoods and outputs are as in :class:`VAE`.

    Parameters
    ----------
    n_components : tuple of int, default=(16, 32)
        Latent numbers of each layer, from the top; a whole number is one layer.
    hidden_layer_sizes : int or tuple of int, default=400
        Units of the layers h_l, from the top; one number for all.
    covariance : {"diagonal", "rank-one", "full"}, default="diagonal"
        Of q in every layer. "rank-one" has the precision D + uuᵀ, which lets one direction correlate; "full" has UUᵀ,
        U triangular, which lets all.
    warm_up : float, default=0.2
        Share of the training over which `beta` grows from 0. Without it the layers far from the image tend to
        lose their use before they have learned anything.
    n_draws, activation, output, noise, beta, image_shape, solver, alpha, learning_rate, learning_rate_init, \
batch_size, max_iter, device, random_state
        As in :class:`VAE`.

    Attributes
    ----------
    layer_ : ndarray of int, shape (K,)
        The layer of each latent number, L at the top to 1 next to the image.
    latent_kl_, active_, weights_, module_, image_shape_, range_, history_, n_iter_, converged_
        As in :class:`VAE`.

    References
    ----------
    Rezende, Mohamed & Wierstra (2014), *ICML*. Sønderby et al. (2016), *NeurIPS* (warm-up).

    Examples
    --------
    >>> from twofold import DLGM, datasets
    >>> X = datasets.digits().images
    >>> model = DLGM((4, 8), hidden_layer_sizes=64, learning_rate_init=3e-3, max_iter=12, random_state=0).fit(X)
    >>> model.transform(X).shape, model.sample(3, random_state=0).shape
    ((1797, 12), (3, 8, 8))
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": ["array-like", Interval(Integral, 1, None, closed="left")],
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "covariance": [StrOptions({"diagonal", "rank-one", "full"})],
    }

    n_components: int | tuple[int, ...] = (16, 32)
    _: KW_ONLY
    hidden_layer_sizes: int | tuple[int, ...] = 400
    covariance: str = "diagonal"
    n_draws: int = 1
    output: str = "bernoulli"
    noise: str | float = "shared"  # type: ignore[assignment]
    warm_up: float = 0.2
    batch_size: int | str = 100

    def _layer_sizes(self) -> tuple[list[int], list[int]]:
        """Latent numbers and units of each layer, from the top."""
        codes = check_layer_sizes("n_components", self.n_components)
        hidden = check_layer_sizes("hidden_layer_sizes", self.hidden_layer_sizes)
        if isinstance(self.hidden_layer_sizes, Integral):
            hidden = hidden * len(codes)
        if not codes or len(codes) != len(hidden):
            raise InputError(
                f"n_components={self.n_components!r} are {len(codes)} layers, hidden_layer_sizes="
                f"{self.hidden_layer_sizes!r} are {len(hidden)}. Give as many of both, at least one, or one number "
                "for all layers."
            )
        return codes, hidden

    def _build(self) -> Layers:
        return Layers(self)

    @property
    def layer_(self) -> np.ndarray:
        codes, _ = self._layer_sizes()
        return np.repeat(np.arange(len(codes), 0, -1), codes)

    def _code_name(self, j: int) -> str:
        return f"{j} in layer {self.layer_[j]}"
