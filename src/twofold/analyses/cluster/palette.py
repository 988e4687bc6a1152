"""The colors of an image: k-means of its pixels, how much of it each stands for, and the image redrawn with them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from twofold.analyses.common.answer import FRAMES, Answer, Grid, count
from twofold.analyses.common.images import as_image, decibels, image_writer
from twofold.analyses.common.targets import Writer
from twofold.core.checks import InputError
from twofold.core.progress import doing
from twofold.io.images import ENDINGS, Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = 8  # unless it is said how many


@dataclass(kw_only=True, repr=False, eq=False)
class Palette(Answer):
    """The colors of an image; the first is the commonest."""

    before: Picture
    after: Picture
    colors: np.ndarray  # (k,) gray or (k,3)
    shares: np.ndarray  # (k,) of the pixels that are not transparent

    endings: ClassVar[tuple[str, ...]] = (*FRAMES, *ENDINGS, ".html")

    @classmethod
    def fits(cls, data: Any) -> bool:
        return is_photo(data)

    @property
    def heading(self) -> str:
        return self.before.describe()

    @property
    def outcome(self) -> str:
        return f"{count(len(self.colors), 'color')} by k-means"

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row a color: red, green and blue, the same as #rrggbb, and its share of the pixels."""
        rgb = np.stack([self.colors] * 3, axis=1) if self.colors.ndim == 1 else self.colors
        names = [as_hex(color, self.before.peak) for color in rgb]
        channels = {name: rgb[:, j] for j, name in enumerate(("red", "green", "blue"))}
        return pl.DataFrame({"color": names, **channels, "share": self.shares})

    def grids(self) -> list[Grid]:
        rows = [
            [name, f"{r}, {g}, {b}", f"{share:.1%}", float(share / self.shares[0])]
            for name, r, g, b, share in self.table.iter_rows()
        ]
        return [Grid(["color", "red, green, blue", "share", ""], rows, right=(1, 2), rest="colors")]

    def lines(self) -> list[str]:
        own, plain = (decibels(figures["psnr"]) for figures in (self.figures, self.baseline))
        return [f"redrawn with them: PSNR {own}, with the mean color alone {plain}"]

    def facts(self) -> dict[str, Any]:
        return self.before.facts() | {"n_colors": len(self.colors), "colors": self.table.to_dicts()}

    def plot(self) -> Figure:
        from twofold.plots.models.images import comparison_figure

        panels = [("original", self.before.pixels), (count(len(self.colors), "color"), self.after.pixels)]
        return comparison_figure(panels, title=self.title)

    def writer(self, path: Path) -> Writer:
        return image_writer(path, self.after) if path.suffix.lower() in ENDINGS else super().writer(path)


def is_photo(data: Any) -> bool:
    """True if the data is one file that holds an image."""
    one = data[0] if isinstance(data, (list, tuple)) and len(data) == 1 else data
    return isinstance(one, (str, os.PathLike)) and Path(one).suffix.lower() in (*ENDINGS, ".gif")


def find_palette(data: Any, n_colors: int | None, seed: int) -> Palette:
    """The colors of an image; pixels that are wholly transparent have none, and stay as they are."""
    from twofold.clusters import palette
    from twofold.metrics import psnr

    path = data[0] if isinstance(data, (list, tuple)) else data
    with doing("reading"):
        image = as_image(path)
    notes = image.notes
    if n_colors is None:
        n_colors = COLORS
        notes.append(f"{COLORS} colors at most; ⟨n_clusters⟩ sets another number")
    seen = np.ones(image.pixels.shape[:2], bool) if image.alpha is None else image.alpha > 0
    if not seen.any():
        raise InputError(f"{image.source} is wholly transparent: it has no colors.")
    pixels = image.pixels[seen]
    with doing("finding colors"):
        colors, indices = palette(pixels[:, None], n_colors, random_state=seed)
    counts = np.bincount(indices.ravel(), minlength=len(colors))
    order = np.argsort(-counts, kind="stable")
    again = image.pixels.copy()
    again[seen] = colors[indices.ravel()]
    mean = np.broadcast_to(np.rint(pixels.mean(axis=0)).astype(pixels.dtype), pixels.shape)
    return Palette(
        source=image.source,
        figures={"what": "of the image redrawn", "psnr": float(psnr(pixels, again[seen], image.peak))},
        baseline={"method": "the mean color alone", "psnr": float(psnr(pixels, mean, image.peak))},
        notes=notes,
        chosen={"n_clusters": n_colors},
        before=image,
        after=replace(image, pixels=again),
        colors=colors[order],
        shares=counts[order] / counts.sum(),
    )


def as_hex(color: np.ndarray, peak: int) -> str:
    """The color as pages and drawing programs write it.

    >>> as_hex(np.array([255, 128, 0]), 255)
    '#ff8000'
    """
    return "#" + "".join(f"{round(int(value) * 255 / peak):02x}" for value in color)
