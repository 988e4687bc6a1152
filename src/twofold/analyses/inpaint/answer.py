"""The answer of `inpaint`: an image without holes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from twofold.analyses.common.answer import Grid
from twofold.analyses.common.images import ImageAnswer, decibels


@dataclass(kw_only=True, repr=False, eq=False)
class Inpainted(ImageAnswer):
    """An image whose holes are filled."""

    holes: np.ndarray  # (h,w), True where pixels were missing

    @property
    def hint(self) -> str:
        return "add ⟨out=whole.png⟩ to keep the image, ⟨compare=both.png⟩ to look at it"

    @property
    def outcome(self) -> str:
        return f"{self.holes.sum():,} missing pixels ({self.holes.mean():.1%}) filled"

    @cached_property
    def table(self) -> pl.DataFrame:
        """PSNR on hidden pixels, by method."""
        rows = [("dictionary of patches", self.figures["psnr"])] if self.figures else []
        rows += [(self.baseline["method"], self.baseline["psnr"])] if self.baseline else []
        return pl.DataFrame(rows, ["method", "psnr"], orient="row")

    def grids(self) -> list[Grid]:
        rows = [[name, decibels(psnr)] for name, psnr in self.table.iter_rows()]
        return [Grid(["filled by", "PSNR on hidden pixels"], rows, right=(1,))] if rows else []

    def lines(self) -> list[str]:
        own = self.figures
        if not own:
            return ["held out: nothing, too few pixels are known"]
        lines = [f"held out: {own['pixels']:,} known pixels were hidden, in holes of the same shape, and filled in"]
        if self.baseline["psnr"] > own["psnr"]:
            lines.append("straight lines do better here: holes larger than a patch (8 pixels) are mostly guessed")
        return lines

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"missing": self.holes.sum(), "share": self.holes.mean()}

    def panels(self) -> list[tuple[str, np.ndarray]]:
        from twofold.plots.models.images import paint_holes

        return [("before", paint_holes(self.before.pixels, self.holes)), ("after", self.after.pixels)]
