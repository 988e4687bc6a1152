"""The models a Recommender takes when none is given, and what it says about them.

Two questions have two models. Which items belong in a list is answered by the one with the best lists of what was
held out (`_ranking`). How a user would rate an item, where there are ratings, by the one with the least error on
ratings held out: SVDPlusPlus, fitted until that error no longer falls, neighbourhoods, or biases, which know no one's
taste. Then both are fitted again, to everything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from twofold.completion.recommender._cost import PACE, count_ratings, find_size
from twofold.completion.recommender._ranking import Plan, Scale, choose_ranking, value_cells
from twofold.completion.recommender.splits import split_cells, take_cells
from twofold.completion.scorer import ProductScorer
from twofold.core.callbacks import Checkpoint, EarlyStopping
from twofold.core.loop import quietly

ENOUGH = 100  # ratings, below which holding some out would tell nothing
PATIENCE = 6  # sweeps in which the error on held-out ratings must fall by GAIN
GAIN = 2e-4  # standard deviations of the ratings
NEAR = 0.002  # a share of the error by which a model must be better than a simpler one


def fit_given(model: Any, X: sparse.csr_array, callbacks: list) -> tuple[Any, dict]:
    """A copy of the model that was given, fitted."""
    fitted = clone(model).set_callbacks(*callbacks).fit(X)
    return fitted, {**describe_model(fitted), "why": "it was given"}


def fit_ranking(
    X: sparse.csr_array, scale: Scale, implicit: bool, holdout: float, seconds: float, seed: int
) -> tuple[Any, str, dict]:
    """The model of the lists, fitted to everything, how it sees cells, and why it was chosen."""
    if X.nnz < ENOUGH or not holdout:
        plan, figures = make_default_ranking(X, seconds), {"why": _tell_why_not(X, holdout, "lists")}
    else:
        plan, figures = choose_ranking(X, implicit, holdout, seconds, seed)
    with quietly():
        fitted = clone(plan.model).fit(value_cells(X, plan.how, scale))
    return fitted, plan.how, {**describe_model(fitted), "cells": plan.how, **figures}


def make_default_ranking(X: sparse.csr_array, seconds: float) -> Plan:
    """EASE with an intercept, whose ridge finds its own way to popularity; popularity if that takes too long."""
    from twofold.completion.ease import EASE
    from twofold.completion.popularity import Popularity

    size = find_size(X, seconds * PACE)
    return Plan(EASE(intercept=True, max_items=size) if size else Popularity())


def fit_rating(X: sparse.csr_array, holdout: float, seconds: float, seed: int, callbacks: list) -> tuple[Any, dict]:
    """The model of the ratings, fitted to all of them, and a dict that says what was chosen and why."""
    models, skipped = list_rating_models(X, seconds, seed)
    if X.nnz < ENOUGH or not holdout:
        with quietly():  # its sweeps were not chosen by the one who would be warned
            fitted = list(models.values())[-1].set_callbacks(*callbacks).fit(X)
        return fitted, {**describe_model(fitted), "why": _tell_why_not(X, holdout, "ratings")}
    fold = split_cells(X, "random", holdout, None, seed)
    watching = [c for c in callbacks if not isinstance(c, (Checkpoint, EarlyStopping))]  # those belong to the last fit
    model, figures = _try_ratings(models, take_cells(X, fold < 0), take_cells(X, fold == 0), watching)
    with quietly():  # it stops where the trial did
        fitted = clone(model).set_callbacks(*callbacks).fit(X)
    figures |= {"skipped": skipped} if skipped else {}
    return fitted, {**describe_model(fitted), **figures, "held_out": int((fold == 0).sum())}


def list_rating_models(X: sparse.csr_array, seconds: float, seed: int) -> tuple[dict[str, Any], list[str]]:
    """The models to try, by name, from the simplest on; and those for which there is not the time."""
    from twofold.completion.biases import Biases
    from twofold.completion.neighborhood import Neighborhood
    from twofold.completion.svd_plus_plus import SVDPlusPlus

    cost, models, skipped = count_ratings(X), {"Biases": Biases()}, []
    best = SVDPlusPlus(random_state=seed)
    sweeps = cost.find_sweeps(seconds * PACE, best.max_iter)
    for model, there in ((Neighborhood(), cost.neighbors <= seconds * PACE), (best, sweeps > 0)):
        name = type(model).__name__
        if there:
            models[name] = model
        else:
            skipped.append(name)
    if sweeps:
        best.set_params(max_iter=sweeps)
    return models, skipped


def _try_ratings(
    models: dict[str, Any], train: sparse.csr_array, held: sparse.csr_array, callbacks: list
) -> tuple[Any, dict]:
    """The model to fit to everything, by the error on held-out ratings."""

    def score(model: Any) -> float:  # in the rows as they are, at a fraction of the cost of folding them in again
        return -float(np.sqrt(np.mean(_find_errors(model, held, train) ** 2)))

    stop = EarlyStopping(patience=PATIENCE, min_delta=GAIN * float(train.data.std()), score=score)
    errors, sweeps = {}, 0
    for name, model in models.items():
        watch = (stop, *callbacks) if name == "SVDPlusPlus" else callbacks
        with quietly():
            trial = clone(model).set_callbacks(*watch).fit(train)
        errors[name] = _find_errors(trial, held, train) ** 2
        if name == "SVDPlusPlus":
            sweeps = stop.best_sweep_ + 1
            model.set_params(max_iter=sweeps if sweeps < trial.n_iter_ else model.max_iter)
    table = {name: summarize_squares(squares) for name, squares in errors.items()}
    best = min(table, key=lambda name: table[name]["score"])
    why = "the least error on ratings held out"
    if table[best]["score"] > (1 - NEAR) * table["Biases"]["score"]:
        best, why = "Biases", "no other model has a smaller error on ratings held out"
    figures = {
        "why": why,
        "measure": "rmse",
        **table[best],
        **({"sweeps": sweeps} if sweeps else {}),
        "baseline": "Biases",
        "baseline_score": table["Biases"]["score"],
        "tried": table,
    }
    return models[best], figures


def summarize_squares(squares: np.ndarray) -> dict[str, float]:
    """The root of the mean of squared errors, and its standard error."""
    rmse = float(np.sqrt(squares.mean()))
    return {"score": rmse, "error": float(squares.std() / np.sqrt(len(squares)) / max(2 * rmse, 1e-300))}


def score_by_popularity(X: sparse.csr_array) -> ProductScorer:
    """Everyone is recommended what most people have."""
    counts = np.bincount(X.indices, minlength=X.shape[1]).astype(np.float32)
    return ProductScorer(np.ones((X.shape[0], 1), np.float32), counts[None], np.zeros(X.shape[0], np.float32))


def _find_errors(model: Any, held: sparse.csr_array, train: sparse.csr_array) -> np.ndarray:
    rows = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
    found = np.clip(model.predict(rows, held.indices), train.data.min(), train.data.max())
    return found.astype(np.float64) - held.data


def _tell_why_not(X: sparse.csr_array, holdout: float, what: str) -> str:
    why = "nothing was held out" if not holdout else f"{X.nnz} ratings are too few to hold some out"
    return f"the default for {what}; {why}"


def describe_model(model: Any) -> dict:
    """A model's name and parameters."""
    plain = (bool, int, float, str, type(None))
    parameters = {k: v if isinstance(v, plain) else repr(v) for k, v in model.get_params(deep=False).items()}
    return {"model": type(model).__name__, "parameters": parameters}
