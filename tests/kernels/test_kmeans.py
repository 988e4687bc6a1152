"""The compiled loops of k-means against plain NumPy."""

from itertools import pairwise

import numpy as np
import pytest

from twofold.kernels.kmeans import assign_directly, group_minima, move_rows, reassign, take_minima

both = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def distances(X, Z):
    return np.sqrt(((X[:, None].astype(np.float64) - Z[None]) ** 2).sum(axis=2))


@both
@pytest.mark.parametrize("n, d, k", [(1, 1, 1), (127, 2, 5), (129, 4, 8), (300, 7, 33), (256, 64, 10)])
def test_closest(n, d, k, dtype):
    rng = np.random.default_rng(n)
    X, mean = (rng.normal(size=(n, d)) + 1000).astype(dtype), np.full(d, 1000, dtype)
    Z = rng.normal(size=(k, d)).astype(dtype)
    Z[-1] = Z[0]  # the first of two that are equally near
    label, best = np.empty(n, np.int32), np.empty(n, dtype)
    assign_directly(X, mean, Z, label, best)
    D = distances(X - mean, Z)
    np.testing.assert_allclose(best, D.min(axis=1) ** 2, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(D[np.arange(n), label], D.min(axis=1), rtol=1e-4, atol=1e-3)
    assert k == 1 or (label < k - 1).all()


@both
@pytest.mark.parametrize("k", [1, 2, 9, 70])
def test_nearest(k, dtype):
    rng = np.random.default_rng(k)
    V, base = rng.normal(size=(50, k)).astype(dtype), rng.normal(size=k).astype(dtype)
    V[:, k // 2] = V[:, 0] + base[0] - base[k // 2]  # ties, nearly or quite
    label, best, sums = np.empty(50, np.int32), np.empty(50, dtype), V + base
    take_minima(V, base, label, best)
    np.testing.assert_array_equal(label, sums.argmin(axis=1))
    np.testing.assert_array_equal(best, sums.min(axis=1))
    np.testing.assert_array_equal(V, sums)


@both
def test_group_minima(dtype):
    rng = np.random.default_rng(0)
    V, starts = rng.normal(size=(40, 9)).astype(dtype), np.array([0, 1, 4, 9])
    label, lower = V.argmin(axis=1).astype(np.int32), np.empty((40, 3), dtype)
    group_minima(V, starts, label, lower)
    others = np.where(np.arange(9) == label[:, None], np.inf, V)
    expected = [others[:, a:b].min(axis=1) for a, b in pairwise(starts)]
    np.testing.assert_array_equal(lower, np.transpose(expected))


@both
@pytest.mark.parametrize(
    "k, starts", [(1, [0, 1]), (2, [0, 2]), (12, [0, 12]), (12, [0, 3, 4, 12]), (30, [0, 5, 14, 30])]
)
@pytest.mark.parametrize("moving", [0.0, 0.1, 2.0])
def test_reassign_finds_the_nearest_and_keeps_its_bounds(k, starts, moving, dtype):
    rng = np.random.default_rng(k)
    X, before = rng.normal(size=(300, 4)).astype(dtype), rng.normal(size=(k, 4))
    after = (before + moving * rng.normal(size=before.shape)).astype(dtype)
    before, starts = before.astype(dtype), np.array(starts)
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    D = distances(X, before)
    old = D.argmin(axis=1).astype(np.int32)
    loose = 0.3 * rng.random((300, 1))  # any valid bounds will do
    upper = (D.min(axis=1) + loose[:, 0] + 1e-5).astype(dtype)
    D[np.arange(300), old] = np.inf
    parts = [D[:, a:b].min(axis=1) for a, b in pairwise(starts)]
    lower = (np.transpose(parts) - loose - 1e-5).astype(dtype)
    drift = (np.linalg.norm(after.astype(np.float64) - before, axis=1) * (1 + 1e-5)).astype(dtype)
    retreat = np.maximum.reduceat(drift, starts[:-1])
    gaps = distances(after, after)
    np.fill_diagonal(gaps, np.inf)
    half = (0.5 * gaps.min(axis=1, initial=1e30)).astype(dtype)
    label, moved, former = old.copy(), np.empty(300, np.int64), np.empty(300, np.int32)
    count = reassign(X, after, label, upper, lower, drift, retreat, group, starts, half, moved, former)
    new = distances(X, after)
    np.testing.assert_allclose(new[np.arange(300), label], new.min(axis=1), rtol=1e-5)
    np.testing.assert_array_equal(moved[:count], np.flatnonzero(label != old))
    np.testing.assert_array_equal(former[:count], old[moved[:count]])
    assert np.all(upper >= new[np.arange(300), label] * (1 - 1e-5))
    new[np.arange(300), label] = np.inf
    for g, (a, b) in enumerate(pairwise(starts)):
        assert np.all(lower[:, g] <= new[:, a:b].min(axis=1) + 1e-5)


@both
@pytest.mark.parametrize("first", [True, False])
def test_move(first, dtype):
    rng = np.random.default_rng(0)
    X, shift, w = rng.normal(size=(30, 3)).astype(dtype), rng.normal(size=3), rng.random(30)
    old, label = rng.integers(0, 4, 30).astype(np.int32), rng.integers(0, 4, 30).astype(np.int32)
    if first:
        old[:] = -1
    rows = np.flatnonzero(old != label)
    counts, sums = np.ones(4), np.ones((4, 3))
    move_rows(X, shift, w, rows, old[rows], label, counts, sums)
    gain = np.array([w * ((label == c) * 1.0 - (old == c)) for c in range(4)])  # (4,30)
    np.testing.assert_allclose(counts, 1 + gain.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(sums, 1 + gain @ (X.astype(np.float64) - shift), rtol=1e-9, atol=1e-12)
