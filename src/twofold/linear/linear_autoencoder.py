"""The linear autoencoder.

    minimize  J = 1/(2n) ‖X̃ − X̃ Eᵀ Dᵀ‖²   over encoder E (k,d) and decoder D (d,k),  X̃ = X − mean;  tied: D = Eᵀ

One sweep:  each block  adds its part of S·[Eᵀ, D], S = X̃ᵀX̃/n, which gives the loss and both gradients
            then once   a step along the gradients with momentum; a step that would raise J is shortened

At the optimum DE is the projection onto the principal subspace, but its axes are not determined: D A and A⁻¹E have
the same loss for any invertible A (any rotation A if tied). Ordered, J is the mean of these losses for the first 1, the
first 2, … and all k hidden units. Then column j of D lies along principal axis j at the only optimum.
References: Baldi & Hornik 1989; Rippel, Gelbart & Adams 2014 (nested dropout); Oftadeh et al. 2020 (its mean).
"""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.optimize import linear_sum_assignment
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.engine.local import engine_for, fingerprint
from twofold.core.estimator import Model, Reorderable, fitting
from twofold.core.heldout import SQUARED, predict_by_axes, square_costs
from twofold.core.numerics.spectrum import scatter_operator, spectrum
from twofold.core.params import ITERATIVE, Interval
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.linalg import project_centered


class State(NamedTuple):
    """A point, the loss and gradients there, the velocity, and the length of a step."""

    E: np.ndarray  # (k,d)
    D: np.ndarray  # (d,k)
    gE: np.ndarray
    gD: np.ndarray
    vE: np.ndarray
    vD: np.ndarray
    loss: float
    step: float
    since: int  # sweeps since the last reset of the momentum


