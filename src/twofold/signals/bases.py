"""The base of bases: signals ↦ coefficients and back, by a fast transform that is never written out as a matrix.

    analyze(X) → C the correlations of a signal with every atom      synthesize(C) → X = Σ_a c_a · atom a

A basis with ``ndim=1`` works along the last axis, one with ``ndim=2`` on the last two; axes before are a batch. For an
orthonormal basis the two are inverses and keep the length (Parseval); for an overcomplete one they are adjoints.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pywt
from scipy import fft
from scipy.sparse.linalg import LinearOperator

from twofold.core.checks import InputError
from twofold.core.types import Table


@dataclass(frozen=True)
class Basis:
    """Base of the bases."""

    ndim: int = 1
    orthonormal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.ndim not in (1, 2):
            raise InputError(f"ndim={self.ndim!r}: a basis is for signals (1) or for images (2).")

    def analyze(self, X: Table) -> np.ndarray:
        """Coefficients of signals (..., d), or of images (..., h, w)."""
        return self._forward(self._signals(X))

    def synthesize(self, C: Any) -> np.ndarray:
        """Signals from coefficients."""
        return self._backward(np.asarray(C))

    def _forward(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _backward(self, C: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _signals(self, X: Any) -> np.ndarray:
        X = np.asarray(X)
        if X.ndim < self.ndim or 0 in X.shape[X.ndim - self.ndim :]:
            what = "signals (..., d)" if self.ndim == 1 else "images (..., h, w)"
            raise InputError(f"X has shape {X.shape}; {self!r} takes {what} with one number or more.")
        if X.dtype.kind not in "fiub":
            raise InputError(f"X holds {X.dtype}; {self!r} takes real numbers.")
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)

    def coefficients(self, shape: int | tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the coefficients of one signal of this shape."""
        return _as_shape(shape)

    def _bands(self, shape: tuple[int, ...]) -> np.ndarray:
        """The band of each coefficient of a signal of this shape: 1, 2, ...; 0 for averages, which are kept."""
        return np.ones(self.coefficients(shape), np.intp)

    def _lengths(self, shape: tuple[int, ...]) -> Any:
        """The lengths of the atoms: one number, or an array like the coefficients."""
        return 1.0

    def matrix(self, shape: int | tuple[int, ...]) -> np.ndarray:
        """The atoms as rows (k, d), for a look or for small problems: ``synthesize(c) == c @ matrix``."""
        shape = _as_shape(shape)
        inner = self.coefficients(shape)
        k = int(np.prod(inner))
        return self.synthesize(np.eye(k).reshape(k, *inner)).reshape(k, -1)

    def operator(self, shape: int | tuple[int, ...]) -> LinearOperator:
        """Synthesis as a SciPy operator (d, k) on flat vectors, for solvers."""
        shape = _as_shape(shape)
        inner = self.coefficients(shape)
        return LinearOperator(
            (int(np.prod(shape)), int(np.prod(inner))),
            matvec=lambda c: self.synthesize(c.reshape(inner)).ravel(),
            rmatvec=lambda x: self.analyze(x.reshape(shape)).ravel(),
            dtype=np.float64,
        )


def _as_shape(shape: Any) -> tuple[int, ...]:
    return tuple(int(s) for s in shape) if np.iterable(shape) else (int(shape),)


def apply_along_each(transform: Callable[[np.ndarray], np.ndarray], X: np.ndarray, ndim: int) -> np.ndarray:
    """A transform of the last axis, applied to each of the last `ndim` axes."""
    for axis in range(-1, -ndim - 1, -1):
        X = np.moveaxis(transform(np.moveaxis(X, axis, -1)), -1, axis)
    return X


def group_octaves(frequencies: list[np.ndarray]) -> np.ndarray:
    """The octave of the higher frequency along each axis, 1, 2, ...; 0 for the constant."""
    highest = np.maximum.reduce(np.meshgrid(*frequencies, indexing="ij"))
    return np.frexp(highest)[1].astype(np.intp)


@dataclass(frozen=True)
class DCT(Basis):
    """Cosines of rising frequency, orthonormal: ``c_f = s_f Σ_n x_n cos(π f (2n + 1) / 2d)``.

    Parameters
    ----------
    ndim : {1, 2}, default=1
        For signals along the last axis, or for images on the last two.

    References
    ----------
    Ahmed, Natarajan & Rao (1974), *IEEE Trans. Computers* C-23, 90-93.

    Examples
    --------
    A ramp is nearly two cosines:

    >>> from twofold.signals import DCT, keep_largest
    >>> x = np.arange(64.0)
    >>> codes, lost = keep_largest(DCT().analyze(x), 2)
    >>> bool(lost < 0.01 * np.sum(x**2))
    True
    """

    def _forward(self, X: np.ndarray) -> np.ndarray:
        return fft.dctn(X, axes=range(-self.ndim, 0), norm="ortho")

    def _bands(self, shape: tuple[int, ...]) -> np.ndarray:
        return group_octaves([np.arange(n) for n in shape])

    def _backward(self, C: np.ndarray) -> np.ndarray:
        return fft.idctn(C, axes=range(-self.ndim, 0), norm="ortho")


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
            raise InputError(f'wavelet="{self.wavelet}" is unknown to PyWavelets. Try "haar", "db4", "sym8".') from None
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
