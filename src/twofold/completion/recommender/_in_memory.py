"""The models that are compared for ratings in memory, and fitted again to all of them once they are chosen.

ratings    Biases, Neighborhood, SVDPlusPlus (fitted until its error on the ratings held out no longer falls)
lists      Popularity, EASE, ImplicitALS (see _lists.py)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from twofold.completion.biases import Biases
from twofold.completion.ease import EASE
from twofold.completion.neighborhood import Neighborhood
from twofold.completion.popularity import Popularity
from twofold.completion.recommender._choose import (
    MIN_RATINGS,
    Candidates,
    compare_errors,
    describe_model,
    find_squares,
    select_reporting,
)
from twofold.completion.recommender._cost import DENSE_OPS_PER_SECOND, count_ratings, limit_input_columns, share_time
from twofold.completion.recommender._lists import Plan, choose_ranking, measure_cells, value_cells
from twofold.completion.recommender.splits import split_cells
from twofold.completion.svd_plus_plus import SVDPlusPlus
from twofold.core.callbacks import EarlyStopping
from twofold.core.data.known_cells import keep_stored
from twofold.core.loop import quietly

MAX_IDLE_SWEEPS = 6  # in which the error on held-out ratings must fall by MIN_GAIN
MIN_GAIN = 2e-4  # standard deviations of the ratings
NEARLY_FULL = 0.5  # share of known cells from which on gaps carry no information


class TableCandidates(Candidates):
    """Models for a table X in memory."""

    def __init__(self, X: sparse.csr_array, implicit: bool, holdout: float, seed: int, callbacks: list[Any]):
        self.X, self.implicit, self.holdout, self.seed, self.callbacks = X, implicit, holdout, seed, callbacks
        self.scale = measure_cells(X, implicit)
        self.nearly_full = X.nnz > NEARLY_FULL * X.shape[0] * X.shape[1]

    def fit(self, model: Any) -> Any:
        return clone(model).set_callbacks(*self.callbacks).fit(self.X).set_callbacks()

    def measure_given(self, model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {}

    def share_time(self, seconds: float) -> tuple[float, float]:
        return share_time(self.X, seconds)

    def _explain_default(self, question: str) -> dict[str, str] | None:
        """Why no model can be chosen by what is held out; None if one can."""
        if self.X.nnz >= MIN_RATINGS and self.holdout:
            return None
        few = f"{self.X.nnz} ratings are too few to hold some out"
        return {"why": f"the default for {question}; {few if self.holdout else 'nothing was held out'}"}

    def choose_ranking(self, seconds: float) -> tuple[Any, str, dict[str, Any]]:
        figures: dict[str, Any] | None = self._explain_default("lists")
        if figures is None:
            plan, figures = choose_ranking(self.X, self.implicit, self.holdout, seconds, self.seed)
        else:  # the ridge of an intercept finds its own way to popularity
            size = limit_input_columns(self.X, seconds * DENSE_OPS_PER_SECOND)
            plan = Plan(EASE(intercept=True, max_items=size) if size else Popularity())
        with quietly():
            fitted = clone(plan.model).fit(value_cells(self.X, plan.how, self.scale))
        return fitted, plan.how, {**describe_model(fitted), "cells": plan.how, **figures}

    def choose_rating(self, seconds: float) -> tuple[Any, dict[str, Any]]:
        models, skipped = self.list_rating_models(seconds)
        figures: dict[str, Any] | None = self._explain_default("ratings")
        model = list(models.values())[-1]
        if figures is None:
            fold = split_cells(self.X, "random", self.holdout, None, self.seed)
            model, figures = self._try_ratings(models, keep_stored(self.X, fold < 0), keep_stored(self.X, fold == 0))
            figures |= {"skipped": skipped} if skipped else {}
            figures["held_out"] = int((fold == 0).sum())
        with quietly():  # its sweeps were chosen here, or stop where the trial did
            fitted = self.fit(model)
        return fitted, {**describe_model(fitted), **figures}

    def list_rating_models(self, seconds: float) -> tuple[dict[str, Any], list[str]]:
        """The models to try, by name, from the simplest on; and those for which there is not the time."""
        cost, operations = count_ratings(self.X), seconds * DENSE_OPS_PER_SECOND
        best = SVDPlusPlus(random_state=self.seed)
        sweeps = cost.limit_sweeps(operations, best.max_iter)
        affordable = {"Biases": True, "Neighborhood": cost.neighbors <= operations, "SVDPlusPlus": sweeps > 0}
        models = {"Biases": Biases(), "Neighborhood": Neighborhood(), "SVDPlusPlus": best}
        best.set_params(max_iter=max(sweeps, 1))
        tried = {name: model for name, model in models.items() if affordable[name]}
        return tried, [name for name in models if not affordable[name]]

    def _try_ratings(
        self, models: dict[str, Any], train: sparse.csr_array, held: sparse.csr_array
    ) -> tuple[Any, dict[str, Any]]:
        """The model to fit to everything, by the error on held-out ratings."""
        ends = train.data.min(), train.data.max()

        def score(model: Any) -> float:  # in the rows as they are, at a fraction of the cost of folding them in again
            return -float(np.sqrt(np.mean(find_squares(model, held, *ends))))

        stop = EarlyStopping(patience=MAX_IDLE_SWEEPS, min_delta=MIN_GAIN * float(train.data.std()), score=score)
        reporting, squares, sweeps = select_reporting(self.callbacks), {}, {}
        for name, model in models.items():
            callbacks = (stop, *reporting) if name == "SVDPlusPlus" else reporting
            with quietly():
                trial = clone(model).set_callbacks(*callbacks).fit(train)
            squares[name] = find_squares(trial, held, *ends)
            if name == "SVDPlusPlus":
                sweeps = {"sweeps": stop.best_sweep_ + 1}
                model.set_params(max_iter=sweeps["sweeps"] if sweeps["sweeps"] < trial.n_iter_ else model.max_iter)
        best, figures = compare_errors(squares)
        return models[best], figures | sweeps
