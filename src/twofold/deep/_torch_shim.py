"""The names of torch that are not documented, each with the documented way beside it.

    gradients   ∂loss/∂θ        what torch.autograd.grad calls after a check of its arguments
    adam        a step of adam  the fused kernels under torch.optim.Adam(fused=True) and AdamW(fused=True)

Around both, torch spends as long as on a small layer. The private way is taken if the installed torch has it and it
gives the results of the documented way, which is tried once, at import.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam as optimize

Many = list[Tensor]
ADAM: dict[str, Any] = {"amsgrad": False, "maximize": False}


class Documented:
    """Both by documented functions of torch."""

    @staticmethod
    def gradients(loss: Tensor, start: Tensor, parameters: Sequence[Tensor]) -> Sequence[Tensor]:
        """The gradient for each parameter; `start` is the gradient of the loss itself, such as 1."""
        return torch.autograd.grad(loss, parameters, start)

    @staticmethod
    def adam(theta: Many, g: Many, m: Many, s: Many, steps: Tensor, decoupled: bool, **options: Any) -> None:
        """Move the parameters θ and their two memories; `steps` counts the steps, this one included.

        The decay is the gradient's, or the weights' own if it is `decoupled`.
        """
        before = [steps - 1 for _ in g]  # torch counts in these, one for each parameter
        optimize(theta, g, m, s, [], before, fused=True, decoupled_weight_decay=decoupled, **ADAM, **options)


class Private(Documented):
    """Both by private functions of torch."""

    @staticmethod
    def gradients(loss: Tensor, start: Tensor, parameters: Sequence[Tensor]) -> Sequence[Tensor]:
        run = torch.autograd.Variable._execution_engine.run_backward
        return run((loss,), (start,), False, False, tuple(parameters), False, accumulate_grad=False)

    @staticmethod
    def adam(theta: Many, g: Many, m: Many, s: Many, steps: Tensor, decoupled: bool, **options: Any) -> None:
        kernel = torch._fused_adamw_ if decoupled else torch._fused_adam_
        kernel(theta, g, m, s, [], [steps] * len(g), **ADAM, **options)


def run_trial(way: type[Documented]) -> list[float]:
    """A gradient and four steps of a parameter of three numbers, two of each kind."""
    one, p = torch.ones(()), torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    numbers, m, s, steps = p.detach().clone(), torch.zeros(3), torch.zeros(3), torch.zeros(())
    options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.1}
    for decoupled in (False, True, False, True):
        (g,) = way.gradients((p**3).sum(), one, [p])
        way.adam([numbers], [g], [m], [s], steps.add_(1), decoupled, **options)
    return [*g.tolist(), *numbers.tolist(), *m.tolist(), *s.tolist()]


def choose_way() -> type[Documented]:
    """The private way if this torch has it and it is right."""
    try:
        same = torch.allclose(torch.tensor(run_trial(Private)), torch.tensor(run_trial(Documented)))
    except (AttributeError, TypeError, RuntimeError):  # another torch: gone, renamed or called otherwise
        same = False
    return Private if same else Documented


way = choose_way()
