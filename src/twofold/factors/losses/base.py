"""A loss: the error of the model's value m for a cell x, with its slope and curvature.

    value(x, m)  slope(x, m) = ∂value/∂m   curvature(x, m) of a parabola that touches value at m and lies above it

All three work cell by cell on arrays. A curvature that is too small now and then does no harm: a step that does not
lower the objective is made again with a larger one.

A wide loss has several values m for a cell: X is (m,d), and M, slope and curvature are (m,D) with D = `width` d.
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
    width: ClassVar[int] = 1  # values m of a cell, and columns of Z for a column of X
    tied: ClassVar[bool] = False  # whether these columns of Z are equal, and only intercepts differ

    def value(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def slope(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def by_column(self, name: str, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Slope or curvature for the components: a loss that averages along its last axis does so within columns."""
        return getattr(self, name)(X.T, M.T).T

    def owners(self, d: int) -> np.ndarray | None:
        """The column of X (D,) to which each column of Z belongs; None if there is one for each."""
        return None if self.width == 1 else np.repeat(np.arange(d), self.width)

    def is_tied(self, d: int) -> np.ndarray:
        """Return for each column of X (d,) whether its columns of Z are equal."""
        return np.full(d, self.tied)

    def pick(self, columns: np.ndarray) -> Loss:
        """The loss of some columns."""
        return self

    def column(self, j: int) -> Loss:
        """The loss of one column."""
        return self

    def expand(self, X: np.ndarray) -> np.ndarray:
        """The numbers (m,D) whose expectations the values m determine: cells, or a 1 at the level of a cell."""
        return X

    def mean(self, M: np.ndarray) -> np.ndarray:
        """The expected cell for the model's value m."""
        return M

    def start(self, X: np.ndarray) -> np.ndarray:
        """An m that fits the cell, or a mean of cells as `expand` gives them, to start with."""
        return X

    def outside(self, X: np.ndarray) -> np.ndarray:
        """True where a cell is not valid for this loss; NaN, a hole, is not outside."""
        return np.zeros(X.shape, dtype=bool)


def find_wrong_codes(cells: np.ndarray, n_levels: int) -> np.ndarray:
    """True where a cell is no code of a level; NaN, a hole, is none of these."""
    return ~np.isnan(cells) & ((cells < 0) | (cells >= n_levels) | (cells != cells.round()))
