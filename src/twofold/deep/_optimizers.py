"""Solvers: a step along the gradient g of a loss, with a memory of the steps before.

    sgd        v ← μ v + η g              θ ← θ − v                     the heavy ball (Polyak 1964)
               or, with nesterov,         θ ← θ − (η g + μ v)           looks ahead along the velocity (Nesterov 1983)
    adagrad    s ← s + g²                 θ ← θ − η g / (√s + ε)        Duchi, Hazan & Singer 2011
    adam       m ← β₁m + (1 − β₁)g,  s ← β₂s + (1 − β₂)g²               Kingma & Ba 2015
               θ ← θ − η √(1 − β₂ᵗ) / (1 − β₁ᵗ) · m / (√s + ε)
    adamw      as adam, with separate decay: θ  ← θ − ηλθ               Loshchilov & Hutter 2019

All but adamw add λθ to g, the gradient of ½λ‖θ‖², where λ is alpha over the rows of the batch. Torch's fused kernels
make the step. Around them its optimizer classes do so much for every parameter that a small network would spend a tenth
of its time there, or more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim.adagrad import adagrad
from torch.optim.sgd import sgd

from twofold.deep import _torch_shim

SOLVERS = {"sgd": 1, "adagrad": 1, "adam": 2, "adamw": 2}  # tensors of the shape of θ in the memory of each


class Group(NamedTuple):
    """Parameters with the same decay and the memory of their steps, each as one line of numbers."""

    parameters: list[Tensor]
    alpha: float
    memory: list[list[Tensor]]


class Optimizer:
    """An optimizer of some parameters; alpha shrinks matrices, not biases."""

    def __init__(
        self,
        solver: str,
        parameters: Sequence[Tensor],
        alpha: float = 0.0,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        momentum: float = 0.9,
        nesterov: bool = True,
    ):
        self.solver, self.betas, self.epsilon = solver, betas, epsilon
        self.momentum, self.nesterov = momentum, nesterov and momentum > 0
        matrices = [p for p in parameters if alpha and p.ndim > 1]
        others = [p for p in parameters if not alpha or p.ndim <= 1]
        self.parameters, self.groups = (*matrices, *others), []
        remembered = 0 if solver == "sgd" and not momentum else SOLVERS[solver]
        for part, weight in ((matrices, alpha), (others, 0.0)):
            lines = [line(p.detach()) for p in part]
            memory = [[torch.zeros_like(p) for p in lines] for _ in range(remembered)]
            if part:
                self.groups.append(Group(lines, weight, memory))
        self.one = torch.ones((), device=parameters[0].device, dtype=parameters[0].dtype)
        self.steps = torch.zeros((), device=parameters[0].device)  # made so far
        self.made = 0  # the same, where it costs nothing to ask

    @property
    def memory(self) -> list[Tensor]:
        """All tensors of the memory, in a fixed order."""
        return [*(t for group in self.groups for part in group.memory for t in part), self.steps]

    def squares(self) -> list[Tensor]:
        """‖W‖² of each matrix that alpha shrinks."""
        return [torch.dot(p, p) for group in self.groups if group.alpha for p in group.parameters]

    def step(self, loss: Tensor, rate: float, rows: float = 1.0) -> None:
        """Move the parameters along the gradient of the loss, a mean over `rows` rows."""
        start = self.one * rate if self.solver == "sgd" else self.one  # its velocity has the learning rate in it
        self.follow(_torch_shim.way.gradients(loss, start, self.parameters), rate, rows)

    def follow(self, gradients: Sequence[Tensor], rate: float, rows: float = 1.0) -> None:
        """Move the parameters along gradients that are known; those of sgd are times the rate already."""
        lines = [order_like(g, p) for g, p in zip(gradients, self.parameters, strict=True)]
        self.steps.add_(1)
        self.made += 1
        for group in self.groups:
            decay = group.alpha / rows if rows else 0.0
            self.move(group, lines[: len(group.parameters)], rate, decay)
            lines = lines[len(group.parameters) :]

    def move(self, group: Group, gradients: list[Tensor], rate: float, decay: float) -> None:
        options: dict[str, Any]
        if self.solver in ("adam", "adamw"):
            (m, s), (a, b) = group.memory, self.betas
            eps = self.epsilon / math.sqrt(1 - b**self.made)  # torch adds it to the root of the corrected s
            options = {"lr": rate, "beta1": a, "beta2": b, "eps": eps, "weight_decay": decay}
            _torch_shim.way.adam(group.parameters, gradients, m, s, self.steps, self.solver == "adamw", **options)
        elif self.solver == "adagrad":
            # it counts in the copies of the steps; without lr_decay they play no part
            options = {"lr": rate, "weight_decay": decay, "lr_decay": 0.0, "eps": 1e-10, "maximize": False}
            steps = [self.steps.clone() for _ in gradients]
            fused = self.steps.device.type == "cpu"
            adagrad(group.parameters, gradients, group.memory[0], steps, fused=fused, **options)
        else:
            velocity: list[Tensor | None] = [*group.memory[0]] if group.memory else [None] * len(gradients)
            options = {"lr": 1.0, "weight_decay": rate * decay, "dampening": 0.0, "maximize": False, "fused": True}
            sgd(group.parameters, gradients, velocity, momentum=self.momentum, nesterov=self.nesterov, **options)


def line(t: Tensor) -> Tensor:
    """The numbers of a tensor in the order that they have in memory, of which fused kernels are fastest."""
    return t.as_strided((t.numel(),), (1,))


def order_like(gradient: Tensor, parameter: Tensor) -> Tensor:
    """The line of a gradient in the order of its parameter's: differentiation may have left it in another."""
    if gradient.stride() != parameter.stride():
        gradient = torch.empty_like(parameter).copy_(gradient)
    return line(gradient)
