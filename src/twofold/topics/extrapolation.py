"""Alternating half-steps that look ahead, and never go up.

    advance(kept, V) → (kept, V, objective)     one sweep of a model: all rows given V, then V given the rows

The shared factor runs ahead along its last step, V + β (V − V before), and the next sweep begins there. If that sweep
ends higher than the one before, it is made again from V itself, which cannot go up, and β shrinks; else β grows.
Reference: Ang & Gillis 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from twofold.core import loop
from twofold.core.blocks import Rows

GROW, SLOWLY, SHRINK = 1.05, 1.01, 1.5
FIRST = 0.5

Advance = Callable[[Rows, np.ndarray], tuple[Rows, np.ndarray, float]]


class State(NamedTuple):
    """The shared factor, where the next sweep begins, how far it looks ahead, and what every block keeps."""

    V: np.ndarray  # (d,k)
    ahead: np.ndarray  # (d,k)
    beta: float
    bound: float
    objective: float
    kept: Rows  # (U,) of every block


def begin(V: np.ndarray, kept: Rows) -> State:
    return State(V, V, FIRST, 1.0, np.inf, kept)


def sweeper(
    advance: Advance, extrapolate: Callable | None, tol: float, falls: bool = True
) -> Callable[[State, int], loop.Sweep]:
    """A sweep for the loop. `extrapolate(V, old, β)` keeps to the constraints; None means never to look ahead.

    What runs ahead may gain next to nothing in one sweep and a lot in the next, so a gain below `tol` counts only if a
    sweep from V itself gains no more. `falls` says that theory promises descent: then a sweep that ends higher, by
    rounding, is not made at all.
    """

    def sweep(s: State, t: int) -> loop.Sweep:
        if extrapolate is None or not t:
            tried = [(s.V, s.beta, s.bound)]
        else:
            tried = [(s.ahead, min(s.bound, GROW * s.beta), min(1.0, SLOWLY * s.bound)), (s.V, s.beta / SHRINK, s.beta)]
        for V, beta, bound in tried:
            kept, new, objective = advance(s.kept, V)
            enough = s.objective * (1 - tol) if V is s.ahead and len(tried) > 1 else s.objective
            if objective <= enough or not falls:
                ahead = new if extrapolate is None else extrapolate(new, s.V, beta)
                return loop.Sweep(State(new, ahead, beta, bound, objective, kept), objective)
        if not np.isfinite(objective):
            return loop.Sweep(s, objective)  # the loop says what is wrong
        return loop.Sweep(s, s.objective)

    return sweep


def nonnegative(V: np.ndarray, old: np.ndarray, beta: float) -> np.ndarray:
    """V + β (V − old), at zero at least."""
    step = V.dtype.type(beta)
    return np.maximum(V + step * (V - old), 0)


def positive(V: np.ndarray, old: np.ndarray, beta: float) -> np.ndarray:
    """V + β (V − old), but nothing falls below half of V: a multiplicative rule never comes back from zero."""
    step = V.dtype.type(beta)
    return np.maximum(V + step * (V - old), V / 2)
