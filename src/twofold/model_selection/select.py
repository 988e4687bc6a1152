"""Choosing parameters: fit every setting of a grid, measure each by one criterion, keep the best, or the smallest that
is as good.

One round:  each setting  a fit to the rows of this fold, a figure on the others
            then once     settings that are significantly worse are dropped
References: Breiman et al. 1984 (one standard error); Maron & Moore 1994 (races).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.stats import t as student
from sklearn.base import clone, is_classifier

from twofold.core.checks import InputError, check_sparse
from twofold.core.data.blocks import as_blocks, is_dask, is_path
from twofold.core.progress import part
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table
from twofold.model_selection import criteria
from twofold.model_selection.criteria import MINIMIZED, NEGLIGIBLE_DIFFERENCE, ONCE, PATHS, Split
from twofold.model_selection.selection import Selection, as_table

SIZES = ("n_components", "n_clusters", "n_codes", "n_latent", "n_nonzero")  # parameters of which less is simpler
DROP_LEVEL = 0.01  # the chance that a dropped setting was no worse
NEGLIGIBLE_GAIN = 0.01  # of the best's gain on the smallest size: less is no reason for a larger one
ROUNDING = 1e-9  # relative; smaller differences of figures count as zero


@dataclass(eq=False)
class Candidate:
    """A setting of an estimator, with its scores."""

    base: Any
    setting: dict[str, Any]
    scores: list[float] = field(default_factory=list)  # a fold each, NaN for one that was not measured
    figures: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    fits: int = 0
    note: str | None = None
    model: Any = None  # fitted to all rows

    @property
    def size(self) -> float | None:
        """The product of its sizes; None if it has none."""
        sizes = [v for k, v in self.setting.items() if k.rpartition("__")[2] in SIZES]
        numbers = [float(v) for v in sizes if isinstance(v, Integral) and not isinstance(v, bool)]
        return prod(numbers) if numbers and len(numbers) == len(sizes) else None

    def new(self) -> Any:
        return clone(self.base).set_params(**self.setting)


def select(
    estimator: Any,
    X: Table,
    y: Any = None,
    *,
    criterion: str | Callable[..., float] = "auto",
    folds: int = 5,
    time: float | None = None,
    progress: Callable[[int, int], Any] | None = None,
    random_state: Seed = None,
    **grid: Iterable[Any],
) -> Selection:
    """Choose parameters of an estimator, or one of several: fit each, compare, and return a table and the winner.

    Of sizes (``n_components``, ``n_clusters``, ``n_codes``, ``n_latent``, ``n_nonzero``) the smallest is taken that is
    as good as the best: within one standard error of it, taken over the folds that both have, or within a hundredth of
    what the best gains on the smallest; within 2 of the least BIC or AIC. By "stability" it is the largest within one
    standard error: coarser groups than there are can be as stable. Other parameters have the best figure.

    Parameters
    ----------
    estimator : estimator, class, or list of them
        A class is used with its defaults, an instance with its own other parameters. Of a list every one is tried with
        every setting; their figures must count the same thing.
    X : array, sparse array, frame, path or dask array of shape (n, d)
        Any data that the estimator takes. Rows of files and of dask arrays are picked block by block.
    y : array-like (n,), optional
    criterion : str or function, default="auto"
        "bic", "aic", "heldout", "stability", "icl" (k-means), "evidence" and "gavish-donoho" (PCA and PPCA): see
        :doc:`/learn/how-many`. "auto" is the choice of theory for the model, and `why` gives the reason. A function is
        called with a fitted model and new rows (and targets), and gives a number, the higher the better.
    folds : int, default=5
        Folds for "heldout", pairs of halves for "stability". After each, settings that are behind the best by a t-test
        at 1 % are dropped.
    time : float, optional
        Seconds that all may take: a fit that would not be ready in time is left out. The first one always runs.
    progress : function, optional
        Called after every fit with the number of fits done, and of those that there will be at most.
    random_state : int, RandomState, Generator or None
        Decides the folds, and seeds the estimator if it has no seed of its own.
    **grid
        Parameters with the values to try, ``n_components=range(1, 11)``; with several, every combination.

    Returns
    -------
    Selection

    References
    ----------
    Breiman, Friedman, Olshen & Stone (1984), *Classification and Regression Trees* (one standard error). Maron & Moore
    (1994), *NIPS* 6 (dropping settings early). Kass & Raftery (1995), *JASA* 90, 773-795 (a BIC within 2).

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
    several = isinstance(estimator, (list, tuple))
    bases = [_instance(one) for one in (estimator if several else [estimator])]
    settings = [_settings(base, grid, several) for base in bases]
    criterion, why, score = _choose_criterion(bases, criterion, X, grid)
    seed = seed_of(random_state)
    for base in bases:
        _seed(base, seed)
    entries = [Candidate(base, s) for base, each in zip(bases, settings, strict=True) for s in each]
    race = Race(entries, criterion, score, time, progress)
    if criterion in PATHS:
        _follow_path(entries, criterion, X)
    elif criterion in ONCE:
        race.run_once(X, y)
    else:
        rows = _allow_row_choice(bases, X, criterion)
        race.run(rows, y, list(_splits(bases[0], rows, y, criterion, folds, seed)))
    best, rule = choose(entries, criterion, several)
    if best.model is None:
        best.model = criteria.fit(best.new(), X, y)
    table = as_table(entries, criterion, _names(bases) if several else None)
    return Selection(table, best.setting, best.model, criterion, f"{why}; {rule}", entries.index(best))


