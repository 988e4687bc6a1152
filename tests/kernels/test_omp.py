"""Batch pursuit against one that fits anew in every step."""

import numpy as np
import pytest

from twofold.kernels.omp import omp


def plainly(G, b, square, most, enough):
    """The same from the Gram matrix: the largest correlation of the residual joins, all coefficients are solved for."""
    chosen, c = [], np.zeros(0)
    while len(chosen) < most and square - c @ b[chosen] > enough:
        residual = b - c @ G[chosen] if chosen else b
        chosen.append(int(np.argmax(np.abs(residual))))
        c = np.linalg.solve(G[np.ix_(chosen, chosen)], b[chosen])
    return chosen, c


@pytest.mark.parametrize("most, enough", [(1, 0.0), (6, 0.0), (20, 5.0), (9, 1e9)])
def test_omp(most, enough):
    rng = np.random.default_rng(0)
    D, X = rng.normal(size=(70, 20)), rng.normal(size=(30, 20))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    G, B, squares = D @ D.T, X @ D.T, (X**2).sum(axis=1)
    index, value, count = np.zeros((30, most), np.int32), np.zeros((30, most)), np.zeros(30, np.int32)
    omp(G, B, squares, np.full(30, enough), 1e-10, index, value, count)
    for i in range(30):
        chosen, c = plainly(G, B[i], squares[i], most, enough)
        assert index[i, : count[i]].tolist() == chosen
        np.testing.assert_allclose(value[i, : count[i]], c, atol=1e-9)
