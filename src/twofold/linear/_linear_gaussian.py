"""The linear-Gaussian model under PPCA, factor analysis, Bayesian PCA and their mixtures.

    x = W z + m + ε      z ~ N(0, I_k)      ε ~ N(0, diag ψ)      W (d,k)

Given x the code z is Gaussian too, with precision A = I + WᵀΨ⁻¹W over the observed cells: only k×k algebra.
Rows are grouped by their pattern of missing cells, with one Cholesky factor per pattern. The matrices A of all patterns
come from one matrix product, (patterns × d)·(d × k(k+1)/2), and so do the sums for W. Rows without holes are one
pattern.

    E:  each block  (E z, E zzᵀ) given W, m, ψ, added to the sums below
    M:  then once   row j of (W, m) ← regression of column j on (z, 1), without a ridge;  ψ ← residual variances
References: Tipping & Bishop 1999; Rubin & Thayer 1982; Liu, Rubin & Wu 1998.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla
from scipy import sparse

from twofold.core.data.missing_patterns import LOG_2PI, Patterns, center_rows, find_patterns, recall_patterns
from twofold.kernels.ppca_posterior import hole_variances, posterior


class Theta(NamedTuple):
    """The shared factor."""

    mean: np.ndarray  # (d,)
    W: np.ndarray  # (d,k)
    psi: np.ndarray  # (d,) noise variances


class Sums(NamedTuple):
    """Sums of a block over observed cells; x̃ is the row less the old mean, z̃ = (z, 1)."""

    xz: np.ndarray  # (d,k+1) Σ w x̃ E z̃ᵀ
    zz: np.ndarray  # (d,(k+1)(k+2)/2) Σ w E z̃z̃ᵀ, packed, one row per column of X; one row in all without holes
    xx: np.ndarray  # (d,) Σ w x̃²
    pooled: np.ndarray  # ((k+1)(k+2)/2,) Σ w E z̃z̃ᵀ over all rows, packed
    loglik: float
    rows: float  # Σ w


def unpack(packed: np.ndarray, k: int) -> np.ndarray:
    """Expand rows of lower triangles (…,k(k+1)/2) to symmetric matrices (…,k,k)."""
    a, b = np.tril_indices(k)
    out = np.empty((*packed.shape[:-1], k, k))
    out[..., a, b] = packed
    out[..., b, a] = packed
    return out


class Posterior(NamedTuple):
    """Codes of one block."""

    means: np.ndarray  # (n,k)
    logp: np.ndarray  # (n,) log-density of the rows
    second: np.ndarray  # (P,(k+1)(k+2)/2) Σ w E z̃z̃ᵀ per pattern, packed


def codes(x: Any, w: np.ndarray, patterns: Patterns, theta: Theta) -> Posterior:
    """Compute the E-step of one block of centered rows."""
    n, k = x.shape[0], theta.W.shape[1]
    mean, W, psi = theta
    V = W / psi[:, None]  # Ψ⁻¹W
    if sparse.issparse(x):
        B = np.asarray(x @ V - mean @ V, dtype=np.float64)
        squares = x.multiply(x) @ (1 / psi) - 2 * (x @ (mean / psi)) + mean @ (mean / psi)
    else:
        B = (x @ V.astype(x.dtype)).astype(np.float64)
        squares = (x * x) @ (1 / psi).astype(x.dtype)
    count = len(patterns.mask)
    M = precisions(patterns, W, V)
    means, quad, logdet = np.empty((n, k)), np.empty(n), np.empty(count)
    second = np.zeros((count, (k + 1) * (k + 2) // 2))
    posterior(M, B, w, patterns.order, patterns.starts, 1.0, means, quad, logdet, second)
    logp = np.empty(n)
    constant = logdet + patterns.mask @ (np.log(psi) + LOG_2PI)
    logp[patterns.order] = np.repeat(constant, np.diff(patterns.starts))
    return Posterior(means, -0.5 * (logp + squares - quad), second)


def precisions(patterns: Patterns, W: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Compute WᵀΨ⁻¹W over the observed cells of each pattern, packed: (P,k(k+1)/2).

    It is float64 for any dtype of the data: rounding must not exceed the 1 that is added to the diagonal.
    """
    a, b = np.tril_indices(W.shape[1])
    return patterns.mask.astype(np.float64) @ (W[:, a] * V[:, b])


def collect(x: Any, w: np.ndarray, patterns: Patterns, holes: bool, theta: Theta, code: Posterior) -> Sums:
    """Sum the M-step's statistics of one block over its posterior codes."""
    z = np.column_stack([code.means, np.ones(len(w))]) * w[:, None]  # (n,k+1)
    if sparse.issparse(x):
        xz = x.T @ z - np.outer(theta.mean, z.sum(axis=0))
        xx = x.multiply(x).T @ w - 2 * theta.mean * (x.T @ w) + w.sum() * theta.mean**2
    else:
        xz = (x.T @ z.astype(x.dtype)).astype(np.float64)
        xx = (w.astype(x.dtype) @ (x * x)).astype(np.float64)
    pooled = code.second.sum(axis=0)
    if holes:
        zz = (patterns.mask.T.astype(x.dtype) @ code.second.astype(x.dtype)).astype(np.float64)
    else:
        zz = pooled[None].copy()
    return Sums(xz, zz, xx, pooled, float(code.logp @ w), float(w.sum()))


