"""k-means.

    minimize  Σ w ‖x − z_c(x)‖²   over centers Z (k,d) and the label c of every row: a factorization X ≈ UZ, U one-hot

One sweep:  each block  labels ← nearest center, if the bounds do not decide; changes in counts and sums
            then once   Z ← sums / counts; a center left empty moves to the farthest row
References: Lloyd 1982; Ding et al. 2015 (bounds).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple, cast

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from twofold.clusters.kmeans import seeding
from twofold.clusters.kmeans.assign import (
    MAX_DIRECT_COLUMNS,
    Centers,
    assign,
    find_nearest,
    label_rows,
    measure_costs,
    measure_distances,
    measure_half_gaps,
    merge,
    wrap_centers,
)
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import add, engine_for, fingerprint, stack_rows
from twofold.core.estimator import Model, Reorderable, Rescalable, fitting
from twofold.core.heldout import SQUARED, predict_by_centers, square_costs
from twofold.core.history import History
from twofold.core.numerics.moments import column_moments
from twofold.core.params import ITERATIVE, Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.sklearn_shim import callbacks_of
from twofold.core.types import Seed, Table, Weights

INITS = {"auto", "k-means++", "plain-k-means++", "k-means||", "random"}
MAX_BOUND_BYTES = 256 * 10**6  # independent of the memory budget, so that a file gives the same bits
MAX_STARTS = 10  # for n_init="auto"
CHEAP_SWEEP_OPS = 2e8  # multiply-adds of a sweep below which several starts are cheap
MAX_DIRECT_OPS = 2048  # multiply-adds of a row up to which computing all distances is as fast as using bounds


class State(NamedTuple):
    """Centers less the mean, the counts and sums they are computed from, and the kept values of every block."""

    Z: np.ndarray  # (k,d)
    drift: np.ndarray  # (k,)
    counts: np.ndarray  # (k,)
    sums: np.ndarray  # (k,d)
    order: np.ndarray  # (k,) number of each among the starting centers, sorted by group
    group: np.ndarray | None  # (k,)
    kept: Rows


class KMeans(Reorderable, Rescalable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Model):
    """k-means: every row belongs to the nearest of k centers, every center is the mean of its rows.

    Lloyd's sweeps as matrix products, with exact bounds that skip rows whose center cannot have changed.

    Parameters
    ----------
    n_clusters : int, default=8
    init : {"auto", "k-means++", "plain-k-means++", "k-means||", "random"}, array of shape (k, d) or function, \
            default="auto"
        The start. "auto" is k-means++ for small data, and k-means‖ or fits to a sample for large. "k-means++" is
        greedy, as in scikit-learn: each center is the best of a few draws; "plain-k-means++" draws once, and has the
        proved bound of 8(ln k + 2) times the least cost. A function is called with the rows, ``n_clusters`` and
        ``random_state``, and returns the centers.
    n_init : int or "auto", default="auto"
        Number of starts; the best is kept. "auto" is 10 for "random" and for a function, 1 for "k-means++", plain or
        not, and for an array; for the others up to 10 if sweeps are cheap. Of long tables, "auto" of both is the best
        of up to 10 fits to a sample of some thousand rows, each improved by swaps.
    max_iter : int, default=300
        Sweeps at most.
    tol : float, default=1e-4
        Stop when the sum of squares of the centers' steps is at most this share of the columns' mean variance; with 0,
        when no row moves.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    cluster_centers_, components_ : ndarray of shape (k, d)
    labels_ : ndarray of shape (n,)
    inertia_ : float
        The cost, Σ w ‖x − z‖².
    counts_ : ndarray of shape (k,)
        The weight of each cluster.
    scale_ : ndarray of shape (d,)
        Of a model made by :meth:`rescaled`: distances are between rows and centers divided by this.
    history_, n_iter_, converged_
        The objective is the cost; ``moved`` the rows that changed their cluster; ``shift`` is compared with `tol`.

    References
    ----------
    Lloyd (1982), *IEEE Trans. Inf. Theory* 28, 129-137. Ding et al. (2015), *ICML* 37 (bounds by groups of centers).
    Bahmani et al. (2012), *PVLDB* 5 (k-means‖). Lattanzi & Sohler (2019), *ICML* 36 (swaps).

    Examples
    --------
    >>> from twofold import KMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, size=(100, 2)) for c in (0, 1, 2)])
    >>> model = KMeans(3, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_[:, 0]).round(1) + 0.0
    array([0., 1., 2.])
    """

    _turns, _heldout_unit = True, SQUARED
    cluster_centers_: Annotated[np.ndarray, "k d"]
    scale_: np.ndarray
    _component_axes: ClassVar[dict[str, int]] = {"cluster_centers_": 0, "components_": 0, "counts_": 0}
    _component_numbers: ClassVar[tuple[str, ...]] = ("labels_",)
    _column_axes: ClassVar[dict[str, tuple[int, ...]]] = {"cluster_centers_": (1,), "components_": (1,), "scale_": (0,)}
    _instead: ClassVar[dict[str, str]] = {
        "algorithm": "the shape of X decides on bounds, which change no result. Leave it out."
    }
    components_: Annotated[np.ndarray, "k d"]
    counts_: Annotated[np.ndarray, "k, >= 0"]
    labels_: Annotated[np.ndarray, "n, >= 0, < k"]
    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions(INITS), "array-like", "callable"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        **ITERATIVE,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "auto",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Seed = None,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    # ---- fitting -----------------------------------------------------------------------------------------------

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> KMeans:
        """Find the centers; see :meth:`PCA.fit` for the arguments."""
        self.__dict__.pop("scale_", None)
        blocks = self._blocks(X, reset=True)
        w = self._weights(blocks, sample_weight)
        self._check_k(blocks)
        engine = engine_for(blocks)
        columns = column_moments(engine, blocks, w)
        if not np.isfinite(columns.mean).all() or columns.missing:
            self._refuse(blocks)
        limit = 1e4 if blocks.dtype == np.float64 else 10.0
        far = not blocks.is_sparse and bool(np.any(columns.mean**2 > limit * np.maximum(columns.variance, 1e-300)))
        mean = columns.mean if not blocks.is_sparse else np.zeros(blocks.shape[1])
        seed = seed_of(self.random_state)
        total = float((columns.scatter + columns.weight * (columns.mean - mean) ** 2).sum())
        Z, winner = self._start(seeding.Seeding(engine, blocks, w, mean, far, self.n_clusters, seed))
        rows = blocks.rows(w)
        level = max(float(columns.variance.mean()), 1e-300)

        def sweep(s: State, t: int) -> loop.Sweep:
            gaps = np.zeros(len(s.Z)) if s.group is None else measure_half_gaps(s.Z)
            centers = engine.broadcast(Centers(s.Z, mean, far, s.drift, s.group, gaps))
            kept, found = engine.reduce(merge, engine.map(assign, blocks, rows, s.kept, centers), keep=True)
            new = update(s, found, kept)
            cost = max(total - float((new.sums**2).sum(axis=1) @ (1 / np.maximum(new.counts, 1e-300))), 0.0)
            shift = float(((new.Z - s.Z) ** 2).sum()) / level
            return loop.Sweep(new, cost, {"moved": found.moved, "shift": shift}, done=found.moved == 0)

        k, d = Z.shape
        order, group = group_centers(Z, count_groups(k, blocks))
        nothing = Rows([None] * len(blocks))
        empty = State(Z[order] - mean, np.zeros(k), np.zeros(k), np.zeros((k, d)), order, group, nothing)
        loop.run(
            self,
            sweep,
            empty,
            fitted=lambda s: self._attributes(s, mean, blocks.dtype),
            winner=winner,
            X=X,
            fingerprint=partial(fingerprint, blocks, w),
            seed=seed,
            moved=_last_shift,
        )
        self._finish(blocks, w)
        return self

    def _check_k(self, blocks: Blocks) -> None:
        n, d = blocks.shape
        if self.n_clusters > n:
            raise InputError(f"n_clusters={self.n_clusters} is more than n_samples={n}. Ask for fewer clusters.")
        if not (isinstance(self.init, str) or callable(self.init)):
            _check_centers(self.init, (self.n_clusters, d))

    def _start(self, s: seeding.Seeding) -> tuple[np.ndarray, KMeans | None]:
        """Return the starting centers: those of the caller, drawn ones, or the result of the best of several fits."""
        if not (isinstance(self.init, str) or callable(self.init)):
            return np.asarray(self.init, dtype=np.float64), None
        starts = self._count_starts(s.blocks.shape) if self.n_init == "auto" else int(self.n_init)
        samples = seeding.count_sample_fits(s.blocks, s.k) if self.n_init == self.init == "auto" else 0
        if samples > starts:
            return self._start_from_sample(s, samples), None
        if starts > 1:
            best = fit_best(self, starts, s.blocks, s.w, s.seed, cost=lambda model: model.inertia_)
            if not callbacks_of(self):
                return best.cluster_centers_.astype(np.float64), best
            s = s._replace(seed=best.random_state)  # callbacks see the best fit once more
        if callable(self.init):
            rows = seeding.gather_rows(s.engine, s.blocks)
            centers = self.init(rows, s.k, random_state=np.random.RandomState(s.seed % 2**32))
            return _check_centers(centers, (s.k, s.blocks.shape[1])), None
        return seeding.draw_centers(s, self.init), None

    def _start_from_sample(self, s: seeding.Seeding, fits: int) -> np.ndarray:
        """Return the centers of the best of several fits to a sample, each improved by swaps."""
        rows = seeding.draw_sample(s)
        best, least_cost = rows[: s.k], np.inf
        for t in range(fits):
            seed, start = seed_of(generator(s.seed, 2, t)), cast(Any, "k-means++")
            for _ in range(2):
                one = KMeans(s.k, init=start, n_init=1, max_iter=seeding.SAMPLE_SWEEPS, random_state=seed)
                with loop.quietly():
                    one.fit(rows)
                if one.inertia_ < least_cost:
                    best, least_cost = one.cluster_centers_, one.inertia_
                start = seeding.swap_centers(rows, one.cluster_centers_, generator(s.seed, 3, t))
                if np.array_equal(start, one.cluster_centers_):
                    break
        return best + s.mean

    def _count_starts(self, shape: tuple[int, int]) -> int:
        """Return the number of starts for n_init="auto"."""
        if self.init in ("k-means++", "plain-k-means++"):
            return 1
        cheap = int(np.clip(CHEAP_SWEEP_OPS / (shape[0] * shape[1] * self.n_clusters), 1, MAX_STARTS))
        return MAX_STARTS if self.init == "random" or callable(self.init) else cheap

    def _finish(self, blocks: Blocks, w: np.ndarray | None) -> None:
        """Set labels and cost for the final centers; warn if clusters are missing."""
        engine = engine_for(blocks)
        parts = engine.map(_label_block, blocks, blocks.rows(w), engine.broadcast(self._centers()))
        labels, (self.inertia_, self.counts_) = engine.reduce(add, parts, keep=True)
        self.labels_ = stack_rows(labels.local(), blocks.shape[0])
        found = int(np.count_nonzero(self.counts_))
        if found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters ({self.n_clusters}). "
                "Possibly due to duplicate points in X: ask for fewer clusters.",
                ConvergenceWarning,
                stacklevel=2,
            )

    def _attributes(self, s: State, mean: np.ndarray, dtype: np.dtype) -> dict:
        back = np.argsort(s.order)  # in the order of the start
        centers = (s.Z[back] + mean).astype(dtype)
        return {"cluster_centers_": centers, "components_": centers, "counts_": s.counts[back]}

    def partial_fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> KMeans:
        """Add a batch: every center moves to the mean of all its rows, including those of this batch.

        The first batch is clustered as in :meth:`fit`.
        """
        if not hasattr(self, "counts_"):
            return self.fit(X, sample_weight=sample_weight)
        blocks = self._blocks(X)
        w = self._weights(blocks, sample_weight)
        engine = engine_for(blocks)
        centers = self._centers()
        parts = engine.map(assign, blocks, blocks.rows(w), Rows([None] * len(blocks)), engine.broadcast(centers))
        _, found = engine.reduce(merge, parts, keep=True)
        if not np.isfinite(found.sums).all():
            self._refuse(blocks)
        self.counts_ = self.counts_ + found.counts
        step = (found.sums - found.counts[:, None] * centers.Z) / np.maximum(self.counts_, 1e-300)[:, None]
        centers = (centers.Z + step + centers.mean) * getattr(self, "scale_", 1.0)
        self.cluster_centers_ = centers.astype(self.cluster_centers_.dtype)
        self.components_ = self.cluster_centers_
        self.labels_ = self.predict(X)
        return self

    # ---- applying ----------------------------------------------------------------------------------------------

    def _blocks(self, X: Any, *, reset: bool = False, **options: Any) -> Any:
        blocks = super()._blocks(X, reset=reset, **options)
        return blocks.divide_columns(self.scale_) if hasattr(self, "scale_") else blocks

    def _centers(self) -> Centers:
        check_is_fitted(self)
        Z = self.cluster_centers_.astype(np.float64) / getattr(self, "scale_", 1.0)
        mean = Z.mean(axis=0)
        limit = 1e4 if self.cluster_centers_.dtype == np.float64 else 10.0
        far = bool(np.any(mean**2 > limit * Z.var(axis=0)))
        return wrap_centers(Z - mean, mean, far)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def predict(self, X: Table) -> np.ndarray:
        """Return the nearest center of each row."""
        return self._rowwise(label_rows, X, self._centers(), opaque=True)

    def transform(self, X: Table) -> np.ndarray:
        """Return the distance of each row to every center: (n,k)."""
        return self._rowwise(measure_distances, X, self._centers())

    def icl(self, X: Table) -> float:
        """Compute the integrated completed likelihood on X, BIC of rows and clusters together: lower is better.

        k-means is the mixture of equally wide round clusters in which every row belongs to one: with m_c of the n rows
        in cluster c, ``n d log(2πe cost / (n d)) − 2 Σ m_c log(m_c / n) + k (d + 1) log n``. `select`
        chooses the number of clusters by it; a cluster of another shape may count as several. Reference:
        Biernacki, Celeux & Govaert (2000), *IEEE PAMI* 22, 719-725.
        """
        cost, labels = np.asarray(self._rowwise(measure_costs, X, self._centers())), np.asarray(self.predict(X))
        (k, d), n = self.cluster_centers_.shape, len(labels)
        if k >= n:
            return np.inf  # with one row per cluster no likelihood is finite
        sizes = np.bincount(labels)
        sizes = sizes[sizes > 0]
        variance = max(float(cost.sum(dtype=np.float64)) / (n * d), np.finfo(np.float64).tiny)
        fit = n * d * (np.log(2 * np.pi * variance) + 1) - 2 * float(sizes @ np.log(sizes / n))
        return float(fit + k * (d + 1) * np.log(n))

    def _criterion(self, X: Table, grid: dict[str, list]) -> tuple[str, str]:
        return "icl", (
            "k-means is a mixture of equally wide round clusters in which every row belongs to one, and BIC of rows "
            "and clusters (ICL) finds their number"
        )

    def _hiding(self) -> tuple:
        return square_costs, predict_by_centers, self.cluster_centers_ / getattr(self, "scale_", np.float64(1))

    def score(self, X: Table, y: Any = None, sample_weight: Weights = None) -> float:
        """Return minus the cost of the rows: higher is better."""
        cost = self._rowwise(measure_costs, X, self._centers())
        return -float(np.sum(cost if sample_weight is None else cost * np.asarray(sample_weight)))


def _last_shift(history: History) -> float:
    return history.columns["shift"][-1]


def _check_centers(centers: Any, shape: tuple[int, int]) -> np.ndarray:
    """Check the caller's starting centers."""
    Z = np.asarray(centers, dtype=np.float64)
    if Z.shape != shape or not np.isfinite(Z).all():
        raise InputError(f"init has shape {Z.shape}; {shape} centers are needed, of finite numbers.")
    return Z


