"""Choose the models of a Recommender, where none is given, and describe why.

Two questions have two models. Which items belong in a list is answered by the one with the best lists of what was held
out (see _lists.py); how a user would rate an item, where there are ratings, by the one with the least error on ratings
held out. Both questions are asked in the same way of ratings in memory and of ratings on disk.

in memory   ratings    Biases, Neighborhood, SVDPlusPlus (until its error on the ratings held out no longer falls)
            lists      Popularity, EASE, ImplicitALS                what is chosen is fitted again, to all ratings
on disk     ratings    Biases, ALS
            lists      Popularity, ImplicitALS, EASE                what was tried is not fitted again

The ratings held out on disk are at most a million, a small share of those that need this; the models that answer have
not seen them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from twofold.completion.als import ALS
from twofold.completion.biases import Biases
from twofold.completion.ease import EASE
from twofold.completion.implicit_als import ImplicitALS
from twofold.completion.neighborhood import Neighborhood
from twofold.completion.partitioned.ratings import PartitionedRatings
from twofold.completion.partitioned.stored_rows import StoredRows
from twofold.completion.popularity import Popularity
from twofold.completion.recommender import _lists
from twofold.completion.recommender.splits import split_cells
from twofold.completion.svd_plus_plus import SVDPlusPlus
from twofold.core.callbacks import Checkpoint, EarlyStopping
from twofold.core.config import config
from twofold.core.data.known_cells import keep_stored
from twofold.core.loop import quietly

AS_GIVEN = "as they are"  # how a model sees cells that are not given other values
MIN_RATINGS = 100  # below which some held out would show nothing
MIN_RELATIVE_GAIN = 0.002  # of the error, by which a model must be better than biases
MAX_IDLE_SWEEPS = 6  # in which the error on held-out ratings must fall by MIN_GAIN
RATING_SHARE = 0.5  # of all time, for the models of ratings
TRIAL_SHARE = 0.45  # of the time of SVDPlusPlus, until its trial ends
MIN_GAIN = 2e-4  # standard deviations of the ratings
NEARLY_FULL = 0.5  # share of known cells from which on gaps carry no information
STORED_FACTORS, STORED_SWEEPS = 32, 10  # of ImplicitALS on disk
ALS_STOPPING: dict[str, Any] = {"tol": 1e-3, "max_iter": 20}
BIASES_STOPPING: dict[str, Any] = {"tol": 1e-6, "max_iter": 30}


class Chosen(NamedTuple):
    """The model of ratings (for counts, of lists), that of lists if it is another, how that sees cells, and why."""

    model: Any
    ranker: Any
    cells: str
    choice: dict[str, Any]


class Candidates(ABC):
    """The models that can be fitted to some ratings, and the ratings held out by which they are compared."""

    implicit: bool
    scale: _lists.Scale
    nearly_full: bool = False  # gaps carry no information

    @abstractmethod
    def fit(self, model: Any) -> Any:
        """A copy of a model, fitted to all ratings."""

    @abstractmethod
    def measure_given(self, model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Figures of a model that was given, as a model of ratings and of lists; empty if nothing is held out."""

    @abstractmethod
    def choose_rating(self, clock: _lists.Clock) -> tuple[Any, dict[str, Any]]:
        """The fitted model of ratings, and a dict that describes the choice."""

    @abstractmethod
    def choose_ranking(self, clock: _lists.Clock) -> tuple[Any, str, dict[str, Any]]:
        """The fitted model of lists, how it sees cells, and why it was chosen."""

    @abstractmethod
    def compile_kernels(self) -> None:
        """Compile what the models run, before the clock starts: a first fit chooses what a second one does."""


def choose_models(given_model: Any, candidates: Candidates, seconds: float | None) -> Chosen:
    """The models of a recommender that was given one, or none."""
    if given_model is not None:
        model = candidates.fit(given_model)
        choice = {**describe_model(model), "why": "it was given"}
        ratings, lists = candidates.measure_given(model)
        if lists and not candidates.implicit:
            return Chosen(model, None, AS_GIVEN, choice | ratings | {"ranking": choice | lists})
        return Chosen(model, None, AS_GIVEN, choice | lists)
    if seconds is not None:
        candidates.compile_kernels()
    clock = _lists.Clock(seconds)
    if candidates.implicit:
        ranker, cells, ranking = candidates.choose_ranking(clock)
        return Chosen(ranker, None, cells, ranking)
    model, choice = candidates.choose_rating(clock.take(RATING_SHARE))  # what they leave is for the models of lists
    if candidates.nearly_full:
        why = "nearly everything has been rated, so lists hold what would be rated highest"
        return Chosen(model, None, AS_GIVEN, {**choice, "ranking": {"model": choice["model"], "why": why}})
    ranker, cells, ranking = candidates.choose_ranking(clock)
    return Chosen(model, ranker, cells, {**choice, "ranking": ranking})


