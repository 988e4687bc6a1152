"""Compressive sensing: how often sparse signals come back from few measurements, cell by cell of the phase diagram.

Every cell has a seed of its own, so that a diagram made column by column is the one that a single call makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.lab.methods.method import Data, Emit, Frame, Method, Values, pack, start_frame
from twofold.lab.methods.setting import Setting, control
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

PHASE = "signals.phase_diagram:phase_diagram"
CURVE_POINTS = 100  # of the theory
CELLS = Setting(
    "cells",
    "cells across",
    "Steps of the measurements for each unknown and of the numbers that are not zero for each measurement.",
    16,
    min=4,
    max=40,
)


class Diagram:
    """Success over the two ratios, NaN where it is not known yet; the first index is that of the measurements."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        from twofold.signals import donoho_tanner

        self.ratios = script["ratios"]
        self.success = np.full((len(self.ratios), len(self.ratios)), np.nan)
        fine, at = np.linspace(0.01, 0.99, CURVE_POINTS), self.ratios.tolist()
        theory = np.column_stack([fine, donoho_tanner(fine)])
        labels = ["measurements for each unknown", "numbers not zero for each measurement"]
        self.first = start_frame({"theory": theory}, {"success": self.success}, x=at, y=at, labels=labels)

    def frame(self, model: Any = None) -> Frame:
        return pack(success=self.success), {"done": float(np.isfinite(self.success).mean())}


class PhaseMethod(Method):
    id, title, estimator = "phase", "Compressive sensing: phase diagram", PHASE
    family, view, view_class = "sensing", "phase", Diagram
    kinds = ("none",)
    default_data = "none"
    objective = "share recovered"
    downloads = ("table", "figure", "python")
    settings = (
        control("n", "length of the signals", default=100, min=20, max=400),
        control("trials", "signals a cell", min=1, max=200),
        CELLS,
        control("method"),
    )

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        script.use("twofold.signals", "phase_diagram")
        script.do(f"ratios = (np.arange({chosen['cells']}) + 0.5) / {chosen['cells']}")

    def build(self, script: Script, chosen: Values) -> None:
        """Build nothing: the diagram is a function's."""

    def fit(self, script: Script, model: Any, view: Any, emit: Emit, chosen: Values) -> None:
        """Fill the diagram column by column."""
        options = ", ".join(f"{name}={chosen[name]!r}" for name in ("trials", "method", "random_state"))
        call = f"phase_diagram({chosen['n']}, delta={{}}, rho=ratios, {options})"
        parts = []
        for i, ratio in enumerate(view.ratios):
            parts.append(script.value(call.format([float(ratio)])))
            view.success[i] = parts[-1].success[0]
            if i + 1 < len(view.ratios):
                emit(i + 1, self.measure(None, view), *view.frame())
        script.say("model = " + call.format("ratios"))
        columns = ("delta", "rho", "success", "curve50", "theory")
        whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
        script.names["model"] = parts[0]._replace(**whole)

    def count_sweeps(self, model: Any, view: Any) -> int:
        return len(view.ratios)

    def measure(self, model: Any, view: Any) -> float:
        return float(np.nanmean(view.success))

    def table(self, script: Script, data: Data, model: Any) -> pl.DataFrame:
        import polars as pl

        delta = np.broadcast_to(model.delta[:, None], model.rho.shape)
        return pl.DataFrame({"delta": delta.ravel(), "rho": model.rho.ravel(), "success": model.success.ravel()})

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.signals import transition_figure

        return transition_figure({self.title: model})
