"""L-BFGS for networks that see all rows at once.

    θ ← argmin of  loss(all rows) + ½ alpha ‖W‖² / n        by SciPy, in double precision, gradients by torch

Reference: Liu & Nocedal 1989.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor, nn

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.deep._train import (
    FIRST,
    Before,
    Player,
    State,
    choose_device,
    fill_tensors,
    flatten,
    limit_threads,
    name_weights,
)

MAX_EVALUATIONS = 15_000  # of the loss, at most


def train_by_lbfgs(
    model: Any,
    module: nn.Module,
    players: list[Player],
    data: tuple[Tensor, ...],
    *,
    seed: int,
    fingerprint: Callable[[], str],
    X: Any = None,
    y: Any = None,
    before: Before = FIRST,
    unit: float = 1.0,
) -> State:
    """Train to the end in one sweep, whose iterations are the history; the objective is told times `unit`."""
    (player,) = players
    module.to(choose_device(model.device))
    data = tuple(D.to(choose_device(model.device)) for D in data)
    parameters = list(player.parameters)
    matrices = [p for p in parameters if p.ndim > 1]
    losses: list[float] = []
    seconds: list[float] = []
    began, last = time.perf_counter(), {}

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        fill_tensors(parameters, theta)
        loss, parts = player.loss(*data, 0.0)
        rows = float(parts.pop("rows")) if "rows" in parts else len(data[0])
        penalty = (0.5 * model.alpha / rows) * torch.stack([p.square().sum() for p in matrices]).sum()
        last["objective"] = unit * float(parts.get("objective", loss).detach() + penalty.detach())
        whole = loss + penalty
        return float(whole.detach()), flatten(list(torch.autograd.grad(whole, parameters)))

    def note(intermediate_result: OptimizeResult) -> None:
        losses.append(last["objective"])
        seconds.append(time.perf_counter() - began)

    def sweep(state: State, t: int) -> loop.Sweep:
        options = {"maxiter": model.max_iter, "maxfun": MAX_EVALUATIONS, "gtol": model.tol}
        found = minimize(evaluate, flatten(parameters), jac=True, method="L-BFGS-B", callback=note, options=options)
        objective, _ = evaluate(found.x)
        if not np.isfinite(objective):
            raise InputError(f"{type(model).__name__} diverged. Scale the columns of X, or raise alpha.")
        if not losses:  # it began where it ends
            note(found)
        weights = flatten(list(module.state_dict().values()))
        return loop.Sweep(state._replace(weights=weights), losses[-1], done=True, converged=found.success)

    module.train()
    with limit_threads(len(data[0]) * sum(p.numel() for p in parameters)):
        end = loop.run(
            model,
            sweep,
            State(np.zeros(0), np.zeros(0)),
            tol=0.0,
            fitted=lambda state: {"weights_": name_weights(state.weights, module)},
            X=X,
            y=y,
            fingerprint=fingerprint,
            seed=seed,
            advice="Raise max_iter or tol",
        )
    model.history_, model.n_iter_ = {"objective": losses, "seconds": seconds}, len(losses)
    return end._replace(best=min([*losses, before.state.best if before.state else np.inf]))
