"""A loss for each column: the columns with equal losses are computed together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from twofold.factors.losses.base import Loss


class Group(NamedTuple):
    """Columns of the same loss."""

    loss: Loss
    columns: np.ndarray  # of X
    places: np.ndarray  # of M, in the order of the columns


@dataclass(frozen=True)
class Mixed(Loss):
    """What ``loss=[Squared(), Logistic(), Categorical(3)]`` becomes."""

    parts: tuple[Loss, ...]

    @cached_property
    def groups(self) -> list[Group]:
        owners, groups = self.owners(len(self.parts)), []
        for loss in dict.fromkeys(self.parts):
            mine = np.array([part == loss for part in self.parts])
            groups.append(Group(loss, np.flatnonzero(mine), np.flatnonzero(mine[owners])))
        return groups

    @property
    def shifts(self) -> np.ndarray:  # type: ignore[override]
        return np.array([part.shifts for part in self.parts])

    @property
    def needs(self) -> str:  # type: ignore[override]
        raise NotImplementedError("the column says what it needs")

    @property
    def hole(self) -> np.ndarray:  # type: ignore[override]
        return np.array([part.hole for part in self.parts])

    def owners(self, d: int) -> np.ndarray:
        return np.repeat(np.arange(d), [part.width for part in self.parts])

    def is_tied(self, d: int) -> np.ndarray:
        return np.array([part.tied for part in self.parts])

    def pick(self, columns: np.ndarray) -> Loss:
        return Mixed(tuple(self.parts[j] for j in columns))

    def column(self, j: int) -> Loss:
        return self.parts[j]

    def value(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        out = np.empty(X.shape, M.dtype)
        for loss, columns, places in self.groups:
            out[:, columns] = loss.value(X[:, columns], M[:, places])
        return out

    def slope(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return self._over_groups("slope", X, M)

    def curvature(self, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        return self._over_groups("curvature", X, M)

    def _over_groups(self, name: str, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        out = np.empty(M.shape, M.dtype)
        for loss, columns, places in self.groups:
            out[:, places] = getattr(loss, name)(X[:, columns], M[:, places])
        return out

    def by_column(self, name: str, X: np.ndarray, M: np.ndarray) -> np.ndarray:
        out = np.empty(M.shape, M.dtype)
        for loss, columns, places in self.groups:
            out[:, places] = loss.by_column(name, X[:, columns], M[:, places])
        return out

    def expand(self, X: np.ndarray) -> np.ndarray:
        out = np.empty((len(X), len(self.owners(len(self.parts)))), X.dtype)
        for loss, columns, places in self.groups:
            out[:, places] = loss.expand(X[:, columns])
        return out

    def mean(self, M: np.ndarray) -> np.ndarray:
        out = np.empty((len(M), len(self.parts)), M.dtype)
        for loss, columns, places in self.groups:
            out[:, columns] = loss.mean(M[:, places])
        return out

    def start(self, X: np.ndarray) -> np.ndarray:
        out = np.empty(X.shape, X.dtype)
        for loss, _, places in self.groups:
            out[..., places] = loss.start(X[..., places])
        return out

    def outside(self, X: np.ndarray) -> np.ndarray:
        out = np.empty(X.shape, bool)
        for loss, columns, _ in self.groups:
            out[:, columns] = loss.outside(X[:, columns])
        return out
