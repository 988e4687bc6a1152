"""The first look at data that must not be negative: sums that make objectives free, and refusals with their place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import engine_for
from twofold.core.estimator import Model


class Look(NamedTuple):
    """Σ over the known cells, each row counted with its weight."""

    total: float  # Σ w x
    square: float  # Σ w x²
    logs: float  # Σ w (x log x − x)
    missing: int
    least: float


def look_at(X: Any, w: np.ndarray | None, logs: bool) -> Look:
    """What one block adds."""
    if sparse.issparse(X):
        values, weights = X.data, None if w is None else np.repeat(w, np.diff(X.indptr))
    else:
        values, weights = X, None if w is None else w[:, None]
    gaps = np.isnan(values)
    missing = int(np.count_nonzero(gaps))
    x = (np.where(gaps, 0, values) if missing else values).astype(np.float64, copy=False)
    least = float(x.min(initial=0.0))
    wx = x if weights is None else x * weights
    constant = float(np.sum(xlogy(wx, x)) - wx.sum()) if logs and least >= 0 else 0.0
    return Look(float(wx.sum()), float(np.vdot(wx, x)), constant, missing, least)


def _both(a: Look, b: Look) -> Look:
    return Look(a.total + b.total, a.square + b.square, a.logs + b.logs, a.missing + b.missing, min(a.least, b.least))


def look(model: Model, blocks: Blocks, w: np.ndarray | None, *, allow_nan: bool = False, logs: bool = False) -> Look:
    """One pass over the data; cells that cannot be used are refused by name. `logs` only where they are asked for."""
    engine = engine_for(blocks)
    seen = engine.reduce(_both, engine.map(look_at, blocks, blocks.rows(w), engine.broadcast(logs)))
    if not np.isfinite(seen.square) or (seen.missing and not allow_nan):
        model._refuse(blocks, allow_nan=allow_nan)
    if seen.least < 0 or not np.isfinite(seen.square):
        refuse_negative(type(model).__name__, blocks)
    return seen


def refuse_negative(name: str, blocks: Blocks) -> None:
    """Raise with the place of the first negative cell."""
    for i, start in enumerate(blocks.bounds[:-1]):
        X = blocks[i]
        cells = sparse.csr_array(X) if sparse.issparse(X) else X
        values = cells.data if sparse.issparse(cells) else cells.ravel()
        bad = np.flatnonzero(values < 0)
        if not len(bad):
            continue
        at = int(bad[0])
        if sparse.issparse(cells):
            row, column = int(np.searchsorted(cells.indptr, at, side="right")) - 1, int(cells.indices[at])
        else:
            row, column = divmod(at, X.shape[1])
        raise InputError(
            f"X[{int(start) + row}, {column}] is {values[at]:g}; {name} needs X >= 0. Negative values in data have no "
            "meaning here: clip it, or use PCA."
        )
