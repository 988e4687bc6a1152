"""The base of bases: signals ↦ coefficients and back, by a fast transform that is never written out as a matrix.

    analyze(X) → C the correlations of a signal with every atom      synthesize(C) → X = Σ_a c_a · atom a

A basis with ``ndim=1`` works along the last axis, one with ``ndim=2`` on the last two; axes before are a batch. For an
orthonormal basis the two are inverses and keep the length (Parseval); for an overcomplete one they are adjoints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
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
