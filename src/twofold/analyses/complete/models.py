"""Ways to fill blanks: which are tried, which is best on known cells that are hidden from it, and how good it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import twofold
from twofold.analyses.common.tables import spread
from twofold.core.checks import InputError

BY_NAME = (
    "als",
    "svd",
    "svp",
    "soft",
    "svt",
)  # low-rank completion without error bars of its own, tried only when asked for
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


def column_means(streams: bool = False) -> Candidate:
    """Column means; of what is read in blocks by factor analysis without a factor, which is the same and streams."""
    return Candidate("means", "column means", partial(twofold.FactorAnalysis, 0) if streams else twofold.MeanImpute)


def those_to_try(
    X: np.ndarray, method: str | None, seed: int, notes: list[str], streams: bool = False
) -> list[Candidate]:
    """Column means first, then models of growing size, as far as the table's shape allows.

    Of a table that is read in blocks X is a sample. All correlations take a factorization for every row and sweep, so
    there they are learned only when asked for.
    """
    n, d = X.shape
    means = column_means(streams)
    sizes = [k for k in SIZES if k < min(n - 1, d)]
    if not sizes or n < LEAST:
        notes.append(f"the table is too small ({n} rows, {d} columns that vary) for more than column means")
        return [means]
    out = [means]
    settings: dict[str, Any] = {"tol": 1e-6, "random_state": seed}
    for k in sizes:
        words = f"{k} direction{'s' if k > 1 else ''}"
        out.append(Candidate("ppca", f"PPCA with {words}", partial(twofold.PPCA, k, scale=True, **settings)))
        words = f"{k} factor{'s' if k > 1 else ''}"
        out.append(
            Candidate("factors", f"factor analysis with {words}", partial(twofold.FactorAnalysis, k, **settings))
        )
    if 2 <= d <= PAIRS and n >= 3 * d and (method == "gaussian" or not streams):
        least = 1e-4 * float(np.nanvar(X, axis=0).min())  # so that columns that go together stay apart
        gaussian = partial(twofold.GaussianMixture, 1, reg_covar=least, **settings)
        out.append(Candidate("gaussian", "a Gaussian with all correlations", gaussian))
    if method in BY_NAME:
        out += low_rank_candidates(method, sizes, seed)
    wanted = [c for c in out if method in (None, c.method)]
    if not wanted:
        raise InputError(f"⟨method=gaussian⟩: a table of {n} rows and {d} columns is too wide for it. Use ppca.")
    return wanted


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


def hide(X: np.ndarray, seed: int, draw: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows, and which of their known cells are hidden; every column keeps two different values."""
    from twofold.core.seeds import generator

    rng = generator(seed, draw)
    rows = X[np.sort(rng.permutation(len(X))[:SAMPLE])]
    hidden = ~np.isnan(rows) & (rng.random(rows.shape) < HIDDEN)
    shown = np.where(hidden, np.nan, rows)
    enough = (~np.isnan(shown)).sum(axis=0) >= 2
    hidden[:, ~enough | ~(spread(np.where(enough, shown, 0.0), 0.0) > 0)] = False
    return rows, hidden


def attempt(
    candidate: Candidate, rows: np.ndarray, hidden: np.ndarray, doubt: float = np.nan
) -> tuple[np.ndarray, np.ndarray]:
    """Guesses and their standard deviations for rows some of whose cells are hidden, by a model that sees the rest."""
    shown = np.where(hidden, np.nan, rows)
    return fill_in(candidate.make().fit(shown), shown, doubt=doubt)


def fill_in(
    model: Any, X: np.ndarray, notes: list[str] | None = None, doubt: float = np.nan
) -> tuple[np.ndarray, np.ndarray]:
    """The filled table and its standard deviations; no guess lies beyond what its column has shown.

    `doubt` is the error of hidden cells, in spreads, for a model that has no error bars of its own.
    """
    holes = np.isnan(X)
    if hasattr(model, "impute"):
        filled, std = model.impute(X, return_std=True)
    elif hasattr(model, "complete") and not isinstance(model, twofold.MeanImpute):
        filled, std = model.complete(X), np.where(holes, doubt * spread(X), 0.0)
    else:
        filled, std = model.transform(X), np.where(holes, np.nanstd(X, axis=0), 0.0)
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    beyond = holes & ((filled < low) | (filled > high))
    if notes is not None:
        notes += about_ends(int(beyond.sum()))
    return np.where(holes, np.clip(filled, low, high), X), std


def about_ends(beyond: int) -> list[str]:
    """What is said of guesses that were brought to the end of what their column has shown."""
    many = f"{beyond:,} guess{'es' if beyond > 1 else ''}"
    return [f"{many} beyond the range of the column brought to its end"] if beyond else []


def choose(candidates: list[Candidate], X: np.ndarray, seed: int) -> tuple[dict[str, float], Candidate]:
    """The candidate with the least error on hidden cells, in spreads of their columns; the simpler one if equal."""
    rows, hidden = hide(X, seed, 1)
    if not hidden.any():
        return {}, candidates[0]
    s = spread(X)
    tried = {c.label: rms(((attempt(c, rows, hidden)[0] - rows) / s)[hidden]) for c in candidates}
    return tried, min(candidates, key=lambda c: round(tried[c.label], 3))


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(errors)))) if len(errors) else float("nan")


def measure(
    best: Candidate, X: np.ndarray, seed: int, notes: list[str], doubt: float
) -> tuple[dict[str, Any], dict[str, Any], np.ndarray]:
    """The error of the chosen model on other hidden cells than those that chose it, that of column means on the same
    cells, and that of each column."""
    rows, hidden = hide(X, seed, 2)
    if not hidden.any():
        notes.append("too few cells to hide any, so the guesses are not tested")
        return {}, {}, np.full(X.shape[1], np.nan)
    guess, std = attempt(best, rows, hidden, doubt)
    means, s = np.nanmean(np.where(hidden, np.nan, rows), axis=0), spread(X)
    error = np.where(hidden, (guess - rows) / s, np.nan)
    figures = {
        "what": "root mean square error on hidden cells, in standard deviations of their columns",
        "cells": int(hidden.sum()),
        "rmse": rms(error[hidden]),
        "within_two_sd": float((np.abs(guess - rows) <= 2 * std)[hidden].mean()),
    }
    baseline = {"method": "column means", "rmse": rms(((means - rows) / s)[hidden])}
    known = hidden.sum(axis=0)
    per_column = np.sqrt(np.nansum(error**2, axis=0) / np.maximum(known, 1))
    return figures, baseline, np.where(known >= 5, per_column, np.nan)
