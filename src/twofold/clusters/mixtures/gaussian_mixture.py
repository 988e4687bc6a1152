"""A mixture of Gaussians.

    maximise  Σ_i w_i log Σ_c π_c N(x_i; m_c, S_c)

One sweep:  each block  responsibilities r_ic ∝ π_c N(x_i; m_c, S_c), and the sums Σr, Σr x, Σr xxᵀ
            then once   π, m, S from the sums
Missing cells stand at their conditional expectation, with their conditional covariance added.
References: Dempster, Laird & Rubin 1977; Ghahramani & Jordan 1994 (missing data); Cappé & Moulines 2009 (batches).
"""

from __future__ import annotations

import warnings
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from twofold.clusters.kmeans.kmeans import KMeans, fit_best
from twofold.clusters.mixtures._gaussian import TYPES, Shape, Sums, densities, em_step, estimate, hard_step
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.data.missing_patterns import Observed, centred, find_patterns, observe
from twofold.core.engine.local import add, engine_for, fingerprint
from twofold.core.estimator import Reorderable, Rescalable, fitting
from twofold.core.numerics.density import MixtureDensity
from twofold.core.params import ITERATIVE, Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.kernels.gaussian_missing import masked_expectation

CHEAP = 2e7  # multiply-adds a sweep of k-means below which several starts cost little


