"""The two half-steps of a mixture of any component, in log space.

    E:  r_ic ∝ π_c p(x_i; θ_c), and the component's own sums under r
    M:  π from Σr, every θ_c by the component's own estimate

What a component is, `components` says.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from twofold.clusters.kmeans._assign import Centres, label_rows
from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows

BLUR = 0.01  # of every row at the start belongs to all components alike, so that none is empty


class State(NamedTuple):
    """The shared factor: π, and one tuple of arrays a component."""

    weights: np.ndarray  # (c,)
    theta: Rows


class Sums(NamedTuple):
    """What a block adds."""

    N: np.ndarray  # (c,)
    parts: tuple  # one tuple of arrays a component
    loglik: float
    rows: float


def joint_density(X: Any, component: Any, s: State) -> np.ndarray:
    """log π_c p(x; θ_c): (n,c)."""
    with np.errstate(divide="ignore"):
        log_weights = np.log(s.weights)
    columns = [np.asarray(component.log_density(X, theta), dtype=np.float64) for theta in s.theta]
    if columns[0].shape != X.shape[:1]:
        raise InputError(
            f"{component!r}.log_density returned shape {columns[0].shape} for {X.shape[0]} rows; one number a row."
        )
    return np.stack(columns, axis=1) + log_weights


def em_step(X: Any, w: np.ndarray | None, component: Any, s: State) -> Sums:
    """The rows' half-step: responsibilities, and what they add."""
    w = np.ones(X.shape[0]) if w is None else w
    joint = joint_density(X, component, s)
    logp = logsumexp(joint, axis=1)
    r = np.exp(joint - logp[:, None]) * w[:, None]
    return Sums(r.sum(axis=0), _parts(X, r, component), float(logp @ w), float(w.sum()))


def hard_step(X: Any, w: np.ndarray | None, component: Any, centres: Centres) -> Sums:
    """The sums when every row belongs to its nearest centre, but for a little: where EM starts from."""
    w = np.ones(X.shape[0]) if w is None else w
    c = len(centres.Z)
    r = np.full((len(w), c), BLUR / c)
    r[np.arange(len(w)), label_rows(features(X, component), centres)] += 1 - BLUR
    r *= w[:, None]
    return Sums(r.sum(axis=0), _parts(X, r, component), 0.0, float(w.sum()))


def _parts(X: Any, r: np.ndarray, component: Any) -> tuple:
    """Each component's own sums, copied: the engine adds in place."""
    each = (component.sums(X, np.ascontiguousarray(column)) for column in r.T)
    return tuple(tuple(np.array(a, dtype=np.float64) for a in sums) for sums in each)


def update(found: Sums, s: State, component: Any) -> State:
    """The shared half-step. A component that holds next to nothing keeps its place."""
    N = np.maximum(found.N, 1e-10)
    theta = Rows(
        old if old is not None and n <= 1e-10 else _theta(component.estimate(sums), component)
        for n, sums, old in zip(found.N, found.parts, s.theta, strict=True)
    )
    return State(N / N.sum(), theta)


def _theta(value: Any, component: Any) -> tuple:
    if not isinstance(value, tuple):
        raise InputError(f"{component!r}.estimate returned a {type(value).__name__}; it must return a tuple of arrays.")
    return tuple(np.asarray(a, dtype=np.float64) for a in value)


def features(X: Any, component: Any) -> Any:
    return component.features(X) if hasattr(component, "features") else X


def features_of(X: Any, rows: np.ndarray, component: Any) -> Any:
    return features(X[rows], component)


def outside(X: Any, component: Any) -> int:
    """How many cells have no density."""
    return int(np.count_nonzero(component.outside(X))) if hasattr(component, "outside") else 0


def known(X: Any, component: Any, s: State) -> np.ndarray:
    """Joint densities, or NaN throughout if a cell has none, which is then refused with its place."""
    joint = joint_density(X, component, s)
    return np.full_like(joint, np.nan) if outside(X, component) else joint
