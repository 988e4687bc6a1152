"""Ways to fill blanks: which are tried, which is best in each column on cells that are hidden, and how good it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import twofold
from twofold.analyses.common.answer import count
from twofold.analyses.common.tables import spread
from twofold.analyses.complete.cells import Cells
from twofold.core.checks import InputError
from twofold.core.progress import part
from twofold.core.seeds import generator

BY_NAME = ("als", "svd", "svp", "soft", "svt")  # low-rank completion, tried only when asked for
SIZES = (1, 2, 3, 5, 8, 13, 20)  # directions tried
WORSE = 2  # sizes in a row, after which no larger one is tried
SAMPLE = 2_000  # rows that are enough to choose and to measure
HIDDEN = 0.1  # of the known cells, in each draw
DRAWS = 2  # of hidden cells: each is filled by models that the others chose
PAIRS = 64  # columns up to which all their correlations are learned at once
MIN_ROWS = 8  # below which nothing can be hidden and learned
MIN_CELLS = 5  # hidden in a column, below which it follows the others of its kind
MIN_STANDARD_ERRORS = 2.0  # standard errors, by which a model must be better to be chosen for one column
SHRINKAGE = 1e-2  # of a Gaussian of columns of zeros and ones, which add up to one
TWINS = 1e-4  # of a Gaussian of numbers, so that columns that go together stay apart
MIXED_TOL = 1e-4  # of fits to zeros and ones, which no Gaussian fits well
STANDARDIZED = ("gaussian", "neighbors")  # methods that need columns of one scale
MAX_FOREST_SECONDS = 10.0  # of one fit, as estimated for one thread; fewer trees are grown to keep to it
MIN_TREES, MAX_TREES = 10, 40
SECONDS_PER_TREE, SECONDS_PER_STEP = 4e-4, 1.2e-8  # a step is one row, one column and one level of a tree


class Candidate(NamedTuple):
    """A way to fill: what it is called, and the model."""

    method: str
    label: str
    make: Callable[[], Any]

    @property
    def family(self) -> str:
        """Return the name of a candidate without its size."""
        return self.label.partition(" with ")[0].partition(" of rank ")[0]


def column_means(streams: bool = False, mixed: bool = False) -> Candidate:
    """Column means; of what is read in blocks by factor analysis without a factor, which is the same and streams."""
    label = "means and commonest values" if mixed else "column means"
    return Candidate("means", label, partial(twofold.FactorAnalysis, 0) if streams else twofold.MeanImpute)


def those_to_try(
    cells: Cells, method: str | None, seed: int, notes: list[str], streams: bool = False
) -> list[Candidate]:
    """Column means first, then models of growing size, as far as the table's shape allows.

    Of a table that is read in blocks there is a sample. All correlations take a factorization for every row and sweep,
    so there they are learned only when asked for.
    """
    levels, mixed = cells.levels, bool(cells.levels.any())
    n, d = len(cells.X), int(np.maximum(levels, 1).sum())
    means = column_means(streams, mixed)
    sizes = [k for k in SIZES if k < min(n - 1, d)]
    if not sizes or n < MIN_ROWS:
        size = f"{count(n, 'row')}, {count(d, 'column')} with different values"
        notes.append(f"the table is too small ({size}) for more than {means.label}")
        return [means]
    out = [means]
    settings: dict[str, Any] = {"tol": MIXED_TOL if mixed else 1e-6, "random_state": seed}
    if 2 <= d <= PAIRS and n >= 3 * d and (method == "gaussian" or not streams):
        least = SHRINKAGE if mixed else TWINS * float(np.nanvar(cells.X, axis=0).min()) if streams else TWINS
        gaussian = partial(twofold.GaussianMixture, 1, reg_covar=least, **settings)
        out.append(Candidate("gaussian", "a Gaussian with all correlations", gaussian))
    if not streams:
        neighbors = partial(twofold.Neighborhood, kind="item")
        out.append(Candidate("neighbors", "neighbors among the columns", neighbors))
    for k in sizes:
        words = f"{k} direction{'s' if k > 1 else ''}"
        if not mixed or method == "ppca":  # of zeros and ones, noise is never the same in all columns
            out.append(Candidate("ppca", f"PPCA with {words}", partial(twofold.PPCA, k, scale=True, **settings)))
        words = f"{k} factor{'s' if k > 1 else ''}"
        out.append(
            Candidate("factors", f"factor analysis with {words}", partial(twofold.FactorAnalysis, k, **settings))
        )
    if not streams and len(levels) > 1:
        out += forest_candidates(cells, method, seed, notes)
    if method in BY_NAME:
        out += low_rank_candidates(method, sizes, seed)
    wanted = [c for c in out if method in (None, c.method)]
    if not wanted:
        other = "ppca" if method == "gaussian" else "factors"
        raise InputError(f"⟨method={method}⟩: a table of {n} rows and {d} columns is too wide for it. Use {other}.")
    return wanted


def forest_candidates(cells: Cells, method: str | None, seed: int, notes: list[str]) -> list[Candidate]:
    """Iterated forests, with fewer trees where the table is wide, and none where that would not be enough."""
    n, d = cells.X.shape
    rows = min(n, 2_000)
    seconds = SECONDS_PER_TREE + SECONDS_PER_STEP * rows * math.log2(rows) * min(d, 32)
    rounds = 2 if 2 * MAX_TREES * d * seconds <= MAX_FOREST_SECONDS else 1
    n_trees = int(min(MAX_TREES, MAX_FOREST_SECONDS / (rounds * d * seconds)))
    if n_trees < MIN_TREES and method != "forests":
        notes.append(f"forests are not tried: {d} columns would take them long. ⟨method=forests⟩ takes that time")
        return []
    settings: dict[str, Any] = {"levels": cells.levels.tolist(), "n_rounds": rounds, "random_state": seed}
    forests = partial(twofold.ForestImpute, max(n_trees, MIN_TREES), **settings)
    return [Candidate("forests", "forests", forests)]


def low_rank_candidates(method: str, sizes: list[int], seed: int) -> list[Candidate]:
    """Completions of z-scores, in several sizes where the size is not found by the model."""
    cls: Any = {
        "als": twofold.ALS,
        "svd": twofold.SVDImpute,
        "svp": twofold.SVP,
        "soft": twofold.SoftImpute,
        "svt": twofold.SVT,
    }[method]
    if method not in ("soft", "svt"):
        return [
            Candidate(
                method,
                f"{cls.__name__} of rank {k}",
                partial(cls, n_components=k, normalize="column", random_state=seed),
            )
            for k in sizes
        ]
    return [Candidate(method, cls.__name__, partial(cls, normalize="column", random_state=seed))]


def build(candidates: Sequence[Candidate], chosen: np.ndarray, cells: Cells, blank_alone: bool = False) -> Any:
    """The model that fills every column by its candidate: that of one candidate as it is, if all are plain numbers."""
    used = np.unique(chosen)
    models = [candidates[c].make() for c in used]
    for model in models:
        if blank_alone and isinstance(model, twofold.ForestImpute):
            model.columns = "blank"
    plain = not cells.levels.any() and not cells.whole.any() and candidates[used[0]].method not in STANDARDIZED
    if len(models) == 1 and plain:
        return models[0]
    places = np.searchsorted(used, chosen).tolist()
    return twofold.ColumnImpute(models, chosen=places, levels=cells.levels.tolist(), whole=cells.whole.tolist())


# --- hidden cells -------------------------------------------------------------------------------------------


class Trials(NamedTuple):
    """What candidates make of cells that are hidden from them, the rows of all draws below each other."""

    cells: Cells
    hidden: np.ndarray  # (m,d) bool
    draw: np.ndarray  # (m,)
    candidates: list[Candidate]
    guesses: list[np.ndarray]  # (m,d) for each candidate
    std: list[np.ndarray]
    losses: list[np.ndarray]  # (m,d), NaN where no cell is hidden

    def places(self, method: str) -> list[int]:
        """The candidates of a method."""
        return [c for c, candidate in enumerate(self.candidates) if candidate.method == method]

    def overall(self, loss: np.ndarray) -> float:
        """The root of the mean loss of hidden cells; about 1 for column means."""
        return float(np.sqrt(loss[self.hidden].mean()))


def hide(X: np.ndarray, where: np.ndarray, seed: int, draw: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows, and which of their known cells are hidden, in columns `where`; each keeps two different values."""
    rng = generator(seed, draw)
    rows = X[np.sort(rng.permutation(len(X))[:SAMPLE])]
    hidden = ~np.isnan(rows) & (rng.random(rows.shape) < HIDDEN) & where
    shown = np.where(hidden, np.nan, rows)
    enough = (~np.isnan(shown)).sum(axis=0) >= 2
    hidden[:, ~enough | ~(spread(np.where(enough, shown, 0.0), 0.0) > 0)] = False
    return rows, hidden


