"""A ridge: small numbers are cheaper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.factors.constraints.base import Constraint, check_number

MIN_CURVATURE = 1e-12, 1e-6  # of the trace, in double and single precision: for a direction without data


@dataclass(frozen=True)
class Ridge(Constraint):
    """½ α ‖f‖²."""

    alpha: float = 1.0
    elementwise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self, "alpha", 0)

    def values(self, F: np.ndarray) -> np.ndarray:
        return 0.5 * self.alpha * np.einsum("ij,ij->i", F, F, dtype=np.float64)

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        return F / (1 + step * self.alpha)

    def solve(self, H: np.ndarray, B: np.ndarray) -> np.ndarray:
        return solve_rows(H, B, self.alpha)


def solve_rows(H: np.ndarray, B: np.ndarray, ridge: float) -> np.ndarray:
    """(H + ridge I) f = b for every row; H (k,k) is the same for all, or (m,k,k) one each."""
    least = MIN_CURVATURE[H.dtype == np.float32] * np.trace(H, axis1=-2, axis2=-1) + np.finfo(H.dtype).tiny ** 0.5
    if H.ndim == 3:
        A = H + np.multiply.outer(H.dtype.type(ridge) + least, np.eye(H.shape[-1], dtype=H.dtype))
        return np.linalg.solve(A, B[:, :, None])[:, :, 0]
    values, vectors = np.linalg.eigh(H.astype(np.float64))
    inverse = (vectors / (np.maximum(values, 0) + (ridge + float(least)))) @ vectors.T
    return B @ inverse.astype(B.dtype)
