"""Wavelets: short waves of every size at every place.

A level turns 2m numbers into m averages and m differences; the next level does the same to the averages. Where their
number is odd the last one waits for the next level as it is: so every length has an orthonormal transform.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pywt

from twofold.core.checks import InputError
from twofold.signals.bases.basis import Basis, apply_along_each

Step = Callable[[np.ndarray, pywt.Wavelet], np.ndarray]


@dataclass(frozen=True)
class Wavelet(Basis):
    """An orthonormal wavelet basis: averages of the coarsest level first, then differences from coarse to fine.

    Images are halved in both directions at every level; the averages stay in the upper left corner.

    Parameters
    ----------
    ndim : {1, 2}, default=1
        For signals along the last axis, or for images on the last two.
    wavelet : str, default="db4"
        An orthogonal wavelet of PyWavelets: "haar", "db2" ... "db38", "sym2" ..., "coif1" ....
    levels : int or None, default=None
        How often to halve; None as often as the averages are longer than the wavelet.

    Notes
    -----
    The signal is taken to repeat itself. Where the number of averages is odd, the last one is left as it is.

    References
    ----------
    Daubechies (1988), *Comm. Pure Appl. Math.* 41, 909-996. Mallat (1989), *IEEE Trans. PAMI* 11, 674-693.

    Examples
    --------
    >>> from twofold.signals import Wavelet, keep_largest
    >>> x = np.zeros(256)
    >>> x[100:140] = np.hanning(40)                       # one bump, somewhere
    >>> codes, lost = keep_largest(Wavelet(wavelet="db4").analyze(x), 12)
    >>> bool(lost < 0.01 * np.sum(x**2))
    True
    """

    wavelet: str = "db4"
    levels: int | None = None

    def _forward(self, X: np.ndarray) -> np.ndarray:
        return _apply_levels(X, self.ndim, self._filter(), self._levels(X.shape[-self.ndim :]), _halve, range)

    def _backward(self, C: np.ndarray) -> np.ndarray:
        levels = self._levels(C.shape[-self.ndim :])
        return _apply_levels(C, self.ndim, self._filter(), levels, _double, lambda n: range(n - 1, -1, -1))

    def _bands(self, shape: tuple[int, ...]) -> np.ndarray:
        bands, count = np.zeros(shape, np.intp), 0
        for sizes in _halve_sizes(shape, self._levels(shape))[::-1]:
            corner = tuple((n + 1) // 2 for n in sizes)
            parts = [(slice(0, m), slice(m, n)) for m, n in zip(corner, sizes, strict=True)]
            for part in list(itertools.product(*parts))[1:]:
                count += 1
                bands[part] = count
        return bands

    def _filter(self) -> pywt.Wavelet:
        try:
            found = pywt.Wavelet(self.wavelet)
        except ValueError:
            raise InputError(
                f'wavelet="{self.wavelet}" is not one that PyWavelets knows. Try "haar", "db4", "sym8".'
            ) from None
        if not found.orthogonal:
            raise InputError(f'wavelet="{self.wavelet}" is not orthogonal. Use "haar", "db4", "sym8" or "coif2".')
        return found

    def _levels(self, shape: tuple[int, ...]) -> int:
        if self.levels is not None:
            return self.levels
        length, most = self._filter().dec_len, min(shape)
        count = 0
        while most >= max(2, length):
            most, count = (most + 1) // 2, count + 1
        return count


@dataclass(frozen=True)
class Haar(Wavelet):
    """Averages and differences of neighbors, of neighboring pairs, and so on: the simplest wavelets.

    For d = 4 the atoms are ½(1, 1, 1, 1), ½(1, 1, −1, −1), (1, −1, 0, 0)/√2 and (0, 0, 1, −1)/√2.

    Parameters
    ----------
    ndim : {1, 2}, default=1
        For signals along the last axis, or for images on the last two.
    levels : int or None, default=None
        How often to halve; None until one average is left.

    Notes
    -----
    Where the number of averages is odd, the last one is left as it is: every length has an orthonormal transform.

    References
    ----------
    Haar (1910), *Mathematische Annalen* 69, 331-371.

    Examples
    --------
    >>> from twofold.signals import Haar
    >>> Haar().matrix(4).round(3)
    array([[ 0.5  ,  0.5  ,  0.5  ,  0.5  ],
           [ 0.5  ,  0.5  , -0.5  , -0.5  ],
           [ 0.707, -0.707,  0.   ,  0.   ],
           [ 0.   ,  0.   ,  0.707, -0.707]])
    """

    wavelet: str = field(default="haar", init=False, repr=False)


def _apply_levels(
    X: np.ndarray, ndim: int, wavelet: pywt.Wavelet, levels: int, step: Step, order: Callable[[int], range]
) -> np.ndarray:
    """The step on the averages of every level: the first ⌈n/2^level⌉ numbers of each axis."""
    out = np.array(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
    sizes = _halve_sizes(X.shape[X.ndim - ndim :], levels)
    for level in order(levels):
        corner: Any = (..., *(slice(n) for n in sizes[level]))
        out[corner] = apply_along_each(lambda A: step(A, wavelet), out[corner], ndim)
    return out


def _halve_sizes(shape: tuple[int, ...], levels: int) -> list[tuple[int, ...]]:
    """The number of averages at the start of each level, along each axis."""
    return [tuple(-(-n // 2**level) for n in shape) for level in range(levels)]


def _halve(A: np.ndarray, wavelet: pywt.Wavelet) -> np.ndarray:
    n = A.shape[-1]
    if n < 2:
        return A
    low, high = pywt.dwt(A[..., : n - n % 2], wavelet, mode="periodization", axis=-1)
    return np.concatenate([low, A[..., n - n % 2 :], high], axis=-1)


def _double(C: np.ndarray, wavelet: pywt.Wavelet) -> np.ndarray:
    n = C.shape[-1]
    if n < 2:
        return C
    low, alone, high = np.split(C, [n // 2, n - n // 2], axis=-1)
    return np.concatenate([pywt.idwt(low, high, wavelet, mode="periodization", axis=-1), alone], axis=-1)
