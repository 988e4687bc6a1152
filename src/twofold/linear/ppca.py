"""Probabilistic principal component analysis.

    maximize  Σ log N(x; m, WWᵀ + σ²I)   over loadings W (d,k), mean m (d,), noise σ²

    closed form   W = Z(Λ − σ²I)^½ from the leading eigenpairs, σ² = mean of the discarded eigenvalues
    EM            each block  posterior codes given W, m, σ² (observed cells only)
                  then once   W, m by regression on the codes, σ² from the residuals
Reference: Tipping & Bishop 1999.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.missing_patterns import LOG_2PI
from twofold.core.engine.local import fingerprint
from twofold.core.estimator import fitting
from twofold.core.numerics.spectrum import spectrum
from twofold.core.params import StrOptions
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.linalg import fix_signs
from twofold.linear._linear_gaussian import Data, LatentGaussian, Theta, expand, regress
from twofold.linear._n_components import SizedBySpectrum


class PPCA(SizedBySpectrum, LatentGaussian):
    """Probabilistic PCA: a Gaussian with k directions of structure and equal noise in all others.

    ``x = W z + mean + ε`` with ``z ~ N(0, I)`` and ``ε ~ N(0, σ²I)``: PCA with a likelihood, which gives answers
    for missing cells, new rows, comparison of models and error bars. As σ² → 0 it is PCA.

    Parameters
    ----------
    n_components : int or None, default=None
        Latent dimensions, fewer than columns; None means d − 1.
    solver : {"auto", "closed", "em"}, default="auto"
        "closed" uses the eigenpairs; "em" costs n·d·k per sweep and forms no covariance. "auto" uses EM only if cells
        are missing.
    scale : bool, default=False
        Divide every column by its standard deviation first, for columns in different units. Axes and noise are
        then in those units; the mean and the loadings stay in the data's own.
    tol : float, default=1e-8
        EM stops when the last sweeps, and a tenth of what their trend says is still to come, raise the mean
        log-likelihood by less than this, relatively.
    max_iter : int, default=1000
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        The start of EM.

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
    mean_, scale_ : ndarray of shape (d,)
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
    >>> H = np.where(holes, np.nan, X)
    >>> filled, std = PPCA(10, random_state=0).fit(H).impute(H, return_std=True)
    >>> error, by_means = filled[holes] - X[holes], (X - np.nanmean(H, axis=0))[holes]
    >>> bool(np.sqrt((error**2).mean()) < 0.75 * np.sqrt((by_means**2).mean()))
    True
    >>> bool(0.9 < (error / std[holes]).std() < 1.1)       # the error bars are right
    True
    """

    components_: Annotated[np.ndarray, "k d"]
    loadings_: Annotated[np.ndarray, "d k"]
    mean_: Annotated[np.ndarray, "d"]
    scale_: Annotated[np.ndarray, "d"]
    explained_variance_: Annotated[np.ndarray, "k"]
    noise_variance_: Annotated[float, ", >= 0"]
    _parameter_constraints: ClassVar[dict] = {
        **LatentGaussian._parameter_constraints,
        "solver": [StrOptions({"auto", "closed", "em"})],
        "scale": ["boolean"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        solver: str = "auto",
        scale: bool = False,
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.solver = solver
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> PPCA:
        """Fit to rows that may have missing cells; see :meth:`PCA.fit` for the arguments."""
        data = self._read(X, sample_weight, self.scale)
        k = self._count_latent(data.blocks.shape)
        seed = seed_of(self.random_state)
        if data.holes and self.solver == "closed":
            raise InputError('X has missing values, for which there is no closed form. Use solver="em" or "auto".')
        if data.holes or self.solver == "em":
            self._run_em(data, self._start(data, k, seed), seed, X)
        else:
            self._solve_closed(data, k, seed, X)
        return self

    def _solve_closed(self, data: Data, k: int, seed: int, X: Any) -> None:
        def sweep(theta: Theta, t: int) -> loop.Sweep:
            theta = principal(data, k, seed)
            return loop.Sweep(theta, _objective(theta), done=True)

        start = Theta(data.columns.mean, np.zeros((data.blocks.shape[1], k)), data.columns.variance)
        fitted = partial(self._attributes, dtype=data.blocks.dtype, spread=data.spread)
        sign = partial(fingerprint, data.blocks, data.w)
        loop.run(self, sweep, start, max_iter=1, tol=0.0, fitted=fitted, X=X, fingerprint=sign)

    def _update(self, s: Any, theta: Theta, data: Data) -> loop.Sweep:
        W, shift, left, weight = regress(s)
        W, shift = expand(W, shift, s)
        noise = max(left.sum() / weight.sum(), data.columns.floor(data.blocks.dtype))
        new = Theta(theta.mean + shift, W, np.full(len(left), noise))
        return loop.Sweep(new, -s.loglik / s.rows, {"noise": noise})

    def _attributes(self, theta: Theta, dtype: np.dtype, spread: np.ndarray) -> dict:
        return {**principal_attributes(theta, dtype, spread), "scale_": spread.astype(dtype)}


def principal(data: Data, k: int, seed: int) -> Theta:
    """Compute the closed form: maximum-likelihood loadings and noise from the leading eigenpairs."""
    found = spectrum(data.blocks, k, w=data.w, seed=seed, tol=1e-12)
    d = data.blocks.shape[1]
    values = found.values / found.weight
    rest = (found.total / found.weight - values.sum()) / max(d - k, 1)
    noise = max(rest, data.columns.floor(data.blocks.dtype))
    W = found.axes.T * np.sqrt(np.maximum(values - noise, 0.0))
    return Theta(found.mean, W, np.full(d, noise))


def principal_attributes(theta: Any, dtype: np.dtype, spread: np.ndarray) -> dict:
    """Return fitted attributes for isotropic noise, W rotated so that its columns lie along the principal axes."""
    A, s, _ = np.linalg.svd(theta.W, full_matrices=False)  # (d,k), (k,)
    A = A * fix_signs(A.T)
    noise = float(theta.psi[0])
    return {
        "components_": np.ascontiguousarray(A.T, dtype=dtype),
        "explained_variance_": (s**2 + noise).astype(dtype),
        "loadings_": (A * s * spread[:, None]).astype(dtype),
        "noise_variance_": noise,
        "mean_": (theta.mean * spread).astype(dtype),
    }


def _objective(theta: Theta) -> float:
    """Return the mean negative log-likelihood at the closed-form optimum, which is half log|2πe C|."""
    d, k = theta.W.shape
    along = (theta.W**2).sum(axis=0) + theta.psi[0]
    return 0.5 * float(d * (LOG_2PI + 1) + np.log(along).sum() + (d - k) * np.log(theta.psi[0]))
