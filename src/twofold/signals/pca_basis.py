"""The basis that suits given signals best: their principal directions."""

from __future__ import annotations

from numbers import Integral
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.engine.local import fingerprint
from twofold.core.estimator import Model, fitting
from twofold.core.heldout import SQUARED, predict_by_axes, square_costs
from twofold.core.numerics.spectrum import Spectrum, spectrum
from twofold.core.params import Interval
from twofold.core.types import Table, Weights
from twofold.linalg import fix_signs, project_centered


class PCABasis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """Principal directions as a basis, learned from signals; cosines and wavelets are the same for all signals.

    Of all orthonormal bases it is the one whose first k coefficients lose the least energy of the signals it was
    fitted to, together. It is learned for signals of one length, and sent along with them.

    Parameters
    ----------
    n_components : int or None, default=None
        Atoms; None means all, as many as the signals have numbers (or fewer if there are fewer signals).

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        The atoms, orthonormal, the most telling first.
    mean_ : ndarray of shape (d,)
        Taken off before analysis, put back by synthesis.

    References
    ----------
    Karhunen (1947), *Annales Academiae Scientiarum Fennicae A* 37.

    Examples
    --------
    >>> from twofold import PCABasis, datasets
    >>> from twofold.signals import DCT
    >>> X = datasets.digits().data
    >>> pca = PCABasis().fit(X[:1500])
    >>> def lost(basis, k):
    ...     codes = basis.analyze(X[1500:])
    ...     return float((np.sort(np.abs(codes))[:, :-k] ** 2).sum())
    >>> lost(pca, 8) < lost(DCT(), 8)
    True
    """

    _turns, _heldout_unit = True, SQUARED
    components_: Annotated[np.ndarray, "k p"]
    mean_: Annotated[np.ndarray, "p"]
    _parameter_constraints: ClassVar[dict] = {"n_components": [None, Interval(Integral, 1, None, closed="left")]}

    def __init__(self, n_components: int | None = None):
        self.n_components = n_components

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> PCABasis:
        """Learn the directions of signals X (n,d): array, sparse array, frame, path or dask array."""
        blocks = self._blocks(X, reset=True, min_rows=2)
        most = min(blocks.shape)
        k = most if self.n_components is None else int(self.n_components)
        if k > most:
            raise InputError(f"n_components={k} is more than min(n, d) = {most} directions. Ask for fewer.")
        w = self._weights(blocks, sample_weight)

        def sweep(state: Any, t: int) -> loop.Sweep:
            found = spectrum(blocks, k, w=w)
            if not np.isfinite(found.total):
                self._refuse(blocks)
            return loop.Sweep(found, float(max(found.total - found.values.sum(), 0.0)), done=True)

        def read_attributes(state: Spectrum) -> dict:
            axes = state.axes * fix_signs(state.axes)[:, None]
            return {"components_": axes.astype(blocks.dtype), "mean_": state.mean.astype(blocks.dtype)}

        loop.run(
            self,
            sweep,
            None,
            max_iter=1,
            tol=0.0,
            fitted=read_attributes,
            X=X,
            fingerprint=lambda: fingerprint(blocks, w),
            seed=0,
        )
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _hiding(self) -> tuple:
        return square_costs, predict_by_axes, self.mean_.astype(np.float64), self.components_.astype(np.float64)

    def transform(self, X: Table) -> Any:
        """The coefficients (n,k) of signals."""
        check_is_fitted(self)
        return self._rowwise(project_centered, X, self.mean_, self.components_)

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Signals from coefficients."""
        return self._check_codes(X) @ self.components_ + self.mean_

    analyze, synthesize = transform, inverse_transform

    def matrix(self) -> np.ndarray:
        """The atoms as rows (k,d)."""
        check_is_fitted(self)
        return self.components_.copy()
