"""The model behind the lists, chosen by the lists it makes of what it was not shown.

What people will see next is another question than how they will rate it, so it has models of its own: popularity,
which is the one to beat, EASE, plain or with an intercept, and ImplicitALS. They are compared on cells held out at
random: the 10 best of all items a user has not seen, by NDCG with every held-out item relevant. What a cell is worth to
them is chosen, too: being there, or the more the higher its rating (the more often it happened).

The time allowed is kept by the clock. What models cost is counted beforehand, in operations of dense algebra, of which
this machine makes as many a second as a short trial shows; one that looks up a cell takes as long as twenty. What
would not be ready in time is not tried, and is named in ``choice_["skipped"]``; without a limit the choice depends on
the data alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.biases import Biases, compute_shifts
from twofold.completion.ease import EASE
from twofold.completion.implicit_als import ImplicitALS
from twofold.completion.popularity import Popularity
from twofold.completion.recommender.splits import split_cells
from twofold.completion.scorer import rank_items
from twofold.completion.svd_plus_plus import MIN_CELLS_PER_LINE, TRIAL_SWEEPS
from twofold.core.callbacks import EarlyStopping
from twofold.core.data.known_cells import keep_stored
from twofold.core.loop import quietly
from twofold.metrics import ndcg_at_k

N = 10  # places that count
MAX_LISTS = 2_000  # that are looked at, of as many users, or of fewer users in several splits
MAX_SPLITS = 5
QUICK_OPS = 1e9  # of a fit, up to which there are several splits
EASE_FITS = 6  # of a split, whose operations are counted
MIN_STANDARD_ERRORS = 2.0  # by which the best of many must beat popularity
MIN_WORTH = 0.05  # of a cell
DENSE_OPS_PER_SECOND = 5e10  # on an ordinary machine
DENSE_OPS_PER_LOOKUP = 20.0
MAX_INPUT_COLUMNS, MIN_INPUT_COLUMNS = 10_000, 500  # of EASE
WEIGHTS_PER_CELL = 64  # of EASE; beyond, NDCG rises by less than .002
FACTORS, SWEEPS = 128, 12  # of ImplicitALS
LOOKUPS_PER_CELL, DENSE_OPS_PER_LINE = 370, 1300  # of a sweep of SVDPlusPlus; a line is a row or column
MIN_SWEEPS = 10  # of SVDPlusPlus
TRIAL_SIZE = 512  # of a square matrix


# ---- cost -----------------------------------------------------------------------------------------------------------


def count_ease(X: sparse.csr_array, m: int) -> float:
    """Operations of one EASE fit with m input columns: the Gram matrix and its inverse."""
    return DENSE_OPS_PER_LOOKUP * count_pairs(X) + float(m) ** 3


def count_pairs(X: Any) -> float:
    """Pairs of cells in a row, of a table in memory or on disk."""
    return float((np.diff(X.indptr).astype(np.float64) ** 2).sum() / 2)


def limit_input_columns(X: Any, operations: float) -> int:
    """Input columns that EASE can afford; 0 if that is too few to be useful."""
    left = operations - DENSE_OPS_PER_LOOKUP * count_pairs(X)
    room = int((WEIGHTS_PER_CELL * X.nnz) ** 0.5)  # so that memory grows with cells and not with columns squared
    m = int(min(max(left, 0.0) ** (1 / 3), MAX_INPUT_COLUMNS, max(room, MIN_INPUT_COLUMNS), X.shape[1]))
    return m if m >= min(MIN_INPUT_COLUMNS, X.shape[1]) else 0


def count_factors(X: sparse.csr_array) -> float:
    """Operations of ImplicitALS by conjugate gradients."""
    return SWEEPS * 2 * (DENSE_OPS_PER_LOOKUP / 2 * X.nnz * FACTORS * 4 + sum(X.shape) * FACTORS**2 * 4)


class RatingCost(NamedTuple):
    """Operations of the rating models, tried and fitted again."""

    neighbors: float  # of Neighborhood, both times
    trial: float  # of SVDPlusPlus before its sweeps, both times
    sweep: float  # of SVDPlusPlus, one

    def limit_sweeps(self, operations: float, max_sweeps: int) -> int:
        """Sweeps that SVDPlusPlus can afford in either fit; 0 if that is too few to be useful."""
        sweeps = int(min((operations - self.neighbors - self.trial) / (2 * self.sweep), max_sweeps))
        return sweeps if sweeps >= MIN_SWEEPS else 0


def count_ratings(X: sparse.csr_array) -> RatingCost:
    """Operations of the rating models on this table."""
    sweep = DENSE_OPS_PER_LOOKUP * LOOKUPS_PER_CELL * X.nnz + DENSE_OPS_PER_LINE * sum(X.shape)
    trial = 2 * TRIAL_SWEEPS * sweep if X.nnz <= MIN_CELLS_PER_LINE * sum(X.shape) else 0.0
    return RatingCost(2 * DENSE_OPS_PER_LOOKUP * count_pairs(X), trial, sweep)


class Clock:
    """The seconds that are left, and how many operations this machine makes in one."""

    def __init__(self, seconds: float | None, rate: float | None = None):
        self.end = np.inf if seconds is None else time.perf_counter() + seconds
        self.rate = rate or (DENSE_OPS_PER_SECOND if seconds is None else measure_rate())

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return max(self.end - time.perf_counter(), 0.0)

    @property
    def operations(self) -> float:
        """Operations until the end."""
        return self.left * self.rate

    def take(self, share: float) -> Clock:
        """The first part of the time that is left."""
        return Clock(None if np.isinf(self.end) else share * self.left, self.rate)


def measure_rate() -> float:
    """Operations of dense algebra that this machine makes in a second now, at most those of an ordinary one."""
    A, took = np.ones((TRIAL_SIZE, TRIAL_SIZE), np.float32), np.inf
    for _ in range(3):
        start = time.perf_counter()
        A @ A
        took = min(took, time.perf_counter() - start)
    return float(min(2 * TRIAL_SIZE**3 / took, DENSE_OPS_PER_SECOND))


class StopInTime(EarlyStopping):
    """End a fit with the sweep in which its time is up."""

    def __init__(self, clock: Clock, **options: Any):
        super().__init__(**options)
        self.clock = clock

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        stop = super().on_fit_task_end(estimator, context, fitted_estimator=fitted_estimator)
        return stop or (context.parent is not None and self.clock.left <= 0)


# ---- what a cell is worth ---------------------------------------------------------------------------------------


class Scale(NamedTuple):
    """What ratings are measured by: their range and, with ratings, what biases expect and how far off that is."""

    low: float
    high: float
    baseline: Biases | None = None
    spread: float = 1.0


def measure_cells(X: sparse.csr_array, implicit: bool) -> Scale:
    """The scale that belongs to some ratings."""
    low, high = float(X.data.min()), float(X.data.max())
    if implicit or low == high:
        return Scale(low, high)
    with quietly():
        baseline = Biases().fit(X)
    return Scale(low, high, baseline, float(np.std(find_deviations(X, baseline))) or 1.0)


def find_deviations(X: sparse.csr_array, baseline: Biases) -> np.ndarray:
    """(cells,) what ratings are above the mean, their item's bias and their row's, which is found now."""
    offset, lam = baseline._folding()[1]
    bias = compute_shifts(X, offset, lam)[:, 0]
    return X.data - np.repeat(bias, np.diff(X.indptr)) - offset[X.indices]


def value_cells(X: sparse.csr_array, view: str, scale: Scale) -> sparse.csr_array:
    """The cells as a model of lists sees them.

    "seen": all are 1. "rating": from ½ for the lowest to 1 for the highest. "deviation": 1 for what biases expect, ½
    more for each standard deviation above. "count": 1 + log of how often.

    >>> X = sparse.csr_array(np.array([[1.0, 5.0, 3.0]]))
    >>> value_cells(X, "rating", Scale(1.0, 5.0)).data.tolist()
    [0.5, 1.0, 0.75]
    """
    if view == "rating":
        data = 0.5 + 0.5 * (np.clip(X.data, scale.low, scale.high) - scale.low) / (scale.high - scale.low)
    elif view == "deviation" and scale.baseline is not None:
        data = np.maximum(1 + 0.5 * find_deviations(X, scale.baseline) / scale.spread, MIN_WORTH)
    else:
        data = 1 + np.log(np.maximum(X.data, 1)) if view == "count" else np.ones(X.nnz)
    return sparse.csr_array((data.astype(X.dtype), X.indices, X.indptr), shape=X.shape)


# ---- trying -----------------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """A model to try and what it is shown."""

    model: Any
    how: str = "seen"
    note: str = ""

    @property
    def name(self) -> str:
        notes = ["intercept"] * getattr(self.model, "intercept", False)
        notes += [f"{self.how}s as weights"] * (self.how != "seen") + [self.note] * (self.note != "")
        return type(self.model).__name__ + (f" ({', '.join(notes)})" if notes else "")


class Part(NamedTuple):
    """One split: what is shown, how it is measured, what is held out, and of whom lists are looked at."""

    train: Any  # a table, or rows on disk
    scale: Scale
    held: sparse.csr_array
    users: np.ndarray


def split_parts(X: sparse.csr_array, implicit: bool, holdout: float, seed: int) -> list[Part]:
    """Splits with enough lists in all, several where a fit is quick."""
    parts: list[Part] = []
    lists, most = 0, MAX_SPLITS if count_ease(X, min(X.shape[1], MAX_INPUT_COLUMNS)) < QUICK_OPS else 1
    while lists < MAX_LISTS and len(parts) < most:
        fold = split_cells(X, "random", holdout, None, seed + len(parts))
        train, held = keep_stored(X, fold < 0), keep_stored(X, fold == 0)
        users = np.flatnonzero(np.diff(held.indptr))[: MAX_LISTS - lists]
        parts.append(Part(train, measure_cells(train, implicit), held, users))
        lists += len(users)
    return parts


class Trial:
    """Plans compared on the same held-out cells; each one's NDCG, list by list."""

    def __init__(self, parts: list[Part], fit: Callable[[Any], Any] | None = None, clock: Clock | None = None):
        """`fit(model)` is for ratings that are not in memory."""
        self.parts, self.fit, self.clock = parts, fit, clock or Clock(None)
        self.took: dict[str, float] = {}  # seconds, by class of the model: the longest trial
        self.figures: dict[str, np.ndarray] = {}
        self.plans: dict[str, Plan] = {}  # those that may be taken

    def run(self, plan: Plan) -> float:
        """The mean NDCG@10 of a plan, which is kept with its model as the last split left it."""
        found, start, kind = [], time.perf_counter(), type(plan.model).__name__
        for part in self.parts:
            with quietly():
                cells = None if self.fit else value_cells(part.train, plan.how, part.scale)
                model = self.fit(plan.model) if self.fit else plan.model.fit(cells)
            found.append(self.measure(model, part))
        self.figures[plan.name], self.plans[plan.name] = np.concatenate(found), plan
        self.took[kind] = max(self.took.get(kind, 0.0), time.perf_counter() - start)
        return self.score(plan.name)

    def has_time(self, kind: str) -> bool:
        """Tell whether one more trial like those before it, and the fit to everything, are ready in time."""
        return self.took.get(kind, 0.0) * (1 + 1.5 / len(self.parts)) <= self.clock.left

    def measure(self, model: Any, part: Part) -> np.ndarray:
        """The NDCG@10 of the lists of one split."""
        ranked = rank_items(model.make_scorer(part.train), part.train, part.users, N)
        lists = np.concatenate([found.items for _, found in ranked])
        return ndcg_at_k(lists, part.held[part.users], N, average=False)

    def score(self, name: str) -> float:
        return float(self.figures[name].mean())

    def best(self) -> str:
        return max(self.plans, key=self.score)

    def better(self, name: str, other: str, errors: float = 1.0) -> bool:
        """Return True if one is better than another by more than `errors` standard errors of their difference."""
        gain = self.figures[name] - self.figures[other]
        return bool(gain.mean() > errors * gain.std() / np.sqrt(len(gain)))

    def choose(self) -> tuple[Plan, dict[str, Any]]:
        """The plan with the best lists, if they are clearly better than what is popular, and the figures of all."""
        best, why = self.best(), "the best lists of what was held out"
        if best != "Popularity" and not self.better(best, "Popularity", MIN_STANDARD_ERRORS):
            best, why = "Popularity", "no other model makes lists that are better by more than two standard errors"
        return self.plans[best], {"why": why, **self.describe(best)}

    def describe(self, name: str) -> dict[str, Any]:
        """The figures of one plan beside all others."""
        table = {
            one: {"score": self.score(one), "error": float(each.std() / np.sqrt(len(each)))}
            for one, each in self.figures.items()
        }
        trivial = {"baseline": "popularity", "baseline_score": table["Popularity"]["score"]}
        held_out = int(sum(part.held.nnz for part in self.parts))
        return {"measure": f"ndcg@{N}", **table[name], **trivial, "tried": table, "held_out": held_out}