def em_step(X: Any, w: np.ndarray | None, kept: Patterns | None, holes: bool, theta: Theta) -> Sums:
    """The rows' half-step: compute the posterior codes of a block and their sums."""
    w = np.ones(X.shape[0]) if w is None else w
    patterns = recall_patterns(X, kept)
    x = center_rows(X, patterns, theta.mean)
    return collect(x, w, patterns, holes, theta, codes(x, w, patterns, theta))


def regress(s: Sums, ridge: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The shared half-step: regress every column j of X on (z, 1).

    Returns W (d,k), the shift of the mean (d,), the residuals Σ w E(x̃ − W_j z − shift)² (d,), and Σ w (d,). The
    penalty `ridge` (k,) on the columns of W is a Gaussian prior.
    """
    k1 = s.xz.shape[1]
    zz = unpack(s.zz, k1)  # (1 or d,k+1,k+1)
    zz[zz[:, -1, -1] <= 1e-12 * s.rows] = np.eye(k1)  # no row of this component has a cell in this column
    penalized = zz if ridge is None else zz + np.diag(np.append(ridge, 0.0))
    if len(zz) == 1:
        factor = sla.cho_factor(penalized[0], lower=True, check_finite=False)
        C = sla.cho_solve(factor, s.xz.T, check_finite=False).T  # (d,k+1)
    else:
        C = np.linalg.solve(penalized, s.xz[:, :, None])[:, :, 0]
    fitted = np.matmul(zz, C[:, :, None])[:, :, 0]  # zz C_j, broadcast where all columns share one zz
    left = s.xx - 2 * (C * s.xz).sum(axis=1) + (C * fitted).sum(axis=1)
    weight = np.broadcast_to(zz[:, -1, -1], len(C))
    return C[:, :-1], C[:, -1], np.maximum(left, 0.0), weight


def expand(W: np.ndarray, shift: np.ndarray, s: Sums) -> tuple[np.ndarray, np.ndarray]:
    """Expand the parameters: fit a prior N(a, C) of the codes, and transform W and the mean so that it is N(0, I).

    The likelihood rises at least as much as in plain EM. If the signal exceeds the noise, a few sweeps replace hundreds
    (Liu, Rubin & Wu 1998).
    """
    E = unpack(s.pooled, W.shape[1] + 1) / s.rows
    a = E[-1, :-1]
    C = E[:-1, :-1] - np.outer(a, a)
    return W @ np.linalg.cholesky(C), shift + W @ a


def _posterior(X: Any, theta: Theta) -> tuple[Patterns, Posterior]:
    patterns = find_patterns(X)[0]
    return patterns, codes(center_rows(X, patterns, theta.mean), np.ones(X.shape[0]), patterns, theta)


def log_density(X: Any, mean: np.ndarray, W: np.ndarray, psi: np.ndarray) -> np.ndarray:
    """Compute log N(x; m, WWᵀ + diag ψ) over the observed cells of each row, by the matrix inversion lemma."""
    return _posterior(X, Theta(mean, W, psi))[1].logp


def code_means(X: Any, mean: np.ndarray, W: np.ndarray, psi: np.ndarray) -> np.ndarray:
    """Compute E[z | x] of each row, in the dtype of the data."""
    return _posterior(X, Theta(mean, W, psi))[1].means.astype(X.dtype)


def code_moments(X: Any, mean: np.ndarray, W: np.ndarray, psi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute E[z | x] (n,k) and Cov[z | x] (n,k,k) of each row."""
    patterns, found = _posterior(X, Theta(mean, W, psi))
    k = W.shape[1]
    A = np.eye(k) + np.matmul(patterns.mask[:, None, :] * W.T, W / psi[:, None])  # (P,k,k)
    half = np.linalg.solve(np.linalg.cholesky(A), np.broadcast_to(np.eye(k), A.shape))
    out = np.empty((X.shape[0], k, k))
    out[patterns.order] = np.repeat(np.matmul(half.transpose(0, 2, 1), half), np.diff(patterns.starts), axis=0)
    return found.means.astype(X.dtype), out.astype(X.dtype)


def fill(X: np.ndarray, mean: np.ndarray, W: np.ndarray, psi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fill the holes of X with their expectation; also return the standard deviation of each filled cell (else 0)."""
    patterns, found = _posterior(X, Theta(mean, W, psi))
    variances = np.zeros(patterns.mask.shape)
    hole_variances(precisions(patterns, W, W / psi[:, None]), patterns.mask, W, psi, variances)
    std = np.empty(X.shape, X.dtype)
    std[patterns.order] = np.repeat(np.sqrt(variances), np.diff(patterns.starts), axis=0)
    return np.where(np.isnan(X), mean + found.means @ W.T, X).astype(X.dtype), std
