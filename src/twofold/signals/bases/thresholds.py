"""Small coefficients dropped, and what that costs.

    hard   c if |c| ≥ t, else 0            soft   sign(c) (|c| − t)₊: the others come nearer to zero by t as well

In an orthonormal basis the squared error of the signal is the sum of the squares of what was taken away, exactly. Of
coefficients with noise of standard deviation 1, the risk of a soft threshold E‖soft(c) − truth‖² is known on average
without the truth (Stein): n − 2 #{|c| ≤ t} + Σ min(|c|, t)².
References: Donoho & Johnstone 1994, 1995.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.signals.sparse_coding.basis_pursuit import shrink

RULES = ("hard", "soft")


def threshold(codes: Any, level: float, method: str = "hard") -> tuple[np.ndarray, float]:
    """Coefficients below `level` in size set to zero, and the energy lost by it.

    Parameters
    ----------
    codes : array
        Coefficients, of one signal or of many.
    level : float
    method : {"hard", "soft"}, default="hard"
        Whether the others stay as they are, or come nearer to zero by `level`.

    Returns
    -------
    codes, lost : array, float
        What is left, and Σ c² of what was taken away.

    Examples
    --------
    >>> from twofold.signals import threshold
    >>> threshold([3.0, -0.5, 0.1, -2.0], 1.0)
    (array([ 3., -0.,  0., -2.]), 0.26)
    >>> threshold([3.0, -0.5, 0.1, -2.0], 1.0, "soft")
    (array([ 2., -0.,  0., -1.]), 2.26)
    """
    codes = np.asarray(codes)
    if not level >= 0:
        raise InputError(f"level={level!r}: a threshold is a number >= 0.")
    if method not in RULES:
        raise InputError(f'method="{method}": choose "hard" or "soft".')
    if method == "hard":
        return _keep(codes, np.abs(codes) >= level)
    left = shrink(codes, level)
    gone = (codes - left).astype(np.float64).ravel()
    return left, float(gone @ gone)


def universal_level(n: int) -> float:
    """√(2 log n): the largest of n numbers of pure noise of 1 hardly ever exceeds it."""
    return float(np.sqrt(2 * np.log(max(n, 1))))


def sure_level(codes: np.ndarray) -> float:
    """The soft threshold of least estimated risk, for coefficients with noise of 1; 0 to the universal level.

    Where there is hardly more than noise the estimate is too rough to choose by, and the universal level is taken.
    """
    squares = np.sort(np.square(codes, dtype=np.float64).ravel())
    n, most = len(squares), universal_level(codes.size)
    if squares.sum() - n <= np.sqrt(n) * np.log2(max(n, 2)) ** 1.5:
        return most
    squares = np.concatenate([[0.0], squares[squares <= most**2]])  # the risk is least at a coefficient, or at 0
    below = np.arange(len(squares))  # coefficients other than 0 up to each
    risks = n - 2 * below + np.cumsum(squares) + (n - below) * squares
    return float(np.sqrt(squares[np.argmin(risks)]))


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
