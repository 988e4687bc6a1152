"""Networks mean what scikit-learn's mean: the same first weights and batches lead to the same weights and losses."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import neural_network
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import twofold
from twofold import InputError, MLPClassifier, MLPRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(130, 5))
Y = {
    "classes": RNG.integers(0, 3, 130),
    "two": np.where(X[:, 0] > 0, "yes", "no"),
    "labels": (RNG.random((130, 3)) < 0.5).astype(int),
    "number": 3 * X[:, 0] + 1,
    "numbers": np.stack([3 * X[:, 0] + 1, X[:, 1] ** 2], axis=1),
    "counts": RNG.poisson(np.exp(X[:, 0])).astype(float),
}
W = RNG.random(130)


class DoubleClassifier(MLPClassifier):
    _dtype = np.float64


class DoubleRegressor(MLPRegressor):
    _dtype = np.float64


def pair(kind: str, **options: Any) -> tuple[Any, Any]:
    """Ours, in double precision and without scaling, and theirs, not fitted."""
    usual = {"batch_size": 30, "shuffle": False, "learning_rate_init": 1e-3, "random_state": 0}
    options = {"hidden_layer_sizes": (7, 4), **usual, **options}
    if kind in ("classes", "two", "labels"):
        return DoubleClassifier(scale=False, **options), neural_network.MLPClassifier(**options)
    loss = "poisson" if kind == "counts" else "squared_error"
    return DoubleRegressor(loss, scale=False, **options), neural_network.MLPRegressor(loss, **options)


def begin_alike(ours: Any, theirs: Any, y: np.ndarray, w: np.ndarray | None) -> None:
    """Both as after an epoch that has left them the same weights and nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model in (ours, theirs):
            most = model.max_iter
            model.set_params(max_iter=1, warm_start=True).fit(X, y, w).set_params(max_iter=most)
            model.t_, model.loss_curve_, model.best_loss_ = 0, [], np.inf
    ours._end, theirs._no_improvement_count = ours._end._replace(stale=0), 0
    theirs.coefs_, theirs.intercepts_ = ([a.copy() for a in part] for part in (ours.coefs_, ours.intercepts_))


