"""Leading eigenpairs of the scatter matrix of a table, seven ways, over blocks.

    S = Σ w (x−m)(x−m)ᵀ  (d,d)        find the k largest eigenvalues and their orthonormal axes (k,d)

    covariance_eigh  form S in one pass, then LAPACK                       n ≥ d, d moderate
    gram             form XXᵀ (n,n) along the columns, lift its vectors    d ≫ n
    full             QR of the blocks up a tree (TSQR), SVD of the last R  no squaring of the condition number
    power            power iteration with deflation on the smaller matrix  the textbook's algorithm
    em               EM without noise on the smaller matrix                the textbook's algorithm
    randomized       block Krylov from a random start, one pass a step     n and d large, k small
    arpack           Lanczos on the centered operator                       sparse and large

With center=False the mean is not removed, and the axes are right singular vectors of X itself.
References: Halko, Martinsson & Tropp 2011; Musco & Musco 2015 (block Krylov); Demmel et al. 2012 (TSQR);
Roweis 1998 (EM).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import Engine, add, engine_for, stack_results
from twofold.core.numerics.krylov import OVERSAMPLE, SHARE, krylov
from twofold.core.numerics.moments import Columns, Moments, column_moments, moments
from twofold.core.numerics.power import deflate, has_settled
from twofold.core.seeds import generator
from twofold.core.types import Block
from twofold.kernels.moments import csr_gram

SOLVERS = ("auto", "covariance_eigh", "gram", "full", "power", "em", "randomized", "arpack")


class Spectrum(NamedTuple):
    """What every solver returns, in float64."""

    values: np.ndarray  # (k,) eigenvalues of S, descending
    axes: np.ndarray  # (k,d) orthonormal rows
    mean: np.ndarray  # (d,) zeros when not centered
    weight: float  # Σw
    total: float  # trace of S
    converged: bool = True


class Problem(NamedTuple):
    """What a solver needs to know."""

    engine: Engine
    blocks: Blocks
    w: np.ndarray | None
    k: int
    center: bool
    seed: int
    tol: float  # relative accuracy of the eigenvalues
    max_iter: int
    holes: bool  # take missing cells to be at the mean (randomized only)


def choose(blocks: Blocks, k: int) -> str:
    """The solver for a shape: exact while that is cheap, else the one that only touches the data a few times."""
    n, d = blocks.shape
    small, large = min(n, d), max(n, d)
    exact = "covariance_eigh" if d <= n else "gram"
    if blocks.is_sparse:
        return exact if small <= 1000 or k >= small // 4 else "arpack"
    # Multiply-adds: the symmetric product and LAPACK's eigensolver against six passes of a thin block.
    direct = 0.5 * large * small**2 + 3 * small**3
    thin = 6 * 2 * n * d * (k + OVERSAMPLE)
    return exact if small <= 500 or direct <= 2 * thin else "randomized"


def spectrum(
    blocks: Blocks,
    k: int,
    *,
    solver: str = "auto",
    w: np.ndarray | None = None,
    center: bool = True,
    seed: int = 0,
    tol: float = 1e-9,
    max_iter: int = 1000,
    holes: bool = False,
) -> Spectrum:
    """The k leading eigenpairs of the scatter matrix by the named solver."""
    solver = choose(blocks, k) if solver == "auto" else solver
    return _SOLVERS[solver](Problem(engine_for(blocks), blocks, w, k, center, seed, tol, max_iter, holes))


# ---- by a small symmetric matrix -------------------------------------------------------------------------------


def leading(A: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenpairs of a symmetric A, vectors as columns, by LAPACK; A is overwritten."""
    size = A.shape[0]
    if not np.isfinite(A.trace()):
        return np.full(k, np.nan), np.eye(size, k)  # the caller finds the cell and says so
    part = None if k > size // 2 else [size - k, size - 1]
    values, vectors = sla.eigh(A, subset_by_index=part, check_finite=False, overwrite_a=True)
    return np.maximum(values[::-1][:k], 0.0), vectors[:, ::-1][:, :k]


