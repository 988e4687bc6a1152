"""A mixture of any component: the general EM, in log space.

    maximize  Σ_i w_i log Σ_c π_c p(x_i; θ_c)

One sweep:  each block  responsibilities r_ic ∝ π_c p(x_i; θ_c), and the component's own sums under them
            then once   π from Σr, every θ_c by the component's own estimate
Reference: Dempster, Laird & Rubin 1977.
"""

from __future__ import annotations

import os
from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.clusters.kmeans.assign import Centers, label_rows
from twofold.clusters.kmeans.kmeans import fit_best
from twofold.clusters.mixtures._gaussian import share_out
from twofold.clusters.mixtures._starts import cluster_several, count_rows, draw_rows, select_start
from twofold.clusters.mixtures.components import READY, by_name
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import add, engine_for, fetch_rows, fingerprint
from twofold.core.estimator import Reorderable, fitting
from twofold.core.history import History
from twofold.core.numerics.density import MixtureDensity
from twofold.core.numerics.moments import column_moments
from twofold.core.params import ITERATIVE, HasMethods, Interval
from twofold.core.seeds import seed_of
from twofold.core.sklearn_shim import callbacks_of
from twofold.core.types import Seed, Table, Weights

UNIFORM_SHARE = 0.01  # of every row at the start is divided among all components, so that none is empty


class State(NamedTuple):
    """The shared factor: π, and one tuple of arrays per component."""

    weights: np.ndarray  # (c,)
    theta: Rows


class Sums(NamedTuple):
    """Sums of a block."""

    N: np.ndarray  # (c,)
    parts: tuple  # one tuple of arrays per component
    loglik: float
    rows: float


