"""Missing pixels on straight lines between known ones: what filling is compared with."""

from __future__ import annotations

import numpy as np


def interpolate_bilinear(pixels: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """The image with missing pixels interpolated along row and column; the shorter distance has the larger weight."""
    values = np.atleast_3d(pixels).astype(np.float64)
    guess, weight = np.zeros_like(values), np.zeros(missing.shape)
    for axis in (0, 1):  # views: what is added to them is added to all
        turned = [np.moveaxis(array, axis, 0) for array in (values, guess, weight, missing)]
        for line in range(missing.shape[1 - axis]):
            interpolate_line(*(array[:, line] for array in turned))
    mean = values[~missing].mean(axis=0)  # for pixels without a known one in their row and column
    lines = np.where(weight[..., None] > 0, guess / np.maximum(weight, 1e-12)[..., None], mean)
    out = np.where(missing[..., None], lines, values)
    return out if pixels.ndim == 3 else out[..., 0]


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
