"""Gabor waves: an oscillation under a bell, on a grid of places, in several frequencies, directions and phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import fft

from twofold.core.checks import InputError
from twofold.signals.bases.basis import Basis, _as_shape


@dataclass(frozen=True)
class Gabor(Basis):
    """Overcomplete: ``exp(−‖n − μ‖² / 2s²) cos(f · (n − μ))`` for every place μ, scaled to length 1; and with sin.

    Analysis and synthesis are convolutions, made by fast Fourier transforms; the signal is taken to repeat itself.
    Coefficients have one more axis in front, the waves: (..., waves, d), or (..., waves, h, w); of a grid of every
    `step`-th place, d / step instead of d.

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
    phases : {1, 2}, default=1
        1 for cosines, which are largest at their place; 2 for a sine after each cosine, so that a wave of any phase is
        a sum of two atoms.
    step : int, default=1
        The atoms' places are 0, step, 2 step, ... along each axis, of which it must be a divisor.

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

    A picture of 32 x 32 pixels, 25 waves at 8 x 8 places:

    >>> Gabor(2, phases=2, step=4).analyze(np.ones((32, 32))).shape
    (25, 8, 8)
    """

    frequencies: tuple[float, ...] = (0.0, 0.4, 0.8, 1.6)
    directions: int = 4
    width: float = 3.0
    phases: int = 1
    step: int = 1
    orthonormal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.phases not in (1, 2):
            raise InputError(f"phases={self.phases!r}: 1 is for cosines, 2 for cosines and sines.")
        if self.step < 1:
            raise InputError(f"step={self.step!r}: atoms are at every place (1), or at every second (2), or so on.")

    def coefficients(self, shape: int | tuple[int, ...]) -> tuple[int, ...]:
        shape = _as_shape(shape)
        if any(n % self.step for n in shape):
            raise InputError(f"step={self.step} does not divide the shape {shape}. Cut or continue the signal first.")
        return (len(self._turns()), *(n // self.step for n in shape))

    def _turns(self) -> list[tuple[float, float, Callable]]:
        """(frequency, angle, cos or sin) of every wave; at frequencies 0 and π, where sines vanish, there are none."""
        turns = 1 if self.ndim == 1 else self.directions
        pairs = [(f, np.pi * a / turns) for f in self.frequencies for a in range(turns if f else 1)]
        both = [(np.cos, np.sin) if self.phases == 2 and abs(np.sin(f)) > 1e-9 else (np.cos,) for f, _ in pairs]
        return [(f, angle, wave) for (f, angle), waves in zip(pairs, both, strict=True) for wave in waves]

    def _waves(self, shape: tuple[int, ...]) -> np.ndarray:
        """The Fourier transforms of the waves about the origin: (waves, ...)."""
        places = [fft.fftfreq(n, 1 / n) for n in shape]  # 0, 1, ..., −2, −1
        grids = np.meshgrid(*places, indexing="ij")
        bell = np.exp(-sum(g**2 for g in grids) / (2 * self.width**2))
        waves = []
        for f, angle, turn in self._turns():
            along = grids[0] if self.ndim == 1 else grids[1] * np.cos(angle) + grids[0] * np.sin(angle)
            wave = bell * turn(f * along)
            waves.append(wave / np.linalg.norm(wave))
        return fft.rfftn(np.stack(waves), axes=range(-self.ndim, 0))

    def _forward(self, X: np.ndarray) -> np.ndarray:
        self.coefficients(X.shape[-self.ndim :])
        all_places = self._convolve(X, lambda spectrum, waves: np.expand_dims(spectrum, -self.ndim - 1) * waves.conj())
        return all_places[self._grid()]

    def _grid(self) -> Any:
        """The index of the atoms' places."""
        return (..., *(slice(None, None, self.step),) * self.ndim)

    def _backward(self, C: np.ndarray) -> np.ndarray:
        if self.step > 1:
            spread = np.zeros((*C.shape[: -self.ndim], *(n * self.step for n in C.shape[-self.ndim :])), C.dtype)
            spread[self._grid()] = C
            C = spread
        return self._convolve(C, lambda spectrum, waves: (spectrum * waves).sum(axis=-self.ndim - 1))

    def _convolve(self, A: np.ndarray, multiply: Any) -> np.ndarray:
        shape, axes = A.shape[-self.ndim :], range(-self.ndim, 0)
        product = multiply(fft.rfftn(A, axes=axes), self._waves(shape))
        return fft.irfftn(product, s=shape, axes=axes).astype(A.dtype, copy=False)
