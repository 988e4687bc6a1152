"""Known cells put aside while a model is being chosen, and whether one model is better than another on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.core.data.known_cells import Observed, keep_stored, see_both_sides

MIN_SHARE, MAX_SHARE = 0.1, 0.25  # share of the known cells put aside
TARGET_CELLS = 2000  # cells put aside where that share allows
MIN_CELLS = 20  # fewer decide nothing


class Held(NamedTuple):
    """Cells put aside, their values and weights."""

    rows: np.ndarray
    cols: np.ndarray
    x: np.ndarray
    w: np.ndarray

    def losses(self, predicted: np.ndarray) -> np.ndarray:
        """w (x − x̂)², one a cell."""
        return self.w * (self.x - predicted) ** 2


def hold_out(cells: Observed, rng: np.random.Generator) -> tuple[Observed, Held]:
    """The other cells, and some put aside by chance: a tenth, or up to a quarter where cells are few."""
    X, W = cells.X, cells.W
    share = float(np.clip(TARGET_CELLS / X.nnz, MIN_SHARE, MAX_SHARE))
    out = rng.permutation(X.nnz) < int(share * X.nnz)
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[out]
    held = Held(row, X.indices[out], X.data[out].astype(np.float64), W.data[out].astype(np.float64))
    return see_both_sides(keep_stored(X, ~out), keep_stored(W, ~out)), held


def is_better(before: np.ndarray, after: np.ndarray, errors: float) -> bool:
    """Return True if the mean loss falls by more than `errors` standard errors, cells compared in pairs."""
    gain = before - after
    return bool(gain.mean() > errors * gain.std() / np.sqrt(len(gain)))
