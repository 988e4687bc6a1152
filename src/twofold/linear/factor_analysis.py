"""Factor analysis.

    maximize  Σ log N(x; m, WWᵀ + diag ψ)   over loadings W (d,k), mean m, one noise variance ψ_j a column

One sweep:  each block  posterior codes given W, m, ψ (observed cells only)
            then once   W, m by regression on the codes, ψ_j from the residuals of column j

If no cell is missing and there are few columns, one pass over the rows is enough, for their covariance S:
One sweep:  W ← the best for ψ, from eigenvectors of ψ^-½ S ψ^-½        ψ ← diag(S − WWᵀ)

A rotation of W does not change the likelihood. A rotation R (k,k) makes its factors easier to interpret:

    maximize  Σ_jc L_jc⁴ − γ/d Σ_c (Σ_j L_jc²)²   over  L = W R     γ = 1 varimax, 0 quartimax
References: Rubin & Thayer 1982; Jöreskog 1967 (W given ψ); Kaiser 1958 (varimax); Neuhaus & Wrigley 1954 (quartimax).
"""

from __future__ import annotations

from numbers import Integral
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.linalg as sla

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.engine.local import engine_for
from twofold.core.estimator import fitting
from twofold.core.history import History
from twofold.core.numerics.moments import moments
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.linalg import fix_signs
from twofold.linear._linear_gaussian import Data, LatentGaussian, Theta, expand, regress

MIN_NOISE_SHARE = 1e-6  # of a column's variance, for its noise
MAX_COVARIANCE_COLUMNS = 2000  # up to which every sweep decomposes the covariance
ROTATIONS = {"varimax": 1.0, "quartimax": 0.0}
MAX_ROUNDS, MIN_ANGLE = 200, 1e-9  # of the rotation, radians


class FactorAnalysis(LatentGaussian):
    """Factor analysis: PPCA with a noise variance for each column.

    ``x = W z + mean + ε`` with ``ε ~ N(0, diag ψ)``. Unlike PCA it does not depend on the columns' units: variance of
    one column alone is noise, variance that columns share is structure. Missing cells are allowed.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of factors; None means as many as columns, 0 a diagonal covariance.
    noise_variance_init : array of shape (d,) or None, default=None
        Noise variances at the start; None means half of each column's variance.
    rotation : {"varimax", "quartimax"} or None, default=None
        Rotation of the loadings after the fit: few large loadings in each factor (varimax) or in each column
        (quartimax). With None WᵀΨ⁻¹W is diagonal.
    tol : float, default=1e-8
        EM stops when a sweep raises the mean log-likelihood by less than this, relatively. A variance that goes to zero
        slows EM although the likelihood hardly changes, so the trend is not used.
    max_iter, random_state
        As for :class:`PPCA`.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        The loadings as rows.
    loadings_ : ndarray of shape (d, k)
    noise_variance_ : ndarray of shape (d,)
    mean_ : ndarray of shape (d,)
    loglike_ : list of float
        The log-likelihood of all rows in every sweep.
    history_, n_iter_, converged_
        The objective is the mean negative log-likelihood of the rows.

    References
    ----------
    Rubin & Thayer (1982), *Psychometrika* 47, 69-76. Jöreskog (1967), *Psychometrika* 32, 443-482.

    Examples
    --------
    >>> from twofold import FactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=(2000, 6)) * [1, 2, 3, 1, 2, 3]
    >>> fa = FactorAnalysis(2, random_state=0).fit(X)
    >>> np.sqrt(fa.noise_variance_).round()
    array([1., 2., 3., 1., 2., 3.])
    """

    _spare: ClassVar[int] = 0
    _column_axes: ClassVar[dict[str, tuple[int, ...]]] = {
        "mean_": (0,),
        "loadings_": (0,),
        "components_": (1,),
        "noise_variance_": (0, 0),
    }
    components_: Annotated[np.ndarray, "k d"]
    loadings_: Annotated[np.ndarray, "d k"]
    mean_: Annotated[np.ndarray, "d"]
    noise_variance_: Annotated[np.ndarray, "d, >= 0"]
    _parameter_constraints: ClassVar[dict] = {
        **LatentGaussian._parameter_constraints,
        "n_components": [Interval(Integral, 0, None, closed="left"), None],
        "noise_variance_init": ["array-like", None],
        "rotation": [StrOptions(set(ROTATIONS)), None],
    }
    _instead: ClassVar[dict[str, str]] = dict.fromkeys(
        ("svd_method", "iterated_power"), "EM needs no SVD here. Use tol and max_iter."
    )

    def __init__(
        self,
        n_components: int | None = None,
        *,
        noise_variance_init: Any = None,
        rotation: str | None = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Seed = 0,
    ):
        self.n_components = n_components
        self.noise_variance_init = noise_variance_init
        self.rotation = rotation
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> FactorAnalysis:
        """Fit to rows that may have missing cells; see :meth:`PCA.fit` for the arguments."""
        data = self._read(X, sample_weight)
        k = self._count_latent(data.blocks.shape)
        seed = seed_of(self.random_state)
        start = self._start(data, k, seed)
        psi = np.maximum(self._start_noise(data), MIN_NOISE_SHARE * _safe_variances(data))
        if data.holes or data.blocks.shape[1] > min(data.blocks.shape[0], MAX_COVARIANCE_COLUMNS):
            self._run_em(data, start._replace(psi=psi), seed, X)
        else:
            self._run_on_covariance(data, start._replace(psi=psi), seed, X)
        rows = data.blocks.shape[0] if data.w is None else float(data.w.sum())
        self.loglike_ = [-rows * objective for objective in self.history_["objective"]]
        return self

    def _run_on_covariance(self, data: Data, start: Theta, seed: int, X: Any) -> None:
        """Run the loop on the covariance, which is sufficient when no cell is missing."""
        found = moments(engine_for(data.blocks), data.blocks, data.w)
        S, floor = found.scatter / found.weight, MIN_NOISE_SHARE * _safe_variances(data)
        if not np.isfinite(S).all():
            raise OverflowError("squares of X are too large")

        def sweep(theta: Theta, t: int) -> loop.Sweep:
            W, objective = best_loadings(S, theta.psi, theta.W.shape[1])
            return loop.Sweep(Theta(theta.mean, W, np.maximum(np.diag(S) - (W**2).sum(axis=1), floor)), objective)

        self._run_loop(data, sweep, start, seed, X)

    def _start_noise(self, data: Data) -> np.ndarray:
        """Return the noise variances (d,) at the start of EM."""
        if self.noise_variance_init is None:
            return 0.5 * data.columns.variance
        given, d = np.asarray(self.noise_variance_init, dtype=np.float64), data.blocks.shape[1]
        if given.shape != (d,) or not (np.isfinite(given) & (given >= 0)).all():
            raise InputError(
                f"noise_variance_init has shape {given.shape}; its dimension does not match the number of features: "
                f"give {d} finite variances >= 0, one a column."
            )
        return given

    def _relative_change(self, history: History) -> float:
        """Return the last step: a variance that goes to zero (a Heywood case) slows EM although the likelihood hardly
        changes."""
        return history.step()

    def _update(self, s: Any, theta: Theta, data: Data) -> loop.Sweep:
        W, shift, left, weight = regress(s)
        W, shift = expand(W, shift, s)
        psi = np.maximum(left / weight, MIN_NOISE_SHARE * _safe_variances(data))
        return loop.Sweep(Theta(theta.mean + shift, W, psi), -s.loglik / s.rows)

    def _attributes(self, theta: Theta, dtype: np.dtype, spread: np.ndarray) -> dict:
        root = np.sqrt(theta.psi)[:, None]
        A, s, _ = np.linalg.svd(theta.W / root, full_matrices=False)
        W = A * s * root
        W = W if self.rotation is None else W @ rotate(W, ROTATIONS[self.rotation])
        W = W * fix_signs(W.T)
        return {
            "components_": np.ascontiguousarray(W.T, dtype=dtype),
            "loadings_": W.astype(dtype),
            "noise_variance_": theta.psi.astype(dtype),
            "mean_": theta.mean.astype(dtype),
        }


