"""PSNR on known pixels, which are hidden in the shape of the holes and filled again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from twofold.core.seeds import generator
from twofold.io.images import Picture

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
