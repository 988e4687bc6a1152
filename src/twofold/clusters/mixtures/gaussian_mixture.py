"""A mixture of Gaussians.

    maximize  Σ_i w_i log Σ_c π_c N(x_i; m_c, S_c)

One sweep:  each block  responsibilities r_ic ∝ π_c N(x_i; m_c, S_c), and the sums Σr, Σr x, Σr xxᵀ
            then once   π, m, S from the sums
The conditional expectation replaces missing cells, and their conditional covariance is added.
References: Dempster, Laird & Rubin 1977; Ghahramani & Jordan 1994 (missing data); Cappé & Moulines 2009 (batches);
Biernacki, Celeux & Govaert 2003 (starts).
"""

from __future__ import annotations

import copy
import warnings
from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from twofold.clusters.kmeans.assign import Centers
from twofold.clusters.kmeans.kmeans import fit_best
from twofold.clusters.kmeans.seeding import gather_rows
from twofold.clusters.mixtures._gaussian import (
    TYPES,
    Shape,
    Sums,
    densities,
    em_step,
    estimate,
    hard_step,
    random_step,
    variance_floor,
)
from twofold.clusters.mixtures._starts import cluster_several, count_rows, draw_rows, select_start
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.data.missing_patterns import Imputer, Observed, center_rows, find_patterns, mix_fillings, observe
from twofold.core.engine.local import add, engine_for, fetch_rows, fingerprint
from twofold.core.estimator import Reorderable, Rescalable, fitting
from twofold.core.history import History
from twofold.core.numerics.density import MixtureDensity
from twofold.core.params import ITERATIVE, Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.sklearn_shim import callbacks_of
from twofold.core.types import Seed, Table, Weights
from twofold.kernels.gaussian_missing import fill_holes, hole_variances

MAX_THIN_VARIANCE = 0.01  # of a column's variance; a higher floor is intended


