"""Choosing parameters: fit every setting of a grid, measure each by one criterion, keep the best.

    bic, aic     the penalised likelihood of the data fitted to; least is best
    heldout      the model's own score on rows it has not seen, averaged over folds; most is best
    stability    how well two fits to disjoint halves agree, 0 by chance and 1 when equal; most is best

References: Schwarz 1978; Akaike 1974; Ben-Hur, Elisseeff & Guyon 2002.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from scipy.linalg import subspace_angles
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import KFold, StratifiedKFold

from twofold.core.checks import InputError, check_sparse
from twofold.core.data.blocks import is_dask, is_path
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table

CRITERIA = ("bic", "aic", "heldout", "stability")


@dataclass(frozen=True, eq=False)
class Selection:
    """What `select` found.

    Attributes
    ----------
    table : polars.DataFrame
        One row a setting: its parameters, its figures, the seconds it took, and a note if it failed.
    best_params : dict
    winner : estimator
        The best setting, fitted to all of X.
    criterion : str
        What decided.
    """

    table: pl.DataFrame
    best_params: dict[str, Any]
    winner: Any
    criterion: str

    def plot(self) -> Any:
        """Draw the criterion against the first parameter, one line for each setting of the others.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from matplotlib.figure import Figure

        first, *others = self.best_params
        figure = Figure(layout="constrained")
        axes = figure.subplots()
        done = self.table.drop_nulls(self.criterion)
        for setting, part in done.group_by(others, maintain_order=True) if others else [((), done)]:
            label = ", ".join(f"{name}={value}" for name, value in zip(others, setting, strict=True))
            axes.plot(part[first].to_list(), part[self.criterion].to_list(), marker="o", label=label or None)
        best = _best(done[self.criterion].to_list(), self.criterion)
        axes.plot(*([done[name][best]] for name in (first, self.criterion)), "*", markersize=16, label="best")
        axes.set(xlabel=first, ylabel=self.criterion, title=type(self.winner).__name__)
        axes.legend()
        return figure


def select(
    estimator: Any,
    X: Table,
    y: Any = None,
    *,
    criterion: str = "auto",
    folds: int = 5,
    random_state: Seed = None,
    **grid: Iterable[Any],
) -> Selection:
    """Choose parameters of an estimator: fit each setting, compare, and return a table and the winner.

    Parameters
    ----------
    estimator : estimator or class
        A class is used with its defaults, an instance with its own other parameters.
    X : array-like (n,d)
        Whatever the estimator takes; "heldout" and "stability" need rows that can be picked.
    y : array-like (n,), optional
    criterion : {"auto", "bic", "aic", "heldout", "stability"}, default="auto"
        "auto" is "bic" where the estimator has one, else "heldout". "stability" compares what ``predict``
        says by the adjusted Rand index, or else the spaces of ``components_`` by their principal angles, less
        what chance would give.
    folds : int, default=5
        Folds for "heldout", pairs of halves for "stability".
    random_state : int, RandomState, Generator or None
        Decides the folds, and seeds the estimator if it has no seed of its own.
    **grid
        Parameters with the values to try, ``n_components=range(1, 11)``; with several, every combination.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.mixture import GaussianMixture
    >>> X, _ = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> select(GaussianMixture, X, random_state=0, n_components=range(1, 6)).best_params
    {'n_components': 3}
    """
    if issparse(X):
        check_sparse(X)  # its rows are picked before an estimator sees them
    base = _instance(estimator)
    settings = _settings(base, grid)
    criterion = _resolve(base, criterion)
    seed = seed_of(random_state)
    _seed(base, seed)
    splits = list(_splits(base, X, y, criterion, folds, seed))
    rows = [_measure(base, setting, X, y, criterion, splits) for setting in settings]
    scores = [row.get(criterion) for row in rows]
    if all(score is None for score in scores):
        raise InputError(
            f"None of the {len(rows)} settings of {type(base).__name__} worked. The first, {settings[0]}: "
            f"{rows[0]['note']}"
        )
    best = settings[_best(scores, criterion)]
    winner = clone(base).set_params(**best)
    _fit(winner, X, y)
    return Selection(_table(settings, rows), best, winner, criterion)


# --- what is asked ------------------------------------------------------------------------------------------


def _instance(estimator: Any) -> Any:
    if not isinstance(estimator, type):
        return clone(estimator)
    try:
        return estimator()
    except TypeError as error:
        raise InputError(f"{estimator.__name__} needs arguments; give select an instance. ({error})") from error


