"""A basis and its copy moved by a step, in which the place of an edge matters less."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.signals.bases.basis import Basis, _as_shape


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