def assert_same(ours: Any, theirs: Any, atol: float = 1e-6) -> None:
    for mine, other in zip(ours.coefs_ + ours.intercepts_, theirs.coefs_ + theirs.intercepts_, strict=True):
        np.testing.assert_allclose(mine, other, atol=atol)
    np.testing.assert_allclose(ours.loss_curve_, theirs.loss_curve_, atol=atol)
    for name in ("n_iter_", "t_", "n_layers_", "n_outputs_", "out_activation_"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.loss_ == pytest.approx(theirs.loss_) and ours.best_loss_ == pytest.approx(theirs.best_loss_)


SOLVERS = {
    "plain": {"solver": "sgd", "momentum": 0.0, "learning_rate_init": 0.1},
    "momentum": {"solver": "sgd", "momentum": 0.8, "nesterovs_momentum": False, "learning_rate_init": 0.02},
    "nesterov": {"solver": "sgd", "alpha": 0.5, "learning_rate_init": 0.02},
    "invscaling": {"solver": "sgd", "learning_rate": "invscaling", "power_t": 0.3, "learning_rate_init": 0.1},
    "adaptive": {"solver": "sgd", "learning_rate": "adaptive", "tol": 1.0, "n_iter_no_change": 1},
    "adam": {"solver": "adam", "alpha": 0.3, "learning_rate": "constant"},
    "adam with all its numbers": {"solver": "adam", "learning_rate": "invscaling", "beta_1": 0.8, "epsilon": 1e-3},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", Y)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_steps_from_the_same_weights(solver: str, kind: str) -> None:
    activation = "logistic" if solver in ("plain", "adam") else "relu"
    for w in (None, W) if solver in ("nesterov", "adam") else (None,):
        ours, theirs = pair(kind, activation=activation, max_iter=4, **{"learning_rate": "constant", **SOLVERS[solver]})
        begin_alike(ours, theirs, Y[kind], w)
        first = ours.coefs_[0]
        ours.fit(X, Y[kind], w)
        theirs.fit(X, Y[kind], w)
        assert np.abs(ours.coefs_[0] - first).max() > 1e-5  # it moved
        assert_same(ours, theirs)
        answer = "predict_proba" if kind in ("classes", "two", "labels") else "predict"
        np.testing.assert_allclose(getattr(ours, answer)(X), getattr(theirs, answer)(X), atol=1e-5)


@pytest.mark.parametrize("solver", ["nesterov", "adam"])
def test_the_same_stream(solver: str) -> None:
    """Batch after batch, with what the solver remembers."""
    options = {"learning_rate": "constant", **SOLVERS[solver]}
    ours, theirs = pair("classes", **options)
    y = Y["classes"]
    for model in (ours, theirs):
        model.partial_fit(X[:40], y[:40], classes=[0, 1, 2])
    theirs.coefs_, theirs.intercepts_ = ([a.copy() for a in part] for part in (ours.coefs_, ours.intercepts_))
    theirs._optimizer, theirs.loss_curve_, theirs.best_loss_ = None, list(ours.loss_curve_), ours.best_loss_
    del theirs._optimizer
    ours._end = ours._end._replace(memory=ours._end.memory[:0])
    for a in (40, 70, 100):
        ours.partial_fit(X[a : a + 30], y[a : a + 30])
        theirs.partial_fit(X[a : a + 30], y[a : a + 30])
    assert_same(ours, theirs)


@pytest.mark.parametrize("kind", ["classes", "number", "counts"])
def test_lbfgs_reaches_the_same_minimum(kind: str) -> None:
    """Without hidden layers there is one."""
    options = {"hidden_layer_sizes": (), "solver": "lbfgs", "alpha": 1.0, "tol": 1e-6, "max_iter": 500}
    ours, theirs = pair(kind, **options)
    ours.fit(X, Y[kind])
    theirs.fit(X, Y[kind])
    assert ours.loss_ == pytest.approx(theirs.loss_, rel=1e-6)
    assert ours.converged_
    np.testing.assert_allclose(ours.coefs_[0], theirs.coefs_[0], atol=1e-3)


def test_the_layers_are_those_of_x_as_it_comes() -> None:
    """Scales, means and columns that never varied are in the weights."""
    raw = np.column_stack([5 * X + 3, np.full(130, 7.0)])
    model = MLPRegressor(hidden_layer_sizes=(6,), max_iter=5, random_state=0).fit(raw, Y["numbers"] * 100)
    assert [c.shape for c in model.coefs_] == [(6, 6), (6, 2)] and [b.shape for b in model.intercepts_] == [(6,), (2,)]
    assert not model.coefs_[0][5].any()
    hidden = np.maximum(raw @ model.coefs_[0] + model.intercepts_[0], 0)
    np.testing.assert_allclose(
        hidden @ model.coefs_[1] + model.intercepts_[1], model.predict(raw), rtol=1e-3, atol=1e-2
    )


@pytest.mark.parametrize("factor", [0.01, 1.0, 100.0])
def test_losses_of_numbers_are_in_their_units_and_training_is_not(factor: float) -> None:
    y, options = factor * Y["number"], {"hidden_layer_sizes": (8,), "batch_size": 130, "alpha": 0.0, "random_state": 0}
    model = MLPRegressor(learning_rate_init=1e-9, max_iter=1, **options).fit(X, y)
    assert model.loss_ == pytest.approx(0.5 * np.mean((model.predict(X) - y) ** 2), rel=1e-4)
    first, model = (MLPRegressor(max_iter=15, tol=0.0, **options).fit(X, d * Y["number"]) for d in (1.0, factor))
    np.testing.assert_allclose(model.predict(X), factor * first.predict(X), rtol=1e-3, atol=1e-3 * factor)


def test_early_stopping_holds_out_shares_of_the_classes_and_keeps_the_best() -> None:
    Z, y = load_iris(return_X_y=True)
    options = {"early_stopping": True, "validation_fraction": 0.2, "n_iter_no_change": 5, "max_iter": 60}
    model = MLPClassifier((16,), learning_rate="constant", random_state=0, **options).fit(Z, y)
    assert model.best_loss_ is None and model.best_validation_score_ == max(model.validation_scores_)
    assert len(model.validation_scores_) == len(model.loss_curve_) == model.n_iter_
    assert model.t_ == 120 * model.n_iter_
    _, held = model._split(y, 0, False)
    assert np.bincount(y[held]).tolist() == [10, 10, 10]
    assert MLPClassifier((16,), max_iter=5, random_state=0).fit(Z, y).validation_scores_ is None


def test_training_ends_when_the_loss_stands_still_and_says_when_it_does_not() -> None:
    Z, y = load_iris(return_X_y=True)
    options = {"learning_rate": "constant", "random_state": 0}
    model = MLPClassifier((8,), tol=10.0, n_iter_no_change=3, **options).fit(Z, y)
    assert model.n_iter_ == 5 and model.converged_  # the first is the best, four more are one too many
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        assert not MLPClassifier((8,), max_iter=2, **options).fit(Z, y).converged_


def test_a_warm_start_goes_on_and_a_cold_one_does_not() -> None:
    y = Y["classes"]
    model = MLPClassifier((8,), max_iter=3, warm_start=True, random_state=0).fit(X, y)
    first = model.loss_curve_
    model.fit(X, y)
    assert model.loss_curve_[:3] == first and len(model.loss_curve_) == 6 and model.n_iter_ == 3
    assert model.loss_curve_[3] < first[0]
    assert model.set_params(warm_start=False).fit(X, y).loss_curve_ == first
    with pytest.raises(InputError, match="warm_start=False"):
        model.set_params(warm_start=True).fit(X[y < 2], y[y < 2])
    with pytest.raises(InputError, match="other sizes"):
        model.set_params(hidden_layer_sizes=(9,)).fit(X, y)


def test_a_stream_survives_its_file(tmp_path: Any) -> None:
    model = MLPRegressor(hidden_layer_sizes=(8,), random_state=0)
    for a in range(0, 120, 30):
        model.partial_fit(X[a : a + 30], Y["number"][a : a + 30])
    model.save(tmp_path / "stream.twofold")
    again = twofold.load(tmp_path / "stream.twofold")
    assert again.t_ == 120 and again.loss_curve_ == model.loss_curve_
    assert len(again.partial_fit(X, Y["number"]).loss_curve_) == 5


def test_sparse_rows_are_rows() -> None:
    Z = np.where(np.abs(X) > 1, X, 0.0)
    one, other = (MLPClassifier((8,), max_iter=3, random_state=0).fit(D, Y["two"]) for D in (Z, sparse.csr_array(Z)))
    np.testing.assert_array_equal(one.predict_proba(Z), other.predict_proba(sparse.csr_array(Z)))


def test_probabilities_have_logarithms_where_they_are_too_small() -> None:
    model = MLPClassifier((8,), max_iter=3, random_state=0).fit(X, Y["two"])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)
    assert np.isfinite(model.predict_log_proba(1e6 * X)).all()


@pytest.mark.parametrize("name", ["MLPRegressor", "PixelCNN"])
def test_a_learning_rate_that_is_a_number_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="learning_rate_init"):
        getattr(twofold, name)(learning_rate=0.01)._validate_params()


def test_what_cannot_be_is_refused() -> None:
    y = Y["classes"]
    with pytest.raises(InputError, match="first call"):
        MLPClassifier().partial_fit(X, y)
    with pytest.raises(InputError, match="early_stopping"):
        MLPClassifier(early_stopping=True).partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(InputError, match="dropout"):
        MLPClassifier(solver="lbfgs", dropout=0.5).fit(X, y)
    with pytest.raises(InputError, match="at least 0"):
        MLPRegressor("poisson").fit(X, Y["number"] - 100)
    with pytest.raises(InputError, match="0 and 1"):
        MLPClassifier().fit(X, np.stack([y, y], axis=1))
    with pytest.raises(InputError, match="validation_fraction"):
        MLPClassifier(early_stopping=True, validation_fraction=0.005).fit(X, y)
    assert not hasattr(MLPClassifier(solver="lbfgs"), "partial_fit")
