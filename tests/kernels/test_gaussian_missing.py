"""The compiled densities and expectations of Gaussian rows with holes against plain NumPy."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from twofold.core.data.missing_patterns import find_patterns
from twofold.kernels.gaussian_missing import fill_holes, hole_variances, log_density

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
dimensions = pytest.mark.parametrize("d", [1, 2, 6, 12])


def rows(d, dtype, share=0.4):
    rng = np.random.default_rng(d)
    R = rng.normal(size=(d, d + 2))
    X = rng.normal(size=(25, d)).astype(dtype)
    X[rng.random(X.shape) < share] = np.nan
    X[0] = np.nan  # no cell observed
    X[1] = 1.0  # all cells observed
    patterns = find_patterns(X)[0]
    return X, np.where(np.isnan(X), 0, X), patterns, rng.normal(size=d), R @ R.T


@dtypes
@dimensions
def test_log_density(d, dtype):
    X, x, p, mean, S = rows(d, dtype)
    logp = np.empty(len(X))
    log_density(x, p.mask, p.order, p.starts, mean, S, logp)
    for row, value in zip(X, logp, strict=True):
        o = ~np.isnan(row)
        expected = multivariate_normal(mean[o], S[np.ix_(o, o)]).logpdf(row[o]) if o.any() else 0.0
        assert value == pytest.approx(expected, rel=1e-9)


@dtypes
@dimensions
def test_fill_holes(d, dtype):
    X, x, p, mean, S = rows(d, dtype)
    w = np.random.default_rng(0).random(len(X))
    filled, extra = np.empty(X.shape), np.ones((d, d))
    fill_holes(x, w, p.mask, p.order, p.starts, mean, S, filled, extra)
    spread = np.ones((d, d))
    for row, weight, value in zip(X.astype(np.float64), w, filled, strict=True):
        o, h = ~np.isnan(row), np.isnan(row)
        gain = np.linalg.solve(S[np.ix_(o, o)], S[np.ix_(o, h)])
        np.testing.assert_array_equal(value[o], row[o])
        np.testing.assert_allclose(value[h], mean[h] + (row[o] - mean[o]) @ gain, rtol=1e-8, atol=1e-10)
        spread[np.ix_(h, h)] += weight * (S[np.ix_(h, h)] - S[np.ix_(h, o)] @ gain)
    np.testing.assert_allclose(extra, spread, rtol=1e-8, atol=1e-10)


@dimensions
def test_hole_variances(d):
    _, _, p, _, S = rows(d, np.float64)
    variance = np.full(p.mask.shape, -1.0)
    hole_variances(p.mask, S, variance)
    for o, found in zip(p.mask, variance, strict=True):
        gain = np.linalg.solve(S[np.ix_(o, o)], S[np.ix_(o, ~o)])
        expected = np.diag(S[np.ix_(~o, ~o)] - S[np.ix_(~o, o)] @ gain)
        np.testing.assert_allclose(found[~o], expected, rtol=1e-8, atol=1e-10)
        assert (found[o] == -1).all()
