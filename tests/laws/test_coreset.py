"""Laws of coresets and codebooks: costs that are right on average, close for many rows, the same wherever rows lie."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import twofold
from twofold import KMeans, VectorQuantizer
from twofold.clusters import CoresetStream, coreset, coreset_size, palette


def blobs(n=3000, d=4, k=5, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return (3 * rng.normal(size=(k, d))[np.arange(n) % k] + rng.normal(size=(n, d))).astype(dtype)


def cost(points, centers, weights=None):
    gaps = ((np.asarray(points)[:, None] - centers[None]) ** 2).sum(axis=2).min(axis=1)
    return float(gaps.sum() if weights is None else gaps @ weights)


def same(a, b):
    """Both points and weights have the same bits."""
    return all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [1, 30])
def test_the_cost_is_right_on_average(weighted, m, small_blocks):
    X = blobs(400)
    w = np.random.default_rng(1).random(len(X)) if weighted else np.ones(len(X))
    for centers in (X[:3], 10 * X[5:7]):
        drawn = [coreset(X, m, sample_weight=w if weighted else None, random_state=s) for s in range(300)]
        costs = np.array([cost(p, centers, v) for p, v in drawn])
        assert abs(costs.mean() - cost(X, centers, w)) < 4 * costs.std() / np.sqrt(len(costs))
    totals = np.array([v.sum() for _, v in drawn])
    assert abs(totals.mean() - w.sum()) < 4 * totals.std() / np.sqrt(len(totals))


def test_chances_are_half_even_and_half_by_distance(small_blocks):
    X = blobs(200)
    times, m = np.zeros(len(X)), 100
    for seed in range(200):
        points, weights = coreset(X, m, random_state=seed)
        rows = [int(np.flatnonzero((p == X).all(axis=1))[0]) for p in points]
        times[rows] += np.rint(weights * m * chances(X)[rows])  # a row drawn twice has twice the weight
    expected = 200 * m * chances(X)
    assert np.abs((times - expected) / np.sqrt(expected)).max() < 5
    assert times.sum() == 200 * m


def chances(X):
    far = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    return 0.5 / len(X) + 0.5 * far / far.sum()


def test_a_coreset_of_the_stated_size_is_close_enough():
    X, eps = blobs(20_000), 0.2
    m = coreset_size(5, 4, eps, 0.1)
    assert m < len(X)
    mean_cost = cost(X, X.mean(axis=0)[None])
    full = KMeans(5, n_init=3, random_state=0).fit(X).inertia_
    for seed in range(5):  # of thirty coresets none came nearer to its bound than a seventh
        points, weights = coreset(X, m, random_state=seed)
        fitted = KMeans(5, n_init=5, random_state=seed).fit(points, sample_weight=weights).cluster_centers_
        for centers in (fitted, X[seed : seed + 5]):
            true = cost(X, centers)
            assert abs(cost(points, centers, weights) - true) < eps / 2 * (true + mean_cost)
        assert cost(X, fitted) < (1 + eps) * full


def test_the_size_follows_the_formula():
    assert coreset_size(10, 5, 0.1, 0.1) == int(np.ceil((50 * np.log(10) + np.log(10)) / 0.01))
    sizes = [coreset_size(k, 3, 0.1) for k in range(1, 30)]
    assert np.all(np.diff(sizes) >= 0) and coreset_size(5, 3, 0.05) > 3.9 * coreset_size(5, 3, 0.1)
    for wrong in ({"k": 0}, {"d": 1.5}, {"eps": 0}, {"delta": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            coreset_size(**{"k": 3, "d": 2, "eps": 0.1, "delta": 0.1, **wrong})


def test_same_bits_wherever_the_rows_lie(small_blocks, tmp_path, clusters):
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    X = blobs(700)
    w = np.random.default_rng(1).random(700)
    np.save(tmp_path / "x.npy", X)
    pl.DataFrame(X).write_parquet(tmp_path / "x.parquet")
    lazy = da.from_array(X, chunks=(97, 3))
    with twofold.config(threads=1):
        expected = coreset(X, 80, sample_weight=w, random_state=3)
    places = [X, np.asfortranarray(X), tmp_path / "x.npy", str(tmp_path / "x.parquet"), lazy, pl.DataFrame(X)]
    with twofold.config(threads=3):
        for place in places:
            assert same(expected, coreset(place, 80, sample_weight=w, random_state=3)), type(place)
    with distributed.Client(clusters(3)):
        assert same(expected, coreset(lazy, 80, sample_weight=w, random_state=3))


def test_sparse_rows_stay_sparse_and_equal_dense():
    D = np.where(np.abs(blobs(500)) < 2, 0.0, blobs(500))
    points, weights = coreset(sparse.csr_array(D), 60, random_state=0)
    dense, same_weights = coreset(D, 60, random_state=0)
    assert sparse.issparse(points)
    np.testing.assert_array_equal(points.toarray(), dense)
    np.testing.assert_allclose(weights, same_weights, rtol=1e-9)


def test_edges():
    X = blobs(50, dtype=np.float32)
    w = np.random.default_rng(0).random(50)
    points, weights = coreset(X, 50, sample_weight=w)
    assert np.array_equal(points, X) and np.array_equal(weights, w) and points.dtype == np.float32
    points[0] = 0
    assert X[0].any()  # the caller's rows are left alone
    equal, weights = coreset(np.ones((30, 2)), 10, random_state=0)
    assert np.all(equal == 1) and weights.sum() == pytest.approx(30)
    one, weight = coreset(X, 1, random_state=0)
    assert one.shape == (1, 4) and weight.shape == (1,)
    points, _ = coreset(X, 40, sample_weight=np.where(np.arange(50) < 5, 1.0, 0.0), random_state=0)
    assert {tuple(p) for p in points} <= {tuple(p) for p in X[:5]}  # rows of no weight are never drawn


def test_far_from_the_origin_the_same_rows_are_drawn():
    X = np.round(blobs(400), 3)
    near, away = coreset(X, 50, random_state=0), coreset(X + 2.0**20, 50, random_state=0)
    np.testing.assert_allclose(away[0] - 2.0**20, near[0], atol=1e-8)
    np.testing.assert_allclose(away[1], near[1], rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_cells_are_refused_with_their_place(bad, small_blocks):
    X = blobs(700)
    X[641, 2] = bad
    with pytest.raises(twofold.InputError, match=rf"X\[641, 2\] is {bad}"):
        coreset(X, 10)
    with pytest.raises(twofold.InputError, match=rf"X\[641, 2\] is {bad}"):
        CoresetStream(10).add(X)
    with pytest.raises(twofold.InputError, match="m=0"):
        coreset(blobs(), 0)


def test_a_stream_keeps_the_cost():
    X, m = blobs(20_000), 1500
    order = np.random.default_rng(0).permutation(len(X))
    stream = CoresetStream(m, random_state=0)
    for part in np.array_split(X[order], 23):
        stream.add(part)
        held = sum(len(w) for _, w in [*(p for _, p in stream.tree.stack), *stream.waiting])
        assert held <= m * (np.log2(len(X) / m) + 3)
    points, weights = stream.result()
    assert len(points) <= m and weights.sum() == pytest.approx(len(X), rel=0.1)
    full = KMeans(5, n_init=3, random_state=0).fit(X)
    for centers in (full.cluster_centers_, X[:5]):
        assert cost(points, centers, weights) == pytest.approx(cost(X, centers), rel=0.1)
    small = KMeans(5, n_init=3, random_state=0).fit(points, sample_weight=weights)
    assert cost(X, small.cluster_centers_) < 1.03 * full.inertia_


def test_how_a_stream_is_cut_does_not_matter():
    X, w = blobs(1000), np.random.default_rng(1).random(1000)
    ends = []
    for pieces in (1, 7, 200):
        stream = CoresetStream(60, random_state=5)
        for part in np.array_split(np.arange(1000), pieces):
            stream.add(X[part], w[part])
        ends.append(stream.result())
        assert same(ends[-1], stream.result())  # asking changes nothing
    assert same(ends[0], ends[1]) and same(ends[0], ends[2])


def test_a_stream_s_cost_is_right_on_average():
    X = blobs(300)
    costs = []
    for seed in range(150):
        stream = CoresetStream(40, random_state=seed)
        stream.add(X)
        costs.append(cost(stream.result()[0], X[:3], stream.result()[1]))
    assert abs(np.mean(costs) - cost(X, X[:3])) < 4 * np.std(costs) / np.sqrt(len(costs))


def test_short_and_wrong_streams():
    stream = CoresetStream(100)
    with pytest.raises(twofold.InputError, match="no rows"):
        stream.result()
    stream.add(blobs(30))
    assert np.array_equal(stream.result()[0], blobs(30)) and np.all(stream.result()[1] == 1)
    with pytest.raises(twofold.InputError, match="5 columns"):
        stream.add(np.ones((3, 5)))
    thin = CoresetStream(20, random_state=0)
    thin.add(sparse.csr_array(np.eye(90)))
    assert sparse.issparse(thin.result()[0]) and thin.result()[0].shape[0] <= 20


# ---- codebooks --------------------------------------------------------------------------------------------------


def test_codes_name_the_nearest_row_of_the_codebook():
    X = blobs()
    model = VectorQuantizer(16, random_state=0).fit(X)
    codes = model.transform(X)
    gaps = ((X[:, None] - model.codebook_[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(codes, gaps.argmin(axis=1))
    back = model.inverse_transform(codes)
    np.testing.assert_array_equal(model.transform(back), codes)  # a row of the codebook stands for itself
    assert model.distortion_ == pytest.approx(((X - back) ** 2).sum(axis=1).mean())
    assert model.bits_per_row_ == 4 and model.codebook_ is model.components_
    assert model.score(X) == pytest.approx(-model.distortion_ * len(X))


def test_more_codes_distort_less():
    X = blobs()
    distortion = [VectorQuantizer(k, random_state=0).fit(X).distortion_ for k in (1, 4, 16, 64)]
    assert np.all(np.diff(distortion) < 0)
    assert distortion[0] == pytest.approx(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert [VectorQuantizer(k).fit(X[:9]).bits_per_row_ for k in (1, 2, 3, 8, 9)] == [0, 1, 2, 3, 4]


def test_codes_that_are_none_are_refused():
    model = VectorQuantizer(4, random_state=0).fit(blobs())
    for wrong in ([[0, 1]], [0.5], [4], [-1]):
        with pytest.raises(twofold.InputError, match="code"):
            model.inverse_transform(np.array(wrong))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(20, 30), (20, 30, 1), (20, 30, 3)])
def test_a_palette_keeps_shape_and_dtype(shape, dtype):
    rng = np.random.default_rng(0)
    image = (255 * rng.random(shape)).astype(dtype)
    colors, indices = palette(image, 8, random_state=0)
    assert colors.dtype == dtype and colors.shape == (8, *shape[2:]) and indices.shape == shape[:2]
    again = colors[indices]
    assert again.shape == image.shape
    error = ((again.astype(float) - image) ** 2).mean()
    assert error < 0.6 * image.astype(float).var()
    more, places = palette(image, 64, random_state=0)
    assert ((more[places].astype(float) - image) ** 2).mean() < error


def test_few_colors_come_back_exactly():
    image = np.array([[0, 7, 255], [7, 0, 0]], dtype=np.uint8)
    colors, indices = palette(image, 16)
    assert np.array_equal(colors[indices], image) and len(colors) == 3
    for wrong in (np.zeros(4), np.full((2, 2), np.nan), np.zeros((0, 3))):
        with pytest.raises(twofold.InputError, match="image"):
            palette(wrong)
