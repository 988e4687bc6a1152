"""The price of generality: Factorization beside our own dedicated models, to the same objective."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning

from bench.factors_plain import TIE, Reached, pictures
from bench.harness import Contestant, Event
from twofold import ALS, NMF, PCA, PLSA, Factorization, KMeans
from twofold.factors import NonNegative, OneHot, Orthonormal, Poisson, Ridge, Simplex

Run = Callable[[], float]


def fit_objective(model: Any, X: np.ndarray, goal: float = -np.inf) -> float:
    """The objective where a model ends: at the goal, or by its own tolerance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.set_callbacks(Reached(goal)).fit(X).history_["objective"][-1]


def event(name: str, X: np.ndarray, line: str, general: Run, fit_dedicated: Run) -> Event:
    return Event(
        f"factors_price {name}",
        f"{line}, {X.shape[0]:,} x {X.shape[1]}",
        [Contestant("Factorization", general, ours=True), Contestant(name.split()[0], fit_dedicated, note="our own")],
        quality=lambda objective: {"objective": objective},
        as_good=lambda a, b: a["objective"] <= (1 + 2 * TIE) * b["objective"],
        notes=["The ratio is the price: at 0.2 the dedicated model needs a fifth of the time."],
        budget=6.0,
    )


def table(quick: bool, k: int = 10) -> np.ndarray:
    """Rows of k parts, and noise: nothing negative."""
    rng, n, d = np.random.default_rng(0), 1000 if quick else 20_000, 100
    return rng.gamma(0.3, size=(n, k)) @ rng.gamma(0.3, size=(k, d)) + 0.2 * rng.random((n, d))


def pca(name: str, X: np.ndarray) -> Event:
    exact = PCA(10).fit(X)
    best = 0.5 * float(((X - exact.inverse_transform(exact.transform(X))) ** 2).sum())

    def fit_dedicated() -> float:
        PCA(10).fit(X)
        return best

    general = Factorization(10, right=Orthonormal(), intercept=True, random_state=0)
    line = "right=Orthonormal(), intercept=True"
    return event(f"PCA {name}", X, line, lambda: fit_objective(general, X, (1 + TIE) * best), fit_dedicated)


def nmf(name: str, X: np.ndarray) -> Event:
    Z = np.random.default_rng(1).random((10, X.shape[1])) * X.mean()
    theirs, model = NMF(10, init=Z), Factorization(10, left=NonNegative(), right=NonNegative(), init=Z)
    goal = (1 + TIE) * max(fit_objective(theirs, X), fit_objective(model, X))  # each may end in a valley of its own
    line = "left=NonNegative(), right=NonNegative()"
    return event(f"NMF {name}", X, line, lambda: fit_objective(model, X, goal), lambda: fit_objective(theirs, X, goal))


def kmeans(name: str, X: np.ndarray) -> Event:
    start = X[np.random.default_rng(1).choice(len(X), 10, replace=False)]
    theirs, model = KMeans(10, init=start, max_iter=500), Factorization(10, left=OneHot(), init=start, tol=1e-5)
    goal = (1 + TIE) * fit_objective(model, X)

    def fit_dedicated() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return 0.5 * theirs.set_callbacks(Reached(2 * goal)).fit(X).inertia_

    return event(f"KMeans {name}", X, "left=OneHot()", lambda: fit_objective(model, X, goal), fit_dedicated)


def als(name: str, X: np.ndarray) -> Event:
    """Its ridge grows with the known cells of a row or column; here all rows have as many, and all columns."""
    X = X[: len(X) // 8 * 8, : X.shape[1] // 4 * 4]
    d = X.shape[1]
    here = (np.arange(len(X))[:, None] + np.arange(d)) % 4 < 3
    H = np.where(here, X, np.nan)
    theirs = ALS(10, reg=0.1, biases=False, solver="cholesky", max_iter=100, random_state=0)
    goal = (1 + TIE) * fit_objective(theirs, H)
    kinds = [Ridge(m * 3 / 4 * theirs.reg_) for m in (d, len(X))]
    model = Factorization(10, left=kinds[0], right=kinds[1], random_state=0)
    line = "left=Ridge(a), right=Ridge(b), a quarter of the cells unknown"
    return event(
        f"ALS {name}", X, line, lambda: 2 * fit_objective(model, H, goal / 2), lambda: fit_objective(theirs, H, goal)
    )


def plsa(name: str, X: np.ndarray) -> Event:
    X = np.random.default_rng(2).poisson(2 * X / X.mean()).astype(float) if name == "table" else X
    X = X[X.sum(axis=1) > 0]
    Z = np.random.default_rng(1).random((10, X.shape[1])) + 0.5
    theirs, tokens = PLSA(10, init=Z, tol=1e-4), float(X.sum())
    constant = float(xlogy(X, X / X.sum(axis=1, keepdims=True)).sum())  # its objective is the likelihood of a token
    model = Factorization(10, loss=Poisson(), left=NonNegative(), right=Simplex(), init=Z, tol=1e-4)
    goal = (1 + TIE) * max(constant + tokens * fit_objective(theirs, X), fit_objective(model, X))

    def fit_dedicated() -> float:
        return constant + tokens * fit_objective(theirs, X, (goal - constant) / tokens)

    line = "loss=Poisson(), left=NonNegative(), right=Simplex()"
    return event(f"PLSA {name}", X, line, lambda: fit_objective(model, X, goal), fit_dedicated)


MODELS = (pca, nmf, kmeans, als, plsa)
EVENTS = tuple(
    (lambda quick, make=make, data=data: make(data, pictures(quick) if data == "digits" else table(quick)))
    for data in ("digits", "table")
    for make in MODELS
)
