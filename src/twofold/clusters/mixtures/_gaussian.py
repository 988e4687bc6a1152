"""Gaussian components: log-densities of a block's rows, the sums that re-estimate them, and the estimates.

    E:  log N(x; m_c, S_c) for every component, one Cholesky factor and one matrix product each
    M:  from N_c = Σr, Σr x and Σr xxᵀ (or Σr x²); additive over blocks, batches and machines

x is the row less the mean of all rows, so that nothing cancels far from the origin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla

from twofold.core.data.missing_patterns import LOG_2PI, Patterns, center_rows, recall_patterns
from twofold.core.numerics.moments import Columns
from twofold.core.seeds import generator
from twofold.kernels.gaussian_missing import fill_holes, log_density

TYPES = ("full", "tied", "diag", "spherical", "fixed")


class Shape(NamedTuple):
    """The shared factor: π, centers less the mean of all rows, and covariances.

    `S` is (c,d,d) for "full", (1,d,d) for "tied" and "fixed", (c,d) for "diag" and "spherical".
    """

    weights: np.ndarray  # (c,)
    means: np.ndarray  # (c,d)
    S: np.ndarray
    origin: np.ndarray  # (d,) the mean of all rows

    def matrix(self, c: int) -> np.ndarray:
        """The covariance of component c, in full."""
        return np.diag(self.S[c]) if self.S.ndim == 2 else self.S[min(c, len(self.S) - 1)]


class Sums(NamedTuple):
    """Sums of a block."""

    N: np.ndarray  # (c,)
    x: np.ndarray  # (c,d)
    xx: np.ndarray  # (c,d,d), (c,d) for variances only, or (1,d,d) if components share one
    loglik: float
    rows: float


def densities(x: np.ndarray, patterns: Patterns, s: Shape) -> np.ndarray:
    """Compute log π_c N(x; m_c, S_c): (n,c)."""
    n, d = x.shape
    logp = np.empty((n, len(s.weights)))
    with np.errstate(divide="ignore"):
        log_weights = np.log(s.weights)
    if not patterns.mask.all():
        for c in range(len(s.weights)):
            column = np.empty(n)
            log_density(x, patterns.mask, patterns.order, patterns.starts, s.means[c], s.matrix(c), column)
            logp[:, c] = column
    elif s.S.ndim == 2:
        per = (1 / s.S).astype(x.dtype)  # (c,d)
        cross = (s.means / s.S).astype(x.dtype)
        constant = d * LOG_2PI + np.log(s.S).sum(axis=1) + (s.means**2 / s.S).sum(axis=1)
        logp[:] = -0.5 * ((x * x) @ per.T - 2 * (x @ cross.T) + constant)
    elif len(s.S) == 1:  # one covariance for all: transform rows and centers once, then plain distances
        P, logdet = _whitener(s.S[0])
        y, m = x @ P.astype(x.dtype), s.means @ P
        gaps = np.einsum("ij,ij->i", y, y)[:, None] - 2 * (y @ m.T.astype(x.dtype)) + (m**2).sum(axis=1)
        logp[:] = -0.5 * (gaps + logdet + d * LOG_2PI)
    else:
        for c in range(len(s.weights)):
            P, logdet = _whitener(s.S[c])
            logp[:, c] = -0.5 * (_mahalanobis(x, s.means[c], P) + logdet + d * LOG_2PI)
    return logp + log_weights


def _mahalanobis(x: np.ndarray, mean: np.ndarray, P: np.ndarray) -> np.ndarray:
    """Compute ‖(x − mean)P‖² of each row, in chunks that stay in cache.

    P is triangular, but SciPy's triangular product keeps the GIL, and NumPy's full one releases it.
    """
    n, d = x.shape
    step = max(64, 2**19 // (d * x.itemsize))
    P, shift = P.astype(x.dtype), (mean @ P).astype(x.dtype)
    y, out = np.empty((min(step, n), d), x.dtype), np.empty(n)
    for a in range(0, n, step):
        part = np.matmul(x[a : a + step], P, out=y[: min(step, n - a)])
        part -= shift
        out[a : a + step] = np.einsum("ij,ij->i", part, part)
    return out


def _whitener(S: np.ndarray) -> tuple[np.ndarray, float]:
    """Return P with PPᵀ = S⁻¹, and log|S|."""
    L = np.linalg.cholesky(S)
    P = sla.solve_triangular(L, np.eye(len(S)), lower=True, check_finite=False).T
    return P, 2 * float(np.log(np.diag(L)).sum())


def collect(x: np.ndarray, r: np.ndarray, patterns: Patterns, s: Shape, kind: str) -> tuple:
    """Sum N, Σr x and the second moments of a block, with holes at their expectation."""
    count, d = r.shape[1], x.shape[1]
    if not patterns.mask.all():
        first, second = np.empty((count, d)), np.zeros((count, d, d))
        for c in range(count):
            filled, w = np.empty(x.shape), np.ascontiguousarray(r[:, c])
            at = (patterns.mask, patterns.order, patterns.starts, s.means[c], s.matrix(c))
            fill_holes(x, w, *at, filled, second[c])
            first[c] = w @ filled
            scaled = filled * np.sqrt(w)[:, None]
            second[c] += scaled.T @ scaled
        if kind in ("diag", "spherical"):
            second = np.einsum("cjj->cj", second).copy()
        elif kind != "full":
            second = second.sum(axis=0, keepdims=True)
        return r.sum(axis=0), first, second
    first = (r.T.astype(x.dtype) @ x).astype(np.float64)
    if kind in ("diag", "spherical"):
        second = (r.T.astype(x.dtype) @ (x * x)).astype(np.float64)
    elif kind == "full":
        second = np.empty((count, d, d))
        for c in range(count):
            # Most rows belong to one component: shares below rounding are left out.
            rows = np.flatnonzero(r[:, c] > 1e-15)
            scaled = x[rows]
            scaled *= np.sqrt(r[rows, c]).astype(x.dtype)[:, None]
            second[c] = scaled.T @ scaled
    else:
        scaled = x * np.sqrt(r.sum(axis=1)).astype(x.dtype)[:, None]
        second = (scaled.T @ scaled).astype(np.float64)[None]
    return r.sum(axis=0), first, second


def prepare_block(
    X: Any, w: np.ndarray | None, kept: Patterns | None, s: Shape
) -> tuple[np.ndarray, Patterns, np.ndarray]:
    """Return the weights, the patterns of missing cells and the centered rows of a block."""
    patterns = recall_patterns(X, kept)
    return np.ones(X.shape[0]) if w is None else w, patterns, center_rows(X, patterns, s.origin)


def em_step(X: Any, w: np.ndarray | None, kept: Patterns | None, kind: str, s: Shape) -> Sums:
    """The rows' half-step: compute responsibilities and their sums."""
    w, patterns, x = prepare_block(X, w, kept, s)
    joint = densities(x, patterns, s)
    r, logp = share_out(joint, w)
    N, first, second = collect(x, r, patterns, s, kind)
    return Sums(N, first, second, float(logp @ w), float(w.sum()))


