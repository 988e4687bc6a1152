"""The linear-Gaussian model under PPCA, factor analysis, Bayesian PCA and their mixtures.

    x = W z + m + ε      z ~ N(0, I_k)      ε ~ N(0, diag ψ)      W (d,k)

Given x the code z is Gaussian too, with precision A = I + WᵀΨ⁻¹W over the observed cells: only k×k algebra.
Rows are grouped by their pattern of missing cells, with one Cholesky factor per pattern. The matrices A of all patterns
come from one matrix product, (patterns × d)·(d × k(k+1)/2), and so do the sums for W. Rows without holes are one
pattern.

    E:  each block  (E z, E zzᵀ) given W, m, ψ, added to the sums below
    M:  then once   row j of (W, m) ← regression of column j on (z, 1), without a ridge;  ψ ← residual variances

`LatentGaussian` is the base of the models: it reads data with holes, runs EM, and applies the result.
References: Tipping & Bishop 1999; Rubin & Thayer 1982; Liu, Rubin & Wu 1998.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg as sla
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.missing_patterns import (
    LOG_2PI,
    Imputer,
    Patterns,
    center_rows,
    find_patterns,
    observe,
    recall_patterns,
)
from twofold.core.engine.local import add, engine_for, fingerprint
from twofold.core.estimator import Rescalable
from twofold.core.history import History
from twofold.core.numerics.density import Density
from twofold.core.numerics.moments import Columns
from twofold.core.numerics.spectrum import spectrum
from twofold.core.params import ITERATIVE, Interval
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table
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


# ---- the base of the models ------------------------------------------------------------------------------------


class Data(NamedTuple):
    """Data that EM keeps between sweeps, columns scaled."""

    blocks: Blocks
    w: np.ndarray | None
    columns: Columns
    patterns: Rows
    holes: bool
    spread: np.ndarray  # (d,) divisors of the columns


class LatentGaussian(Rescalable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Imputer, Density):
    """Base of the models x = W z + m + ε.

    A subclass defines `_update`, the shared half-step, and `_attributes`, the fitted attributes of a state.
    """

    n_components: int | None
    tol: float
    max_iter: int
    mean_: np.ndarray
    loadings_: np.ndarray
    noise_variance_: Any
    scale_: np.ndarray

    _column_axes: ClassVar[dict[str, tuple[int, ...]]] = {"mean_": (0,), "loadings_": (0,), "scale_": (0,)}
    _allow_nan: ClassVar[bool] = True
    _spare: ClassVar[int] = 1  # directions with noise only
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        **ITERATIVE,
    }

    def _read(self, X: Any, sample_weight: Any, scale: bool = False) -> Data:
        self.__dict__.pop("scale_", None)
        blocks, w, columns, patterns, holes = observe(self, X, sample_weight)
        spread = np.ones(blocks.shape[1])
        if scale:
            spread = columns.spread
            blocks = blocks.divide_columns(spread)
            columns = columns._replace(mean=columns.mean / spread, scatter=columns.scatter / spread**2)
        return Data(blocks, w, columns, patterns, holes, spread)

    def _count_latent(self, shape: tuple[int, int]) -> int:
        """Return the number of latent dimensions; isotropic noise needs a direction of its own."""
        n, d = shape
        most = min(max(1, d - self._spare), n)
        if self.n_components is None:
            return most
        if self.n_components > most:
            why = ", because the noise needs one direction at least" if self._spare else ""
            raise InputError(
                f"n_components={self.n_components} is too many for X of shape {shape} (n_features={d}): at most "
                f"{most}{why}. Ask for fewer."
            )
        return int(self.n_components)

    def _start(self, data: Data, k: int, seed: int) -> Theta:
        """Start EM at the principal axes of the mean-filled table if there are holes, else in random directions."""
        columns, d = data.columns, data.blocks.shape[1]
        level = columns.level(data.blocks.dtype)
        if data.holes:
            found = spectrum(data.blocks, max(k, 1), solver="randomized", w=data.w, seed=seed, tol=1e-3, holes=True)
            values = np.maximum(found.values[:k] / columns.rows, data.columns.floor(data.blocks.dtype))
            rest = max((found.total / columns.rows - values.sum()) / max(d - k, 1), 1e-3 * level)
            return Theta(columns.mean, found.axes[:k].T * np.sqrt(values), np.full(d, rest))
        W = generator(seed).standard_normal((d, k)) * np.sqrt(level / max(k, 1))
        return Theta(columns.mean, W, np.full(d, level))

    def _run_em(self, data: Data, start: Any, seed: int, X: Any) -> None:
        """Run the loop over the rows."""
        blocks, w, _, patterns, holes, _ = data
        engine = engine_for(blocks)
        rows, fixed = blocks.rows(w), engine.broadcast(holes)

        def sweep(theta: Any, t: int) -> loop.Sweep:
            at = Theta(theta.mean, theta.W, theta.psi)
            s = engine.reduce(add, engine.map(em_step, blocks, rows, patterns, fixed, engine.broadcast(at)))
            return self._update(s, theta, data)

        self._run_loop(data, sweep, start, seed, X)

    def _relative_change(self, history: History) -> float:
        return history.gain()

    def _run_loop(self, data: Data, sweep: Callable[[Any, int], loop.Sweep], start: Any, seed: int, X: Any) -> None:
        fitted = partial(self._attributes, dtype=data.blocks.dtype, spread=data.spread)
        sign, moved = partial(fingerprint, data.blocks, data.w), self._relative_change
        loop.run(self, sweep, start, fitted=fitted, X=X, fingerprint=sign, seed=seed, moved=moved)

    def _update(self, s: Any, theta: Any, data: Data) -> loop.Sweep:
        raise NotImplementedError

    def _attributes(self, theta: Any, dtype: np.dtype, spread: np.ndarray) -> dict:
        raise NotImplementedError

    # ---- applying ----------------------------------------------------------------------------------------------

    def _theta(self) -> Theta:
        check_is_fitted(self)
        mean, W = self.mean_.astype(np.float64), self.loadings_.astype(np.float64)
        units = np.asarray(getattr(self, "scale_", np.ones(len(mean))), dtype=np.float64)  # of the noise in each column
        return Theta(mean, W, np.float64(self.noise_variance_) * units**2)

    @property
    def _n_features_out(self) -> int:
        return int(self.loadings_.shape[1])

    def transform(self, X: Table) -> Any:
        """The posterior mean of each row's code, E[z | x] (n,k); missing cells are left out."""
        theta = self._theta()
        return self._rowwise(code_means, X, *theta)

    def posterior(self, X: Table) -> tuple[np.ndarray, np.ndarray]:
        """The posterior of each row's code: means (n,k) and covariances (n,k,k)."""
        theta = self._theta()
        return self._rowwise(code_moments, X, *theta)

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Rows from codes: U Wᵀ + mean."""
        return self._check_codes(X) @ self.loadings_.T + self.mean_

    def score_samples(self, X: Table) -> np.ndarray:
        """The log-density of each row, over its observed cells."""
        theta = self._theta()
        return self._rowwise(log_density, X, *theta)

    def _imputer(self) -> tuple[Any, ...]:
        return fill, *self._theta()

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> np.ndarray:
        """Draw new rows from the model."""
        mean, W, psi = self._theta()
        rng = generator(seed_of(random_state))
        z = rng.standard_normal((n_samples, W.shape[1]))
        noise = rng.standard_normal((n_samples, len(mean))) * np.sqrt(psi)
        return (z @ W.T + mean + noise).astype(self.mean_.dtype)

    def get_covariance(self) -> np.ndarray:
        """The model's covariance, WWᵀ + noise: (d,d)."""
        _, W, psi = self._theta()
        return W @ W.T + np.diag(psi)

    def get_precision(self) -> np.ndarray:
        """The inverse (d,d) of :meth:`get_covariance`, by the matrix inversion lemma."""
        _, W, psi = self._theta()
        V = W / psi[:, None]  # Ψ⁻¹W
        return np.diag(1 / psi) - V @ np.linalg.solve(np.eye(W.shape[1]) + W.T @ V, V.T)

    def _n_parameters(self) -> int:
        d, k = self.loadings_.shape
        noise = np.size(self.noise_variance_)
        return d * k - k * (k - 1) // 2 + d + noise  # minus the rotations of the codes
