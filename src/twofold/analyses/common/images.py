"""Images for analyses: how they are read, and answers that are images."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from twofold.analyses.common.answer import DRAWN, Answer
from twofold.analyses.common.targets import Writer, check_targets
from twofold.core.checks import InputError
from twofold.core.files.atomic import write_all
from twofold.io.images import ENDINGS, Picture, check_holds, encode_image, read_image

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNNAMED_IMAGE, UNNAMED_SIGNAL = "the image", "the signal"


def as_image(data: Any) -> Picture:
    """An image from whatever holds one: a path, or an array (h,w), (h,w,3), or with alpha as its last channel."""
    if isinstance(data, Picture):
        return replace(data, notes=list(data.notes))
    if isinstance(data, (str, os.PathLike)):
        return read_image(os.fspath(data))
    pixels, alpha = split_alpha(np.asarray(data))
    fits = pixels.ndim == 2 or pixels.shape[2:] == (3,)
    if pixels.dtype not in (np.uint8, np.uint16) or not fits or not pixels.size:
        raise InputError(
            f"the image is an array of {pixels.dtype} with shape {np.shape(data)}; an image is uint8 or uint16, "
            "(h,w) or (h,w,3), or with transparency as one more channel. Scale, round and clip it first: "
            "np.rint(255 * x).astype(np.uint8)."
        )
    return Picture(pixels, alpha, source=UNNAMED_IMAGE)


def split_alpha(array: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Pixels and transparency; of 2 or 4 channels the last is transparency, and one channel is gray."""
    alpha = None
    if array.ndim == 3 and array.shape[2] in (2, 4):
        array, alpha = array[..., :-1], array[..., -1]
    return (array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array), alpha


def with_alpha(image: Picture) -> np.ndarray:
    """One array: transparency is its last channel."""
    return image.pixels if image.alpha is None else np.dstack([image.pixels, image.alpha])


def check_formats(paths: Sequence[Path], image: Picture) -> None:
    """Refuse, before anything is computed, a format that cannot hold what this image has."""
    for path in paths:
        if path.suffix.lower() in ENDINGS:
            try:
                check_holds(path.suffix.lower(), image.pixels, image.alpha)
            except InputError as error:
                raise InputError(f"{path}: {error}") from None


@dataclass(kw_only=True, repr=False, eq=False)
class ComparedAnswer(Answer):
    """An image or signals before and after; `save` takes their figure as `compare`, since both may end in .png."""

    before: Any
    after: Any

    compares: ClassVar[bool] = True

    @property
    def heading(self) -> str:
        return self.before.describe()

    def facts(self) -> dict[str, Any]:
        return self.before.facts()

    def save(self, *paths: str | os.PathLike, compare: str | os.PathLike | None = None, force: bool = False) -> None:
        """Write the answer to files by their endings: all of them, whole, or none.

        Parameters
        ----------
        *paths : path
            The result as its ending says; `.html` holds a report.
        compare : path or None
            File of the figure, before and after: `.png` or `.html`.
        force : bool
            Whether files that exist are replaced.
        """
        files = [Path(path) for path in paths]
        figures = [] if compare is None else [Path(compare)]
        check_targets(files, self.endings, force)
        check_targets(figures, DRAWN, force)
        results = {file: self.writer(file) for file in files}
        write_all(results | {file: super(ComparedAnswer, self).writer(file) for file in figures})


@dataclass(kw_only=True, repr=False, eq=False)
class ImageAnswer(ComparedAnswer):
    """An answer that is an image."""

    before: Picture
    after: Picture

    endings: ClassVar[tuple[str, ...]] = (*ENDINGS, ".html")

    @property
    def image(self) -> np.ndarray:
        """The result, of the type that was given; transparency, if there is any, is the last channel."""
        return with_alpha(self.after)

    def panels(self) -> list[tuple[str, np.ndarray]]:
        """Names and pixels of the images in the figure."""
        return [("before", self.before.pixels), ("after", self.after.pixels)]

    def plot(self) -> Figure:
        from twofold.plots.models.images import comparison_figure

        return comparison_figure(self.panels(), self.title)

    def writer(self, path: Path) -> Writer:
        return image_writer(path, self.after) if path.suffix.lower() in ENDINGS else super().writer(path)


def image_writer(path: Path, image: Picture) -> Writer:
    data = encode_image(path.suffix, image.pixels, image.alpha, image.info.get("icc_profile"))
    return lambda to: to.write_bytes(data)


def decibels(value: float) -> str:
    return f"{value:.2f} dB" if np.isfinite(value) else "exact"
