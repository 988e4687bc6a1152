"""k-medoids: like k-means, with rows as centers and any distance.

    minimize  Σ w d(x, m_c(x))   over medoids m_1 … m_k, which are rows of X, and the label c of every row

One sweep:  every row  replaces the medoid for which that lowers the cost most, if it lowers the cost
References: Kaufman & Rousseeuw 1990 (PAM, CLARA); Schubert & Rousseeuw 2021 (FasterPAM).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.clusters.kmeans.seeding import gather_rows
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import engine_for, fingerprint
from twofold.core.estimator import Model, Reorderable, fitting
from twofold.core.heldout import SQUARED, Split, square_costs
from twofold.core.params import ITERATIVE, Interval
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.kernels.kmedoids import rank_medoids, swap_medoids

MAX_ROWS = 10_000  # whose distances are kept in memory, 800 MB
SAMPLES = 5  # of MAX_ROWS rows each, for more rows
CENTERED = ("euclidean", "l2", "sqeuclidean")  # computed from products, which cancel far from the origin


class State(NamedTuple):
    """Rows that are medoids, and the cost of all rows."""

    medoids: np.ndarray  # (k,)
    cost: float


class KMedoids(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Reorderable, Model):
    """Groups around rows of the data, for any distance.

    A medoid is a row of the data, and far rows count by their distance, not its square. For Euclidean distances and
    many rows `KMeans` is much faster, because n² distances are needed here. For more than 10,000 rows, the medoids are
    the best of five random samples of 10,000, measured on all rows (CLARA).

    Parameters
    ----------
    n_clusters : int, default=8
        The number of medoids k.
    metric : str or callable, default="euclidean"
        A distance of scikit-learn's ``pairwise_distances``, a function of two rows, or "precomputed": X then has the
        distances (n, n), for new rows those to all rows of the fit.
    max_iter : int, default=100
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        The start: rows drawn in proportion to their distance from those drawn before.

    Attributes
    ----------
    medoid_indices_ : ndarray of shape (k,)
        The rows of X that are medoids.
    cluster_centers_ : ndarray of shape (k, d)
        These rows; for metric="precomputed" their distances to all rows.
    labels_ : ndarray of shape (n,)
        The group of each row.
    inertia_ : float
        The sum of distances of rows to their medoids.
    history_, n_iter_, converged_
        Costs by sweep, the number of sweeps, and True if the last one found no swap.

    References
    ----------
    Schubert & Rousseeuw (2021), *Information Systems* 101, 101804.
    Kaufman & Rousseeuw (1990), *Finding Groups in Data*.

    Examples
    --------
    >>> from twofold.clusters import KMedoids
    >>> X = np.array([[0.0], [1.0], [2.0], [50.0], [51.0], [99.0]])
    >>> model = KMedoids(2, metric="manhattan", random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().tolist()), model.inertia_
    ([1.0, 51.0], 51.0)
    """

    _heldout_unit = SQUARED
    medoid_indices_: Annotated[np.ndarray, "k, >= 0"]
    cluster_centers_: Annotated[np.ndarray, "k d"]
    _component_axes: ClassVar[dict[str, int]] = {"cluster_centers_": 0, "medoid_indices_": 0}
    _component_numbers: ClassVar[tuple[str, ...]] = ("labels_",)
    labels_: Annotated[np.ndarray, "n, >= 0, < k"]
    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "metric": [str, "callable"],
        "max_iter": ITERATIVE["max_iter"],
        "random_state": ITERATIVE["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: str | Callable[[Any, Any], float] = "euclidean",
        max_iter: int = 100,
        random_state: Seed = None,
    ):
        self.n_clusters = n_clusters
        self.metric = metric
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> KMedoids:
        """Find the medoids; see :meth:`PCA.fit` for the arguments."""
        blocks = self._blocks(X, reset=True)
        w = self._weights(blocks, sample_weight)
        n, d = blocks.shape
        if self.n_clusters > n:
            raise InputError(f"n_clusters={self.n_clusters} is more than n_samples={n}. Ask for fewer clusters.")
        if self.metric == "precomputed" and n != d:
            raise InputError(
                f'X has shape ({n}, {d}); metric="precomputed" needs the distances between all rows, (n, n).'
            )
        rows = self._read(blocks)
        weight = np.ones(n) if w is None else w
        seed = seed_of(self.random_state)
        sample_rows = max(MAX_ROWS, 2 * self.n_clusters)
        whole = n <= sample_rows or self.metric == "precomputed"

        if whole:
            search = Search(self._distances(rows, rows), weight)
            start = search.draw(self.n_clusters, generator(seed))
            sweep = partial(_swap, search)
        else:
            start = np.arange(self.n_clusters)
            sweep = partial(self._sample, rows, weight, sample_rows, seed)

        def describe(s: State) -> dict[str, Any]:
            centers = rows[s.medoids]
            centers = centers.toarray() if sparse.issparse(centers) else np.array(centers)
            return {"medoid_indices_": s.medoids, "cluster_centers_": centers}

        loop.run(
            self,
            sweep,
            State(start, np.inf),
            fitted=describe,
            max_iter=self.max_iter if whole else SAMPLES,
            tol=-1.0,
            X=X,
            fingerprint=partial(fingerprint, blocks, w),
            seed=seed,
            advice="Raise max_iter",
        )
        near = self._distances(rows, self._centers())
        self.labels_ = near.argmin(axis=1)
        self.inertia_ = float(weight @ near[np.arange(n), self.labels_])
        return self

    def _read(self, blocks: Blocks) -> Any:
        """Read all rows and check that they are finite."""
        rows = gather_rows(engine_for(blocks), blocks)
        values = rows.data if sparse.issparse(rows) else rows
        if not np.isfinite(values.sum()):
            self._refuse(blocks)
        return rows

    def _distances(self, rows: Any, centers: Any) -> np.ndarray:
        """Compute distances (n,k) of rows to centers, or take columns of precomputed ones."""
        if self.metric == "precomputed":
            D = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
            if (D < 0).any():
                i, j = np.argwhere(D < 0)[0]
                raise InputError(f"X has {D[i, j]:g} in row {i}, column {j}; distances are >= 0.")
            return np.ascontiguousarray(D.T) if centers is rows else D[:, centers]  # row j: distances of all rows to j
        if self.metric in CENTERED and not sparse.issparse(rows):
            middle = np.asarray(centers).mean(axis=0)
            rows, centers = rows - middle, rows - middle if centers is rows else centers - middle
        try:
            from sklearn.metrics import pairwise_distances

            return np.asarray(pairwise_distances(rows, centers, metric=self.metric), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"metric={self.metric!r} does not work on this X: {error}") from error

    def _centers(self) -> Any:
        return self.medoid_indices_ if self.metric == "precomputed" else self.cluster_centers_

    def _sample(self, rows: Any, w: np.ndarray, sample_rows: int, seed: int, s: State, t: int) -> loop.Sweep:
        """Search a random sample for medoids; keep them if the cost of all rows is lower than before (CLARA)."""
        chosen = generator(seed, t).choice(len(w), sample_rows, replace=False)
        search = Search(self._distances(rows[chosen], rows[chosen]), w[chosen])
        found = search.draw(self.n_clusters, generator(seed, t, 1))
        for _ in range(self.max_iter):
            found, swaps = search.improve(found)
            if not swaps:
                break
        medoids = chosen[found]
        cost = 0.0
        for at in range(0, len(w), sample_rows):
            cost += float(
                w[at : at + sample_rows] @ self._distances(rows[at : at + sample_rows], rows[medoids]).min(axis=1)
            )
        new = State(medoids, cost) if cost < s.cost else s
        return loop.Sweep(new, new.cost, done=t == SAMPLES - 1)

    def predict(self, X: Table) -> np.ndarray:
        """Return the number of the nearest medoid of each row: (n,)."""
        check_is_fitted(self)
        labels = self._rowwise(_labels_or_minus_one, X, self._measure(), opaque=True)
        if isinstance(labels, np.ndarray) and (labels < 0).any():
            self._refuse(self._blocks(X))
        return labels

    def transform(self, X: Table) -> np.ndarray:
        """Return the distances of each row to the medoids: (n,k)."""
        check_is_fitted(self)
        return self._rowwise(_distances_or_nan, X, self._measure())

    def _measure(self) -> Callable[[Any], np.ndarray]:
        return partial(self._distances, centers=self._centers())

    def _hiding(self) -> tuple[Any, ...]:
        if self.metric == "precomputed":
            raise InputError('distances alone have no cells to hide. Use criterion="stability", or score.')
        return square_costs, _predict_hidden, self.cluster_centers_.astype(np.float64), self.metric

    def score(self, X: Table, y: Any = None) -> float:
        """Return minus the sum of distances of rows to their medoids: higher is better."""
        return -float(self.transform(X).min(axis=1).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.medoid_indices_)


class Search:
    """Distances between rows, in row j those of all rows to row j, and the swaps that lower the cost."""

    def __init__(self, D: np.ndarray, w: np.ndarray):
        self.D, self.w = D, w.astype(np.float64)

    def draw(self, k: int, rng: np.random.Generator) -> np.ndarray:
        """Draw k rows, each in proportion to its distance from the rows before."""
        n = len(self.w)
        chosen = [int(rng.choice(n, p=self.w / self.w.sum()))]
        nearest = self.D[chosen[0]].copy()
        for _ in range(k - 1):
            chance = self.w * nearest
            chance[chosen] = 0.0
            if not chance.sum() > 0:  # all other rows are equal to medoids
                chance = np.ones(n)
                chance[chosen] = 0.0
            chosen.append(int(rng.choice(n, p=chance / chance.sum())))
            nearest = np.minimum(nearest, self.D[chosen[-1]])
        return np.array(chosen)

    def improve(self, medoids: np.ndarray) -> tuple[np.ndarray, int]:
        """Try every row once as a medoid; return the medoids and the number of swaps."""
        medoids, n = medoids.copy(), len(self.w)
        near, second = np.empty(n, np.int64), np.empty(n, np.int64)
        d_near, d_second = np.empty(n), np.empty(n)
        rank_medoids(self.D, medoids, near, second, d_near, d_second)
        least = 1e-12 * float(self.w @ d_near)
        return medoids, swap_medoids(self.D, self.w, medoids, near, second, d_near, d_second, least)

    def cost(self, medoids: np.ndarray) -> float:
        return float(self.w @ self.D[medoids].min(axis=0))


def _swap(search: Search, s: State, t: int) -> loop.Sweep:
    medoids, swaps = search.improve(s.medoids)
    cost = search.cost(medoids)
    return loop.Sweep(State(medoids, cost), cost, {"swaps": swaps}, done=not swaps)


def _distances_or_nan(X: Any, measure: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Compute distances in the dtype of X, or NaN if X is not finite, so that the caller raises an error."""
    if not np.isfinite(X.sum()):
        return np.full((X.shape[0], 1), np.nan, dtype=X.dtype)
    return measure(X).astype(X.dtype)


def _labels_or_minus_one(X: Any, measure: Callable[[Any], np.ndarray]) -> np.ndarray:
    return measure(X).argmin(axis=1) if np.isfinite(X.sum()) else np.full(X.shape[0], -1)


def _predict_hidden(x: np.ndarray, split: Split, Z: np.ndarray, metric: Any) -> np.ndarray:
    """Predict hidden columns by those of the medoid that is nearest over the visible ones."""
    from sklearn.metrics import pairwise_distances

    nearest = pairwise_distances(x[:, split.seen], Z[:, split.seen], metric=metric).argmin(axis=1)
    return Z[nearest][:, split.hidden]
