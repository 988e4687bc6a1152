"""Gabor waves: an oscillation under a bell, at every place, in several frequencies and directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import fft

from twofold.signals.bases.basis import Basis, _as_shape


@dataclass(frozen=True)
class Gabor(Basis):
    """Overcomplete: ``exp(−‖n − μ‖² / 2s²) cos(f · (n − μ))`` for every place μ, scaled to length 1.

    Analysis and synthesis are convolutions, made by fast Fourier transforms; the signal is taken to repeat itself.
    Coefficients have one more axis in front, the waves: (..., waves, d), or (..., waves, h, w).

    Parameters
    ----------
    ndim : {1, 2}, default=1
        For signals along the last axis, or for images on the last two.
    frequencies : tuple of float, default=(0.0, 0.4, 0.8, 1.6)
        In radians a step; 0 is the bell itself.
    directions : int, default=4
        For images: how many directions each frequency but 0 has.
    width : float, default=3.0
        s, in steps.

    References
    ----------
    Gabor (1946), *J. IEE* 93, 429-457. Daugman (1985), *J. Optical Society of America A* 2, 1160-1169.

    Examples
    --------
    >>> from twofold.signals import Gabor
    >>> n = np.arange(200)
    >>> x = np.exp(-((n - 60) ** 2) / 18) * np.cos(0.8 * (n - 60))
    >>> codes = Gabor().analyze(x)                        # (4, 200): which wave, where
    >>> tuple(int(i) for i in np.unravel_index(np.abs(codes).argmax(), codes.shape))
    (2, 60)
    """

    frequencies: tuple[float, ...] = (0.0, 0.4, 0.8, 1.6)
    directions: int = 4
    width: float = 3.0
    orthonormal: ClassVar[bool] = False

    def coefficients(self, shape: int | tuple[int, ...]) -> tuple[int, ...]:
        return (len(self._turns()), *_as_shape(shape))

    def _turns(self) -> list[tuple[float, float]]:
        """(frequency, angle) of every wave."""
        turns = 1 if self.ndim == 1 else self.directions
        return [(f, np.pi * a / turns) for f in self.frequencies for a in range(turns if f else 1)]

    def _waves(self, shape: tuple[int, ...]) -> np.ndarray:
        """The Fourier transforms of the waves about the origin: (waves, ...)."""
        places = [fft.fftfreq(n, 1 / n) for n in shape]  # 0, 1, ..., −2, −1
        grids = np.meshgrid(*places, indexing="ij")
        bell = np.exp(-sum(g**2 for g in grids) / (2 * self.width**2))
        waves = []
        for f, angle in self._turns():
            along = grids[0] if self.ndim == 1 else grids[1] * np.cos(angle) + grids[0] * np.sin(angle)
            wave = bell * np.cos(f * along)
            waves.append(wave / np.linalg.norm(wave))
        return fft.rfftn(np.stack(waves), axes=range(-self.ndim, 0))

    def _forward(self, X: np.ndarray) -> np.ndarray:
        return self._convolved(X, lambda spectrum, waves: np.expand_dims(spectrum, -self.ndim - 1) * waves.conj())

    def _backward(self, C: np.ndarray) -> np.ndarray:
        return self._convolved(C, lambda spectrum, waves: (spectrum * waves).sum(axis=-self.ndim - 1))

    def _convolved(self, A: np.ndarray, multiply: Any) -> np.ndarray:
        shape, axes = A.shape[-self.ndim :], range(-self.ndim, 0)
        product = multiply(fft.rfftn(A, axes=axes), self._waves(shape))
        return fft.irfftn(product, s=shape, axes=axes).astype(A.dtype, copy=False)
