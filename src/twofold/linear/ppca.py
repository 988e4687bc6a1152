"""Probabilistic principal component analysis.

    maximise  Σ log N(x; m, WWᵀ + σ²I)   over loadings W (d,k), mean m (d,), noise σ²

    closed form   W = Z(Λ − σ²I)^½ from the leading eigenpairs, σ² = mean of the discarded eigenvalues
    EM            each block  posterior codes given W, m, σ² (observed cells only)
                  then once   W, m by regression on the codes, σ² from what is left
Reference: Tipping & Bishop 1999.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.blocks import Blocks, Rows
from twofold.core.checks import InputError
from twofold.core.engine import add, engine_for
from twofold.core.estimator import Model, fitting
from twofold.core.moments import Columns, column_moments
from twofold.core.seeds import generator, seed_of
from twofold.core.spectrum import spectrum
from twofold.linalg import fix_signs
from twofold.linear.gaussian import Theta, code_means, code_moments, em_step, fill, find_patterns, log_density, regress

FLOOR = 1e-10  # of the mean variance: noise never falls below, so that densities stay finite


class Data(NamedTuple):
    """What an EM fit keeps of its data between sweeps."""

    blocks: Blocks
    w: np.ndarray | None
    columns: Columns
    patterns: Rows
    holes: bool


class FilledSource:
    """Blocks with the holes filled by the columns' means: where EM starts from."""

    def __init__(self, blocks: Blocks, mean: np.ndarray):
        self.blocks, self.mean, self.shape, self.dtype = blocks, mean.astype(blocks.dtype), blocks.shape, blocks.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        X = self.blocks.source.read(start, stop)
        return np.where(np.isnan(X), self.mean, X)


