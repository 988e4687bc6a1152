"""What a side of a non-negative factorization may cost: λ₁ Σ u + ½ λ₂ Σ u²."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Penalty(NamedTuple):
    """Of the codes, or of the parts."""

    l1: float = 0.0
    l2: float = 0.0

    def cost(self, U: np.ndarray) -> float:
        if not any(self):
            return 0.0
        U = U.astype(np.float64, copy=False)
        return self.l1 * float(U.sum()) + 0.5 * self.l2 * float(np.vdot(U, U))


FREE = Penalty()


def settle(a: np.ndarray, b: np.ndarray, l2: float) -> np.ndarray:
    """argmin  −a log u + b u + ½ λ₂ u²  over u ≥ 0: where the bound of a multiplicative rule is least; a ≥ 0, b > 0."""
    return 2 * a / (b + np.sqrt(b * b + 4 * l2 * a)) if l2 else a / b
