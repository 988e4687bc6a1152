"""Sparse and low-rank kernels against plain NumPy."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from twofold.kernels.sparse_low_rank import cell_dots, csr_dot, label_components

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def thin(dtype=np.float64, n=23, d=17, share=0.2, seed=0):
    """A pattern with an empty row and an empty column."""
    rng = np.random.default_rng(seed)
    D = np.where(rng.random((n, d)) < share, rng.normal(size=(n, d)), 0.0).astype(dtype)
    D[4], D[:, 2] = 0, 0
    S = sparse.csr_array(D)
    return D, S, S.indptr.astype(np.int64), S.indices.astype(np.int32)


@dtypes
@pytest.mark.parametrize("k", [0, 1, 5, 16])
def test_cell_dots_are_the_product_in_the_cells(dtype, k):
    _, S, indptr, indices = thin(dtype)
    rng = np.random.default_rng(1)
    U, Z = rng.normal(size=(23, k)).astype(dtype), rng.normal(size=(17, k)).astype(dtype)
    out = np.full(S.nnz, np.nan, dtype)
    cell_dots(indptr, indices, U, Z, out)
    rows = np.repeat(np.arange(23), np.diff(indptr))
    np.testing.assert_allclose(out, (U @ Z.T)[rows, indices], rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-5)


@dtypes
@pytest.mark.parametrize("width", [1, 7])
def test_csr_dot_adds_the_product(dtype, width):
    D, S, indptr, indices = thin(dtype)
    V = np.random.default_rng(2).normal(size=(17, width)).astype(dtype)
    out = np.ones((23, width), dtype)
    csr_dot(indptr, indices, S.data, V, out)
    np.testing.assert_allclose(out, 1 + D @ V, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_components_are_those_of_the_bipartite_graph(seed):
    _, S, indptr, indices = thin(share=0.05, seed=seed)
    label, count = label_components(indptr, indices, 17)
    graph = sparse.block_array([[None, S], [S.T, None]])
    expected, theirs = connected_components(graph, directed=False)
    assert count == expected
    assert len(set(zip(label, theirs, strict=True))) == expected  # the same parts, by another name
