"""New images or rows from a trained model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl

from twofold.analyses.common.analysis import Seed, analysis
from twofold.analyses.common.answer import Answer, Grid
from twofold.analyses.common.targets import Writer
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing


@dataclass(kw_only=True, repr=False, eq=False)
class Samples(Answer):
    """Images or rows that a model drew."""

    drawn: np.ndarray  # (n,h,w), (n,h,w,c) or (n,d)

    endings: ClassVar[tuple[str, ...]] = (".png", ".npy", ".html")

    @property
    def hint(self) -> str:
        return "add ⟨out=grid.png⟩ to look at them, ⟨out=numbers.npy⟩ to keep them"

    @property
    def title(self) -> str:
        shape = " × ".join(map(str, self.drawn.shape[1:]))
        return f"{self.source}: {len(self.drawn):,} of {shape}, drawn by a {type(self.model).__name__}"

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row for each image, its numbers one after the other."""
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
        from twofold.plots.models.images import grid_png

        images, shape = self.drawn, getattr(self.model, "image_shape_", (1,))
        if images.ndim == 2 and shape[0] > 1:
            images = images.reshape(len(images), *shape)
        if images.ndim == 2:
            raise InputError("rows of numbers are no images. Write them as .npy.")
        return grid_png(images, getattr(self.model, "range_", None))

    def writer(self, path: Path) -> Writer:
        return (lambda to: np.save(to, self.drawn)) if path.suffix.lower() == ".npy" else super().writer(path)


@analysis()
def generate(
    model: Annotated[Any, Flag(unit="MODEL")],
    count: Annotated[int, Flag("-n", "--count", min=1, unit="N")] = 64,
    *,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Samples:
    """Draw new images from a model that was trained to make them.

    Parameters
    ----------
    model : path or fitted model
        A .twofold file that train wrote, or any model that draws samples: VAE, DLGM, GAN, VAEGAN, PixelCNN,
        GaussianMixture, ...
    count
        How many to draw.

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
        from twofold.io.tables.read import missing_message

        if not os.path.isfile(model):
            raise InputError(missing_message(os.fspath(model)))
        with doing("reading"):
            source = os.fspath(model)
            found = load(source)
    if not hasattr(found, "sample"):
        raise InputError(f"{source} holds a {type(found).__name__}, which draws nothing. Train one that does: a vae.")
    with doing("drawing"):
        drawn = found.sample(count, random_state=seed)
    return Samples(source=source, model=found, drawn=np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn))
