"""Random numbers from a counter have the distributions they are named after."""

import numpy as np
import pytest
from numba import njit
from scipy import stats

from twofold.kernels.randomness import STRIDE, as_fraction, as_integer, log_gamma_draw, mix_bits

N = 20_000


@njit
def draw_gammas(a, n):
    out, state = np.empty(n), np.uint64(7)
    for i in range(n):
        out[i], state = log_gamma_draw(a, state)
    return out


@njit
def draw_uniforms(n):
    out, whole, state = np.empty(n), np.empty(n, np.int64), np.uint64(3)
    for i in range(n):
        state += STRIDE
        out[i], whole[i] = as_fraction(mix_bits(state)), as_integer(mix_bits(state), 10)
    return out, whole


@pytest.mark.parametrize("a", [0.05, 0.7, 1.0, 4.0, 300.0])
def test_gammas(a):
    logs = draw_gammas(a, N)
    assert np.isfinite(logs).all()
    assert stats.kstest(logs, stats.loggamma(a).cdf).pvalue > 1e-9


def test_uniforms():
    u, whole = draw_uniforms(N)
    assert u.min() > 0 and u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > 1e-9
    assert stats.chisquare(np.bincount(whole, minlength=10)).pvalue > 1e-9
