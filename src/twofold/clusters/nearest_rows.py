"""Groups of labeled rows, carried over to new rows: each is in the group of the nearest labeled row.

Methods that compare all pairs of rows, such as Ward's and HDBSCAN, label rows and nothing else; this labels others.
"""

from __future__ import annotations

from numbers import Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from twofold.clusters.kmeans.assign import find_nearest, wrap_centers
from twofold.core.checks import InputError
from twofold.core.engine.local import engine_for, fetch_rows
from twofold.core.estimator import Model, Rescalable, fitting
from twofold.core.params import Interval
from twofold.core.types import Table


class NearestRows(Rescalable, ClusterMixin, Model):
    """The group of the nearest of some labeled rows.

    Parameters
    ----------
    max_distance : float or None, default=None
        A row farther than this from every labeled row is an outlier. None: no row is too far.

    Attributes
    ----------
    rows_ : ndarray of shape (m, d)
    labels_ : ndarray of shape (m,)
        Their groups; -1 for outliers.
    scale_ : ndarray of shape (d,)
        Of a model made by :meth:`rescaled`: distances are between rows divided by this.

    References
    ----------
    Cover & Hart (1967), *IEEE Trans. Inf. Theory* 13, 21-27 (nearest neighbors).

    Examples
    --------
    >>> from twofold import NearestRows
    >>> model = NearestRows(max_distance=2.0).fit([[0.0], [1.0], [9.0]], [0, 0, 1])
    >>> model.predict([[0.4], [8.0], [5.0]])
    array([ 0,  1, -1])
    """

    _allow_sparse: ClassVar[bool] = False
    _column_axes: ClassVar[dict[str, tuple[int, ...]]] = {"rows_": (1,), "scale_": (0,)}
    rows_: Annotated[np.ndarray, "m d"]
    labels_: Annotated[np.ndarray, "m, >= -1"]
    scale_: Annotated[np.ndarray, "d, > 0"]
    _parameter_constraints: ClassVar[dict] = {"max_distance": [None, Interval(Real, 0, None, closed="left")]}

    def __init__(self, max_distance: float | None = None):
        self.max_distance = max_distance

    @fitting
    def fit(self, X: Table, y: Any = None) -> NearestRows:
        """Keep rows and their groups `y`, -1 for outliers; without `y` every row is a group of its own."""
        self.__dict__.pop("scale_", None)
        blocks = self._blocks(X, reset=True)
        labels = np.arange(blocks.shape[0]) if y is None else np.asarray(y)
        if labels.shape != (blocks.shape[0],) or labels.dtype.kind not in "iu" or labels.min() < -1:
            raise InputError("y must hold the group of every row of X: 0, 1, ..., or -1 for an outlier.")
        self.rows_ = np.asarray(fetch_rows(engine_for(blocks), blocks, np.arange(blocks.shape[0])), dtype=np.float64)
        if not np.isfinite(self.rows_).all():
            self._refuse(blocks)
        self.labels_ = labels.astype(np.int64)
        return self

    def _state(self) -> tuple[Any, ...]:
        check_is_fitted(self)
        scale = getattr(self, "scale_", np.ones(self.rows_.shape[1]))
        rows = self.rows_ / scale
        mean = rows.mean(axis=0)
        max_distance = np.inf if self.max_distance is None else float(self.max_distance)
        return wrap_centers(rows - mean, mean, True), self.labels_, max_distance, scale

    def predict(self, X: Table) -> np.ndarray:
        """The group of each row, -1 for outliers."""
        return self._rowwise(_label, X, *self._state(), opaque=True)

    def transform(self, X: Table) -> np.ndarray:
        """The distance of each row to the nearest labeled row: (n,1)."""
        return self._rowwise(_measure, X, *self._state())


def _label(X: Any, rows: Any, labels: np.ndarray, max_distance: float, scale: np.ndarray) -> np.ndarray:
    nearest, square, _ = find_nearest(np.asarray(X, np.float64) / scale, rows)
    return np.where(np.sqrt(square) <= max_distance, labels[nearest], -1)


def _measure(X: Any, rows: Any, labels: np.ndarray, max_distance: float, scale: np.ndarray) -> np.ndarray:
    return np.sqrt(find_nearest(np.asarray(X, np.float64) / scale, rows)[1])[:, None]
