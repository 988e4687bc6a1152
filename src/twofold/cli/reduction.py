"""What `twofold reduce` does between reading and writing: choose, fit, and measure on what was held out.

Standardising divides each column by its spread: X / s goes into the model, so that model.transform(X / s) is
all a later user needs. s is kept in the model as `scale_`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from twofold import PCA, PPCA
from twofold.cli.heldout import hide_cells, hide_rows
from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.data.tables import Table

RULES = ("knee", "mle", "gavish-donoho", "parallel")
WIDE = 2000  # beyond so many components a whole spectrum takes minutes


@dataclass
class Reduction:
    """A fitted reduction and what is worth telling about it."""

    table: Table
    model: Any
    scores: np.ndarray  # (n,k)
    ratios: np.ndarray  # share of the variance of each component, kept or not
    held_out: dict[str, Any]
    blanks: int
    scale: np.ndarray | None
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def k(self) -> int:
        return self.scores.shape[1]

    def strongest(self, c: int, most: int = 4) -> list[tuple[str, float]]:
        """The columns that weigh most in component c: those of at least half the largest weight."""
        weights = self.model.components_[c]
        order = np.argsort(-np.abs(weights), kind="stable")[:most]
        return [
            (self.table.columns[j], float(weights[j]))
            for j in order
            if 2 * abs(weights[j]) >= abs(weights[order[0]])
        ]


def parse_k(text: str | None) -> int | float | str | None:
    """What -k says: a count, a share of the variance, or a rule."""
    if text is None or text in RULES:
        return text
    try:
        number = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if number >= 1 and number == int(number) and not text.endswith("%"):
        return int(number)
    if 0 < number < 1:
        return number
    raise InputError(
        f"-k {text}: give a count (3), a share of the variance (0.95), or a rule: {', '.join(RULES)}."
    )


def analyse(table: Table, k: Any, scale: bool | None, seed: int, watch: Sequence[Any] = ()) -> Reduction:
    """Fit a reduction of the table, PPCA if it has blanks and PCA otherwise."""
    start = time.perf_counter()
    notes = list(table.notes)
    X = in_memory(table, scale, notes)
    n, d = shape_of(X)
    check(X, n, d, k, table)
    blanks = 0 if not isinstance(X, np.ndarray) else int(np.isnan(X).sum())
    s = spread(X) if not isinstance(X, Path) else None
    s = s if s is not None and choose_scale(scale, s, X, table, notes) else None
    if s is not None:
        X = X / s if isinstance(X, np.ndarray) else sp.csr_array(X @ sp.diags_array(1 / s))
    fit = fit_with_blanks if blanks else fit_complete
    model, ratios = fit(X, k, seed, watch, notes)
    if s is not None:
        model.scale_ = s
    if table.columns[0] != "column_1":
        model.feature_names_in_ = np.array(table.columns, dtype=object)
    measure = hide_cells if blanks else hide_rows
    held = measure(X, n, len(model.components_), seed, notes)
    scores = np.asarray(unnamed(model, "transform", X))
    return Reduction(table, model, scores, ratios, held, blanks, s, notes, time.perf_counter() - start)


def unnamed(model: Any, method: str, X: Any) -> Any:
    """Call a method on a bare array without scikit-learn's warning that it has no column names."""
    names = model.__dict__.pop("feature_names_in_", None)
    try:
        return getattr(model, method)(X)
    finally:
        if names is not None:
            model.feature_names_in_ = names


def in_memory(table: Table, scale: bool | None, notes: list[str]) -> Any:
    """The numbers, read in unless they are a file too large for the memory budget."""
    if not isinstance(table.numbers, Path):
        return table.numbers
    n, d = shape_of(table.numbers)
    if n * d * 8 <= config().memory:
        return table.array()
    if scale:
        raise InputError(f"{table.source} is too large to standardise in memory. Leave --scale out.")
    notes.append(f"{table.source} is streamed in blocks, as it is ({n:,} rows)")
    return table.numbers


def shape_of(X: Any) -> tuple[int, int]:
    if not isinstance(X, Path):
        return X.shape
    from twofold.core.blocks import as_blocks

    n, d = as_blocks(X).shape
    return n, d


