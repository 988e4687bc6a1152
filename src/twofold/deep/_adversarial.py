"""The networks of the adversarial models, a generator and a critic, and the game between them.

    V = E_x log D(x) + E_z log(1 − D(G(z)))          the critic D raises V, the generator G lowers it
    for the best critic D* = p/(p + p_θ):  V = 2 JS(p ‖ p_θ) − log 4,  so a critic's V bounds the divergence from below

With logits l = D's log-odds:  log D = −softplus(−l),  log(1 − D) = −softplus(l).
References: Goodfellow et al. 2014; Mescheder, Geiger & Nowozin 2018 (R1); Miyato et al. 2018 (spectral norm).
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from twofold.deep._network import build_dense, init_weights

Shape = tuple[int, int, int]  # of a picture: channels, height, width
HIDDEN = {"dense": (256, 256), "convolutional": (32, 64)}


class Generator(nn.Module):
    """Noise (n,k) to pictures (n,c,h,w) from 0 to 1, by dense layers or by convolutions that double the picture."""

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
    """Pictures (n,c,h,w) to the log-odds (n,) that they are real; `features` are what the last layer sees."""

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
    """V for the critic's log-odds of real and of generated pictures."""
    return -F.softplus(-real).mean() - F.softplus(fake).mean()


def generator_loss(fake: Tensor, kind: str) -> Tensor:
    """What the generator lowers: its part of V, or −E log D, whose gradient does not fade while the critic is sure."""
    return -F.softplus(fake).mean() if kind == "minimax" else F.softplus(-fake).mean()


def critic_loss(critic: Critic, x: Tensor, fakes: list[Tensor], weight: float) -> tuple[Tensor, Tensor]:
    """−V, with R1, ½ weight E‖∇ₓ l(x)‖² at real pictures, added; and V alone."""
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