# --- the request -------------------------------------------------------------------------------------------


def _instance(estimator: Any) -> Any:
    if not isinstance(estimator, type):
        return clone(estimator)
    try:
        return estimator()
    except TypeError as error:
        raise InputError(f"{estimator.__name__} needs arguments; give select an instance. ({error})") from error


def _names(bases: list[Any]) -> list[str]:
    """A name for each estimator of a list: its class, with its parameters if there are several of it."""
    classes = [type(base).__name__ for base in bases]
    return [name if classes.count(name) == 1 else repr(base) for name, base in zip(classes, bases, strict=True)]


def _settings(base: Any, grid: dict[str, Iterable[Any]], several: bool) -> list[dict[str, Any]]:
    """Every combination, the first parameter varying slowest, in the order given."""
    name, known = type(base).__name__, base.get_params()
    if not grid and not several:
        raise InputError(f"Nothing to choose between: give values to try, such as {next(iter(known), 'k')}=[...].")
    values: dict[str, list[Any]] = {}
    for key, options in grid.items():
        if key not in known:
            raise InputError(f"{name} has no parameter {key!r}. It has {', '.join(sorted(known))}.")
        if isinstance(options, (str, bytes)) or not isinstance(options, Iterable):
            raise InputError(f"{key}={options!r} is one value; give those to try as a list, {key}=[{options!r}, ...].")
        grid[key] = values[key] = options.tolist() if isinstance(options, np.ndarray) else list(options)
        if not values[key]:
            raise InputError(f"{key} has no values to try; give at least one.")
    return [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]


def _choose_criterion(
    bases: list[Any], criterion: Any, X: Any, grid: dict[str, Any]
) -> tuple[str, str, Callable[..., float]]:
    """One criterion for all estimators, the reason, and the function that scores held-out rows."""
    if not bases:
        raise InputError("Nothing to choose between: the list of estimators is empty. Give two at least.")
    found = [criteria.resolve(base, criterion, X, grid) for base in bases]
    score = criterion if callable(criterion) else criteria.heldout_score
    if len({name for name, _ in found}) > 1 or (len(bases) > 1 and found[0][0] in PATHS):
        common = "bic" if all(hasattr(base, "bic") for base in bases) else "heldout"
        found = [(criteria.resolve(base, common, X, grid)[0], "all of them have it") for base in bases]
    measure = criterion if callable(criterion) else found[0][0]
    units = {criteria.unit_of(base, measure): type(base).__name__ for base in bases}
    if len(units) > 1:
        (unit, first), (other, second) = list(units.items())[:2]
        raise InputError(
            f"{first} and {second} cannot be compared: the one counts {unit}, the other {other}. Give "
            'criterion="stability", or a function of a fitted model and held-out rows that scores all in one unit.'
        )
    return *found[0], score


def _seed(base: Any, seed: int) -> None:
    """Give every part of an estimator without a seed the same one, so that only the settings differ."""
    names = [name for name, value in base.get_params().items() if value is None and name.endswith("random_state")]
    base.set_params(**dict.fromkeys(names, seed))


def _allow_row_choice(bases: list[Any], X: Any, criterion: str) -> Any:
    """X in a form whose rows can be chosen."""
    if is_path(X) and all(hasattr(base, "_blocks") and not base._takes_text for base in bases):
        return as_blocks(X)
    if is_path(X) or (is_dask(X) and not all(hasattr(base, "_blocks") for base in bases)):
        raise InputError(f"criterion={criterion!r} picks rows of X, which {X!r} has not at hand. Load it first.")
    return X


