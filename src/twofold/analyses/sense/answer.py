"""The answers of `sense`: an image or signals recovered from few measurements."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import polars as pl

from twofold.analyses.common.answer import FRAMES, Grid
from twofold.analyses.common.images import ComparedAnswer, ImageAnswer, decibels
from twofold.analyses.common.signals import SignalAnswer

VARIANCE_SHARE = 0.99  # held by the coefficients that are counted


class Trial(NamedTuple):
    """The error of a recovery from a number of measurements."""

    fraction: float
    measurements: int
    relative_error: float  # ‖x − x̂‖ / ‖x‖
    psnr: float


class Sparsity(NamedTuple):
    """The sparser of two bases, the name of its atoms, and how many hold nearly all of the variance."""

    basis: Any
    atoms: str
    held: int


@dataclass(kw_only=True, repr=False, eq=False)
class Sensing(ComparedAnswer):
    """The base of `SensedImage` and `SensedSignals`."""

    kind: str
    size: int  # numbers in one signal or channel
    sparsity: Sparsity
    best: Trial
    trials: list[Trial]

    @property
    def hint(self) -> str:
        return "⟨out⟩ keeps what was recovered, ⟨compare=both.png⟩ shows it"

    @property
    def outcome(self) -> str:
        best = self.best
        return f"recovered from {best.measurements:,} measurements ({best.fraction:.0%}), {decibels(best.psnr)}"

    def grids(self) -> list[Grid]:
        rows = [
            [f"{t.fraction:.0%}", f"{t.measurements:,}", f"{t.relative_error:.2%}", decibels(t.psnr)]
            for t in self.trials
        ]
        return [Grid(["measured", "measurements", "error", "PSNR"], rows, right=(1, 2, 3))]

    def lines(self) -> list[str]:
        held, needed = self.sparsity.held, self.measurements_needed
        return [
            f"least squares, which knows no basis, gives {decibels(self.baseline['psnr'])} from the same measurements",
            f"{VARIANCE_SHARE:.0%} of the variance is in {held:,} of {self.size:,} {self.sparsity.atoms}; to find that "
            f"many, theory asks for about {needed:,} measurements ({needed / self.size:.0%})",
        ]

    @cached_property
    def measurements_needed(self) -> int:
        from twofold.signals import measurements_needed

        return measurements_needed(self.sparsity.held, self.size)

    def facts(self) -> dict[str, Any]:
        return super().facts() | {
            "kind": self.kind,
            "fraction": self.best.fraction,
            "measurements": self.best.measurements,
            "basis": self.sparsity.atoms,
            "sparsity": self.sparsity.held,
            "measurements_needed": self.measurements_needed,
            "tried": [trial._asdict() for trial in self.trials],
        }


@dataclass(kw_only=True, repr=False, eq=False)
class SensedImage(Sensing, ImageAnswer):
    """A recovered image; its transparency, if there is any, was not measured."""

    @cached_property
    def table(self) -> pl.DataFrame:
        """Error of the recovery by number of measurements."""
        return pl.DataFrame(self.trials, Trial._fields, orient="row")


@dataclass(kw_only=True, repr=False, eq=False)
class SensedSignals(Sensing, SignalAnswer):
    """Recovered signals."""

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, ".npy", ".html")
    labels = ("signal", "recovered")

    @classmethod
    def fits(cls, data: Any) -> bool:
        from twofold.analyses.sense.read import holds_signals

        return holds_signals(data)

    @cached_property
    def table(self) -> pl.DataFrame:
        """A signal in each column."""
        return self.frame()
