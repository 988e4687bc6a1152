"""The n best of a row, against sorting it."""

import numpy as np
import pytest
from scipy import sparse

from twofold.kernels.top_k import select_best


def twin(S, seen, n):
    """Sort every row by (score, column), what was seen and what is no number last."""
    items, scores = np.full((len(S), n), -1), np.full((len(S), n), -np.inf, S.dtype)
    for i, row in enumerate(S):
        allowed = [j for j in range(S.shape[1]) if not seen[i, j] and row[j] > -np.inf]
        first = sorted(allowed, key=lambda j: (-row[j], j))[:n]
        items[i, : len(first)], scores[i, : len(first)] = first, row[first]
    return items, scores


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 40, 60])
@pytest.mark.parametrize("levels", [3, 10**6])
def test_best_equals_sorting(dtype, n, levels):
    rng = np.random.default_rng(n)
    S = rng.integers(levels, size=(30, 40)).astype(dtype)
    S[3, 5] = np.nan
    seen = rng.random(S.shape) < 0.3
    seen[7] = True
    seen[8] = False
    X = sparse.csr_array(seen)
    items, scores = np.empty((30, n), np.int64), np.empty((30, n), dtype)
    expected = twin(S, seen, n)
    select_best(S, X.indptr, X.indices, items, scores)
    np.testing.assert_array_equal(items, expected[0])
    np.testing.assert_array_equal(scores, expected[1])
