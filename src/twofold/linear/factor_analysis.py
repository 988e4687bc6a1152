"""Factor analysis.

    maximise  Σ log N(x; m, WWᵀ + diag ψ)   over loadings W (d,k), mean m, one noise variance ψ_j a column

One sweep:  each block  posterior codes given W, m, ψ (observed cells only)
            then once   W, m by regression on the codes, ψ_j from what is left in column j
Reference: Rubin & Thayer 1982.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from twofold.core import loop
from twofold.core.estimator import fitting
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.linalg import fix_signs
from twofold.linear._latent_base import Data, LatentGaussian
from twofold.linear._linear_gaussian import Theta, expand, regress

HEYWOOD = 1e-6  # of a column's variance: its noise never falls below


class FactorAnalysis(LatentGaussian):
    """Factor analysis: PPCA with a noise variance for each column.

    ``x = W z + mean + ε`` with ``ε ~ N(0, diag ψ)``. Unlike PCA it does not care about the columns' units: what one
    column has to itself is its noise, what columns share is structure. Missing cells are allowed.

    Parameters
    ----------
    n_components : int or None, default=None
        Factors, fewer than columns; None means d − 1.
    tol, max_iter, random_state
        As for :class:`PPCA`.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        The loadings as rows, turned so that WᵀΨ⁻¹W is diagonal.
    loadings_ : ndarray of shape (d, k)
    noise_variance_ : ndarray of shape (d,)
    mean_ : ndarray of shape (d,)
    history_, n_iter_, converged_
        The objective is the mean negative log-likelihood of the rows.

    References
    ----------
    Rubin & Thayer (1982), *Psychometrika* 47, 69-76.

    Examples
    --------
    >>> from twofold import FactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=(2000, 6)) * [1, 2, 3, 1, 2, 3]
    >>> fa = FactorAnalysis(2, random_state=0).fit(X)
    >>> np.sqrt(fa.noise_variance_).round()
    array([1., 2., 3., 1., 2., 3.])
    """

    _column_axes: ClassVar[dict[str, tuple[int, ...]]] = {
        "mean_": (0,),
        "loadings_": (0,),
        "components_": (1,),
        "noise_variance_": (0, 0),
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> FactorAnalysis:
        """Fit to rows that may have missing cells; see :meth:`PCA.fit` for the arguments."""
        data = self._prepare(X, sample_weight)
        k = self._latent(data.blocks.shape)
        seed = seed_of(self.random_state)
        start = self._start(data, k, seed)
        floor = HEYWOOD * _levels(data)
        self._em(data, start._replace(psi=np.maximum(0.5 * data.columns.variance, floor)), seed, X)
        return self

    def _update(self, s: Any, theta: Theta, data: Data) -> loop.Sweep:
        W, shift, left, weight = regress(s)
        W, shift = expand(W, shift, s)
        psi = np.maximum(left / weight, HEYWOOD * _levels(data))
        return loop.Sweep(Theta(theta.mean + shift, W, psi), -s.loglik / s.rows)

    def _attributes(self, theta: Theta, dtype: np.dtype, spread: np.ndarray) -> dict:
        root = np.sqrt(theta.psi)[:, None]
        A, s, _ = np.linalg.svd(theta.W / root, full_matrices=False)
        W = A * s * root
        W = W * fix_signs(W.T)
        return {
            "components_": np.ascontiguousarray(W.T, dtype=dtype),
            "loadings_": W.astype(dtype),
            "noise_variance_": theta.psi.astype(dtype),
            "mean_": theta.mean.astype(dtype),
        }


def _levels(data: Data) -> np.ndarray:
    """Each column's variance; a constant column takes a small share of the mean one, so that densities are finite."""
    return np.maximum(data.columns.variance, 1e-6 * data.columns.level(data.blocks.dtype))
