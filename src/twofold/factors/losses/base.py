"""A loss: the error of the model's value m for a cell x, with its slope and curvature.

    value(x, m)  slope(x, m) = ∂value/∂m   curvature(x, m) of a parabola that touches value at m and lies above it

All three work cell by cell on arrays. A curvature that is too small now and then does no harm: a step that does not
lower the objective is made again with a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np


@dataclass(frozen=True)
class Loss:
    """Base of the losses."""

    quadratic: ClassVar[bool] = False  # the curvature is 1 everywhere
    shifts: ClassVar[bool] = False  # only x − m counts
    positive: ClassVar[bool] = False  # m must be positive
    needs: ClassVar[str] = "a number"  # allowed cells
    hole: ClassVar[float] = 0.0  # a valid cell, in place of unknown ones

    def value(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def slope(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def mean(self, M: np.ndarray) -> np.ndarray:
        """The expected cell for the model's value m."""
        return M

    def start(self, X: np.ndarray) -> np.ndarray:
        """An m that fits the cell, to start with."""
        return X

    def outside(self, X: np.ndarray) -> np.ndarray:
        """True where a cell is not valid for this loss; NaN, a hole, is not outside."""
        return np.zeros(X.shape, dtype=bool)