def share_out(joint: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute responsibilities times weights (n,c) and the rows' log-densities (n,) from log π_c p(x; θ_c)."""
    top = joint.max(axis=1)
    r = joint - top[:, None]
    np.exp(r, out=r)
    total = r.sum(axis=1)
    r *= (w / total)[:, None]
    return r, top + np.log(total)


def hard_step(X: Any, w: np.ndarray | None, kept: Patterns | None, kind: str, s: Shape) -> Sums:
    """Compute the sums of a start of EM in which every row belongs to its nearest center."""
    w, patterns, x = prepare_block(X, w, kept, s)
    at = x if patterns.mask.all() else np.where(np.isnan(X), 0.0, x)
    gaps = (s.means**2).sum(axis=1) - 2 * (at @ s.means.T)
    r = np.zeros((len(w), len(s.weights)))
    r[np.arange(len(w)), np.argmin(gaps, axis=1)] = w
    N, first, second = collect(x, r, patterns, s, kind)
    return Sums(N, first, second, 0.0, float(w.sum()))


def random_step(
    X: Any, w: np.ndarray | None, kept: Patterns | None, place: tuple[int, int], kind: str, s: Shape
) -> Sums:
    """Compute the sums of a start of EM with random responsibilities."""
    w, patterns, x = prepare_block(X, w, kept, s)
    r = generator(*place).random((len(w), len(s.weights)))
    r *= (w / r.sum(axis=1))[:, None]
    N, first, second = collect(x, r, patterns, s, kind)
    return Sums(N, first, second, 0.0, float(w.sum()))


def variance_floor(columns: Columns, dtype: np.dtype, reg_covar: float) -> np.ndarray:
    """Return the number added to the variance of each column (d,): `reg_covar`, or more if rounding needs more."""
    rounding = 1e-6 if dtype == np.float32 else 1e-10
    return np.maximum(reg_covar, rounding * columns.variance)


def estimate(t: Sums, s: Shape, kind: str, floor: np.ndarray) -> Shape:
    """The shared half-step: compute weights, centers and covariances; `floor` (d,) is added to variances."""
    N = np.maximum(t.N, 1e-10)
    means = np.where((t.N > 1e-10)[:, None], t.x / N[:, None], s.means)
    weights = N / N.sum()
    if kind == "fixed":
        return Shape(weights, means, s.S, s.origin)
    if kind in ("diag", "spherical"):
        S = np.maximum(t.xx / N[:, None] - means**2, 0.0)
        S = S + floor
        if kind == "spherical":
            S = np.repeat(S.mean(axis=1, keepdims=True), S.shape[1], axis=1)
        return Shape(weights, means, S, s.origin)
    outer = means[:, :, None] * means[:, None, :]
    if kind == "tied":
        S = (t.xx - (N[:, None, None] * outer).sum(axis=0, keepdims=True)) / N.sum()
    else:
        S = t.xx / N[:, None, None] - outer
    S = 0.5 * (S + S.transpose(0, 2, 1)) + np.diag(floor)
    lost = t.N <= 1e-10
    if kind == "full" and lost.any():
        S[lost] = s.S[lost]
    return Shape(weights, means, S, s.origin)
