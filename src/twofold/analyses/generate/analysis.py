"""New images, or rows, from a model that has learned what they are like."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from twofold.analyses._tables import data_in_code
from twofold.analyses._targets import Writer
from twofold.analyses.answer import Answer, Grid, analysis
from twofold.analyses.progress import SILENT, Progress
from twofold.core.checks import InputError


@dataclass(kw_only=True, repr=False, eq=False)
class Samples(Answer):
    """What a model drew."""

    drawn: np.ndarray  # (n,h,w), (n,h,w,c) or (n,d)

    endings: ClassVar[tuple[str, ...]] = (".png", ".npy", ".html")

    @property
    def title(self) -> str:
        shape = " × ".join(map(str, self.drawn.shape[1:]))
        return f"{self.source}: {len(self.drawn):,} of {shape}, drawn by a {type(self.model).__name__}"

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row for each, its numbers one after the other."""
        flat = self.drawn.reshape(len(self.drawn), -1)
        return pl.DataFrame(flat, [f"column_{j + 1}" for j in range(flat.shape[1])])

    def grids(self) -> list[Grid]:
        values = {"least": self.drawn.min(), "mean": self.drawn.mean(), "largest": self.drawn.max()}
        return [Grid(["", "value"], [[name, f"{value:.4g}"] for name, value in values.items()], right=(1,))]

    def facts(self) -> dict[str, Any]:
        return {
            "model": type(self.model).__name__,
            "count": len(self.drawn),
            "shape": list(self.drawn.shape[1:]),
            "mean": float(self.drawn.mean()),
        }

    @cached_property
    def picture(self) -> bytes:
        """The images in a grid, as the bytes of a PNG file."""
        from twofold.plots.models.deep import grid_png

        images, shape = self.drawn, getattr(self.model, "image_shape_", (1,))
        if images.ndim == 2 and shape[0] > 1:
            images = images.reshape(len(images), *shape)
        if images.ndim == 2:
            raise InputError("rows of numbers are no images. Write them as .npy.")
        return grid_png(images, getattr(self.model, "range_", None))

    def writer(self, path: Path) -> Writer:
        return (lambda to: np.save(to, self.drawn)) if path.suffix.lower() == ".npy" else super().writer(path)


@analysis
def generate(model: Any, count: int = 64, *, seed: int = 0, progress: Progress = SILENT) -> Samples:
    """Draw from a model that can be drawn from.

    Parameters
    ----------
    model : path or fitted model
        A `.twofold` file, or the model itself: VAE, DLGM, GAN, VAEGAN, PixelCNN, GaussianMixture, ...
    count : int
        How many.
    seed, progress
        The seed of everything random; who is told what goes on.

    Returns
    -------
    Samples
        ``drawn`` holds them.

    Examples
    --------
    >>> from twofold import GaussianMixture
    >>> generate(GaussianMixture(1, random_state=0).fit([[0.0, 1.0], [2.0, 3.0], [1.0, 5.0]]), 5).drawn.shape
    (5, 2)
    """
    source, found = "the model", model
    if isinstance(model, (str, os.PathLike)):
        from twofold.core.files.model_file import load

        with progress.doing("reading"):
            source = os.fspath(model)
            found = load(source)
    if not hasattr(found, "sample"):
        raise InputError(f"{source} holds a {type(found).__name__}, which draws nothing. Train one that does: a vae.")
    if type(found).__name__ == "PixelCNN":  # pixel by pixel: long enough for a bar
        with progress.share("drawing") as tell:
            drawn = found.sample(count, random_state=seed, progress=tell)
    else:
        with progress.doing("drawing"):
            drawn = found.sample(count, random_state=seed)
    return Samples(
        source=source,
        model=found,
        call={"verb": "generate", "data": data_in_code(model), "count": count, "seed": seed},
        drawn=np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn),
    )
