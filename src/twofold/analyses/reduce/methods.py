"""Reductions other than PCA, by name: fit, share of the variance, and a figure on rows that were not fitted.

bayesian   Bayesian PCA, which switches off the directions that are not there
fa         factor analysis: every column has a noise of its own
ae         a deep autoencoder: codes that need not be linear
fisher     the directions along which the groups of a label column lie farthest apart
glrm       a generalized low rank model: every column has the loss of its kind
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import scipy.sparse as sp

import twofold
from twofold.analyses.common.encoding import WEEKDAYS, Encoded, Encoding, find_plain_encoding
from twofold.analyses.common.tables import spread, warnings_as_notes
from twofold.core.checks import InputError
from twofold.io.tables.roles import Column
from twofold.io.tables.table import Table, check_names

if TYPE_CHECKING:
    from twofold.factors import Loss

SAMPLE = 20_000  # rows that are enough for the held-out figure
HIDDEN_SHARE = 0.05  # of the known cells, for that figure
HIDDEN_CELLS = "hidden cells of a table of several kinds of columns"
GLRM_RIDGE = 10.0  # on both factors, where a cell costs 1 at the best constant; see bench/factors_mixed.py


class Reduced(NamedTuple):
    """A fitted reduction, and what is told about it."""

    model: Any
    scores: np.ndarray  # (n,k)
    ratios: np.ndarray  # (k,) of the variance of X, read off the scores
    weights: np.ndarray  # (k,d) correlations of columns and scores
    figures: dict[str, Any]
    baseline: dict[str, Any]


def split_label(table: Table, name: str) -> tuple[Table, np.ndarray]:
    """The table without its label column, and that column; a row without a label is refused."""
    found = list(table.columns) + table.others.columns + ([] if table.ids is None else [table.ids.name])
    check_names("label", [name], found, table.source)
    if name in table.columns:
        if isinstance(table.numbers, Path):
            raise InputError(f"⟨label={name}⟩: {table.source} is too large to take a column of numbers out of it.")
        j = table.columns.index(name)
        X: Any = table.array()
        column = pl.Series(name, np.asarray(X[:, [j]].todense() if sp.issparse(X) else X[:, j]).ravel())
        kept = [i for i in range(len(table.columns)) if i != j]
        table.numbers, table.columns = X[:, kept], [table.columns[i] for i in kept]
        if (column == column.round()).all():
            column = column.cast(pl.Int64)
        table.others = pl.DataFrame([*table.others.iter_columns(), column])
    column = table.ids if table.ids is not None and table.ids.name == name else table.others[name]
    blank = np.flatnonzero((column.fill_nan(None) if column.dtype.is_float() else column).is_null().to_numpy())
    if len(blank):
        raise InputError(f'{table.source}, row {blank[0] + 1}: "{name}" is blank. Every row needs a label.')
    return table, column.to_numpy()


def fit_by_name(
    method: str,
    X: Any,
    y: np.ndarray | None,
    k: Any,
    scale: bool,
    seed: int,
    table: Table,
    names: list[str] | None = None,
) -> Reduced:
    """Fit one of the methods to a table in memory."""
    if not isinstance(X, np.ndarray):
        why = "too large for memory" if isinstance(X, Path) else "sparse"
        raise InputError(f"⟨method={method}⟩: {table.source} is {why}. PCA takes it as it is: leave ⟨method⟩ out.")
    blank = np.isnan(X)
    names = table.columns if names is None else names
    if blank.any() and method in ("ae", "fisher"):
        i, j = np.argwhere(blank)[0]
        raise InputError(
            f'⟨method={method}⟩: {table.source}, row {i + 1}, column "{names[j]}" is blank. Fill the blanks '
            "first, with twofold complete, or take ⟨method=fa⟩, which needs no filling."
        )
    s = spread(X) if scale and method in ("bayesian", "ae") else np.ones(X.shape[1])
    size = choose_size(method, X / spread(X) if scale else X, y, k, seed, table.notes)

    def fit(rows: np.ndarray, labels: np.ndarray | None) -> Any:
        return make(method, size, seed).fit(rows, *(() if labels is None else (labels,)))

    with warnings_as_notes(table.notes):
        model = fit(X / s, y)
        scores = np.asarray(model.transform(X / s), dtype=np.float64)
        figures, baseline = measure(method, X / s, y, fit, seed, table.notes)
    if scale and method in ("bayesian", "ae"):
        model = model.rescaled(s)
    filled = np.where(blank, np.nanmean(X, axis=0), X)
    ratios, weights = explain(filled / spread(X) if scale else filled, scores)
    return Reduced(model, scores, ratios, weights, figures, baseline)


def make(method: str, k: int | None, seed: int) -> Any:
    if method == "fisher":
        return twofold.FisherLDA(k)
    if method == "ae":
        return twofold.Autoencoder(k or 2, hidden_layer_sizes=(128, 64), max_iter=200, random_state=seed)
    return (twofold.BayesianPCA if method == "bayesian" else twofold.FactorAnalysis)(k, random_state=seed)


def choose_size(method: str, X: np.ndarray, y: np.ndarray | None, k: Any, seed: int, notes: list[str]) -> int | None:
    """Return the number asked for; else the one that the method finds, or the knee of the spectrum."""
    if isinstance(k, int):
        return k
    if method == "fisher" and k is None:
        return None
    if method == "bayesian" and k is None:
        return None
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    found = max(twofold.PCA("knee" if k is None else k, random_state=seed).fit(filled).n_components_, 1)
    found = min(found, X.shape[1] - 1) if method == "fa" else found
    notes.append(f"{found} components: {'the knee of the spectrum' if k is None else f'by {k}, as PCA counts them'}")
    return found


def explain(X: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The share of the variance of X that each score adds to those before it, and its correlations with columns."""
    Y, U = X - X.mean(axis=0), scores - scores.mean(axis=0)
    Q, R = np.linalg.qr(U)
    Q[:, np.abs(np.diag(R)) <= 1e-12 * max(np.abs(np.diag(R)).max(initial=0.0), 1e-300)] = 0.0
    ratios = ((Q.T @ Y) ** 2).sum(axis=1) / max(float((Y**2).sum()), 1e-300)
    lengths = np.linalg.norm(U, axis=0)[:, None] * np.linalg.norm(Y, axis=0)
    return ratios, np.divide(U.T @ Y, lengths, out=np.zeros((U.shape[1], Y.shape[1])), where=lengths > 0)


