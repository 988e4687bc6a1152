"""Basis pursuit: of all x that explain y, the one with the least Σ|x|.

    minimize  ‖x‖₁  with  A x = y                       exactly, as a linear program, or by alternating projections
    minimize  ½‖A x − y‖² + λ ‖x‖₁                      with noise, by accelerated proximal gradient steps

A (m,d) is an array or a SciPy operator: nothing but products with A and Aᵀ is needed, except by the linear program.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg
from sklearn.exceptions import ConvergenceWarning

from twofold.core.checks import InputError

MAX_PROGRAM_NUMBERS = 60_000  # of A, for the linear program to be quick
RELAXATION = 1.6  # of the alternating projections


def basis_pursuit(A: Any, y: Any, *, solver: str = "auto", tol: float = 1e-8, max_iter: int = 10_000) -> np.ndarray:
    """The x of least ‖x‖₁ with A x = y.

    Parameters
    ----------
    A : array or LinearOperator of shape (m, d)
    y : array of shape (m,)
    solver : {"auto", "lp", "admm"}, default="auto"
        "lp" is a linear program, solved exactly by HiGHS; "admm" alternates between the plane A x = y and shrinking,
        and suits large problems and operators.
    tol : float, default=1e-8
        Where "admm" stops: relative change and distance from the plane.
    max_iter : int, default=10_000
        Its steps at most.

    Returns
    -------
    x : ndarray of shape (d,)

    References
    ----------
    Chen, Donoho & Saunders (1998), *SIAM J. Scientific Computing* 20, 33-61. Boyd, Parikh, Chu, Peleato & Eckstein
    (2011), *Foundations and Trends in Machine Learning* 3, 1-122.

    Examples
    --------
    Forty random measurements are enough for five numbers among a hundred:

    >>> from twofold.signals import basis_pursuit
    >>> rng = np.random.default_rng(0)
    >>> x = np.zeros(100)
    >>> x[[3, 14, 15, 92, 65]] = [1, -2, 3, -4, 5]
    >>> A = rng.normal(size=(40, 100))
    >>> bool(np.allclose(basis_pursuit(A, A @ x), x))
    True
    """
    y = _check_measurements(A, y)
    if solver not in ("auto", "lp", "admm"):
        raise InputError(f'solver="{solver}" is not one of auto, lp, admm.')
    array = not isinstance(A, LinearOperator)
    if solver == "lp" or (solver == "auto" and array and np.size(A) <= MAX_PROGRAM_NUMBERS):
        if not array:
            raise InputError('solver="lp" needs A as an array; an operator goes with solver="admm".')
        return _solve_program(np.asarray(A, np.float64), y)
    x, converged = minimize_sum(_make_projector(A, y), np.zeros(A.shape[1]), tol, max_iter)
    if not converged:
        _warn_not_converged("basis_pursuit", max_iter)
    return x


def _check_measurements(A: Any, y: Any) -> np.ndarray:
    y, shape = np.asarray(y, dtype=np.float64), np.shape(A) if not isinstance(A, LinearOperator) else A.shape
    if len(shape) != 2 or y.shape != shape[:1]:
        raise InputError(f"A has shape {shape} and y {y.shape}; a matrix (m, d) and measurements (m,) are needed.")
    if not np.isfinite(y).all() or (not isinstance(A, LinearOperator) and not np.isfinite(A).all()):
        raise InputError("A or y holds NaN or infinity. Drop those measurements.")
    return y


def _solve_program(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    d = A.shape[1]
    found = linprog(np.ones(2 * d), A_eq=np.hstack([A, -A]), b_eq=y, method="highs")  # x = p − q with p, q ≥ 0
    if not found.success:
        raise InputError(f"no x has A x = y exactly ({found.message}) With noise use basis_pursuit_denoise.")
    return found.x[:d] - found.x[d:]


def _make_projector(A: Any, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """v ↦ the nearest x with A x = y, the factorization of A Aᵀ made once."""
    if isinstance(A, LinearOperator):
        solve = lambda r: cg(LinearOperator((len(y),) * 2, matvec=lambda v: A @ (A.T @ v)), r, rtol=1e-12)[0]  # noqa: E731
    else:
        A = np.asarray(A, np.float64)
        square = A @ A.T
        square[np.diag_indices(len(square))] += 1e-13 * np.trace(square) / len(square)
        factor = cho_factor(square)
        solve = lambda r: cho_solve(factor, r)  # noqa: E731
    return lambda v: v - A.T @ solve(A @ v - y)


def minimize_sum(
    project: Callable[[np.ndarray], np.ndarray], start: np.ndarray, tol: float, max_iter: int
) -> tuple[np.ndarray, bool]:
    """The point of a convex set with the least Σ|x|, given v ↦ the nearest point of it; and whether it was reached."""
    x = project(start)
    z, u = x, np.zeros_like(x)
    level = float(np.abs(x).mean())  # of the shrinking in a step; it balances the two residuals
    if level == 0:
        return x, True
    for _ in range(max_iter):
        x = project(z - u)
        ahead = RELAXATION * x + (1 - RELAXATION) * z
        before, z = z, shrink(ahead + u, level)
        u = u + ahead - z
        primal, dual = np.linalg.norm(x - z), np.linalg.norm(z - before)
        if max(primal, dual) <= tol * _measure_size(x):
            return x, True
        if primal > 5 * dual or dual > 5 * primal:
            factor = 0.5 if primal > 5 * dual else 2.0
            level, u = level * factor, u * factor
    return x, False


def shrink(v: np.ndarray, level: float) -> np.ndarray:
    """Every number moved towards zero by `level`, and no further."""
    return np.sign(v) * np.maximum(np.abs(v) - level, 0)


def _measure_size(v: np.ndarray) -> float:
    return max(float(np.linalg.norm(v)), 1e-300)


def _warn_not_converged(name: str, max_iter: int) -> None:
    message = f"{name} did not converge in max_iter={max_iter} steps. Raise max_iter, or loosen tol."
    warnings.warn(message, ConvergenceWarning, stacklevel=3)


def basis_pursuit_denoise(
    A: Any, y: Any, *, reg: float | None = None, sigma: float | None = None, tol: float = 1e-7, max_iter: int = 5000
) -> np.ndarray:
    """The x of least ½‖A x − y‖² + λ‖x‖₁, or, given the noise, of least ‖x‖₁ with ‖A x − y‖ ≤ σ√m.

    Parameters
    ----------
    A : array or LinearOperator of shape (m, d)
    y : array of shape (m,)
    reg : float, optional
        λ. From ‖Aᵀy‖∞ on, x is zero.
    sigma : float, optional
        Standard deviation of the noise in y; λ is then found by bisection. Exactly one of the two is to be given.
    tol : float, default=1e-7
        Stop when x moves by less, relatively.
    max_iter : int, default=5000
        Steps at most, for each λ.

    Returns
    -------
    x : ndarray of shape (d,)

    References
    ----------
    Beck & Teboulle (2009), *SIAM J. Imaging Sciences* 2, 183-202. O'Donoghue & Candès (2015), *Foundations of
    Computational Mathematics* 15, 715-732.

    Examples
    --------
    >>> from twofold.signals import basis_pursuit_denoise
    >>> rng = np.random.default_rng(0)
    >>> x = np.zeros(100)
    >>> x[[3, 14, 15, 92, 65]] = [1, -2, 3, -4, 5]
    >>> A = rng.normal(size=(50, 100)) / np.sqrt(50)
    >>> found = basis_pursuit_denoise(A, A @ x + 0.05 * rng.normal(size=50), sigma=0.05)
    >>> bool(np.linalg.norm(found - x) < 0.1 * np.linalg.norm(x))
    True
    """
    y = _check_measurements(A, y)
    if (reg is None) == (sigma is None):
        raise InputError("give reg (λ) or sigma (the noise), and not both.")
    given = reg if reg is not None else sigma
    if not given >= 0:  # type: ignore[operator]
        raise InputError(f"{'reg' if sigma is None else 'sigma'}={given!r} must be a number >= 0.")
    op: Any = aslinearoperator(A)
    steepest = _find_largest_eigenvalue(op)
    most = float(np.abs(op.T @ y).max())
    x = np.zeros(op.shape[1])
    if most == 0 or steepest == 0:
        return x
    if reg is not None:
        return _take_proximal_steps(op, y, reg, x, steepest, tol, max_iter)
    goal = float(sigma) * np.sqrt(len(y))  # type: ignore[arg-type]
    if np.linalg.norm(y) <= goal:
        return x
    low, high = np.log(1e-6 * most), np.log(most)
    for _ in range(30):  # the residual grows with λ
        middle = (low + high) / 2
        x = _take_proximal_steps(op, y, float(np.exp(middle)), x, steepest, tol, max_iter)
        gap = np.linalg.norm(op @ x - y) - goal
        low, high = (low, middle) if gap > 0 else (middle, high)
        if abs(gap) <= 1e-3 * goal:
            break
    return x


def _find_largest_eigenvalue(op: Any) -> float:
    """The largest eigenvalue of AᵀA, or a little more: power iteration from a fixed start."""
    v, value = np.random.default_rng(0).standard_normal(op.shape[1]), 0.0
    for _ in range(50):
        v = v / _measure_size(v)
        v = op.T @ (op @ v)
        before, value = value, float(np.linalg.norm(v))
        if value - before <= 1e-4 * value:
            break
    return 1.02 * value


def _take_proximal_steps(
    op: Any, y: np.ndarray, reg: float, x: np.ndarray, steepest: float, tol: float, max_iter: int
) -> np.ndarray:
    """Accelerated proximal gradient steps, restarted whenever they point uphill."""
    ahead, t = x, 1.0
    for _ in range(max_iter):
        new = shrink(ahead - (op.T @ (op @ ahead - y)) / steepest, reg / steepest)
        step = new - x
        if np.dot(ahead - new, step) > 0:
            t = 1.0
        later = (1 + np.sqrt(1 + 4 * t * t)) / 2
        ahead, x, t = new + (t - 1) / later * step, new, later
        if np.linalg.norm(step) <= tol * _measure_size(new):
            return x
    _warn_not_converged("basis_pursuit_denoise", max_iter)
    return x