def fit_best(
    model: Any, starts: int, blocks: Blocks, w: np.ndarray | None, seed: int, cost: Callable | None = None
) -> Any:
    """Return the best of several fits from different starts: least in `cost`, or in the last objective."""
    best, least_cost = None, np.inf
    for t in range(starts):
        one = clone(model).set_params(n_init=1, random_state=seed_of(generator(seed, t))).set_callbacks()
        with loop.quietly():
            one.fit(blocks, sample_weight=w)
        value = one.history_["objective"][-1] if cost is None else cost(one)
        if best is None or value < least_cost:
            best, least_cost = one, value
    return best


def update(s: State, sums: Any, kept: Rows) -> State:
    """The shared half-step: compute means of the rows; an empty center moves to the farthest row."""
    counts, total = s.counts + sums.counts, s.sums + sums.sums
    full = counts > 1e-12 * counts.sum()
    Z = np.where(full[:, None], total / np.maximum(counts, 1e-300)[:, None], s.Z)
    if not full.all() and sums.distance > 0:
        Z[int(np.argmin(full))] = sums.farthest
    # The factor covers rounding, so that the bounds stay valid.
    drift = np.sqrt(((Z - s.Z) ** 2).sum(axis=1)) * (1 + 1e-5)
    return State(Z, drift, counts, total, s.order, s.group, kept)


