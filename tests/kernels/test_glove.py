"""GloVe's steps and the dealing of its pairs against plain NumPy."""

import numpy as np
import pytest
from scipy import sparse

from twofold.kernels.glove import CELL, adagrad_cells, assign_cells_to_tiles, count_tiles, shuffle_cells

N, D, K, P = 6, 5, 3, 8
RATE, ALPHA, X_MAX = 0.05, 0.75, 10.0


def some_cells(count=60, seed=0):
    rng = np.random.default_rng(seed)
    cells = np.empty(count, CELL)
    cells["row"], cells["col"] = rng.integers(N, size=count), rng.integers(D, size=count)
    cells["log"] = np.log(rng.uniform(0.1, 40.0, count))
    return cells


def lines(count, one_at, bias_input, seed):
    rng = np.random.default_rng(seed)
    made = np.zeros((count, 2, P), np.float32)
    made[:, 0, : K + 2] = rng.normal(size=(count, K + 2))
    made[:, 0, one_at] = bias_input
    made[:, 1] = 1 + rng.random((count, P))
    if not bias_input:
        made[:, 0, K : K + 2] = 0
    return made


def step_plainly(cells, biases, U, Z):
    """The same in float64, biases apart from the factors: x ← x − g/√G, G ← G + g², for every number x."""
    u, of_u, b, of_b = U[:, 0, :K], U[:, 1, :K], U[:, 0, K], U[:, 1, K]
    z, of_z, c, of_c = Z[:, 0, :K], Z[:, 1, :K], Z[:, 0, K + 1], Z[:, 1, K + 1]
    sides = [a.astype(float).copy() for a in (u, of_u, b, of_b, z, of_z, c, of_c)]
    u, of_u, b, of_b, z, of_z, c, of_c = sides
    cost = 0.0
    for i, j, log in cells.tolist():
        gap = u[i] @ z[j] + b[i] + c[j] - log
        f = min(1.0, (np.exp(log) / X_MAX) ** ALPHA)
        cost += 0.5 * f * gap**2
        clip = lambda g: np.clip(g, -100, 100)  # noqa: E731
        gu, gz = RATE * clip(f * gap * z[j]), RATE * clip(f * gap * u[i])
        gb = gc = RATE * clip(f * gap) * biases
        u[i] -= gu / np.sqrt(of_u[i])
        z[j] -= gz / np.sqrt(of_z[j])
        b[i] -= gb / np.sqrt(of_b[i])
        c[j] -= gc / np.sqrt(of_c[j])
        of_u[i] += gu**2
        of_z[j] += gz**2
        of_b[i] += gb**2
        of_c[j] += gc**2
    return cost, sides


@pytest.mark.parametrize("biases", [0, 1], ids=["factors", "biases"])
@pytest.mark.parametrize("size", [1.0, 40.0], ids=["", "clipped"])
def test_steps_cell_by_cell(biases, size):
    cells, U, Z = some_cells(), lines(N, K + 1, biases, 1), lines(D, K, biases, 2)
    U[:, 0, :K] *= size
    cost, expected = step_plainly(cells, biases, U, Z)
    f4 = np.float32
    found = adagrad_cells(cells, K, f4(RATE), f4(ALPHA), f4(np.log(X_MAX)), f4(biases), U, Z)
    np.testing.assert_allclose(found, cost, rtol=1e-4)
    sides = (U[:, 0, :K], U[:, 1, :K], U[:, 0, K], U[:, 1, K], Z[:, 0, :K], Z[:, 1, :K], Z[:, 0, K + 1], Z[:, 1, K + 1])
    for side, wanted in zip(sides, expected, strict=True):
        np.testing.assert_allclose(side, wanted, rtol=1e-3, atol=1e-3)
    assert np.all(U[:, 0, K + 1] == biases) and np.all(Z[:, 0, K] == biases)
    assert not U[:, 0, K + 2 :].any() and not Z[:, 0, K + 2 :].any()


def test_a_shuffle_keeps_every_cell_and_follows_its_seed():
    cells = some_cells(1000)
    first, again, other = (shuffle_cells(cells, np.uint64(seed)) for seed in (7, 7, 8))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert np.array_equal(np.sort(first, order=CELL.names), np.sort(cells, order=CELL.names))


def test_shuffles_are_fair():
    """Over many seeds every cell is found about equally often at every place."""
    cells = np.zeros(4, CELL)
    cells["row"] = np.arange(4)
    seeds = np.random.default_rng(0).integers(2**64, size=4000, dtype=np.uint64)
    at = np.array([shuffle_cells(cells, seed)["row"] for seed in seeds])
    shares = np.array([[(at[:, place] == cell).mean() for place in range(4)] for cell in range(4)])
    assert abs(shares - 0.25).max() < 4 * np.sqrt(0.25 * 0.75 / 4000)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_cells_are_dealt_to_their_tiles_in_order(index):
    rng, B = np.random.default_rng(3), 3
    X = sparse.random_array((N, D), density=0.6, rng=rng, format="csr").astype(np.float32)
    X.data[2] = 0  # never met
    row_group, col_group = rng.integers(B, size=N).astype(np.int32), rng.integers(B, size=D).astype(np.int32)
    row_place, col_place = np.arange(N, dtype=np.uint16), np.arange(D, dtype=np.uint16) + np.uint16(20)
    given = X.indptr.astype(index), X.indices.astype(np.int32), X.data, row_group, col_group
    counts = np.zeros(B * B, np.int32)
    count_tiles(*given, B, counts)
    at = np.concatenate([[0], np.cumsum(counts)[:-1]])
    cells = np.empty(int(counts.sum()), CELL)
    assign_cells_to_tiles(*given, row_place, col_place, B, at, cells)
    assert np.array_equal(at, np.cumsum(counts))
    expected = [[] for _ in range(B * B)]
    for i, j in zip(*np.nonzero(X.toarray()), strict=True):
        log = np.float32(np.log(np.float64(X[i, j])))
        expected[row_group[i] * B + col_group[j]].append((i, j + 20, log))
    assert [tuple(c) for c in cells.tolist()] == [cell for tile in expected for cell in tile]
