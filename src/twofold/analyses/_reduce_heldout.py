"""How a reduction does on what it has not seen: rows held out, or cells hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from twofold import PCA, PPCA
from twofold.core.seeds import generator

SAMPLE = 20_000  # rows that are enough for the figure


def hide_rows(X: Any, n: int, k: int, seed: int, notes: list[str]) -> dict[str, Any]:
    """Fit on nine rows in ten, and see how much of the others' variance about the fitted mean survives."""
    tenth = min(n, SAMPLE) // 10
    if tenth < 1 or min(n, SAMPLE) - tenth <= k:
        notes.append(f"too few rows ({n}) to hold any out")
        return {}
    order = generator(seed, 1).permutation(n)[:SAMPLE]
    if isinstance(X, Path):
        if X.suffix != ".npy":
            notes.append("nothing is held out of a streamed Parquet file")
            return {}
        X = np.load(X, mmap_mode="r")[np.sort(order)].astype(np.float64)
        order = generator(seed, 2).permutation(len(X))
    test, train = X[order[:tenth]], X[order[tenth:]]
    model = PCA(k, random_state=seed).fit(train)
    return {
        "what": "variance kept in rows not fitted",
        "rows": tenth,
        "kept": kept(model, test),
        "kept_in_fitted_rows": kept(model, train),
    }


def kept(model: Any, X: Any) -> float:
    """1 − ‖X − X̂‖² / ‖X − mean‖², by Pythagoras from the scores, so sparse rows stay sparse."""
    squares = X.multiply(X).sum() if sp.issparse(X) else np.square(X).sum()
    centred = squares - 2 * float(np.sum(X @ model.mean_)) + X.shape[0] * float(model.mean_ @ model.mean_)
    return float(np.square(model.transform(X)).sum() / centred) if centred > 0 else float("nan")


def hide_cells(X: np.ndarray, n: int, k: int, seed: int, notes: list[str]) -> dict[str, Any]:
    """Hide one known cell in twenty, fill it in, and compare with filling in the column's mean."""
    rng = generator(seed, 1)
    X = X[rng.permutation(n)[:SAMPLE]]
    hidden = ~np.isnan(X) & (rng.random(X.shape) < 0.05)
    hidden[:, (~np.isnan(X) & ~hidden).sum(axis=0) < 2] = False  # a column needs something to learn from
    if not hidden.any():
        notes.append("too few cells to hide any")
        return {}
    shown = np.where(hidden, np.nan, X)
    filled = PPCA(k, tol=1e-5, random_state=seed).fit(shown).impute(shown)  # a figure needs no more digits
    means = np.broadcast_to(np.nanmean(shown, axis=0), X.shape)

    def rmse(guess: np.ndarray) -> float:
        return float(np.sqrt(np.mean(np.square(guess[hidden] - X[hidden]))))

    return {
        "what": "root mean square error on hidden cells",
        "cells": int(hidden.sum()),
        "rmse": rmse(filled),
        "rmse_column_means": rmse(means),
    }
