"""What `twofold reduce` does between reading and writing: choose, fit, and measure on what was held out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from twofold import PCA, PPCA
from twofold.analyses._reduce_heldout import hide_cells, hide_rows
from twofold.analyses._tables import check, choose_scale, heard, in_memory, shape_of, spread
from twofold.core.checks import InputError
from twofold.io.tables.table import Table

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
    standardised: bool
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
            (self.table.columns[j], float(weights[j])) for j in order if 2 * abs(weights[j]) >= abs(weights[order[0]])
        ]


def analyse(table: Table, k: Any, scale: bool | None, seed: int, watch: Sequence[Any] = ()) -> Reduction:
    """Fit a reduction of the table, PPCA if it has blanks and PCA otherwise."""
    start = time.perf_counter()
    table = replace(table, notes=list(table.notes))
    notes = table.notes
    X = in_memory(table)
    n, d = shape_of(X)
    if isinstance(k, int) and n > 1 and k > min(n, d):
        raise InputError(
            f"-k {k}: {table.source} has {n} rows and {d} number columns, so at most {min(n, d)} components."
        )
    check(X, n, table, "reduce")
    blanks = int(np.isnan(X).sum()) if isinstance(X, np.ndarray) else 0
    standardised = bool(scale) if isinstance(X, Path) else choose_scale(scale, X, table)
    with heard(notes):
        fit = fit_with_blanks if blanks else fit_complete
        model, ratios = fit(X, k, standardised, seed, watch, notes)
        scores = np.asarray(model.transform(X))
    if standardised and not isinstance(X, Path):
        s = spread(X)  # the held-out figure is in standardised units too
        X = X / s if isinstance(X, np.ndarray) else sp.csr_array(X @ sp.diags_array(1 / s))
    held = (hide_cells if blanks else hide_rows)(X, n, scores.shape[1], seed, notes)
    if table.named:
        model.feature_names_in_ = np.array(table.columns, dtype=object)
    return Reduction(table, model, scores, ratios, held, blanks, standardised, notes, time.perf_counter() - start)


def fit_complete(
    X: Any, k: Any, scale: bool, seed: int, watch: Sequence[Any], notes: list[str]
) -> tuple[Any, np.ndarray]:
    """PCA with the number of components asked for, or found; and as much of the spectrum as is cheap."""
    most = min(shape_of(X))
    wide = most > WIDE or isinstance(X, Path)
    if k is None and wide:
        model = new(PCA, min(10, most), scale, seed, watch).fit(X)
        notes.append(f"{model.n_components_} components kept; on so large a table choose with -k")
        return model, model.explained_variance_ratio_
    model = new(PCA, k or "knee", scale, seed, watch).fit(X)
    ratios = model.explained_variance_ratio_ if wide else new(PCA, None, scale, seed).fit(X).explained_variance_ratio_
    if k is None and model.n_components_ == 1 < most:
        model = new(PCA, 2, scale, seed).fit(X)
    notes += why(k, model.n_components_, ratios, ratios)
    return model, ratios


def fit_with_blanks(
    X: np.ndarray, k: Any, scale: bool, seed: int, watch: Sequence[Any], notes: list[str]
) -> tuple[Any, np.ndarray]:
    """PPCA, which fills no cell in; its size is read off the spectrum with column means in the blanks."""
    n, d = X.shape
    notes.append(f"{np.isnan(X).mean():.2%} of the cells are blank: probabilistic PCA is fitted to the others")
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    guide, rough = fit_complete(filled, k, scale, seed, (), [])
    size = max(1, min(guide.n_components_, d - 1))
    if size < guide.n_components_:
        notes.append("one direction is left to the noise, which probabilistic PCA needs")
    model = new(PPCA, size, scale, seed, watch).fit(X)
    noise = np.full(max(0, min(n, d) - size), float(model.noise_variance_))
    values = np.concatenate([model.explained_variance_, noise])
    ratios = values / (model.explained_variance_.sum() + (d - size) * float(model.noise_variance_))
    notes += why(k, size, ratios, rough)
    return model, ratios


def new(cls: Callable, k: Any, scale: bool, seed: int, watch: Sequence[Any] = ()) -> Any:
    model = cls(k, scale=scale, random_state=seed)
    return model.set_callbacks(*watch) if watch else model


def why(asked: Any, k: int, ratios: np.ndarray, guide: np.ndarray) -> list[str]:
    """How the number of components came about, unless given; `guide` is the spectrum it was read off."""
    if isinstance(asked, int):
        return []
    rule = "the knee of the spectrum" if asked is None else f"the rule {asked}"
    if isinstance(asked, float):
        rule = f"the fewest that hold {asked:.0%}"
    more = int(np.searchsorted(np.cumsum(guide), 0.95 - 1e-9)) + 1
    hint = f"; -k 0.95 would keep {more}" if asked is None and k < more <= len(guide) else ""
    return [f"{k} of {len(guide)} components kept: {rule} ({ratios[:k].sum():.0%} of the variance{hint})"]
