"""The main directions of a table, and every row's place along them.

PCA, or PPCA where cells are blank. A table with categories or dates becomes a matrix in which all columns have equal
weight (`common/encoding.py`), so that PCA of it is factor analysis of mixed data. By name also factor analysis,
Bayesian PCA, a deep autoencoder, Fisher's discriminant and a generalized low rank model (`methods.py`). The number of
directions is read off the spectrum unless it is given; how much of the variance they keep is measured on rows that were
not fitted, or by filling in cells that were hidden.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Unpack

import numpy as np
import polars as pl
import scipy.sparse as sp

import twofold
from twofold.analyses.common.analysis import Column, Data, Reading, Seed, analysis
from twofold.analyses.common.answer import DRAWN, FRAMES, Answer, Grid, count, strongest
from twofold.analyses.common.encoding import Encoded, encode_table, is_mixed
from twofold.analyses.common.tables import (
    about_table,
    as_table,
    beside,
    check,
    choose_scale,
    in_memory,
    rows_of,
    shape_of,
    spread,
    warnings_as_notes,
)
from twofold.analyses.common.targets import Writer
from twofold.analyses.reduce.methods import HIDDEN_CELLS, Reduced, fit_by_name, fit_glrm, hide_coded_cells, split_label
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing
from twofold.io.tables.table import Table, quote_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RULES = ("knee", "mle", "gavish-donoho", "parallel")
MIN_SHARE = 1e-12  # of the variance; less is none
WIDE, STREAMED_WIDE = 2000, 200  # columns in memory and in a file, beyond which a whole spectrum takes minutes
SAMPLE = 20_000  # rows that are enough for the held-out figure
MAX_DESCRIBED = 3  # components told in words


@dataclass(kw_only=True, repr=False, eq=False)
class Reduction(Answer):
    """A fitted reduction."""

    data: Table
    scores: np.ndarray  # (n,k)
    weights: np.ndarray  # (k,D) of the columns, or of the numbers and levels, in each component
    names: list[str]  # (D,) of what has weights
    columns: int  # of the table that were fitted
    ratios: np.ndarray  # share of the variance of each component, kept or not
    blanks: int
    standardized: bool
    seed: int

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, ".npy", *DRAWN, ".twofold")

    @property
    def k(self) -> int:
        return self.scores.shape[1]

    @property
    def heading(self) -> str:
        if self.columns == len(self.data.columns):
            return about_table(self.data, len(self.scores))
        return f"{self.source}: {count(len(self.scores), 'row')}, {count(self.columns, 'column')}"

    @property
    def outcome(self) -> str:
        return f"{count(self.k, 'component')} by {type(self.model).__name__}"

    @cached_property
    def table(self) -> pl.DataFrame:
        return beside(self.data, {f"PC{c + 1}": self.scores[:, c] for c in range(self.k)})

    def heaviest(self, c: int) -> list[tuple[str, float]]:
        """The columns, or levels of these, that weigh most in component c."""
        return strongest(self.weights[c], self.names)

    def grids(self) -> list[Grid]:
        total = np.cumsum(self.ratios)
        rows = [
            [
                f"PC{c + 1}",
                f"{self.ratios[c]:.1%}",
                float(self.ratios[c] / self.ratios[0]),
                f"{total[c]:.1%}",
                "  ".join(f"{'+' if weight > 0 else '−'}{name}" for name, weight in self.heaviest(c)),
            ]
            for c in range(self.k)
        ]
        head = ["component", "variance", "", "total", "columns that weigh most"]
        return [Grid(head, rows, right=(1, 3), rest=f"components, {total[self.k - 1]:.1%} in all")]

    def lines(self) -> list[str]:
        """Return what the first components mean, where columns are of several kinds, and the held-out figures."""
        mixed = len(self.names) != self.columns or hasattr(self.model, "encoding_")
        return [*(self.describe(c) for c in range(min(self.k, MAX_DESCRIBED)) if mixed), *self.held_out()]

    def describe(self, c: int) -> str:
        """Say in words which columns and levels make component c."""
        parts = []
        for verb, sign in (("grows with", 1), ("falls with", -1)):
            names = [name for name, weight in self.heaviest(c) if weight * sign > 0]
            if names:
                parts.append(f"{verb} {quote_names(names)}")
        return f"PC{c + 1} {' and '.join(parts)}"

    def held_out(self) -> list[str]:
        own = self.figures
        if own.get("what") == HIDDEN_CELLS:
            told = []
            if "rmse" in own:
                told.append(f"numbers miss by {own['rmse']:.2f} standard deviations ({self.baseline['rmse']:.2f})")
            if "right" in own:
                told.append(f"{own['right']:.1%} of categories are right ({self.baseline['right']:.1%})")
            return [
                f"held out: {own['cells']:,} known cells were hidden and filled in; {', '.join(told)}; in brackets "
                f"{self.baseline['method']}"
            ]
        if "rmse" in own:
            unit = " (standardized units)" if self.standardized else ""
            return [
                f"held out: {own['cells']:,} known cells were hidden and filled in; error {own['rmse']:.3g}{unit}, "
                f"column means give {self.baseline['rmse']:.3g}"
            ]
        if "accuracy" in own:
            return [
                f"held out: of {own['rows']:,} rows not fitted, {own['accuracy']:.1%} are put into their group; always "
                f"the most frequent one gives {self.baseline['accuracy']:.1%}"
            ]
        if "kept" in own:
            return [
                f"held out: of the variance in {own['rows']:,} rows not fitted, {own['kept']:.1%} is kept "
                f"({own['kept_in_fitted_rows']:.1%} in the fitted ones)"
            ]
        return ["held out: nothing, the table is too small"]

    def facts(self) -> dict[str, Any]:
        total = np.cumsum(self.ratios)
        parts = [
            {"name": f"PC{c + 1}", "variance": self.ratios[c], "total": total[c], "weights": dict(self.heaviest(c))}
            for c in range(self.k)
        ]
        return {
            "rows": len(self.scores),
            "columns": self.columns,
            "blank_cells": self.blanks,
            "model": type(self.model).__name__,
            "n_components": self.k,
            "standardized": self.standardized,
            "components": parts,
        }

    def plot(self) -> Figure:
        from twofold.plots.reports.reduce import reduction_figure

        texts = (c for c in self.data.others.iter_columns() if c.dtype == pl.String)
        group = next((c for c in texts if 2 <= c.n_unique() <= 8), None)
        return reduction_figure(
            self.ratios,
            self.k,
            self.scores,
            self.weights,
            self.names,
            title=self.heading,
            groups=None if group is None else group.fill_null("blank").to_list(),
            group_name="" if group is None else group.name,
            seed=self.seed,
        )

    def writer(self, path: Path) -> Writer:
        return (lambda to: np.save(to, self.scores)) if path.suffix.lower() == ".npy" else super().writer(path)


def parse_size(text: str) -> int | float | str:
    """A number of components from text: a count, a share of the variance, or a rule.

    >>> parse_size("3"), parse_size("95%"), parse_size("knee")
    (3, 0.95, 'knee')
    """
    if text in RULES:
        return text
    try:
        number = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if 1 <= number < math.inf and number == int(number) and not text.endswith("%"):
        return int(number)
    if 0 < number < 1:
        return number
    rules = ", ".join(RULES)
    raise InputError(f"⟨n_components={text}⟩: give a count (3), a share of the variance (0.95), or a rule: {rules}.")


@analysis(streams=True)
def reduce(
    data: Data,
    n_components: Annotated[int | float | str | None, Flag("-k", "--components", unit="K", parse=parse_size)] = None,
    *,
    method: Literal["pca", "bayesian", "fa", "ae", "fisher", "glrm"] | None = None,
    label: Column = None,
    scale: bool | None = None,
    seed: Seed = 0,
    progress: Progress | None = None,
    **reading: Unpack[Reading],
) -> Reduction:
    """Find the main directions in a table (PCA; categories, dates and blanks are fine).

    Parameters
    ----------
    data : path, list of paths, frame or array
        CSV, TSV, Parquet, JSONL, Excel, .npy, .npz, .mtx, file.db::table, a folder, a pattern, or - (stdin).
    n_components : int, float, str or None
        Number of components: a count (3), a share of the variance (0.95), or a rule: knee, mle, gavish-donoho,
        parallel. Default: knee.
    method
        PCA, which takes blanks, too; Bayesian PCA, which finds the number of components; factor analysis, where every
        column has its own noise; a deep autoencoder; Fisher's discriminant, which separates the groups of `label`; a
        generalized low rank model, in which every column has the loss of its kind. Default: pca.
    label
        Column that says which group a row belongs to, for method fisher.
    scale
        Divide columns by their standard deviations. Default: if named columns differ tenfold in spread, or some hold
        categories or dates.

    Returns
    -------
    Reduction
        ``table`` holds row names, columns set aside, and PC1, PC2, ...

    Examples
    --------
    >>> from twofold import datasets
    >>> answer = reduce(datasets.wine().data, 2, scale=True)
    >>> answer.table.columns
    ['PC1', 'PC2']

    Categories count like numbers, and are named by their levels:

    >>> import polars as pl
    >>> size = [12.5, 13.0, 12.1, 61.0, 57.5, 60.2, 30.3, 31.0, 29.5]
    >>> kind = ["finch"] * 3 + ["gull"] * 3 + ["crow"] * 3
    >>> reduce(pl.DataFrame({"size": size, "kind": kind}), 1).lines()[0]
    'PC1 grows with "size", "kind = gull" and falls with "kind = finch"'
    """
    if (label is None) == (method == "fisher"):
        raise InputError("⟨method=fisher⟩ and ⟨label⟩ go together: it separates the groups of that column.")
    with doing("reading"):
        table = as_table(data, **reading)
        table, y = (table, None) if label is None else split_label(table, label)
    notes = table.notes
    if method == "glrm" or is_mixed(table, label):
        encoded = encode_columns(table, scale, label, method in ("bayesian", "fa", "fisher"))
        X, names = encoded.matrix, encoded.encoding.names
        standardized, blanks = scale is not False, int(np.isnan(encoded.cells).sum())
        n, d = X.shape
        check_size(n_components, n, d, table)
    else:
        encoded, X = None, in_memory(table)
        n, d = shape_of(X)
        check_size(n_components, n, d, table)
        check(X, n, table, "reduce")
        names = table.columns
        standardized = choose_scale(scale, X, table)
        blanks = int(np.isnan(X).sum()) if isinstance(X, np.ndarray) else 0
    divide = standardized and encoded is None
    if method in (None, "pca"):
        found = fit_pca(X, n_components, divide, blanks, seed, notes, encoded)
    else:
        with doing("fitting"):
            if encoded is not None and method == "glrm":
                found = fit_glrm(encoded, n_components, seed, notes)
            else:
                found = fit_by_name(method, X, y, n_components, divide, seed, table, names)
    model = found.model
    if table.named and not hasattr(model, "encoding_"):
        model.feature_names_in_ = np.array(names, dtype=object)
        if encoded is not None:
            model.encoding_ = encoded.encoding.as_lists()
    return Reduction(
        source=table.source,
        model=model,
        figures=found.figures,
        baseline=found.baseline,
        notes=notes,
        chosen={"n_components": found.scores.shape[1], "scale": standardized},
        data=table,
        scores=found.scores,
        weights=found.weights,
        names=names,
        columns=len(names) if encoded is None else len(encoded.encoding.columns),
        ratios=found.ratios,
        blanks=blanks,
        standardized=standardized,
        seed=seed,
    )


def check_size(k: Any, n: int, d: int, table: Table) -> None:
    if isinstance(k, int) and n > 1 and k > min(n, d):
        raise InputError(f"{k} components: {table.source} has {n} rows and {d} number columns, so at most {min(n, d)}.")


def encode_columns(table: Table, scale: bool | None, label: str | None, independent: bool) -> Encoded:
    """A table of several kinds of columns as numbers; one in which nothing varies is refused."""
    if not isinstance(table.numbers, np.ndarray):
        why = "too large for memory" if isinstance(table.numbers, Path) else "sparse"
        raise InputError(f"⟨method=glrm⟩: {table.source} is {why}. PCA takes it as it is: leave ⟨method⟩ out.")
    encoded = encode_table(table, scale is not False, label, independent)
    if len(encoded.cells) < 2:
        raise InputError(f"{table.source} has one row; at least two are needed to see how rows differ.")
    if not encoded.encoding.features:
        raise InputError(f"{table.source}: every column is constant, so there is nothing to reduce.")
    if scale is not False:
        table.notes.append(
            "numbers are standardized and levels divided by √share, so that every column has equal weight"
        )
    return encoded


def fit_pca(
    X: Any, n_components: Any, standardized: bool, blanks: int, seed: int, notes: list[str], encoded: Encoded | None
) -> Reduced:
    """PCA, or PPCA where cells are blank, and how good it is on what it has not seen."""
    with warnings_as_notes(notes):
        fit = fit_with_blanks if blanks else fit_complete
        model, ratios = fit(X, n_components, standardized, seed, notes)
        scores = np.asarray(model.transform(X))
    with doing("measuring"):
        n, k = len(scores), scores.shape[1]
        unit = spread(X) if standardized else None  # the held-out figure is in standardized units too
        if not blanks:
            figures, baseline = hide_rows(X, unit, n, k, seed, notes)
        elif encoded is None:
            figures, baseline = hide_cells(X if unit is None else X / unit, n, k, seed, notes)
        else:
            encoding = encoded.encoding

            def fill(shown: np.ndarray) -> np.ndarray:
                E = encoding.encode(shown)
                return encoding.decode(twofold.PPCA(k, tol=1e-5, random_state=seed).fit(E).impute(E))

            figures, baseline = hide_coded_cells(encoded.cells, encoding, fill, seed, notes)
    return Reduced(model, scores, ratios, model.components_, figures, baseline)


# --- the fit ------------------------------------------------------------------------------------------------


def fit_complete(X: Any, k: Any, scale: bool, seed: int, notes: list[str]) -> tuple[Any, np.ndarray]:
    """PCA with the number of components asked for, or found; and as much of the spectrum as is cheap."""
    most = min(shape_of(X))
    wide = most > (STREAMED_WIDE if isinstance(X, Path) else WIDE)
    if k is None and wide:
        model = new(twofold.PCA, min(10, most), scale, seed).fit(X)
        notes.append(f"{model.n_components_} components kept; on so large a table choose with ⟨n_components⟩")
        return model, model.explained_variance_ratio_
    model = new(twofold.PCA, k or "knee", scale, seed).fit(X)
    whole = model if wide else new(twofold.PCA, None, scale, seed).fit(X)
    ratios = whole.explained_variance_ratio_
    if k is None and model.n_components_ == 1 < most and ratios[1] > MIN_SHARE:
        model = new(twofold.PCA, 2, scale, seed).fit(X)
    notes += why(k, model.n_components_, ratios, ratios)
    return model, ratios


def fit_with_blanks(X: np.ndarray, k: Any, scale: bool, seed: int, notes: list[str]) -> tuple[Any, np.ndarray]:
    """PPCA, which fills no cell in; its size is read off the spectrum with column means in the blanks."""
    n, d = X.shape
    notes.append(f"{np.isnan(X).mean():.2%} of the cells are blank: probabilistic PCA is fitted to the others")
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    guide, rough = fit_complete(filled, k, scale, seed, [])
    size = max(1, min(guide.n_components_, d - 1))
    if size < guide.n_components_:
        notes.append("one direction is left to the noise, which probabilistic PCA needs")
    model = new(twofold.PPCA, size, scale, seed).fit(X)
    noise = np.full(max(0, min(n, d) - size), float(model.noise_variance_))
    values = np.concatenate([model.explained_variance_, noise])
    ratios = values / (model.explained_variance_.sum() + (d - size) * float(model.noise_variance_))
    notes += why(k, size, ratios, rough)
    return model, ratios


def new(cls: Callable, k: Any, scale: bool, seed: int) -> Any:
    return cls(k, scale=scale, random_state=seed)


def why(asked: Any, k: int, ratios: np.ndarray, guide: np.ndarray) -> list[str]:
    """Explain how the number of components was chosen, unless given; `guide` is the spectrum it was read off."""
    if isinstance(asked, int):
        return []
    rule = "the knee of the spectrum" if asked is None else f"the rule {asked}"
    if isinstance(asked, float):
        rule = f"the fewest that hold {asked:.0%}"
    more = int(np.searchsorted(np.cumsum(guide), 0.95 - 1e-9)) + 1
    hint = f"; -k 0.95 would keep {more}" if asked is None and k < more <= len(guide) else ""
    return [f"{k} of {len(guide)} components kept: {rule} ({ratios[:k].sum():.0%} of the variance{hint})"]


# --- how good it is on what it has not seen -----------------------------------------------------------------


def hide_rows(
    X: Any, unit: np.ndarray | None, n: int, k: int, seed: int, notes: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit on nine rows in ten, and see how much of the others' variance about the fitted mean survives."""
    from twofold.core.seeds import generator

    tenth = min(n, SAMPLE) // 10
    if tenth < 1 or min(n, SAMPLE) - tenth <= k:
        notes.append(f"too few rows ({n}) to hold any out")
        return {}, {}
    order = generator(seed, 1).permutation(n)[:SAMPLE]
    if isinstance(X, Path):
        places = np.argsort(np.argsort(order))
        X, order = rows_of(X, np.sort(order)).astype(np.float64), places
    test, train = X[order[:tenth]], X[order[tenth:]]
    if unit is not None:
        test, train = (
            sp.csr_array(A @ sp.diags_array(1 / unit)) if sp.issparse(A) else A / unit for A in (test, train)
        )
    model = twofold.PCA(k, random_state=seed).fit(train)
    figures = {
        "what": "share of the variance that is kept in rows not fitted",
        "rows": tenth,
        "kept": kept(model, test),
        "kept_in_fitted_rows": kept(model, train),
    }
    return figures, {"method": "the mean of all rows", "kept": 0.0}


