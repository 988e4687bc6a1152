"""Denoising by groups of similar patches: in the principal directions of its group a patch is few large numbers.

    First   every group of noisy patches has a covariance, noise included: coefficients shrink by (λ − σ²) / λ
    then    the same with the first result as pilot: groups and variances come from it, and coefficients of the
            noisy patches shrink by λ / (λ + σ²)

Patches overlap, and groups do: a pixel is the mean of all that is said of it. Patches with similar lightness are a
group in every channel.
References: Zhang, Dong, Zhang & Shi (2010), Pattern Recognition 43. Lebrun, Buades & Morel (2013), SIAM J. Imaging
Sciences 6.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from twofold.core.data.blocks import Rows
from twofold.core.engine.local import Engine
from twofold.core.progress import part
from twofold.kernels.similar_patches import clean_rows
from twofold.signals.images.patches import STRIPS_PER_REPORT

PATCH = 7
RADIUS = 15  # of the window in which similar patches are searched
GROUP, PILOT_GROUP = 120, 60  # patches of a group in the first and second pass
ROWS_PER_STRIP = 4
PLAIN_DEVIATIONS = 3.0  # of the variance of a group that may be nothing but noise


class Pass(NamedTuple):
    """The numbers of one pass over the image."""

    second: bool
    size: int
    n: int


def choose_size(shape: tuple[int, ...], patch: int | None) -> int:
    """Pixels across a patch: fewer if the image has no room for a group of larger ones."""
    return min(patch or PATCH, max(1, min(shape[:2]) // 3))


def clean_similar(noisy: np.ndarray, size: int, guide: np.ndarray | None = None) -> np.ndarray:
    """The channels (c,h,w), with noise of 1, cleaned in two passes.

    `guide` (h,w) says which patches are similar; None means the first channel.
    """
    with part(0, 0.5):
        pilot = run_pass(noisy, noisy, noisy[0] if guide is None else guide, Pass(False, size, GROUP))
    with part(0.5, 1):
        return run_pass(noisy, pilot, pilot[0] if guide is None else guide, Pass(True, size, PILOT_GROUP))


def run_pass(noisy: np.ndarray, pilot: np.ndarray, guide: np.ndarray, settings: Pass) -> np.ndarray:
    """Mean of all that the groups say of each pixel."""
    h = guide.shape[0]
    starts = range(0, h - settings.size + 1, ROWS_PER_STRIP)
    runs = [range(a, min(a + ROWS_PER_STRIP, h - settings.size + 1)) for a in starts]
    engine, sums, counts = Engine(), np.zeros_like(noisy), np.zeros_like(noisy[0])
    held = [engine.broadcast(value) for value in (noisy, pilot, np.ascontiguousarray(guide))]
    clean = partial(clean_strip, settings=settings)
    together = max(2, min(STRIPS_PER_REPORT, len(runs) // 4))
    for first in range(0, len(runs), together):
        some = runs[first : first + together]
        with part(first, first + len(some), len(runs)):
            for top, added, times in engine.gather(engine.map(clean, Rows(some), *held)):
                sums[:, top : top + len(times)] += added
                counts[top : top + len(times)] += times
    sums /= counts
    return sums


def clean_strip(
    rows: range, noisy: np.ndarray, pilot: np.ndarray, guide: np.ndarray, settings: Pass
) -> tuple[int, np.ndarray, np.ndarray]:
    """The first row that the groups of some places reach, the sums over its pixels, and how many were added."""
    h, w = guide.shape
    top, bottom = max(rows.start - RADIUS, 0), min(rows.stop - 1 + RADIUS + settings.size, h)
    sums, counts = np.zeros((len(noisy), bottom - top, w), noisy.dtype), np.zeros((bottom - top, w), noisy.dtype)
    limit = 1 + PLAIN_DEVIATIONS * (2 / (settings.n * settings.size**2)) ** 0.5
    clean_rows(
        noisy,
        pilot,
        guide,
        settings.second,
        settings.size,
        RADIUS,
        settings.n,
        (settings.size + 1) // 2,
        limit,
        (rows.start, rows.stop),
        top,
        sums,
        counts,
    )
    return top, sums, counts
