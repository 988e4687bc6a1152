"""Optimisers: a step along the gradient g of a loss, with what is remembered of the steps before.

    sgd        θ ← θ − η g
    momentum   v ← 0.9 v + g              θ ← θ − η v                   the heavy ball (Polyak 1964)
    nesterov   v ← 0.9 v + g              θ ← θ − η (g + 0.9 v)         looks ahead along the velocity (Nesterov 1983)
    adagrad    s ← s + g²                 θ ← θ − η g / (√s + ε)        Duchi, Hazan & Singer 2011
    adam       m ← β₁m + (1 − β₁)g,  s ← β₂s + (1 − β₂)g²               Kingma & Ba 2015
               θ ← θ − η m̂ / (√ŝ + ε) − ηλθ                             decay apart: Loshchilov & Hutter 2019

All but adam add the decay λθ to g. Torch's fused kernels make the step. Around them its optimiser classes do so much
for every parameter that a small network would spend a tenth of its time there, or more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.adagrad import adagrad
from torch.optim.sgd import sgd

from twofold.deep import _torch_shim

OPTIMIZERS = {"sgd": 0, "momentum": 1, "nesterov": 1, "adagrad": 1, "adam": 2}  # tensors like θ that each remembers
MOMENTUM = 0.9


class Group(NamedTuple):
    """Parameters that decay alike, and what is remembered of them, each as one line of numbers."""

    parameters: list[Tensor]
    decay: float
    memory: list[list[Tensor]]


class Optimizer:
    """Lowers losses of some parameters; the decay pulls at matrices, not at biases."""

    def __init__(
        self,
        name: str,
        parameters: list[nn.Parameter],
        decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
    ):
        self.name, self.betas = name, betas
        matrices = [p for p in parameters if decay and p.ndim > 1]
        others = [p for p in parameters if not decay or p.ndim <= 1]
        self.parameters, self.groups = (*matrices, *others), []
        for part, weight in ((matrices, decay), (others, 0.0)):
            lines = [line(p.detach()) for p in part]
            memory = [[torch.zeros_like(p) for p in lines] for _ in range(OPTIMIZERS[name])]
            if part:
                self.groups.append(Group(lines, weight, memory))
        self.one = torch.ones((), device=parameters[0].device)
        self.steps = torch.zeros_like(self.one)  # made so far

    @property
    def memory(self) -> list[Tensor]:
        """All that is remembered, in a fixed order."""
        return [*(t for group in self.groups for part in group.memory for t in part), self.steps]

    def step(self, loss: Tensor, rate: float) -> None:
        """Move the parameters along the gradient of the loss."""
        found = _torch_shim.way.gradients(loss, self.one, self.parameters)
        gradients = [alike(g, p) for g, p in zip(found, self.parameters, strict=True)]
        self.steps.add_(self.one)
        for group in self.groups:
            self.move(group, gradients[: len(group.parameters)], rate)
            gradients = gradients[len(group.parameters) :]

    def move(self, group: Group, gradients: list[Tensor], rate: float) -> None:
        common: dict[str, Any] = {"lr": rate, "weight_decay": group.decay}
        if self.name == "adam":
            (m, s), (a, b) = group.memory, self.betas
            _torch_shim.way.adamw(group.parameters, gradients, m, s, self.steps, beta1=a, beta2=b, **common)
        elif self.name == "adagrad":
            # it counts in the copies of the steps; without lr_decay they play no part
            options: dict[str, Any] = {
                "lr_decay": 0.0,
                "eps": 1e-10,
                "fused": self.steps.device.type == "cpu",
                "maximize": False,
            }
            steps = [self.steps.clone() for _ in gradients]
            adagrad(group.parameters, gradients, group.memory[0], steps, **options, **common)
        else:
            velocity: list[Tensor | None] = [*group.memory[0]] if group.memory else [None] * len(gradients)
            momentum = MOMENTUM if group.memory else 0.0
            options = {"momentum": momentum, "dampening": 0.0, "nesterov": self.name == "nesterov", "fused": True}
            sgd(group.parameters, gradients, velocity, **options, maximize=False, **common)


def line(t: Tensor) -> Tensor:
    """The numbers of a tensor in the order that they have in memory, of which fused kernels are fastest."""
    return t.as_strided((t.numel(),), (1,))


def alike(gradient: Tensor, parameter: Tensor) -> Tensor:
    """The line of a gradient in the order of its parameter's: differentiation may have left it in another."""
    if gradient.stride() != parameter.stride():
        gradient = torch.empty_like(parameter).copy_(gradient)
    return line(gradient)
