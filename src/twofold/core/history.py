"""What each sweep cost and gained."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

ROUNDING = 1e-15  # of the objective: less is no move
ZERO_OBJECTIVE = 2e-16  # of the first objective: what is left is rounding
WINDOW = 10  # sweeps in which an objective that also rises must fall
MAX_REMAINING_OVER_TOL = 10  # times tol may be still to come when a fit says that it has converged


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

    def change(self) -> float:
        """Return how much the objective moved in the last sweep."""
        objective = self.columns["objective"]
        return abs(objective[-2] - objective[-1]) if len(objective) > 1 else float("inf")

    def remaining_change(self) -> float:
        """Return the largest move in the last twentieth of the sweeps, or a tenth of all that is still to come,
        whichever is more.

        What is still to come is extrapolated from a, b, c, the moves of the last three sweeps or twentieths of the
        sweeps: c·r/(1 − r) if they shrink by r, but at most what they would add up to as they are in ten times the
        sweeps; and all of that if they do not shrink, as on a plateau. One step much shorter than predicted does not
        end the fit, so a fit of fewer than four sweeps ends only if nothing moves at all. An objective that also rises,
        by rounding or by chance, has settled when ten sweeps bring it no farther down than one up; so has one that has
        fallen to zero.
        """
        objective = self.columns["objective"]
        n = len(objective)
        part = max(1, n // 20)
        moves = np.abs(np.diff(objective[-3 * part - 1 :]))
        if not len(moves):
            return float("inf")
        if moves[-1] <= ROUNDING * abs(objective[-1]):
            return float(moves[-1])
        if abs(objective[-1]) <= ZERO_OBJECTIVE * abs(objective[0]):
            return 0.0
        if n < 4:
            return float("inf")
        rise = float(np.diff(objective[-WINDOW:]).max()) if n >= 2 * WINDOW else 0.0
        if rise > 0:
            gained = min(objective[-2 * WINDOW : -WINDOW]) - min(objective[-WINDOW:])
            return gained if gained > rise else 0.0
        a, b, c = np.maximum(moves.reshape(3, part).sum(axis=1), 1e-300)
        shrink, most = max(b / a, c / b), 9 * n / part * c
        come = min(c * shrink / (1 - shrink), most) / MAX_REMAINING_OVER_TOL if shrink < 1 else most
        return float(max(moves[-part:].max(), 0.5 * b * b / a / part, come))

    def gain(self) -> float:
        """The same, relative to the size of the objective."""
        return self.remaining_change() / self._size()

    def step(self) -> float:
        """Return the move of the last sweep, relative to the size of the objective: for models that keep this rule."""
        return self.change() / self._size()

    def _size(self) -> float:
        return max([abs(value) for value in self.columns["objective"][-2:]] + [1e-300])


def summarize(model: Any) -> dict[str, Any] | None:
    """Return sweeps, the objective at both ends, seconds, convergence; None of a model without history."""
    record = getattr(model, "history_", None)
    if not isinstance(record, dict) or not record.get("objective"):
        return None
    objective = record["objective"]
    return {
        "sweeps": len(objective),
        "objective_first": float(objective[0]),
        "objective_last": float(objective[-1]),
        "seconds": float(record.get("seconds", [0.0])[-1]),
        "converged": getattr(model, "converged_", None),
    }


def as_html(model: Any) -> str:
    """The summary as a small table of HTML, or nothing."""
    found = summarize(model)
    if found is None:
        return ""
    end = {True: "yes", False: "no", None: "not known"}
    cells = {
        "sweeps": f"{found['sweeps']:,}",
        "first objective": f"{found['objective_first']:.6g}",
        "last objective": f"{found['objective_last']:.6g}",
        "seconds": f"{found['seconds']:.3g}",
        "converged": end[None if found["converged"] is None else bool(found["converged"])],
    }
    head, row = "".join(f"<th>{name}</th>" for name in cells), "".join(f"<td>{text}</td>" for text in cells.values())
    return f'<table class="twofold-history"><tr>{head}</tr><tr>{row}</tr></table>'
