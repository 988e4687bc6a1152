"""Power iteration with deflation: the textbook's way to leading eigenpairs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed


def power_iteration(
    A: Any, k: int = 1, *, tol: float = 1e-12, max_iter: int = 10_000, random_state: Seed = None
) -> tuple[np.ndarray, np.ndarray]:
    """The k dominant eigenpairs of a symmetric positive semi-definite A, one after the other.

    v ← Av / ‖Av‖ until ‖Av − λv‖² ≤ tol·λ²; then A is deflated, A ← A − λvvᵀ, without being changed: the known
    vectors are projected out at every step. The error falls by λ₂/λ₁ a step, so close eigenvalues take long.

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
    vectors : ndarray of shape (d, k)

    Examples
    --------
    >>> values, vectors = power_iteration(np.diag([3.0, 1.0, 2.0]), k=2, random_state=0)
    >>> values.round(6)
    array([3., 2.])
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
        v = generator(seed, c).standard_normal(d)
        for _ in range(max_iter):
            v -= known @ (known.T @ v)
            v /= np.linalg.norm(v)
            Av = A @ v
            Av -= known @ (known.T @ Av)
            value = float(v @ Av)
            if np.sum((Av - value * v) ** 2) <= tol * max(value, 1e-300) ** 2 or not np.any(Av):
                break
            v = Av
        else:
            slow.append(c)
            v = v / np.linalg.norm(v)
        values[c], V[:, c] = max(value, 0.0), v
    order = np.argsort(-values, kind="stable")
    return values[order], V[:, order], slow