class Mixture(Reorderable, MixtureDensity):
    """A mixture of a component that you choose or write: any density with a weighted maximum-likelihood estimate.

    Parameters
    ----------
    component : str or object, default="gaussian"
        "bernoulli", "multinomial", "poisson", "gaussian" (also "gaussian-diag", "gaussian-spherical") or "ppca" (also
        with its number of directions, "ppca-3"); or any object with three methods: ``log_density(X, theta)`` -> (n,),
        ``sums(X, w)`` -> tuple of arrays that are additive over rows, ``estimate(sums)`` -> theta, a tuple of arrays.
        See `mixtures.components` for optional methods. Only a model whose component is given by name can be saved.
    n_components : int, default=2
    tol, max_iter, n_init, random_state
        As for :class:`GaussianMixture`.

    Attributes
    ----------
    weights_ : ndarray of shape (c,)
    parameters_ : tuple of ndarray
        The arrays of theta in float64, each with one entry per component: ``parameters_[0][c]``.
    history_, n_iter_, converged_
        The objective is the mean negative log-likelihood of the rows.

    References
    ----------
    Dempster, Laird & Rubin (1977), *J. R. Statist. Soc. B* 39, 1-38.

    Examples
    --------
    A component of your own, waiting times with a mean θ in every column:

    >>> from twofold import Mixture
    >>> class Exponential:
    ...     def log_density(self, X, theta):
    ...         return -(X / theta[0] + np.log(theta[0])).sum(axis=1)
    ...
    ...     def sums(self, X, w):
    ...         return w.sum(), w @ X
    ...
    ...     def estimate(self, sums):
    ...         return (sums[1] / sums[0],)
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.exponential(1, (3000, 4)), rng.exponential(20, (1000, 4))])
    >>> model = Mixture(Exponential(), 2, random_state=0).fit(X)
    >>> order = np.argsort(model.parameters_[0][:, 0])
    >>> model.weights_[order].round(2), model.parameters_[0][order].mean(axis=1).round()
    (array([0.75, 0.25]), array([ 1., 20.]))
    """

    weights_: Annotated[np.ndarray, "k, >= 0"]
    parameters_: Annotated[tuple, "k ..."]
    _component_axes: ClassVar[dict[str, int]] = {"weights_": 0, "parameters_": 0}
    _parameter_constraints: ClassVar[dict] = {
        "component": [str, HasMethods(["log_density", "sums", "estimate"])],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        **ITERATIVE,
    }

    def __init__(
        self,
        component: Any = "gaussian",
        n_components: int = 2,
        *,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        random_state: Seed = None,
    ):
        self.component = component
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def _component(self) -> Any:
        return by_name(self.component) if isinstance(self.component, str) else self.component

    @property
    def _allow_sparse(self) -> bool:  # type: ignore[override]
        return getattr(self._component(), "sparse", False)

    def save(self, path: str | os.PathLike) -> None:
        """Save like :meth:`Model.save`, for components given by name."""
        check_is_fitted(self)
        if not isinstance(self.component, str):
            raise InputError(
                f"component={self.component!r} is code, which a model file cannot hold. Only a Mixture whose component "
                f"is given by name ({', '.join(READY)}, gaussian-diag, ppca-3, ...) can be saved."
            )
        super().save(path)

    # ---- fitting -----------------------------------------------------------------------------------------------

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Mixture:
        """Fit by EM; see :meth:`PCA.fit` for the arguments."""
        blocks = self._blocks(X, reset=True, min_rows=2)
        if blocks.shape[0] < self.n_components:
            raise InputError(
                f"n_components={self.n_components} is more than n_samples={blocks.shape[0]}. Ask for fewer components."
            )
        w = self._weights(blocks, sample_weight)
        engine, rows = engine_for(blocks), blocks.rows(w)
        columns = column_moments(engine, blocks, w)
        component = self._component()
        bad = engine.reduce(add, engine.map(count_outside, blocks, engine.broadcast(component)))
        if not np.isfinite(columns.scatter).all() or columns.missing or bad:
            self._refuse(blocks)
        component = component.prepare(columns, blocks.dtype) if hasattr(component, "prepare") else component
        shared, seed = engine.broadcast(component), seed_of(self.random_state)

        def sweep(s: State, t: int) -> loop.Sweep:
            found = engine.reduce(add, engine.map(em_step, blocks, rows, shared, engine.broadcast(s)))
            return loop.Sweep(update(found, s, component), -found.loglik / found.rows)

        start, winner = self._start(blocks, w, component, seed)
        loop.run(
            self,
            sweep,
            start,
            fitted=_attributes,
            winner=winner,
            X=X,
            fingerprint=partial(fingerprint, blocks, w),
            seed=seed,
            moved=History.remaining_change,
        )
        return self

    def _refuse(self, blocks: Blocks, allow_nan: bool | None = None) -> None:
        """Also refuse a number that the component does not accept."""
        super()._refuse(blocks, allow_nan)
        component = self._component()
        for i, start in enumerate(blocks.bounds[:-1]):
            if count_outside(blocks[i], component):
                X = blocks[i]
                at = int(np.argmax(component.outside(X)))
                if hasattr(X, "indptr"):
                    row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
                else:
                    row, column = divmod(at, X.shape[1])
                raise InputError(
                    f"X[{int(start) + row}, {column}] is {X[row, column]}; Mixture({self.component!r}) needs "
                    f"{component.needs}. Clip it, or choose another component."
                )

    def _start(self, blocks: Blocks, w: np.ndarray | None, component: Any, seed: int) -> tuple[State, Mixture | None]:
        """Return the likeliest of several clusterings of some rows after some sweeps of EM, or the result of the
        likeliest of several fits and that fit."""
        if self.n_init > 1:
            best = fit_best(self, self.n_init, blocks, w, seed)
            if not callbacks_of(self):
                return best._state(), best
            seed = best.random_state  # callbacks see the best fit once more
        (n, d), c = blocks.shape, self.n_components
        chosen = draw_rows(n, w, c, count_rows(c * d * min(d, 200) // 2), seed)
        X = fetch_rows(engine_for(blocks), blocks, chosen)
        w = None if w is None else w[chosen]
        none = State(np.zeros(c), Rows([None] * c))

        def step(s: State) -> tuple[State, float]:
            found = em_step(X, w, component, s)
            return update(found, s, component), found.loglik / found.rows

        several = cluster_several(features(X, component), c, w, seed)
        return select_start(
            [update(hard_step(X, w, component, centers), none, component) for centers in several], step
        ), None

    # ---- applying ----------------------------------------------------------------------------------------------

    def _state(self) -> State:
        check_is_fitted(self)
        theta = Rows(tuple(p[c] for p in self.parameters_) for c in range(len(self.weights_)))
        return State(self.weights_, theta)

    def _joint(self) -> tuple:
        s = self._state()
        return density_or_nan, self._component(), s

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw new rows and their components, sorted by component; for components that have ``sample``.

        The default of `random_state` is that of the model.
        """
        s, component = self._state(), self._component()
        if not hasattr(component, "sample"):
            raise InputError(f"{component!r} has no method sample(theta, n, rng), so no rows can be drawn from it.")
        rng, label = self._draw_components(s.weights, n_samples, random_state)
        rows = np.empty((n_samples, self.n_features_in_))
        for c, theta in enumerate(s.theta):
            rows[label == c] = component.sample(theta, int(np.count_nonzero(label == c)), rng)
        return rows, label

    def _n_parameters(self) -> int:
        s, component = self._state(), self._component()
        count = getattr(component, "n_parameters", lambda theta: sum(np.size(a) for a in theta))
        return sum(int(count(theta)) for theta in s.theta) + len(s.weights) - 1


def _attributes(s: State) -> dict:
    return {
        "weights_": s.weights.copy(),
        "parameters_": tuple(np.stack(arrays) for arrays in zip(*s.theta, strict=True)),
    }


def joint_density(X: Any, component: Any, s: State) -> np.ndarray:
    """Compute log π_c p(x; θ_c): (n,c)."""
    with np.errstate(divide="ignore"):
        log_weights = np.log(s.weights)
    columns = [np.asarray(component.log_density(X, theta), dtype=np.float64) for theta in s.theta]
    if columns[0].shape != X.shape[:1]:
        raise InputError(
            f"{component!r}.log_density returned shape {columns[0].shape} for {X.shape[0]} rows; it must return one "
            "number per row."
        )
    return np.stack(columns, axis=1) + log_weights


def em_step(X: Any, w: np.ndarray | None, component: Any, s: State) -> Sums:
    """The rows' half-step: compute responsibilities and their sums."""
    w = np.ones(X.shape[0]) if w is None else w
    joint = joint_density(X, component, s)
    r, logp = share_out(joint, w)
    return Sums(r.sum(axis=0), _component_sums(X, r, component), float(logp @ w), float(w.sum()))


def hard_step(X: Any, w: np.ndarray | None, component: Any, centers: Centers) -> Sums:
    """Compute the sums of a start of EM in which every row belongs almost only to its nearest center."""
    w = np.ones(X.shape[0]) if w is None else w
    c = len(centers.Z)
    r = np.full((len(w), c), UNIFORM_SHARE / c)
    r[np.arange(len(w)), label_rows(features(X, component), centers)] += 1 - UNIFORM_SHARE
    r *= w[:, None]
    return Sums(r.sum(axis=0), _component_sums(X, r, component), 0.0, float(w.sum()))


def _component_sums(X: Any, r: np.ndarray, component: Any) -> tuple:
    """Compute each component's sums as copies, because the engine adds in place."""
    each = (component.sums(X, np.ascontiguousarray(column)) for column in r.T)
    return tuple(tuple(np.array(a, dtype=np.float64) for a in sums) for sums in each)


def update(total: Sums, s: State, component: Any) -> State:
    """The shared half-step. A component of almost no weight does not change."""
    N = np.maximum(total.N, 1e-10)
    theta = Rows(
        old if old is not None and n <= 1e-10 else _check_theta(component.estimate(sums), component)
        for n, sums, old in zip(total.N, total.parts, s.theta, strict=True)
    )
    return State(N / N.sum(), theta)


def _check_theta(value: Any, component: Any) -> tuple:
    if not isinstance(value, tuple):
        raise InputError(f"{component!r}.estimate returned a {type(value).__name__}; it must return a tuple of arrays.")
    return tuple(np.asarray(a, dtype=np.float64) for a in value)


def features(X: Any, component: Any) -> Any:
    return component.features(X) if hasattr(component, "features") else X


def count_outside(X: Any, component: Any) -> int:
    """Return the number of cells without a density."""
    return int(np.count_nonzero(component.outside(X))) if hasattr(component, "outside") else 0


def density_or_nan(X: Any, component: Any, s: State) -> np.ndarray:
    """Compute joint densities, or NaN if a cell has none, so that the caller raises an error with its place."""
    joint = joint_density(X, component, s)
    return np.full_like(joint, np.nan) if count_outside(X, component) else joint
