"""z-scores of rows or of columns over their known cells, and the way back.

    z_ij = (x_ij − c_l) / s_l              l the line of the cell: its row i, or its column j
    x̂_ij = c_l + s_l ẑ_ij

    c_l = mean of the line's n_l known cells
    s_l = s (σ_l / s)^(ν / (ν + 5))        ν = n_l − 1,  σ_l deviation of the line,  s that within all lines together

So a line with one known cell has the common deviation s, one with many its own. A line whose cells are all equal has
s as well, and one without a known cell the mean of all; s is 1 where no line has a deviation. The shrinkage is of
ratios, so that columns in units of their own keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.data.known_cells import Observed

HALF_OWN_CELLS = 5.0  # known cells, beyond the first, at which a line's deviation counts half


def compute_means(line: np.ndarray, count: int, x: np.ndarray, w: np.ndarray, otherwise: float) -> np.ndarray:
    """The weighted mean of each line, or `otherwise` where nothing is known."""
    mass = np.bincount(line, w, count)
    return np.where(mass > 0, np.bincount(line, w * x, count) / np.where(mass > 0, mass, 1.0), otherwise)


def compute_moments(
    line: np.ndarray, count: int, x: np.ndarray, w: np.ndarray, mean: float, spread: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each line; `spread` where a line's own cells are all equal."""
    center = compute_means(line, count, x, w, mean)
    variance = compute_means(line, count, (x - center[line]) ** 2, w, 0.0)
    own = variance > 1e-24 * center**2  # more than rounding
    return center, np.where(own, np.sqrt(variance), spread)


def pool_deviations(line: np.ndarray, count: int, x: np.ndarray, w: np.ndarray) -> float:
    """The deviation of cells around the mean of their line, all lines together; 1 if there is none."""
    gaps = x - compute_means(line, count, x, w, 0.0)[line]
    spread = float(np.sqrt(np.average(gaps**2, weights=w)))
    return spread if spread > 1e-12 * float(np.abs(x).max()) else 1.0


class Normalization(NamedTuple):
    """How the known cells were standardized: one center and one scale a line, and those of all lines."""

    side: str  # "row" or "column"
    center: np.ndarray  # (lines,)
    scale: np.ndarray  # (lines,)
    mean: float
    spread: float

    @property
    def by_row(self) -> bool:
        return self.side == "row"

    def fits(self, n: int, d: int) -> bool:
        """Return True if this can be the normalization of a table (n,d); a file may hold anything."""
        lines = {"row": n, "column": d}.get(str(self.side))
        arrays = [a for a in (self.center, self.scale) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
        numbers = isinstance(self.mean, float) and isinstance(self.spread, float)
        if not numbers or [a.shape for a in arrays] != [(lines,)] * 2:
            return False
        finite = all(np.isfinite(a).all() for a in [*arrays, np.array([self.mean, self.spread])])
        return bool(finite and (self.scale > 0).all() and self.spread > 0)

    def measure(self, X: sparse.csr_array) -> Normalization:
        """That of other lines of the same side, from their known cells."""
        line, count = list_lines(X, self.side)
        return measure_lines(X, np.ones(X.nnz), np.bincount(line, minlength=count), self)

    def of_new(self, X: sparse.csr_array) -> Normalization:
        """That of new rows: their own where rows are standardized, the columns' where columns are."""
        return self.measure(X) if self.by_row else self

    def take(self, lines: np.ndarray) -> Normalization:
        """That of some of the lines."""
        return self._replace(center=self.center[lines], scale=self.scale[lines])

    def join(self, new: Normalization) -> Normalization:
        """More lines after these."""
        center, scale = (np.concatenate(pair) for pair in ((self.center, new.center), (self.scale, new.scale)))
        return self._replace(center=center.astype(self.center.dtype), scale=scale.astype(self.scale.dtype))

    def standardize(self, X: sparse.csr_array) -> sparse.csr_array:
        """z of the known cells."""
        line, _ = list_lines(X, self.side)
        z = (X.data.astype(np.float64) - self.center[line]) / self.scale[line]
        return sparse.csr_array((z.astype(X.dtype), X.indices, X.indptr), shape=X.shape)

    def restore(self, Z: np.ndarray) -> np.ndarray:
        """(m,d) whole rows of z as values."""
        center, scale = (self.center[:, None], self.scale[:, None]) if self.by_row else (self.center, self.scale)
        return (center + scale * Z).astype(Z.dtype, copy=False)


def list_lines(X: sparse.csr_array, side: str) -> tuple[np.ndarray, int]:
    """The line of every known cell, and how many lines there are."""
    if side == "row":
        return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.shape[0]
    return X.indices, X.shape[1]


def normalize_cells(cells: Observed, side: str) -> Normalization:
    """The lines of a table, as its known cells and their weights have them."""
    x, w = cells.X.data.astype(np.float64), cells.W.data.astype(np.float64)
    line, count = list_lines(cells.X, side)
    # A weight stands for as many rows: they add to what is known of a column, and not of a row.
    seen = np.bincount(line, w if side == "column" else None, count)
    none = np.empty(0)
    plain = Normalization(side, none, none, float(np.average(x, weights=w)), pool_deviations(line, count, x, w))
    return measure_lines(cells.X, w, seen, plain)


def measure_lines(X: sparse.csr_array, w: np.ndarray, seen: np.ndarray, plain: Normalization) -> Normalization:
    """Centers and scales of the lines of X, in its precision; `seen` (lines,) is how many cells each has."""
    line, count = list_lines(X, plain.side)
    center, deviation = compute_moments(line, count, X.data.astype(np.float64), w, plain.mean, plain.spread)
    free = np.maximum(seen - 1.0, 0.0)
    scale = plain.spread * (deviation / plain.spread) ** (free / (free + HALF_OWN_CELLS))
    return plain._replace(center=center.astype(X.dtype), scale=scale.astype(X.dtype))


def fold_standardized(X: sparse.csr_array, lines: Normalization, fold: Callable, state: tuple) -> np.ndarray:
    """Codes of new rows by their z-scores; where those are the rows', center and scale in two more columns."""
    own = lines.of_new(X)
    codes = fold(own.standardize(X), *state)
    return np.column_stack([codes, own.center, own.scale]).astype(codes.dtype) if lines.by_row else codes


def restore_values(codes: np.ndarray, lines: Normalization, value: Callable, shared: Any) -> np.ndarray:
    """(m,d) what the codes of `fold_standardized` stand for."""
    if lines.by_row:
        codes, lines = codes[:, :-2], lines._replace(center=codes[:, -2], scale=codes[:, -1])
    return lines.restore(value(codes, *shared))
