"""The holes of an image filled, every other pixel as it was.

What is missing is marked by a mask, by a color, or by transparency. Patches of the image are coded with few atoms of
a dictionary that is learned from what is known; holes wider than a patch take patches from elsewhere. Both are compared
with bilinear interpolation, on known pixels that were hidden in holes of the same shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from twofold.analyses.common.analysis import OneFile, Seed, analysis, list_planned_files
from twofold.analyses.common.answer import Grid
from twofold.analyses.common.images import ImageAnswer, as_image, check_formats
from twofold.analyses.inpaint.bilinear import interpolate_bilinear
from twofold.analyses.inpaint.check import Quality, describe_quality, measure_on_hidden
from twofold.analyses.inpaint.holes import find_holes, without_holes
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing
from twofold.core.spelling import spell_parameters

WAYS = {
    "dictionary": "dictionary of patches",
    "exemplars": "patches from elsewhere",
    "both": "dictionary; patches from elsewhere in wide holes",
}


@dataclass(kw_only=True, repr=False, eq=False)
class Inpainted(ImageAnswer):
    """An image whose holes are filled."""

    holes: np.ndarray  # (h,w), True where pixels were missing
    way: str  # a key of WAYS

    @property
    def hint(self) -> str:
        return "add ⟨out=whole.png⟩ to keep the image, ⟨compare=both.png⟩ to look at it"

    @property
    def outcome(self) -> str:
        return f"{self.holes.sum():,} missing pixels ({self.holes.mean():.1%}) filled"

    @cached_property
    def table(self) -> pl.DataFrame:
        """PSNR on hidden pixels, by method."""
        rows = [(WAYS[self.way], *pick_quality(self.figures))] if self.figures else []
        rows += [(self.baseline["method"], *pick_quality(self.baseline))] if self.baseline else []
        return pl.DataFrame(rows, ["method", "psnr", "spread"], orient="row")

    def grids(self) -> list[Grid]:
        rows = [[name, describe_quality(Quality(*quality))] for name, *quality in self.table.iter_rows()]
        return [Grid(["filled by", "PSNR on hidden pixels"], rows, right=(1,))] if rows else []

    def lines(self) -> list[str]:
        own = self.figures
        if not own:
            return ["held out: nothing, too few pixels are known"]
        lines = [
            f"held out: {own['pixels']:,} known pixels were hidden, in holes of the same shape, and filled in; the "
            "true PSNR is within ± for 99 of 100 images"
        ]
        if self.baseline["psnr"] > own["psnr"] and self.way != "dictionary":
            lines.append(
                spell_parameters(
                    "straight lines are nearer in the mean, but blurred (⟨method=dictionary⟩ is between both)"
                )
            )
        elif self.baseline["psnr"] > own["psnr"]:
            lines.append("straight lines do better here: holes larger than a patch (8 pixels) are mostly guessed")
        return lines

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"missing": self.holes.sum(), "share": self.holes.mean(), "method": self.way}

    def panels(self) -> list[tuple[str, np.ndarray]]:
        from twofold.plots.models.images import paint_holes

        return [("before", paint_holes(self.before.pixels, self.holes)), ("after", self.after.pixels)]


def pick_quality(figures: dict[str, Any]) -> tuple[float, float]:
    return figures["psnr"], figures["spread"]


@analysis()
def inpaint(
    image: OneFile,
    *,
    mask: Annotated[Any, Flag(unit="FILE")] = None,
    color: Annotated[str | None, Flag(unit="COLOR")] = None,
    tolerance: Annotated[int, Flag(min=0, max=255, unit="N")] = 0,
    method: Literal["dictionary", "exemplars"] | None = None,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Inpainted:
    """Fill the holes of an image: painted over, transparent, or under a mask.

    Parameters
    ----------
    image : path or array
        A file, or uint8 or uint16 of shape (h, w), (h, w, 3), or with transparency as one more channel. With neither
        mask nor color, wholly transparent pixels are missing.
    mask : path, array or None
        An image of the same size, white where pixels are missing; or booleans (h, w), True there.
    color
        The color that marks missing pixels, such as "#ff00ff".
    tolerance
        How far from `color`, 0 to 255 in each of red, green and blue, still counts.
    method
        Atoms of a dictionary learned from the image, or patches from elsewhere in it (exemplars). Default: exemplars
        for holes wider than 8 pixels, a dictionary for others.

    Returns
    -------
    Inpainted
        ``image`` holds the result.

    Examples
    --------
    >>> rows, columns = np.mgrid[:32, :32]
    >>> stripes = np.rint(128 + 80 * np.sin((rows + columns) / 3)).astype(np.uint8)
    >>> holes = np.random.default_rng(0).random((32, 32)) < 0.2
    >>> answer = inpaint(np.where(holes, 0, stripes).astype(np.uint8), mask=holes)
    >>> bool((answer.image[~holes] == stripes[~holes]).all())
    True
    """
    with doing("reading"):
        before = as_image(image)
        holes, said = find_holes(before, mask, color, tolerance)
        check_formats(list_planned_files(), without_holes(before, holes))
        from twofold.signals.images.exemplars import find_wide
        from twofold.signals.images.inpaint import PATCH, inpaint_image  # takes seconds: bad input is told before

    wide = find_wide(holes, PATCH)
    way = method or ("dictionary" if not wide.any() else "exemplars" if (wide == holes).all() else "both")
    fill = partial(inpaint_image, method=None if way == "both" else way, random_state=seed)
    with doing("inpainting"):
        pixels = fill(before.pixels, holes)
    with doing("checking"):
        fills: dict[str, Any] = {"own": fill, "lines": interpolate_bilinear}
        hidden, found = measure_on_hidden(before.pixels, holes, seed, before.peak, fills)
    what = "PSNR in dB on known pixels that were hidden, and how far the true one may be from it"
    figures = {"what": what, "pixels": hidden, **found["own"]._asdict()} if found else {}
    return Inpainted(
        source=before.source,
        figures=figures,
        baseline={"method": "bilinear interpolation", **found["lines"]._asdict()} if found else {},
        notes=before.notes + said,
        before=before,
        after=replace(without_holes(before, holes), pixels=pixels),
        holes=holes,
        way=way,
    )