class GaussianMixture(Reorderable, Rescalable, Imputer, MixtureDensity):
    """A mixture of Gaussians by EM, with weights, missing cells, streams and batches.

    Parameters
    ----------
    n_components : int, default=1
    covariance_type : {"full", "tied", "diag", "spherical", "fixed"}, default="full"
        One matrix per component; one for all; variances per component; one variance per component; or the fixed
        `covariance`.
    covariance : float, array of shape (d,) or (d, d), default=1.0
        The covariance of every component, for ``covariance_type="fixed"``.
    reg_covar : float, default=1e-6
        Added to every variance, so that no component can collapse to a point; in the units of X, squared.
    tol : float, default=1e-3
        EM stops when the last sweeps, and a tenth of what their trend says is still to come, raise the mean
        log-likelihood of the rows by at most this.
    max_iter : int, default=100
        Maximum number of sweeps; with 0 the result is the start.
    n_init : int, default=1
        Number of fits from different starts; the likeliest is kept, with its history.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        The start. "kmeans": the likeliest of eight clusterings of some thousand rows, after a few sweeps of EM on them;
        "k-means++" and "random_from_data": tiny components at rows drawn by k-means++ or uniformly; "random": random
        responsibilities.
    weights_init, means_init, precisions_init : arrays like weights_, means_ and precisions_, default=None
        A given start. With means_init alone, every row starts in the component of the nearest mean.
    random_state : int, RandomState, Generator or None, default=None
    warm_start : bool, default=False
        True: a further fit starts from the result of the last one.

    Attributes
    ----------
    weights_ : ndarray of shape (c,)
    means_, components_ : ndarray of shape (c, d)
    covariances_ : ndarray
        (c,d,d) for "full", (d,d) for "tied" and "fixed", (c,d) for "diag", (c,) for "spherical".
    precisions_, precisions_cholesky_ : ndarray
        Inverses of the covariances, and their factors: ``precisions_ = P @ P.T``.
    groups_ : ndarray of shape (c,)
        Of a model made by :meth:`merge_components`: the group of each component; labels and responsibilities are those
        of groups.
    lower_bound_, lower_bounds_ : float, list of float
        The mean log-likelihood of the rows before the last sweep, and before each.
    history_, n_iter_, converged_
        The objective is the mean negative log-likelihood of the rows.

    References
    ----------
    Dempster, Laird & Rubin (1977), *J. R. Statist. Soc. B* 39, 1-38. Ghahramani & Jordan (1994), *NIPS 6*.
    Biernacki, Celeux & Govaert (2003), *Comput. Stat. Data Anal.* 41, 561-575 (the start).

    Examples
    --------
    >>> from twofold import GaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-3, 1, size=(300, 2)), rng.normal(3, 0.5, size=(100, 2))])
    >>> model = GaussianMixture(2, covariance_type="spherical", random_state=0).fit(X)
    >>> order = np.argsort(model.means_[:, 0])
    >>> model.weights_[order].round(2), np.sqrt(model.covariances_[order]).round(1)
    (array([0.75, 0.25]), array([1. , 0.5]))
    """

    _allow_nan: ClassVar[bool] = True
    _allow_sparse: ClassVar[bool] = False
    _records: ClassVar[tuple] = (Sums,)
    sums_: Sums
    origin_: np.ndarray
    means_: Annotated[np.ndarray, "k d"]
    components_: Annotated[np.ndarray, "k d"]
    weights_: Annotated[np.ndarray, "k, >= 0"]
    groups_: Annotated[np.ndarray, "k, >= 0, < k"]
    covariances_: Annotated[np.ndarray, "k d d (full) or d d (tied) or k d (diag) or k (spherical) or d d (fixed)"]
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions(set(TYPES))],
        "covariance": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "k-means++", "random", "random_from_data"})],
        "weights_init": [None, "array-like"],
        "means_init": [None, "array-like"],
        "precisions_init": [None, "array-like"],
        "warm_start": ["boolean"],
        **ITERATIVE,
        "max_iter": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        covariance: Any = 1.0,
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        random_state: Seed = None,
        warm_start: bool = False,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.covariance = covariance
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.random_state = random_state
        self.warm_start = warm_start

    # ---- fitting -----------------------------------------------------------------------------------------------

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> GaussianMixture:
        """Fit to rows that may have missing cells; see :meth:`PCA.fit` for the arguments."""
        data = observe(self, X, sample_weight)
        if data.blocks.shape[0] < self.n_components:
            n = data.blocks.shape[0]
            raise InputError(f"n_components={self.n_components} is more than n_samples={n}. Ask for fewer components.")
        seed = seed_of(self.random_state)
        for name in ("sums_", "groups_"):
            self.__dict__.pop(name, None)
        floor = self._floor(data)
        warm = self.warm_start and hasattr(self, "weights_")
        before = self.lower_bound_ if warm else -np.inf
        engine, rows, kind = engine_for(data.blocks), data.blocks.rows(data.w), self.covariance_type

        def sweep(s: Shape, t: int) -> loop.Sweep:
            fixed = engine.broadcast(kind), engine.broadcast(s)
            total = engine.reduce(add, engine.map(em_step, data.blocks, rows, data.patterns, *fixed))
            return loop.Sweep(estimate(total, s, kind, floor), -total.loglik / total.rows)

        def change(history: History) -> float:
            return history.remaining_change() if len(history) > 1 else abs(before + history.columns["objective"][0])

        start, winner = (self._resume(data), None) if warm else self._start(data, seed, floor)
        loop.run(
            self,
            sweep,
            start,
            fitted=lambda s: self._attributes(s, data.blocks.dtype),
            winner=winner,
            X=X,
            fingerprint=partial(fingerprint, data.blocks, data.w),
            seed=seed,
            moved=change,
        )
        self._warn_of_collapse(data, floor)
        return self

    def _floor(self, data: Observed) -> np.ndarray:
        if self.reg_covar == 0 and not data.columns.variance.all() and self.covariance_type != "fixed":
            j = int(np.argmin(data.columns.variance))
            raise InputError(
                f"column {j} of X is constant, and reg_covar=0 leaves it no variance. Drop it, or raise reg_covar."
            )
        return variance_floor(data.columns, data.blocks.dtype, self.reg_covar)

    def _start(self, data: Observed, seed: int, floor: np.ndarray) -> tuple[Shape, GaussianMixture | None]:
        """Return the start, given or by `init_params`; or the result of the likeliest of several fits, and that fit."""
        given = self._check_start(data)
        if self.n_init > 1 and any(part is None for part in given):
            best = fit_best(self, self.n_init, data.blocks, data.w, seed)
            if not callbacks_of(self):
                return best._shape(data.columns.mean), best
            seed = best.random_state  # callbacks see the best fit once more
        weights, means, S = given
        if weights is not None and means is not None and S is not None:
            return Shape(weights, means, S, data.columns.mean), None
        drawn = self._make_start(data, seed, floor, means)
        return drawn._replace(**{k: v for k, v in zip(Shape._fields, given, strict=False) if v is not None}), None

    def _make_start(self, data: Observed, seed: int, floor: np.ndarray, means: np.ndarray | None) -> Shape:
        """Make the start of `init_params`; with given means, every row starts in the component of the nearest."""
        engine, origin, c = engine_for(data.blocks), data.columns.mean, self.n_components
        init, kind = "kmeans" if means is not None else self.init_params, self.covariance_type
        if means is None and init == "kmeans":
            return self._cluster_start(data, seed, floor)
        if means is None and init == "random":
            means = np.zeros((c, data.blocks.shape[1]))
        elif means is None:
            means = self._draw_rows(data, seed) - origin
        tiny = init in ("k-means++", "random_from_data")
        spread = floor if tiny else np.maximum(data.columns.variance, floor)
        s = Shape(np.full(c, 1 / c), means, self._make_covariances(spread), origin)
        if tiny:
            return s
        fixed = engine.broadcast(kind), engine.broadcast(s)
        rows = data.blocks.rows(data.w)
        if init == "random":
            places = Rows((seed, i) for i in range(len(data.blocks)))
            parts = engine.map(random_step, data.blocks, rows, data.patterns, places, *fixed)
        else:
            parts = engine.map(hard_step, data.blocks, rows, data.patterns, *fixed)
        return estimate(engine.reduce(add, parts), s, kind, floor)

    def _make_covariances(self, variances: np.ndarray) -> np.ndarray:
        """Make diagonal covariances of the model's type from these variances (d,), or the fixed ones."""
        c, d = self.n_components, len(variances)
        if self.covariance_type == "fixed":
            return self._fix_covariance(d)
        if self.covariance_type == "spherical":
            return np.full((c, d), variances.mean())
        if self.covariance_type == "diag":
            return np.tile(variances, (c, 1))
        return np.tile(np.diag(variances), (1 if self.covariance_type == "tied" else c, 1, 1))

    def _check_start(self, data: Observed) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
        """Return the caller's start, None for missing parts: weights, means less those of all rows, and covariances."""
        c, d = self.n_components, data.blocks.shape[1]
        weights = _check_init("weights_init", self.weights_init, (c,))
        if weights is not None and (weights.min() < 0 or abs(weights.sum() - 1) > 1e-6):
            raise InputError(f"weights_init={self.weights_init!r}: shares of at least 0 that add up to 1 are needed.")
        means = _check_init("means_init", self.means_init, (c, d))
        return weights, means if means is None else means - data.columns.mean, self._invert_precisions(c, d)

    def _invert_precisions(self, c: int, d: int) -> np.ndarray | None:
        """Return the inverses of `precisions_init`, as in :class:`Shape`."""
        kind = self.covariance_type
        shape = {"full": (c, d, d), "tied": (d, d), "diag": (c, d), "spherical": (c,), "fixed": (d, d)}[kind]
        P = _check_init("precisions_init", self.precisions_init, shape)
        if kind == "fixed":
            if P is not None:
                raise InputError('precisions_init: with covariance_type="fixed" the covariance is fixed. Leave it out.')
            return self._fix_covariance(d)
        if P is None:
            return None
        wide = P.reshape(-1, d, d) if kind in ("full", "tied") else P
        lowest = np.linalg.eigvalsh(wide).min() if wide.ndim == 3 else wide.min()
        if lowest <= 0 or (wide.ndim == 3 and not np.allclose(wide, wide.transpose(0, 2, 1))):
            raise InputError("precisions_init must be symmetric and positive definite: invert covariances to get them.")
        if wide.ndim == 3:
            return np.linalg.inv(wide)
        return np.repeat(1 / wide[:, None], d, axis=1) if kind == "spherical" else 1 / wide

    def _resume(self, data: Observed) -> Shape:
        """Return the result of the last fit as a start."""
        c, d = self.means_.shape
        S, shapes = self.covariances_, {"full": (c, d, d), "diag": (c, d), "spherical": (c,)}
        if (self.n_components, data.blocks.shape[1]) != (c, d) or S.shape != shapes.get(self.covariance_type, (d, d)):
            raise InputError(
                f"warm_start=True: the last fit has means_ {self.means_.shape} and covariances_ {S.shape}, which does "
                f"not suit n_components={self.n_components}, covariance_type={self.covariance_type!r} and "
                f"{data.blocks.shape[1]} columns. Set warm_start=False."
            )
        return self._shape(data.columns.mean)

    def _draw_rows(self, data: Observed, seed: int) -> np.ndarray:
        """Draw rows for a start, with holes at the columns' means."""
        if self.init_params == "k-means++" and self.n_components > 1:
            from sklearn.cluster import kmeans_plusplus

            rows = gather_rows(engine_for(data.blocks), data.blocks).astype(np.float64)
            rows = np.where(np.isnan(rows), data.columns.mean, rows)
            centered = rows - data.columns.mean
            chosen = kmeans_plusplus(centered, self.n_components, sample_weight=data.w, random_state=seed % 2**32)
            return rows[chosen[1]]
        able = np.arange(data.blocks.shape[0]) if data.w is None else np.flatnonzero(data.w)
        chosen = generator(seed).choice(able, self.n_components, replace=len(able) < self.n_components)
        rows = fetch_rows(engine_for(data.blocks), data.blocks, chosen).astype(np.float64)
        return np.where(np.isnan(rows), data.columns.mean, rows)

    def _cluster_start(self, data: Observed, seed: int, floor: np.ndarray) -> Shape:
        """Return the likeliest of several clusterings of some rows, after some sweeps of EM."""
        (n, d), c, kind, origin = data.blocks.shape, self.n_components, self.covariance_type, data.columns.mean
        rows = draw_rows(n, data.w, c, count_rows(c * d * (d + 3) // 2 if kind == "full" else 2 * c * d), seed)
        X = fetch_rows(engine_for(data.blocks), data.blocks, rows).astype(np.float64)
        w = None if data.w is None else data.w[rows]
        patterns, _ = find_patterns(X)
        flat = Shape(
            np.full(c, 1 / c),
            np.zeros((c, d)),
            self._make_covariances(np.maximum(data.columns.variance, floor)),
            origin,
        )

        def begin(centers: Centers) -> Shape:
            s = flat._replace(means=centers.Z + centers.mean - origin)
            return estimate(hard_step(X, w, patterns, kind, s), s, kind, floor)

        def step(s: Shape) -> tuple[Shape, float]:
            found = em_step(X, w, patterns, kind, s)
            return estimate(found, s, kind, floor), found.loglik / found.rows

        filled = np.where(np.isnan(X), origin, X) if data.holes else X
        return select_start(map(begin, cluster_several(filled, c, w, seed)), step)

    def _fix_covariance(self, d: int) -> np.ndarray:
        """Return the fixed covariance as (1,d,d)."""
        S = np.asarray(self.covariance, dtype=np.float64)
        S = np.diag(np.full(d, float(S))) if S.ndim == 0 else np.diag(S) if S.ndim == 1 else S
        if S.shape != (d, d) or np.linalg.eigvalsh(S).min() <= 0:
            raise InputError(f"covariance must be positive definite of shape ({d}, {d}); got shape {S.shape}.")
        return S[None]

    def _warn_of_collapse(self, data: Observed, floor: np.ndarray) -> None:
        """Warn of components that have shrunk to the floor, unless a wide floor is intended."""
        variance = data.columns.variance
        if self.covariance_type == "fixed" or not variance.all() or self.max_iter == 0:
            return
        s, (j, *_) = self._shape(data.columns.mean), np.argsort(variance)
        if floor[j] > variance[j]:
            thin = np.arange(len(s.S))
            why = f"Column {j} has a variance of {variance[j]:.1e} in all: scale it, or lower reg_covar."
        else:
            thin = np.flatnonzero(
                (_min_variances(s, floor) < 1.5) & (_min_variances(s, variance) < 2 * MAX_THIN_VARIANCE)
            )
            why = "Ask for fewer components, raise reg_covar, or use a simpler covariance_type."
        if len(thin):
            warnings.warn(
                f"component(s) {thin.tolist()} of GaussianMixture collapsed: their covariance is held up by "
                f"reg_covar={self.reg_covar:g} alone. {why}",
                UserWarning,
                stacklevel=2,
            )

    def _attributes(self, s: Shape, dtype: np.dtype) -> dict:
        kind = self.covariance_type
        S = s.S[:, 0] if kind == "spherical" else s.S[0] if kind in ("tied", "fixed") else s.S
        means = (s.means + s.origin).astype(dtype)
        return {
            "weights_": s.weights.astype(dtype),
            "means_": means,
            "components_": means,
            "covariances_": S.astype(dtype),
        }

    def partial_fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> GaussianMixture:
        """Add a batch by stepwise EM: the sums of all batches, with the largest weight for the latest."""
        if not hasattr(self, "weights_"):
            return self.fit(X, sample_weight=sample_weight)
        data = observe(self, X, sample_weight, reset=False)
        engine, origin = engine_for(data.blocks), self.means_.astype(np.float64).mean(axis=0)
        if hasattr(self, "origin_"):
            origin = self.origin_
        s = self._shape(origin)
        fixed = engine.broadcast(self.covariance_type), engine.broadcast(s)
        parts = engine.map(em_step, data.blocks, data.blocks.rows(data.w), data.patterns, *fixed)
        found = engine.reduce(add, parts)
        batch = Sums(found.N / found.rows, found.x / found.rows, found.xx / found.rows, found.loglik / found.rows, 1.0)
        step = (self.n_iter_ + 2) ** -0.7
        old = getattr(self, "sums_", None) or _sums_from(s, self.covariance_type)
        self.sums_ = Sums(*((1 - step) * a + step * b for a, b in zip(old, batch, strict=True)))
        self.origin_ = origin
        new = estimate(self.sums_, s, self.covariance_type, self._floor(data))
        for name, value in self._attributes(new, self.means_.dtype).items():
            setattr(self, name, value)
        self.n_iter_ += 1
        return self

    # ---- applying ----------------------------------------------------------------------------------------------

    @property
    def _component_axes(self) -> dict[str, int]:  # type: ignore[override]
        own = {name: 0 for name in ("weights_", "means_", "components_", "groups_", "sums_.N", "sums_.x")}
        return own if self.covariance_type in ("tied", "fixed") else own | {"covariances_": 0, "sums_.xx": 0}

    @property
    def _column_axes(self) -> dict[str, tuple[int, ...]]:  # type: ignore[override]
        means: dict[str, tuple[int, ...]] = {"means_": (1,), "components_": (1,), "origin_": (0,), "sums_.x": (1,)}
        square = (1, 1) if self.covariance_type in ("diag", "spherical") else (1, 2)
        covariance = {"tied": (0, 1), "fixed": (0, 1), "spherical": ()}.get(self.covariance_type, square)
        return means | {"covariances_": covariance, "sums_.xx": square}

    def rescaled(self, scale: Any) -> Self:
        """See :meth:`Rescalable.rescaled`; "spherical" components become "diag"."""
        model = super().rescaled(scale)
        if self.covariance_type == "fixed":
            model.covariance = model.covariances_
        elif self.covariance_type == "spherical":
            model.covariance_type = "diag"
            model.covariances_ = (self.covariances_[:, None] * np.square(scale)).astype(self.covariances_.dtype)
        return model

    def _shape(self, origin: np.ndarray | None = None) -> Shape:
        check_is_fitted(self)
        means, S = self.means_.astype(np.float64), self.covariances_.astype(np.float64)
        origin = means.mean(axis=0) if origin is None else origin
        if self.covariance_type == "spherical":
            S = np.repeat(S[:, None], means.shape[1], axis=1)
        elif self.covariance_type in ("tied", "fixed"):
            S = S[None]
        return Shape(self.weights_.astype(np.float64), means - origin, S, origin)

    @property
    def lower_bounds_(self) -> list[float]:
        return [-value for value in self.history_["objective"]]

    @property
    def lower_bound_(self) -> float:
        bounds = self.lower_bounds_
        return bounds[-1] if bounds else -np.inf

    @property
    def precisions_cholesky_(self) -> np.ndarray:
        S = self.covariances_
        if self.covariance_type in ("diag", "spherical"):
            return 1 / np.sqrt(S)
        L = np.linalg.cholesky(S.astype(np.float64))
        return np.swapaxes(np.linalg.inv(L), -1, -2).astype(S.dtype)

    @property
    def precisions_(self) -> np.ndarray:
        P = self.precisions_cholesky_
        return P**2 if self.covariance_type in ("diag", "spherical") else P @ np.swapaxes(P, -1, -2)

    def merge_components(self, groups: Any) -> Self:
        """A copy of the fitted model in which several components may be one group.

        Parameters
        ----------
        groups : array of shape (c,)
            The group 0, 1, ... of each component. ``predict`` and ``predict_proba`` then tell groups; densities stay.
        """
        check_is_fitted(self)
        groups = np.asarray(groups)
        if groups.shape != self.weights_.shape or not np.array_equal(np.unique(groups), np.arange(groups.max() + 1)):
            raise InputError(f"groups={groups.tolist()}: one of 0, 1, ... for each of {len(self.weights_)} components.")
        model = copy.copy(self)
        model.groups_ = groups.astype(np.int64)
        return model

    def _joint(self) -> tuple:
        if hasattr(self, "groups_"):
            return group_density, self._shape(), self.groups_
        return joint_density, self._shape()

    def _imputer(self) -> tuple[Any, ...]:
        return _fill, self._shape()

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw new rows and their components, sorted by component; see :meth:`Mixture.sample`."""
        s = self._shape()
        rng, label = self._draw_components(s.weights, n_samples, random_state)
        rows = rng.standard_normal((n_samples, s.means.shape[1]))
        for c in range(len(s.weights)):
            rows[label == c] = rows[label == c] @ np.linalg.cholesky(s.matrix(c)).T + s.means[c]
        return (rows + s.origin).astype(self.means_.dtype), label

    def _n_parameters(self) -> int:
        c, d = self.means_.shape
        one = d * (d + 1) // 2
        shape = {"full": c * one, "tied": one, "diag": c * d, "spherical": c, "fixed": 0}[self.covariance_type]
        return shape + c * d + c - 1


def _min_variances(s: Shape, variance: np.ndarray) -> np.ndarray:
    """Return the least variance of each component in any direction, in units of these variances (d,) of columns."""
    per = 1 / np.sqrt(variance)
    return np.array([np.linalg.eigvalsh(s.matrix(c) * per[:, None] * per).min() for c in range(len(s.S))])


def _check_init(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    """Check the shape of a part of the caller's start."""
    if value is None:
        return None
    given = np.asarray(value, dtype=np.float64)
    if given.shape != shape or not np.isfinite(given).all():
        raise InputError(f"{name} has shape {given.shape}; finite numbers of shape {shape} are needed.")
    return given


def _sums_from(s: Shape, kind: str) -> Sums:
    """Return the normalized sums whose estimate is this shape."""
    outer = s.means[:, :, None] * s.means[:, None, :]
    if kind in ("diag", "spherical"):
        xx = s.weights[:, None] * (s.S + s.means**2)
    elif kind == "full":
        xx = s.weights[:, None, None] * (s.S + outer)
    else:
        xx = s.S + (s.weights[:, None, None] * outer).sum(axis=0, keepdims=True)
    return Sums(s.weights, s.weights[:, None] * s.means, xx, 0.0, 1.0)


def joint_density(X: Any, s: Shape) -> np.ndarray:
    """Compute log π_c N(x; m_c, S_c) over the observed cells of each row: (n,c)."""
    patterns = find_patterns(X)[0]
    return densities(center_rows(X, patterns, s.origin), patterns, s)


def group_density(X: Any, s: Shape, groups: np.ndarray) -> np.ndarray:
    """Compute log Σ π_c N(x; m_c, S_c) over the components of each group: (n, groups)."""
    joint = joint_density(X, s)
    return np.column_stack([logsumexp(joint[:, groups == g], axis=1) for g in range(groups.max() + 1)])


def _fill(X: Any, s: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Fill holes with their expectation over components; also return its standard deviation."""
    patterns = find_patterns(X)[0]
    x = center_rows(X, patterns, s.origin)

    def fill_by(c: int) -> tuple[np.ndarray, np.ndarray]:
        filled, variance = np.empty(X.shape), np.empty(X.shape)
        at = (patterns.mask, patterns.order, patterns.starts, s.means[c], s.matrix(c))
        fill_holes(x, np.ones(len(x)), *at, filled, np.zeros((X.shape[1],) * 2))
        variances = np.zeros(patterns.mask.shape)
        hole_variances(patterns.mask, s.matrix(c), variances)
        variance[patterns.order] = np.repeat(variances, np.diff(patterns.starts), axis=0)
        return filled, variance

    share = softmax(densities(x, patterns, s), axis=1)
    filled, std = mix_fillings(X, share, map(fill_by, range(len(s.weights))))
    return np.where(np.isnan(X), filled + s.origin, X).astype(X.dtype), std.astype(X.dtype)
