"""How noisy a gradient is: the two ways to differentiate an expectation over codes, measured side by side.

    reparameterized  ∇ E_q f(z) = E_ε ∇ f(m + √v ε)        REINFORCE  ∇ E_q f(z) = E_q (f(z) − b) ∇ log q(z)

Both are right on average; how far one draw is from it is what learning has to average away.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from twofold.core.checks import InputError
from twofold.core.seeds import seed_of
from twofold.deep._train import limit_threads, seed_torch
from twofold.deep._variational import Coder, Variational, compute_loss


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
    """The gradient of the loss on images X, as both estimators see it in `n_draws` draws of the codes.

    REINFORCE has the baseline that it would have in training, the usual reconstruction loss of such images, from
    draws of its own.

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
    module: Any = model.module_
    _, pixels, _ = model._read_images(X)
    x = torch.from_numpy(pixels).to(module.mean.device)
    weights = list_encoder_weights(module, x)
    found = {}
    work = len(x) * sum(w.numel() for w in module.parameters())
    with seed_torch(seed_of(random_state)), limit_threads(work):
        baseline = torch.stack([draw_loss(module, x, 0.0)[1]["reconstruction"].detach() for _ in range(10)]).mean()
        for name in ("reparameterized", "reinforce"):
            at = baseline if name == "reinforce" else None
            found[name] = measure_noise([compute_gradient(module, x, model.beta, weights, at) for _ in range(n_draws)])
    return found


def draw_loss(module: Coder, x: Tensor, weight: float, reinforce: bool = False) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a batch for fresh codes."""
    return compute_loss(module, x, torch.randn(len(x), module.n_codes, device=x.device), weight, reinforce)


def list_encoder_weights(module: Coder, x: Tensor) -> list[nn.Parameter]:
    """The weights that the posterior depends on."""
    weights = list(module.parameters())
    reached = torch.autograd.grad(module.posterior(x).kl().mean(), weights, allow_unused=True)
    return [w for w, g in zip(weights, reached, strict=True) if g is not None]


def compute_gradient(
    module: Coder, x: Tensor, weight: float, weights: list[nn.Parameter], baseline: Tensor | None
) -> Tensor:
    """The gradient from one draw, as one vector; by REINFORCE if there is a baseline."""
    before = module.baseline.clone()
    if baseline is not None:
        module.baseline.copy_(baseline)
    loss, _ = draw_loss(module, x, weight, baseline is not None)
    module.baseline.copy_(before)
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, weights)])


def measure_noise(gradients: list[Tensor]) -> GradientNoise:
    all_ = torch.stack(gradients).double()
    return GradientNoise(all_.mean(0).cpu().numpy(), all_.var(0).cpu().numpy())
