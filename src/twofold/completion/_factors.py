"""What models with a row factor and a column factor share.

    x̂_ij = m + c_j + b_i + ⟨u_i, z_j⟩

    U (n,k) row_factors_    Z (k,d) components_    b (n,) row_bias_    c (d,) column_bias_    m mean_

New rows are ridge regressions on the columns' factors, so a fitted row folded in again gets its own factor back.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from twofold.completion._base import Completion
from twofold.core.checks import InputError
from twofold.core.numerics.alternating_ridge import Ridge, solve_rows, with_unit
from twofold.core.params import Interval


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
        return compute_values, (
            self.components_,
            self.column_bias_ + self.components_.dtype.type(self.mean_),
            self._unit(),
        )

    def _trained(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        out = self.row_bias_[rows] + self.column_bias_[cols] + self.components_.dtype.type(self.mean_)
        for start in range(0, len(rows), 2**16):
            at = slice(start, start + 2**16)
            out[at] += np.einsum("tk,kt->t", self.row_factors_[rows[at]], self.components_[:, cols[at]])
        return out


def compute_values(codes: np.ndarray, Z: np.ndarray, offset: np.ndarray, unit: float) -> np.ndarray:
    """(m,d) what codes (m,k), or (m,k+1) with a bias last, stand for."""
    k = len(Z)
    out = codes[:, :k] @ Z + offset
    return out + codes[:, k:] * codes.dtype.type(unit) if codes.shape[1] > k else out


def fold_rows(X: sparse.csr_array, Z: np.ndarray, offset: np.ndarray, ridge: Ridge) -> np.ndarray:
    """Ridge regressions of new rows (m,d) on the columns' features Z (d,p)."""
    ones, start = np.ones(len(X.data), Z.dtype), np.zeros((X.shape[0], Z.shape[1]), Z.dtype)
    return solve_rows(X, ones, start, None, Z, offset, ridge)[0]
