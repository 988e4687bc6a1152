"""No constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.factors.constraints.base import Constraint
from twofold.factors.constraints.ridge import solve_rows


@dataclass(frozen=True)
class Free(Constraint):
    """Any numbers."""

    elementwise: ClassVar[bool] = True

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        return F

    def solve(self, H: np.ndarray, B: np.ndarray) -> np.ndarray:
        return solve_rows(H, B, 0.0)