def run_trials(candidates: list[Candidate], cells: Cells, where: np.ndarray, seed: int) -> Trials | None:
    """Let every candidate fill hidden cells of the columns `where` (d,); None if there are too few.

    Larger models of a family are left out once two in a row were worse than the best.
    """
    draws = [hide(cells.X, where, seed, draw + 1) for draw in range(DRAWS)]
    if not all(hidden.any() for _, hidden in draws):
        return None
    rows, hidden = (np.concatenate(parts) for parts in zip(*draws, strict=True))
    sample = Cells(rows, cells.columns)
    trials = Trials(sample, hidden, np.repeat(np.arange(DRAWS), [len(X) for X, _ in draws]), [], [], [], [])
    errors: dict[str, list[float]] = {}
    for done, candidate in enumerate(candidates):
        past = errors.setdefault(candidate.family, [])
        if len(past) > WORSE and min(past[-WORSE:]) > min(past):
            continue
        with part(done, done + 1, len(candidates), f"trying {candidate.label} on cells that are hidden"):
            parts = []
            for i, (X, own) in enumerate(draws):
                shown = Cells(np.where(own, np.nan, X), cells.columns)
                model = build([candidate], np.zeros(len(cells.columns), int), shown, blank_alone=True)
                with part(i, i + 1, DRAWS):
                    parts.append(fill_in(model.fit(shown.X), shown.X)[:2])
        guess, std = (np.concatenate(both) for both in zip(*parts, strict=True))
        loss = np.where(hidden, cells.lose(rows, guess), np.nan)
        past.append(trials.overall(loss))
        for kept, value in zip(trials[3:], (candidate, guess, std, loss), strict=True):
            kept.append(value)  # type: ignore[attr-defined]
    return trials


