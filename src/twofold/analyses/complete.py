"""The blanks of a table filled, everything else as it was.

Several models are tried on known cells that are hidden from them, column means among them; the best fills the blanks.
Its error is then measured on other hidden cells.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Unpack

import numpy as np
import polars as pl
import scipy.sparse as sp

import twofold
from twofold.analyses._tables import (
    Reading,
    about_table,
    as_frame_or_none,
    as_table,
    data_in_code,
    in_call,
    spread,
    warnings_as_notes,
)
from twofold.analyses._targets import Writer
from twofold.analyses.answer import DRAWN, FRAMES, Answer, Grid, analysis, count
from twofold.analyses.progress import SILENT, Progress
from twofold.core.checks import InputError, first_bad
from twofold.core.config import config
from twofold.io.tables.csv_fill import Source, as_frame, as_text, read_source, style_of
from twofold.io.tables.table import Piece, Table, names_rows, quoted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("means", "ppca", "factors", "gaussian", "als", "svd", "svp", "soft", "svt")
BY_NAME = METHODS[4:]  # low-rank completion without error bars of its own, tried only when asked for
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


@dataclass(kw_only=True, repr=False, eq=False)
class Filling(Answer):
    """A filled table."""

    read: Source
    method: str
    label: str  # the method in words
    filled: np.ndarray  # (n,d) known cells as they were
    std: np.ndarray  # (n,d) of filled cells, 0 elsewhere
    blank: np.ndarray  # (n,d) bool, cells that were filled
    tried: dict[str, float]  # label → error on the cells hidden for the choice, in spreads
    errors: np.ndarray  # (d,) error on hidden cells of each column, in spreads; NaN where none was hidden
    uncertainty: bool
    missing: Sequence[Any]

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, ".npy", *DRAWN, ".twofold")

    @property
    def data(self) -> Table:
        return self.read.table

    @property
    def heading(self) -> str:
        return about_table(self.data, len(self.filled))

    @property
    def outcome(self) -> str:
        blanks = int(self.blank.sum())
        share = f"({blanks / self.blank.size:.1%} of the cells)"
        return f"{count(blanks, 'blank')} {share} filled by {self.label}" if blanks else "no blank to fill"

    @cached_property
    def table(self) -> pl.DataFrame:
        return as_frame(self.read, self.filled, self.blank, self.std if self.uncertainty else None)

    def grids(self) -> list[Grid]:
        order = sorted(np.flatnonzero(self.blank.any(axis=0)), key=lambda j: -self.blank[:, j].sum())
        rows = [self.about_column(int(j)) for j in order]
        head = ["column", "blanks", "share", "filled with", "error"]
        return [Grid(head, rows, right=(1, 2, 4), rest="columns")] if rows else []

    def about_column(self, j: int) -> list[str]:
        """How many blanks a column had, what they became, how good that is."""
        name, holes, guess = self.data.columns[j], self.blank[:, j], self.filled[self.blank[:, j], j]
        column = None if self.read.piece is None else self.read.piece.frame[name]
        style = style_of(column, ~holes) if column is not None and column.dtype == pl.String else None
        low, high = ((f"{v:.4g}" if style is None else style.write(v)) for v in (guess.min(), guess.max()))
        error = "" if np.isnan(self.errors[j]) else f"{self.errors[j]:.2f} sd"
        span = low if low == high else f"{low} to {high}"
        return [name, f"{holes.sum():,}", f"{holes.mean():.0%}", span, error]

    def lines(self) -> list[str]:
        own = self.figures
        if not self.blank.any():
            return []
        if not own:
            return ["held out: nothing, the table is too small"]
        return [
            f"held out: {own['cells']:,} known cells were hidden and filled in; error {own['rmse']:.2f} standard "
            f"deviations of their columns, column means give {self.baseline['rmse']:.2f}; {own['within_two_sd']:.0%} "
            "lie within two of the stated sd"
        ]

    def facts(self) -> dict[str, Any]:
        n, d = self.filled.shape
        columns = [
            {"column": self.data.columns[j], "blanks": self.blank[:, j].sum(), "error": self.errors[j]}
            for j in np.flatnonzero(self.blank.any(axis=0))
        ]
        return {
            "rows": n,
            "columns": d,
            "blank_cells": self.blank.sum(),
            "method": self.method,
            "model": type(self.model).__name__,
            "filled": columns,
            "tried": self.tried,
        }

    def plot(self) -> Figure:
        from twofold.plots.reports.complete import filling_figure

        return filling_figure(self.filled, self.blank, self.data.columns, self.tried, self.label, self.heading)

    def writer(self, path: Path) -> Writer:
        ending, text = path.suffix.lower(), self.read.text
        if ending == ".npy":
            return lambda to: np.save(to, self.filled)
        if text is not None and ending in (".csv", ".tsv") and not self.safe_csv:
            if (ending == ".tsv") == (text.delimiter == "\t"):
                std = self.std if self.uncertainty else None
                edited = as_text(self.read, self.filled, self.blank, std, self.missing)
                return lambda to: to.write_bytes(edited)
            self.notes.append(f"{path} is written anew: {self.source} has other delimiters")
        return super().writer(path)


@analysis
def complete(
    data: Any,
    *,
    method: str | None = None,
    uncertainty: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
    **reading: Unpack[Reading],
) -> Filling:
    """Fill the blanks of a table, and leave everything else as it is.

    Parameters
    ----------
    data : path, frame or array
        A file in any format that `twofold.io.tables.read.read_table` knows, or the table itself; NaN is a blank.
    method : {"means", "ppca", "factors", "gaussian", "als", "svd", "svp", "soft", "svt"} or None
        None: of the first four, the one with the least error on known cells that are hidden. The others are low-rank
        completions of the columns' z-scores: :class:`ALS`, :class:`SVDImpute`, :class:`SVP`, :class:`SoftImpute` and
        :class:`SVT`.
    uncertainty : bool
        Whether the table gets a column NAME_sd, the standard deviation of each guess, for every filled column.
    seed, progress
        The seed of everything random; who is told what goes on.
    **reading
        ``missing``, ``drop`` and ``columns``, as in :func:`reduce`.

    Returns
    -------
    Filling
        ``table`` is the table without blanks.

    Examples
    --------
    >>> from twofold import datasets
    >>> answer = complete(datasets.table_with_holes().data)
    >>> answer.figures["rmse"] < answer.baseline["rmse"]
    True
    """
    if method not in (None, *METHODS):
        raise InputError(f"method {method}: choose {', '.join(METHODS[:-1])} or {METHODS[-1]}.")
    with progress.doing("reading"):
        read = source_of(data, **reading)
    table = read.table
    X = numbers_of(table)
    fill = to_fill(table, X)
    blank = np.isnan(X) & fill
    if not fill.any():
        raise InputError(f"{table.source} has no column of numbers whose blanks can be filled.")
    found = fill_blanks(X, blank, fill, method, table, seed, progress) if blank.any() else nothing_to_fill(X, table)
    table.notes += about(found, blank, table)
    call = {"verb": "complete", "data": data_in_code(data), "method": found.best.method, "uncertainty": uncertainty}
    return Filling(
        source=table.source,
        model=found.model,
        figures=found.figures,
        baseline=found.baseline,
        notes=table.notes,
        call=call | {"seed": seed} | in_call(reading),
        read=read,
        method=found.best.method,
        label=found.best.label,
        filled=found.filled,
        std=found.std,
        blank=blank,
        tried=found.tried,
        errors=found.errors,
        uncertainty=uncertainty,
        missing=list(reading.get("missing", ())),
    )


# --- the numbers --------------------------------------------------------------------------------------------


def source_of(data: Any, **reading: Unpack[Reading]) -> Source:
    """The table and, where there are any, its columns as they stood."""
    if isinstance(data, (str, os.PathLike)):
        return read_source(os.fspath(data), **reading)
    frame = as_frame_or_none(data)
    return Source(as_table(data, **reading), None if frame is None else Piece(frame, "the table"), None)


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
        raise InputError(f"{where}: {value} is not a finite number. Use --missing {value} to treat it as a blank.")
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


# --- choosing and filling -----------------------------------------------------------------------------------


class Found(NamedTuple):
    """What came of it."""

    best: Candidate
    model: Any
    filled: np.ndarray
    std: np.ndarray
    tried: dict[str, float]
    figures: dict[str, Any]
    baseline: dict[str, Any]
    errors: np.ndarray


def nothing_to_fill(X: np.ndarray, table: Table) -> Found:
    table.notes.append("no cell is blank: there is nothing to fill")
    means = column_means()
    return Found(means, means.make().fit(X), X, np.zeros_like(X), {}, {}, {}, np.full(X.shape[1], np.nan))


def fill_blanks(
    X: np.ndarray, blank: np.ndarray, fill: np.ndarray, method: str | None, table: Table, seed: int, progress: Progress
) -> Found:
    """Fill with the model that does best on cells hidden from it."""
    varies = fill & (spread(np.where(fill, X, 0.0), 0.0) > 0)
    varies = varies if varies.any() else fill
    Y = X[:, varies]  # what is learned from
    notes = table.notes
    with progress.doing("trying models on cells that are hidden"), warnings_as_notes([]):
        candidates = those_to_try(Y, method, seed, notes)
        tried, best = choose(candidates, Y, seed)
        doubt = tried.get(best.label, np.nan)
        figures, baseline, errors = measure(best, Y, seed, notes, doubt)
    filled, std = X.copy(), np.zeros_like(X)
    with warnings_as_notes(notes):
        model = best.make().set_callbacks(*progress.callbacks()).fit(Y).set_callbacks()
        filled[:, varies], std[:, varies] = fill_in(model, Y, notes, doubt)
    model.column_range_ = np.array([np.nanmin(Y, axis=0), np.nanmax(Y, axis=0)])  # guesses keep to it
    for j in np.flatnonzero(fill & ~varies):
        filled[:, j] = np.nanmean(X[:, j])
    if table.named:
        model.feature_names_in_ = np.array(table.columns, dtype=object)[varies]
    per_column = np.full(X.shape[1], np.nan)
    per_column[varies] = errors
    return Found(best, model, filled, std, tried, figures, baseline, per_column)


def column_means() -> Candidate:
    return Candidate("means", "column means", twofold.MeanImpute)


def those_to_try(X: np.ndarray, method: str | None, seed: int, notes: list[str]) -> list[Candidate]:
    """Column means first, then models of growing size, as far as the table's shape allows."""
    n, d = X.shape
    means = column_means()
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
    if 2 <= d <= PAIRS and n >= 3 * d:
        least = 1e-4 * float(np.nanvar(X, axis=0).min())  # so that columns that go together stay apart
        gaussian = partial(twofold.GaussianMixture, 1, reg_covar=least, **settings)
        out.append(Candidate("gaussian", "a Gaussian with all correlations", gaussian))
    if method in BY_NAME:
        out += low_rank_candidates(method, sizes, seed)
    wanted = [c for c in out if method in (None, c.method)]
    if not wanted:
        raise InputError(f"--method gaussian: a table of {n} rows and {d} columns is too wide for it. Use ppca.")
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
    if notes is not None and beyond.any():
        s = "s" if beyond.sum() > 1 else ""
        notes.append(f"{beyond.sum():,} guess{'es' if s else ''} beyond the range of the column brought to its end")
    return np.where(holes, np.clip(filled, low, high), X), std


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


def about(found: Found, blank: np.ndarray, table: Table) -> list[str]:
    """What was chosen, and how far to trust it."""
    if not found.tried:
        return []
    out, own = [], found.best.label
    others = sorted((e, label) for label, e in found.tried.items() if label != own)
    if others:
        out.append(
            f"filled by {own}: error {found.tried[own]:.2f} on hidden cells, the best of {len(found.tried)} tried; "
            f"next {others[0][1]} ({others[0][0]:.2f})"
        )
    gap = found.figures.get("rmse", 0.0) / max(found.baseline.get("rmse", 1.0), 1e-300)
    if found.best.method != "means" and gap > 0.95:
        out.append("the columns say little about each other: guesses are hardly better than column means")
    bad = np.flatnonzero(blank.any(axis=0) & (np.nan_to_num(found.errors) > 0.98))
    if len(bad) and found.best.method != "means" and gap <= 0.95:
        out.append(f"no better than a column mean in {quoted([table.columns[j] for j in bad])}")
    return out
