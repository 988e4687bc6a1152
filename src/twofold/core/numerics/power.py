"""Power iteration with deflation: the textbook's way to leading eigenpairs.

    v ← Av / ‖Av‖      λ = vᵀAv      found vectors are projected out at every step, so that A does not change

How far v is from its limit follows from its last two moves: the move δ = ‖Av − λv‖ / |λ| shrinks by r a step, and all
moves to come add up to δ / (1 − r). The residual alone is small wherever two eigenvalues are close, also when v still
lies between their vectors.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from sklearn.exceptions import ConvergenceWarning

from twofold.core.checks import InputError
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed

MAX_SWING = 0.01  # of a move is left after two steps: v swings between two vectors
ROUNDING = 1e-15  # of the largest eigenvalue: what deflation leaves of a matrix that is used up
TIE = 1e-9  # relative: eigenvalues this close in size count as equal
MIN_MOVE = 1e-15  # of a vector of length 1: smaller moves are rounding
SYMMETRY = 1e-10  # relative: larger differences between A and its transpose are not rounding


class Pairs(NamedTuple):
    values: np.ndarray  # (k,)
    vectors: np.ndarray  # (d,k)
    slow: list[int]  # pairs that did not converge
    path: list[np.ndarray]  # a pair each: (steps,d)


@overload
def power_iteration(
    A: Any, k: int = 1, *, tol: float = ..., max_iter: int = ..., random_state: Seed = ..., return_path: Literal[True]
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]: ...


@overload
def power_iteration(
    A: Any, k: int = 1, *, tol: float = ..., max_iter: int = ..., random_state: Seed = ..., return_path: bool = False
) -> tuple[np.ndarray, np.ndarray]: ...


def power_iteration(
    A: Any,
    k: int = 1,
    *,
    tol: float = 1e-12,
    max_iter: int = 10_000,
    random_state: Seed = None,
    return_path: bool = False,
) -> Any:
    """The k eigenpairs of A that are largest in absolute value, one after the other.

    v ← Av / ‖Av‖ until the moves that are still to come, squared, are at most `tol`; then A is deflated without being
    changed: the known vectors are projected out at every step. The error falls by |λ₂/λ₁| a step, so close eigenvalues
    take long. Of a symmetric A a pair ±λ, between which v swings without end, is found as a plane and then parted. Of
    any other A deflation finds Schur vectors, from which the eigenvectors follow; it needs real eigenvalues that differ
    in absolute value.

    Parameters
    ----------
    A : array, sparse array or LinearOperator of shape (d, d)
    k : int, default=1
        How many pairs.
    tol : float, default=1e-12
        Squared distance of a vector from its limit, as the last two moves predict it.
    max_iter : int, default=10000
        Steps for each pair; a ConvergenceWarning says when they were not enough.
    random_state : int, RandomState, Generator or None
        The start.
    return_path : bool, default=False
        Whether to return the vectors of all steps, too.

    Returns
    -------
    values : ndarray of shape (k,)
        With their signs, the largest in absolute value first; of a pair ±λ, the positive one.
    vectors : ndarray of shape (d, k)
        Of length 1; orthogonal if A is symmetric.
    path : list of k ndarrays of shape (steps, d)
        With `return_path`: v at every step of each pair, in the order in which they were found.

    Examples
    --------
    >>> values, vectors = power_iteration(np.diag([3.0, 1.0, 2.0]), k=2, random_state=0)
    >>> values.round(6)
    array([3., 2.])
    >>> power_iteration(np.diag([1.0, -3.0, 2.0]), random_state=0)[0].round(6)
    array([-3.])
    >>> values, vectors = power_iteration([[3.0, 5.0], [0.0, 1.0]], k=2, random_state=0)  # not symmetric
    >>> (np.array([[3, 5], [0, 1]]) @ vectors - vectors * values).round(5) + 0.0
    array([[0., 0.],
           [0., 0.]])
    """
    A = A if sp.issparse(A) or isinstance(A, LinearOperator) else np.asarray(A, dtype=np.float64)
    seed = seed_of(random_state)
    symmetric = is_symmetric(A, seed)
    values, V, slow, path = find_pairs(A, k, tol, max_iter, seed, symmetric, return_path)
    if slow:
        if not symmetric:
            refuse_complex_pair(A, V[:, : slow[0] + 1])
        warnings.warn(
            f"power iteration did not converge for component(s) {slow} in max_iter={max_iter} steps: eigenvalues "
            "lie close together. Raise max_iter, or use another solver.",
            ConvergenceWarning,
            stacklevel=2,
        )
    if not symmetric:
        V = eigenvectors_of_schur(A, V)
    return (values, V, path) if return_path else (values, V)


def deflate(A: Any, k: int, tol: float, max_iter: int, seed: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Eigenvalues and vectors of a symmetric A, and which of them did not converge."""
    return find_pairs(A, k, tol, max_iter, seed)[:3]


