"""What `twofold complete` does between reading and writing: try models on cells it hides, fill with the best."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from twofold import PPCA, FactorAnalysis, GaussianMixture, MeanImpute
from twofold.analyses._tables import spread, warnings_as_notes
from twofold.cli._console import progress, waiting
from twofold.core.checks import InputError, first_bad
from twofold.core.config import config
from twofold.core.seeds import generator
from twofold.io.tables.table import Table, names_rows, quoted

SIZES = (1, 2, 3, 5, 8, 13, 20)  # directions tried
SAMPLE = 2_000  # rows that are enough to choose and to measure
HIDDEN = 0.1  # of the known cells, for each of the two
PAIRS = 64  # columns up to which all their correlations are learned at once
LEAST = 8  # rows, below which nothing can be hidden and learned


class Candidate(NamedTuple):
    """A way to fill: what it is called, and the model, which has error bars except for column means."""

    method: str
    label: str
    make: Callable[[], Any]


@dataclass
class Filling:
    """A filled table and what is worth telling about it."""

    table: Table
    model: Any
    chosen: Candidate
    filled: np.ndarray  # (n,d) known cells as they were
    std: np.ndarray  # (n,d) of filled cells, 0 elsewhere
    blank: np.ndarray  # (n,d) bool, cells that were filled
    tried: dict[str, float]  # label → error on the cells hidden for the choice, in spreads
    held_out: dict[str, Any]
    errors: np.ndarray  # (d,) error on hidden cells of each column, in spreads; NaN where none was hidden
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def numbers_of(table: Table) -> np.ndarray:
    """The numbers in memory, refused where they cannot be completed."""
    if isinstance(table.numbers, Path):
        size = table.numbers.stat().st_size
        if size > 4 * config().memory:
            raise InputError(
                f"{table.source} is larger than memory allows ({size / 1e9:.1f} GB). Complete it in parts, or with "
                "PPCA in Python, which streams."
            )
    X = table.array()
    if sp.issparse(X):
        raise InputError(
            f"{table.source} is sparse, and a completed table is not. Ratings are for twofold recommend; in Python, "
            "ALS and SoftImpute take sparse tables as they are."
        )
    bad = first_bad(X, allow_nan=True)
    if bad is not None:
        row, column, value = bad
        where = f'{table.source}, row {row + 1}, column "{table.columns[column]}"'
        raise InputError(f"{where}: {value} is not a finite number. Use --na {value} to treat it as a blank.")
    return np.asarray(X, dtype=np.float64)


def to_fill(table: Table, X: np.ndarray) -> np.ndarray:
    """(d,) which columns are filled: not those that merely number things, nor those without a value."""
    known = ~np.isnan(X)
    fill = np.ones(X.shape[1], dtype=bool)
    for j, name in enumerate(table.columns):
        if not known[:, j].any():
            table.notes.append(f'"{name}" stays as it is: blank in every row')
            fill[j] = False
        elif not known[:, j].all() and names_rows(name, X[known[:, j], j], 1):
            table.notes.append(f'"{name}" stays as it is: it names the rows, and names cannot be guessed')
            fill[j] = False
    return fill


def analyse(table: Table, method: str | None, seed: int, quiet: bool = True) -> Filling:
    """Fill the blanks of a table with the model that does best on cells hidden from it."""
    start = time.perf_counter()
    X = numbers_of(table)
    fill = to_fill(table, X)
    blank = np.isnan(X) & fill
    if not fill.any():
        raise InputError(f"{table.source} has no column of numbers whose blanks can be filled.")
    if not blank.any():
        table.notes.append("no cell is blank: there is nothing to fill")
        nothing = Candidate("means", "column means", MeanImpute)
        empty = np.full(X.shape[1], np.nan)
        return Filling(table, MeanImpute().fit(X), nothing, X, np.zeros_like(X), blank, {}, {}, empty, table.notes)
    varies = fill & (spread(np.where(fill, X, 0.0), 0.0) > 0)
    varies = varies if varies.any() else fill
    Y = X[:, varies]  # what is learned from
    notes = table.notes
    with waiting("trying models on cells that are hidden", quiet), warnings_as_notes([]):
        candidates = those_to_try(Y, method, seed, notes)
        tried, best = choose(candidates, Y, seed)
        held, errors = measure(best, Y, seed, notes)
    filled, std = X.copy(), np.zeros_like(X)
    with warnings_as_notes(notes):
        model = best.make().set_callbacks(*progress(quiet)).fit(Y)
        filled[:, varies], std[:, varies] = fill_in(model, Y, notes)
    for j in np.flatnonzero(fill & ~varies):
        filled[:, j] = np.nanmean(X[:, j])
    if table.named:
        model.feature_names_in_ = np.array(table.columns, dtype=object)[varies]
    per_column = np.full(X.shape[1], np.nan)
    per_column[varies] = errors
    found = Filling(table, model, best, filled, std, blank, tried, held, per_column, notes)
    found.notes += about(found)
    found.seconds = time.perf_counter() - start
    return found


def those_to_try(X: np.ndarray, method: str | None, seed: int, notes: list[str]) -> list[Candidate]:
    """Column means first, then models of growing size, as far as the table's shape allows."""
    n, d = X.shape
    means = Candidate("means", "column means", MeanImpute)
    sizes = [k for k in SIZES if k < min(n - 1, d)]
    if not sizes or n < LEAST:
        notes.append(f"the table is too small ({n} rows, {d} columns that vary) for more than column means")
        return [means]
    out = [means]
    settings: dict[str, Any] = {"tol": 1e-6, "random_state": seed}
    for k in sizes:
        words = f"{k} direction{'s' if k > 1 else ''}"
        out.append(Candidate("ppca", f"PPCA with {words}", partial(PPCA, k, scale=True, **settings)))
        words = f"{k} factor{'s' if k > 1 else ''}"
        out.append(Candidate("factors", f"factor analysis with {words}", partial(FactorAnalysis, k, **settings)))
    if 2 <= d <= PAIRS and n >= 3 * d:
        gaussian = partial(GaussianMixture, 1, reg=1e-4, **settings)
        out.append(Candidate("gaussian", "a Gaussian with all correlations", gaussian))
    wanted = [c for c in out if method in (None, c.method)]
    if not wanted:
        raise InputError(f"--method gaussian: a table of {n} rows and {d} columns is too wide for it. Use ppca.")
    return wanted


