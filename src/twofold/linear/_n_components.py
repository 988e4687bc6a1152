"""Five rules for the number of components of a spectrum.

All take the eigenvalues of the covariance of n rows, descending, and return a whole number of at least 1.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.base import clone

from twofold.core.checks import InputError
from twofold.core.data.blocks import as_blocks
from twofold.core.engine.local import engine_for
from twofold.core.estimator import Model
from twofold.core.numerics.moments import column_moments
from twofold.core.numerics.spectrum import spectrum
from twofold.core.seeds import generator

MAX_SPECTRUM = 3000  # rows or columns up to which the whole spectrum is computed
RULES = ("mle", "knee", "gavish-donoho", "parallel")


def choose(
    rule: Any, values: np.ndarray, total: float, shape: tuple[int, int], column_variance: np.ndarray | None, seed: int
) -> int:
    """Choose the number of components by a rule: None or a number (all that were computed), a share, or a name."""
    n, d = shape
    if rule is None or isinstance(rule, Integral):
        return len(values) if rule is None else min(int(rule), len(values))
    if rule == "knee":
        return by_knee(values)
    if rule == "mle":
        if n < d:
            raise InputError(f'n_components="mle" needs at least as many rows as columns; X has shape {shape}.')
        return by_mle(values, n)
    if rule == "gavish-donoho":
        return by_gavish_donoho(values, n, d)
    if rule == "parallel":
        assert column_variance is not None
        return by_parallel(values, column_variance, n, seed)
    return by_variance(values, total, float(rule))


def by_variance(values: np.ndarray, total: float, share: float) -> int:
    """Return the smallest number of components that explain at least this share of the variance."""
    explained = np.cumsum(values) / max(total, 1e-300)
    return min(int(np.searchsorted(explained, share * (1 - 1e-12))) + 1, len(values))


def by_knee(values: np.ndarray) -> int:
    """Find the largest bend of the eigenvalues' curve: the point farthest below its chord (Satopää et al. 2011)."""
    if len(values) < 3 or values[0] <= values[-1]:
        return 1
    x = np.linspace(0.0, 1.0, len(values))
    y = (values - values[-1]) / (values[0] - values[-1])
    return max(1, int(np.argmax(1.0 - x - y)))


def by_gavish_donoho(values: np.ndarray, n: int, d: int) -> int:
    """Count singular values above the optimal hard threshold for unknown noise, ω(β)·median (Gavish & Donoho 2014)."""
    return max(1, int(np.sum(values > hard_threshold(values, n, d))))


def hard_threshold(values: np.ndarray, n: int, d: int) -> float:
    """Return the squared threshold of Gavish & Donoho, for eigenvalues of the covariance."""
    beta = min(n, d) / max(n, d)
    omega = np.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + np.sqrt(beta**2 + 14 * beta + 1)))
    s = np.sqrt(np.maximum(values, 0.0))
    return float((omega / np.sqrt(_marchenko_pastur_median(beta)) * np.median(s)) ** 2)


def _marchenko_pastur_median(beta: float) -> float:
    low, high = (1 - np.sqrt(beta)) ** 2, (1 + np.sqrt(beta)) ** 2
    # cos-spaced nodes make the density's square-root ends smooth
    x = (low + high) / 2 - (high - low) / 2 * np.cos(np.linspace(0.0, np.pi, 20_001))
    density = np.sqrt(np.maximum((high - x) * (x - low), 0.0)) / (2 * np.pi * beta * np.maximum(x, 1e-12))
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(x))])
    return float(np.interp(mass[-1] / 2, mass, x))


def by_mle(values: np.ndarray, n: int) -> int:
    """Return the dimension with the largest evidence under probabilistic PCA (Minka 2000, Laplace approximation)."""
    d = len(values)
    evidence = [_evidence(values, k, n) for k in range(1, d)]
    return 1 + int(np.argmax(evidence)) if evidence else 1


