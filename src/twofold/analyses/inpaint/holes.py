"""Which pixels of an image are missing: by a mask, a color, or transparency."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from twofold.analyses.common.images import as_image
from twofold.core.checks import InputError
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