def fill_in(model: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The filled table, how unsure each guess is, and how many were brought to the end of their column's range."""
    holes = np.isnan(X)
    if hasattr(model, "impute"):
        filled, std = model.impute(X, return_std=True)
    else:
        filled, std = model.transform(X), np.where(holes, spread(X), 0.0)
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    beyond = holes & ((filled < low) | (filled > high))
    return np.where(holes, np.clip(filled, low, high), X), std, int(beyond.sum())


def choose(trials: Trials, rows: np.ndarray) -> np.ndarray:
    """(d,) the candidate of each column by the losses in some rows.

    Of each method that size is taken which is best in all columns of a kind, numbers or categories. A column has the
    method that is best in its kind, unless another is clearly better in this column, and column means if these are
    better than that.
    """
    losses = [loss[rows] for loss in trials.losses]
    levels = trials.cells.levels > 0
    chosen = np.zeros(len(levels), dtype=np.int64)
    for kind in (levels, ~levels):
        pooled = [round(mean_known(loss[:, kind]), 3) for loss in losses]
        if not kind.any() or math.isnan(pooled[0]):
            continue
        methods = dict.fromkeys(candidate.method for candidate in trials.candidates)
        able = [min(trials.places(method), key=pooled.__getitem__) for method in methods]
        best = min(able, key=pooled.__getitem__)
        for j in np.flatnonzero(kind):
            known = [loss[~np.isnan(loss[:, j]), j] for loss in losses]
            chosen[j] = best if len(known[0]) < MIN_CELLS else choose_for_column(known, able, best, trials.candidates)
    return chosen


def choose_for_column(losses: list[np.ndarray], able: list[int], best: int, candidates: list[Candidate]) -> int:
    """The candidate of one column by its losses in the same cells; `best` is that of all columns of its kind."""
    own = min(able, key=lambda c: round(losses[c].mean(), 3))
    gain = losses[best] - losses[own]
    chosen = own if gain.mean() > MIN_STANDARD_ERRORS * gain.std(ddof=1) / math.sqrt(len(gain)) else best
    means = 0 if candidates[0].method == "means" else chosen
    return means if losses[means].mean() < losses[chosen].mean() else chosen


def mean_known(loss: np.ndarray, nothing: float = np.nan) -> float:
    known = loss[~np.isnan(loss)]
    return float(known.mean()) if len(known) else nothing


def choose_one(trials: Trials) -> int:
    """The candidate with the least loss in all columns together; the simpler one if equal."""
    return int(np.argmin([round(trials.overall(loss), 3) for loss in trials.losses]))


def pick(parts: Sequence[np.ndarray], chosen: np.ndarray) -> np.ndarray:
    """(m,d) every column from the candidate that is chosen for it."""
    return np.stack([parts[c][:, j] for j, c in enumerate(chosen)], axis=1)


def calibrate(trials: Trials) -> np.ndarray:
    """By what each candidate's standard deviations must be multiplied to be the errors of hidden numbers."""
    numbers = trials.hidden & (trials.cells.levels == 0)
    s = trials.cells.spread
    out = []
    for guess, std in zip(trials.guesses, trials.std, strict=True):
        error = ((guess - trials.cells.X) / s)[numbers]
        stated = (std / s)[numbers]
        out.append(math.sqrt(np.mean(error**2) / max(np.mean(stated**2), 1e-300)) if len(error) else 1.0)
    return np.array(out)


# --- figures ------------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """How good the choice is on hidden cells that did not take part in it."""

    figures: dict[str, Any]
    baseline: dict[str, Any]
    errors: np.ndarray  # (d,) of numbers in standard deviations, of categories the share that is wrong
    of_means: np.ndarray  # (d,) the same of column means and commonest values
    error: float  # overall, about 1 for column means


def measure(trials: Trials, one: int | None = None) -> Measured:
    """Fill the cells of each draw by the candidates that the other draws choose, or by `one`."""
    cells, hidden = trials.cells, trials.hidden
    guess, std = cells.X.copy(), np.zeros(cells.X.shape)
    means, factors = cells.X.copy(), calibrate(trials)
    for draw in range(DRAWS):
        rows = trials.draw == draw
        chosen = choose(trials, ~rows) if one is None else np.full(len(cells.columns), one)
        guess[rows] = pick(trials.guesses, chosen)[rows]
        std[rows] = (pick(trials.std, chosen) * factors[chosen])[rows]
        shown = np.where(hidden, np.nan, cells.X)[rows]
        means[rows] = np.where(cells.levels > 0, find_modes(shown, cells.levels), np.nanmean(shown, axis=0))
    numbers, levels = hidden & (cells.levels == 0), hidden & (cells.levels > 0)
    s = cells.spread
    what = []
    figures: dict[str, Any] = {"cells": int(hidden.sum())}
    baseline: dict[str, Any] = {"method": column_means(mixed=bool(levels.any())).label}
    if numbers.any():
        what.append("rmse: root mean square error of hidden numbers, in standard deviations of their columns")
        figures["rmse"], baseline["rmse"] = (rms(((x - cells.X) / s)[numbers]) for x in (guess, means))
        figures["within_two_sd"] = float((np.abs(guess - cells.X) <= 2 * std)[numbers].mean())
    if levels.any():
        what.append("accuracy: share of hidden categories that are right")
        figures["accuracy"], baseline["accuracy"] = (float((x == cells.X)[levels].mean()) for x in (guess, means))
    figures = {"what": "; ".join(what)} | figures
    errors, of_means = (find_errors(trials, x) for x in (guess, means))
    overall = trials.overall(np.where(hidden, cells.lose(cells.X, guess), np.nan))
    return Measured(figures, baseline, errors, of_means, overall)


def find_errors(trials: Trials, guess: np.ndarray) -> np.ndarray:
    """(d,) errors of guesses of hidden cells; NaN in columns where few are hidden."""
    cells, hidden = trials.cells, trials.hidden
    loss = np.where(cells.levels > 0, guess != cells.X, ((guess - cells.X) / cells.spread) ** 2)
    known = hidden.sum(axis=0)
    mean = np.where(hidden, loss, 0.0).sum(axis=0) / np.maximum(known, 1)
    return np.where(known >= MIN_CELLS, np.where(cells.levels > 0, mean, np.sqrt(mean)), np.nan)


def find_modes(X: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """(d,) the commonest level of each category; 0 of numbers."""
    out = np.zeros(len(levels))
    for j in np.flatnonzero(levels):
        out[j] = np.bincount(X[~np.isnan(X[:, j]), j].astype(np.int64)).argmax()
    return out


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(errors)))) if len(errors) else float("nan")


def describe_choice(candidates: Sequence[Candidate], chosen: np.ndarray) -> str:
    """Name what fills the columns: the label of one, or how many columns each has."""
    places, counts = np.unique(chosen, return_counts=True)
    if len(places) == 1:
        return candidates[places[0]].label
    order = np.argsort(-counts, kind="stable")
    return ", ".join(f"{candidates[places[i]].label} in {counts[i]} columns" for i in order).replace(
        " 1 columns", " 1 column"
    )
