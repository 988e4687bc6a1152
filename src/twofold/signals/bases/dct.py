"""The cosine basis: smooth signals, and blocks of photographs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft

from twofold.signals.bases.basis import Basis, group_octaves


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
