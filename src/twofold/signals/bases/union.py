"""Several bases at once: a dictionary with more atoms than dimensions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.signals.bases.basis import Basis, _as_shape


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
