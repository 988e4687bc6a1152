"""Bayesian principal component analysis with automatic relevance.

    maximize  Σ log N(x; m, WWᵀ + σ²I) + Σ_c [ (d/2 + a) log α_c − α_c (‖w_c‖²/2 + b) ]

Each column of W has a Gaussian prior with its own precision α_c. For a direction that the data does not support α_c
grows and the column vanishes. So the fit finds the dimension.

One sweep:  each block  posterior codes given W, m, σ²
            then once   W by ridge regression with penalty σ²α, then α_c = (d + 2a)/(‖w_c‖² + 2b), then σ²
Reference: Bishop 1999.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from twofold.core import loop
from twofold.core.estimator import fitting
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.linear._linear_gaussian import Data, LatentGaussian, regress
from twofold.linear.ppca import principal, principal_attributes

PRIOR_RATE = 1e-6  # b of the gamma prior, as a share of the mean variance: the objective stays bounded


class State(NamedTuple):
    """The shared factor, and the relevance of its columns."""

    mean: np.ndarray  # (d,)
    W: np.ndarray  # (d,k)
    psi: np.ndarray  # (d,) all equal
    alpha: np.ndarray  # (k,)


class BayesianPCA(LatentGaussian):
    """PPCA that finds its own number of components.

    Every direction has a relevance; directions that the data does not support are switched off during the fit.

    Parameters
    ----------
    n_components : int or None, default=None
        The maximum number of directions; None means d − 1.
    tol : float, default=1e-7
        EM stops when the last sweeps, and a tenth of what their trend says is still to come, lower the objective by
        less than this, relatively.
    max_iter : int, default=2000
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        The start of EM if cells are missing; otherwise EM starts from the closed form of PPCA.

    Attributes
    ----------
    n_active_ : int
        Number of active directions.
    components_ : ndarray of shape (n_active_, d)
        Their orthonormal axes.
    explained_variance_ : ndarray of shape (n_active_,)
    loadings_ : ndarray of shape (d, n_active_)
    alpha_ : ndarray of shape (k,)
        The precision of every direction, ascending: small for active ones.
    noise_variance_ : float
    mean_ : ndarray of shape (d,)
    scale_ : ndarray of shape (d,)
        Of a model made by :meth:`rescaled`: axes and noise are those of columns divided by this.
    history_, n_iter_, converged_
        The objective is the mean negative log-posterior of the rows.

    References
    ----------
    Bishop (1999), *Bayesian PCA*, Advances in Neural Information Processing Systems 11.

    Examples
    --------
    >>> from twofold import BayesianPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 10)) * 3 + rng.normal(size=(500, 10))
    >>> BayesianPCA().fit(X).n_active_
    3
    """

    components_: Annotated[np.ndarray, "k d"]
    loadings_: Annotated[np.ndarray, "d k"]
    mean_: Annotated[np.ndarray, "d"]
    n_active_: int
    explained_variance_: Annotated[np.ndarray, "k"]
    noise_variance_: Annotated[float, ", >= 0"]
    alpha_: Annotated[np.ndarray, "., any"]

    def __init__(
        self, n_components: int | None = None, *, tol: float = 1e-7, max_iter: int = 2000, random_state: Seed = None
    ):
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> BayesianPCA:
        """Fit to rows that may have missing cells; see :meth:`PCA.fit` for the arguments."""
        data = self._read(X, sample_weight)
        k = self._count_latent(data.blocks.shape)
        seed = seed_of(self.random_state)
        theta = self._start(data, k, seed) if data.holes else principal(data, k, seed)
        level = data.columns.level(data.blocks.dtype)
        state = State(*theta, _relevance(theta.W, level))
        self._run_em(data, state, seed, X)
        return self

    def _update(self, s: Any, theta: State, data: Data) -> loop.Sweep:
        level = data.columns.level(data.blocks.dtype)
        d = len(theta.mean)
        posterior = s.loglik + _log_prior(theta.W, theta.alpha, level)
        W, shift, left, weight = regress(s, ridge=theta.psi[0] * theta.alpha)
        noise = max(left.sum() / weight.sum(), data.columns.floor(data.blocks.dtype))
        new = State(theta.mean + shift, W, np.full(d, noise), _relevance(W, level))
        return loop.Sweep(new, -posterior / s.rows, {"active": int(_active(new).sum())})

    def _attributes(self, theta: State, dtype: np.dtype, spread: np.ndarray) -> dict:
        on = _active(theta)
        kept = theta._replace(W=theta.W[:, on] if on.any() else np.zeros((len(theta.mean), 1)))
        return {
            **principal_attributes(kept, dtype, spread),
            "alpha_": np.sort(theta.alpha).astype(dtype),
            "n_active_": int(on.sum()),
        }


def _relevance(W: np.ndarray, level: float) -> np.ndarray:
    """Return the best α_c given W, with a = 0 and b = PRIOR_RATE·level/2."""
    return W.shape[0] / ((W**2).sum(axis=0) + PRIOR_RATE * level)


def _log_prior(W: np.ndarray, alpha: np.ndarray, level: float) -> float:
    d = W.shape[0]
    return float(0.5 * np.sum(d * np.log(alpha) - alpha * ((W**2).sum(axis=0) + PRIOR_RATE * level)))


def _active(theta: State) -> np.ndarray:
    """Mark the columns of W with more than a hundredth of the noise variance."""
    return (theta.W**2).sum(axis=0) > 0.01 * theta.psi[0]
