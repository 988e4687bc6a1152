"""Leading eigenpairs of a symmetric matrix that is known by its products alone.

Block Krylov from a random start: a thin block is multiplied again and again, and the best pairs are sought in the span
of all the products so far.
Reference: Musco & Musco 2015.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

OVERSAMPLE = 10


def krylov(
    times: Callable[[np.ndarray], np.ndarray], d: int, k: int, *, rng: np.random.Generator, tol: float, max_iter: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """The k largest eigenvalues of S (d,d), their vectors (k,d) as rows, and whether they are accurate to `tol`.

    `times` maps Q (d,l) to S Q; the accuracy is that of the squared residuals, relative to the largest eigenvalue.

    >>> S = np.diag(np.arange(100.0))
    >>> values, axes, _ = krylov(S.__matmul__, 100, 2, rng=np.random.default_rng(0), tol=1e-12, max_iter=100)
    >>> values.round(6), axes[0, 99].round(6) ** 2
    (array([99., 98.]), np.float64(1.0))
    """
    Q = np.linalg.qr(rng.standard_normal((d, min(k + OVERSAMPLE, d))))[0]
    K, SK = np.empty((d, 0)), np.empty((d, 0))
    converged = False
    for _ in range(max_iter):
        B = times(Q)
        K, SK = np.hstack([K, Q]), np.hstack([SK, B])
        T = K.T @ SK
        values, Y = np.linalg.eigh((T + T.T) / 2)
        values, Y = values[::-1][:k], Y[:, ::-1][:, :k]
        residual = np.linalg.norm(SK @ Y - (K @ Y) * values, axis=0)
        converged = bool(K.shape[1] >= d or np.all(residual**2 <= tol * max(values[0], 0.0) ** 2))
        if converged:
            break
        # The next block: what S made of the last, less what is known already (twice, for orthogonality).
        B = B - K @ (K.T @ B)
        Q = np.linalg.qr(B)[0][:, : d - K.shape[1]]
        Q = np.linalg.qr(Q - K @ (K.T @ Q))[0]
    return np.maximum(values, 0.0), (K @ Y).T.copy(), converged
