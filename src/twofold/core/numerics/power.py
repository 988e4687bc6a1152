"""Power iteration with deflation: the textbook's way to leading eigenpairs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed

SWING = 0.01  # of a step's change is left after two: v swings between two vectors
ROUNDING = 1e-15  # of the largest eigenvalue: what deflation leaves of a matrix that is used up
TIE = 1e-9  # relative: eigenvalues this close in size count as equal


def power_iteration(
    A: Any, k: int = 1, *, tol: float = 1e-12, max_iter: int = 10_000, random_state: Seed = None
) -> tuple[np.ndarray, np.ndarray]:
    """The k eigenpairs of a symmetric A that are largest in absolute value, one after the other.

    v ← Av / ‖Av‖ until ‖Av − λv‖² ≤ tol·λ²; then A is deflated, A ← A − λvvᵀ, without being changed: the known
    vectors are projected out at every step. The error falls by |λ₂/λ₁| a step, so close eigenvalues take long; a pair
    ±λ, between which v would swing for ever, is found as a plane and then parted.

    Parameters
    ----------
    A : array, sparse array or LinearOperator of shape (d, d)
    k : int, default=1
        How many pairs.
    tol : float, default=1e-12
        Relative accuracy of an eigenvalue.
    max_iter : int, default=10000
        Steps for each pair; a ConvergenceWarning says when they were not enough.
    random_state : int, RandomState, Generator or None
        The start.

    Returns
    -------
    values : ndarray of shape (k,)
        With their signs, the largest in absolute value first; of a pair ±λ, the positive one.
    vectors : ndarray of shape (d, k)

    Examples
    --------
    >>> values, vectors = power_iteration(np.diag([3.0, 1.0, 2.0]), k=2, random_state=0)
    >>> values.round(6)
    array([3., 2.])
    >>> power_iteration(np.diag([1.0, -3.0, 2.0]), random_state=0)[0].round(6)
    array([-3.])
    """
    values, V, slow = deflate(A, k, tol, max_iter, seed_of(random_state))
    if slow:
        warnings.warn(
            f"power iteration did not converge for component(s) {slow} in max_iter={max_iter} steps: eigenvalues "
            "lie close together. Raise max_iter, or use another solver.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return values, V


def deflate(A: Any, k: int, tol: float, max_iter: int, seed: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Eigenvalues, vectors, and which of them did not converge."""
    d = A.shape[0]
    values, V, slow = np.zeros(k), np.zeros((d, k)), []
    for c in range(k):
        known = V[:, :c]
        v, before = generator(seed, c).standard_normal(d), np.zeros(d)
        for t in range(max_iter):
            v -= known @ (known.T @ v)
            v /= np.linalg.norm(v)
            Av = A @ v
            Av -= known @ (known.T @ Av)
            value = float(v @ Av)
            gap = np.sum((Av - value * v) ** 2)
            if gap <= tol * max(abs(value), 1e-300) ** 2 or not np.any(Av):
                break
            if c and np.abs(Av).max() <= ROUNDING * abs(values[0]):  # nothing is left
                value = 0.0
                break
            back = float(before @ Av)
            if back > 0 and np.sum((Av - back * before) ** 2) <= SWING**2 * gap:  # v is there again: a pair ±λ
                value, v, parted = _part(A, np.stack([v, Av], axis=1), known, tol, max_iter - t)
                slow += [] if parted else [c]
                break
            before, v = v, Av
        else:
            slow.append(c)
            v = v / np.linalg.norm(v)
        values[c], V[:, c] = value, v
    order = np.argsort(-np.abs(values) * np.where(values > 0, 1 + TIE, 1.0), kind="stable")
    return values[order], V[:, order], slow


def _part(A: Any, plane: np.ndarray, known: np.ndarray, tol: float, max_iter: int) -> tuple[float, np.ndarray, bool]:
    """The larger eigenpair of a plane (d,2) near that of a pair ±λ, and whether it converged: the same iteration, of
    two vectors at once."""
    for _ in range(max_iter):
        Q, _ = np.linalg.qr(plane - known @ (known.T @ plane))
        plane = A @ Q
        plane -= known @ (known.T @ plane)
        (low, high), turn = np.linalg.eigh(Q.T @ plane)
        which, value = (0, low) if -low > high * (1 + TIE) else (1, high)
        v = Q @ turn[:, which]
        converged = np.sum((plane @ turn - Q @ turn * (low, high)) ** 2) <= tol * value**2
        if converged:
            break
    return float(value), v, bool(converged)