def hide(X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Some rows, and which of their known cells are hidden; every column keeps two different values."""
    rows = X[np.sort(rng.permutation(len(X))[:SAMPLE])]
    hidden = ~np.isnan(rows) & (rng.random(rows.shape) < HIDDEN)
    shown = np.where(hidden, np.nan, rows)
    enough = (~np.isnan(shown)).sum(axis=0) >= 2
    hidden[:, ~enough | ~(spread(np.where(enough, shown, 0.0), 0.0) > 0)] = False
    return rows, hidden


def attempt(candidate: Candidate, rows: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Guesses and their standard deviations for rows some of whose cells are hidden, by a model that sees the rest."""
    shown = np.where(hidden, np.nan, rows)
    return fill_in(candidate.make().fit(shown), shown)


def fill_in(model: Any, X: np.ndarray, notes: list[str] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The filled table and its standard deviations; no guess lies beyond what its column has shown."""
    holes = np.isnan(X)
    if hasattr(model, "impute"):
        filled, std = model.impute(X, return_std=True)
    else:
        filled, std = model.transform(X), np.where(holes, np.nanstd(X, axis=0), 0.0)
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    beyond = holes & ((filled < low) | (filled > high))
    if notes is not None and beyond.any():
        s = "s" if beyond.sum() > 1 else ""
        notes.append(f"{beyond.sum():,} guess{'es' if s else ''} beyond the range of the column brought to its end")
    return np.where(holes, np.clip(filled, low, high), X), std


def choose(candidates: list[Candidate], X: np.ndarray, seed: int) -> tuple[dict[str, float], Candidate]:
    """The candidate with the least error on hidden cells, in spreads of their columns; the simpler one if equal."""
    rows, hidden = hide(X, generator(seed, 1))
    if not hidden.any():
        return {}, candidates[0]
    s = spread(X)
    tried = {c.label: rms(((attempt(c, rows, hidden)[0] - rows) / s)[hidden]) for c in candidates}
    return tried, min(candidates, key=lambda c: round(tried[c.label], 3))


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(errors)))) if len(errors) else float("nan")


def measure(best: Candidate, X: np.ndarray, seed: int, notes: list[str]) -> tuple[dict[str, Any], np.ndarray]:
    """The error of the chosen model on other hidden cells than those that chose it; and that of each column."""
    rows, hidden = hide(X, generator(seed, 2))
    if not hidden.any():
        notes.append("too few cells to hide any, so the guesses are not tested")
        return {}, np.full(X.shape[1], np.nan)
    guess, std = attempt(best, rows, hidden)
    means = np.nanmean(np.where(hidden, np.nan, rows), axis=0)
    error, s = np.where(hidden, (guess - rows) / spread(X), np.nan), spread(X)
    out = {
        "what": "root mean square error on hidden cells, in standard deviations of their columns",
        "cells": int(hidden.sum()),
        "rmse": rms(error[hidden]),
        "rmse_column_means": rms(((means - rows) / s)[hidden]),
        "within_two_sd": float((np.abs(guess - rows) <= 2 * std)[hidden].mean()),
    }
    count = hidden.sum(axis=0)
    per_column = np.sqrt(np.nansum(error**2, axis=0) / np.maximum(count, 1))
    return out, np.where(count >= 5, per_column, np.nan)


def about(found: Filling) -> list[str]:
    """What was chosen, and how far to trust it."""
    if not found.tried:
        return []
    out = []
    others = sorted((e, label) for label, e in found.tried.items() if label != found.chosen.label)
    if others:
        out.append(
            f"filled by {found.chosen.label}: error {found.tried[found.chosen.label]:.2f} on hidden cells, the best of "
            f"{len(found.tried)} tried; next {others[0][1]} ({others[0][0]:.2f})"
        )
    gap = found.held_out.get("rmse", 0.0) / max(found.held_out.get("rmse_column_means", 1.0), 1e-300)
    if found.chosen.method != "means" and gap > 0.95:
        out.append("the columns say little about each other: guesses are hardly better than column means")
    worst = [
        found.table.columns[j]
        for j in np.flatnonzero(found.blank.any(axis=0))
        if np.isfinite(found.errors[j]) and found.errors[j] > 0.98
    ]
    if worst and found.chosen.method != "means" and gap <= 0.95:
        out.append(f"no better than a column mean in {quoted(worst)}")
    return out