def find_pairs(
    A: Any, k: int, tol: float, max_iter: int, seed: int, symmetric: bool = True, keep_path: bool = False
) -> Pairs:
    """Deflate A: eigenpairs of a symmetric one, eigenvalues and Schur vectors of any other."""
    d = A.shape[0]
    values, V, slow, path = np.zeros(k), np.zeros((d, k)), [], []
    for c in range(k):
        known, steps = V[:, :c], []
        v, before, last_move = generator(seed, c).standard_normal(d), np.zeros(d), np.inf
        for t in range(max_iter):
            v -= known @ (known.T @ v)
            v /= np.linalg.norm(v)
            steps += [v.copy()] if keep_path else []
            Av = A @ v
            Av -= known @ (known.T @ Av)
            value = float(v @ Av)
            gap = np.sum((Av - value * v) ** 2)
            move = np.sqrt(gap) / max(abs(value), 1e-300)
            if has_settled(move, last_move, tol) or not np.any(Av):
                break
            if c and np.abs(Av).max() <= ROUNDING * abs(values[0]):  # nothing is left
                value = 0.0
                break
            back = float(before @ Av)
            swings = back > 0 and np.sum((Av - back * before) ** 2) <= MAX_SWING**2 * gap
            if symmetric and swings:  # v is there again: a pair ±λ
                value, v, parted = part_plane(A, np.stack([v, Av], axis=1), known, tol, max_iter - t)
                slow += [] if parted else [c]
                break
            before, v, last_move = v, Av, move
        else:
            slow.append(c)
            v = v / np.linalg.norm(v)
        values[c], V[:, c] = value, v
        path.append(np.array(steps))
    if symmetric:
        order = np.argsort(-np.abs(values) * np.where(values > 0, 1 + TIE, 1.0), kind="stable")
        values, V = values[order], V[:, order]
    return Pairs(values, V, slow, path)


def has_settled(move: float, last_move: float, tol: float) -> bool:
    """Return whether the moves to come, predicted from the last two, add up to at most √tol."""
    ratio = move / last_move if last_move > 0 else 0.0
    return move <= MIN_MOVE or (ratio < 1 and move <= np.sqrt(tol) * (1 - ratio))


def part_plane(
    A: Any, plane: np.ndarray, known: np.ndarray, tol: float, max_iter: int
) -> tuple[float, np.ndarray, bool]:
    """Iterate both vectors of a plane (d,2) near those of a pair ±λ; return the larger eigenpair, and whether it
    converged."""
    last_move = np.inf
    for _ in range(max_iter):
        Q, _ = np.linalg.qr(plane - known @ (known.T @ plane))
        plane = A @ Q
        plane -= known @ (known.T @ plane)
        (low, high), turn = np.linalg.eigh(Q.T @ plane)
        which, value = (0, low) if -low > high * (1 + TIE) else (1, high)
        v = Q @ turn[:, which]
        move = float(np.linalg.norm(plane @ turn - Q @ turn * (low, high))) / max(abs(value), 1e-300)
        converged = has_settled(move, last_move, tol)
        if converged:
            break
        last_move = move
    return float(value), v, bool(converged)


# --- any matrix ---------------------------------------------------------------------------------------------


def is_symmetric(A: Any, seed: int) -> bool:
    """Return whether A is its transpose, up to rounding; a LinearOperator is tried on three pairs of random vectors."""
    if isinstance(A, LinearOperator):
        x, y = generator(seed, 1, 1).standard_normal((2, A.shape[0], 3))
        Ax, Ay = A @ x, A @ y
        difference, size = np.abs((x * Ay).sum(axis=0) - (y * Ax).sum(axis=0)).max(), np.abs(x * Ay).sum()
    else:
        difference, size = abs(A - A.T).max(), abs(A).max()
    return bool(difference <= SYMMETRY * size)


def refuse_complex_pair(A: Any, V: np.ndarray) -> None:
    """Refuse A if its next eigenvalues are a complex pair or ±λ; the last column of V still turns in their plane."""
    Q, _ = np.linalg.qr(np.column_stack([V, A @ V[:, -1]]))
    plane = Q[:, -2:]
    one, other = np.linalg.eigvals(plane.T @ (A @ plane))
    if abs(abs(one) - abs(other)) <= 1e-6 * abs(one):
        names = f"{one:.4g} and {other:.4g}".replace("j", "i")
        raise InputError(
            f"A is not symmetric, and two of its eigenvalues, {names}, are equally large, so v has no limit. "
            "Use numpy.linalg.eig."
        )


def eigenvectors_of_schur(A: Any, Q: np.ndarray) -> np.ndarray:
    """Eigenvectors (d,k) from Schur vectors: those of the triangular QᵀAQ, times Q."""
    T = np.triu(Q.T @ (A @ Q))
    W = np.zeros_like(T)
    for c in range(len(T)):
        W[c, c] = 1.0
        W[:c, c] = np.linalg.lstsq(T[c, c] * np.eye(c) - T[:c, :c], T[:c, c])[0]  # singular if eigenvalues repeat
    vectors = Q @ W
    return vectors / np.linalg.norm(vectors, axis=0)
