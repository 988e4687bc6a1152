"""GloVe as it is used: corpora, files, callbacks, scores and refusals."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from twofold import Cooccurrence, GloVe, InputError
from twofold.core.progress import report_to

TEXT = [
    "the cat purrs and the cat sleeps",
    "the kitten purrs and the kitten sleeps",
    "the boat sails and the boat sinks",
    "the ship sails and the ship sinks",
] * 10
QUICK = {"n_components": 3, "min_count": 1, "window": 3, "x_max": 10, "max_iter": 6, "random_state": 0}


@pytest.fixture(scope="module")
def glove():
    return GloVe(**QUICK).fit(TEXT)


def test_epochs_report_how_far_they_are():
    reports = []
    with report_to(SimpleNamespace(report=lambda done, total, label="": reports.append((done, total, label)))):
        GloVe(**QUICK).fit(TEXT)
    done = [done for done, total, label in reports if total == 6]
    assert done == sorted(done) and done[-1] == 6 and any("pairs a second" in label for *_, label in reports)


def test_the_score_is_minus_the_cost_of_the_pairs(glove):
    n = Cooccurrence(vocabulary=glove.vocabulary_, window=3).fit(TEXT).counts_.toarray().astype(float)
    model = glove.row_factors_ @ glove.components_ + glove.row_bias_[:, None] + glove.column_bias_
    i, j = np.nonzero(n)
    cost = 0.5 * np.minimum(1, (n[i, j] / 10) ** 0.75) * (model[i, j] - np.log(n[i, j])) ** 2
    np.testing.assert_allclose(glove.score(TEXT), -cost.mean(), rtol=1e-4)
    np.testing.assert_allclose(glove.total_, n.sum(), rtol=1e-6)
    np.testing.assert_array_equal(glove.vectors_.vectors_, glove.row_factors_ + glove.components_.T)
    np.testing.assert_allclose(glove.score(2 * TEXT), glove.score(TEXT), rtol=1e-4)  # twice as long, otherwise alike


def test_words_it_does_not_know_are_left_out_of_the_score(glove):
    more = Cooccurrence(min_count=1, window=3).fit(TEXT + ["zebra zebra zebra"] * 5)
    share = more.counts_.sum() / Cooccurrence(min_count=1, window=3).fit(TEXT).counts_.sum()
    assert np.isfinite(glove.score(more)) and share > 1
    with pytest.raises(InputError, match="none of the"):
        glove.score(["zebra zebra"] * 5)


def test_a_tolerance_ends_it_early():
    model = GloVe(**{**QUICK, "max_iter": 500, "tol": 0.01}).fit(TEXT)
    cost = model.history_["objective"]
    assert model.n_iter_ < 500 and 1 - cost[-1] / cost[-2] <= 0.01 < 1 - cost[-2] / cost[-3]


@pytest.mark.parametrize(("solver", "rate", "epochs"), [("adagrad", 0.5, 400), ("sgd", 0.1, 400), ("gd", 0.5, 3000)])
def test_every_solver_finds_the_factors_of_a_table_that_has_them(solver, rate, epochs):
    settings = QUICK | {"n_components": 12, "solver": solver, "learning_rate": rate, "max_iter": epochs}
    cost = GloVe(**settings).fit(TEXT).history_["objective"]  # as many numbers as words: every log n can be met
    assert cost[-1] < 1e-3 * cost[0]


def test_a_step_of_full_descent_is_along_the_gradient():
    settings = QUICK | {"solver": "gd", "learning_rate": 0.5}
    before, after = (GloVe(**(settings | {"max_iter": t})).fit(TEXT) for t in (3, 4))
    n = Cooccurrence(min_count=1, window=3).fit(TEXT).counts_.toarray().astype(float)
    f = np.where(n > 0, np.minimum(1, (n / 10) ** 0.75), 0)
    U, Z = before.row_factors_.astype(float), before.components_.T.astype(float)
    gap = U @ Z.T + before.row_bias_[:, None] + before.column_bias_ - np.log(np.where(n > 0, n, 1))
    step = 0.5 / max(f.sum(axis=0).max(), f.sum(axis=1).max())
    for moved, gradient in (
        (after.row_factors_ - U, (f * gap) @ Z),
        (after.components_.T - Z, (f * gap).T @ U),
        (after.row_bias_ - before.row_bias_, (f * gap).sum(axis=1)),
        (after.column_bias_ - before.column_bias_, (f * gap).sum(axis=0)),
    ):
        np.testing.assert_allclose(moved, -step * gradient, atol=1e-5)
    assert after.history_["objective"][-1] == pytest.approx(0.5 * (f * gap**2).sum() / (n > 0).sum(), rel=1e-4)


def test_small_steps_of_full_descent_never_rise():
    cost = GloVe(**(QUICK | {"solver": "gd", "learning_rate": 0.1, "max_iter": 60})).fit(TEXT).history_["objective"]
    assert all(b <= a for a, b in pairwise(cost)) and cost[-1] < cost[0]


@pytest.mark.parametrize(
    "options, corpus, message",
    [
        ({"n_components": 50, "weighting": "all"}, TEXT, "n_components=50 is more than"),
        ({"n_components": 50, "weighting": "observed"}, TEXT, "n_components=50 is more than"),
        ({"weighting": "all", "solver": "sgd"}, TEXT, "solver"),
        ({}, ["one", "two"], r"no two of the 2 words .* window=10"),
        *(({name: value}, TEXT, name) for name, value in (("x_max", 0), ("alpha", -1), ("weighting", "none"))),
        ({"learning_rate": 0}, TEXT, "learning_rate"),
    ],
)
def test_refusals(options, corpus, message):
    with pytest.raises(ValueError, match=message):
        GloVe(**{"min_count": 1, **options}).fit(corpus)