def check(X: Any, n: int, d: int, k: Any, table: Table) -> None:
    if n < 2:
        raise InputError(f"{table.source} has one row; at least two are needed to see how rows differ.")
    if isinstance(k, int) and k > min(n, d):
        raise InputError(
            f"-k {k}: {table.source} has {n} rows and {d} number columns, so at most {min(n, d)} components."
        )
    if not isinstance(X, Path) and not (spread(X, 0.0) > 0).any():
        raise InputError(
            f"{table.source}: every column of numbers is constant, so there is nothing to reduce."
        )


def spread(X: Any, of_constant: float = 1.0) -> np.ndarray:
    """Standard deviation of each column over its known cells; a constant column keeps its units."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
        s = np.sqrt(np.maximum(variance, 0))
        floor = 1e-7 * np.abs(mean)
    else:
        s = np.nanstd(X, axis=0)
        floor = 1e-12 * np.abs(np.nanmean(X, axis=0))
    return np.where(s > floor, s, of_constant)


def choose_scale(wish: bool | None, s: np.ndarray, X: Any, table: Table, notes: list[str]) -> bool:
    """Whether to divide columns by their spreads: if named ones differ more than tenfold, unless told."""
    if wish is not None:
        return wish
    known = s[spread(X, 0.0) > 0]
    factor = known.max() / known.min()
    if factor <= 10:
        return False
    if sp.issparse(X) or table.columns[0] == "column_1":
        notes.append(
            "columns without names are taken to share one unit and are not standardised (--scale does)"
        )
        return False
    high, low = (
        table.columns[int(np.argmax(s))],
        table.columns[int(np.argmin(np.where(spread(X, 0) > 0, s, np.inf)))],
    )
    notes.append(
        f'columns are standardised, for their spreads differ {factor:,.0f}-fold ("{high}" against "{low}"); '
        "--no-scale keeps their units"
    )
    return True


def fit_complete(X: Any, k: Any, seed: int, watch: Sequence[Any], notes: list[str]) -> tuple[Any, np.ndarray]:
    """PCA with the number of components asked for, or found; and as much of the spectrum as is cheap."""
    most = min(shape_of(X))
    wide = most > WIDE or isinstance(X, Path)
    if k is None and wide:
        model = new(PCA, min(10, most), seed, watch).fit(X)
        notes.append(f"{model.n_components_} components kept; on so large a table choose with -k")
        return model, model.explained_variance_ratio_
    model = new(PCA, k or "knee", seed, watch).fit(X)
    ratios = (
        model.explained_variance_ratio_ if wide else PCA(random_state=seed).fit(X).explained_variance_ratio_
    )
    if k is None and model.n_components_ == 1 < most:
        model = new(PCA, 2, seed, ()).fit(X)
    notes += why(k, model.n_components_, ratios)
    return model, ratios


def fit_with_blanks(
    X: np.ndarray, k: Any, seed: int, watch: Sequence[Any], notes: list[str]
) -> tuple[Any, np.ndarray]:
    """PPCA, which fills no cell in; its size is read off the spectrum with column means in the blanks."""
    n, d = X.shape
    notes.append(f"{np.isnan(X).mean():.2%} of the cells are blank: probabilistic PCA is fitted to the others")
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    guide, _ = fit_complete(filled, k, seed, (), [])
    size = min(guide.n_components_, d - 1) or 1
    model = new(PPCA, size, seed, watch).fit(X)
    noise = np.full(max(0, min(n, d) - size), float(model.noise_variance_))
    values = np.concatenate([model.explained_variance_, noise])
    ratios = values / (model.explained_variance_.sum() + (d - size) * float(model.noise_variance_))
    notes += why(k, size, ratios)
    return model, ratios


def new(cls: Callable, k: Any, seed: int, watch: Sequence[Any]) -> Any:
    model = cls(k, random_state=seed)
    return model.set_callbacks(*watch) if watch else model


def why(asked: Any, k: int, ratios: np.ndarray) -> list[str]:
    """How the number of components came about, unless it was given."""
    if isinstance(asked, int):
        return []
    total = np.cumsum(ratios)
    rule = "the knee of the spectrum" if asked is None else f"the rule {asked}"
    if isinstance(asked, float):
        rule = f"the fewest that hold {asked:.0%}"
    more = int(np.searchsorted(total, 0.95 - 1e-9)) + 1
    hint = f"; -k 0.95 would keep {more}" if asked is None and k < more <= len(ratios) else ""
    return [f"{k} of {len(ratios)} components kept: {rule} ({total[k - 1]:.0%} of the variance{hint})"]
