"""A ridge: small numbers are cheaper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from twofold.factors.constraints.base import Constraint

LEAST = 1e-12  # of the curvature: what a direction that no data speaks of gets


@dataclass(frozen=True)
class Ridge(Constraint):
    """½ α ‖f‖²."""

    alpha: float = 1.0
    elementwise: ClassVar[bool] = True

    def values(self, F: np.ndarray) -> np.ndarray:
        return 0.5 * self.alpha * np.einsum("ij,ij->i", F, F, dtype=np.float64)

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        return F / (1 + step * self.alpha)

    def solve(self, H: np.ndarray, B: np.ndarray) -> np.ndarray:
        return solve_rows(H, B, self.alpha)


def solve_rows(H: np.ndarray, B: np.ndarray, ridge: Any) -> np.ndarray:
    """(H + ridge I) f = b for every row; H (k,k) is the same for all, or (m,k,k) one each."""
    least = LEAST * np.trace(H, axis1=-2, axis2=-1) + np.finfo(H.dtype).tiny ** 0.5
    A = H + np.multiply.outer(ridge + least, np.eye(H.shape[-1], dtype=H.dtype))
    if H.ndim == 2:
        return cho_solve(cho_factor(A), B.T).T
    return np.linalg.solve(A, B[:, :, None])[:, :, 0]