def compare_errors(squares: dict[str, np.ndarray]) -> tuple[str, dict[str, Any]]:
    """The model with the least squared errors, if it is better than biases, and the figures of all."""
    table = {name: summarize_squares(each) for name, each in squares.items()}
    best, why = min(table, key=lambda name: table[name]["score"]), "the least error on ratings held out"
    if table[best]["score"] > (1 - MIN_RELATIVE_GAIN) * table["Biases"]["score"]:
        best, why = "Biases", "no other model has a smaller error on ratings held out"
    return best, {"why": why, **describe_errors(table, best)}


def describe_errors(table: dict[str, dict[str, float]], name: str) -> dict[str, Any]:
    """The figures of one model of ratings beside all others."""
    trivial = {"baseline": "Biases", "baseline_score": table["Biases"]["score"]}
    return {"measure": "rmse", **table[name], **trivial, "tried": table}


def summarize_squares(squares: np.ndarray) -> dict[str, float]:
    """The root of the mean of squared errors, and its standard error."""
    rmse = float(np.sqrt(squares.mean()))
    return {"score": rmse, "error": float(squares.std() / np.sqrt(len(squares)) / max(2 * rmse, 1e-300))}


def describe_model(model: Any) -> dict:
    """A model's name and parameters."""
    plain = (bool, int, float, str, type(None))
    parameters = {k: v if isinstance(v, plain) else repr(v) for k, v in model.get_params(deep=False).items()}
    return {"model": type(model).__name__, "parameters": parameters}


def select_reporting(callbacks: list[Any]) -> list[Any]:
    """The callbacks for fits before the last, to which checkpoints and stopping belong."""
    return [c for c in callbacks if not isinstance(c, (Checkpoint, EarlyStopping))]


def find_squares(model: Any, held: Any, low: float, high: float) -> np.ndarray:
    """(held-out cells,) squared errors of ratings, kept within their range."""
    rows = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
    found = np.clip(model.predict(rows, held.indices), low, high)
    return (found.astype(np.float64) - held.data) ** 2


# ---- ratings in memory -----------------------------------------------------------------------------------------------