def _evidence(values: np.ndarray, k: int, n: int) -> float:
    d = len(values)
    noise = values[k:].mean() if k < d else 0.0
    if (k and values[k - 1] <= 1e-15 * values[0]) or noise <= 1e-15 * values[0]:
        return -np.inf
    i = np.arange(1, k + 1)
    prior = -k * np.log(2.0) + np.sum(gammaln((d - i + 1) / 2) - (d - i + 1) / 2 * np.log(np.pi))
    fit = -n / 2 * np.log(values[:k]).sum() - n * (d - k) / 2 * np.log(noise)
    m = d * k - k * (k + 1) / 2
    smoothed = np.concatenate([values[:k], np.full(d - k, noise)])
    a, b = np.triu_indices(d, 1)
    use = a < k
    a, b = a[use], b[use]
    gaps = (1 / smoothed[b] - 1 / smoothed[a]) * (values[a] - values[b]) * n
    curvature = np.log(np.maximum(gaps, 1e-300)).sum()
    return float(prior + fit + (m + k) / 2 * np.log(2 * np.pi) - curvature / 2 - k / 2 * np.log(n))


def by_parallel(values: np.ndarray, column_variance: np.ndarray, n: int, seed: int, draws: int = 20) -> int:
    """Count leading values above the 95th percentile of independent columns (Horn's parallel analysis).

    The covariance of n Gaussian rows with these column variances is drawn directly (a Wishart matrix by
    Bartlett's factor), so that the cost does not depend on n.
    """
    d = len(column_variance)
    scale = np.sqrt(column_variance)
    noise = np.empty((draws, min(d, n - 1)))
    for t in range(draws):
        rng = generator(seed, t)
        if n - 1 >= d:
            L = np.tril(rng.standard_normal((d, d)), -1)
            L[np.diag_indices(d)] = np.sqrt(rng.chisquare(n - 1 - np.arange(d)))
            A = scale[:, None] * L
        else:
            A = (rng.standard_normal((n - 1, d)) * scale).T
        noise[t] = np.linalg.svd(A, compute_uv=False)[: noise.shape[1]] ** 2 / (n - 1)
    limit = np.percentile(noise, 95, axis=0)
    m = min(len(values), len(limit))
    below = values[:m] <= limit[:m]
    return max(1, int(np.argmax(below)) if below.any() else m)


# --- all sizes at once ----------------------------------------------------------------------------------------------


class SizedBySpectrum(Model):
    """For models whose criterion is known for every number of components from one spectrum."""

    scale: bool

    def _criterion(self, X: Any, grid: dict[str, list[Any]]) -> tuple[str, str]:
        """Choose the criterion for :func:`twofold.select` and say why: one of white noise, if a spectrum is cheap."""
        whole = list(grid) == ["n_components"] and all(isinstance(k, Integral) for k in grid["n_components"])
        blocks = as_blocks(X)
        n, d = blocks.shape
        if not whole or min(n, d) > MAX_SPECTRUM or column_moments(engine_for(blocks), blocks).missing:
            return "bic", "it has a likelihood, and the whole spectrum, which would be better, is not available"
        if n > d:
            return "evidence", "the evidence of probabilistic PCA penalizes every direction for its freedom (Minka)"
        return "gavish-donoho", (
            "with fewer rows than columns noise has large eigenvalues, too, and a threshold from random matrices "
            "separates the two (Gavish & Donoho)"
        )

    def _path(self, X: Any, criterion: str, sizes: list[int]) -> list[float]:
        """Compute a criterion of white noise for each number of components, from one spectrum.

        "evidence" is Minka's log-evidence. "gavish-donoho" is the variance that k components leave out plus k times the
        threshold: the minimum is at the number of eigenvalues above the threshold.
        """
        blocks = clone(self)._blocks(X, reset=True, min_rows=2)
        n, d = blocks.shape
        if self.scale:
            blocks = blocks.divide_columns(column_moments(engine_for(blocks), blocks).spread)
        values = spectrum(blocks, min(n, d), solver="covariance_eigh" if d <= n else "gram").values / (n - 1)
        if not np.isfinite(values).all():
            self._refuse(blocks)
        if criterion == "evidence":
            values = np.concatenate([values, np.zeros(d - len(values))])
            return [_evidence(values, k, n) if 0 <= k < d else -np.inf for k in sizes]
        level = hard_threshold(values, n, d)
        return [float(values[k:].sum() + k * level) if 0 <= k <= len(values) else np.inf for k in sizes]
