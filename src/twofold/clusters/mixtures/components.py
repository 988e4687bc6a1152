"""Components of a :class:`Mixture`: a density, the sums that re-estimate it, and the estimate.

    log_density(X, theta) -> (n,)     sums(X, w) -> tuple of arrays, additive over blocks     estimate(sums) -> theta

`theta` is a tuple of arrays. What follows is optional:

    prepare(columns, dtype)    the component with origin and floors from the moments of all columns
    outside(X)                 True for cells without a density; `needs` describes valid cells
    features(X)                the input of the starting k-means
    sample(theta, n, rng)      new rows
    n_parameters(theta)        number of free parameters, for BIC and AIC; by default the size of theta
    sparse = True              CSR rows are allowed

Estimates have maximum likelihood within bounds, so that no component collapses: a probability or rate stays above a
thousandth of that of all rows, and ``reg_covar`` is added to every variance.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from twofold.clusters.mixtures._gaussian import Shape, Sums, collect, densities, estimate, variance_floor
from twofold.core.checks import InputError
from twofold.core.data.missing_patterns import whole
from twofold.core.numerics.moments import Columns

MIN_SHARE = 1e-3  # of a column's probability or rate, in every component
MIN_MEAN = 1e-12  # probability or rate of an empty column


def _cells(X: Any) -> np.ndarray:
    return X.data if sparse.issparse(X) else X


@dataclass(frozen=True)
class _Counts:
    """Non-negative columns whose sums are Σw and Σw x, with a floor under each probability or rate."""

    low: Any = field(default=MIN_MEAN, repr=False)
    sparse: ClassVar[bool] = True
    needs: ClassVar[str] = "a count, 0 or more"

    def outside(self, X: Any) -> np.ndarray:
        return _cells(X) < 0

    def sums(self, X: Any, w: np.ndarray) -> tuple:
        return np.array([w.sum()]), np.asarray(X.T @ w, dtype=np.float64)


@dataclass(frozen=True)
class Bernoulli(_Counts):
    """Independent yes-or-no columns: Π p_j^x_j (1 − p_j)^(1 − x_j), with cells 0, 1 or between. theta = (p,)."""

    high: Any = field(default=1 - MIN_MEAN, repr=False)
    needs: ClassVar[str] = "a number from 0 to 1"

    def prepare(self, columns: Columns, dtype: np.dtype) -> Bernoulli:
        low, high = MIN_SHARE * columns.mean, 1 - MIN_SHARE * (1 - columns.mean)
        return replace(self, low=np.maximum(low, MIN_MEAN), high=np.minimum(high, 1 - MIN_MEAN))

    def outside(self, X: Any) -> np.ndarray:
        return (_cells(X) < 0) | (_cells(X) > 1)

    def log_density(self, X: Any, theta: tuple) -> np.ndarray:
        (p,) = theta
        return X @ np.log(p / (1 - p)) + np.log1p(-p).sum()

    def estimate(self, sums: tuple) -> tuple:
        N, x = sums
        return (np.clip(x / N, self.low, self.high),)

    def sample(self, theta: tuple, n: int, rng: np.random.Generator) -> np.ndarray:
        return (rng.random((n, len(theta[0]))) < theta[0]).astype(np.float64)


@dataclass(frozen=True)
class Poisson(_Counts):
    """Independent counts: Π λ_j^x_j e^(−λ_j) / x_j!. theta = (λ,)."""

    def prepare(self, columns: Columns, dtype: np.dtype) -> Poisson:
        return replace(self, low=np.maximum(MIN_SHARE * columns.mean, MIN_MEAN))

    def log_density(self, X: Any, theta: tuple) -> np.ndarray:
        (rate,) = theta
        return X @ np.log(rate) - rate.sum() - _log_factorials(X)

    def estimate(self, sums: tuple) -> tuple:
        N, x = sums
        return (np.maximum(x / N, self.low),)

    def sample(self, theta: tuple, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(theta[0], (n, len(theta[0]))).astype(np.float64)


@dataclass(frozen=True)
class Multinomial(_Counts):
    """Counts given their total: (Σx)! Π p_j^x_j / x_j!, as of words in a document. theta = (p, mean total).

    The total does not enter the density; sampled rows draw theirs from a Poisson distribution.
    """

    def prepare(self, columns: Columns, dtype: np.dtype) -> Multinomial:
        return replace(self, low=np.maximum(MIN_SHARE * columns.mean / max(columns.mean.sum(), MIN_MEAN), MIN_MEAN))

    def features(self, X: Any) -> Any:
        """Return shares instead of counts, because the length of a row carries no information."""
        scale = 1 / np.maximum(_lengths(X), MIN_MEAN)
        return (sparse.diags_array(scale) @ X).tocsr() if sparse.issparse(X) else X * scale[:, None].astype(X.dtype)

    def log_density(self, X: Any, theta: tuple) -> np.ndarray:
        return X @ np.log(theta[0]) + gammaln(_lengths(X) + 1) - _log_factorials(X)

    def estimate(self, sums: tuple) -> tuple:
        N, x = sums
        low = np.broadcast_to(self.low, x.shape)
        p, at_floor = low.copy(), x <= 0
        # Shares below their floor are set to it, the others divide the rest: the maximum under p ≥ low.
        while not at_floor.all():
            scale = (1 - low[at_floor].sum()) / x[~at_floor].sum()
            p[~at_floor] = x[~at_floor] * scale
            under = ~at_floor & (p < low)
            if not under.any():
                break
            at_floor, p[under] = at_floor | under, low[under]
        return p / p.sum(), np.array(x.sum() / N[0])

    def n_parameters(self, theta: tuple) -> int:
        return len(theta[0]) - 1

    def sample(self, theta: tuple, n: int, rng: np.random.Generator) -> np.ndarray:
        p, total = theta
        return rng.multinomial(rng.poisson(total, n), p / p.sum()).astype(np.float64)


def _lengths(X: Any) -> np.ndarray:
    return np.asarray(X.sum(axis=1), dtype=np.float64).ravel()


def _log_factorials(X: Any) -> np.ndarray:
    """Compute Σ_j log x_j! of each row; zero cells add nothing."""
    if sparse.issparse(X):
        return _lengths(sparse.csr_array((gammaln(X.data + 1.0), X.indices, X.indptr), shape=X.shape))
    return gammaln(X + 1.0).sum(axis=1)


@dataclass(frozen=True)
class Gaussian:
    """N(x; m, S) with S a matrix ("full"), variances ("diag") or one variance ("spherical"). theta = (m, S).

    `reg_covar` is added to every variance.
    """

    covariance_type: str = "full"
    reg_covar: float = 1e-6
    origin: Any = field(default=0.0, repr=False)
    floor: Any = field(default=0.0, repr=False)

    def prepare(self, columns: Columns, dtype: np.dtype) -> Any:
        if self.covariance_type not in ("full", "diag", "spherical"):
            raise InputError(f"covariance_type={self.covariance_type!r}; choose full, diag or spherical.")
        return replace(self, origin=columns.mean, floor=variance_floor(columns, dtype, self.reg_covar))

    def log_density(self, X: np.ndarray, theta: tuple) -> np.ndarray:
        mean, S = theta
        one = Shape(np.ones(1), np.zeros((1, len(mean))), S[None], mean)
        return densities(X - mean, whole(*X.shape), one)[:, 0]

    def sums(self, X: np.ndarray, w: np.ndarray) -> tuple:
        """Compute Σw, Σw x and Σw xxᵀ of rows less the mean of all."""
        x = X - self.origin
        empty = Shape(np.ones(1), np.zeros((1, x.shape[1])), np.zeros(0), np.zeros(0))
        return collect(x, w[:, None], whole(*x.shape), empty, self.covariance_type)

    def estimate(self, sums: tuple) -> tuple:
        N, x, xx = sums
        before = Shape(np.ones(1), np.zeros(x.shape), np.zeros_like(xx), np.zeros(x.shape[1]))
        floor = np.broadcast_to(self.floor, x.shape[1:])
        s = estimate(Sums(N, x, xx, 0.0, 0.0), before, self.covariance_type, floor)
        return s.means[0] + self.origin, s.S[0]

    def n_parameters(self, theta: tuple) -> int:
        d = len(theta[0])
        return d + {"full": d * (d + 1) // 2, "diag": d, "spherical": 1}[self.covariance_type]

    def sample(self, theta: tuple, n: int, rng: np.random.Generator) -> np.ndarray:
        mean, S = theta
        L = np.linalg.cholesky(S) if S.ndim == 2 else np.diag(np.sqrt(S))
        return mean + rng.standard_normal((n, len(mean))) @ L.T


@dataclass(frozen=True)
class ProbabilisticPCA:
    """N(x; m, WWᵀ + σ²I): a Gaussian with structure in `n_latent` directions only. theta = (m, W, σ²).

    W and σ² come in closed form from the eigenvectors of the component's covariance (Tipping & Bishop 1999). For many
    columns or missing cells, :class:`MixtureOfPPCA` needs no d×d matrix.
    """

    n_latent: int = 1
    full: Gaussian = field(default=Gaussian(), repr=False)

    def prepare(self, columns: Columns, dtype: np.dtype) -> ProbabilisticPCA:
        if not 1 <= self.n_latent < len(columns.mean):
            raise InputError(
                f"n_latent={self.n_latent}; from 1 to {len(columns.mean) - 1} is needed, fewer than columns."
            )
        return replace(self, full=self.full.prepare(columns, dtype))

    def log_density(self, X: np.ndarray, theta: tuple) -> np.ndarray:
        return self.full.log_density(X, _full_covariance(theta))

    def sums(self, X: np.ndarray, w: np.ndarray) -> tuple:
        return self.full.sums(X, w)

    def estimate(self, sums: tuple) -> tuple:
        mean, S = self.full.estimate(sums)
        values, vectors = np.linalg.eigh(S)
        noise = values[: -self.n_latent].mean()
        W = vectors[:, -self.n_latent :] * np.sqrt(np.maximum(values[-self.n_latent :] - noise, 0.0))
        return mean, W, np.array(noise)

    def n_parameters(self, theta: tuple) -> int:
        d, k = theta[1].shape
        return d + d * k - k * (k - 1) // 2 + 1

    def sample(self, theta: tuple, n: int, rng: np.random.Generator) -> np.ndarray:
        return self.full.sample(_full_covariance(theta), n, rng)


def _full_covariance(theta: tuple) -> tuple[np.ndarray, np.ndarray]:
    mean, W, noise = theta
    return mean, W @ W.T + noise * np.eye(len(mean))


READY: dict[str, Any] = {
    "bernoulli": Bernoulli,
    "multinomial": Multinomial,
    "poisson": Poisson,
    "gaussian": Gaussian,
    "ppca": ProbabilisticPCA,
}


def by_name(name: str) -> Any:
    """Return the component of a name with an optional suffix: "gaussian-diag", "ppca-3"."""
    base, _, option = name.partition("-")
    if base == "ppca" and option.isdecimal():
        return ProbabilisticPCA(int(option))
    if base == "gaussian" and option in ("full", "diag", "spherical"):
        return Gaussian(option)
    if base not in READY or option:
        raise InputError(
            f"component={name!r} is not known. Choose {', '.join(READY)}, gaussian-diag, gaussian-spherical, ppca-3 "
            "(or another number), or give an object with log_density, sums and estimate."
        )
    return READY[base]()
