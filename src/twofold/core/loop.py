"""THE loop: sweep, objective, stopping, callbacks. No model writes another.

    state ← sweep(state)   until the objective stands still, a callback says stop, or max_iter is reached

It stands still when its last moves are small and what their trend says is still to come is, too
(History.remaining_change): a fit that reports convergence is at most about 10·tol above one with ten times the sweeps.

A sweep is a pure function `state → (state, objective, extra)`; the objective is always something to be
minimized. State is a NamedTuple of arrays and numbers, which is what a checkpoint holds. Randomness belongs to
(seed, sweep, block), so a loop that starts again in the middle draws what it would have drawn.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from twofold.core.callbacks import Checkpoint, EarlyStopping, Task, fit_sign
from twofold.core.checks import InputError
from twofold.core.history import History
from twofold.core.progress import part
from twofold.core.types import Documents, State, Table


class Sweep(NamedTuple):
    """What one sweep returns."""

    state: State
    objective: float
    extra: Mapping[str, float] = MappingProxyType({})
    done: bool = False  # nothing is left to do: a closed form says so at once
    converged: bool = True  # when done: whether the goal was reached


class Progress(NamedTuple):
    """Where the loop stands, for callbacks that need more than the fitted attributes."""

    state: State
    history: History
    sign: str


def run(
    model: Any,
    sweep: Callable[[State, int], Sweep],
    state: State,
    *,
    fitted: Callable[[State], dict[str, Any]],
    max_iter: int | None = None,
    tol: float | None = None,
    X: Table | Documents | None = None,
    y: Any = None,
    fingerprint: Callable[[], str] = lambda: "",
    seed: int | None = None,
    moved: Callable[[History], float] = History.gain,
    winner: Any = None,
    advice: str = "Raise max_iter, or loosen tol",
) -> State:
    """Repeat `sweep(state, t)`, set on `model` what `fitted(state)` gives, with history_, n_iter_ and converged_, and
    return the state it ends with.

    `max_iter` and `tol` are the model's own unless given; the loop ends when `moved(history)` is at most `tol`.
    `winner` is the best of several fits, if `state` is its end: then its history is this one's, and no sweep is left.
    """
    max_iter = model.max_iter if max_iter is None else max_iter
    tol = model.tol if tol is None else tol
    task = Task(model, max_iter, X, y)
    savers = [c for c in task.callbacks if isinstance(c, Checkpoint)]
    stoppers = [c for c in task.callbacks if isinstance(c, EarlyStopping)]
    sign = fit_sign(model, fingerprint(), seed) if savers else ""
    history = History(winner.history_ if winner is not None else None)
    for saver in savers:
        kept = saver.restore(sign, state, stoppers)
        if kept is not None:
            state, history = kept[0], History(kept[1])
    reached = (winner is not None and winner.converged_) or (len(history) > 1 and moved(history) <= tol)
    stopped = done = False
    try:
        for t in range(len(history), 0 if reached else max_iter):
            task.begin()
            with part(t, t + 1, max_iter, f"{type(model).__name__}: sweep {t + 1} of at most {max_iter}"):
                state, objective, extra, done, converged = sweep(state, t)
            if not np.isfinite(objective):
                raise InputError(
                    f"the objective of {type(model).__name__} became {objective} in sweep {t + 1}: its numbers are too "
                    "large or too similar to compute with. Scale the columns of X, or give it as float64."
                )
            history.add(objective, **extra)
            model._progress = Progress(state, history, sign)
            stopped = task.end(lambda state=state: _attributes(fitted(state), history, False))
            for saver in savers if not done else ():  # what is done at once is not worth a file
                saver.write(model._progress, stoppers)
            reached = converged if done else moved(history) <= tol
            if done or reached or stopped:
                break
    finally:
        model.__dict__.pop("_progress", None)
    if stoppers and len(history) == 1 and done:
        message = f"EarlyStopping does nothing: this {type(model).__name__} is fitted in one step. Leave it out."
        warnings.warn(message, stacklevel=outside())
    for stopper in stoppers:
        state = state if stopper.best_state is None else stopper.best_state
    if not (reached or stopped) and max_iter:
        still = f" ({_still(history, moved, tol)}, tol={tol:g})" if len(history) > 1 else ""
        most = getattr(model, "max_iter", max_iter)
        message = f"{type(model).__name__} did not converge in max_iter={most} sweeps{still}. {advice}."
        warnings.warn(message, ConvergenceWarning, stacklevel=outside())
    found = fitted(state)
    if winner is not None:
        found = {name: getattr(winner, name) for name in found}
    attributes = _attributes(found, history, bool(reached))
    for name, value in attributes.items():
        setattr(model, name, value)
    task.finish(attributes)
    for saver in savers:
        saver.remove()
    return state


@contextmanager
def quietly() -> Iterator[None]:
    """For a fit within a fit, whose convergence the outer one reports."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def outside() -> int:
    """Count the frames up to the caller outside twofold and scikit-learn."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("twofold", "sklearn"):
        frame, level = frame.f_back, level + 1
    return level


def _still(history: History, moved: Callable[[History], float], tol: float) -> str:
    """Describe the last sweep for a warning, in the unit of tol."""
    size = " of its size" if moved in (History.gain, History.step) else ""
    if moved in (History.gain, History.remaining_change):
        last = history.step() if moved is History.gain else history.change()
    else:
        last = moved(history) if np.isfinite(moved(history)) else history.step()
    says = f"it still moves by {last:.1e}{size}"
    come = moved(history)
    return says if last > tol or not np.isfinite(come) else f"{says} a sweep, and {come:.1e} or more may be to come"


def _attributes(attributes: dict[str, Any], history: History, converged: bool) -> dict[str, Any]:
    columns = {name: list(values) for name, values in history.columns.items()}
    return {**attributes, "history_": columns, "n_iter_": len(history), "converged_": converged}
