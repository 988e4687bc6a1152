"""A fit that says it has converged has: one ten times as long ends hardly lower."""

import warnings

import numpy as np
import pytest

from twofold import ALS, SVT, Biases
from twofold.core.history import MAX_REMAINING_OVER_TOL, History

from .registry import MODELS, table

TIMES = 50  # tol may be left, of the objective's size; mixtures count tol in nats
X, y = table()


@pytest.mark.parametrize("case", [c for c in MODELS if {"tol", "max_iter"} <= set(c().get_params())], ids=str)
def test_a_fit_ten_times_as_long_ends_hardly_lower(case):
    model = case.fit(X, y)
    assert model.converged_
    if model.n_iter_ == 1:
        return  # a closed form
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        longer = case.fit(X, y, tol=0.0, max_iter=10 * model.n_iter_)
    end, least = model.history_["objective"][-1], min(longer.history_["objective"])
    size = max(abs(end), "Mixture" in case.model)
    assert end - least <= TIMES * model.tol * size + 1e-12 * size


# ---- the rule --------------------------------------------------------------------------------------------------


def sweeps_until_settled(objective, tol):
    """Return how many sweeps the rule waits, when the objective runs so."""
    history = History()
    for t, value in enumerate(objective):
        history.add(value)
        if history.gain() <= tol:
            return t + 1
    return None


@pytest.mark.parametrize("shrink", [0.01, 0.3, 0.7, 0.9, 0.97, 0.995])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_of_moves_that_shrink_the_rule_knows_what_is_left(shrink, tol):
    objective = 1 + shrink ** np.arange(6000)
    n = sweeps_until_settled(objective, tol)
    assert objective[n - 1] - 1 <= MAX_REMAINING_OVER_TOL * tol * 1.01
    if shrink < 0.5:  # and it does not dawdle
        assert n <= max(4, 2 + int(np.ceil(np.log(tol) / np.log(shrink))))


@pytest.mark.parametrize("power", [1, 2])
def test_slow_fits_are_watched_for_longer(power):
    """Moves that fall as a power of time: what ten times the sweeps would bring."""
    objective = 1 + 1.0 / np.arange(1, 100_000) ** power
    n = sweeps_until_settled(objective, 1e-5)
    assert objective[n - 1] - objective[10 * n - 1] <= TIMES * 1e-5


@pytest.mark.parametrize("growth", [1.02, 1.2, 2.0])
def test_a_plateau_is_no_end(growth):
    """A fall, then moves a third of tol that grow again, as ALS makes before it finds the directions."""
    tol = 1e-4
    fall = np.array([12.0, 11.0, 10.5, 10.2, 10.1])
    moves = 0.3 * tol * growth ** np.arange(400)
    plateau = fall[-1] - np.cumsum(moves)
    objective = np.concatenate([fall, plateau[plateau > 1]])
    assert sweeps_until_settled(objective, tol) is None


def test_what_stands_still_has_settled_at_once():
    assert sweeps_until_settled([3.0, 3.0], 0.0) == 2
    assert sweeps_until_settled([0.0, 0.0], 0.0) == 2
    rounding = 5 + 1e-16 * np.random.default_rng(0).normal(size=20)
    assert sweeps_until_settled(rounding, 1e-9) == 2
    assert sweeps_until_settled([3.0, 2.0, 2.0 - 1e-9], 1e-3) is None  # two moves tell no trend


def test_noise_is_an_end():
    """An objective that rises and falls about its end, as in single precision."""
    noise = 1e-4 * np.random.default_rng(0).normal(size=200)
    n = sweeps_until_settled(1 + 0.5 ** np.arange(200) + noise, 1e-9)
    assert n is not None and 10 < n < 100


def test_one_long_wave_is_no_end():
    """Moves that swell and ebb, as those of momentum do."""
    t = np.arange(3000)
    moves = 2e-6 * (1 + 0.95 * np.cos(t / 3)) * np.exp(-t / 2000)
    n = sweeps_until_settled(100 - np.cumsum(moves), 1e-9)
    assert n is None or moves[n:].sum() / 100 <= TIMES * 1e-9 * 10


def test_a_table_of_low_rank_without_noise_is_recovered():
    """ALS with its defaults ends where SVT does: at the table."""
    rng = np.random.default_rng(0)
    n, rank = 300, 3
    truth = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n))
    holes = np.where(rng.random((n, n)) < 0.15, truth, np.nan)
    for model in (ALS(rank, random_state=0), SVT(random_state=0, max_iter=2000)):
        model.fit(holes)
        assert model.converged_ and np.linalg.norm(model.complete(holes) - truth) < 1e-3 * np.linalg.norm(truth)


@pytest.mark.parametrize("cells", [[[5.0, 3.0], [4.0, np.nan]], [[1.0, 2.0], [3.0, np.nan]]])
def test_a_ratio_that_runs_off_does_not_crawl(cells):
    """Of three cells either side's biases say all: the other's ratio of variances has no end."""
    model = Biases().fit(cells)
    longer = Biases(tol=0.0, max_iter=10_000).fit(cells)
    assert model.converged_ and model.n_iter_ < 50
    assert model.history_["objective"][-1] - longer.history_["objective"][-1] < TIMES * model.tol * 4


def test_an_objective_that_has_fallen_to_nothing_has_settled():
    """Without noise the squared error shrinks by half a sweep without end, relative to itself."""
    assert 50 < sweeps_until_settled(0.5 ** np.arange(200), 1e-4) < 60
