"""The noise of a gradient: two ways to differentiate an expectation over codes, measured side by side.

    reparameterized  ∇ E_q f(z) = E_ε ∇ f(m + √v ε)        REINFORCE  ∇ E_q f(z) = E_q (f(z) − b) ∇ log q(z)

Both are right on average; training has to average away the deviations of single draws.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from twofold.core.checks import InputError
from twofold.core.seeds import seed_of
from twofold.deep._train import limit_threads, seed_torch
from twofold.deep._variational import Variational, compute_loss


class GradientNoise(NamedTuple):
    """Mean and variance of a gradient over draws of the code, one number for each weight of the recognizing network."""

    mean: np.ndarray
    variance: np.ndarray

    @property
    def total(self) -> float:
        """The variance of all weights together: E‖g − E g‖²."""
        return float(self.variance.sum())


def gradient_variance(
    model: Variational, X: Any, n_draws: int = 100, random_state: Any = None
) -> dict[str, GradientNoise]:
    """The gradient of the loss on images X, by both estimators in `n_draws` draws of the codes.

    The baseline of REINFORCE is that of training: the usual reconstruction loss of such images, from separate draws.

    Parameters
    ----------
    model : VAE or DLGM
        Fitted; it is not changed.
    X : array-like
        Images, one batch.
    n_draws : int, default=100
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    dict
        "reparameterized" and "reinforce", each a GradientNoise with mean, variance and total.

    Examples
    --------
    >>> from twofold import VAE, datasets
    >>> from twofold.deep import gradient_variance
    >>> X = datasets.digits().images
    >>> model = VAE(4, hidden_layer_sizes=(32,), learning_rate_init=3e-3, max_iter=5, random_state=0).fit(X)
    >>> noise = gradient_variance(model, X[:64], random_state=0)
    >>> noise["reinforce"].total > 3 * noise["reparameterized"].total
    True
    """
    if n_draws < 2:
        raise InputError(f"n_draws={n_draws}: a variance needs at least 2.")
    module: Any = copy.deepcopy(model.module_)
    pixels = model._read(X)[:]
    x = torch.from_numpy(pixels).to(module.mean.device)
    every = list(module.parameters())
    reached = torch.autograd.grad(module.posterior(x).kl().mean(), every, allow_unused=True)
    weights = [w for w, g in zip(every, reached, strict=True) if g is not None]  # those of the recognizing network

    def draw_loss(weight: float, reinforce: bool = False) -> tuple[Tensor, dict[str, Tensor]]:
        return compute_loss(module, x, torch.randn(len(x), module.n_codes, device=x.device), weight, reinforce)

    def draw_gradient(reinforce: bool) -> Tensor:
        loss, _ = draw_loss(model.beta, reinforce)
        return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, weights)])

    noise = {}
    with seed_torch(seed_of(random_state)), limit_threads(len(x) * sum(w.numel() for w in every)):
        module.baseline.copy_(torch.stack([draw_loss(0.0)[1]["reconstruction"].detach() for _ in range(10)]).mean())
        for name in ("reparameterized", "reinforce"):
            gradients = torch.stack([draw_gradient(name == "reinforce") for _ in range(n_draws)]).double()
            noise[name] = GradientNoise(gradients.mean(0).cpu().numpy(), gradients.var(0).cpu().numpy())
    return noise
