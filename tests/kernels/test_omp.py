"""Batch pursuit against one that fits again in every step."""

import numpy as np
import pytest

from twofold.kernels.omp import omp, omp_seen


def pursue_plainly(G, b, square, max_atoms, max_error):
    """The same from the Gram matrix: the largest correlation of the residual joins, all coefficients are solved for."""
    chosen, c = [], np.zeros(0)
    while len(chosen) < max_atoms and square - c @ b[chosen] > max_error:
        residual = b - c @ G[chosen] if chosen else b
        chosen.append(int(np.argmax(np.abs(residual))))
        c = np.linalg.solve(G[np.ix_(chosen, chosen)], b[chosen])
    return chosen, c


@pytest.mark.parametrize("observed", [1.0, 0.7])
@pytest.mark.parametrize("max_atoms, max_error", [(1, 0.0), (6, 0.0), (20, 5.0), (9, 1e9)])
def test_codes_are_those_of_the_plain_pursuit(max_atoms, max_error, observed):
    rng = np.random.default_rng(1)
    D, X, seen = rng.normal(size=(70, 20)), rng.normal(size=(30, 20)), rng.random((30, 20)) < observed
    if observed == 1:
        D /= np.linalg.norm(D, axis=1, keepdims=True)
    else:
        max_atoms = min(max_atoms, 8)  # fewer atoms than numbers of any signal
    index, value, count = np.zeros((30, max_atoms), np.int32), np.zeros((30, max_atoms)), np.zeros(30, np.int32)
    stop = np.full(30, max_error), np.zeros(30), 1e-10, index, value, count
    if observed == 1:
        omp(D @ D.T, X @ D.T, (X**2).sum(axis=1), *stop)
    else:
        omp_seen(D, X, seen, *stop)
    for i in range(30):
        part, x = D[:, seen[i]], X[i, seen[i]]
        lengths = np.linalg.norm(part, axis=1)
        unit = part / lengths[:, None]
        chosen, c = pursue_plainly(unit @ unit.T, unit @ x, x @ x, max_atoms, max_error)
        assert index[i, : count[i]].tolist() == chosen
        np.testing.assert_allclose(value[i, : count[i]], c / lengths[chosen], atol=1e-9)
