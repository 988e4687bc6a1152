"""What scikit-learn's documentation does with its networks, done with ours: each shows what it shows there."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import (
    load_digits,
    load_iris,
    make_circles,
    make_classification,
    make_friedman1,
    make_moons,
    make_regression,
)
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler

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


@pytest.mark.soak
def test_scaling_first_as_the_tips_say() -> None:
    X, y = load_iris(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    scaler = StandardScaler().fit(X_train)
    clf = MLPClassifier(random_state=0).fit(scaler.transform(X_train), y_train)
    assert clf.score(scaler.transform(X_test), y_test) > 0.9
    assert make_pipeline(StandardScaler(), clf).fit(X_train, y_train).score(X_test, y_test) > 0.9


@pytest.mark.soak
def test_a_search_for_alpha_over_powers_of_ten() -> None:
    X, y = make_moons(150, noise=0.3, random_state=0)
    pipeline = make_pipeline(StandardScaler(), MLPClassifier((10,), solver="lbfgs", max_iter=1000, random_state=1))
    search = GridSearchCV(pipeline, {"mlpclassifier__alpha": 10.0 ** -np.arange(-1, 2)}, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert search.best_estimator_[-1].alpha == search.best_params_["mlpclassifier__alpha"]


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


@pytest.mark.soak
def test_alpha_smooths_the_boundary() -> None:
    X, y = make_circles(100, noise=0.2, factor=0.5, random_state=1)
    norms = []
    for alpha in np.logspace(-1, 1, 3):
        mlp = MLPClassifier([10, 10], solver="lbfgs", alpha=alpha, random_state=1, max_iter=2000, early_stopping=True)
        model = make_pipeline(StandardScaler(), mlp).fit(X, y)
        assert model.decision_function(X).shape == (100,)
        norms.append(sum(float(np.square(coef).sum()) for coef in model[-1].coefs_))
    assert norms == sorted(norms, reverse=True)


@unfinished
def test_the_first_layer_as_pictures() -> None:
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0, test_size=0.7)
    options = {"max_iter": 8, "alpha": 1e-4, "solver": "sgd", "learning_rate_init": 0.2}
    mlp = MLPClassifier((40,), random_state=1, learning_rate="constant", scale=False, **options).fit(X_train, y_train)
    assert mlp.score(X_test, y_test) > 0.8
    pictures = [coef.reshape(8, 8) for coef in mlp.coefs_[0].T]
    assert len(pictures) == 40
    with pytest.raises(TypeError, match="ProgressBar"):
        MLPClassifier((40,), verbose=10)


@pytest.mark.soak
def test_among_other_classifiers() -> None:
    X, y = make_moons(noise=0.3, random_state=0, n_samples=200)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=42)
    model = make_pipeline(StandardScaler(), MLPClassifier(alpha=1, max_iter=1000, random_state=42))
    assert model.fit(X_train, y_train).score(X_test, y_test) > 0.8
    grid = np.array([[-1.0, 1.0], [2.0, -1.0]])
    assert model.predict_proba(grid)[:, 1].tolist() == sorted(model.predict_proba(grid)[:, 1])


@pytest.mark.soak
def test_how_a_prediction_depends_on_one_column() -> None:
    X, y = make_friedman1(300, noise=0.1, random_state=0)
    mlp = MLPRegressor(hidden_layer_sizes=(30, 15), learning_rate_init=0.01, early_stopping=True, random_state=0)
    model = make_pipeline(QuantileTransformer(n_quantiles=100), mlp).fit(X, y - y.mean())
    assert mlp.validation_scores_ is not None and mlp.best_validation_score_ > 0.5
    fourth = partial_dependence(model, X, features=[3], grid_resolution=5)["average"][0]  # y rises with it, 10 a unit
    tenth = partial_dependence(model, X, features=[9], grid_resolution=5)["average"][0]  # and does not ask for this
    assert np.ptp(fourth) > 3 * np.ptp(tenth)
    assert (np.diff(fourth) > 0).all()


@pytest.mark.soak
def test_which_columns_matter() -> None:
    X, y = make_friedman1(300, noise=0.1, random_state=0)
    model = MLPRegressor(hidden_layer_sizes=(30,), learning_rate_init=0.01, random_state=0).fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    assert found[:5].min() > found[5:].max()


@pytest.mark.soak
def test_batches_that_come_one_after_the_other() -> None:
    X, y = load_digits(return_X_y=True)
    clf = MLPClassifier((50,), learning_rate_init=0.01, random_state=0)
    for start in range(0, 1500, 150):
        clf.partial_fit(X[start : start + 150], y[start : start + 150], classes=np.arange(10))
    first = clf.score(X[1500:], y[1500:])
    for _ in range(3):
        clf.partial_fit(X[:1500], y[:1500])
    assert clf.score(X[1500:], y[1500:]) > max(first, 0.8)
    assert len(clf.loss_curve_) == 13 and clf.t_ == 1500 + 3 * 1500


@pytest.mark.soak
def test_counts_by_the_poisson_loss() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(800, 3))
    y = rng.poisson(np.exp(1.5 * X[:, 0]))
    options = {"hidden_layer_sizes": (20,), "max_iter": 40, "random_state": 0}
    counts = MLPRegressor(loss="poisson", **options).fit(X[:600], y[:600])
    guess = counts.predict(X[600:])
    assert (guess > 0).all()
    constant = np.full(200, y[:600].mean())
    assert mean_poisson_deviance(y[600:], guess) < 0.9 * mean_poisson_deviance(y[600:], constant)


def test_weights_of_rows() -> None:
    X, y = make_moons(200, noise=0.1, random_state=0)
    wrong = np.arange(200) % 4 == 0
    told = np.where(wrong, 1 - y, y)
    weighed = MLPClassifier((20,), random_state=0).fit(X, told, sample_weight=np.where(wrong, 0.05, 1.0))
    assert weighed.score(X, y) > 0.85


@pytest.mark.soak
def test_several_numbers_a_row() -> None:
    X, y = make_regression(n_samples=200, n_features=8, n_targets=3, random_state=0)
    model = MLPRegressor(hidden_layer_sizes=(50,), solver="lbfgs", alpha=1, max_iter=1000, random_state=0)
    model.fit(X[:150], y[:150])
    assert model.predict(X[150:]).shape == (50, 3)
    assert model.score(X[150:], y[150:]) > 0.9


def test_an_end_that_was_not_reached_is_said() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        MLPClassifier((100,), learning_rate="constant", max_iter=2, random_state=0).fit(X, y)


@pytest.mark.soak
def test_within_votes_and_cross_validation() -> None:
    X, y = load_iris(return_X_y=True)
    mlp = MLPClassifier((10,), learning_rate_init=0.01, max_iter=40, random_state=0)
    votes = VotingClassifier([("lr", LogisticRegression()), ("mlp", mlp)], voting="soft")
    assert cross_val_score(make_pipeline(StandardScaler(), votes), X, y, cv=3).mean() > 0.9
