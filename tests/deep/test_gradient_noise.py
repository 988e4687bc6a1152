"""Laws of the two ways to differentiate an expectation over codes: equal on average, unlike in noise."""

import numpy as np
import pytest

from twofold import DLGM, VAE, InputError
from twofold.deep.gradient_noise import gradient_variance


@pytest.mark.filterwarnings("ignore::twofold.deep._variational.CollapseWarning")
@pytest.mark.parametrize(
    "model",
    [VAE(2, hidden_layer_sizes=(8,)), DLGM((2, 2), hidden_layer_sizes=6, covariance="rank-one")],
    ids=["VAE", "DLGM"],
)
def test_both_estimators_have_one_mean_and_reinforce_the_larger_variance(digits, model):
    X = digits[:16]
    model.set_params(learning_rate_init=1e-3, max_iter=1, random_state=0).fit(digits)
    before = model.module_.baseline.item()
    through, score = gradient_variance(model, X, n_draws=300, random_state=0).values()
    apart = (through.mean - score.mean) / np.sqrt((through.variance + score.variance) / 300 + 1e-12)
    assert np.abs(apart).max() < 6
    assert np.linalg.norm(through.mean - score.mean) < 0.3 * np.linalg.norm(through.mean)
    assert score.total > 4 * through.total
    assert model.module_.baseline.item() == before


def test_the_noise_belongs_to_the_seed(digits):
    model = VAE(2, hidden_layer_sizes=(8,), learning_rate_init=0.01, max_iter=1, random_state=0).fit(digits)
    a, b, c = (gradient_variance(model, digits[:8], n_draws=5, random_state=s)["reinforce"] for s in (0, 0, 1))
    np.testing.assert_array_equal(a.mean, b.mean)
    assert not np.array_equal(a.mean, c.mean)
    with pytest.raises(InputError, match="n_draws=1"):
        gradient_variance(model, digits[:8], n_draws=1)


@pytest.mark.filterwarnings("ignore::twofold.deep._variational.CollapseWarning")
def test_reinforce_learns(digits):
    """A generator whose encoder learns nothing cannot do better than pixels that know nothing of each other."""
    X = (digits >= 8).astype(float)
    model = VAE(
        2, hidden_layer_sizes=(64,), gradient="reinforce", learning_rate_init=3e-3, max_iter=20, random_state=0
    ).fit(X[:1300])
    p = (X[:1300].sum(axis=0) + 0.5) / 1401
    test = X[1300:]
    assert model.score(test) > (test * np.log(p) + (1 - test) * np.log(1 - p)).sum(axis=1).mean()