def count_groups(k: int, blocks: Blocks) -> int:
    """Return the number of groups of centers with a bound: one for about five centers, at most four or a quarter of
    the row's columns. There are none if computing all distances is as cheap, or if the bounds of all rows would take
    too much memory beside a stream."""
    n, d = blocks.shape
    if d <= MAX_DIRECT_COLUMNS and k * d <= MAX_DIRECT_OPS and not blocks.is_sparse:
        return 0
    room = (MAX_BOUND_BYTES // max(n, 1) - 4 - blocks.dtype.itemsize) // blocks.dtype.itemsize
    return int(min(max(1, min(k // 5, max(d // 4, 4))), max(room, 0)))


def group_centers(Z: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return an order of the centers that puts near ones together, and the group of each in that order."""
    if count <= 1:
        return np.arange(len(Z)), np.zeros(len(Z), np.int64) if count else None
    from sklearn.cluster import KMeans as SklearnKMeans

    near = SklearnKMeans(count, n_init=1, max_iter=5, random_state=0).fit_predict(Z)
    order = np.argsort(near, kind="stable")
    return order, np.unique(near[order], return_inverse=True)[1].astype(np.int64)


def _label_block(X: Any, w: np.ndarray | None, c: Centers) -> tuple[np.ndarray, tuple[float, np.ndarray]]:
    """Return the final labels of a block, its cost, and the weight of each cluster."""
    label, cost, _ = find_nearest(X, c)
    total = float(cost.sum(dtype=np.float64) if w is None else cost @ w)
    return label, (total, np.bincount(label, weights=w, minlength=len(c.Z)).astype(np.float64))
