"""Worked examples of networks in the notes; docs/learn/concordance.md names the sets."""

import numpy as np
from scipy.special import expit

from twofold.deep import MLPRegressor


def test_tanh_is_a_logistic_unit_rescaled():
    """Fei § 7.1.2: tanh x = 2σ(2x) − 1, so a network of one kind computes what one of the other does."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    model = MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", random_state=0).fit(X, y)
    (first, second), (inner, outer) = model.coefs_, model.intercepts_
    by_logistic = expit(2 * (X @ first + inner)) @ (2 * second) + (outer - second.sum(axis=0))
    np.testing.assert_allclose(model.predict(X), by_logistic[:, 0], atol=1e-5)
