"""An absolute penalty: numbers that hardly help are zero. Reference: Tibshirani 1996."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.factors.constraints.base import Constraint, check_number


@dataclass(frozen=True)
class L1(Constraint):
    """α Σ |f|. Bound the other factor, by `UnitNorm` or `Ridge`: else this one shrinks at its expense."""

    alpha: float = 1.0
    elementwise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self, "alpha", 0)

    def values(self, F: np.ndarray) -> np.ndarray:
        return self.alpha * np.abs(F).sum(axis=1, dtype=np.float64)

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        return np.sign(F) * np.maximum(np.abs(F) - step * self.alpha, 0)
