"""Leading eigenpairs of a symmetric matrix S (d,d) that is known by its products alone.

krylov             a thin block is multiplied again and again, and the best pairs are sought in the span of all products
iterate_subspace   the same, with the last product alone: a rough start for models that go on themselves
rayleigh_ritz      the best pairs in the span of a basis
extend_basis       what new vectors add to a basis
References: Halko, Martinsson & Tropp 2011; Musco & Musco 2015.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

OVERSAMPLE = 10  # columns of a block beyond the pairs that are wanted

Times = Callable[[np.ndarray], np.ndarray]  # Q (d,l) → S Q


def krylov(
    times: Times, d: int, k: int, *, rng: np.random.Generator, tol: float, max_iter: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """The k largest eigenvalues of S (d,d), their vectors (k,d) as rows, and whether they are accurate to `tol`.

    The accuracy is that of the squared residuals, relative to the largest eigenvalue.

    >>> S = np.diag(np.arange(100.0))
    >>> values, axes, _ = krylov(S.__matmul__, 100, 2, rng=np.random.default_rng(0), tol=1e-12, max_iter=100)
    >>> values.round(6), axes[0, 99].round(6) ** 2
    (array([99., 98.]), np.float64(1.0))
    """
    Q = random_basis(d, k, rng)
    K, SK = np.empty((d, 0)), np.empty((d, 0))
    converged = False
    for _ in range(max_iter):
        B = times(Q)
        K, SK = np.hstack([K, Q]), np.hstack([SK, B])
        values, Y = rayleigh_ritz(K, SK, k)
        residual = np.linalg.norm(SK @ Y - (K @ Y) * values, axis=0)
        converged = bool(K.shape[1] >= d or np.all(residual**2 <= tol * max(values[0], 0.0) ** 2))
        if converged:
            break
        Q = extend_basis(K, B)
    return np.maximum(values, 0.0), (K @ Y).T.copy(), converged


def random_basis(d: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Orthonormal columns to begin with, a few more than the k that are wanted."""
    return np.linalg.qr(rng.standard_normal((d, min(k + OVERSAMPLE, d))))[0]


def iterate_subspace(times: Times, Q: np.ndarray, turns: int) -> tuple[np.ndarray, np.ndarray]:
    """Q (d,l) ← an orthonormal basis of S Q, `turns` times; and the length that S gave to each of its columns (l,)."""
    reached = np.ones(Q.shape[1])
    for _ in range(turns):
        Q, R = np.linalg.qr(times(Q))
        reached = np.abs(np.diagonal(R))
    return Q, reached


def rayleigh_ritz(K: np.ndarray, SK: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of S within the span of orthonormal K (d,l), and their vectors as K Y, Y (l,k)."""
    T = K.T @ SK
    values, Y = np.linalg.eigh((T + T.T) / 2)
    return values[::-1][:k], Y[:, ::-1][:, :k]


def extend_basis(K: np.ndarray, B: np.ndarray) -> np.ndarray:
    """An orthonormal basis of what B has outside the span of K; twice, for orthogonality."""
    B = B - K @ (K.T @ B)
    Q = np.linalg.qr(B)[0][:, : K.shape[0] - K.shape[1]]
    return np.linalg.qr(Q - K @ (K.T @ Q))[0]
