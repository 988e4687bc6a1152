"""Fisher's linear discriminant analysis.

    maximize  tr( (Z S_w Zᵀ)⁻¹ Z S_b Zᵀ )   over directions Z (k,d), k ≤ classes − 1

S_w is the scatter within classes, S_b between their means. One sweep:
            each block  adds its moments, and the sum of the rows of each class
            then once   S_w is whitened, and Z are the principal axes of the whitened class means
References: Fisher 1936; Rao 1948.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.engine.local import add, engine_for, fingerprint
from twofold.core.estimator import fitting
from twofold.core.numerics.density import ClassDensity, safe_log
from twofold.core.numerics.moments import moments
from twofold.core.params import Interval
from twofold.core.types import Table, Weights
from twofold.linalg import fix_signs, project_centered


class FisherLDA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, ClassDensity):
    """Fisher's discriminant: the directions along which classes are farthest apart relative to their spread.

    PCA maximizes variance and does not use the labels; this model maximizes separation. There are at most
    n_classes − 1 directions. Rows are classified by the nearest class center along them, with priors, which is
    Bayes' rule for Gaussian classes of one covariance.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of directions; None means min(n_classes − 1, n_features).
    shrinkage : float, default=0.0
        Between 0 and 1: shrinks the scatter within classes towards a sphere, for few rows or many columns.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Directions scaled to unit variance within classes.
    explained_variance_ratio_ : ndarray of shape (k,)
        Each direction's share of the separation.
    classes_, priors_, means_, mean_
    history_, n_iter_, converged_
        The objective is minus the total separation.

    References
    ----------
    Fisher (1936), *Annals of Eugenics* 7, 179-188.

    Examples
    --------
    >>> from twofold import FisherLDA, datasets
    >>> digits = datasets.digits()
    >>> lda = FisherLDA().fit(digits.data[:1500], digits.target[:1500])
    >>> lda.transform(digits.data).shape, lda.score(digits.data[1500:], digits.target[1500:]) > 0.85
    ((1797, 9), True)
    """

    components_: Annotated[np.ndarray, "k d"]
    mean_: Annotated[np.ndarray, "d"]
    explained_variance_ratio_: Annotated[np.ndarray, "k"]
    means_: Annotated[np.ndarray, "c k"]
    priors_: Annotated[np.ndarray, "c, >= 0"]
    classes_: Annotated[np.ndarray, "c, text"]
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "shrinkage": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(self, n_components: int | None = None, *, shrinkage: float = 0.0):
        self.n_components = n_components
        self.shrinkage = shrinkage

    @fitting
    def fit(self, X: Table, y: Any, sample_weight: Weights = None) -> FisherLDA:
        """Find the directions that separate the classes y (n,)."""
        blocks, w, classes, labels = self._read_classes(X, y, sample_weight)
        engine = engine_for(blocks)

        def sweep(_: Any, t: int) -> loop.Sweep:
            total = moments(engine, blocks, w)
            if not np.isfinite(total.scatter).all():
                self._refuse(blocks)
            step = engine.map(
                class_sums, blocks, blocks.rows(labels), blocks.rows(w), engine.broadcast((len(classes), total.mean))
            )
            weights, sums = engine.reduce(add, step)
            arrays, separation = self._find_directions(total, weights, sums, classes)
            fitted = {name: array.astype(blocks.dtype) for name, array in arrays.items()}
            return loop.Sweep({"classes_": classes, **fitted}, -separation, done=True)

        sign = partial(fingerprint, blocks, w, labels)
        loop.run(self, sweep, {}, max_iter=1, tol=0.0, fitted=dict, X=X, y=y, fingerprint=sign)
        return self

    def _find_directions(
        self, total: Any, weights: np.ndarray, sums: np.ndarray, classes: np.ndarray
    ) -> tuple[dict[str, np.ndarray], float]:
        """The fitted arrays, and the total separation: between- over within-class variance along all directions."""
        d = len(total.mean)
        counted = weights > 0
        if counted.sum() < 2:
            raise InputError(
                f"y has {int(counted.sum())} class with weight, {classes[counted]}; the number of classes has to be "
                "greater than one."
            )
        most = min(int(counted.sum()) - 1, d)
        if self.n_components is not None and self.n_components > most:
            raise InputError(
                f"n_components={self.n_components} cannot be larger than min(n_features, n_classes - 1)={most}."
            )
        offsets = sums / np.maximum(weights, 1e-300)[:, None]  # (classes,d) class means less the overall mean
        between = (offsets * weights[:, None]).T @ offsets
        within = (total.scatter - between) / max(total.weight - counted.sum(), 1.0)
        within = (1 - self.shrinkage) * within + self.shrinkage * within.trace() / d * np.eye(d)
        values, vectors = np.linalg.eigh(within)
        use = values > max(values.max(initial=0.0) * d * 1e-12, 1e-300)  # constant columns are left out
        white = vectors[:, use] / np.sqrt(values[use])  # (d,r)
        share = np.sqrt(weights / weights.sum())
        _, s, axes = np.linalg.svd((offsets * share[:, None]) @ white, full_matrices=False)
        k = min(int(self.n_components or most), len(s))
        Z = (white @ axes[:k].T).T
        Z = Z * fix_signs(Z)[:, None]
        ratios = s[:k] ** 2
        return {
            "components_": Z,
            "mean_": total.mean,
            "means_": offsets @ Z.T,
            "priors_": np.exp(safe_log(weights / weights.sum())),
            "explained_variance_ratio_": ratios / max(ratios.sum(), 1e-300),
        }, float(ratios.sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Table) -> Any:
        """Project rows on the discriminant directions: (n,k)."""
        check_is_fitted(self)
        return self._rowwise(project_centered, X, self.mean_, self.components_)

    def _joint(self) -> tuple:
        check_is_fitted(self)
        log_prior = safe_log(self.priors_.astype(np.float64))
        return joint_density, self.mean_, self.components_, self.means_.astype(np.float64), log_prior


def joint_density(X: Any, mean: np.ndarray, axes: np.ndarray, centers: np.ndarray, log_prior: np.ndarray) -> np.ndarray:
    """Compute log p(x, class) (n,classes) up to a constant of the row, from distances to the class centers."""
    U = project_centered(X, mean, axes).astype(np.float64)
    return U @ centers.T - 0.5 * (centers**2).sum(axis=1) + log_prior


def class_sums(X: Any, labels: np.ndarray, w: np.ndarray | None, fixed: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Sum w and w(x − mean) of each class in a block: (classes,), (classes,d)."""
    count, mean = fixed
    w = np.ones(len(labels)) if w is None else w
    hot = np.zeros((len(labels), count))
    hot[np.arange(len(labels)), labels] = w
    weights = hot.sum(axis=0)
    if hasattr(X, "indptr"):
        return weights, np.asarray((X.T @ hot).T) - np.outer(weights, mean)
    rest = X - mean.astype(X.dtype)
    return weights, (hot.T.astype(X.dtype) @ rest).astype(np.float64) + np.outer(weights, mean.astype(X.dtype) - mean)
