"""Worked examples of mixtures in the notes; docs/learn/concordance.md names the sets."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from twofold import GaussianMixture, select


@pytest.mark.parametrize(
    ("kind", "count"),
    [("fixed", lambda k, d: k * d + k - 1), ("full", lambda k, d: k * (d + d * (d + 1) // 2) + k - 1)],
)
@pytest.mark.parametrize(("k", "d"), [(1, 2), (3, 2), (4, 5)])
def test_free_parameters(kind, count, k, d):
    """Fei § 6.4. Our BIC is twice that of the notes, so the parameters are what log n multiplies."""
    X = np.random.default_rng(0).normal(size=(200, d))
    model = GaussianMixture(k, covariance_type=kind, random_state=0).fit(X)
    found = model.bic(X) + 2 * model.score_samples(X).sum()
    assert found == pytest.approx(count(k, d) * np.log(200))
    notes = -model.score_samples(X).sum() + 0.5 * count(k, d) * np.log(200)
    assert model.bic(X) == pytest.approx(2 * notes)


@pytest.mark.parametrize("k", [3, 5])
def test_bic_is_least_at_the_number_of_groups(k):
    """Fei § 6.4, figures 6.7 and 6.8: three groups, tighter on the left than on the right, and five."""
    centers = 8 * np.stack([np.arange(k), np.arange(k) % 2], axis=1)
    X, _ = make_blobs(150 * k, centers=centers, cluster_std=np.linspace(0.4, 1.0, k), random_state=0)
    found = select(GaussianMixture(random_state=0), X, criterion="bic", n_components=range(1, 8))
    assert found.best_params == {"n_components": k}
