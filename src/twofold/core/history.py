"""What each sweep cost and gained."""

from __future__ import annotations

import time
from typing import Any


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
        return self.change() / max(abs(objective[-1]), abs(objective[-2]), 1e-300)

    def change(self) -> float:
        """How much the objective moved in the last sweep."""
        objective = self.columns["objective"]
        return abs(objective[-2] - objective[-1]) if len(objective) > 1 else float("inf")


def summarize(model: Any) -> dict[str, Any] | None:
    """How a fit went: sweeps, the objective at both ends, seconds, convergence; None of a model without history."""
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
