"""A smooth surface through the known pixels of a picture.

    minimise  ‖ΔX‖² + t‖∇X‖²  with X as it is where it is known
    Δ: the sum of the four neighbours, minus four times the pixel;  ∇: the differences of neighbours

The first term goes on with slopes, which suits gaps of a few pixels; over wide ones it would swing beyond what is
around them, and the tension t holds it there. First for the picture at half its size, and so on; every size starts from
the next smaller one, and a few conjugate gradients do the rest.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from twofold.core.engine.local import single_blas

TENSION = 1 / 4  # one over the square of the width, in pixels, from which a gap is wide
NEAR, STEPS = 1e-4, 50  # of the conjugate gradients: relative residual, and steps at most


def fit_surface(channel: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """The channel (h,w) with its missing pixels filled, within the range of the known ones."""
    known = channel[~missing]
    with single_blas():
        found = _smooth(np.where(missing, 0, channel).astype(np.float64), missing, TENSION)
    return np.where(missing, np.clip(found, known.min(), known.max()), channel).astype(channel.dtype)


def _smooth(X: np.ndarray, missing: np.ndarray, tension: float) -> np.ndarray:
    """The surface through X, which is 0 where it is missing."""
    n = int(missing.sum())
    if n == 0:
        return X
    h, w = X.shape
    total, count = (_sum_fours(np.pad(A, ((0, h % 2), (0, w % 2)))) for A in (X, ~missing))
    half = _smooth(total / np.maximum(count, 1), count == 0, 4 * tension)
    start = _double_rows(_double_rows(half).T).T[:h, :w]

    def force(Y: np.ndarray) -> np.ndarray:
        bend = _apply_laplacian(Y)
        return (_apply_laplacian(bend) - tension * bend)[missing]

    def bent(hidden: np.ndarray) -> np.ndarray:
        Y = np.zeros((h, w))
        Y[missing] = hidden
        return force(Y)

    operator = LinearOperator((n, n), matvec=bent, dtype=np.float64)
    target = -force(X)
    out = X.copy()
    out[missing] = cg(operator, target, x0=start[missing], rtol=NEAR, maxiter=STEPS)[0]
    return out


def _apply_laplacian(X: np.ndarray) -> np.ndarray:
    out = np.zeros_like(X)
    down, across = X[1:] - X[:-1], X[:, 1:] - X[:, :-1]
    out[:-1] += down
    out[1:] -= down
    out[:, :-1] += across
    out[:, 1:] -= across
    return out


def _sum_fours(A: np.ndarray) -> np.ndarray:
    """Sums of two by two."""
    return A.reshape(A.shape[0] // 2, 2, A.shape[1] // 2, 2).sum(axis=(1, 3))


def _double_rows(A: np.ndarray) -> np.ndarray:
    """Twice as many rows, between those that are there."""
    around = np.concatenate([A[:1], A, A[-1:]])
    return np.stack([0.75 * A + 0.25 * around[:-2], 0.75 * A + 0.25 * around[2:]], axis=1).reshape(-1, A.shape[1])
