"""Laws of k-means: Lloyd's algorithm exactly, however it is computed, and starts that keep their promise."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from sklearn.cluster import KMeans as Reference
from sklearn.exceptions import ConvergenceWarning

from tests.callbacks import Crash, Recorder
from twofold import Checkpoint, GaussianMixture, KMeans
from twofold.clusters.kmeans import kmeans as kmeans_module
from twofold.clusters.kmeans.seeding import swap_centers

STARTS = ["k-means++", "plain-k-means++", "k-means||", "random"]


def blobs(n=900, d=5, k=6, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    centers = 4 * rng.normal(size=(k, d))
    return centers[np.arange(n) % k] + spread * rng.normal(size=(n, d))


def lloyd(X, Z, w=None, sweeps=300):
    """The obvious algorithm."""
    w = np.ones(len(X)) if w is None else w
    for _ in range(sweeps):
        label = ((X[:, None] - Z[None]) ** 2).sum(axis=2).argmin(axis=1)
        new = np.array([np.average(X[label == c], axis=0, weights=w[label == c]) for c in range(len(Z))])
        if np.array_equal(new, Z):
            break
        Z = new
    return Z, label, float((w * ((X - Z[label]) ** 2).sum(axis=1)).sum())


def exact(Z, **options):
    """Lloyd from given centers until no row moves."""
    return KMeans(len(Z), init=Z, tol=0, max_iter=500, **options)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_distortion_never_rises(start, weighted):
    X = blobs(spread=3.0)
    w = np.random.default_rng(1).random(len(X)) if weighted else None
    cost = np.array(
        KMeans(12, init=start, n_init=1, tol=0, random_state=0).fit(X, sample_weight=w).history_["objective"]
    )
    assert len(cost) > 3 and np.all(np.diff(cost) <= 1e-12 * cost[0])


@pytest.mark.parametrize("k", [2, 7, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_do_not_matter(k, weighted):
    X = blobs(spread=3.0)
    w = np.random.default_rng(1).random(len(X)) if weighted else None
    Z = X[:k].copy()
    model = exact(Z).fit(X, sample_weight=w)
    centers, label, cost = lloyd(X, Z, w)
    np.testing.assert_array_equal(model.labels_, label)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-9, atol=1e-12)
    assert model.inertia_ == pytest.approx(cost, rel=1e-10)
    assert model.history_["objective"][-1] == pytest.approx(cost, rel=1e-9)


def test_bounds_do_not_matter_over_many_blocks(small_blocks):
    X = blobs(spread=3.0)
    np.testing.assert_array_equal(exact(X[:20]).fit(X).labels_, lloyd(X, X[:20])[1])


@pytest.mark.parametrize("dtype, offset", [(np.float64, 0), (np.float64, 1e6), (np.float32, 0), (np.float32, 1e3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_scikit_learn_from_the_same_start(dtype, offset, weighted):
    X = (blobs(spread=2.0) + offset).astype(dtype)
    w = np.random.default_rng(1).random(len(X)) if weighted else None
    Z = X[:10].copy()
    ours = exact(Z).fit(X, sample_weight=w)
    theirs = Reference(10, init=Z.astype(np.float64), n_init=1, tol=0, algorithm="lloyd")
    theirs.fit(X.astype(np.float64), sample_weight=w)
    assert ours.cluster_centers_.dtype == dtype
    assert np.mean(ours.labels_ == theirs.labels_) > (0.999 if dtype == np.float64 else 0.98)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9 if dtype == np.float64 else 2e-3)


def test_far_from_the_origin_nothing_changes():
    X = blobs()
    near, away = exact(X[:6]).fit(X), exact(X[:6] + 1e8).fit(X + 1e8)
    np.testing.assert_array_equal(near.labels_, away.labels_)
    assert away.inertia_ == pytest.approx(near.inertia_, rel=1e-5)


def test_kmeans_is_a_factorization_with_one_hot_codes():
    X = blobs()
    model = KMeans(6, random_state=0).fit(X)
    U = np.eye(6)[model.labels_]
    assert model.inertia_ == pytest.approx(np.linalg.norm(X - U @ model.components_) ** 2)
    # Each half-step is optimal given the other: U by nearest center, Z by least squares.
    np.testing.assert_allclose(np.linalg.lstsq(U, X)[0], model.components_, atol=1e-6)
    np.testing.assert_array_equal(model.transform(X).argmin(axis=1), model.labels_)
    np.testing.assert_allclose(model.transform(X), np.linalg.norm(X[:, None] - model.components_, axis=2), atol=1e-6)


@pytest.mark.parametrize("start", ["k-means++", "k-means||"])
def test_starts_keep_their_promise_on_average(start):
    """E[cost of the start] ≤ 8 (ln k + 2) · best, which a random start misses on blobs far apart."""
    k = 20
    X = blobs(1500, k=k, spread=0.02)
    best = KMeans(k, n_init=5, random_state=0).fit(X).inertia_

    def cost(start_kind, seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return KMeans(k, init=start_kind, n_init=1, max_iter=1, random_state=seed).fit(X).history_["objective"][0]

    bound = 8 * (np.log(k) + 2) * best
    assert np.mean([cost(start, seed) for seed in range(12)]) <= bound
    assert np.mean([cost("random", seed) for seed in range(12)]) > bound


def test_both_clever_starts_end_alike():
    X = blobs(2000, k=15, spread=1.5)
    ends = {
        s: np.mean([KMeans(15, init=s, n_init=1, random_state=t).fit(X).inertia_ for t in range(6)]) for s in STARTS
    }
    assert ends["k-means||"] == pytest.approx(ends["k-means++"], rel=0.1)


def test_more_starts_are_no_worse():
    X = blobs(spread=2.0)
    one = [KMeans(12, n_init=1, random_state=s).fit(X).inertia_ for s in range(4)]
    assert KMeans(12, n_init=20, random_state=0).fit(X).inertia_ <= min(one) * 1.02


def test_empty_clusters_are_seeded_again():
    X = blobs(300, k=3)
    Z = np.concatenate([X[:2], np.full((2, 5), 1e3)])  # two centers that no row is near
    model = exact(Z).fit(X)
    assert np.all(model.counts_ > 0) and np.all(np.abs(model.cluster_centers_) < 100)
    assert model.inertia_ < lloyd(X, X[:2])[2]


@pytest.mark.parametrize("start", STARTS)
def test_fewer_distinct_rows_than_clusters_warn(start):
    X = np.repeat(np.arange(3.0)[:, None], 20, axis=0)
    with pytest.warns(ConvergenceWarning, match="distinct"):
        model = KMeans(5, init=start, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(0.0, abs=1e-12) and np.isfinite(model.cluster_centers_).all()


def test_one_cluster_is_the_mean_and_n_clusters_are_the_rows():
    X = blobs(60)
    one = KMeans(1, random_state=0).fit(X)
    np.testing.assert_allclose(one.cluster_centers_[0], X.mean(axis=0))
    assert one.inertia_ == pytest.approx(((X - X.mean(axis=0)) ** 2).sum())
    every = KMeans(60, random_state=0).fit(X)
    assert every.inertia_ == pytest.approx(0.0, abs=1e-9) and len(set(every.labels_)) == 60


def test_batches_approach_the_whole():
    X = blobs(4000, k=4, spread=0.5)
    order = np.random.default_rng(0).permutation(len(X))
    model = KMeans(4, random_state=0)
    for part in np.array_split(order, 8):
        model.partial_fit(X[part])
    whole = KMeans(4, random_state=0).fit(X)
    assert -model.score(X) == pytest.approx(whole.inertia_, rel=0.01)
    assert model.counts_.sum() == pytest.approx(len(X))


def test_the_first_center_of_batches_is_their_mean():
    X = blobs(600)
    model = KMeans(1, random_state=0)
    for part in np.array_split(X, 5):
        model.partial_fit(part)
    np.testing.assert_allclose(model.cluster_centers_[0], X.mean(axis=0), rtol=1e-9)


def test_a_mixture_whose_variance_goes_to_zero_is_kmeans():
    X = blobs(spread=2.0)
    hard = KMeans(6, tol=0, random_state=0).fit(X)
    soft = GaussianMixture(6, covariance_type="fixed", covariance=1e-4, random_state=0).fit(X)
    centers, label, cost = lloyd(X, soft.means_)
    np.testing.assert_array_equal(soft.predict(X), label)  # a fixed point of Lloyd
    np.testing.assert_allclose(soft.means_, centers, atol=1e-3)
    assert cost == pytest.approx(hard.inertia_, rel=0.1)
    chances = soft.predict_proba(X)
    assert np.all(chances.max(axis=1) > 0.99)


def test_score_is_minus_the_cost():
    X = blobs()
    w = np.random.default_rng(0).random(len(X))
    model = KMeans(6, random_state=0).fit(X, sample_weight=w)
    assert model.score(X, sample_weight=w) == pytest.approx(-model.inertia_)


def test_a_stopped_fit_goes_on_with_its_bounds_to_the_same_bits(small_blocks, tmp_path):
    X = blobs(spread=3.0)
    whole = exact(X[:12]).fit(X)
    assert whole.n_iter_ > 8
    with pytest.raises(Crash):
        exact(X[:12]).set_callbacks(Checkpoint(tmp_path / "c"), Recorder(crash_after=6)).fit(X)
    resumed = exact(X[:12]).set_callbacks(Checkpoint(tmp_path / "c")).fit(X)
    np.testing.assert_array_equal(resumed.cluster_centers_, whole.cluster_centers_)
    assert resumed.history_["objective"] == whole.history_["objective"]
    assert resumed.history_["moved"] == whole.history_["moved"]


def plant_six(n, seed=0):
    """Six clusters of which the nearest are four standard deviations apart, and their cost."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(6, 4))
    centers *= 4 / pdist(centers).min()
    label = rng.integers(6, size=n)
    X = centers[label] + rng.standard_normal((n, 4))
    means = np.array([X[label == c].mean(axis=0) for c in range(6)])
    return X, float(((X - means[label]) ** 2).sum())