class GaussianMixture(Reorderable, Rescalable, MixtureDensity):
    """A mixture of Gaussians by EM, with weights, missing cells, streams and batches.

    Parameters
    ----------
    n_components : int, default=1
    covariance_type : {"full", "tied", "diag", "spherical", "fixed"}, default="full"
        A matrix each; one matrix for all; variances each; one variance each; or a given covariance.
    covariance : float, array of shape (d,) or (d, d), default=1.0
        The covariance of every component, for ``covariance_type="fixed"``.
    reg : float, default=1e-6
        Added to every variance, as a share of the column's own, so that no component can collapse to a point.
    tol : float, default=1e-6
        EM stops when the mean log-likelihood moves by less than this, relatively.
    max_iter : int, default=200
        Sweeps at most.
    n_init : int, default=1
        Starts, of which the likeliest is kept. Each starts from k-means.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    weights_ : ndarray of shape (c,)
    means_, components_ : ndarray of shape (c, d)
    covariances_ : ndarray
        (c,d,d) for "full", (d,d) for "tied" and "fixed", (c,d) for "diag", (c,) for "spherical".
    history_, n_iter_, converged_
        The objective is the mean negative log-likelihood of the rows.

    References
    ----------
    Dempster, Laird & Rubin (1977), *J. R. Statist. Soc. B* 39, 1-38. Ghahramani & Jordan (1994), *NIPS 6*.

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
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions(set(TYPES))],
        "covariance": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "reg": [Interval(Real, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        **ITERATIVE,
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        covariance: Any = 1.0,
        reg: float = 1e-6,
        tol: float = 1e-6,
        max_iter: int = 200,
        n_init: int = 1,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.covariance = covariance
        self.reg = reg
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    # ---- fitting -----------------------------------------------------------------------------------------------

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> GaussianMixture:
        """Fit to rows that may have missing cells; see :meth:`PCA.fit` for the arguments."""
        data = observe(self, X, sample_weight)
        if data.blocks.shape[0] < self.n_components:
            n = data.blocks.shape[0]
            raise InputError(f"n_components={self.n_components} is more than n_samples={n}. Ask for fewer components.")
        seed = seed_of(self.random_state)
        self.__dict__.pop("sums_", None)
        floor = self._floor(data)
        sweep = self._sweeper(data, floor)
        loop.run(
            self,
            sweep,
            self._start(data, seed, floor),
            fitted=lambda s: self._attributes(s, data.blocks.dtype),
            X=X,
            fingerprint=partial(fingerprint, data.blocks, data.w),
            seed=seed,
        )
        self._warn_of_collapse(data, floor)
        return self

    def _floor(self, data: Observed) -> np.ndarray:
        level = data.columns.level(data.blocks.dtype)
        return self.reg * np.maximum(data.columns.variance, 1e-3 * level) + data.columns.floor(data.blocks.dtype)

    def _sweeper(self, data: Observed, floor: np.ndarray) -> Any:
        engine = engine_for(data.blocks)
        rows, kind = data.blocks.rows(data.w), self.covariance_type

        def sweep(s: Shape, t: int) -> loop.Sweep:
            fixed = engine.broadcast(kind), engine.broadcast(s)
            found = engine.reduce(add, engine.map(em_step, data.blocks, rows, data.patterns, *fixed))
            return loop.Sweep(estimate(found, s, kind, floor), -found.loglik / found.rows)

        return sweep

    def _start(self, data: Observed, seed: int, floor: np.ndarray) -> Shape:
        """Every row to its nearest k-means center, or the end of the likeliest of several fits."""
        if self.n_init > 1:
            return fit_best(self, self.n_init, data.blocks, data.w, seed)._shape(data.columns.mean)
        engine, origin = engine_for(data.blocks), data.columns.mean
        if data.holes:
            centers = self._sampled_centers(data, seed)
        else:
            with loop.quietly():
                model, blocks = self._nearest(data.blocks.shape, seed), data.blocks
                # What is small enough for several starts is brought here: a cluster would spend its time on messages.
                X = blocks if model.n_init == 1 else np.concatenate([blocks[i] for i in range(len(blocks))])
                centers = model.fit(X, sample_weight=data.w).cluster_centers_.astype(np.float64)
        c, d = centers.shape
        spread = np.maximum(data.columns.variance, floor)
        S = self._given(d) if self.covariance_type == "fixed" else np.repeat(np.diag(spread)[None], c, axis=0)
        S = np.repeat(spread[None], c, axis=0) if self.covariance_type in ("diag", "spherical") else S
        S = S[:1] if self.covariance_type == "tied" else S
        s = Shape(np.full(c, 1 / c), centers - origin, S, origin)
        fixed = engine.broadcast(self.covariance_type), engine.broadcast(s)
        parts = engine.map(hard_step, data.blocks, data.blocks.rows(data.w), data.patterns, *fixed)
        return estimate(engine.reduce(add, parts), s, self.covariance_type, floor)

    def _nearest(self, shape: tuple[int, int], seed: int) -> KMeans:
        """The k-means to start from: the best of several while that costs little beside a sweep of EM."""
        starts = int(np.clip(CHEAP / (shape[0] * shape[1] * self.n_components), 1, 10))
        return KMeans(self.n_components, n_init=starts, max_iter=50, random_state=seed)

    def _sampled_centers(self, data: Observed, seed: int) -> np.ndarray:
        """k-means centers of some rows with column means in the holes."""
        n = data.blocks.shape[0]
        rows = np.sort(generator(seed).permutation(n)[:10_000])
        sample = np.concatenate(
            [data.blocks[i][rows[(rows >= a) & (rows < b)] - a] for i, (a, b) in enumerate(_spans(data.blocks))]
        ).astype(np.float64)
        sample = np.where(np.isnan(sample), data.columns.mean, sample)
        w = None if data.w is None else data.w[rows]
        with loop.quietly():
            model = self._nearest(sample.shape, seed).fit(sample, sample_weight=w)
        return model.cluster_centers_

    def _given(self, d: int) -> np.ndarray:
        """The fixed covariance as (1,d,d)."""
        S = np.asarray(self.covariance, dtype=np.float64)
        S = np.diag(np.full(d, float(S))) if S.ndim == 0 else np.diag(S) if S.ndim == 1 else S
        if S.shape != (d, d) or np.linalg.eigvalsh(S).min() <= 0:
            raise InputError(f"covariance must be positive definite of shape ({d}, {d}); got shape {S.shape}.")
        return S[None]

    def _warn_of_collapse(self, data: Observed, floor: np.ndarray) -> None:
        """Name the components that have shrunk to the floor."""
        s = self._shape(data.columns.mean)
        if self.covariance_type == "fixed":
            return
        per = 1 / np.sqrt(floor)
        worst = [np.linalg.eigvalsh(s.matrix(c) * per[:, None] * per).min() for c in range(len(s.S))]
        thin = np.flatnonzero(np.array(worst) < 1.5)
        if len(thin) and data.columns.variance.all():
            warnings.warn(
                f"component(s) {thin.tolist()} of GaussianMixture collapsed: their covariance is held up by reg alone. "
                "Ask for fewer components, raise reg, or use a simpler covariance_type.",
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
        """Add a batch by stepwise EM: the sums of all batches, recent ones counting most."""
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
        old = getattr(self, "sums_", None) or _sums_of(s, self.covariance_type)
        self.sums_ = Sums(*((1 - step) * a + step * b for a, b in zip(old, batch, strict=True)))
        self.origin_ = origin
        new = estimate(self.sums_, s, self.covariance_type, self._floor(data))
        for name, value in self._attributes(new, self.means_.dtype).items():
            setattr(self, name, value)
        self.n_iter_ += 1
        return self

    # ---- using -------------------------------------------------------------------------------------------------

    @property
    def _component_axes(self) -> dict[str, int]:  # type: ignore[override]
        own = {name: 0 for name in ("weights_", "means_", "components_", "sums_.N", "sums_.x")}
        return own if self.covariance_type in ("tied", "fixed") else own | {"covariances_": 0, "sums_.xx": 0}

    @property
    def _column_axes(self) -> dict[str, tuple[int, ...]]:  # type: ignore[override]
        means: dict[str, tuple[int, ...]] = {"means_": (1,), "components_": (1,), "origin_": (0,), "sums_.x": (1,)}
        square = (1, 1) if self.covariance_type in ("diag", "spherical") else (1, 2)
        covariance = {"tied": (0, 1), "fixed": (0, 1), "spherical": ()}.get(self.covariance_type, square)
        return means | {"covariances_": covariance, "sums_.xx": square}

    def rescaled(self, scale: Any) -> Self:
        """See :meth:`Rescalable.rescaled`; "spherical" components become "diag" ones."""
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

    def _joint(self) -> tuple:
        return joint_density, self._shape()

    def impute(self, X: Table, return_std: bool = False) -> Any:
        """X with every NaN replaced by its expectation; with `return_std`, also its standard deviation."""
        filled, std = self._rowwise(_filled, X, self._shape())
        return (filled, std) if return_std else filled

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw new rows, and the components they come from."""
        s = self._shape()
        rng = generator(seed_of(random_state))
        label = rng.choice(len(s.weights), size=n_samples, p=s.weights / s.weights.sum())
        rows = rng.standard_normal((n_samples, s.means.shape[1]))
        for c in range(len(s.weights)):
            rows[label == c] = rows[label == c] @ np.linalg.cholesky(s.matrix(c)).T + s.means[c]
        return (rows + s.origin).astype(self.means_.dtype), label

    def _n_parameters(self) -> int:
        c, d = self.means_.shape
        one = d * (d + 1) // 2
        shape = {"full": c * one, "tied": one, "diag": c * d, "spherical": c, "fixed": 0}[self.covariance_type]
        return shape + c * d + c - 1


