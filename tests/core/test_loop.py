"""The one loop: when it stops, what it records, what it leaves."""

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.history import History


class State(NamedTuple):
    x: float


class Halving(CallbackSupportMixin, BaseEstimator):
    """Minimises 1 + x by halving x."""

    def __init__(self, max_iter=100, tol=1e-3):
        self.max_iter, self.tol = max_iter, tol

    def fit(self, sweep=None):
        def halve(state, t):
            self.sweeps_seen = t
            return loop.Sweep(State(state.x / 2), 1 + state.x / 2, {"x": state.x / 2})

        loop.run(
            self,
            sweep or halve,
            State(1.0),
            max_iter=self.max_iter,
            tol=self.tol,
            fitted=lambda s: {"x_": s.x},
        )
        return self


def test_stops_when_the_objective_stands_still():
    model = Halving().fit()
    objective = model.history_["objective"]
    gains = -np.diff(objective) / np.array(objective[:-1])
    assert gains[-1] <= 1e-3 < gains[-2]
    assert model.converged_ is True and model.n_iter_ == len(objective) == model.sweeps_seen + 1
    assert model.x_ == 0.5**model.n_iter_ == model.history_["x"][-1]


def test_stops_at_max_iter_with_a_warning():
    with pytest.warns(ConvergenceWarning, match=r"Halving.*max_iter=3.*Raise max_iter, or loosen tol"):
        model = Halving(max_iter=3).fit()
    assert model.n_iter_ == 3 and model.converged_ is False


def test_a_closed_form_is_done_at_once():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Halving().fit(lambda state, t: loop.Sweep(State(7.0), 0.0, {}, True))
    assert model.n_iter_ == 1 and model.converged_ is True and model.x_ == 7.0


def test_an_objective_that_is_not_a_number_is_an_error():
    with pytest.raises(InputError, match="nan in sweep 3"):
        Halving().fit(lambda state, t: loop.Sweep(state, 5.0 - t if t < 2 else float("nan")))


def test_a_failed_fit_leaves_no_progress_behind():
    def fail(state, t):
        raise RuntimeError("no")

    model = Halving()
    with pytest.raises(RuntimeError):
        model.fit(fail)
    assert not [name for name in vars(model) if name.startswith("_progress")]


def test_objectives_of_any_sign_and_size_converge():
    for scale in (1e-30, 1.0, -1.0, -1e30):
        model = Halving(tol=1e-6).fit(lambda state, t, scale=scale: loop.Sweep(state, scale * (1 + 0.5**t)))
        assert 10 < model.n_iter_ < 30
    assert Halving().fit(lambda state, t: loop.Sweep(state, 0.0)).n_iter_ == 2


def test_history_goes_on_where_it_was():
    old = History()
    old.add(3.0, extra=1.0)
    old.add(2.0, extra=2.0)
    new = History({name: list(column) for name, column in old.columns.items()})
    new.add(1.5, extra=3.0)
    assert len(new) == 3 and new.columns["extra"] == [1.0, 2.0, 3.0]
    assert np.all(np.diff(new.columns["seconds"]) >= 0)
    assert new.step() == pytest.approx(0.25)


def test_the_loop_gives_back_the_state_it_ends_with():
    model = Halving()
    state = loop.run(
        model,
        lambda state, t: loop.Sweep(State(state.x / 2), 1 + state.x / 2),
        State(1.0),
        max_iter=100,
        tol=1e-3,
        fitted=lambda state: {"x_": state.x},
    )
    assert state == State(model.x_)
