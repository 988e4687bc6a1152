"""The Fourier basis of real signals: waves over the whole signal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft

from twofold.signals.bases.basis import Basis, apply_along_each, group_octaves


@dataclass(frozen=True)
class Fourier(Basis):
    """A constant, then a cosine and a sine of every frequency, orthonormal and real.

    Coefficients of length d are ordered 1, cos 1, sin 1, cos 2, sin 2, ..., and end with the alternating signal if d is
    even. Images have products of these.

    Parameters
    ----------
    ndim : {1, 2}, default=1
        1 for signals, along the last axis; 2 for images, along the last two.

    References
    ----------
    Cooley & Tukey (1965), *Mathematics of Computation* 19, 297-301.

    Examples
    --------
    >>> from twofold.signals import Fourier
    >>> n = np.arange(100)
    >>> codes = Fourier().analyze(3 * np.cos(2 * np.pi * 7 * n / 100))
    >>> np.flatnonzero(np.abs(codes) > 1e-9)          # the cosine of frequency 7
    array([13])
    """

    def _forward(self, X: np.ndarray) -> np.ndarray:
        return apply_along_each(_analyze, X, self.ndim)

    def _bands(self, shape: tuple[int, ...]) -> np.ndarray:
        return group_octaves([(np.arange(n) + 1) // 2 for n in shape])

    def _backward(self, C: np.ndarray) -> np.ndarray:
        return apply_along_each(_synthesize, C, self.ndim)


def _analyze(X: np.ndarray) -> np.ndarray:
    d = X.shape[-1]
    waves = fft.rfft(X, norm="ortho")
    C = np.empty(X.shape, X.dtype)
    C[..., 0] = waves[..., 0].real
    pairs = (d - 1) // 2
    C[..., 1 : 2 * pairs : 2] = np.sqrt(2) * waves[..., 1 : pairs + 1].real
    C[..., 2 : 2 * pairs + 1 : 2] = -np.sqrt(2) * waves[..., 1 : pairs + 1].imag
    if d % 2 == 0:
        C[..., -1] = waves[..., -1].real
    return C


def _synthesize(C: np.ndarray) -> np.ndarray:
    d = C.shape[-1]
    pairs = (d - 1) // 2
    waves = np.zeros((*C.shape[:-1], d // 2 + 1), np.result_type(C, np.complex64))
    waves[..., 0] = C[..., 0]
    waves[..., 1 : pairs + 1] = (C[..., 1 : 2 * pairs : 2] - 1j * C[..., 2 : 2 * pairs + 1 : 2]) / np.sqrt(2)
    if d % 2 == 0:
        waves[..., -1] = C[..., -1]
    return fft.irfft(waves, n=d, norm="ortho")
