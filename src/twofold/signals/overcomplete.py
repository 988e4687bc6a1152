"""Overcomplete bases, of more atoms than dimensions: Gabor waves, shifted copies of a basis, unions of several."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import fft

from twofold.core.checks import InputError
from twofold.signals.bases import Basis, _as_shape


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


@dataclass(frozen=True)
class Shifted(Basis):
    """An orthonormal basis beside itself, moved by one step along each axis.

    In Haar's basis an edge is sparse if it lies between two pairs of pixels, not within one; here it is wherever it
    lies. Coefficients are those of 2 copies of a signal, (..., 2, d), or of 4 of an image, (..., 4, h, w), divided by
    √2 or √4; the signal is taken to repeat itself. Lengths are kept, and ``synthesize(analyze(x)) = x``.

    Parameters
    ----------
    ndim : {1, 2}, default=1
        For signals along the last axis, or for images on the last two.
    basis : Basis
        Orthonormal, of the same ndim.

    References
    ----------
    Coifman & Donoho (1995), *Wavelets and Statistics*, 125-150.

    Examples
    --------
    >>> from twofold.signals import Haar, Shifted
    >>> both = Shifted(1, Haar())
    >>> x = np.random.default_rng(0).normal(size=64)
    >>> both.analyze(x).shape, bool(np.allclose(both.synthesize(both.analyze(x)), x))
    ((2, 64), True)
    """

    basis: Basis | None = None
    orthonormal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.basis is None or not self.basis.orthonormal or self.basis.ndim != self.ndim:
            raise InputError(f"basis={self.basis!r}: an orthonormal one with ndim={self.ndim} can be shifted.")

    def coefficients(self, shape: int | tuple[int, ...]) -> tuple[int, ...]:
        return (2**self.ndim, *_as_shape(shape))

    def _lengths(self, shape: tuple[int, ...]) -> Any:
        return 2 ** (-self.ndim / 2)

    def _moves(self) -> list[tuple[int, ...]]:
        return list(itertools.product((0, 1), repeat=self.ndim))

    def _forward(self, X: np.ndarray) -> np.ndarray:
        assert self.basis is not None
        copies = np.stack([_roll(X, move) for move in self._moves()], axis=-self.ndim - 1)
        return self.basis.analyze(copies) / np.sqrt(2**self.ndim)

    def _backward(self, C: np.ndarray) -> np.ndarray:
        assert self.basis is not None
        copies = np.moveaxis(self.basis.synthesize(C), -self.ndim - 1, 0)
        moved: Any = sum(_roll(X, tuple(-m for m in move)) for X, move in zip(copies, self._moves(), strict=True))
        return moved / np.sqrt(2**self.ndim)


def _roll(X: np.ndarray, move: tuple[int, ...]) -> np.ndarray:
    return np.roll(X, move, axis=tuple(range(-len(move), 0)))


class Union(Basis):
    """The atoms of several bases together; no single basis is sparse for every signal.

    Coefficients are flat: those of the first basis, then those of the second, (..., k). Synthesis adds the bases' parts
    up; analysis gives the correlations with all atoms.

    Parameters
    ----------
    *bases : Basis
        All for signals, or all for images.
    shape : int or tuple of int
        Of one signal; the sizes of the bases follow from it.

    References
    ----------
    Donoho & Huo (2001), *IEEE Trans. Information Theory* 47, 2845-2862.

    Examples
    --------
    A wave with a spike has two atoms in waves and spikes together, and many in either:

    >>> from twofold.signals import DCT, Haar, Union, orthogonal_matching_pursuit
    >>> both = Union(DCT(), Haar(), shape=64)
    >>> x = both.synthesize(np.eye(128)[5] + np.eye(128)[100])
    >>> codes = orthogonal_matching_pursuit(both.matrix(64), x, n_nonzero=2)
    >>> np.flatnonzero(codes)
    array([  5, 100])
    >>> wave, spike = both.separate(codes)
    >>> bool(np.allclose(wave, DCT().matrix(64)[5]))
    True
    """

    orthonormal: ClassVar[bool] = False

    def __init__(self, *bases: Basis, shape: int | tuple[int, ...]):
        dims = {basis.ndim for basis in bases}
        if len(dims) != 1:
            raise InputError("a Union needs one basis or more, all for signals or all for images (ndim).")
        super().__init__(dims.pop())
        object.__setattr__(self, "bases", bases)
        object.__setattr__(self, "shape", _as_shape(shape))
        if len(self.shape) != self.ndim:
            raise InputError(f"shape={shape!r} has {len(self.shape)} number(s); these bases need {self.ndim}.")

    bases: tuple[Basis, ...]
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Union({', '.join(map(repr, self.bases))}, shape={self.shape})"

    def coefficients(self, shape: Any = None) -> tuple[int, ...]:
        return (sum(self._sizes()),)

    def _sizes(self) -> list[int]:
        return [int(np.prod(basis.coefficients(self.shape))) for basis in self.bases]

    def _lengths(self, shape: tuple[int, ...]) -> Any:
        each = [np.ravel(basis._lengths(self.shape)) for basis in self.bases]
        return np.concatenate([np.broadcast_to(one, n) for one, n in zip(each, self._sizes(), strict=True)])

    def _forward(self, X: np.ndarray) -> np.ndarray:
        if X.shape[-self.ndim :] != self.shape:
            raise InputError(f"X has shape {X.shape}; this Union is for signals of shape {self.shape}.")
        batch = X.shape[: -self.ndim]
        return np.concatenate([basis.analyze(X).reshape(*batch, -1) for basis in self.bases], axis=-1)

    def _backward(self, C: np.ndarray) -> np.ndarray:
        return sum(self.separate(C), np.zeros((), C.dtype))

    def separate(self, C: Any) -> list[np.ndarray]:
        """The part of each basis in signals with these coefficients (..., k); the parts add up to the signals."""
        C = np.asarray(C)
        if C.shape[-1] != sum(self._sizes()):
            raise InputError(f"C has {C.shape[-1]} coefficients a signal; this Union has {sum(self._sizes())} atoms.")
        parts = np.split(C, np.cumsum(self._sizes())[:-1], axis=-1)
        return [
            basis.synthesize(part.reshape(*C.shape[:-1], *basis.coefficients(self.shape)))
            for basis, part in zip(self.bases, parts, strict=True)
        ]