class TableCandidates(Candidates):
    """Models for a table X in memory."""

    def __init__(self, X: sparse.csr_array, implicit: bool, holdout: float, seed: int, callbacks: list[Any]):
        self.X, self.implicit, self.holdout, self.seed, self.callbacks = X, implicit, holdout, seed, callbacks
        self.scale = _lists.measure_cells(X, implicit)
        self.nearly_full = X.nnz > NEARLY_FULL * X.shape[0] * X.shape[1]

    def fit(self, model: Any) -> Any:
        return clone(model).set_callbacks(*self.callbacks).fit(self.X).set_callbacks()

    def measure_given(self, model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {}

    def compile_kernels(self) -> None:
        cells = np.arange(16)
        few = sparse.csr_array((1 + cells % 5, (cells // 4, cells % 4)), dtype=self.X.dtype)
        with quietly():
            for model in (*self.list_rating_models(_lists.Clock(None))[0].values(), EASE(), ImplicitALS(2, max_iter=1)):
                clone(model).set_params(**{"max_iter": 1} if hasattr(model, "max_iter") else {}).fit(few)

    def _explain_default(self, question: str) -> dict[str, str] | None:
        """Why no model can be chosen by what is held out; None if one can."""
        if self.X.nnz >= MIN_RATINGS and self.holdout:
            return None
        few = f"{self.X.nnz} ratings are too few to hold some out"
        return {"why": f"the default for {question}; {few if self.holdout else 'nothing was held out'}"}

    def choose_ranking(self, clock: _lists.Clock) -> tuple[Any, str, dict[str, Any]]:
        figures: dict[str, Any] | None = self._explain_default("lists")
        if figures is None:
            plan, figures = _lists.choose_ranking(self.X, self.implicit, self.holdout, clock, self.seed)
        else:  # the ridge of an intercept finds its own way to popularity
            size = _lists.limit_input_columns(self.X, clock.operations)
            plan = _lists.Plan(EASE(intercept=True, max_items=size) if size else Popularity())
        with quietly():
            fitted = clone(plan.model).fit(_lists.value_cells(self.X, plan.how, self.scale))
        return fitted, plan.how, {**describe_model(fitted), "cells": plan.how, **figures}

    def choose_rating(self, clock: _lists.Clock) -> tuple[Any, dict[str, Any]]:
        models, skipped = self.list_rating_models(clock)
        figures: dict[str, Any] | None = self._explain_default("ratings")
        model = list(models.values())[-1]
        if figures is None:
            fold = split_cells(self.X, "random", self.holdout, None, self.seed)
            model, figures = self._try_ratings(
                models, clock, keep_stored(self.X, fold < 0), keep_stored(self.X, fold == 0)
            )
            figures |= {"skipped": skipped} if skipped else {}
            figures["held_out"] = int((fold == 0).sum())
        with quietly():  # its sweeps were chosen here, or stop where the trial did
            fitted = self.fit(model)
        return fitted, {**describe_model(fitted), **figures}

    def list_rating_models(self, clock: _lists.Clock) -> tuple[dict[str, Any], list[str]]:
        """The models to try, by name, from the simplest on; and those for which there is not the time."""
        cost, operations = _lists.count_ratings(self.X), clock.operations
        best = SVDPlusPlus(random_state=self.seed)
        sweeps = cost.limit_sweeps(operations, best.max_iter)
        affordable = {"Biases": True, "Neighborhood": cost.neighbors <= operations, "SVDPlusPlus": sweeps > 0}
        models = {"Biases": Biases(), "Neighborhood": Neighborhood(), "SVDPlusPlus": best}
        best.set_params(max_iter=max(sweeps, 1))
        tried = {name: model for name, model in models.items() if affordable[name]}
        return tried, [name for name in models if not affordable[name]]

    def _try_ratings(
        self, models: dict[str, Any], clock: _lists.Clock, train: sparse.csr_array, held: sparse.csr_array
    ) -> tuple[Any, dict[str, Any]]:
        """The model to fit to everything, by the error on held-out ratings."""
        ends = train.data.min(), train.data.max()

        def score(model: Any) -> float:  # in the rows as they are, at a fraction of the cost of folding them in again
            return -float(np.sqrt(np.mean(find_squares(model, held, *ends))))

        reporting, squares, sweeps = select_reporting(self.callbacks), {}, {}
        for name, model in models.items():
            gain = MIN_GAIN * float(train.data.std())  # the fit to everything takes as long as the trial
            stop = _lists.StopInTime(clock.take(TRIAL_SHARE), patience=MAX_IDLE_SWEEPS, min_delta=gain, score=score)
            callbacks = (stop, *reporting) if name == "SVDPlusPlus" else reporting
            with quietly():
                trial = clone(model).set_callbacks(*callbacks).fit(train)
            squares[name] = find_squares(trial, held, *ends)
            if name == "SVDPlusPlus":
                sweeps = {"sweeps": stop.best_sweep_ + 1}
                model.set_params(max_iter=sweeps["sweeps"] if sweeps["sweeps"] < trial.n_iter_ else model.max_iter)
        best, figures = compare_errors(squares)
        return models[best], figures | sweeps


# ---- ratings on disk -------------------------------------------------------------------------------------------------


class StoredCandidates(Candidates):
    """Models for partitioned ratings from `low` to `high`."""

    def __init__(
        self, ratings: PartitionedRatings, implicit: bool, ends: tuple[float, float], seed: int, callbacks: list[Any]
    ):
        self.ratings, self.implicit, self.seed, self.callbacks = ratings, implicit, seed, callbacks
        self.held, self.seen = ratings.held_out, StoredRows(ratings)
        self.scale = _lists.Scale(*ends, None if implicit else self._fit_quietly(Biases(**BIASES_STOPPING)))

    def fit(self, model: Any) -> Any:
        return clone(model).set_callbacks(*self.callbacks).fit(self.ratings).set_callbacks()

    def compile_kernels(self) -> None:
        """Do nothing: the time does not decide between models of ratings on disk."""

    def _fit_quietly(self, model: Any) -> Any:
        with quietly():
            return model.set_callbacks(*select_reporting(self.callbacks)).fit(self.ratings).set_callbacks()

    def measure_given(self, model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        if self.held.nnz < MIN_RATINGS:
            return {}, {}
        trial, name, counted = self._start_trial(), type(model).__name__, {"held_out": self.held.nnz}
        trial.run(_lists.Plan(Popularity()))
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

    def _start_trial(self) -> _lists.Trial:
        users = np.flatnonzero(np.diff(self.held.indptr))
        some = np.unique(np.linspace(0, len(users) - 1, _lists.MAX_LISTS).astype(int))
        part = _lists.Part(self.seen, self.scale, self.held, users[some] if len(users) > _lists.MAX_LISTS else users)
        return _lists.Trial([part], self._fit_quietly)

    def choose_rating(self, clock: _lists.Clock) -> tuple[Any, dict[str, Any]]:
        models = {"Biases": self.scale.baseline, "ALS": self._fit_quietly(ALS(random_state=self.seed, **ALS_STOPPING))}
        name, figures = "ALS", {"why": "the default for ratings; nothing was held out"}
        if self.held.nnz:
            name, figures = compare_errors({name: self._find_squares(model) for name, model in models.items()})
            figures["held_out"] = self.held.nnz
        return models[name], {**describe_model(models[name]), **figures}

    def choose_ranking(self, clock: _lists.Clock) -> tuple[Any, str, dict[str, Any]]:
        models: dict[str, Any] = {"Popularity": Popularity()}
        if self.scale.low >= 0:
            factors = min(STORED_FACTORS, *self.ratings.shape)
            models["ImplicitALS"] = ImplicitALS(factors, max_iter=STORED_SWEEPS, random_state=self.seed)
        size = self._limit_input_columns(clock.operations)
        if size:
            models["EASE"] = EASE(max_items=size)
        if self.held.nnz:
            trial = self._start_trial()
            for model in models.values():
                trial.run(_lists.Plan(model))
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
        m = min(_lists.limit_input_columns(self.seen, operations), int(room**0.5))
        products = m * (d - m) * (item + 4)  # of input columns with the others, which workers add up
        return m if m >= min(_lists.MIN_INPUT_COLUMNS, d) and 4 * products <= config().memory else 0
