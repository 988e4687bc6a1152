"""A picture, one method, any quantisation step: how good and how long the file would be."""

from __future__ import annotations

import numpy as np

from twofold.signals.images import _tfi_file
from twofold.signals.images._channels import join_channels

LARGEST = 1 << 30  # what a coefficient may be in steps


def psnr(truth: np.ndarray, guess: np.ndarray, peak: float) -> float:
    """10 log₁₀(peak² / mean squared error), in decibels; infinite where there is no error.

    >>> psnr(np.zeros(4), np.ones(4), 10.0)
    20.0
    """
    rest = np.subtract(truth, guess, dtype=np.float64) / peak
    error = float(np.mean(np.square(rest, out=rest)))
    return float(-10 * np.log10(error)) if error > 0 else float("inf")


class Trial:
    """A picture and one method: what each step would give."""

    def __init__(self, image: np.ndarray, channels: list[np.ndarray], method: str):
        self.image, self.method = image, method
        self.shape, self.dtype = channels[0].shape, channels[0].dtype
        self.colours = image if image.ndim == 2 else image[..., : 3 if image.shape[2] >= 3 else 1]
        self.atoms = _tfi_file.learn_atoms(method, channels)
        way = _tfi_file.choose_transform(method, self.atoms)
        self.shapes = way.shapes(self.shape)
        self.coefficients = [np.concatenate([c.ravel() for c in way.planes(channel)]) for channel in channels]
        self.alpha = _tfi_file.pack_alpha(image[..., -1]) if image.ndim == 3 and image.shape[2] in (2, 4) else b""
        self.peak = find_peak(self.colours)
        top = max(float(np.abs(c).max()) for c in self.coefficients)
        exact = self.peak / LARGEST if image.dtype.kind == "f" else 1 / 16  # smaller steps change no integer
        self.steps = np.log2([max(top / LARGEST, exact), max(2 * top, 2 * exact)])  # from the finest to all is zero

    def quantised(self, x: float) -> _tfi_file.Quantized:
        return _tfi_file.quantize(self.coefficients, self.shapes, 2.0**x, self.atoms)

    def quality(self, x: float) -> float:
        """PSNR with a step of 2^x."""
        channels = _tfi_file.decode_channels(self.quantised(x), self.method, self.shape, self.dtype)
        out = join_channels(channels, self.image)
        return psnr(self.colours, out[..., : self.colours.shape[-1]], self.peak)

    def size(self, x: float) -> int:
        """Bytes of the file with a step of 2^x."""
        return (
            _tfi_file.HEAD.size
            + len(_tfi_file.encode(self.quantised(x), self.method))
            + len(self.alpha)
            + _tfi_file.CHECK.size
        )

    def file(self, x: float) -> bytes:
        found = self.quantised(x)
        head = _tfi_file.Head(
            _tfi_file.MAGIC,
            _tfi_file.VERSION,
            _tfi_file.METHODS.index(self.method),
            _tfi_file.DTYPES.index(self.image.dtype.name),
            self.image.shape[2] if self.image.ndim == 3 else 0,
            self.image.shape[0],
            self.image.shape[1],
            2.0**x,
            self.quality(x),
            *found.shifts,
            len(found.shapes),
            len(self.alpha),
        )
        return _tfi_file.seal(head, _tfi_file.encode(found, self.method), self.alpha)


def find_peak(colours: np.ndarray) -> float:
    """What an error is compared with: the range of the integers, or that of the floats that are there."""
    if colours.dtype.kind in "iu":
        limits = np.iinfo(colours.dtype)
        return float(limits.max) - float(limits.min)
    low, high = float(colours.min()), float(colours.max())
    return high - low or abs(high) or 1.0