def best_loadings(S: np.ndarray, psi: np.ndarray, k: int) -> tuple[np.ndarray, float]:
    """Return the loadings W (d,k) of maximum likelihood for a covariance S and noise variances psi, and their mean
    negative log-likelihood of a row.

    With ψ^-½ S ψ^-½ = V diag(λ) Vᵀ they are ψ^½ V (λ − 1)^½ for the k largest λ that exceed 1.
    """
    root = np.sqrt(psi)
    scaled = S / np.outer(root, root)
    d = len(psi)
    values, vectors = sla.eigh(scaled, subset_by_index=[d - k, d - 1]) if k else (np.empty(0), np.empty((d, 0)))
    above = np.maximum(values[::-1], 1.0)
    W = vectors[:, ::-1] * np.sqrt(above - 1) * root[:, None]
    explained = (above - 1 - np.log(above)).sum() if k else 0.0
    return W, float(0.5 * (d * np.log(2 * np.pi) + np.log(psi).sum() + np.trace(scaled) - explained))


def rotate(W: np.ndarray, gamma: float) -> np.ndarray:
    """Find the rotation R (k,k) that maximizes the criterion above: each pair of factors is rotated by its best angle,
    which has a closed form, until no angle exceeds MIN_ANGLE.

    >>> simple = np.kron(np.eye(2), np.ones((3, 1)))                    # each column belongs to one factor
    >>> turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    >>> turned = simple @ turn
    >>> np.abs(turned @ rotate(turned, 1.0)).round(6)[[0, 3]]
    array([[1., 0.],
           [0., 1.]])
    """
    d, k = W.shape
    L, R = W.copy(), np.eye(k)
    for _ in range(MAX_ROUNDS):
        largest = 0.0
        for a in range(k):
            for b in range(a + 1, k):
                u, v = L[:, a] ** 2 - L[:, b] ** 2, 2 * L[:, a] * L[:, b]
                across = 2 * (u @ v - gamma / d * u.sum() * v.sum())
                along = u @ u - v @ v - gamma / d * (u.sum() ** 2 - v.sum() ** 2)
                angle = 0.25 * np.arctan2(across, along)
                turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
                L[:, [a, b]], R[:, [a, b]] = L[:, [a, b]] @ turn, R[:, [a, b]] @ turn
                largest = max(largest, abs(angle))
        if largest < MIN_ANGLE:
            break
    return R


def _safe_variances(data: Data) -> np.ndarray:
    """Return each column's variance, above a small share of the mean variance, for finite densities."""
    return np.maximum(data.columns.variance, 1e-6 * data.columns.level(data.blocks.dtype))