def _splits(base: Any, X: Any, y: Any, criterion: str, folds: int, seed: int) -> Iterator[Split]:
    """Row numbers to fit and to compare on: the same for every setting."""
    n, least = X.shape[0] if hasattr(X, "shape") else len(X), 2 if criterion == "heldout" else 1
    if not isinstance(folds, (int, np.integer)) or not least <= folds <= n // 2:
        raise InputError(f"folds is {folds}; with {n} rows choose a whole number from {least} to {n // 2}.")
    if criterion == "heldout":
        from sklearn.model_selection import KFold, StratifiedKFold

        kind = StratifiedKFold if y is not None and is_classifier(base) else KFold
        yield from kind(folds, shuffle=True, random_state=seed % 2**32).split(np.zeros(n), y)
    else:
        for fold in range(folds):
            order = generator(seed, fold).permutation(n)
            yield np.sort(order[: n // 2]), np.sort(order[n // 2 :])


# --- measuring ---------------------------------------------------------------------------------------------


def _follow_path(entries: list[Candidate], criterion: str, X: Any) -> None:
    """Figures of all sizes from one decomposition."""
    began = perf_counter()
    sizes = [c.setting["n_components"] for c in entries]
    for c, value in zip(entries, entries[0].base._path(X, criterion, sizes), strict=True):
        c.figures, c.seconds = {criterion: float(value)}, (perf_counter() - began) / len(entries)
        if not np.isfinite(value):
            c.figures, c.note = {}, f"its {criterion} is {value}"


class Race:
    """Settings measured in rounds, within the time limit."""

    def __init__(
        self,
        entries: list[Candidate],
        criterion: str,
        score: Callable[..., float],
        time: float | None,
        progress: Callable[[int, int], Any] | None,
    ):
        self.entries, self.criterion, self.score, self.progress = entries, criterion, score, progress
        self.end = np.inf if time is None else perf_counter() + time
        self.sign = -1.0 if criterion in MINIMIZED else 1.0
        self.fits, self.rounds = 0, 1

    def run_once(self, X: Any, y: Any) -> None:
        """One fit to all rows for each."""
        for c in self.entries:
            self._measure(c, self._information, c, X, y)

    def _information(self, c: Candidate, X: Any, y: Any) -> float:
        c.model = criteria.fit(c.new(), X, y)
        c.figures = {name: float(getattr(c.model, name)(X)) for name in ONCE if hasattr(c.model, name)}
        return c.figures[self.criterion]

    def run(self, X: Any, y: Any, splits: list[Split]) -> None:
        """Fold after fold, as long as a setting may still win."""
        measure = criteria.measure_heldout if self.criterion == "heldout" else criteria.measure_agreement
        self.rounds = len(splits)
        for split in splits:
            running = [c for c in self.entries if c.note is None]
            behind = [c for c in running if is_behind(c, running)]
            for c in running:
                if c in behind:
                    c.scores.append(np.nan)
                else:
                    self._measure(c, measure, c.new(), X, y, split, self.score)
        summarize(self.entries, self.criterion)

    def _measure(self, c: Candidate, measure: Callable[..., float], *arguments: Any) -> None:
        """One figure; a setting that fails has its message as a note and no figure."""
        if self.fits and perf_counter() + self._predict_seconds(c) > self.end:
            c.scores.append(np.nan)
            if not c.fits:
                c.note = "not tried: it would not have been ready in time"
            return
        began = perf_counter()
        try:
            with part(self.fits, self.fits + 1, self.fits + self._count_left()):
                c.scores.append(float(measure(*arguments)))
            if not np.isfinite(c.scores[-1]):
                c.note = f"its {self.criterion} is {c.scores[-1]}"
        except Exception as error:  # whatever a user's estimator raises must not cost the other settings
            c.note = f"{type(error).__name__}: {error}"
        c.seconds, c.fits, self.fits = c.seconds + perf_counter() - began, c.fits + 1, self.fits + 1
        if c.note:
            c.figures, c.scores = {}, []
        if self.progress is not None:
            self.progress(self.fits, self.fits + self._count_left())

    def _count_left(self) -> int:
        """Fits that are left at most."""
        return sum(self.rounds - len(e.scores) for e in self.entries if e.note is None)

    def _predict_seconds(self, c: Candidate) -> float:
        """Seconds until this fit is done, and a last one to all rows of the best so far."""
        done = [e for e in self.entries if e.fits and e.note is None]
        if not done:
            return 0.0
        like = c if c.fits else done[-1]
        grows = 1.0 if c.fits or not (c.size and like.size) else max(c.size / like.size, 1.0)
        best = max(done, key=lambda e: self.sign * np.nanmean(e.scores))
        last = 0.0 if best.model is not None else best.seconds / best.fits * self.rounds / max(self.rounds - 1, 1)
        return grows * like.seconds / like.fits + last


def difference(c: Candidate, best: Candidate) -> tuple[float, float]:
    """The gap between a setting and the best, over the folds of both, and its standard error."""
    gaps = np.array([b - a for a, b in zip(c.scores, best.scores, strict=False)])
    gaps = gaps[np.isfinite(gaps)]
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
    return (float(gaps.mean()), float(error)) if len(gaps) else (np.inf, np.nan)


def is_behind(c: Candidate, running: list[Candidate]) -> bool:
    """True if a setting is significantly worse than the best."""
    best = _leader(running)
    rounds = int(np.isfinite(c.scores).sum())
    if c is best or rounds < 2:
        return len(c.scores) > rounds  # once dropped, or out of time, it stays out
    gap, error = difference(c, best)
    return gap > student.ppf(1 - DROP_LEVEL, rounds - 1) * error or len(c.scores) > rounds


def _leader(entries: list[Candidate]) -> Candidate:
    """The best on average; settings with folds missing are compared with the most complete one, over common folds."""
    fullest = max(entries, key=lambda c: (np.isfinite(c.scores).sum(), _mean(c)))
    return min(entries, key=lambda c: difference(c, fullest)[0])


def _mean(c: Candidate) -> float:
    return float(np.nanmean(c.scores)) if np.isfinite(c.scores).any() else -np.inf


def summarize(entries: list[Candidate], criterion: str) -> None:
    """Set figures from scores. With folds missing, it is the figure of a complete setting less the gap to that."""
    measured = [c for c in entries if c.note is None and np.isfinite(c.scores).any()]
    if not measured:
        return
    best = _leader(measured)
    fullest = max(measured, key=lambda c: (np.isfinite(c.scores).sum(), c is best))
    for c in measured:
        scores = np.array(c.scores)[np.isfinite(c.scores)]
        behind, error = difference(c, best)
        alone = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
        c.figures = {
            criterion: _mean(c) if len(scores) == len(c.scores) else _mean(fullest) - difference(c, fullest)[0],
            f"{criterion}_error": float(alone),
            "behind": behind,
            "behind_error": error,
            "folds": len(scores),
        }


# --- the choice ---------------------------------------------------------------------------------------------


def choose(entries: list[Candidate], criterion: str, several: bool) -> tuple[Candidate, str]:
    """The best, or the smallest (by stability: the largest) that is as good; and which of the two it was."""
    done = [c for c in entries if criterion in c.figures]
    if not done:
        raise InputError(
            f"None of the {len(entries)} settings of {type(entries[0].base).__name__} worked. The first, "
            f"{entries[0].setting}: {entries[0].note}"
        )
    sign = -1.0 if criterion in MINIMIZED else 1.0
    best = max(done, key=lambda c: sign * c.figures[criterion])
    if best.size is None:
        return best, "the best figure"
    top = sign * best.figures[criterion]
    same = [c for c in done if c.base is best.base and c.size is not None]
    gain = max(top - sign * min(same, key=lambda c: c.size or 0).figures[criterion], 0.0)
    room = ROUNDING * abs(top) + (NEGLIGIBLE_GAIN * gain if criterion == "heldout" else 0.0)
    equals = [c for c in same if top - sign * c.figures[criterion] <= max(room, _error(c, criterion))]
    if criterion == "stability":
        chosen = max(equals, key=lambda c: (c.size or 0, sign * c.figures[criterion]))
        return chosen, _rule(chosen, best, same, "the largest size within one standard error of the most stable")
    chosen = min(equals, key=lambda c: (c.size or 0, -sign * c.figures[criterion]))
    bound = NEGLIGIBLE_DIFFERENCE.get(criterion)
    within = "within one standard error, or 1 % of the gain," if bound is None else f"within {bound:g}"
    return chosen, _rule(chosen, best, same, f"the smallest size {within} of the best")


def _error(c: Candidate, criterion: str) -> float:
    """The gap to the best within which a setting counts as equally good."""
    error = NEGLIGIBLE_DIFFERENCE.get(criterion, c.figures.get("behind_error", 0.0))
    return error if np.isfinite(error) else 0.0


def _rule(chosen: Candidate, best: Candidate, same: list[Candidate], words: str) -> str:
    if chosen is not best:
        return f"{words}, which {_write_setting(best)} has"
    compared = [c for c in same if np.isfinite(c.figures.get("behind_error", np.nan))]
    smaller = [c for c in compared if (c.size or 0) < (best.size or 0)]
    if not smaller:
        return "the best figure"
    below = max(smaller, key=lambda c: (c.size or 0, -c.figures["behind"]))
    behind = f"{below.figures['behind']:.2g} ± {below.figures['behind_error']:.1g}"
    return f"the best figure; the next smaller, {_write_setting(below)}, is behind by {behind}"


def _write_setting(c: Candidate) -> str:
    return ", ".join(f"{k}={v}" for k, v in c.setting.items())
