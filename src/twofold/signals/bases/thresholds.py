"""Small coefficients dropped, and what that costs.

In an orthonormal basis the squared error of the signal is the sum of the squares that were dropped, exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.core.checks import InputError


def threshold(codes: Any, level: float) -> tuple[np.ndarray, float]:
    """Coefficients below `level` in size set to zero, and the energy lost by it.

    Parameters
    ----------
    codes : array
        Coefficients, of one signal or of many.
    level : float

    Returns
    -------
    codes, lost : array, float
        What is left, and Σ c² of what is not.

    Examples
    --------
    >>> from twofold.signals import threshold
    >>> threshold([3.0, -0.5, 0.1, -2.0], 1.0)
    (array([ 3., -0.,  0., -2.]), 0.26)
    """
    codes = np.asarray(codes)
    if not level >= 0:
        raise InputError(f"level={level!r}: a threshold is a number >= 0.")
    return _keep(codes, np.abs(codes) >= level)


def keep_largest(codes: Any, n: int) -> tuple[np.ndarray, float]:
    """The `n` coefficients that are largest in size, over all of the array, and the energy lost by dropping the rest.

    Of equally large ones the first are kept.

    Examples
    --------
    >>> from twofold.signals import keep_largest
    >>> keep_largest([3.0, -0.5, 0.1, -2.0], 1)
    (array([ 3., -0.,  0., -0.]), 4.26)
    """
    codes = np.asarray(codes)
    if n < 0:
        raise InputError(f"n={n!r}: keep 0 coefficients or more.")
    order = np.argsort(-np.abs(codes), axis=None, kind="stable")
    kept = np.zeros(codes.size, dtype=bool)
    kept[order[:n]] = True
    return _keep(codes, kept.reshape(codes.shape))


def _keep(codes: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, float]:
    dropped = codes[~kept].astype(np.float64)
    return codes * kept, float(dropped @ dropped)
