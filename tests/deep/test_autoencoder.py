"""Laws of the deep autoencoder: PCA where it is linear, better than PCA where it bends."""

import math

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from twofold import PCA, Autoencoder, InputError


def measure_error(X, Y):
    return float(((X - Y) ** 2).sum(axis=1).mean())


def by_pca(train, test, k):
    model = PCA(k).fit(train)
    return measure_error(test, model.inverse_transform(model.transform(test)))


def test_linear_layers_find_the_subspace_of_pca():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)) * [9, 6, 4, 1, 1, 1] @ np.linalg.qr(rng.normal(size=(6, 6)))[0] + 100
    model = Autoencoder(
        3, hidden_layer_sizes=(), activation="identity", learning_rate_init=0.02, max_iter=150, random_state=0
    ).fit(X)
    weights = model.weights_["decoder.0.weight"]
    angle = subspace_angles(weights.astype(float), PCA(3).fit(X).components_.T).max()
    assert np.degrees(angle) < 2
    assert measure_error(X, model.reconstruct(X)) < 1.02 * by_pca(X, X, 3)


@pytest.mark.parametrize("output", ["identity", "logistic"])
def test_a_column_that_never_varied_is_neither_coded_nor_forgotten(digits, output):
    X = digits.copy()
    X[:, 20] = 3.0
    still = np.ptp(X, axis=0) == 0
    model = Autoencoder(6, hidden_layer_sizes=(32,), output=output, max_iter=2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.columns_, np.flatnonzero(~still))
    stray = X + 100 * still
    np.testing.assert_array_equal(model.transform(stray), model.transform(X))
    np.testing.assert_array_equal(model.reconstruct(stray)[:, still], X[:, still])
    assert math.isclose(model.score(X), -measure_error(X, model.reconstruct(X)), rel_tol=1e-4)


def test_layers_that_bend_beat_pca_on_held_out_digits(digits):
    train, test = digits[::2], digits[1::2]
    model = Autoencoder(6, hidden_layer_sizes=(256, 128), learning_rate_init=3e-3, max_iter=25, random_state=0).fit(
        train
    )
    assert -model.score(test) < 0.9 * by_pca(train, test, 6)


def test_a_denoising_one_takes_noise_away(digits):
    rng = np.random.default_rng(0)
    train, test = digits[::2], digits[1::2]
    noisy = test + train.std() * rng.normal(size=test.shape)
    options = {"hidden_layer_sizes": (256,), "learning_rate_init": 3e-3, "max_iter": 20, "random_state": 0}
    plain = Autoencoder(48, **options).fit(train)
    model = Autoencoder(48, noise=1.0, **options).fit(train)
    assert measure_error(test, model.reconstruct(noisy)) < 0.5 * measure_error(test, noisy)
    assert measure_error(test, model.reconstruct(noisy)) < measure_error(test, plain.reconstruct(noisy))


def test_a_sigmoid_stays_between_black_and_white(digits):
    model = Autoencoder(2, hidden_layer_sizes=(16,), output="logistic", max_iter=2, random_state=0).fit(digits)
    out = model.inverse_transform(np.random.default_rng(0).normal(size=(50, 2)) * 1e3)
    assert out.min() >= 0
    assert out.max() <= 16


def test_units_do_not_matter(digits):
    options = {"hidden_layer_sizes": (16,), "max_iter": 2, "random_state": 0}
    one, other = Autoencoder(3, **options).fit(digits), Autoencoder(3, **options).fit(digits * 1024)
    np.testing.assert_allclose(other.reconstruct(digits * 1024) / 1024, one.reconstruct(digits), atol=1e-3)


def test_a_scale_taken_into_the_layers_changes_no_code():
    rng = np.random.default_rng(0)
    X, scale = rng.normal(size=(60, 4)) + 3, np.array([1.0, 10.0, 0.1, 500.0])
    model = Autoencoder(2, hidden_layer_sizes=(8,), max_iter=3, random_state=0).fit(X)
    other = model.rescaled(scale)
    np.testing.assert_allclose(other.transform(X * scale), model.transform(X), atol=1e-4)
    back = model.inverse_transform(model.transform(X)) * scale
    np.testing.assert_allclose(other.inverse_transform(other.transform(X * scale)), back, rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="numbers above 0"):
        model.rescaled(np.ones(3))


def test_a_held_out_score_hides_what_it_scores():
    """Two dimensions in six: a code of five numbers describes rows better, and predicts hidden numbers worse."""
    rng = np.random.default_rng(0)
    X = 4 * rng.normal(size=(300, 2)) @ np.linalg.qr(rng.normal(size=(6, 2)))[0].T + rng.normal(size=(300, 6))
    options = {"hidden_layer_sizes": (), "activation": "identity", "learning_rate_init": 0.02, "max_iter": 60}
    two, five = (Autoencoder(k, random_state=0, **options).fit(X[:200]) for k in (2, 5))
    assert five.score(X[200:]) > two.score(X[200:])
    assert five.heldout_score(X[200:]) < two.heldout_score(X[200:])
