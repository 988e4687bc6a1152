"""The holes of an image filled, every other pixel as it was.

What is missing is marked by a mask, by a color, or by transparency. Patches of the image are coded with few atoms of
a dictionary that is learned from what is known; compared with bilinear interpolation, on known pixels that were hidden.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
import polars as pl

from twofold.analyses.common.analysis import OneFile, Seed, analysis, list_planned_files
from twofold.analyses.common.answer import Grid
from twofold.analyses.common.images import ImageAnswer, as_image, check_formats, decibels
from twofold.core.checks import InputError
from twofold.core.declaration import Flag
from twofold.core.progress import Progress, doing
from twofold.core.seeds import generator
from twofold.io.images import Picture, color_of


def find_holes(image: Picture, mask: Any, color: str | None, tolerance: int) -> tuple[np.ndarray, list[str]]:
    """The missing pixels (h,w), and notes that say how they were found."""
    if mask is not None and color is not None:
        raise InputError("⟨mask⟩ and ⟨color⟩ both say what is missing. Give one of them.")
    if mask is not None:
        name, holes = read_mask(image, mask)
        said = f"{name}: white marks what is missing"
    elif color is not None:
        holes = match_color(image, color, tolerance)
        said = f"pixels of color {color} are missing"
    elif image.alpha is not None and not image.alpha.all():
        holes, said = image.alpha == 0, "wholly transparent pixels are taken for missing"
    else:
        raise InputError(
            f"{image.source}: nothing says which pixels are missing. Give ⟨mask=mask.png⟩ (white: missing), "
            "⟨color=#ff00ff⟩, or an image with transparent pixels."
        )
    share = holes.mean()
    if share == 1:
        raise InputError(f"{image.source}: {said}, and that is every pixel. Nothing is left to learn from.")
    notes = [f"{said}: {holes.sum():,} pixels ({share:.1%})"]
    if mask is not None and share > 0.9:
        notes.append("if the mask is white where pixels are known, invert it")
    return holes, notes


def read_mask(image: Picture, mask: Any) -> tuple[str, np.ndarray]:
    """The name of the mask, and its white pixels (h,w)."""
    if isinstance(mask, (str, os.PathLike)):
        given = as_image(mask)
    else:
        mask = np.asarray(mask)
        given = replace(as_image(np.uint8(255) * mask if mask.dtype == bool else mask), source="the mask")
    light = given.pixels if given.pixels.ndim == 2 else given.pixels.mean(axis=2)
    if light.shape != image.pixels.shape[:2]:
        (h, w), (H, W) = light.shape, image.pixels.shape[:2]
        raise InputError(f"{given.source} has {w} × {h} pixels, {image.source} {W} × {H}. A mask has the image's size.")
    holes = light > given.peak / 2
    if not holes.any():
        raise InputError(f"{given.source} has no white pixel, so nothing is missing. Paint white what is to be filled.")
    return given.source, holes


def match_color(image: Picture, color: str, tolerance: int) -> np.ndarray:
    want = np.array(color_of(color))
    pixels = image.pixels.astype(np.float64) * (255 / image.peak)
    if pixels.ndim == 2:
        if len(set(want.tolist())) > 1:
            raise InputError(f"⟨color={color}⟩: {image.source} is gray. Give a gray, such as '#ffffff', or a ⟨mask⟩.")
        pixels, want = pixels[..., None], want[:1]
    off = np.abs(pixels - want).max(axis=2)
    if off.min() > tolerance:
        raise InputError(
            f"⟨color={color}⟩: no pixel of {image.source} has it; the nearest is {off.min():.0f} off. "
            f"Use ⟨tolerance={int(np.ceil(off.min()))}⟩ or more, or a ⟨mask⟩."
        )
    return off <= tolerance


def without_holes(image: Picture, holes: np.ndarray) -> Picture:
    """The image whose holes are no longer transparent."""
    if image.alpha is None:
        return image
    alpha = np.where(holes, image.peak, image.alpha).astype(image.alpha.dtype)
    return replace(image, alpha=alpha if alpha.min() < image.peak else None)


WINDOW_PIXELS = 160  # side of the part of the image that is filled again
MAX_HIDDEN_SHARE = 0.05  # of its pixels


def measure_on_hidden(
    image: Picture, holes: np.ndarray, seed: int, fill: Callable[..., np.ndarray]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures and baseline: PSNR on known pixels, hidden in the shape of the holes, and filled again."""
    from twofold.metrics import psnr

    part, missing, hidden = choose_hidden(holes, seed)
    if not hidden.any() or (missing | hidden).all():
        return {}, {}
    pixels = image.pixels[part]
    guesses = fill(pixels, missing | hidden)[hidden], interpolate_bilinear(pixels, missing | hidden, hidden)
    own, lines = (psnr(pixels[hidden], guess, image.peak) for guess in guesses)
    figures = {"what": "PSNR in dB on known pixels that were hidden", "pixels": int(hidden.sum()), "psnr": own}
    return figures, {"method": "bilinear interpolation", "psnr": lines}


