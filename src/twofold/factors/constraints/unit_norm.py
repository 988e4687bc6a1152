"""Length one: directions, or the atoms of a dictionary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from twofold.factors.constraints.base import Constraint


@dataclass(frozen=True)
class UnitNorm(Constraint):
    """‖f‖ = 1 in every row."""

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        length = np.sqrt(np.einsum("ij,ij->i", F, F))[:, None]
        flat = np.full_like(F, F.shape[1] ** -0.5)  # a row of zeros is equally far from every direction
        return np.where(length > 0, F / np.where(length > 0, length, 1), flat)
