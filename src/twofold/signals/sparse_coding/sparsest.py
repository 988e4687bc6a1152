"""The sparsest code itself, found among all codes: the problem that pursuits solve approximately.

    minimize  ‖c‖₀  with  ‖x − c D‖ ≤ ε            D (k,d) atoms as rows

All choices of 0, 1, 2, ... atoms are fitted until one is good enough; of those with as few the best is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.core.checks import InputError
from twofold.signals.sparse_coding.coherence import iterate_choices
from twofold.signals.sparse_coding.pursuits import Atoms, check_limits

MIN_SINGULAR_VALUE = 1e-10  # of the largest: smaller is a direction that the atoms do not have


def sparsest_code(
    dictionary: Any, x: Any, *, error: float | None = None, relative_error: float | None = None
) -> np.ndarray:
    """The code with the fewest atoms, found by trying all choices: for small dictionaries, and to test pursuits.

    Parameters
    ----------
    dictionary : array of shape (k, d)
        Atoms as rows, of any length.
    x : array of shape (d,)
    error : float, optional
        The length of x − code · dictionary that is small enough.
    relative_error : float, optional
        The same as a share of ‖x‖. With neither: 1e-9.

    Returns
    -------
    codes : array of shape (k,)

    References
    ----------
    Natarajan (1995), *SIAM J. Computing* 24, 227-234.

    Examples
    --------
    Matching pursuit takes three atoms for this, the one between the others first:

    >>> from twofold.signals import sparsest_code
    >>> D = np.array([[1.0, 0.0], [0.0, 1.0], [0.5**0.5, 0.5**0.5]])
    >>> sparsest_code(D, [2.0, 1.0]).round(12)
    array([2., 1., 0.])
    """
    check_limits(None, error, relative_error)
    atoms = Atoms(dictionary, x)
    if atoms.basis is not None:
        raise InputError("all choices of atoms need them as an array: give basis.matrix(shape).")
    D, x = atoms.array / atoms.lengths[:, None], atoms.x
    whole = float(np.linalg.norm(x))
    share = 1e-9 if error is None and relative_error is None else relative_error or 0.0
    enough = max(error or 0.0, share * whole)
    codes, K = np.zeros(len(D)), 0
    while min(D.shape) >= K:
        best, chosen = np.inf, np.zeros(0, np.intp)
        for some in iterate_choices(len(D), K, "atoms") if K else [np.zeros((1, 0), np.intp)]:
            left = _fit_errors(D[some], x)
            if left.min() < best:
                best, chosen = float(left.min()), some[int(left.argmin())]
        if best <= enough:
            codes[chosen] = np.linalg.lstsq(D[chosen].T, x, rcond=None)[0]
            return codes / atoms.lengths
        K += 1
    raise InputError(
        f"no code comes within {enough:.3g} of x: the atoms leave {best:.3g} of it. Allow a larger error, or give more "
        "atoms."
    )


def _fit_errors(chosen: np.ndarray, x: np.ndarray) -> np.ndarray:
    """‖x − its best fit‖ for some choices of atoms (b,K,d)."""
    if not chosen.shape[1]:
        return np.full(len(chosen), np.linalg.norm(x))
    _, values, axes = np.linalg.svd(chosen, full_matrices=False)
    axes = axes * (values > MIN_SINGULAR_VALUE * values[:, :1])[..., None]
    rest = x - np.einsum("bK,bKd->bd", axes @ x, axes)
    return np.linalg.norm(rest, axis=1)
