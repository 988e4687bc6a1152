"""What scikit-learn's documentation does with its networks, done with ours: each shows what it shows there."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import (
    load_iris,
    make_classification,
    make_moons,
    make_regression,
)
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from twofold import MLPClassifier, MLPRegressor

unfinished = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_the_classifier_of_the_reference() -> None:
    X, y = make_classification(n_samples=100, random_state=1)
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=1)
    clf = MLPClassifier(random_state=1, max_iter=300).fit(X_train, y_train)
    assert clf.predict_proba(X_test[:1]).shape == (1, 2)
    assert clf.predict(X_test[:5, :]).shape == (5,)
    assert clf.score(X_test, y_test) >= 0.8


def test_the_regressor_of_the_reference() -> None:
    X, y = make_regression(n_samples=200, n_features=20, random_state=1)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=1)
    regr = MLPRegressor(random_state=1, max_iter=2000, tol=0.1).fit(X_train, y_train)
    assert regr.predict(X_test[:2]).shape == (2,)
    assert regr.score(X_test, y_test) > 0.9
    assert regr.n_iter_ < 2000  # the tolerance stops it


def test_two_points_and_the_shapes_of_the_layers() -> None:
    X, y = [[0.0, 0.0], [1.0, 1.0]], [0, 1]
    clf = MLPClassifier(solver="lbfgs", alpha=1e-5, hidden_layer_sizes=(5, 2), random_state=1).fit(X, y)
    assert clf.predict([[2.0, 2.0], [-1.0, -2.0]]).tolist() == [1, 0]
    assert [coef.shape for coef in clf.coefs_] == [(2, 5), (5, 2), (2, 1)]
    assert [bias.shape for bias in clf.intercepts_] == [(5,), (2,), (1,)]
    np.testing.assert_allclose(clf.predict_proba([[2.0, 2.0], [1.0, 2.0]]).sum(axis=1), 1)


def test_rows_with_several_labels() -> None:
    X, y = [[0.0, 0.0], [1.0, 1.0]], [[0, 1], [1, 1]]
    clf = MLPClassifier(solver="lbfgs", alpha=1e-5, hidden_layer_sizes=(15,), random_state=1).fit(X, y)
    assert clf.predict([[1.0, 2.0]]).tolist() == [[1, 1]]
    assert clf.predict([[0.0, 0.0]]).tolist() == [[0, 1]]
    assert clf.out_activation_ == "logistic" and clf.n_outputs_ == 2


@unfinished
def test_more_control_with_a_warm_start() -> None:
    X, y = [[0.0, 0.0], [1.0, 1.0]], [0, 1]
    clf = MLPClassifier(
        (15,),
        solver="sgd",
        learning_rate="constant",
        alpha=1e-5,
        random_state=1,
        max_iter=1,
        warm_start=True,
    )
    for _ in range(10):
        clf.fit(X, y)
    assert len(clf.loss_curve_) == 10 and clf.n_iter_ == 1
    assert clf.loss_curve_[-1] < clf.loss_curve_[0]


CURVES = {
    "constant": {"solver": "sgd", "learning_rate": "constant", "momentum": 0, "learning_rate_init": 0.2},
    "momentum": {"momentum": 0.9, "nesterovs_momentum": False, "learning_rate": "constant"},
    "nesterov": {"momentum": 0.9, "nesterovs_momentum": True, "learning_rate": "constant"},
    "invscaling": {"learning_rate": "invscaling", "momentum": 0, "learning_rate_init": 0.2},
    "invscaling, momentum": {"learning_rate": "invscaling", "momentum": 0.9, "nesterovs_momentum": False},
    "invscaling, nesterov": {"learning_rate": "invscaling", "momentum": 0.9, "nesterovs_momentum": True},
    "adam": {"solver": "adam", "learning_rate": "constant", "learning_rate_init": 0.01},
}


@unfinished
def test_curves_of_the_loss_for_seven_ways_to_learn() -> None:
    X, y = load_iris(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    losses = {}
    for name, options in CURVES.items():
        given = {"solver": "sgd", "learning_rate_init": 0.2, **options}
        mlp = MLPClassifier(random_state=0, max_iter=30, batch_size="auto", **given).fit(X, y)
        assert len(mlp.loss_curve_) == mlp.n_iter_ <= 30
        losses[name] = mlp.loss_curve_[-1]
    assert losses["invscaling"] > losses["constant"]  # it stops moving too early, as there
    assert max(losses[k] for k in ("momentum", "nesterov", "adam")) < losses["constant"]


def test_weights_of_rows() -> None:
    X, y = make_moons(200, noise=0.1, random_state=0)
    wrong = np.arange(200) % 4 == 0
    told = np.where(wrong, 1 - y, y)
    weighed = MLPClassifier((20,), random_state=0).fit(X, told, sample_weight=np.where(wrong, 0.05, 1.0))
    assert weighed.score(X, y) > 0.85
