"""Factorization against plain alternating proximal gradients in NumPy, to the same objective.

The peer does what LowRankModels does (Udell, Horn, Zadeh & Boyd 2016): a proximal gradient step for every row, then
for every column, each with a step size of its own that grows by a twentieth when its objective falls and shrinks by a
third when it does not. It is vectorized over rows and over columns, its steps are in units of what the other factor's
Gram matrix allows, and it has the same loss, constraints and start.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from bench.harness import Bar, Contestant, Event
from twofold import datasets
from twofold.factors import Constraint, Factorization, Logistic, Loss, NonNegative, Ridge, Squared

TIE = 1e-3
SWEEPS = 500  # of the peer, after which it has ended
GROW, SHRINK = 1.05, 0.7


class Reached:
    """A callback that stops a fit when its objective is low enough."""

    def __init__(self, goal: float):
        self.goal = goal

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        return fitted_estimator is not None and fitted_estimator.history_["objective"][-1] <= self.goal


class Plain:
    """One side of the alternation: the rows F (m,k) of a factor, given the other side's G (k,d)."""

    def __init__(self, X: np.ndarray, W: np.ndarray, F: np.ndarray, loss: Loss, constraint: Constraint):
        self.X, self.W, self.F, self.loss, self.constraint = X, W, F, loss, constraint
        self.step = np.ones((len(X), 1))

    def costs(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        return (self.W * self.loss.value(self.X, F @ G)).sum(axis=1) + self.constraint.values(F)

    def improve(self, G: np.ndarray) -> float:
        """One gradient step a row; what every row costs afterwards, summed."""
        before = self.costs(self.F, G)
        gradient = (self.W * self.loss.slope(self.X, self.F @ G)) @ G.T
        step = self.step / np.linalg.norm(G @ G.T, 2)
        new = self.constraint.prox(self.F - step * gradient, step)
        after = self.costs(new, G)
        falls = after <= before
        self.F = np.where(falls[:, None], new, self.F)
        self.step *= np.where(falls, GROW, SHRINK)[:, None]
        return float(np.minimum(after, before).sum())


def plain(X: np.ndarray, loss: Loss, kind: Constraint, Z: np.ndarray, goal: float, sweeps: int = SWEEPS) -> float:
    """The objective where it stops: at the goal, or after `sweeps`. One thread for BLAS is its fastest, too."""
    with threadpool_limits(1):
        return _plain(X, loss, kind, Z, goal, sweeps)


def _plain(X: np.ndarray, loss: Loss, kind: Constraint, Z: np.ndarray, goal: float, sweeps: int) -> float:
    W = (~np.isnan(X)).astype(float)
    X = np.nan_to_num(X)
    rows = Plain(X, W, np.zeros((len(X), len(Z))), loss, kind)
    columns = Plain(np.ascontiguousarray(X.T), np.ascontiguousarray(W.T), np.ascontiguousarray(Z.T), loss, kind)
    objective = np.inf
    for _ in range(sweeps):
        rows.improve(columns.F.T)
        objective = columns.improve(rows.F.T) + float(kind.values(rows.F).sum())
        if objective <= goal:
            break
    return objective


def ours(X: np.ndarray, loss: Loss, kind: Constraint, Z: np.ndarray, goal: float = 0.0, **options: Any) -> float:
    model = Factorization(len(Z), loss=loss, left=kind, right=kind, init=Z, **options).set_callbacks(Reached(goal))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X).history_["objective"][-1]


def event(name: str, data_title: str, X: np.ndarray, loss: Loss, kind: Constraint, k: int) -> Event:
    Z = np.random.default_rng(0).normal(size=(k, X.shape[1]))
    Z = np.abs(Z) if isinstance(kind, NonNegative) else Z
    ends = ours(X, loss, kind, Z, tol=1e-5, max_iter=300), plain(X, loss, kind, Z, 0.0)
    goal = (1 + TIE) * max(ends)  # each may end in a valley of its own
    few = X[:200]
    return Event(
        f"factors_plain {name}",
        f"{data_title}, {X.shape[0]:,} x {X.shape[1]}, k = {k}",
        [
            Contestant(
                "twofold", lambda: ours(X, loss, kind, Z, goal), ours=True, warm=lambda: ours(few, loss, kind, Z)
            ),
            Contestant(
                "plain alternation",
                lambda: plain(X, loss, kind, Z, goal),
                warm=lambda: plain(few, loss, kind, Z, 0.0, 5),
                note=f"NumPy, {SWEEPS} sweeps",
            ),
        ],
        quality=lambda objective: {"objective": objective},
        as_good=lambda a, b: a["objective"] <= max(goal, b["objective"]),
        bar=Bar("as fast as plain alternation", ratio=1.0),
        notes=[f"Until 0.1 % above the higher of where both end, which is {ends[0]:.6g} and {ends[1]:.6g}."],
        budget=8.0,
    )


def pictures(quick: bool) -> np.ndarray:
    return datasets.digits().data[: 400 if quick else None].astype(np.float64)


def holes(quick: bool) -> Event:
    X = pictures(quick) / 16
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)
    return event("holes", "squared error, 30 % holes, ridge (digits)", X, Squared(), Ridge(0.1), 10)


def parts(quick: bool) -> Event:
    return event(
        "parts", "squared error, nothing negative (digits)", pictures(quick) / 16, Squared(), NonNegative(), 10
    )


def bits(quick: bool) -> Event:
    X = (pictures(quick) > 7).astype(float)
    return event("bits", "logistic loss, ridge (digits in black and white)", X, Logistic(), Ridge(0.1), 5)


EVENTS: tuple[Callable[[bool], Event], ...] = (holes, parts, bits)