class LatentGaussian(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """What PPCA, factor analysis and Bayesian PCA share: reading data with holes, EM, and using the result.

    A subclass gives `_update(sums, theta)`, the shared half-step, and `_attributes(theta)`.
    """

    _allow_nan: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def _prepare(self, X: Any, sample_weight: Any) -> Data:
        blocks = self._blocks(X, reset=True, min_rows=2)
        w = self._weights(blocks, sample_weight)
        engine = engine_for(blocks)
        columns = column_moments(engine, blocks, w)
        if not np.isfinite(columns.mean).all():
            self._refuse(blocks, allow_nan=not blocks.is_sparse)
        if not columns.weight.all():
            j = int(np.argmin(columns.weight))
            raise InputError(f"column {j} of X has no observed value (all NaN). Drop it: there is nothing to learn from.")
        patterns, missing = engine.reduce(add, engine.map(find_patterns, blocks), keep=True)
        return Data(blocks, w, columns, patterns, bool(missing))

    def _latent(self, shape: tuple[int, int]) -> int:
        """The number of latent dimensions: fewer than columns, for the noise needs one."""
        n, d = shape
        most = max(1, d - 1)
        k = most if self.n_components is None else int(self.n_components)  # type: ignore[attr-defined]
        if k > min(n, most if d > 1 else d):
            raise InputError(
                f"n_components={k} is too many for X of shape {shape}: {type(self).__name__} needs at most "
                f"{min(n, most)}, because at least one direction is left to the noise."
            )
        return min(k, n)

    def _start(self, data: Data, k: int, seed: int) -> Theta:
        """Where EM begins: principal axes of the mean-filled table if there are holes, else random directions."""
        columns, d = data.columns, data.blocks.shape[1]
        level = max(float(columns.variance.mean()), 1e-300)
        if data.holes and not hasattr(data.blocks.source, "engine"):
            filled = Blocks(FilledSource(data.blocks, columns.mean), data.blocks.bounds)
            found = spectrum(filled, k, solver="randomized", w=data.w, seed=seed, tol=1e-3)
            values = np.maximum(found.values / columns.rows, FLOOR * level)
            rest = max((found.total / columns.rows - values.sum()) / max(d - k, 1), 1e-3 * level)
            return Theta(columns.mean, found.axes.T * np.sqrt(values), np.full(d, rest))
        W = generator(seed).standard_normal((d, k)) * np.sqrt(level / k)
        return Theta(columns.mean, W, np.full(d, level))

    def _em(self, data: Data, start: Theta, X: Any) -> None:
        """Run the loop."""
        blocks, w, _, patterns, holes = data
        engine = engine_for(blocks)
        rows, fixed = blocks.rows(w), engine.broadcast(holes)

        def sweep(theta: Any, t: int) -> loop.Sweep:
            at = Theta(theta.mean, theta.W, theta.psi)
            s = engine.reduce(add, engine.map(em_step, blocks, rows, patterns, fixed, engine.broadcast(at)))
            return self._update(s, theta, data.columns)

        loop.run(
            self,
            sweep,
            start,
            max_iter=self.max_iter,  # type: ignore[attr-defined]
            tol=self.tol,  # type: ignore[attr-defined]
            fitted=lambda theta: self._attributes(theta, blocks.dtype),
            X=X,
            fingerprint=blocks.fingerprint,
        )

    def _update(self, s: Any, theta: Any, columns: Columns) -> loop.Sweep:
        raise NotImplementedError

    def _attributes(self, theta: Any, dtype: np.dtype) -> dict:
        raise NotImplementedError

    # ---- using -------------------------------------------------------------------------------------------------

    def _theta(self) -> Theta:
        check_is_fitted(self)
        mean, W = self.mean_.astype(np.float64), self.loadings_.astype(np.float64)  # type: ignore[attr-defined]
        return Theta(mean, W, np.broadcast_to(np.float64(self.noise_variance_), len(mean)).copy())  # type: ignore[attr-defined]

    @property
    def _n_features_out(self) -> int:
        return int(self.loadings_.shape[1])  # type: ignore[attr-defined]

    def transform(self, X: Any) -> Any:
        """The posterior mean of each row's code, E[z | x] (n,k); holes are simply not looked at."""
        theta = self._theta()
        return self._rowwise(code_means, X, *theta)

    def posterior(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The posterior of each row's code: means (n,k) and covariances (n,k,k)."""
        theta = self._theta()
        return self._rowwise(code_moments, X, *theta)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows from codes: U Wᵀ + mean."""
        self._theta()
        U = np.asarray(X)
        if U.ndim != 2 or U.shape[1] != self._n_features_out:
            raise InputError(f"the codes have shape {U.shape}; this model makes (n, {self._n_features_out}).")
        return U @ self.loadings_.T + self.mean_  # type: ignore[attr-defined]

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of each row, over its observed cells."""
        theta = self._theta()
        return self._rowwise(log_density, X, *theta)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def impute(self, X: Any, return_std: bool = False) -> Any:
        """X with every NaN replaced by its expectation given the row's observed cells.

        With `return_std`, also the standard deviation of each filled cell (0 where X was known).
        """
        theta = self._theta()
        filled, std = self._rowwise(fill, X, *theta)
        return (filled, std) if return_std else filled

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw new rows from the model."""
        mean, W, psi = self._theta()
        rng = generator(seed_of(random_state))
        z = rng.standard_normal((n_samples, W.shape[1]))
        noise = rng.standard_normal((n_samples, len(mean))) * np.sqrt(psi)
        return (z @ W.T + mean + noise).astype(self.mean_.dtype)  # type: ignore[attr-defined]

    def get_covariance(self) -> np.ndarray:
        """The model's covariance, WWᵀ + noise: (d,d)."""
        _, W, psi = self._theta()
        return W @ W.T + np.diag(psi)

    def _n_parameters(self) -> int:
        d, k = self.loadings_.shape  # type: ignore[attr-defined]
        noise = np.size(self.noise_variance_)  # type: ignore[attr-defined]
        return d * k - k * (k - 1) // 2 + d + noise  # rotations of the codes do not count

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on X, the lower the better."""
        logp = self.score_samples(X)
        return float(-2 * logp.sum() + self._n_parameters() * np.log(len(logp)))

    def aic(self, X: Any) -> float:
        """Akaike information criterion on X, the lower the better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self._n_parameters())


class PPCA(LatentGaussian):
    """Probabilistic PCA: a Gaussian with k directions of structure and equal noise in all others.

    ``x = W z + mean + ε`` with ``z ~ N(0, I)`` and ``ε ~ N(0, σ²I)``: PCA with a likelihood, so that missing cells,
    new rows, comparison of models and error bars have an answer. As σ² → 0 it is PCA.

    Parameters
    ----------
    n_components : int or None, default=None
        Latent dimensions, fewer than columns; None means d − 1.
    solver : {"auto", "closed", "em"}, default="auto"
        "closed" from the eigenpairs; "em" costs n·d·k a sweep and forms no covariance. "auto" takes EM only when
        cells are missing.
    tol : float, default=1e-8
        EM stops when the mean log-likelihood moves by less than this, relatively.
    max_iter : int, default=1000
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        Where EM starts.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Orthonormal principal axes.
    explained_variance_ : ndarray of shape (k,)
        Model variance along them, noise included.
    loadings_ : ndarray of shape (d, k)
        W, with columns along the axes.
    noise_variance_ : float
        σ².
    mean_ : ndarray of shape (d,)
    history_, n_iter_, converged_
        The objective is the mean negative log-likelihood of the rows.

    References
    ----------
    Tipping & Bishop (1999), *J. R. Statist. Soc. B* 61, 611-622.

    Examples
    --------
    >>> from twofold import PPCA, datasets
    >>> X = datasets.digits().data
    >>> holes = np.random.default_rng(0).random(X.shape) < 0.2
    >>> filled, std = PPCA(20, random_state=0).fit(np.where(holes, np.nan, X)).impute(
    ...     np.where(holes, np.nan, X), return_std=True)
    >>> error = filled[holes] - X[holes]
    >>> bool(np.sqrt((error**2).mean()) < 0.5 * X.std(axis=0).mean())       # far better than column means
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **LatentGaussian._parameter_constraints,
        "solver": [StrOptions({"auto", "closed", "em"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PPCA:
        """Fit to rows that may have missing cells; see :meth:`PCA.fit` for the arguments."""
        data = self._prepare(X, sample_weight)
        k = self._latent(data.blocks.shape)
        seed = seed_of(self.random_state)
        if data.holes and self.solver == "closed":
            raise InputError('X has missing values, for which there is no closed form. Use solver="em" or "auto".')
        if data.holes or self.solver == "em":
            self._em(data, self._start(data, k, seed), X)
        else:
            self._closed(data, k, seed, X)
        return self

    def _closed(self, data: Data, k: int, seed: int, X: Any) -> None:
        def sweep(theta: Theta, t: int) -> loop.Sweep:
            theta = principal(data.blocks, data.w, k, seed)
            return loop.Sweep(theta, _entropy(theta), {}, True)

        start = Theta(data.columns.mean, np.zeros((data.blocks.shape[1], k)), data.columns.variance)
        fitted = lambda theta: self._attributes(theta, data.blocks.dtype)  # noqa: E731
        loop.run(self, sweep, start, max_iter=1, tol=0.0, fitted=fitted, X=X, fingerprint=data.blocks.fingerprint)

    def _update(self, s: Any, theta: Theta, columns: Columns) -> loop.Sweep:
        W, shift, left, weight = regress(s)
        noise = max(left.sum() / weight.sum(), FLOOR * columns.variance.mean())
        new = Theta(theta.mean + shift, W, np.full(len(left), noise))
        return loop.Sweep(new, -s.loglik / s.rows, {"noise": noise})

    def _attributes(self, theta: Theta, dtype: np.dtype) -> dict:
        return principal_attributes(theta, dtype)


def principal(blocks: Blocks, w: np.ndarray | None, k: int, seed: int) -> Theta:
    """The closed form: maximum-likelihood loadings and noise from the leading eigenpairs."""
    found = spectrum(blocks, k, w=w, seed=seed, tol=1e-12)
    d = blocks.shape[1]
    values = found.values / found.weight
    level = max(found.total / found.weight / d, 1e-300)
    rest = (found.total / found.weight - values.sum()) / max(d - k, 1)
    noise = max(rest, FLOOR * level)
    W = found.axes.T * np.sqrt(np.maximum(values - noise, 0.0))
    return Theta(found.mean, W, np.full(d, noise))


def principal_attributes(theta: Theta, dtype: np.dtype) -> dict:
    """Fitted attributes for isotropic noise: W turned so that its columns lie along the principal axes."""
    A, s, _ = np.linalg.svd(theta.W, full_matrices=False)  # (d,k), (k,)
    A = A * fix_signs(A.T)
    noise = float(theta.psi[0])
    return {
        "components_": np.ascontiguousarray(A.T, dtype=dtype),
        "explained_variance_": (s**2 + noise).astype(dtype),
        "loadings_": (A * s).astype(dtype),
        "noise_variance_": noise,
        "mean_": theta.mean.astype(dtype),
    }


def _entropy(theta: Theta) -> float:
    """The mean negative log-likelihood at the closed-form optimum, which is half log|2πe C|."""
    d, k = theta.W.shape
    along = (theta.W**2).sum(axis=0) + theta.psi[0]
    return 0.5 * float(d * np.log(2 * np.pi * np.e) + np.log(along).sum() + (d - k) * np.log(theta.psi[0]))