def _eigh(A: np.ndarray, p: Problem) -> tuple[np.ndarray, np.ndarray, bool]:
    return *leading(A, p.k), True


def _deflate(A: np.ndarray, p: Problem) -> tuple[np.ndarray, np.ndarray, bool]:
    if not np.isfinite(A.trace()):
        return _eigh(A, p)
    values, vectors, slow = deflate(A, p.k, p.tol, p.max_iter, p.seed)
    return np.maximum(values, 0.0), vectors, not slow


def em_step(A: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Move W (d,k) by one step of EM for probabilistic PCA without noise, of rows with the scatter A (d,d).

    E: codes x W (WᵀW)⁻¹, the projections onto the columns of W.   M: least squares of the rows on these codes.
    """
    C = W @ np.linalg.pinv(W.T @ W)  # (d,k): codes are X C
    return A @ C @ np.linalg.pinv(C.T @ A @ C)


def _em(A: np.ndarray, p: Problem) -> tuple[np.ndarray, np.ndarray, bool]:
    if not np.isfinite(A.trace()):
        return _eigh(A, p)
    Q, last_move, converged = np.linalg.qr(generator(p.seed).standard_normal((len(A), p.k)))[0], np.inf, False
    for _ in range(p.max_iter):
        new = np.linalg.qr(em_step(A, Q))[0]
        move = float(np.linalg.norm(new - Q @ (Q.T @ new), 2))
        converged = has_settled(move, last_move, p.tol)
        Q, last_move = new, move
        if converged:
            break
    values, turn = leading(Q.T @ A @ Q, p.k)  # EM finds the plane; its axes are the eigenvectors within
    return values, Q @ turn, converged


def _by_covariance(p: Problem, solve: Callable[..., Any] = _eigh) -> Spectrum:
    weight, mean, S = moments(p.engine, p.blocks, p.w)
    if not p.center:
        S += weight * np.outer(mean, mean)
        mean = np.zeros_like(mean)
    total = float(S.trace())
    values, vectors, converged = solve(S, p)
    return Spectrum(values, np.ascontiguousarray(vectors.T), mean, weight, total, converged)


def of_moments(rows: Moments, k: int) -> Spectrum:
    """The k leading eigenpairs of moments gathered elsewhere."""
    values, vectors = leading(rows.scatter.copy(), k)
    return Spectrum(values, np.ascontiguousarray(vectors.T), rows.mean, rows.weight, float(rows.scatter.trace()))


class GramSums(NamedTuple):
    """Over columns j with mean m_j:  Σ x_j x_jᵀ (n,n),  Σ m_j x_j (n,),  Σ m_j²; dense blocks are centered before."""

    G: np.ndarray
    mx: np.ndarray
    mm: float


def _gram_step(T: Block, w: np.ndarray, center: bool) -> tuple[np.ndarray, GramSums]:
    """T holds columns of X as its rows (d_b,n); returns their means and what they add."""
    n = T.shape[1]
    mean = np.asarray(T @ w, dtype=np.float64) / w.sum() if center else np.zeros(T.shape[0])
    if hasattr(T, "indptr"):
        G = np.zeros((n, n))
        csr_gram(T.data, T.indices, T.indptr, np.ones(T.shape[0]), G)
        return mean, GramSums(G + np.triu(G, 1).T, T.T @ mean, float(mean @ mean))
    if center:
        T = T - mean.astype(T.dtype)[:, None]
    return mean, GramSums((T.T @ T).astype(np.float64), np.zeros(n), 0.0)


def _lift_step(T: Block, mean: np.ndarray, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The means of some columns of X, and their part of XcᵀU: (d_b,k)."""
    if hasattr(T, "indptr"):
        return mean, T @ U - np.outer(mean, U.sum(axis=0))
    return mean, ((T - mean.astype(T.dtype)[:, None]) @ U.astype(T.dtype)).astype(np.float64)


def _by_gram(p: Problem, solve: Callable[..., Any] = _eigh) -> Spectrum:
    columns = p.blocks.T
    w = np.ones(p.blocks.shape[0]) if p.w is None else p.w
    means, (G, mx, mm) = p.engine.reduce(
        add, p.engine.map(_gram_step, columns, p.engine.broadcast(w), p.engine.broadcast(p.center)), keep=True
    )
    root = np.sqrt(w)
    G = (G - mx[:, None] - mx[None, :] + mm) * root[:, None] * root[None, :]
    total = float(G.trace())
    values, U, converged = solve(G, p)
    lift = p.engine.map(_lift_step, columns, means, p.engine.broadcast(U * root[:, None]))
    mean, XU = stack_results(p.engine.gather(lift))  # (d,) and (d,k), whose columns are orthogonal with norms √λ
    axes, R = np.linalg.qr(XU)  # also completes the axes where λ = 0
    axes = axes * np.where(np.diag(R) < 0, -1.0, 1.0)
    return Spectrum(values, np.ascontiguousarray(axes.T), mean, float(w.sum()), total, converged)


def _by_smaller(solve: Callable[..., Any], p: Problem) -> Spectrum:
    n, d = p.blocks.shape
    return _by_covariance(p, solve) if d <= n else _by_gram(p, solve)


# ---- by QR up the tree -----------------------------------------------------------------------------------------


def _qr_step(X: np.ndarray, w: np.ndarray | None, mean: np.ndarray) -> np.ndarray:
    X = X.astype(np.float64) - mean
    return _r(X if w is None else X * np.sqrt(w)[:, None])


def _qr_merge(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _r(np.vstack([a, b]))


def _r(X: np.ndarray) -> Any:
    return np.linalg.qr(X, mode="r")


def _by_qr(p: Problem) -> Spectrum:
    if p.blocks.is_sparse:
        raise InputError('svd_solver="full" needs a dense table. For sparse X use "arpack" or "covariance_eigh".')
    columns = column_moments(p.engine, p.blocks, p.w)
    mean = columns.mean if p.center else np.zeros_like(columns.mean)
    if not np.isfinite(columns.mean).all() or columns.missing:
        return _unusable(p, columns)
    R = p.engine.reduce(_qr_merge, p.engine.map(_qr_step, p.blocks, p.blocks.rows(p.w), p.engine.broadcast(mean)))
    _, s, axes = np.linalg.svd(R, full_matrices=False)
    return Spectrum(s[: p.k] ** 2, axes[: p.k], mean, columns.rows, float((s**2).sum()))


# ---- by products with the data ---------------------------------------------------------------------------------


class Centring(NamedTuple):
    """How a block is centered: implicitly in the products, or by a copy where the mean dwarfs the spread or cells
    are missing; missing cells then stand at the mean."""

    mean: np.ndarray
    copy: bool
    holes: bool


def _product_step(X: Block, w: np.ndarray | None, centring: Centring, Q: np.ndarray) -> np.ndarray:
    """(X−m)ᵀW(X−m) Q of one block: (d,l) in float64."""
    mean = centring.mean
    Q = Q.astype(X.dtype)
    if centring.copy:
        X = X - mean.astype(X.dtype)
        if centring.holes:
            X[np.isnan(X)] = 0.0
        Y = X @ Q  # (n_b,l)
    else:
        Y = X @ Q - (mean @ Q).astype(X.dtype)
    if w is not None:
        Y = Y * w.astype(X.dtype)[:, None]
    out = np.asarray(X.T @ Y, dtype=np.float64)
    return out if centring.copy else out - np.outer(mean, Y.sum(axis=0, dtype=np.float64))


def scatter_operator(
    engine: Engine, blocks: Blocks, w: np.ndarray | None, center: bool = True, holes: bool = False
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray, Columns]:
    """Q ↦ SQ as one pass over the data, the mean it removes, and the columns' moments."""
    columns = column_moments(engine, blocks, w)
    mean = columns.mean if center else np.zeros_like(columns.mean)
    limit = 1e4 if blocks.dtype == np.float64 else 10.0
    far = not blocks.is_sparse and bool(np.any(mean**2 > limit * columns.variance))
    rows, centring = blocks.rows(w), engine.broadcast(Centring(mean, far or holes, holes))
    most = columns_at_once(blocks) if blocks.is_sparse else blocks.shape[1]

    def times(Q: np.ndarray) -> np.ndarray:
        if Q.shape[1] > most:
            out = np.empty(Q.shape)
            for a in range(0, Q.shape[1], most):
                out[:, a : a + most] = times(Q[:, a : a + most])
            return out
        return engine.reduce(add, engine.map(_product_step, blocks, rows, centring, engine.broadcast(Q)))

    return times, mean, columns


def columns_at_once(blocks: Blocks) -> int:
    """Count the columns that a sparse table is multiplied with at a time, so that the products of blocks that wait to
    be added keep to a share of the memory budget. Each column is a sum by itself: its bits do not depend on others."""
    now = config()
    waiting = 2 * now.threads + len(blocks).bit_length() + 1
    return max(1, now.memory // (SHARE * 8 * blocks.shape[1] * waiting))


def _total(p: Problem, columns: Columns) -> float:
    total = columns.scatter.sum()
    return float(total if p.center else total + (columns.weight * columns.mean**2).sum())


def _unusable(p: Problem, columns: Columns) -> Spectrum:
    """The data is not finite: the caller finds the cell and says so."""
    return Spectrum(np.full(p.k, np.nan), np.eye(p.k, len(columns.mean)), columns.mean, columns.rows, np.nan)


def _by_randomized(p: Problem) -> Spectrum:
    times, mean, columns = scatter_operator(p.engine, p.blocks, p.w, p.center, p.holes)
    if not np.isfinite(columns.mean).all() or (columns.missing and not p.holes):
        return _unusable(p, columns)
    values, axes, converged = krylov(times, len(mean), p.k, rng=generator(p.seed), tol=p.tol, max_iter=p.max_iter)
    return Spectrum(values, axes, mean, columns.rows, _total(p, columns), converged)


def _by_arpack(p: Problem) -> Spectrum:
    times, mean, columns = scatter_operator(p.engine, p.blocks, p.w, p.center)
    if not np.isfinite(columns.mean).all() or columns.missing:
        return _unusable(p, columns)
    n, d = p.blocks.shape
    if p.k >= min(n, d):
        raise InputError(
            f'n_components={p.k} is too many for svd_solver="arpack", which finds fewer than min(n, d) = {min(n, d)}. '
            'Use svd_solver="covariance_eigh" or "gram" for all of them.'
        )
    if not _total(p, columns):  # ARPACK stops at a matrix of zeros
        return Spectrum(np.zeros(p.k), np.eye(p.k, d), mean, columns.rows, 0.0)
    start = generator(p.seed).standard_normal(d)
    try:
        S = LinearOperator((d, d), matvec=lambda v: times(v.reshape(d, 1)).ravel(), dtype=np.float64)
        values, vectors = eigsh(S, k=p.k, v0=start, tol=np.sqrt(p.tol), maxiter=p.max_iter, which="LA")
    except ArpackNoConvergence as why:
        raise InputError(f"arpack did not converge ({why}). Raise max_iter or loosen tol.") from None
    axes = np.ascontiguousarray(vectors[:, ::-1].T)
    return Spectrum(np.maximum(values[::-1], 0.0), axes, mean, columns.rows, _total(p, columns))


_SOLVERS: dict[str, Callable[[Problem], Spectrum]] = {
    "covariance_eigh": _by_covariance,
    "gram": _by_gram,
    "full": _by_qr,
    "power": partial(_by_smaller, _deflate),
    "em": partial(_by_smaller, _em),
    "randomized": _by_randomized,
    "arpack": _by_arpack,
}
