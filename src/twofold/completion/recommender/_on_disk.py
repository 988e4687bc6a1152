"""The models that are compared for ratings on disk: the same comparison as in memory, among the models that read
ratings from disk, and the baselines.

    ratings    Biases, ALS                       least error of the ratings held out
    lists      Popularity, ImplicitALS, EASE     best lists (NDCG) of what was held out, of some users

The ratings held out are at most a million, a small share of those that need this, so what was tried is not fitted
again: the models that answer have not seen them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from twofold.completion.als import ALS
from twofold.completion.biases import Biases
from twofold.completion.ease import EASE
from twofold.completion.implicit_als import ImplicitALS
from twofold.completion.partitioned.ratings import PartitionedRatings
from twofold.completion.partitioned.stored_rows import StoredRows
from twofold.completion.popularity import Popularity
from twofold.completion.recommender._choose import (
    AS_GIVEN,
    MIN_RATINGS,
    Candidates,
    compare_errors,
    describe_errors,
    describe_model,
    find_squares,
    select_reporting,
    summarize_squares,
)
from twofold.completion.recommender._cost import DENSE_OPS_PER_SECOND, MIN_INPUT_COLUMNS, limit_input_columns
from twofold.completion.recommender._lists import Part, Plan, Scale, Trial
from twofold.core.config import config
from twofold.core.loop import quietly

MAX_LISTS = 2_000  # users whose lists are looked at
FACTORS, SWEEPS = 32, 10  # of ImplicitALS
ALS_STOPPING: dict[str, Any] = {"tol": 1e-3, "max_iter": 20}
BIASES_STOPPING: dict[str, Any] = {"tol": 1e-6, "max_iter": 30}


class StoredCandidates(Candidates):
    """Models for partitioned ratings from `low` to `high`."""

    def __init__(
        self, ratings: PartitionedRatings, implicit: bool, ends: tuple[float, float], seed: int, callbacks: list[Any]
    ):
        self.ratings, self.implicit, self.seed, self.callbacks = ratings, implicit, seed, callbacks
        self.held, self.seen = ratings.held_out, StoredRows(ratings)
        self.scale = Scale(*ends, None if implicit else self._fit_quietly(Biases(**BIASES_STOPPING)))

    def fit(self, model: Any) -> Any:
        return clone(model).set_callbacks(*self.callbacks).fit(self.ratings).set_callbacks()

    def _fit_quietly(self, model: Any) -> Any:
        with quietly():
            return model.set_callbacks(*select_reporting(self.callbacks)).fit(self.ratings).set_callbacks()

    def measure_given(self, model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        if self.held.nnz < MIN_RATINGS:
            return {}, {}
        trial, name, counted = self._start_trial(), type(model).__name__, {"held_out": self.held.nnz}
        trial.run(Plan(Popularity()))
        trial.figures[name] = trial.measure(model, trial.parts[0])
        lists = trial.describe(name)
        if self.implicit:
            return {}, lists
        table = {
            one: summarize_squares(self._find_squares(m)) for one, m in (("Biases", self.scale.baseline), (name, model))
        }
        return describe_errors(table, name) | counted, lists

    def _find_squares(self, model: Any) -> np.ndarray:
        return find_squares(model, self.held, self.scale.low, self.scale.high)

    def _start_trial(self) -> Trial:
        users = np.flatnonzero(np.diff(self.held.indptr))
        some = np.unique(np.linspace(0, len(users) - 1, MAX_LISTS).astype(int))
        part = Part(self.seen, self.scale, self.held, users[some] if len(users) > MAX_LISTS else users)
        return Trial([part], lambda plan, part: self._fit_quietly(plan.model))

    def choose_rating(self, seconds: float) -> tuple[Any, dict[str, Any]]:
        models = {"Biases": self.scale.baseline, "ALS": self._fit_quietly(ALS(random_state=self.seed, **ALS_STOPPING))}
        name, figures = "ALS", {"why": "the default for ratings; nothing was held out"}
        if self.held.nnz:
            name, figures = compare_errors({name: self._find_squares(model) for name, model in models.items()})
            figures["held_out"] = self.held.nnz
        return models[name], {**describe_model(models[name]), **figures}

    def choose_ranking(self, seconds: float) -> tuple[Any, str, dict[str, Any]]:
        models: dict[str, Any] = {"Popularity": Popularity()}
        if self.scale.low >= 0:
            factors = min(FACTORS, *self.ratings.shape)
            models["ImplicitALS"] = ImplicitALS(factors, max_iter=SWEEPS, random_state=self.seed)
        size = self._limit_input_columns(seconds * DENSE_OPS_PER_SECOND)
        if size:
            models["EASE"] = EASE(max_items=size)
        if self.held.nnz:
            trial = self._start_trial()
            for model in models.values():
                trial.run(Plan(model))
            plan, figures = trial.choose()
            model = plan.model
        else:
            model = self._fit_quietly(models.get("ImplicitALS", models["Popularity"]))
            figures = {"why": "the default for lists; nothing was held out"}
        return model, AS_GIVEN, {**describe_model(model), **figures, **({} if size else {"skipped": ["EASE"]})}

    def _limit_input_columns(self, operations: float) -> int:
        """Input columns that EASE can afford, by the time and by the memory of this process; 0 if too few."""
        item, d = self.seen.dtype.itemsize, self.seen.shape[1]
        room = config().memory / (6 * item)  # its Gram matrix, the inverse, and what that takes meanwhile
        m = min(limit_input_columns(self.seen, operations), int(room**0.5))
        products = m * (d - m) * (item + 4)  # of input columns with the others, which workers add up
        return m if m >= min(MIN_INPUT_COLUMNS, d) and 4 * products <= config().memory else 0
