"""What each sweep cost and gained."""

from __future__ import annotations

import time


class History:
    """Rows of numbers, one a sweep, kept as a dict of equally long lists.

    The seconds are those since the fit began, so that two histories can be drawn against one axis.
    """

    def __init__(self, columns: dict[str, list[float]] | None = None):
        self.columns: dict[str, list[float]] = columns or {"objective": [], "seconds": []}
        spent = self.columns["seconds"][-1] if self.columns["seconds"] else 0.0
        self._start = time.perf_counter() - spent

    def __len__(self) -> int:
        return len(self.columns["objective"])

    def add(self, objective: float, **extra: float) -> None:
        """Append one sweep."""
        row = {"objective": objective, "seconds": time.perf_counter() - self._start, **extra}
        for name, value in row.items():
            self.columns.setdefault(name, []).append(float(value))

    def gain(self) -> float:
        """How much the objective moved in the last sweep, relative to its size."""
        objective = self.columns["objective"]
        if len(objective) < 2:
            return float("inf")
        return abs(objective[-2] - objective[-1]) / max(abs(objective[-1]), abs(objective[-2]), 1e-300)
