"""GloVe as it is used: corpora, files, callbacks, scores and refusals."""

import gzip
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import twofold
from twofold import Checkpoint, Cooccurrence, EarlyStopping, GloVe, InputError
from twofold.core.progress import report_to

TEXT = [
    "the cat purrs and the cat sleeps",
    "the kitten purrs and the kitten sleeps",
    "the boat sails and the boat sinks",
    "the ship sails and the ship sinks",
] * 10
QUICK = {"n_components": 3, "min_count": 1, "window": 3, "x_max": 10, "max_iter": 6, "random_state": 0}


def bits(model):
    arrays = (model.vectors_.vectors_, model.row_factors_, model.components_, model.row_bias_, model.column_bias_)
    return [a.tobytes() for a in arrays], model.history_["objective"]


class Stop:
    """Breaks a fit off after some epochs, as a power cut would; or only listens."""

    def __init__(self, after=None):
        self.after, self.epochs = after, 0

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context):
        if context.parent is not None:
            if self.epochs == self.after:
                raise KeyboardInterrupt
            self.epochs += 1

    def on_fit_task_end(self, estimator, context): ...


@pytest.fixture(scope="module")
def fitted():
    return GloVe(**QUICK).fit(TEXT)


def test_a_corpus_may_come_in_any_form(tmp_path, fitted):
    (tmp_path / "text.txt").write_text("\n".join(TEXT))
    with gzip.open(tmp_path / "text.txt.gz", "wt") as file:
        file.write("\n".join(TEXT))
    counted = Cooccurrence(min_count=1, window=3).fit(TEXT)
    forms = ([line.split() for line in TEXT], (line for line in TEXT), tmp_path / "text.txt", tmp_path / "text.txt.gz")
    for form in (*forms, counted):
        assert bits(GloVe(**QUICK).fit(form)) == bits(fitted)


def test_what_is_fitted(fitted):
    V = len(fitted.vocabulary_)
    assert fitted.row_factors_.shape == (V, 3) and fitted.components_.shape == (3, V)
    assert fitted.row_bias_.shape == fitted.column_bias_.shape == (V,)
    assert list(fitted.vectors_.words) == list(fitted.vocabulary_.words_)
    assert np.array_equal(fitted.vectors_.vectors_, fitted.row_factors_ + fitted.components_.T)
    assert np.array_equal(fitted.vectors_.counts_, fitted.vocabulary_.counts_)
    counts = Cooccurrence(min_count=1, window=3).fit(TEXT).counts_
    np.testing.assert_allclose(fitted.total_, counts.sum(), rtol=1e-6)
    assert fitted.n_iter_ == len(fitted.history_["objective"]) == 6 and fitted.converged_


@pytest.mark.parametrize("weighting", ["power", "all"])
def test_words_in_like_company_come_close(weighting):
    options = {**QUICK, "n_components": 4, "max_iter": 60, "weighting": weighting}
    vectors = GloVe(**options).fit(TEXT).vectors_
    assert vectors.similarity("cat", "kitten") > vectors.similarity("cat", "ship")
    assert vectors.similarity("boat", "ship") > vectors.similarity("boat", "kitten")


@pytest.mark.parametrize("weighting", ["power", "all", "observed"])
def test_a_model_file_holds_it_all(tmp_path, weighting):
    model = GloVe(**{**QUICK, "weighting": weighting}).fit(TEXT)
    model.save(tmp_path / "glove.twofold")
    again = twofold.load(tmp_path / "glove.twofold")
    assert bits(again) == bits(model) and again.get_params() == model.get_params()
    assert again.vectors_.nearest("cat") == model.vectors_.nearest("cat")
    assert again.score(TEXT) == model.score(TEXT)


@pytest.mark.parametrize("weighting", ["power", "observed"])
def test_a_fit_broken_off_goes_on_to_the_same_bits(tmp_path, weighting):
    options = {**QUICK, "weighting": weighting}
    wanted = bits(GloVe(**options).fit(TEXT))
    path = tmp_path / "glove.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        GloVe(**options).set_callbacks(Stop(after=3), Checkpoint(path)).fit(TEXT)
    assert path.exists()
    listener = Stop()
    assert bits(GloVe(**options).set_callbacks(listener, Checkpoint(path)).fit(TEXT)) == wanted
    assert listener.epochs == 3 and not path.exists()


