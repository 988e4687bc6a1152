"""Compressive sensing: how often sparse signals come back from few measurements, cell by cell of the phase diagram.

Every cell has a seed of its own, so that a diagram made column by column is the one that a single call makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.lab.methods.method import Data, Emit, Frame, Method, Result, Values, as_float32
from twofold.lab.methods.setting import Setting, control, seed
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

PHASE = "signals.sensing.phase_diagram:phase_diagram"
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

    def __init__(self, ratios: np.ndarray):
        from twofold.signals import donoho_tanner

        self.ratios, self.success = ratios, np.full((len(ratios), len(ratios)), np.nan)
        fine = np.linspace(0.01, 0.99, CURVE_POINTS)
        theory = np.column_stack([fine, donoho_tanner(fine)])
        at = [float(ratio) for ratio in ratios]
        names = {"labels": ["measurements for each unknown", "numbers not zero for each measurement"]}
        self.first: Frame = (
            {"theory": as_float32(theory), "success": as_float32(self.success)},
            {"static": ["theory"], "x": at, "y": at, **names},
        )

    def frame(self, model: Any = None) -> Frame:
        return {"success": as_float32(self.success)}, {"done": float(np.isfinite(self.success).mean())}


class PhaseMethod(Method):
    id, title, estimator = "phase", "Compressive sensing: phase diagram", PHASE
    family, view = "sensing", "phase"
    kinds = ("none",)
    default_data = "none"
    objective = "share recovered"
    downloads = ("table", "figure", "python")
    settings = (
        control(PHASE, "n", "length of the signals", default=100, min=20, max=400),
        control(PHASE, "trials", "signals a cell", min=1, max=200),
        CELLS,
        control(PHASE, "method"),
        seed(PHASE),
    )

    def run(self, data: Data, settings: Values, emit: Emit, rows: Sequence[int] | None = None) -> Result:
        """Fill the diagram column by column."""
        self.check_kind(data)
        chosen, script = self.check(settings), Script(data)
        script.use("twofold.signals", "phase_diagram")
        script.do(f"ratios = (np.arange({chosen['cells']}) + 0.5) / {chosen['cells']}")
        view = Diagram(script["ratios"])
        emit(0, None, *view.first)
        options = ", ".join(f"{name}={chosen[name]!r}" for name in ("trials", "method", "random_state"))
        call = f"phase_diagram({chosen['n']}, delta={{}}, rho=ratios, {options})"
        parts = []
        for i, ratio in enumerate(view.ratios):
            parts.append(script.value(call.format([float(ratio)])))
            view.success[i] = parts[-1].success[0]
            last = i == len(view.ratios) - 1
            arrays, meta = view.frame()
            meta |= {"notes": []} if last else {}
            emit(i + 1, float(np.nanmean(view.success)), arrays, meta, final=last)
        script.say("model = " + call.format("ratios"))
        stacked = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("delta", "rho", "success", "curve50", "theory")
        }
        diagram = parts[0]._replace(**stacked)
        table = self.table(script, data, diagram)
        return Result(diagram, script.text, table, lambda: self.figure(view, data, diagram), view)

    def table(self, script: Script, data: Data, model: Any) -> pl.DataFrame:
        import polars as pl

        delta = np.broadcast_to(model.delta[:, None], model.rho.shape)
        return pl.DataFrame({"delta": delta.ravel(), "rho": model.rho.ravel(), "success": model.success.ravel()})

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.signals import transition_figure

        return transition_figure({self.title: model})


METHODS = (PhaseMethod(),)
