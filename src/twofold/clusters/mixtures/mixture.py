"""A mixture of any component: the general EM, in log space.

    maximise  Σ_i w_i log Σ_c π_c p(x_i; θ_c)

One sweep:  each block  responsibilities r_ic ∝ π_c p(x_i; θ_c), and the component's own sums under them
            then once   π from Σr, every θ_c by the component's own estimate
Reference: Dempster, Laird & Rubin 1977.
"""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from twofold.clusters.kmeans.kmeans import KMeans
from twofold.clusters.mixtures._em import State, em_step, features_of, hard_step, known, outside, update
from twofold.clusters.mixtures.components import READY, by_name
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import add, engine_for, fingerprint, stacked
from twofold.core.estimator import Reorderable, fitting
from twofold.core.numerics.density import MixtureDensity
from twofold.core.numerics.moments import column_moments
from twofold.core.params import HasMethods, Interval
from twofold.core.seeds import generator, seed_of

SAMPLE = 10_000  # rows that choose the starting centres


class Mixture(Reorderable, MixtureDensity):
    """A mixture of a component that you choose, or write: any density with a weighted maximum-likelihood estimate.

    Parameters
    ----------
    component : str or object, default="gaussian"
        "bernoulli", "multinomial", "poisson", "gaussian" (also "gaussian-diag", "gaussian-spherical") or "ppca" (also
        with its number of directions, "ppca-3"); or any object with three methods: ``log_density(X, theta)`` -> (n,),
        ``sums(X, w)`` -> tuple of arrays that are additive over rows, ``estimate(sums)`` -> theta, a tuple of arrays.
        See `mixtures.components` for what else a component may have. Only a model whose component is given
        by name can be saved.
    n_components : int, default=2
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
    parameters_ : tuple of ndarray
        The arrays of theta in float64, each with one entry a component: ``parameters_[0][c]``.
    history_, n_iter_, converged_
        The objective is the mean negative log-likelihood of the rows.

    References
    ----------
    Dempster, Laird & Rubin (1977), *J. R. Statist. Soc. B* 39, 1-38.

    Examples
    --------
    A component of one's own, waiting times with a mean θ in every column:

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

    weights_: np.ndarray
    parameters_: tuple
    _component_axes: ClassVar[dict[str, int]] = {"weights_": 0, "parameters_": 0}
    _parameter_constraints: ClassVar[dict] = {
        "component": [str, HasMethods(["log_density", "sums", "estimate"])],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        component: Any = "gaussian",
        n_components: int = 2,
        *,
        tol: float = 1e-6,
        max_iter: int = 200,
        n_init: int = 1,
        random_state: Any = None,
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
        """As :meth:`Model.save`, for components given by name."""
        check_is_fitted(self)
        if not isinstance(self.component, str):
            raise InputError(
                f"component={self.component!r} is code, which a model file cannot hold. Only a Mixture whose component "
                f"is given by name ({', '.join(READY)}, gaussian-diag, ppca-3, ...) can be saved."
            )
        super().save(path)

    # ---- fitting -----------------------------------------------------------------------------------------------

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Mixture:
        """Fit by EM; see :meth:`KMeans.fit` for the arguments."""
        blocks = self._blocks(X, reset=True, min_rows=2)
        if blocks.shape[0] < self.n_components:
            raise InputError(
                f"n_components={self.n_components} is more than n_samples={blocks.shape[0]}. Ask for fewer components."
            )
        w = self._weights(blocks, sample_weight)
        engine, rows = engine_for(blocks), blocks.rows(w)
        columns = column_moments(engine, blocks, w)
        component = self._component()
        bad = engine.reduce(add, engine.map(outside, blocks, engine.broadcast(component)))
        if not np.isfinite(columns.scatter).all() or columns.missing or bad:
            self._refuse(blocks)
        component = component.settled(columns, blocks.dtype) if hasattr(component, "settled") else component
        shared, seed = engine.broadcast(component), seed_of(self.random_state)

        def sweep(s: State, t: int) -> loop.Sweep:
            found = engine.reduce(add, engine.map(em_step, blocks, rows, shared, engine.broadcast(s)))
            return loop.Sweep(update(found, s, component), -found.loglik / found.rows)

        loop.run(
            self,
            sweep,
            self._start(blocks, w, component, seed),
            max_iter=self.max_iter,
            tol=self.tol,
            fitted=_attributes,
            X=X,
            fingerprint=lambda: fingerprint(blocks, w),
            seed=seed,
        )
        return self

    def _refuse(self, blocks: Blocks, allow_nan: bool | None = None) -> None:
        """Also where a cell is a number, but none the component knows."""
        super()._refuse(blocks, allow_nan)
        component = self._component()
        for i, start in enumerate(blocks.bounds[:-1]):
            if outside(blocks[i], component):
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

    def _start(self, blocks: Blocks, w: np.ndarray | None, component: Any, seed: int) -> State:
        """Every row to its nearest k-means centre, or the end of the likeliest of several fits."""
        if self.n_init > 1:
            fits = []
            for t in range(self.n_init):
                one = clone(self).set_params(n_init=1, random_state=seed_of(generator(seed, t))).set_callbacks()
                with loop.quietly():
                    fits.append(one.fit(blocks, sample_weight=w))
            return min(fits, key=lambda m: m.history_["objective"][-1])._state()
        engine = engine_for(blocks)
        able = None if w is None or np.count_nonzero(w) < self.n_components else np.flatnonzero(w)
        n = blocks.shape[0] if able is None else len(able)
        chosen = np.sort(generator(seed).choice(n, min(n, SAMPLE), replace=False))
        chosen = chosen if able is None else able[chosen]
        places = Rows(
            rows - start
            for rows, start in zip(
                np.split(chosen, np.searchsorted(chosen, blocks.bounds[1:-1])), blocks.bounds[:-1], strict=True
            )
        )
        sample = stacked(engine.gather(engine.map(features_of, blocks, places, engine.broadcast(component))))
        with loop.quietly():
            centres = (
                KMeans(self.n_components, max_iter=50, random_state=seed)
                .fit(sample, sample_weight=None if w is None else w[chosen])
                ._centres()
            )
        fixed = engine.broadcast(component), engine.broadcast(centres)
        found = engine.reduce(add, engine.map(hard_step, blocks, blocks.rows(w), *fixed))
        none = State(np.zeros(self.n_components), Rows([None] * self.n_components))
        return update(found, none, component)

    # ---- using -------------------------------------------------------------------------------------------------

    def _state(self) -> State:
        check_is_fitted(self)
        theta = Rows(tuple(p[c] for p in self.parameters_) for c in range(len(self.weights_)))
        return State(self.weights_, theta)

    def _joint(self) -> tuple:
        s = self._state()
        return known, self._component(), s

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw new rows, and the components they come from; for components that have ``sample``."""
        s, component = self._state(), self._component()
        if not hasattr(component, "sample"):
            raise InputError(f"{component!r} has no method sample(theta, n, rng), so no rows can be drawn from it.")
        rng = generator(seed_of(random_state))
        label = rng.choice(len(s.weights), size=n_samples, p=s.weights / s.weights.sum())
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
