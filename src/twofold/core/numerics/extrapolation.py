"""Alternating half-steps that look ahead, and never go up.

    advance(kept, V) → (kept, V, objective)     one sweep of a model: all rows given V, then V given the rows

The shared factor runs ahead along its last step, V + β (V − V before), and the next sweep begins there. If that sweep
ends higher than the one before, it is made again from V itself, which cannot go up, and β shrinks; else β grows.
Reference: Ang & Gillis 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from twofold.core import loop
from twofold.core.data.blocks import Rows

GROW, SLOWLY, SHRINK = 1.05, 1.01, 1.5
FIRST = 0.5
CLEAR = 1e-3  # of the objective: by so much a start must be better than the first
SMALL, DRAWS, TRIAL = 2e7, 2, 40  # cells times parts; random starts beside the first on tables so small; sweeps of each

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
    advance: Advance, extrapolate: Callable[..., Any] | None, tol: float, falls: bool = True
) -> Callable[[State, int], loop.Sweep]:
    """A sweep for the loop. `extrapolate(V, old, β)` keeps to the constraints; None means never to look ahead.

    What runs ahead may gain next to nothing in one sweep and a lot in the next, so a gain below `tol` counts only if a
    sweep from V itself does not gain more either. `falls` says that theory promises descent: then a sweep that ends
    higher, by rounding, is not made at all.
    """

    def sweep(s: State, t: int) -> loop.Sweep:
        if extrapolate is None or not t:
            tried = [(s.V, s.objective, s.beta, s.bound)]
        else:
            tried = [
                (s.ahead, s.objective - tol * abs(s.objective), min(s.bound, GROW * s.beta), min(1, SLOWLY * s.bound)),
                (s.V, s.objective, s.beta / SHRINK, s.beta),
            ]
        for V, limit, beta, bound in tried:
            kept, new, objective = advance(s.kept, V)
            if objective <= limit or not falls:
                ahead = new if extrapolate is None else extrapolate(new, s.V, beta)
                return loop.Sweep(State(new, ahead, beta, bound, objective, kept), objective)
        if not np.isfinite(objective):
            return loop.Sweep(s, objective)  # the loop says what is wrong
        return loop.Sweep(s, s.objective)

    return sweep


def choose_start(sweep: Callable[[Any, int], loop.Sweep], starts: list[Any], max_iter: int) -> Any:
    """The start from which some sweeps, a fifth of `max_iter` at most, lead lowest; a later one only if it is lower by
    more than rounding explains."""
    if len(starts) == 1:
        return starts[0]
    ends = []
    for state in starts:
        objective = np.inf
        for t in range(min(TRIAL, max_iter // 5)):
            state, objective, *_ = sweep(state, t)
        ends.append(objective)
    clear = [end + (CLEAR * abs(end) if i else 0.0) for i, end in enumerate(ends)]
    return starts[int(np.argmin(clear))]


def nonnegative(V: np.ndarray, old: np.ndarray, beta: float) -> np.ndarray:
    """V + β (V − old), at zero at least."""
    step = V.dtype.type(beta)
    return np.maximum(V + step * (V - old), 0)


def geometric(V: np.ndarray, old: np.ndarray, beta: float) -> np.ndarray:
    """V (V / old)^β: ahead by ratios, for rules that multiply.

    What grows from next to nothing would take forever by ratios, and is lifted at once: to a thousandth of its part's
    mean. The sweep that follows shows whether that was right.
    """
    ratio = np.where(old > 0, V / np.where(old > 0, old, 1), 1)
    ahead = V * np.clip(ratio, 0.1, 10) ** V.dtype.type(beta)
    return np.where(ratio > 1, np.maximum(ahead, V.dtype.type(1e-3) * V.mean(axis=0)), ahead)