def choose_hidden(holes: np.ndarray, seed: int) -> tuple[tuple[slice, slice], np.ndarray, np.ndarray]:
    """A part of the image, its missing pixels (h,w), and its known pixels to hide (h,w)."""
    rng = generator(seed, 1)
    h, w = holes.shape
    moved = np.roll(holes, (rng.integers(h), rng.integers(w)), axis=(0, 1)) & ~holes
    at = np.argwhere(moved)
    row, column = at[rng.integers(len(at))] if len(at) else (0, 0)
    top = int(np.clip(row - WINDOW_PIXELS // 2, 0, max(h - WINDOW_PIXELS, 0)))
    left = int(np.clip(column - WINDOW_PIXELS // 2, 0, max(w - WINDOW_PIXELS, 0)))
    part = slice(top, top + WINDOW_PIXELS), slice(left, left + WINDOW_PIXELS)
    hidden = np.zeros_like(holes[part])
    where = np.flatnonzero(moved[part])  # neighbors stay together, so holes keep their shape
    most = max(int(MAX_HIDDEN_SHARE * hidden.size), 1)
    first = int(rng.integers(max(len(where) - most, 0) + 1))
    hidden.flat[where[first : first + most]] = True
    return part, holes[part], hidden


def interpolate_bilinear(pixels: np.ndarray, missing: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Interpolation along row and column at the wanted pixels; the shorter distance has the larger weight."""
    values = np.atleast_3d(pixels).astype(np.float64)
    guess, weight = np.zeros_like(values), np.zeros(missing.shape)
    for axis in (0, 1):  # views: what is added to them is added to all
        turned = [np.moveaxis(array, axis, 0) for array in (values, guess, weight, missing)]
        for line in range(missing.shape[1 - axis]):
            interpolate_line(*(array[:, line] for array in turned))
    mean = values[~missing].mean(axis=0)  # for pixels without a known one in their row and column
    out = np.where(weight[..., None] > 0, guess / np.maximum(weight, 1e-12)[..., None], mean)[wanted]
    return out if pixels.ndim == 3 else out[:, 0]


def interpolate_line(values: np.ndarray, guess: np.ndarray, weight: np.ndarray, missing: np.ndarray) -> None:
    """Add the values of one line (n,c) at its missing pixels, weighted by 1 / distance to a known pixel."""
    known, holes = np.flatnonzero(~missing), np.flatnonzero(missing)
    if not len(known) or not len(holes):
        return
    after = np.searchsorted(known, holes)
    left, right = known[np.maximum(after - 1, 0)], known[np.minimum(after, len(known) - 1)]
    near = 1 / np.minimum(np.abs(holes - left), np.abs(right - holes))
    weight[holes] += near
    for c in range(values.shape[1]):
        guess[holes, c] += near * np.interp(holes, known, values[known, c])


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


@analysis()
def inpaint(
    image: OneFile,
    *,
    mask: Annotated[Any, Flag(unit="FILE")] = None,
    color: Annotated[str | None, Flag(unit="COLOR")] = None,
    tolerance: Annotated[int, Flag(min=0, max=255, unit="N")] = 0,
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
        from twofold.signals.images.inpaint import inpaint_image  # takes seconds: bad input is told before

    with doing("inpainting"):
        pixels = inpaint_image(before.pixels, holes, random_state=seed)
    with doing("checking"):
        fill = partial(inpaint_image, random_state=seed)
        figures, baseline = measure_on_hidden(before, holes, seed, fill)
    return Inpainted(
        source=before.source,
        figures=figures,
        baseline=baseline,
        notes=before.notes + said,
        before=before,
        after=replace(without_holes(before, holes), pixels=pixels),
        holes=holes,
    )