def try_ease(trial: Trial, m: int, implicit: bool) -> None:
    """EASE with m input columns: with an intercept or not, what cells are worth, and the ridge or three times it.

    Everything with everything where that is quick, else one after the other from the best so far. The ridge is found
    once; where cells have other values it is scaled with their mean square.
    """
    plain = Plan(EASE(max_items=m))
    trial.run(plain)
    reg, part = plain.model.reg_, trial.parts[-1]
    worth = {"seen": 1.0}
    if part.scale.low < part.scale.high:
        for how in ("count",) if implicit else ("rating", "deviation"):
            worth[how] = float(np.mean(value_cells(part.train, how, part.scale).data.astype(np.float64) ** 2))

    def attempt(intercept: bool, view: str, more: int) -> float:
        plan = Plan(EASE(max_items=m, intercept=intercept, reg=more * reg * worth[view]), view)
        larger = plan._replace(note="three times the ridge")
        if not trial.has_time("EASE"):
            return -np.inf
        if more == 1:
            return trial.run(plan)
        score = trial.run(larger)
        if plan.name in trial.figures and not trial.better(larger.name, plan.name):
            del trial.plans[larger.name]  # the ridge that was found was found on more than these lists
        return score

    if count_ease(part.train, m) < QUICK_OPS:
        for setting in product((False, True), worth, (1, 3)):
            attempt(*setting)
        return
    intercept = attempt(True, "seen", 1) > trial.score(plain.name)
    best = trial.score(trial.best())
    for how in [how for how in worth if how != "seen"]:
        attempt(intercept, how, 1)
    if trial.score(trial.best()) > best:
        attempt(intercept, trial.plans[trial.best()].how, 3)
    else:
        attempt(intercept, "seen", 3)


def choose_ranking(X: sparse.csr_array, implicit: bool, holdout: float, clock: Clock, seed: int) -> tuple[Plan, dict]:
    """The plan to fit to everything, and what was tried."""
    trial = Trial(split_parts(X, implicit, holdout, seed), clock=clock)
    trial.run(Plan(Popularity()))
    left, skipped = clock.operations / 2, []  # the other half is for the last fit
    factors = len(trial.parts) * count_factors(X)
    quick = factors <= left / 4
    left -= factors if quick else 0.0
    m = limit_input_columns(X, left / (EASE_FITS * len(trial.parts)))
    if m:
        try_ease(trial, m, implicit)
    else:
        skipped.append("EASE")
    if quick and factors <= clock.operations / 2 and trial.has_time("EASE"):
        trial.run(Plan(ImplicitALS(min(FACTORS, *X.shape), max_iter=SWEEPS, random_state=seed)))
    else:
        skipped.append("ImplicitALS")
    plan, figures = trial.choose()
    if isinstance(plan.model, EASE):
        size = max(m, limit_input_columns(X, clock.operations / 2))
        plan.model.set_params(max_items=size, reg=float(plan.model.reg_))
    return plan, figures | ({"skipped": skipped} if skipped else {})
