"""The smaller and the larger of two numbers, in rows long enough for wide instructions and not a multiple of them."""

import numpy as np
import pytest
from numba import njit

from twofold.kernels.min_max import larger, smaller


@njit
def ends(x):
    low = high = x[0]
    for j in range(len(x)):
        low = smaller(low, x[j])
        high = larger(high, x[j])
    return low, high


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 16, 33, 300])
def test_the_ends_of_a_row(dtype, n):
    x = np.random.default_rng(n).normal(size=n).astype(dtype)
    assert ends(x) == (x.min(), x.max())
    x[n // 2] = np.inf
    assert ends(x)[1] == np.inf
