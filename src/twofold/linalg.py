"""SVDs, norms and projections: small functions over NumPy and SciPy that keep sparse data sparse.

truncated_svd   the best rank-k approximation in factors (Eckart & Young 1936)
low_rank        the same, multiplied
power_iteration dominant eigenpairs, by the textbook's method
norm            frobenius, spectral, nuclear, schatten-p, induced-p, weighted frobenius
shrink          singular-value soft threshold: the proximal step of the nuclear norm
project         onto the span of some vectors, orthonormal or not
robust_pca      a matrix of low rank plus a sparse one (Candès, Li, Ma & Wright 2011)
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg as sla
from scipy import sparse
from scipy.sparse.linalg import svds
from sklearn.exceptions import ConvergenceWarning

from twofold.core.checks import InputError, check_sparse, first_bad, refuse
from twofold.core.data.blocks import as_blocks
from twofold.core.engine.local import engine_for, single_blas
from twofold.core.numerics.krylov import orthonormalize
from twofold.core.numerics.power import power_iteration
from twofold.core.numerics.spectrum import SOLVERS, spectrum
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Matrix, Seed, Table

__all__ = ["low_rank", "norm", "power_iteration", "project", "robust_pca", "shrink", "truncated_svd"]


def fix_signs(axes: np.ndarray) -> np.ndarray:
    """Return signs ±1 (k,) that make the largest entry of each row of `axes` (k,d) positive."""
    largest = [np.argmax(np.abs(axis)) for axis in axes]
    return np.where(axes[np.arange(len(axes)), largest] < 0, -1.0, 1.0)


def truncated_svd(
    X: Table, k: int, *, center: bool = False, svd_solver: str = "auto", tol: float = 1e-12, random_state: Seed = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The k leading singular triplets: X ≈ U diag(s) Zᵗ, the best rank-k approximation in any unitary norm.

    Parameters
    ----------
    X : array, sparse array, path or dask array of shape (n, d)
    k : int
        The rank, at most min(n, d).
    center : bool, default=False
        Subtract the columns' means first; sparse data is centered implicitly and stays sparse.
    svd_solver : {"auto", "covariance_eigh", "gram", "full", "power", "em", "randomized", "arpack"}
        "auto" chooses by shape: a Gram matrix of the short side if that is cheap, randomized block Krylov for
        large dense data, Lanczos for large sparse data.
    tol : float, default=1e-12
        Relative accuracy of s², for the iterative solvers.
    random_state : int, RandomState, Generator or None
        The start of the iterative solvers.

    Returns
    -------
    U : ndarray of shape (n, k)
    s : ndarray of shape (k,)
    Zt : ndarray of shape (k, d)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 50))
    >>> U, s, Zt = truncated_svd(X, 3)
    >>> bool(np.allclose(U * s @ Zt, X))
    True
    """
    blocks = as_blocks(X)
    n, d = blocks.shape
    if not 1 <= k <= min(n, d):
        raise InputError(f"k={k} must lie between 1 and min(n, d) = {min(n, d)}.")
    if svd_solver not in SOLVERS:
        raise InputError(f"svd_solver={svd_solver!r} is not one of {', '.join(SOLVERS)}.")
    with single_blas():
        found = spectrum(blocks, k, solver=svd_solver, center=center, seed=seed_of(random_state), tol=tol)
        if not np.isfinite(found.total):
            refuse("truncated_svd", blocks)
        axes = found.axes * fix_signs(found.axes)[:, None]
        engine = engine_for(blocks)
        turned = np.asfortranarray(axes) if blocks.is_sparse else axes  # sparse products take rows of axesᵀ
        fixed = engine.broadcast(found.mean), engine.broadcast(turned)
        U = engine.stack(engine.map(project_centered, blocks, *fixed)).astype(np.float64)  # X axesᵀ (n,k)
        del turned, fixed
        R = orthonormalize(U)
        U *= np.where(np.diag(R) < 0, -1.0, 1.0)
    dtype = blocks.dtype
    return U.astype(dtype), np.sqrt(found.values).astype(dtype), axes.astype(dtype)