def kept(model: Any, X: Any) -> float:
    """1 − ‖X − X̂‖² / ‖X − mean‖², by Pythagoras from the scores, so sparse rows stay sparse."""
    squares = X.multiply(X).sum() if sp.issparse(X) else np.square(X).sum()
    centered = squares - 2 * float(np.sum(X @ model.mean_)) + X.shape[0] * float(model.mean_ @ model.mean_)
    return float(np.square(model.transform(X)).sum() / centered) if centered > 0 else float("nan")


def hide_cells(X: np.ndarray, n: int, k: int, seed: int, notes: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hide one known cell in twenty, fill it in, and compare with filling in the column's mean."""
    from twofold.core.seeds import generator

    rng = generator(seed, 1)
    X = X[rng.permutation(n)[:SAMPLE]]
    hidden = ~np.isnan(X) & (rng.random(X.shape) < 0.05)
    hidden[:, (~np.isnan(X) & ~hidden).sum(axis=0) < 2] = False  # a column needs something to learn from
    if not hidden.any():
        notes.append("too few cells to hide any")
        return {}, {}
    shown = np.where(hidden, np.nan, X)
    with warnings_as_notes([]):
        model = twofold.PPCA(k, tol=1e-5, random_state=seed).fit(shown)  # a figure needs no more digits
    filled, means = model.impute(shown), np.broadcast_to(np.nanmean(shown, axis=0), X.shape)

    def rmse(guess: np.ndarray) -> float:
        return float(np.sqrt(np.mean(np.square(guess[hidden] - X[hidden]))))

    figures = {"what": "root mean square error on hidden cells", "cells": int(hidden.sum()), "rmse": rmse(filled)}
    return figures, {"method": "column means", "rmse": rmse(means)}