def measure(
    method: str, X: np.ndarray, y: np.ndarray | None, fit: Any, seed: int, notes: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """On a tenth of the rows, fitted without them: rows put into their group, or variance kept."""
    from twofold.core.seeds import generator

    order = generator(seed, 1).permutation(len(X))[:SAMPLE]
    tenth = len(order) // 10
    test, train = order[:tenth], order[tenth:]
    if tenth < 1 or np.isnan(X).any() or (y is not None and len(np.unique(y[train])) < len(np.unique(y))):
        notes.append("nothing is held out: blanks, or too few rows")
        return {}, {}
    model = fit(X[train], None if y is None else y[train])
    if y is not None:
        values, counts = np.unique(y[train], return_counts=True)
        right = float(np.mean(model.predict(X[test]) == y[test]))
        usual = float(np.mean(y[test] == values[counts.argmax()]))
        figures = {"what": "share of rows not fitted that are put into their group", "rows": tenth, "accuracy": right}
        return figures, {"method": "the most frequent group", "accuracy": usual}

    def variance_kept(rows: np.ndarray) -> float:
        off = rows - model.inverse_transform(model.transform(rows))
        return 1 - float((off**2).sum() / ((rows - X[train].mean(axis=0)) ** 2).sum())

    what = "share of the variance that is kept in rows not fitted"
    figures = {
        "what": what,
        "rows": tenth,
        "kept": variance_kept(X[test]),
        "kept_in_fitted_rows": variance_kept(X[train]),
    }
    return figures, {"method": "the mean of all rows", "kept": 0.0}


# --- a loss for each column ---------------------------------------------------------------------------------


def fit_glrm(encoded: Encoded, k: Any, seed: int, notes: list[str]) -> Reduced:
    """A generalized low rank model of the coded columns, turned so that its directions are in order of their size.

    Both ridges are the same for every turn of the factors, so the turned model is at the same optimum.
    """
    if k is not None and not isinstance(k, int):
        raise InputError(f"⟨n_components={k}⟩: ⟨method=glrm⟩ has no spectrum to read a number off. Give a count.")
    encoding, X, _ = encoded
    plain = find_plain_encoding(X, encoding.columns)
    kinds = [loss_of(f.part, plain.columns[j]) for f, j in zip(plain.features, plain.owners, strict=True)]
    size = k or min(2, *X.shape)
    if k is None:
        notes.append(f"{size} components, as many as a picture shows; ⟨n_components⟩ gives more")

    def fit(rows: np.ndarray) -> Any:
        ridge = twofold.factors.Ridge(GLRM_RIDGE)
        model = twofold.Factorization(
            size, loss=kinds, left=ridge, right=ridge, intercept=True, scale=True, random_state=seed
        )
        return model.fit(plain.encode(rows))

    with warnings_as_notes(notes):
        model = fit(X)
    scores = np.asarray(model.transform(plain.encode(X)))
    turn = np.linalg.svd(scores - scores.mean(axis=0), full_matrices=False)[2]
    model.components_, scores = turn @ model.components_, scores @ turn.T
    model.encoding_ = plain.as_lists()
    model.feature_names_in_ = np.array(plain.names, dtype=object)
    ratios, weights = explain(np.nan_to_num(encoded.matrix), scores)

    def fill(shown: np.ndarray) -> np.ndarray:
        return plain.decode(fit(shown).complete(plain.encode(shown)))

    figures, baseline = hide_coded_cells(X, encoding, fill, seed, notes)
    return Reduced(model, scores, ratios, weights, figures, baseline)


def loss_of(part: str, column: Column) -> Loss:
    """The loss of a column's kind."""
    from twofold.factors import Categorical, Logistic, Ordinal, Squared

    if part == "weekday":
        return Categorical(len(WEEKDAYS))
    if column.role == "flag":
        return Logistic()
    if column.role == "category":
        return Categorical(len(column.levels))
    return Ordinal(len(column.levels)) if column.role == "ordered" else Squared()


# --- held-out cells of a table of several kinds -------------------------------------------------------------


def hide_coded_cells(
    X: np.ndarray, encoding: Encoding, fill: Callable[[np.ndarray], np.ndarray], seed: int, notes: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hide one known cell in twenty of coded columns (n,d), fill them, and compare with means and frequent levels."""
    from twofold.core.seeds import generator

    rng = generator(seed, 1)
    X = X[rng.permutation(len(X))[:SAMPLE]]
    hidden = ~np.isnan(X) & (rng.random(X.shape) < HIDDEN_SHARE)
    shown = np.where(hidden, np.nan, X)
    varies = [len(np.unique(column[~np.isnan(column)])) > 1 for column in shown.T]  # something is left to learn from
    hidden &= np.array(varies)
    if not hidden.any():
        notes.append("too few cells to hide any")
        return {}, {}
    shown = np.where(hidden, np.nan, X)
    with warnings_as_notes([]):
        filled = fill(shown)
    errors: dict[str, list[np.ndarray]] = {"model": [], "trivial": []}
    right: dict[str, list[np.ndarray]] = {"model": [], "trivial": []}
    for j, column in enumerate(encoding.columns):
        here, known = hidden[:, j], shown[~np.isnan(shown[:, j]), j]
        truth = X[here, j]
        if column.levels:
            values, counts = np.unique(known, return_counts=True)
            right["model"].append(filled[here, j] == truth)
            right["trivial"].append(truth == values[counts.argmax()])
        else:
            errors["model"].append((filled[here, j] - truth) / known.std() if len(known) else truth[:0])
            errors["trivial"].append((known.mean() - truth) / known.std() if len(known) else truth[:0])
    figures: dict[str, Any] = {"what": HIDDEN_CELLS, "cells": int(hidden.sum())}
    baseline: dict[str, Any] = {"method": "column means and the most frequent levels"}
    for into, who in ((figures, "model"), (baseline, "trivial")):
        if sum(map(len, errors[who])):
            into["rmse"] = float(np.sqrt(np.mean(np.concatenate(errors[who]) ** 2)))
        if sum(map(len, right[who])):
            into["right"] = float(np.mean(np.concatenate(right[who])))
    return figures, baseline
