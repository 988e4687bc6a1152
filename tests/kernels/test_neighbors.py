"""The compiled loops of neighborhoods against plain NumPy."""

import numpy as np
import pytest
from scipy import sparse

from twofold.kernels.neighbors import find_similar, interpolate, interpolate_all

both = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def cells(shape, share, seed, dtype):
    """Deviations and square roots of weights, NaN and 0 in the holes, and both as CSR."""
    rng = np.random.default_rng(seed)
    known = rng.random(shape) < share
    known[0] = False  # an empty line
    r = np.where(known, rng.normal(size=shape), np.nan).astype(dtype)
    g = np.where(known, rng.random(shape) + 0.5, 0.0).astype(dtype)
    indptr = np.append(0, np.cumsum(known.sum(axis=1)))
    return r, g, (indptr, np.nonzero(known)[1], r[known], g[known])


def correlations(r, g, h, other, shrinkage):
    """The obvious way, for lines r (m,p) and `other` (q,p)."""
    out = np.zeros((len(r), len(other)))
    for t, o in np.ndindex(out.shape):
        w = g[t].astype(float) * h[o]
        a, b = np.where(w > 0, r[t], 0).astype(float), np.where(w > 0, other[o], 0).astype(float)
        count, size = w.sum() - 1, (w @ a**2) * (w @ b**2)
        if count > 0 and size > 0:
            out[t, o] = count / (count + shrinkage) * (w @ (a * b)) / np.sqrt(size)
    return out


@both
@pytest.mark.parametrize("max_lines", [1, 3, 12])
@pytest.mark.parametrize("same", [True, False])
def test_similar(max_lines, same, dtype):
    r, g, A = cells((12, 30), 0.4, 0, dtype)
    other, h, _ = (r, g, A) if same else cells((12, 30), 0.4, 1, dtype)
    B, Bg = (sparse.csr_array(np.where(h > 0, a, 0).T) for a in (np.where(h > 0, other, 0), h))
    own = np.arange(12) if same else np.full(12, -1)
    index, value, count = np.empty((12, max_lines), np.int32), np.empty((12, max_lines), dtype), np.empty(12, np.int64)
    sums = np.zeros((12, 4))
    find_similar(*A, B.indptr, B.indices, B.data, Bg.data, own, 5.0, index, value, count, sums)
    S = correlations(r, g, h, other, 5.0)
    if same:
        np.fill_diagonal(S, 0)
    assert not sums.any()
    for t in range(12):
        best = np.argsort(-np.abs(S[t]), kind="stable")[: min(max_lines, np.count_nonzero(S[t]))]
        np.testing.assert_array_equal(index[t, : count[t]], best)
        np.testing.assert_allclose(value[t, : count[t]], S[t, best], rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_equally_strong_lines_are_taken_in_their_order():
    r = np.tile(np.random.default_rng(0).normal(size=8), (6, 1))  # six copies: every correlation is the same
    B = sparse.csr_array(np.ascontiguousarray(r.T))
    A, ones = sparse.csr_array(r), np.ones(48)
    index, value, count = np.empty((6, 3), np.int32), np.empty((6, 3)), np.empty(6, np.int64)
    work = np.zeros((6, 4))
    given = (A.indptr, A.indices, A.data, ones, B.indptr, B.indices, B.data, ones)
    find_similar(*given, np.arange(6), 0.0, index, value, count, work)
    assert index.tolist() == [[j for j in range(6) if j != t][:3] for t in range(6)]


def predict_plainly(R, S, i, j, n_neighbors, power, damping):
    """The obvious way: the strongest neighbors of place j that are known in line i."""
    order = np.argsort(-np.abs(S[j]), kind="stable")
    near = order[(S[j, order] != 0) & ~np.isnan(R[i, order])][:n_neighbors]
    v = np.sign(S[j, near]) * np.abs(S[j, near].astype(float)) ** power
    return float(v @ R[i, near] / (np.abs(v).sum() + damping)) if len(near) else 0.0


@both
@pytest.mark.parametrize("n_neighbors, power, damping", [(1, 1.0, 0.0), (3, 2.0, 0.1), (50, 1.5, 0.5)])
def test_interpolate(n_neighbors, power, damping, dtype):
    R, _, (indptr, indices, r, _) = cells((9, 11), 0.5, 2, dtype)
    S = np.where(np.random.default_rng(3).random((7, 11)) < 0.6, np.random.default_rng(4).normal(size=(7, 11)), 0.0)
    S = S.astype(dtype)
    order = np.argsort(-np.abs(S), axis=1, kind="stable")
    count = np.count_nonzero(S, axis=1)
    Sind = np.concatenate([order[j, : count[j]] for j in range(7)])
    s = np.concatenate([S[j, order[j, : count[j]]] for j in range(7)])
    given = (indptr, indices, r, np.append(0, np.cumsum(count)), Sind, s)
    rule = (n_neighbors, power, damping)
    expected = np.array([[predict_plainly(R, S, i, j, *rule) for j in range(7)] for i in range(9)])
    here, out = np.full(11, np.nan), np.empty((9, 7), dtype)
    interpolate_all(*given, *rule, here, out)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6 if dtype == np.float32 else 1e-13)
    assert np.isnan(here).all()
    lines, places = np.array([3, 3, 8, 0, 3, 1]), np.array([0, 6, 2, 1, 5, 4])
    some = np.empty(6, dtype)
    interpolate(*given, lines, places, *rule, here, some)
    np.testing.assert_array_equal(some, out[lines, places])
    assert np.isnan(here).all()
