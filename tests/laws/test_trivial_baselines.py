"""With their defaults, models of factors do not lose to biases on tables that are unlike each other."""

import numpy as np
import pytest

from twofold import ALS, Biases, GradientFactorization, SVDPlusPlus

TABLES = {  # rows, columns, share known, size of the factors, noise
    "few columns": (600, 6, 0.6, 1.0, 0.5),
    "few columns, noise alone": (600, 6, 0.6, 0.0, 1.0),
    "dense": (150, 20, 0.7, 0.7, 0.5),
    "much noise": (150, 20, 0.5, 0.5, 2.0),
    "sparse": (250, 200, 0.04, 0.5, 1.0),
    "tiny": (20, 10, 0.7, 0.7, 0.5),
}


def make_table(n, d, share, size, noise):
    rng = np.random.default_rng(0)
    truth = (
        rng.normal(size=(n, 1)) / 2 + rng.normal(size=d) / 2 + size * rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))
    )
    return np.where(rng.random((n, d)) < share, truth + noise * rng.normal(size=(n, d)), np.nan), truth, noise


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [ALS, GradientFactorization, SVDPlusPlus], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("table", TABLES)
def test_factors_are_not_worse_than_biases(kind, table):
    X, truth, noise = make_table(*TABLES[table])
    holes = np.isnan(X)
    found, plain = (
        np.sqrt(((model.fit(X).predict(X) - truth)[holes] ** 2).mean() + noise**2)
        for model in (kind(random_state=0), Biases())
    )
    assert found <= 1.02 * plain
