"""A Gaussian density for each class, by probabilistic PCA.

    p(class | x) ∝ prior · N(x; m_c, W_cW_cᵀ + σ_c²I)

One sweep:  a PPCA for each class, on its rows; then Bayes' rule, in log space.
Reference: Tipping & Bishop 1999, section 5.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.engine.local import engine_for, fingerprint
from twofold.core.estimator import fitting
from twofold.core.numerics.density import ClassDensity, safe_log
from twofold.core.numerics.moments import column_moments
from twofold.core.params import ITERATIVE, Interval
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.linear._linear_gaussian import log_density
from twofold.linear.ppca import PPCA


class PPCAClassifier(ClassifierMixin, ClassDensity):
    """Classify by density: one probabilistic PCA per class, and Bayes' rule.

    Between a naive Bayes classifier and full Gaussians: each class has its own mean, k directions of structure and
    one noise level, so that a few rows per class suffice. Cells may be missing, in training and in use.

    Parameters
    ----------
    n_components : int, default=2
        Latent dimensions of a class; a class with few rows has fewer.
    tol, max_iter, random_state
        For EM, which runs when cells are missing; see :class:`PPCA`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    priors_ : ndarray of shape (n_classes,)
    means_ : ndarray of shape (n_classes, d)
    loadings_ : ndarray of shape (n_classes, d, k)
    noise_variance_ : ndarray of shape (n_classes,)
    history_, n_iter_, converged_
        The objective is the mean negative joint log-density of the rows and their classes.

    References
    ----------
    Tipping & Bishop (1999), *Neural Computation* 11, 443-482.

    Examples
    --------
    >>> from twofold import PPCAClassifier, datasets
    >>> digits = datasets.digits()
    >>> model = PPCAClassifier(10).fit(digits.data[:1500], digits.target[:1500])
    >>> model.score(digits.data[1500:], digits.target[1500:]) > 0.94
    True
    """

    _allow_nan: ClassVar[bool] = True
    loadings_: Annotated[np.ndarray, "c d k"]
    means_: Annotated[np.ndarray, "c d"]
    noise_variance_: Annotated[np.ndarray, "c, > 0"]
    priors_: Annotated[np.ndarray, "c, >= 0"]
    classes_: Annotated[np.ndarray, "c, text"]
    _parameter_constraints: ClassVar[dict] = {"n_components": [Interval(Integral, 1, None, closed="left")], **ITERATIVE}

    def __init__(self, n_components: int = 2, *, tol: float = 1e-8, max_iter: int = 1000, random_state: Seed = None):
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any, sample_weight: Weights = None) -> PPCAClassifier:
        """Fit a density to the rows of each class."""
        blocks, w, classes, labels = self._read_classes(X, y, sample_weight)
        weighty = classes if w is None else classes[np.bincount(labels, weights=w) > 0]
        if len(weighty) < 2:
            raise InputError(f"y has one class only, {weighty}; at least two are needed.")
        if self.n_components > blocks.shape[1]:
            raise InputError(f"n_components={self.n_components} is more than X has columns, {blocks.shape[1]}.")
        columns = column_moments(engine_for(blocks), blocks, w)
        if not np.isfinite(columns.mean).all():
            self._refuse(blocks, allow_nan=not blocks.is_sparse)
        level = columns.level(blocks.dtype)
        seed = seed_of(self.random_state)

        def sweep(_: Any, t: int) -> loop.Sweep:
            rows = [labels == c for c in range(len(classes))]
            with loop.quietly():
                found = [self._density(blocks.where(r), None if w is None else w[r], level, seed) for r in rows]
            totals = np.bincount(labels, weights=w, minlength=len(classes))
            log_prior = safe_log(totals / totals.sum())
            k = max(f[1].shape[1] for f in found)
            loadings = np.stack([np.pad(f[1], ((0, 0), (0, k - f[1].shape[1]))) for f in found])
            arrays = {
                "priors_": np.exp(log_prior),
                "means_": np.stack([f[0] for f in found]),
                "loadings_": loadings,
                "noise_variance_": np.array([f[2] for f in found]),
            }
            fitted = {name: array.astype(blocks.dtype) for name, array in arrays.items()}
            fits = np.array([f[3] for f in found])
            objective = -float(totals @ (fits + log_prior) / totals.sum())
            converged = all(f[4] for f in found)
            return loop.Sweep({"classes_": classes, **fitted}, objective, done=True, converged=converged)

        sign = partial(fingerprint, blocks, w, labels)
        loop.run(self, sweep, {}, max_iter=1, tol=0.0, fitted=dict, X=X, y=y, fingerprint=sign)
        return self

    def _density(self, blocks: Any, w: np.ndarray | None, level: float, seed: int) -> tuple:
        """Return mean, loadings, noise, log-density and convergence of one class; a sphere for few rows."""
        d = blocks.shape[1]
        rows = blocks.shape[0] if w is None else w.sum()
        if rows == 0:
            return np.zeros(d), np.zeros((d, 1)), level, 0.0, True  # its prior of zero excludes it
        k = min(int(self.n_components), max(1, d - 1), blocks.shape[0])
        if rows < 3 or blocks.shape[0] < 2 or d == 1:
            here = column_moments(engine_for(blocks), blocks, w)
            mean = np.where(here.weight > 0, here.mean, 0.0)
            noise = float(here.variance.mean()) if d == 1 and rows > 1 else level
            return mean, np.zeros((d, 1)), max(noise, 1e-9 * level), 0.0, True
        model = PPCA(k, tol=self.tol, max_iter=self.max_iter, random_state=seed).fit(blocks, sample_weight=w)
        noise = max(model.noise_variance_, 1e-6 * level)
        return model.mean_, model.loadings_, noise, -model.history_["objective"][-1], model.converged_

    def _joint(self) -> tuple:
        check_is_fitted(self)
        arrays = (self.means_, self.loadings_, self.noise_variance_, safe_log(self.priors_))
        return joint_density, *(a.astype(np.float64) for a in arrays)


def joint_density(
    X: Any, means: np.ndarray, loadings: np.ndarray, noise: np.ndarray, log_prior: np.ndarray
) -> np.ndarray:
    """Compute log p(x, class): (n,classes)."""
    d = X.shape[1]
    joint = [log_density(X, means[c], loadings[c], np.full(d, noise[c])) for c in range(len(log_prior))]
    return np.column_stack(joint) + log_prior