def _spans(blocks: Blocks) -> zip:
    return zip(blocks.bounds[:-1], blocks.bounds[1:], strict=True)


def _sums_of(s: Shape, kind: str) -> Sums:
    """The normalised sums that would give this very shape."""
    outer = s.means[:, :, None] * s.means[:, None, :]
    if kind in ("diag", "spherical"):
        xx = s.weights[:, None] * (s.S + s.means**2)
    elif kind == "full":
        xx = s.weights[:, None, None] * (s.S + outer)
    else:
        xx = s.S + (s.weights[:, None, None] * outer).sum(axis=0, keepdims=True)
    return Sums(s.weights, s.weights[:, None] * s.means, xx, 0.0, 1.0)


def joint_density(X: Any, s: Shape) -> np.ndarray:
    """log π_c N(x; m_c, S_c) over the observed cells of each row: (n,c)."""
    patterns = find_patterns(X)[0]
    return densities(centred(X, patterns, s.origin), patterns, s)


def _filled(X: Any, s: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Holes at their expectation over components, and its standard deviation."""
    patterns = find_patterns(X)[0]
    x = centred(X, patterns, s.origin)
    share = softmax(densities(x, patterns, s), axis=1)
    first, second = np.zeros(X.shape), np.zeros(X.shape)
    for c in range(len(s.weights)):
        filled = np.empty(X.shape)
        at = (patterns.mask, patterns.order, patterns.starts, s.means[c], s.matrix(c))
        masked_expectation(x, np.ones(len(x)), *at, filled, np.zeros((X.shape[1],) * 2))
        variance = np.zeros(X.shape)
        for p, seen in enumerate(patterns.mask):
            rows, gone = patterns.order[patterns.starts[p] : patterns.starts[p + 1]], ~seen
            S = s.matrix(c)
            known = (
                np.linalg.solve(S[np.ix_(seen, seen)], S[np.ix_(seen, gone)])
                if seen.any()
                else np.zeros((0, gone.sum()))
            )
            variance[np.ix_(rows, gone)] = np.diag(S)[gone] - (S[np.ix_(gone, seen)] * known.T).sum(axis=1)
        first += share[:, c, None] * filled
        second += share[:, c, None] * (variance + filled**2)
    holes = np.isnan(X)
    std = np.where(holes, np.sqrt(np.maximum(second - first**2, 0.0)), 0.0)
    return np.where(holes, first + s.origin, X).astype(X.dtype), std.astype(X.dtype)
