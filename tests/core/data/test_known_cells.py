"""The known cells of a table: which they are, what they weigh, and both ways of looking at them."""

import numpy as np
import pytest
from scipy import sparse

from twofold.core.data.blocks import as_blocks
from twofold.core.data.known_cells import find_known_cells, keep_stored, see_both_sides, take_known

NAN = np.nan
X = np.array([[1.0, NAN, 0.0, 4.0], [NAN, NAN, NAN, NAN], [-2.0, 5.0, NAN, 0.5]])


def thin(X):
    rows, cols = np.nonzero(~np.isnan(X))
    return sparse.csr_array((X[rows, cols], (rows, cols)), shape=X.shape)


def cells(X, w=None):
    """(row, column, value, weight) of every known cell."""
    seen = find_known_cells(as_blocks(X), w)
    rows = np.repeat(np.arange(seen.shape[0]), np.diff(seen.X.indptr))
    return list(zip(rows.tolist(), seen.X.indices.tolist(), seen.X.data.tolist(), seen.W.data.tolist(), strict=True))


def test_cells_that_are_not_nan_are_known():
    known = [(0, 0, 1.0), (0, 2, 0.0), (0, 3, 4.0), (2, 0, -2.0), (2, 1, 5.0), (2, 3, 0.5)]
    assert cells(X) == [(*cell, 1.0) for cell in known] == cells(thin(X))


def test_a_stored_zero_is_known_and_a_stored_nan_is_not():
    S = sparse.csr_array(([0.0, NAN, 3.0], [1, 2, 0], [0, 2, 3]), shape=(2, 3))
    assert cells(S) == [(0, 1, 0.0, 1.0), (1, 0, 3.0, 1.0)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, thin])
def test_both_sides_hold_the_same_cells(dtype, make):
    seen = find_known_cells(as_blocks(make(X.astype(dtype))))
    assert seen.shape == (3, 4) and seen.dtype == dtype and seen.W.dtype == dtype
    along, across = (sparse.vstack([s.blocks[i] for i in range(len(s.blocks))]) for s in (seen.rows, seen.cols))
    assert np.array_equal(along.toarray(), np.nan_to_num(X)) and np.array_equal(across.toarray(), np.nan_to_num(X).T)
    assert along.nnz == across.nnz == 6
    assert np.array_equal(seen.rows.mass, [3, 0, 3]) and np.array_equal(seen.cols.mass, [2, 1, 1, 2])


@pytest.mark.usefixtures("small_blocks")
def test_cuts_keep_cells_with_their_weights():
    rng = np.random.default_rng(0)
    D = np.where(rng.random((200, 50)) < 0.3, rng.normal(size=(200, 50)), NAN)
    w = rng.random(D.shape)
    seen = find_known_cells(as_blocks(D), w)
    for side, values, weights in ((seen.rows, D, w), (seen.cols, D.T, w.T)):
        assert len(side.blocks) > 5 and len(side.blocks) == len(side.weights)
        for i, start in enumerate(side.blocks.bounds[:-1]):
            block, weight = side.blocks[i], side.weights[i]
            rows = start + np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
            assert np.array_equal(block.data, values[rows, block.indices])
            assert np.array_equal(weight, weights[rows, block.indices])
        np.testing.assert_allclose(side.mass, np.where(np.isnan(values), 0, weights).sum(axis=1))


def test_weights_of_rows_cells_and_sparse_cells_agree():
    rows = np.array([2.0, 3.0, 0.5])
    full = np.broadcast_to(rows[:, None], X.shape)
    expected = cells(X, rows)
    assert [w for *_, w in expected] == [2.0] * 3 + [0.5] * 3
    for weights in (full, sparse.csr_array(full), sparse.csc_array(full), rows.tolist()):
        assert cells(X, weights) == cells(thin(X), weights) == expected


def test_a_cell_of_weight_zero_is_a_hole():
    w = np.ones(X.shape)
    w[0, 3], w[2, 0] = 0, 0
    holed = np.where(w == 0, NAN, X)
    assert cells(X, w) == cells(holed) == cells(X, sparse.csr_array(w))
    assert cells(X, [1, 1, 0]) == cells(X[:1])
    seen = find_known_cells(as_blocks(X), w)
    assert seen.X.nnz == seen.W.nnz == 4 and np.array_equal(seen.cols.mass, [1, 1, 1, 1])


def test_the_weight_of_a_hole_is_not_looked_at():
    w = np.where(np.isnan(X), NAN, 2.0)
    assert [v for *_, v in cells(X, w)] == [2.0] * 6


def test_known_and_stored_are_plain_choices():
    assert np.array_equal(take_known(X).toarray(), np.nan_to_num(X)) and take_known(X).nnz == 6
    S = thin(X)
    assert np.array_equal(take_known(S).data, S.data) and np.array_equal(take_known(S).indices, S.indices)
    kept = keep_stored(S, S.data > 0)
    assert kept.nnz == 4 and np.array_equal(kept.toarray(), np.where(X > 0, X, 0))


def test_sides_of_given_cells():
    S = thin(X)
    W = sparse.csr_array((np.arange(6.0) + 1, S.indices, S.indptr), shape=S.shape)
    seen = see_both_sides(S, W)
    assert np.array_equal(seen.rows.mass, [6, 0, 15]) and np.array_equal(seen.cols.mass, [5, 5, 2, 9])


def test_the_sign_tells_cells_places_and_weights_apart():
    """Even weights that add up alike in every row and column."""
    full = np.arange(16.0).reshape(4, 4)
    w = np.ones((4, 4))
    w[:2, :2] = [[0.5, 1.5], [1.5, 0.5]]
    tables = [(full, None), (full, w), (full, w[::-1]), (full + 1e-9, None), (np.where(full == 5, NAN, full), None)]
    signs = [find_known_cells(as_blocks(X), w).sign() for X, w in tables]
    assert len(set(signs)) == len(tables)
    assert find_known_cells(as_blocks(thin(full)), np.ones(4)).sign() == signs[0]
