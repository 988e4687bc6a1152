"""A constraint: a set of allowed rows of a factor, or a penalty on them.

    values(F) → (m,) the penalty of every row, 0 for a set       prox(F, step) → argmin_f ½‖f − F‖² + step · penalty(f)

The left factor U (n,k) is constrained row by row: a row is the code of a sample. So is the right factor Z (k,d): a row
is a component. For a set, prox is the nearest point in it, whatever the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from twofold.core.checks import InputError


@dataclass(frozen=True)
class Constraint:
    """Base of the constraints."""

    elementwise: ClassVar[bool] = False  # every number by itself, so that rows and columns are alike
    discrete: ClassVar[bool] = False  # isolated points, between which no acceleration is possible
    joint: ClassVar[bool] = False  # rows depend on each other: only for the right factor

    def values(self, F: np.ndarray) -> np.ndarray:
        return np.zeros(len(F))

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        raise NotImplementedError

    def start(self, F: np.ndarray) -> np.ndarray:
        """F, as a first guess, made to obey the constraint."""
        return self.prox(F, 0.0)

    def solve(self, H: np.ndarray, B: np.ndarray) -> np.ndarray | None:
        """The rows that minimize ½ f H fᵀ − b fᵀ + penalty, H (k,k) or (m,k,k), B (m,k), if there is a closed form."""
        return None

    def options(self, k: int) -> np.ndarray | None:
        """All allowed rows (c,k), if they are few: the best is then found by trying each."""
        return None

    def shares(self, A: np.ndarray, S: np.ndarray) -> np.ndarray:
        """The rows that minimize Σ s f − a log f, for losses that need positive factors."""
        raise NotImplementedError


def check_number(thing: Any, name: str, low: float, whole: bool = False) -> None:
    """Refuse a parameter of a loss or constraint that is no number from `low` on."""
    value, kind = getattr(thing, name), Integral if whole else Real
    if not isinstance(value, kind) or not low <= value < np.inf:  # type: ignore[operator]
        words = "a whole number" if whole else "a number"
        raise InputError(f"{type(thing).__name__}({name}={value!r}): {name} must be {words} from {low} on.")


def multiply_rows(F: np.ndarray, H: np.ndarray) -> np.ndarray:
    """f H for every row, H (k,k) or (m,k,k)."""
    return F @ H if H.ndim == 2 else (F[:, None, :] @ H)[:, 0, :]
