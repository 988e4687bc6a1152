"""Choose the models of a Recommender, where none is given, and describe why.

Two questions have two models. Which items belong in a list is answered by the one with the best lists of what was held
out (see _lists.py); how a user would rate an item, where there are ratings, by the one with the least error on ratings
held out. Both questions are asked in the same way of ratings in memory and of ratings on disk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from twofold.completion.recommender._lists import Scale
from twofold.core.callbacks import Checkpoint, EarlyStopping

AS_GIVEN = "as they are"  # how a model sees cells that are not given other values
MIN_RATINGS = 100  # below which some held out would show nothing
MIN_RELATIVE_GAIN = 0.002  # of the error, by which a model must be better than biases


class Chosen(NamedTuple):
    """The model of ratings (for counts, of lists), that of lists if it is another, how that sees cells, and why."""

    model: Any
    ranker: Any
    cells: str
    choice: dict[str, Any]


class Candidates(ABC):
    """The models that can be fitted to some ratings, and the ratings held out by which they are compared."""

    implicit: bool
    scale: Scale
    nearly_full: bool = False  # gaps carry no information

    @abstractmethod
    def fit(self, model: Any) -> Any:
        """A copy of a model, fitted to all ratings."""

    @abstractmethod
    def measure_given(self, model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Figures of a model that was given, as a model of ratings and of lists; empty if nothing is held out."""

    @abstractmethod
    def choose_rating(self, seconds: float) -> tuple[Any, dict[str, Any]]:
        """The fitted model of ratings, and a dict that describes the choice."""

    @abstractmethod
    def choose_ranking(self, seconds: float) -> tuple[Any, str, dict[str, Any]]:
        """The fitted model of lists, how it sees cells, and why it was chosen."""

    def share_time(self, seconds: float) -> tuple[float, float]:
        """Seconds for the models of lists and of ratings."""
        return seconds, seconds


def choose_models(given_model: Any, candidates: Candidates, seconds: float) -> Chosen:
    """The models of a recommender that was given one, or none."""
    if given_model is not None:
        model = candidates.fit(given_model)
        choice = {**describe_model(model), "why": "it was given"}
        ratings, lists = candidates.measure_given(model)
        if lists and not candidates.implicit:
            return Chosen(model, None, AS_GIVEN, choice | ratings | {"ranking": choice | lists})
        return Chosen(model, None, AS_GIVEN, choice | lists)
    if candidates.implicit:
        ranker, cells, ranking = candidates.choose_ranking(seconds)
        return Chosen(ranker, None, cells, ranking)
    lists_time, ratings_time = candidates.share_time(seconds)
    model, choice = candidates.choose_rating(ratings_time)
    if candidates.nearly_full:
        why = "nearly everything has been rated, so lists hold what would be rated highest"
        return Chosen(model, None, AS_GIVEN, {**choice, "ranking": {"model": choice["model"], "why": why}})
    ranker, cells, ranking = candidates.choose_ranking(lists_time)
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
