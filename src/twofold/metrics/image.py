"""The error of an image."""

from __future__ import annotations

import numpy as np


def psnr(truth: np.ndarray, guess: np.ndarray, peak: float | None = None) -> float:
    """The peak signal-to-noise ratio, 10 log₁₀(peak² / mean squared error), in decibels.

    Parameters
    ----------
    truth, guess : ndarray of the same shape
    peak : float, optional
        The range that errors are divided by. None means :func:`find_peak` of the truth.

    Returns
    -------
    float
        Infinite where there is no error.

    Examples
    --------
    >>> from twofold.metrics import psnr
    >>> psnr(np.zeros(4), np.ones(4), 10.0)
    20.0
    """
    rest = np.subtract(truth, guess, dtype=np.float64) / (find_peak(truth) if peak is None else peak)
    error = float(np.mean(np.square(rest, out=rest)))
    return float(-10 * np.log10(error)) if error > 0 else float("inf")


def find_peak(image: np.ndarray) -> float:
    """The range of an image: that of its integer type, or that of its floats.

    >>> find_peak(np.zeros((2, 2), np.uint8)), find_peak(np.array([0.25, 1.0]))
    (255.0, 0.75)
    """
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        return float(limits.max) - float(limits.min)
    low, high = float(image.min()), float(image.max())
    return high - low or abs(high) or 1.0
