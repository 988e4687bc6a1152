"""The Haar basis: steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from twofold.signals.bases.wavelet import Wavelet


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
