"""Laws of the dense networks: gradients, what is learned, what stays the same."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression

from twofold import InputError, MLPClassifier, MLPRegressor
from twofold.deep._network import Dropout, build_dense

SLOPE = {
    "relu": lambda a: (a > 0).astype(float),
    "logistic": lambda a: np.exp(-a) / (1 + np.exp(-a)) ** 2,
    "tanh": lambda a: 1 - np.tanh(a) ** 2,
    "identity": np.ones_like,
}
BEND = {
    "relu": lambda a: np.maximum(a, 0),
    "logistic": lambda a: 1 / (1 + np.exp(-a)),
    "tanh": np.tanh,
    "identity": lambda a: a,
}


@pytest.fixture(scope="module")
def table(digits, labels):
    return digits, labels


@pytest.mark.parametrize("activation", SLOPE)
def test_the_gradient_is_the_chain_of_jacobians(activation):
    torch.manual_seed(0)
    net = build_dense([4, 5, 3, 2], activation).double()
    x = torch.linspace(-1, 1, 4, dtype=torch.float64, requires_grad=True)
    W = [m.weight.detach().numpy() for m in net if isinstance(m, torch.nn.Linear)]
    b = [m.bias.detach().numpy() for m in net if isinstance(m, torch.nn.Linear)]
    a, chain = x.detach().numpy(), np.eye(4)
    for i in range(3):
        z = W[i] @ a + b[i]
        slope = SLOPE[activation](z) if i < 2 else np.ones(2)
        chain, a = slope[:, None] * W[i] @ chain, BEND[activation](z) if i < 2 else z
    np.testing.assert_allclose(net(x).detach().numpy(), a, rtol=1e-12)
    found = torch.autograd.functional.jacobian(net, x).numpy()
    np.testing.assert_allclose(found, chain, rtol=1e-10, atol=1e-14)


def test_no_hidden_layer_is_logistic_regression(table):
    X, y = table
    X, y = X[y < 2], y[y < 2]
    Z = (X - X.mean(0)) / np.where(X.std(0) > 0, X.std(0), 1)
    reg = 0.1
    ours = MLPClassifier((), solver="lbfgs", alpha=reg * len(X), tol=1e-8, max_iter=500, random_state=0).fit(X, y)
    theirs = LogisticRegression(C=1 / (reg * len(X)), tol=1e-8, max_iter=1000).fit(Z, y)
    np.testing.assert_allclose(ours.weights_["layers.0.weight"], theirs.coef_[:, ours.columns_], atol=2e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(Z), atol=1e-3)


def test_linear_layers_are_linear_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    Y = X @ rng.normal(size=(4, 2)) * 50 + 1000 + rng.normal(size=(300, 2))
    model = MLPRegressor(
        hidden_layer_sizes=(6,), activation="identity", alpha=0, learning_rate_init=0.01, max_iter=60, random_state=0
    )
    theirs = LinearRegression().fit(X, Y).predict(X)
    assert np.abs(model.fit(X, Y).predict(X) - theirs).max() < 0.02 * Y.std()


@pytest.mark.parametrize("share", [0.25, 0.4, 0.9])
def test_dropout_silences_its_share_and_keeps_the_mean(share):
    torch.manual_seed(0)
    n = 400_001  # no multiple of four, which come from one random word
    out = Dropout(share)(torch.ones(n))
    kept = (out > 0).double()
    assert abs(1 - float(kept.mean()) - share) < 5 * np.sqrt(share * (1 - share) / n)
    torch.testing.assert_close(out[out > 0], torch.full((int(kept.sum()),), 1 / (1 - share)), rtol=2e-4, atol=0)
    centered = kept - kept.mean()
    for lag in (1, 2, 3, 4):  # a unit is silent whatever its neighbors are
        assert abs(float((centered[lag:] * centered[:-lag]).mean() / centered.square().mean())) < 5 / np.sqrt(n)


def test_dropout_passes_gradients_where_it_passes_numbers():
    torch.manual_seed(0)
    x = torch.full((50, 7), 2.0, requires_grad=True)
    out = Dropout(0.5)(x)
    out.sum().backward()
    torch.testing.assert_close(2 * x.grad, out.detach())


def test_a_column_that_never_varied_has_no_say(table):
    X, y = table
    still = np.flatnonzero(np.ptp(X, axis=0) == 0)
    assert len(still)
    model = MLPClassifier((16,), max_iter=2, random_state=0).fit(X, y)
    other = X.copy()
    other[:, still] = 100.0
    np.testing.assert_array_equal(model.decision_function(other), model.decision_function(X))
    np.testing.assert_array_equal(model.columns_, np.setdiff1d(np.arange(X.shape[1]), still))
    bare = model.module_.layers(model.module_.inputs(torch.from_numpy(X[:, model.columns_].astype(np.float32))))
    np.testing.assert_allclose(bare.detach().numpy(), model.decision_function(X), rtol=1e-4, atol=1e-5)


def test_without_a_column_that_varies_the_classes_have_their_shares():
    X, y = np.full((40, 3), 7.0), np.repeat([0, 1], [10, 30])
    model = MLPClassifier((8,), learning_rate_init=0.05, max_iter=200, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X + [0, 0, 1])[:, 1], 0.75, atol=0.02)
    np.testing.assert_array_equal(model.predict_proba(-X), model.predict_proba(X))


def test_a_weight_of_zero_is_no_row(table):
    X, y = table
    wrong = y.copy()
    wrong[900:] = 0
    w = np.where(np.arange(len(X)) < 900, 1.0, 0.0)
    model = MLPClassifier((32,), max_iter=15, random_state=0).fit(X, wrong, sample_weight=w)
    assert model.score(X[900:], y[900:]) > 0.8


def test_targets_keep_their_shape():
    X = np.linspace(0, 1, 20)[:, None]
    for y in (X[:, 0], X, np.hstack([X, -X])):
        assert MLPRegressor(hidden_layer_sizes=(4,), max_iter=1, random_state=0).fit(X, y).predict(X).shape == y.shape


# ---- soft targets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "activation", "likeliest"),
    [
        ([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]], "softmax", [0, 1, 2]),
        ([[0.7, 0.9, 0.2], [0.4, 0.05, 0.6]], "logistic", [[1, 1, 0], [0, 0, 1]]),
    ],
)
def test_probabilities_are_targets(shares, activation, likeliest):
    """Rows with the sum 1 are shares of classes, others of labels; without a hidden layer they come back."""
    every = np.eye(len(shares))
    model = MLPClassifier((), alpha=0.0, solver="lbfgs", max_iter=500, random_state=0)
    model.fit(np.repeat(every, 40, axis=0), np.repeat(shares, 40, axis=0))
    np.testing.assert_allclose(model.predict_proba(every), shares, atol=2e-3)
    assert model.out_activation_ == activation and model.predict(every).tolist() == likeliest


def test_certain_soft_targets_are_classes():
    """Probabilities of 0 and 1 among others are nothing special: cross-entropy of a class is that of its certainty."""
    rng = np.random.default_rng(0)
    X, c = rng.normal(size=(90, 4)), np.arange(90) % 3
    soft = np.eye(3)[c].astype(float)
    soft[0] = [0.5, 0.25, 0.25]  # makes the table one of probabilities
    weights = np.ones(90)
    weights[0] = 0
    hard = MLPClassifier((), solver="lbfgs", max_iter=300, random_state=0).fit(X, c, sample_weight=weights)
    same = MLPClassifier((), solver="lbfgs", max_iter=300, random_state=0).fit(X, soft, sample_weight=weights)
    np.testing.assert_allclose(hard.predict_proba(X), same.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize(
    ("hidden", "y", "message"),
    [
        ((0,), [0, 1], "units of each layer"),
        ((3.5,), [0, 1], "units of each layer"),
        (("a",), [0, 1], "units of each layer"),
        ((4,), [[0.5, 1.5]] * 2, "probabilities"),
    ],
)
def test_what_cannot_be_is_refused(hidden, y, message):
    with pytest.raises(InputError, match=message):
        MLPClassifier(hidden).fit([[0.0], [1.0]], np.array(y))