def test_long_tables_start_from_a_sample_and_find_planted_clusters(tmp_path, monkeypatch):
    monkeypatch.setattr(kmeans_module, "CHEAP_SWEEP_OPS", 0.0)  # as if the table was longer still
    X, planted = plant_six(60_000)
    fits = [KMeans(6, random_state=seed).fit(X) for seed in range(6)]
    assert max(fit.inertia_ for fit in fits) <= planted
    np.save(tmp_path / "x.npy", X)
    from_disk = KMeans(6, random_state=0).fit(tmp_path / "x.npy")
    np.testing.assert_array_equal(from_disk.cluster_centers_, fits[0].cluster_centers_)
    weighted = KMeans(6, random_state=0).fit(X, sample_weight=np.full(len(X), 2.0))
    assert weighted.inertia_ == pytest.approx(2 * fits[0].inertia_, rel=1e-6)


def test_swaps_never_raise_the_cost_and_mend_a_start_with_two_centers_in_one_cluster():
    X, _ = plant_six(3_000, seed=1)
    start = KMeans(6, random_state=0).fit(X).cluster_centers_
    start[0] = start[1] + 0.1  # one cluster without a center, one with two

    def cost(Z):
        return float((cdist(X, Z) ** 2).min(axis=1).sum())

    mended = [swap_centers(X, start, np.random.default_rng(seed)) for seed in range(5)]
    assert max(map(cost, mended)) < 0.8 * cost(start)
    best = start + 0.0
    for seed in range(3):
        better = swap_centers(X, best, np.random.default_rng(seed))
        assert cost(better) <= cost(best) * (1 + 1e-9)
        best = better