class LinearAutoencoder(Reorderable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """Encoder and decoder, both linear, trained by gradient descent: PCA's subspace, by training a network.

    Parameters
    ----------
    n_components : int, default=2
        Number of hidden units.
    tied : bool, default=False
        Share the weights, decoder = encoderᵀ.
    ordered : bool, default=False
        Require that the first j units alone have the least loss of j units, for every j: the axes are then the
        principal ones, in their order. This takes more sweeps.
    tol : float, default=3e-7
        Training stops when the last sweeps, and a tenth of what their trend says is still to come, lower the loss by
        less than this, relatively.
    max_iter : int, default=5000
        Sweeps over the data at most.
    random_state : int, RandomState, Generator or None, default=None
        The first weights.

    Attributes
    ----------
    encoder_ : ndarray of shape (k, d)
    decoder_ : ndarray of shape (d, k)
    components_ : ndarray of shape (k, d)
        The decoder's columns as rows, so that X ≈ codes @ components_ + mean.
    mean_ : ndarray of shape (d,)
    principal_angle_ : float
        The largest angle, in radians, between the decoder's span and that of PCA: near 0 after a successful training.
    identifiability_ : float
        Agreement of single axes with principal axes: the mean |cos| of the best one-to-one matching. 1 means that the
        axes are found; the loss requires it only if `ordered`, so less is normal otherwise.
    history_, n_iter_, converged_
        The objective is half the mean squared error of a row; ordered, its mean over the first 1 … k units.

    References
    ----------
    Baldi & Hornik (1989), *Neural Networks* 2, 53-58. Rippel, Gelbart & Adams (2014), *ICML*.
    Oftadeh, Shen, Wang & Shell (2020), *ICML*.

    Examples
    --------
    >>> from twofold import LinearAutoencoder, datasets
    >>> model = LinearAutoencoder(5, random_state=0).fit(datasets.digits().data)
    >>> model.principal_angle_ < 0.01, model.identifiability_ < 0.99      # the subspace, not the axes
    (True, True)
    >>> ordered = LinearAutoencoder(5, ordered=True, random_state=0).fit(datasets.digits().data)
    >>> ordered.identifiability_ > 0.999                                  # the axes
    True
    """

    _turns, _heldout_unit = True, SQUARED
    _component_axes: ClassVar[dict[str, int]] = {"encoder_": 0, "decoder_": 1, "components_": 0}
    components_: Annotated[np.ndarray, "k d"]
    encoder_: Annotated[np.ndarray, "k d"]
    decoder_: Annotated[np.ndarray, "d k"]
    principal_angle_: float
    identifiability_: float
    mean_: Annotated[np.ndarray, "d"]
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "tied": ["boolean"],
        "ordered": ["boolean"],
        **ITERATIVE,
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        tied: bool = False,
        ordered: bool = False,
        tol: float = 3e-7,
        max_iter: int = 5000,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.tied = tied
        self.ordered = ordered
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> LinearAutoencoder:
        """Train on the rows of X; see :meth:`PCA.fit` for the arguments."""
        blocks = self._blocks(X, reset=True, min_rows=2)
        w = self._weights(blocks, sample_weight)
        n, d = blocks.shape
        k = int(self.n_components)
        if k > min(n, d):
            raise InputError(f"n_components={k} must be at most min(n_samples, n_features)={min(n, d)}.")
        times, mean, columns = scatter_operator(engine_for(blocks), blocks, w)
        if not np.isfinite(mean).all() or columns.missing:
            self._refuse(blocks)
        seed = seed_of(self.random_state)
        total = float(columns.scatter.sum() / columns.rows)
        share = np.arange(k, 0, -1) / k if self.ordered else np.ones(k)

        def measure(E: np.ndarray, D: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
            SE, SD = np.hsplit(times(np.hstack([E.T, D])) / columns.rows, 2)  # (d,k) each
            return gradients(E, D, SE, SD, total, self.tied, share)

        E = generator(seed).standard_normal((k, d)) / np.sqrt(d)
        D = E.T.copy() if self.tied else generator(seed, 1).standard_normal((d, k)) / np.sqrt(d)
        loss, gE, gD = measure(E, D)
        start = State(E, D, gE, gD, 0 * E, 0 * D, loss, 0.1 / max(total, 1e-300), 0)

        def sweep(state: State, t: int) -> loop.Sweep:
            new = descend(state, measure)
            return loop.Sweep(new, new.loss, {"step": new.step}, done=new is state)

        principal = spectrum(blocks, k, w=w, seed=seed)
        fitted = partial(_attributes, mean=mean, axes=principal.axes, dtype=blocks.dtype)
        loop.run(self, sweep, start, fitted=fitted, X=X, fingerprint=partial(fingerprint, blocks, w), seed=seed)
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.encoder_)

    def transform(self, X: Table) -> Any:
        """Compute the hidden units of rows: (X − mean) Eᵀ."""
        check_is_fitted(self)
        return self._rowwise(project_centered, X, self.mean_, self.encoder_)

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Rows from hidden units: U Dᵀ + mean."""
        return self._check_codes(X) @ self.components_ + self.mean_

    def _hiding(self) -> tuple:
        return square_costs, predict_by_axes, self.mean_.astype(np.float64), self.components_.astype(np.float64)

    def score(self, X: Table, y: Any = None) -> float:
        """Minus the mean squared error of reconstruction a row, so that higher is better."""
        check_is_fitted(self)
        return -float(np.mean(self._rowwise(_row_errors, X, self.mean_, self.encoder_, self.decoder_)))


def gradients(
    E: np.ndarray, D: np.ndarray, SE: np.ndarray, SD: np.ndarray, total: float, tied: bool, share: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Compute J and its gradients from SEᵀ and SD (d,k), with J = ½ tr(S) − tr(DᵀSEᵀ) + ½ tr(D·ESEᵀ·Dᵀ).

    `share` (k,) is the share of the losses averaged in J that each unit takes part in; a pair has the smaller share.
    """
    both = np.minimum.outer(share, share)
    K = both * (E @ SE)  # (k,k)
    SE, SD = SE * share, SD * share
    loss = 0.5 * total - float(np.vdot(D, SE)) + 0.5 * float(np.vdot(D @ K, D))
    gD = D @ K - SE
    gE = (both * (D.T @ D)) @ (SE / share).T - SD.T
    if tied:
        gE = gE + gD.T
        gD = gE.T
    return loss, gE, gD


def descend(s: State, measure: Any) -> State:
    """Take one step, halved and without momentum while it would raise the loss. Return the same state if none helps."""
    step, vE, vD, since = s.step, s.vE, s.vD, s.since
    for _ in range(60):
        inertia = since / (since + 3.0)
        vE, vD = inertia * vE - step * s.gE, inertia * vD - step * s.gD
        E, D = s.E + vE, s.D + vD
        loss, gE, gD = measure(E, D)
        if loss <= s.loss:
            return State(E, D, gE, gD, vE, vD, loss, step * 1.1, since + 1)
        step, vE, vD, since = (step / 2, 0 * vE, 0 * vD, 0)
    return s


def _attributes(s: State, mean: np.ndarray, axes: np.ndarray, dtype: np.dtype) -> dict:
    unit = s.D / np.maximum(np.linalg.norm(s.D, axis=0), 1e-300)
    agreement = np.abs(axes @ unit)  # (k,k)
    rows, columns = linear_sum_assignment(-agreement)
    return {
        "encoder_": s.E.astype(dtype),
        "decoder_": s.D.astype(dtype),
        "components_": np.ascontiguousarray(s.D.T, dtype=dtype),
        "mean_": mean.astype(dtype),
        "principal_angle_": float(subspace_angles(axes.T, s.D).max()),
        "identifiability_": float(agreement[rows, columns].mean()),
    }


def _row_errors(X: Any, mean: np.ndarray, encoder: np.ndarray, decoder: np.ndarray) -> np.ndarray:
    """Compute ‖x − x̂‖² of each row, without forming x̂ for sparse rows."""
    U = project_centered(X, mean, encoder)
    if not sparse.issparse(X):
        return ((X - mean - U @ decoder.T) ** 2).sum(axis=1)
    m, U, D = mean.astype(np.float64), U.astype(np.float64), decoder.astype(np.float64)
    square = X.multiply(X).sum(axis=1) - 2 * (X @ m) + m @ m  # ‖x − m‖²
    cross = ((X @ D - m @ D) * U).sum(axis=1)  # (x − m)·Du
    return np.maximum(square - 2 * cross + ((U @ (D.T @ D)) * U).sum(axis=1), 0.0)
