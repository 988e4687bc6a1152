"""Which model answers for ratings beyond one memory, by ratings held out: the race of memory, with the models that fit
them where they are, and the trivial ones.

    ratings    Biases, ALS                       least error of the ratings held out
    lists      Popularity, ImplicitALS, EASE     best lists (NDCG) of what was held out, of some users

The ratings held out are at most a million, a small share of those that need this, so what was tried is not fitted
again: the models that answer have not seen them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from twofold.completion.als import ALS
from twofold.completion.biases import Biases
from twofold.completion.ease import EASE
from twofold.completion.implicit_als import ImplicitALS
from twofold.completion.partitioned.ratings import PartitionedRatings
from twofold.completion.partitioned.stored_rows import StoredRows
from twofold.completion.popularity import Popularity
from twofold.completion.recommender._cost import FEW, MOST, PACE, SLOW
from twofold.completion.recommender._default_model import ENOUGH, NEAR, describe_model, summarize_squares
from twofold.completion.recommender._ranking import CLEARLY, N
from twofold.completion.top_n import rank_items
from twofold.core.callbacks import Checkpoint, EarlyStopping
from twofold.core.config import config
from twofold.core.loop import quietly
from twofold.metrics import ndcg_at_k

USERS = 2_000  # whose lists are looked at
FACTORS, SWEEPS = 32, 10  # of ImplicitALS
ENDS: dict[str, Any] = {"tol": 1e-3, "max_iter": 20}  # of ALS
SETTLES: dict[str, Any] = {"tol": 1e-6, "max_iter": 30}  # of Biases


class Chosen(NamedTuple):
    """The models of ratings (for counts, of lists) and of lists, biases to fall back on, and why."""

    model: Any
    ranker: Any
    baseline: Any
    choice: dict[str, Any]


def choose_models(
    given: Any, ratings: PartitionedRatings, implicit: bool, seconds: float, seed: int, callbacks: list[Any]
) -> Chosen:
    """The models of a recommender that was given one, or none."""
    seen = StoredRows(ratings)
    low, high = seen.find_range()
    watching = [c for c in callbacks if not isinstance(c, (Checkpoint, EarlyStopping))]

    def fit(model: Any, callbacks: list[Any] = watching) -> Any:
        with quietly():
            return model.set_callbacks(*callbacks).fit(ratings).set_callbacks()

    baseline, tried, skipped = None, {}, []
    if not implicit:
        baseline = fit(Biases(**SETTLES))
        tried["Biases"] = summarize(baseline, ratings, low, high)
    if given is not None:
        model = clone(given).set_callbacks(*callbacks).fit(ratings).set_callbacks()
        choice = {**describe_model(model), "why": "it was given"}
        if ratings.held_out.nnz < ENOUGH:
            return Chosen(model, None, baseline, choice)
        lists = {
            name: judge(m, seen) for name, m in {"Popularity": fit(Popularity()), type(model).__name__: model}.items()
        }
        name = type(model).__name__
        found = compare_lists(lists, name, "it was given", ratings)
        if implicit:
            return Chosen(model, None, baseline, choice | found)
        tried[name] = summarize(model, ratings, low, high)
        return Chosen(
            model,
            None,
            baseline,
            choice | compare_ratings(tried, name, "it was given", ratings) | {"ranking": choice | found},
        )
    rankers: dict[str, Any] = {"Popularity": Popularity()}
    if low >= 0:
        rankers["ImplicitALS"] = ImplicitALS(min(FACTORS, *ratings.shape), max_iter=SWEEPS, random_state=seed)
    size = find_size(seen, seconds)
    if size:
        rankers["EASE"] = EASE(max_items=size)
    else:
        skipped.append("EASE")
    ranked = {name: fit(model) for name, model in rankers.items()}
    lists = {name: judge(model, seen) for name, model in ranked.items()}
    best, why = find_best(lists)
    ranking = {**describe_model(ranked[best]), **compare_lists(lists, best, why, ratings)}
    ranking |= {"skipped": skipped} if skipped else {}
    if implicit:
        return Chosen(ranked[best], None, None, ranking)
    models = {"Biases": baseline, "ALS": fit(ALS(random_state=seed, **ENDS))}
    tried["ALS"] = summarize(models["ALS"], ratings, low, high)
    name, why = "ALS", "the least error on ratings held out"
    if not tried["ALS"] or tried["ALS"]["score"] > (1 - NEAR) * tried["Biases"]["score"]:
        name, why = "Biases", "no other model has a smaller error on ratings held out"
    if not ratings.held_out.nnz:
        name, why = "ALS", "the default for ratings; nothing was held out"
    choice = {**describe_model(models[name]), **compare_ratings(tried, name, why, ratings), "ranking": ranking}
    return Chosen(models[name], ranked[best], baseline, choice)


# ---- ratings --------------------------------------------------------------------------------------------------------


def summarize(model: Any, ratings: PartitionedRatings, low: float, high: float) -> dict[str, float]:
    """The error on ratings held out; nothing if there are none."""
    held = ratings.held_out
    if not held.nnz:
        return {}
    rows = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
    found = np.clip(model.predict(rows, held.indices).astype(np.float64), low, high)
    return summarize_squares((found - held.data) ** 2)


def compare_ratings(tried: dict[str, Any], name: str, why: str, ratings: PartitionedRatings) -> dict[str, Any]:
    if not tried[name]:
        return {"why": why}
    trivial = {"baseline": "Biases", "baseline_score": tried["Biases"]["score"]}
    return {"why": why, "measure": "rmse", **tried[name], **trivial, "tried": tried, "held_out": ratings.held_out.nnz}


# ---- lists ----------------------------------------------------------------------------------------------------------


def judge(model: Any, seen: StoredRows) -> np.ndarray:
    """The NDCG of the lists of some users who have ratings held out."""
    held = seen.ratings.held_out
    users = np.flatnonzero(np.diff(held.indptr))
    users = users[np.unique(np.linspace(0, len(users) - 1, USERS).astype(int))] if len(users) > USERS else users
    if not len(users):
        return np.zeros(0)
    lists = np.concatenate([part.items for _, part in rank_items(model.make_scorer(seen), seen, users, N)])
    return ndcg_at_k(lists, held[users], N, average=False)


def find_best(lists: dict[str, np.ndarray]) -> tuple[str, str]:
    """The model with the best lists, if they are clearly better than what is popular."""
    if not len(lists["Popularity"]):
        return (
            "ImplicitALS" if "ImplicitALS" in lists else "Popularity"
        ), "the default for lists; nothing was held out"
    best = max(lists, key=lambda name: float(lists[name].mean()))
    gain = lists[best] - lists["Popularity"]
    if best == "Popularity" or gain.mean() <= CLEARLY * gain.std() / np.sqrt(len(gain)):
        return "Popularity", "no other model makes lists that are better by more than two standard errors"
    return best, "the best lists of what was held out"


def compare_lists(lists: dict[str, np.ndarray], name: str, why: str, ratings: PartitionedRatings) -> dict[str, Any]:
    if not len(lists[name]):
        return {"why": why}
    table = {one: {"score": float(f.mean()), "error": float(f.std() / np.sqrt(len(f)))} for one, f in lists.items()}
    trivial = {"baseline": "popularity", "baseline_score": table["Popularity"]["score"]}
    found = {"why": why, "measure": f"ndcg@{N}", **table[name], **trivial, "tried": table}
    return found | {"held_out": ratings.held_out.nnz}


def find_size(seen: StoredRows, seconds: float) -> int:
    """How many columns may speak in EASE, by the time and by the memory of this process; 0 if too few."""
    pairs = float((np.diff(seen.indptr).astype(np.float64) ** 2).sum() / 2)
    left = max(seconds * PACE - SLOW * pairs, 0.0)
    room = config().memory / (6 * seen.dtype.itemsize)  # its Gram matrix, the inverse, and what that takes meanwhile
    d = seen.shape[1]
    m = min(int(left ** (1 / 3)), int(room**0.5), MOST, d)
    products = m * (d - m) * (seen.dtype.itemsize + 4)  # of columns that speak with the others, which workers add up
    return m if m >= min(FEW, d) and 4 * products <= config().memory else 0