def _settings(base: Any, grid: dict[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Every combination, the first parameter varying slowest, in the order given."""
    name, known = type(base).__name__, base.get_params()
    if not grid:
        raise InputError(f"Nothing to choose between: give values to try, such as {next(iter(known), 'k')}=[...].")
    values: dict[str, list[Any]] = {}
    for key, options in grid.items():
        if key not in known:
            raise InputError(f"{name} has no parameter {key!r}. It has {', '.join(sorted(known))}.")
        if isinstance(options, (str, bytes)) or not isinstance(options, Iterable):
            raise InputError(f"{key}={options!r} is one value; give those to try as a list, {key}=[{options!r}, ...].")
        values[key] = options.tolist() if isinstance(options, np.ndarray) else list(options)
        if not values[key]:
            raise InputError(f"{key} has no values to try; give at least one.")
    return [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]


def _resolve(base: Any, criterion: str) -> str:
    name = type(base).__name__
    if criterion == "auto":
        criterion = "bic" if hasattr(base, "bic") else "heldout"
    if criterion not in CRITERIA:
        raise InputError(f"criterion is {criterion!r}; choose auto, {', '.join(CRITERIA)}.")
    needed = {"bic": "bic", "aic": "aic", "heldout": "score"}.get(criterion)
    if needed and not hasattr(base, needed):
        able = [c for c, method in (("bic", "bic"), ("aic", "aic"), ("heldout", "score")) if hasattr(base, method)]
        raise InputError(
            f"{name} has no method {needed}, which criterion={criterion!r} needs. "
            f"Use {' or '.join(repr(c) for c in [*able, 'stability'])}."
        )
    return criterion


def _seed(base: Any, seed: int) -> None:
    """Give every part of an estimator that has no seed the same one: settings differ in nothing else."""
    names = [name for name, value in base.get_params().items() if value is None and name.endswith("random_state")]
    base.set_params(**dict.fromkeys(names, seed))


def _splits(
    base: Any, X: Any, y: Any, criterion: str, folds: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Row numbers to fit and to compare on: the same for every setting."""
    if criterion in ("bic", "aic"):
        return
    if is_path(X) or is_dask(X):
        raise InputError(f"criterion={criterion!r} picks rows of X, which {X!r} has not at hand. Load it first.")
    n, least = X.shape[0] if hasattr(X, "shape") else len(X), 2 if criterion == "heldout" else 1
    if not isinstance(folds, (int, np.integer)) or not least <= folds <= n // 2:
        raise InputError(f"folds is {folds}; with {n} rows choose a whole number from {least} to {n // 2}.")
    if criterion == "heldout":
        kind = StratifiedKFold if y is not None and is_classifier(base) else KFold
        yield from kind(folds, shuffle=True, random_state=seed % 2**32).split(np.zeros(n), y)
    else:
        for fold in range(folds):
            order = generator(seed, fold).permutation(n)
            yield order[: n // 2], order[n // 2 :]


# --- what is measured ---------------------------------------------------------------------------------------


def _measure(base: Any, setting: dict[str, Any], X: Any, y: Any, criterion: str, splits: list) -> dict[str, Any]:
    """One row of the table; a setting that fails has its message as a note and no figure."""
    start, note = time.perf_counter(), None
    figures: dict[str, float] = {}
    try:
        model = clone(base).set_params(**setting)
        if criterion in ("bic", "aic"):
            _fit(model, X, y)
            figures = {c: float(getattr(model, c)(X)) for c in ("bic", "aic") if hasattr(model, c)}
        else:
            one = _heldout if criterion == "heldout" else _agreement
            scores = np.array([one(model, X, y, *split) for split in splits])
            error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
            figures = {criterion: float(scores.mean()), f"{criterion}_error": float(error)}
        if not np.isfinite(figures[criterion]):
            figures, note = {}, f"its {criterion} is {figures[criterion]}"
    except Exception as error:  # whatever a user's estimator raises must not cost the other settings
        note = f"{type(error).__name__}: {error}"
    return {**figures, "seconds": time.perf_counter() - start, "note": note}


def _rows(array: Any, index: np.ndarray) -> Any:
    """These rows of a table or of a list, of the kind it was given as."""
    if isinstance(array, (list, tuple)):
        return [array[i] for i in index]
    return None if array is None else getattr(array, "iloc", array)[index]  # a pandas table counts rows by iloc


def _fit(model: Any, X: Any, y: Any) -> Any:
    return model.fit(X) if y is None else model.fit(X, y)


def _heldout(model: Any, X: Any, y: Any, train: np.ndarray, test: np.ndarray) -> float:
    fitted = _fit(clone(model), _rows(X, train), _rows(y, train))
    return fitted.score(_rows(X, test)) if y is None else fitted.score(_rows(X, test), _rows(y, test))


def _agreement(model: Any, X: Any, y: Any, half: np.ndarray, other: np.ndarray) -> float:
    """How alike two fits are, beyond chance."""
    a, b = (_fit(clone(model), _rows(X, part), _rows(y, part)) for part in (half, other))
    if hasattr(a, "predict"):
        first, second = a.predict(X), b.predict(X)
        if np.asarray(first).dtype.kind == "f":
            raise InputError("it predicts numbers, not groups that could be compared")
        if len(np.unique(first)) == len(np.unique(second)) == 1:
            raise InputError("it puts every row into one group, which is always stable and says nothing")
        return adjusted_rand_score(first, second)
    if not hasattr(a, "components_"):
        raise InputError(f"{type(model).__name__} has neither predict nor components_ to compare")
    A, B = np.asarray(a.components_), np.asarray(b.components_)  # (k,d)
    chance = max(len(A), len(B)) / A.shape[1]  # the mean cos² between random subspaces
    if chance >= 1:
        raise InputError("it keeps every direction, which is always stable and says nothing")
    return float((np.mean(np.cos(subspace_angles(A.T, B.T)) ** 2) - chance) / (1 - chance))


def _best(scores: list[float | None], criterion: str) -> int:
    """The first of the best; None never wins."""
    sign = -1.0 if criterion in ("bic", "aic") else 1.0
    return int(np.argmax([-np.inf if score is None else sign * score for score in scores]))


def _table(settings: list[dict[str, Any]], rows: list[dict[str, Any]]) -> pl.DataFrame:
    columns: dict[str, pl.Series] = {}
    for key in settings[0]:
        values = [setting[key] for setting in settings]
        plain = {type(value) for value in values} in ({int}, {float}, {str}, {bool})
        columns[key] = pl.Series(key, values if plain else [str(value) for value in values])
    figures = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in ("seconds", "note")]
    for name in [*figures, "seconds"]:
        columns[name] = pl.Series(name, [row.get(name) for row in rows], dtype=pl.Float64)
    columns["note"] = pl.Series("note", [row["note"] for row in rows], dtype=pl.String)
    return pl.DataFrame(columns)