def test_the_checkpoint_of_other_pairs_is_refused(tmp_path):
    path = tmp_path / "glove.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        GloVe(**QUICK).set_callbacks(Stop(after=3), Checkpoint(path)).fit(TEXT)
    with pytest.raises(InputError, match="checkpoint of another fit"):
        GloVe(**QUICK).set_callbacks(Checkpoint(path)).fit(TEXT[:-1])


def test_epochs_report_how_far_they_are():
    reports = []
    with report_to(SimpleNamespace(report=lambda done, total, label="": reports.append((done, total, label)))):
        GloVe(**QUICK).fit(TEXT)
    done = [done for done, total, label in reports if total == 6]
    assert done == sorted(done) and done[-1] == 6 and any("pairs a second" in label for *_, label in reports)


def test_the_score_is_minus_the_cost_of_the_pairs(fitted):
    n = Cooccurrence(vocabulary=fitted.vocabulary_, window=3).fit(TEXT).counts_.toarray().astype(float)
    model = fitted.row_factors_ @ fitted.components_ + fitted.row_bias_[:, None] + fitted.column_bias_
    i, j = np.nonzero(n)
    cost = 0.5 * np.minimum(1, (n[i, j] / 10) ** 0.75) * (model[i, j] - np.log(n[i, j])) ** 2
    np.testing.assert_allclose(fitted.score(TEXT), -cost.mean(), rtol=1e-4)
    np.testing.assert_allclose(fitted.score(2 * TEXT), fitted.score(TEXT), rtol=1e-4)  # twice as long, otherwise alike


def test_words_it_does_not_know_are_left_out_of_the_score(fitted):
    more = Cooccurrence(min_count=1, window=3).fit(TEXT + ["zebra zebra zebra"] * 5)
    share = more.counts_.sum() / Cooccurrence(min_count=1, window=3).fit(TEXT).counts_.sum()
    assert np.isfinite(fitted.score(more)) and share > 1
    with pytest.raises(InputError, match="none of the"):
        fitted.score(["zebra zebra"] * 5)


def test_early_stopping_looks_at_held_out_pairs():
    held = Cooccurrence(min_count=1, window=3).fit(TEXT[:4])
    stop = EarlyStopping(held, patience=2)
    model = GloVe(**{**QUICK, "max_iter": 40}).set_callbacks(stop).fit(TEXT)
    assert len(stop.scores_) == model.n_iter_
    assert model.score(held) == stop.best_score_ == max(stop.scores_)


def test_a_tolerance_ends_it_early():
    model = GloVe(**{**QUICK, "max_iter": 500, "tol": 0.01}).fit(TEXT)
    cost = model.history_["objective"]
    assert model.n_iter_ < 500 and 1 - cost[-1] / cost[-2] <= 0.01 < 1 - cost[-2] / cost[-3]


@pytest.mark.parametrize("weighting", ["all", "observed"])
def test_more_numbers_than_words_are_refused(weighting):
    with pytest.raises(InputError, match=r"n_components=50 is more than"):
        GloVe(50, weighting=weighting, min_count=1).fit(TEXT)


def test_a_corpus_without_pairs_is_refused():
    with pytest.raises(InputError, match=r"no two of the 2 words .* window=10"):
        GloVe(min_count=1).fit(["one", "two"])


@pytest.mark.parametrize(
    "wrong", [{"n_components": 0}, {"x_max": 0}, {"alpha": -1}, {"weighting": "none"}, {"learning_rate": 0}]
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GloVe(**{"min_count": 1, **wrong}).fit(TEXT)


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


def test_other_weights_have_solvers_of_their_own():
    with pytest.raises(InputError, match="solver"):
        GloVe(**(QUICK | {"weighting": "all", "solver": "sgd"})).fit(TEXT)