def project_centered(X: Any, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Compute (X − mean) axesᵀ in the dtype of the data; only dense rows are centered explicitly."""
    if sparse.issparse(X):
        return np.asarray(X @ axes.T - mean @ axes.T, dtype=X.dtype)
    return (X - mean.astype(X.dtype)) @ axes.T.astype(X.dtype)


def low_rank(X: Table, k: int, **options: Any) -> np.ndarray:
    """The rank-k matrix nearest to X in the Frobenius and the spectral norm; options as in `truncated_svd`.

    Examples
    --------
    >>> low_rank(np.diag([3.0, 2.0, 1.0]), 2).round(6) + 0.0
    array([[3., 0., 0.],
           [0., 2., 0.],
           [0., 0., 0.]])
    """
    U, s, Zt = truncated_svd(X, k, **options)
    return (U * s) @ Zt


def _as_matrix(X: Matrix) -> Any:
    if sparse.issparse(X):
        check_sparse(X)
        return X
    return np.asarray(X)


def _singular_values(X: Any) -> np.ndarray:
    if sparse.issparse(X):
        side = X @ X.T if X.shape[0] <= X.shape[1] else X.T @ X
        return np.sqrt(np.maximum(sla.eigvalsh(side.toarray()), 0.0))  # the short side only
    return sla.svdvals(np.asarray(X, dtype=np.float64))


def norm(
    X: Matrix, kind: str | float = "frobenius", *, p: float | None = None, weight: npt.ArrayLike | None = None
) -> float:
    """A matrix norm.

    Parameters
    ----------
    X : array or sparse array of shape (n, d)
    kind : {"frobenius", "spectral", "nuclear", "schatten", "induced"}, default="frobenius"
        "schatten" and "induced" need `p`. Schatten-p is the p-norm of the singular values; the induced norm is
        max ‖Xv‖_p / ‖v‖_p for p = 1, 2 or inf.
    p : float, optional
        The exponent, also as a suffix: "schatten-3", "induced-inf".
    weight : array of shape (n, d), optional
        Non-negative weights of the cells, for kind="frobenius": √Σ w x².

    Examples
    --------
    >>> X = np.diag([3.0, 4.0])
    >>> norm(X), norm(X, "spectral"), norm(X, "nuclear"), round(norm(X, "schatten-3"), 4)
    (5.0, 4.0, 7.0, 4.4979)
    """
    kind, p = _norm_kind(kind, p)
    A = _as_matrix(X)
    if weight is not None:
        if kind != "frobenius":
            raise InputError(f'weight goes with kind="frobenius", not with {kind!r}.')
        w = np.asarray(weight, dtype=np.float64)
        if w.shape != A.shape or np.any(w < 0):
            raise InputError(f"weight has shape {w.shape}; it needs one number >= 0 for each cell of X {A.shape}.")
        squares = A.multiply(A).multiply(w) if sparse.issparse(A) else w * A.astype(np.float64) ** 2
        return float(np.sqrt(squares.sum()))
    if kind == "frobenius":
        return float(np.linalg.norm(A.data if sparse.issparse(A) else A))
    if kind == "induced" and p in (1, np.inf):
        return float(abs(A).sum(axis=0 if p == 1 else 1).max())
    if kind == "spectral" or (kind == "induced" and p == 2):
        if sparse.issparse(A) and min(A.shape) > 2 and A.count_nonzero():
            start = generator(0).standard_normal(min(A.shape))
            return float(svds(A.astype(np.float64), k=1, v0=start, return_singular_vectors=False)[0])
        return float(_singular_values(A).max(initial=0.0))
    if kind == "induced":
        raise InputError(f"the induced {p}-norm has no efficient algorithm (it is NP-hard); use p = 1, 2 or inf.")
    s = _singular_values(A)
    return float(s.max(initial=0.0)) if np.isinf(p) else float((s**p).sum() ** (1 / p))


def _norm_kind(kind: Any, p: float | None) -> tuple[str, float]:
    name, _, suffix = str(kind).partition("-")
    if suffix:
        try:
            p = float(suffix)
        except ValueError:
            raise InputError(f"norm kind {kind!r}: {suffix!r} is not a number. Write for example schatten-3.") from None
    if name == "nuclear":
        return "schatten", 1.0
    if name not in ("frobenius", "spectral", "schatten", "induced"):
        raise InputError(f"norm kind {kind!r} is not frobenius, spectral, nuclear, schatten-p or induced-p.")
    if name in ("schatten", "induced") and (p is None or not p >= 1):
        raise InputError(f'norm kind "{name}" needs p >= 1, for example "{name}-2"; got p={p}.')
    return name, 2.0 if p is None else p


def shrink(X: Matrix, tau: float) -> np.ndarray:
    """Σ max(s_i − tau, 0) u_i z_iᵀ: the matrix Y minimizing ½‖X − Y‖² + tau‖Y‖_nuclear.

    Examples
    --------
    >>> shrink(np.diag([3.0, 1.0]), 2.0)
    array([[1., 0.],
           [0., 0.]])
    """
    if not tau >= 0:
        raise InputError(f"tau={tau} must be >= 0.")
    A = _as_matrix(X)
    U, s, Zt = sla.svd(A.toarray() if sparse.issparse(A) else A, full_matrices=False)
    return (U * np.maximum(s - tau, 0.0)) @ Zt


def project(X: Matrix, basis: npt.ArrayLike) -> np.ndarray:
    """The point of span(basis) nearest to each row of X.

    P = B⁺B for the rows B (k,d) of the basis, which need be neither orthonormal nor independent.

    Examples
    --------
    >>> project([[1.0, 2.0, 3.0]], [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]).round(6)
    array([[1., 2., 0.]])
    """
    B = np.atleast_2d(np.asarray(basis, dtype=np.float64))
    A = _as_matrix(X)
    one = A.ndim == 1
    A = np.atleast_2d(A) if one else A
    if A.shape[1] != B.shape[1]:
        raise InputError(f"X has {A.shape[1]} columns and the basis vectors {B.shape[1]}; they must be equal.")
    _, s, axes = np.linalg.svd(B, full_matrices=False)
    axes = axes[s > s.max(initial=0.0) * max(B.shape) * np.finfo(np.float64).eps]
    out = (A @ axes.T) @ axes
    return out[0] if one else out


class LowRankAndSparse(NamedTuple):
    """X = L + S on the known cells."""

    low_rank: np.ndarray  # L (n,d), without holes
    sparse: np.ndarray  # S (n,d), zero where X is unknown
    n_iter: int


def robust_pca(X: Matrix, weight: float | None = None, *, tol: float = 1e-7, max_iter: int = 1000) -> LowRankAndSparse:
    """Split a table into a part of low rank and a part that is zero in most cells: gross errors, spots, outliers.

    minimize ‖L‖_* + λ ‖S‖₁ subject to L + S = X, by alternating directions: L ← shrink, S ← soft threshold, and the
    multiplier Y collects what is left. With the default λ both parts are found exactly if L has low rank and is not
    itself sparse, and the errors lie anywhere, however large they are.

    Parameters
    ----------
    X : array of shape (n, d)
        NaN is an unknown cell, which L fills.
    weight : float, optional
        λ; 1/√max(n, d) by default, more if cells are unknown.
    tol : float, default=1e-7
        ‖X − L − S‖ and the last move of S relative to ‖X‖, at which to stop.
    max_iter : int, default=1000

    References
    ----------
    Candès, Li, Ma & Wright (2011), *Journal of the ACM* 58(3), 11. Chen, Jalali, Sanghavi & Caramanis (2013), *IEEE
    Transactions on Information Theory* 59, 4324-4337 (unknown cells).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> L = np.outer(rng.normal(size=30), rng.normal(size=20))
    >>> X = np.where(rng.random(L.shape) < 0.05, 100.0, L)                  # one cell in twenty is spoilt
    >>> bool(np.abs(robust_pca(X).low_rank - L).max() < 1e-4)
    True
    """
    A = np.array(X, dtype=np.float64)
    if A.ndim != 2 or not A.size:
        raise InputError(f"X has shape {A.shape}; robust_pca needs a table (n, d) with cells.")
    if bad := first_bad(A, allow_nan=True):
        raise InputError(f"X[{bad[0]}, {bad[1]}] is {bad[2]}; robust_pca needs finite numbers, or NaN if unknown.")
    known = ~np.isnan(A)
    A[~known] = 0.0
    size = np.linalg.norm(A)
    if not size:
        return LowRankAndSparse(A, np.zeros_like(A), 0)
    lam = 1 / np.sqrt(max(A.shape) * known.mean()) if weight is None else float(weight)
    if not lam > 0:
        raise InputError(f"weight={weight} must be > 0.")
    mu = known.sum() / (4 * np.abs(A).sum())
    S, Y = np.zeros_like(A), np.zeros_like(A)
    for t in range(1, max_iter + 1):
        L = shrink(A - S + Y / mu, 1 / mu)
        free = A - L + Y / mu
        threshold = np.where(known, lam / mu, 0.0)  # an unknown cell costs nothing
        moved, S = S, np.sign(free) * np.maximum(np.abs(free) - threshold, 0.0)
        left = A - L - S
        Y += mu * left
        primal, dual = float(np.linalg.norm(left)), float(np.linalg.norm(S - moved))
        if max(primal, dual) <= tol * size:
            break
        if t < max_iter // 2:  # balanced residuals converge sooner; a fixed step converges for sure
            mu *= 1.5 if primal > 5 * dual else 1 / 1.5 if dual > 5 * primal else 1.0
    else:
        warnings.warn(
            f"robust_pca did not converge in max_iter={max_iter} steps: ‖X − L − S‖ is {primal / size:.1e} of ‖X‖. "
            "Raise max_iter.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return LowRankAndSparse(L, np.where(known, S, 0.0), t)
