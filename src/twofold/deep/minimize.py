"""The optimizers of the networks, for any function.

x ← x − η · step(∇f(x))     until ‖∇f(x)‖ ≤ tol, or max_iter steps are made
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from twofold.core.checks import InputError
from twofold.core.params import Interval, StrOptions, check_parameters
from twofold.deep._train import Optimizer

CONSTRAINTS: dict = {
    "optimizer": [StrOptions({"sgd", "momentum", "nesterov", "adagrad", "adam"})],
    "learning_rate": [Interval(Real, 0, np.inf, closed="neither")],
    "momentum": [Interval(Real, 0, 1, closed="left")],
    "max_iter": [Interval(Integral, 0, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
}


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where :func:`minimize` ended.

    Attributes
    ----------
    x : ndarray
        The last point.
    value : float
        f(x).
    gradient : ndarray
        ∇f(x).
    values : list of float
        f at the start and after each step.
    n_iter : int
        Steps made.
    converged : bool
        Whether ‖∇f(x)‖ ≤ tol.
    """

    x: np.ndarray
    value: float
    gradient: np.ndarray
    values: list[float] = field(repr=False)
    n_iter: int
    converged: bool


def minimize(
    f: Callable[[Any], Any],
    x: npt.ArrayLike,
    optimizer: str = "adam",
    *,
    gradient: Callable[[np.ndarray], npt.ArrayLike] | None = None,
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-8,
    max_iter: int = 1000,
    tol: float = 1e-6,
    callback: Callable[[np.ndarray], None] | None = None,
) -> Minimum:
    """Lower a function from a start by one of the optimizers that train networks.

    An L-smooth function has a gradient of length at most ε after 2L(f(x₀) − f*)/ε² steps of "sgd" with learning rate
    1/L; if it is also strongly convex with constant μ, f − f* shrinks by 1 − μ/L or more with each step.

    Parameters
    ----------
    f : function
        Takes a torch tensor of the shape of x and gives one number, as a tensor that torch can differentiate. With
        `gradient` it takes an array and gives a number.
    x : array-like
        The start; computed with in float64.
    optimizer : {"sgd", "momentum", "nesterov", "adagrad", "adam"}, default="adam"
        "sgd" is plain gradient descent, "momentum" the heavy ball, "nesterov" the same looking ahead.
    gradient : function, optional
        ∇f, from array to array, for an f that is not written in torch.
    learning_rate : float, default=0.01
        The length η of the steps.
    momentum : float, default=0.9
        The share of its velocity that "momentum" and "nesterov" keep from step to step.
    beta_1, beta_2, epsilon : float, default=0.9, 0.999, 1e-8
        Memory of "adam" for gradients and their squares, and the term that prevents a division by zero.
    max_iter : int, default=1000
    tol : float, default=1e-6
        The length of the gradient at which the search ends.
    callback : function, optional
        Called with the point after each step, for a picture of the path.

    Returns
    -------
    Minimum

    References
    ----------
    Polyak (1964). Nesterov (1983). Duchi, Hazan & Singer (2011). Kingma & Ba (2015).

    Examples
    --------
    The valley of Rosenbrock (1960), its minimum at (1, 1):

    >>> found = minimize(lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2, [-1.0, 1.0], max_iter=10_000)
    >>> found.converged, found.x.round(4)
    (True, array([1., 1.]))
    """
    parameters = {
        "optimizer": optimizer,
        "learning_rate": learning_rate,
        "momentum": momentum,
        "max_iter": max_iter,
        "tol": tol,
    }
    check_parameters(CONSTRAINTS, parameters, "minimize")
    start = np.array(x, dtype=np.float64)
    if not start.size or not np.isfinite(start).all():
        raise InputError("x, the start, needs at least one number, and all of them finite.")
    point = torch.from_numpy(start).requires_grad_()
    solver = optimizer if optimizer in ("adagrad", "adam") else "sgd"
    mover = Optimizer(
        solver,
        [point],
        betas=(beta_1, beta_2),
        epsilon=epsilon,
        momentum=momentum if optimizer in ("momentum", "nesterov") else 0.0,
        nesterov=optimizer == "nesterov",
    )
    evaluate = _differentiate(f) if gradient is None else _join(f, gradient)
    values: list[float] = []
    for step in range(max_iter + 1):
        value, slope = evaluate(point)
        values.append(value)
        if not (np.isfinite(value) and bool(torch.isfinite(slope).all())):
            raise InputError(
                f"minimize diverged: f is {value} after {step} steps of {optimizer}. Lower learning_rate="
                f"{learning_rate:g}, or start nearer."
            )
        converged = float(torch.linalg.vector_norm(slope)) <= tol
        if converged or step == max_iter:
            break
        mover.follow([slope * learning_rate if solver == "sgd" else slope], learning_rate)
        if callback is not None:
            callback(point.detach().numpy().copy())
    return Minimum(point.detach().numpy().copy(), value, slope.numpy().copy(), values, step, converged)


def _differentiate(f: Callable[[Tensor], Any]) -> Callable[[Tensor], tuple[float, Tensor]]:
    """A function that gives f and ∇f, which torch finds."""

    def evaluate(point: Tensor) -> tuple[float, Tensor]:
        value = f(point)
        tensor = isinstance(value, Tensor)
        if not tensor or value.numel() != 1:
            shape = f"a tensor of shape {tuple(value.shape)}" if tensor else f"a {type(value).__name__}"
            raise InputError(
                f"f gives {shape}; it must give one number as a torch tensor. Write it with torch, or give "
                "gradient=, a function that computes the gradient of f."
            )
        slope = torch.autograd.grad(value.sum(), [point], allow_unused=True)[0] if value.requires_grad else None
        return float(value.detach()), torch.zeros_like(point) if slope is None else slope

    return evaluate


def _join(f: Callable[[np.ndarray], Any], gradient: Callable[[np.ndarray], Any]) -> Any:
    """A function that gives f and ∇f, both as functions of arrays."""

    def evaluate(point: Tensor) -> tuple[float, Tensor]:
        x = point.detach().numpy().copy()
        slope = np.array(gradient(x), dtype=np.float64)
        if slope.shape != x.shape:
            raise InputError(f"gradient gives an array of shape {slope.shape}; it must have that of x, {x.shape}.")
        return float(f(x)), torch.from_numpy(slope)

    return evaluate
