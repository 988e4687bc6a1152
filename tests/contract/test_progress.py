"""Every fit tells how it went: history, convergence, callbacks."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.exceptions import ConvergenceWarning

from tests.callbacks import Recorder
from twofold import PCA, EarlyStopping, InputError

from .helpers import differences
from .registry import MODELS, every, first, one_each, parametrize, swept, table, with_holes

ITERATIVE = [case for case in MODELS if case.iterative]
iterative = parametrize(ITERATIVE)
iterative_first = parametrize(ITERATIVE, quick=one_each(ITERATIVE))
X, y = table()


def fit(case, callback=None, **changes):
    model = case(**changes)
    if callback is not None:
        model.set_callbacks(callback)
    return model.fit(X, y) if case.needs_y else model.fit(swept(case, X))


@every
def test_history_has_a_row_a_sweep_and_a_fit_that_converges_is_silent(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit(case)
    assert {"objective", "seconds"} <= set(model.history_)
    assert {len(column) for column in model.history_.values()} == {model.n_iter_}
    assert all(type(value) is float for column in model.history_.values() for value in column)
    seconds = np.array(model.history_["seconds"])
    assert seconds[0] >= 0 and np.all(np.diff(seconds) >= 0)
    assert np.isfinite(model.history_["objective"]).all()
    assert model.converged_ is True


@every
@pytest.mark.parametrize("holes", [False, True])
def test_objective_never_rises(case, holes):
    if (holes and not case.nan) or not case.falls:
        pytest.skip("takes no holes, or goes down cell by cell")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = case.fit(with_holes(X) if holes else X, y)
    objective = np.array(model.history_["objective"])
    assert np.all(np.diff(objective) <= 1e-9 * np.abs(objective[:-1]))


@pytest.mark.filterwarnings("ignore:.*did not converge")  # tol is made for double precision
@iterative
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_never_rises_in_single_precision(case, weighted):
    if (weighted and not case.weights) or not case.falls:
        pytest.skip("takes no weights, or goes down cell by cell")
    w = np.random.default_rng(0).random(len(X)) if weighted else None
    objective = np.array(case.fit(X.astype(np.float32), y, sample_weight=w).history_["objective"])
    assert np.all(np.diff(objective) <= 1e-5 * np.abs(objective[:-1]))


@iterative
def test_too_few_sweeps_warn_once_and_say_what_to_do(case):
    with pytest.warns(ConvergenceWarning) as caught:
        model = fit(case, max_iter=1)
    assert len(caught) == 1 and "max_iter" in str(caught[0].message)
    assert Path(caught[0].filename).parent == Path(__file__).parent  # whoever called fit, not twofold
    assert model.converged_ is False and model.n_iter_ == 1


def test_arpack_has_nothing_to_show_before_it_converges():
    wide = np.random.default_rng(0).normal(size=(300, 200))
    with pytest.raises(InputError, match="max_iter"):
        PCA(3, svd_solver="arpack", max_iter=1, tol=1e-12, random_state=0).fit(wide)


@pytest.mark.parametrize("solver", ["power", "randomized"])
def test_iterative_pca_solvers_warn_too(solver):
    wide = np.random.default_rng(0).normal(size=(300, 200))  # a flat spectrum takes many steps
    with pytest.warns(ConvergenceWarning) as caught:
        model = PCA(3, svd_solver=solver, max_iter=1, tol=1e-12, random_state=0).fit(wide)
    assert len(caught) == 1 and "max_iter" in str(caught[0].message)
    assert model.converged_ is False


@parametrize([c for c in MODELS if c.nan and "max_iter" in c().get_params()])
def test_too_few_sweeps_over_holes_warn_once(case):
    with pytest.warns(ConvergenceWarning) as caught:
        model = case.fit(with_holes(X), y, max_iter=1)
    assert len(caught) == 1 and "max_iter" in str(caught[0].message)
    assert model.converged_ is False


@first
def test_callbacks_see_the_fit_in_order_and_do_not_change_it(case):
    seen = Recorder()
    model = fit(case, seen)
    sweeps = ["begin sweep", "end sweep"] * model.n_iter_
    assert seen.events == ["setup", "begin fit", *sweeps, "end fit", "teardown"]
    assert seen.objectives == model.history_["objective"]
    assert not differences(fit(case), model)


@first
def test_callbacks_are_torn_down_when_a_fit_fails(case):
    seen, bad = Recorder(), X.copy()
    bad[3, 7] = np.inf
    with pytest.raises(ValueError):
        case().set_callbacks(seen).fit(bad, y)
    assert seen.events[-1:] in ([], ["teardown"])


@iterative_first
def test_a_callback_stops_the_fit(case):
    seen = Recorder(stop_after=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # whoever asks to stop needs no warning
        model = fit(case, seen, tol=0.0)
    assert model.n_iter_ == 2 and model.converged_ is False
    assert seen.events[-2:] == ["end fit", "teardown"]


@parametrize(MODELS[:1])
def test_scikit_learn_s_progress_bar_works(case, capfd):
    model = fit(case, ProgressBar())
    assert type(model).__name__ in capfd.readouterr().out


@first
def test_scikit_learn_s_scoring_monitor_works(case):
    monitor = ScoringMonitor(scoring={"good": lambda model, X, y: model.n_iter_ + 0.5})
    model = case().set_callbacks(monitor).fit(X, y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "sweep"]
    assert len(rows) == model.n_iter_
    if case.needs_y:  # the monitor scores only where there are targets
        assert [row["good"] for row in rows] == [t + 1.5 for t in range(model.n_iter_)]


@iterative_first
def test_early_stopping_keeps_the_best_sweep(case):
    if not hasattr(case(), "score"):
        pytest.skip("has no score")
    new = swept(case, table(60, seed=4)[0])
    stop = EarlyStopping(new, patience=2, min_delta=1e-3)
    model = fit(case, stop, tol=0.0, max_iter=200)
    assert len(stop.scores_) == model.n_iter_ < 200
    assert stop.best_sweep_ == model.n_iter_ - 3 and model.converged_ is False
    assert stop.best_score_ == stop.scores_[stop.best_sweep_]
    np.testing.assert_allclose(model.heldout_score(new), stop.best_score_, rtol=1e-12)
    short = Recorder(stop_after=stop.best_sweep_ + 1)
    best = fit(case, short, tol=0.0, max_iter=200)
    np.testing.assert_allclose(best.heldout_score(new), stop.best_score_, rtol=1e-12)


def test_early_stopping_asks_for_a_score():
    stop = EarlyStopping(X)
    with pytest.raises(InputError, match="score"):
        stop.setup(object(), None)


@iterative_first
def test_early_stopping_can_be_used_twice(case):
    if not hasattr(case(), "score"):
        pytest.skip("has no score")
    stop = EarlyStopping(swept(case, table(60, seed=4)[0]), patience=2, min_delta=1e-3)
    model = case(tol=0.0, max_iter=200).set_callbacks(stop)
    first = model.fit(X).score(X)
    assert model.fit(X).score(X) == first and len(stop.scores_) == model.n_iter_
