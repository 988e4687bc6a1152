"""Compressive sensing: how often sparse signals come back from few measurements, cell by cell of the phase diagram.

Every cell has a seed of its own, so that a diagram made column by column is the one that a single call makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.lab.methods.method import Data, Emit, Frame, Method, Result, Setting, numbers, seed, setting
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

PHASE = "signals.sensing.phase_diagram:phase_diagram"
CURVE = 100  # points of the theory's curve
CELLS = Setting(
    name="cells",
    label="cells across",
    about="Steps of the measurements for each unknown and of the numbers that are not zero for each measurement.",
    type="int",
    default=16,
    min=4,
    max=40,
)


class Diagram:
    """Success over the two ratios, as far as it is known; the first index is that of the measurements."""

    def __init__(self, ratios: np.ndarray):
        from twofold.signals import donoho_tanner

        self.ratios, self.success = ratios, np.full((len(ratios), len(ratios)), np.nan)
        fine = np.linspace(0.01, 0.99, CURVE)
        theory = np.column_stack([fine, donoho_tanner(fine)])
        at = [float(ratio) for ratio in ratios]
        names = {"labels": ["measurements for each unknown", "numbers not zero for each measurement"]}
        self.first: Frame = (
            {"theory": numbers(theory), "success": numbers(self.success)},
            {"static": ["theory"], "x": at, "y": at, **names},
        )

    def frame(self, model: Any = None) -> Frame:
        return {"success": numbers(self.success)}, {"done": float(np.isfinite(self.success).mean())}


class PhaseMethod(Method):
    id, title, estimator = "phase", "Compressive sensing: phase diagram", PHASE
    family, view = "sensing", "phase"
    kinds = ("none",)
    default_data = "none"
    objective = "share recovered"
    takes = ("table", "figure", "python")
    settings = (
        setting(PHASE, "n", label="length of the signals", default=100, min=20, max=400),
        setting(PHASE, "trials", label="signals a cell", default=20, min=1, max=200),
        CELLS,
        setting(
            PHASE,
            "method",
            default="basis_pursuit",
            choices=("basis_pursuit", "orthogonal_matching_pursuit"),
        ),
        seed(PHASE),
    )

    def run(self, data: Data, settings: Mapping[str, Any], emit: Emit, rows: Sequence[int] | None = None) -> Result:
        """Fill the diagram column by column."""
        self.check_kind(data)
        chosen, script = self.check(settings), Script(data)
        script.use("twofold.signals", "phase_diagram")
        script.do(f"ratios = (np.arange({chosen['cells']}) + 0.5) / {chosen['cells']}")
        sight = Diagram(script["ratios"])
        emit(0, None, *sight.first)
        options = ", ".join(f"{name}={chosen[name]!r}" for name in ("trials", "method", "random_state"))
        call = f"phase_diagram({chosen['n']}, delta={{}}, rho=ratios, {options})"
        parts = []
        for i, ratio in enumerate(sight.ratios):
            parts.append(script.value(call.format([float(ratio)])))
            sight.success[i] = parts[-1].success[0]
            last = i == len(sight.ratios) - 1
            arrays, meta = sight.frame()
            meta |= {"notes": []} if last else {}
            emit(i + 1, float(np.nanmean(sight.success)), arrays, meta, final=last)
        script.say("model = " + call.format("ratios"))
        stacked = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("delta", "rho", "success", "curve50", "theory")
        }
        found = parts[0]._replace(**stacked)
        return Result(found, script.text, self.tabulate(found), lambda: self.figure(sight, data, found), sight)

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Diagram:
        return Diagram(script["ratios"])

    def tabulate(self, found: Any) -> pl.DataFrame:
        import polars as pl

        delta = np.broadcast_to(found.delta[:, None], found.rho.shape)
        return pl.DataFrame({"delta": delta.ravel(), "rho": found.rho.ravel(), "success": found.success.ravel()})

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.signals import transition_figure

        return transition_figure({self.title: model})


METHODS = (PhaseMethod(),)
