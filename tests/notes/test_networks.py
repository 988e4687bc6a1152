"""Worked examples of networks in the notes that the library is built from; docs/learn/index.md names the sets."""

import numpy as np
from scipy.special import expit

from twofold.deep import MLPRegressor, minimize


def test_tanh_is_a_logistic_unit_rescaled():
    """Fei § 7.1.2: tanh x = 2σ(2x) − 1, so a network of one kind computes what one of the other does."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    model = MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", random_state=0).fit(X, y)
    (first, second), (inner, outer) = model.coefs_, model.intercepts_
    by_logistic = expit(2 * (X @ first + inner)) @ (2 * second) + (outer - second.sum(axis=0))
    np.testing.assert_allclose(model.predict(X), by_logistic[:, 0], atol=1e-5)


def test_gradient_steps_on_a_quadratic_keep_both_bounds():
    """Perez Jensen § 4.2, lemmas 18 and 20: 2L(ℓ₀ − ℓ*)/ε² steps, and (1 − μ/L)ᵏ."""
    slopes, start, eps = np.array([4.0, 1.0, 0.25]), np.array([1.0, -2.0, 3.0]), 0.05
    smooth, strong, first = 4.0, 0.25, 0.5 * slopes @ start**2
    found = minimize(
        lambda x: 0.5 * slopes @ x**2, start, "sgd", gradient=lambda x: slopes * x, learning_rate=1 / smooth, tol=eps,
        max_iter=int(2 * smooth * first / eps**2),
    )  # fmt: skip
    assert found.converged
    assert (np.array(found.values) <= first * (1 - strong / smooth) ** np.arange(found.n_iter + 1) * (1 + 1e-12)).all()
