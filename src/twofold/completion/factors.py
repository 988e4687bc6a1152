"""What models with a row factor and a column factor share.

    x̂_ij = m + c_j + b_i + ⟨u_i, z_j⟩

    U (n,k) row_factors_    Z (k,d) components_    b (n,) row_bias_    c (d,) column_bias_    m mean_

New rows are ridge regressions on the columns' factors, so a fitted row folded in again gets its own factor back.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval

from twofold.completion.base import Completion
from twofold.core.checks import InputError
from twofold.core.engine import Engine
from twofold.core.observed import Observed, Side
from twofold.kernels import ridge as kernels

FREE = -1e30  # a floor that binds nothing


class Ridge(NamedTuple):
    """How a row's regression is held: λ, whether times its known cells, and a lowest value for every feature."""

    lam: float
    scaled: bool
    floor: np.ndarray | None = None


class Factors(Completion):
    """Base class: prediction and fold-in from factors and biases."""

    components_: np.ndarray
    row_factors_: np.ndarray
    row_bias_: np.ndarray
    column_bias_: np.ndarray
    mean_: float
    n_components: int | None
    _default_components: ClassVar[int] = 20
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def _rank(self, shape: tuple[int, int]) -> int:
        """n_components, checked against the table; None means the default, or the columns if fewer."""
        wanted, most = self.n_components, min(shape)
        if wanted is None:
            return min(self._default_components, shape[1])
        if wanted > most:
            raise InputError(
                f"n_components={wanted} is more than a table of shape {shape} can have; at most {most}. Lower it."
            )
        return int(wanted)

    def _ridge(self) -> Ridge:
        """How new rows are regressed on the columns' factors."""
        raise NotImplementedError

    def _folding(self) -> tuple[Callable, tuple]:
        Z = np.ascontiguousarray(self.components_.T)
        seen = with_unit(Z, self._unit()) if getattr(self, "biases", False) else Z
        return fold_rows, (seen, self.column_bias_ + Z.dtype.type(self.mean_), self._ridge())

    def _unit(self) -> float:
        """The value of the bias's feature: √ of the data's spread, so that one ridge suits factors and biases."""
        return float(np.sqrt(getattr(self, "spread_", 1.0)))

    def fold_in(self, X: Any) -> np.ndarray:
        """The factors (m,k) of new rows given their known cells; those of a fitted row are the ones it has."""
        return np.ascontiguousarray(super().fold_in(X)[:, : len(self.components_)])

    def _valuing(self) -> tuple[Callable, tuple]:
        return values, (self.components_, self.column_bias_ + self.components_.dtype.type(self.mean_), self._unit())

    def _trained(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        out = self.row_bias_[rows] + self.column_bias_[cols] + self.components_.dtype.type(self.mean_)
        for start in range(0, len(rows), 2**16):
            at = slice(start, start + 2**16)
            out[at] += np.einsum("tk,kt->t", self.row_factors_[rows[at]], self.components_[:, cols[at]])
        return out


def with_unit(Z: np.ndarray, unit: float) -> np.ndarray:
    """A last column of one value, whose coefficient is a bias."""
    return np.column_stack([Z, np.full(len(Z), unit, Z.dtype)])


def values(codes: np.ndarray, Z: np.ndarray, offset: np.ndarray, unit: float) -> np.ndarray:
    """(m,d) what codes (m,k), or (m,k+1) with a bias last, stand for."""
    k = len(Z)
    out = codes[:, :k] @ Z + offset
    return out + codes[:, k:] * codes.dtype.type(unit) if codes.shape[1] > k else out


def fold_rows(X: sparse.csr_array, Z: np.ndarray, offset: np.ndarray, ridge: Ridge) -> np.ndarray:
    """Ridge regressions of new rows (m,d) on the columns' features Z (d,p)."""
    ones, start = np.ones(len(X.data), Z.dtype), np.zeros((X.shape[0], Z.shape[1]), Z.dtype)
    return solve_rows(X, ones, start, None, Z, offset, ridge)[0]


def spread_of(cells: Observed) -> tuple[float, float]:
    """Mean and standard deviation of the known cells, the latter 1 if they are all alike."""
    x, w = cells.X.data.astype(np.float64), cells.W.data.astype(np.float64)
    mean = np.average(x, weights=w)
    spread = np.sqrt(np.average((x - mean) ** 2, weights=w))
    return float(mean), float(spread) if spread > 1e-12 * abs(mean) else 1.0


def solve_rows(
    X: sparse.csr_array,
    w: np.ndarray,
    U: np.ndarray,
    base: np.ndarray | None,
    Z: np.ndarray,
    offset: np.ndarray,
    ridge: Ridge,
    steps: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The half-step of one block: its rows' features given those of the columns, and the cost of each row.

    `steps` of conjugate gradients from U if positive, else exactly by Cholesky; with a floor, by coordinate descent.
    `base` is a quadratic all rows share, or None.
    """
    p, dtype = Z.shape[1], Z.dtype
    mass = np.add.reduceat(np.append(w, 0), X.indptr[:-1]) * (np.diff(X.indptr) > 0) if ridge.scaled else 1.0
    lam = np.broadcast_to(np.asarray(ridge.lam * mass, dtype), (X.shape[0],))
    B = np.zeros((p, p), dtype) if base is None else base
    U, cost = U.copy(), np.empty(X.shape[0])
    given = (X.indptr, X.indices, X.data.astype(dtype, copy=False), w, Z, offset, B)
    if ridge.floor is not None:
        kernels.ridge_bounded(*given, lam, ridge.floor, 50, U, cost)
    elif steps:
        kernels.ridge_cg(*given, base is not None, lam, steps, U, cost)
    else:
        kernels.ridge_cholesky(*given, lam, U, cost)
    return U, cost


def spectral_start(cells: Observed, mean: float, k: int, turns: int, rng: np.random.Generator) -> np.ndarray:
    """Column factors (d,k) near the leading right singular vectors of the known cells, holes taken as the mean.

    Without a firm ridge, a random start lets single columns run off with a factor of their own; a few turns of
    subspace iteration point all of them the right way.
    """
    Z = drawn = rng.normal(size=(cells.shape[1], k)) / np.sqrt(cells.shape[1])
    for _ in range(turns):
        Z, R = np.linalg.qr(_product(cells.cols, _product(cells.rows, Z, mean, False), mean, True))
        reached = abs(np.diagonal(R))
        Z = np.where(reached > 1e-8 * reached.max(), Z, drawn)  # beyond the data's rank the product says nothing
    return Z * (np.sqrt(len(Z)) / k**0.25)


def _product(side: Side, Z: np.ndarray, mean: float, weighted: bool) -> np.ndarray:
    """(X − mean) Z over the known cells."""
    engine = Engine()
    shared = [engine.broadcast(s) for s in (Z, mean, weighted)]
    return np.concatenate(engine.gather(engine.map(_block_product, side.blocks, side.weights, *shared)))


def _block_product(X: sparse.csr_array, w: np.ndarray, Z: np.ndarray, mean: float, weighted: bool) -> np.ndarray:
    gaps = (X.data - mean) * w if weighted else X.data - mean
    return sparse.csr_array((gaps, X.indices, X.indptr), shape=X.shape) @ Z


def half_step(side: Side, U: np.ndarray, *state: Any) -> tuple[np.ndarray, float]:
    """All rows of one side given the other side's features; their cost is summed row by row, so cuts do not show."""
    engine = Engine()
    shared = [engine.broadcast(s) for s in state]
    parts = engine.gather(engine.map(solve_rows, side.blocks, side.weights, side.blocks.rows(U), *shared))
    return np.concatenate([p[0] for p in parts]), float(np.concatenate([p[1] for p in parts]).sum())
