"""Nothing below zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.factors.constraints.base import Constraint


@dataclass(frozen=True)
class NonNegative(Constraint):
    """f ≥ 0: parts are added, never taken away."""

    elementwise: ClassVar[bool] = True

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        return np.maximum(F, 0)

    def shares(self, A: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.divide(A, S, out=np.zeros_like(A), where=S > 0)
