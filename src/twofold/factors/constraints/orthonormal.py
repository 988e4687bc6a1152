"""Directions at right angles: a basis. Reference: Schönemann 1966."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.factors.constraints.base import Constraint


@dataclass(frozen=True)
class Orthonormal(Constraint):
    """F Fᵀ = I: rows of length one at right angles to each other. For the right factor only."""

    joint: ClassVar[bool] = True

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        if len(F) > F.shape[1]:
            raise InputError(
                f"right=Orthonormal() cannot have {len(F)} rows of {F.shape[1]} numbers at right angles. Ask for "
                f"n_components={F.shape[1]} at most."
            )
        left, _, right = np.linalg.svd(F, full_matrices=False)
        return left @ right

    def solve(self, H: np.ndarray, B: np.ndarray) -> np.ndarray | None:
        """Given as (d,k) like the factor's transpose: where H is one for all, it drops out."""
        return self.prox(B.T, 0.0).T if H.ndim == 2 else None
