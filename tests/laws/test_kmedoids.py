"""k-medoids: the cost that no swap lowers, any distance, weights, samples."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, pairwise_distances

from twofold import InputError, KMedoids

METRICS = ["euclidean", "manhattan", "cosine", "chebyshev"]


def cost(D, medoids, w=None):
    return float((D[:, medoids].min(axis=1) * (1 if w is None else w)).sum())


@pytest.mark.parametrize("metric", METRICS)
def test_no_swap_of_one_medoid_lowers_the_cost(metric):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(60, 3)), rng.random(60)
    D = pairwise_distances(X, metric=metric)
    model = KMedoids(4, metric=metric, random_state=0).fit(X, sample_weight=w)
    found = list(model.medoid_indices_)
    assert model.converged_ and model.inertia_ == pytest.approx(cost(D, found, w))
    swaps = [[*found[:c], j, *found[c + 1 :]] for c in range(4) for j in range(60)]
    assert min(cost(D, s, w) for s in swaps) >= model.inertia_ * (1 - 1e-9)


def test_the_best_of_all_sets_is_found_on_clear_groups():
    X, y = make_blobs(30, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    D = pairwise_distances(X)
    best = min(combinations(range(30), 3), key=lambda s: cost(D, list(s)))
    model = KMedoids(3, random_state=0).fit(X)
    assert sorted(model.medoid_indices_) == sorted(best)
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize("metric", METRICS)
def test_given_distances_are_as_good_as_rows(metric):
    X = np.random.default_rng(0).normal(size=(50, 4))
    D = pairwise_distances(X, metric=metric)
    rows = KMedoids(5, metric=metric, random_state=3).fit(X)
    given = KMedoids(5, metric="precomputed", random_state=3).fit(D)
    assert given.inertia_ == pytest.approx(rows.inertia_)
    np.testing.assert_array_equal(given.medoid_indices_, rows.medoid_indices_)
    new = np.random.default_rng(1).normal(size=(7, 4))
    np.testing.assert_array_equal(given.predict(pairwise_distances(new, X, metric=metric)), rows.predict(new))


def test_distances_that_depend_on_the_direction():
    """d(row, medoid) is what counts: D[i, j] is the distance of row i to row j."""
    D = np.random.default_rng(0).random((25, 25))
    np.fill_diagonal(D, 0)
    model = KMedoids(2, metric="precomputed", random_state=0).fit(D)
    assert model.inertia_ == pytest.approx(cost(D, list(model.medoid_indices_)))
    best = min(cost(D, list(s)) for s in combinations(range(25), 2))
    assert model.inertia_ <= 1.2 * best


def test_a_function_of_two_rows_is_a_metric():
    X = np.random.default_rng(0).normal(size=(40, 2))
    own = KMedoids(3, metric=lambda a, b: np.abs(a - b).sum(), random_state=0).fit(X)
    named = KMedoids(3, metric="manhattan", random_state=0).fit(X)
    assert own.inertia_ == pytest.approx(named.inertia_)


def test_far_from_the_origin_groups_are_the_same():
    X, _ = make_blobs(60, centers=3, random_state=0)
    near, far = KMedoids(3, random_state=0).fit(X), KMedoids(3, random_state=0).fit(X + 1e8)
    np.testing.assert_array_equal(near.labels_, far.labels_)
    np.testing.assert_array_equal(far.predict(X + 1e8), far.labels_)


def test_samples_stand_for_rows_whose_distances_are_too_many(monkeypatch):
    X, y = make_blobs(3000, centers=[[0, 0], [9, 0], [0, 9], [9, 9]], random_state=0)
    whole = KMedoids(4, random_state=0).fit(X)
    monkeypatch.setattr("twofold.clusters.kmedoids.MAX_ROWS", 400)
    sampled = KMedoids(4, random_state=0).fit(X)
    assert adjusted_rand_score(y, sampled.labels_) == adjusted_rand_score(y, whole.labels_)
    assert whole.inertia_ <= sampled.inertia_ <= 1.1 * whole.inertia_
    assert len(sampled.history_["objective"]) == 5


def test_many_equal_rows():
    X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 10, axis=0)
    model = KMedoids(4, random_state=0).fit(X)
    assert model.inertia_ == 0 and len(set(model.medoid_indices_)) == 4


@pytest.mark.parametrize(
    ("X", "params", "message"),
    [
        (np.ones((4, 3)), {"metric": "precomputed"}, "between all rows"),
        (-np.ones((4, 4)), {"metric": "precomputed"}, "distances are >= 0"),
        (np.ones((4, 3)), {"metric": "far"}, "does not work"),
        (np.ones((4, 3)), {"n_clusters": 5}, "Ask for fewer"),
    ],
)
def test_refusals(X, params, message):
    with pytest.raises(InputError, match=message):
        KMedoids(**{"n_clusters": 2, **params}).fit(X)
