"""Every loss: its slope is its derivative, its parabola touches it and, where promised, lies above it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.factors import Absolute, Huber, Logistic, Poisson, Squared

LOSSES = [Squared(), Huber(), Huber(0.3), Absolute(), Logistic(), Poisson(), Poisson("log")]
BOUNDED = [Squared(), Huber(), Huber(0.3), Absolute()]  # whose parabolas lie above them everywhere
every = pytest.mark.parametrize("loss", LOSSES, ids=repr)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25)


def cells(loss, seed, shape=(6, 7)):
    """Data and model values that the loss knows, x and m apart from each other."""
    rng = np.random.default_rng(seed)
    X, M = 3 * rng.normal(size=shape), 3 * rng.normal(size=shape)
    if isinstance(loss, Logistic):
        X = rng.choice([0.0, 1.0, 0.3], size=shape)
    if isinstance(loss, Poisson):
        X = rng.poisson(2.0, size=shape).astype(float)
        M = np.abs(M) + 0.1 if loss.positive else M
    return X, M


@every
@few
@given(seed=seeds)
def test_slope_is_the_derivative(loss, seed):
    X, M = cells(loss, seed)
    h = 1e-6
    M = np.where(np.abs(X - M) < 0.02, X + 0.05, M)  # no kink within reach
    expected = (loss.value(X, M + h) - loss.value(X, M - h)) / (2 * h)
    np.testing.assert_allclose(loss.slope(X, M), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss", BOUNDED, ids=repr)
@few
@given(seed=seeds, size=st.sampled_from([1e-3, 1.0, 30.0]))
def test_the_parabola_lies_above(loss, seed, size):
    X, M = cells(loss, seed)
    step = size * np.random.default_rng(seed + 1).normal(size=X.shape)
    if isinstance(loss, Absolute):
        M = np.where(np.abs(X - M) < 0.05, X + 0.05, M)  # nearer its curvature is bounded, and it promises nothing
    parabola = loss.value(X, M) + loss.slope(X, M) * step + 0.5 * loss.curvature(X, M) * step**2
    assert np.all(parabola >= loss.value(X, M + step) - 1e-9 * (1 + np.abs(parabola)))


@every
@few
@given(seed=seeds)
def test_curvature_is_never_less_than_the_bend_at_the_point(loss, seed):
    X, M = cells(loss, seed)
    h = 1e-4
    far = np.abs(np.abs(X - M) - getattr(loss, "delta", 0)) > 3 * h  # from a kink
    bend = (loss.slope(X, M + h) - loss.slope(X, M - h)) / (2 * h)
    assert np.all(loss.curvature(X, M)[far] >= bend[far] - 1e-4 * (1 + np.abs(bend[far])))


@every
def test_nothing_costs_less_than_the_truth(loss):
    X, M = cells(loss, 0, (50, 50))
    link = {Logistic: lambda x: np.log(x / (1 - x)), Poisson: lambda x: x if loss.positive else np.log(x)}
    inner = np.clip(X, 0.01, 0.99) if isinstance(loss, Logistic) else np.maximum(X, 0.01)
    best = link.get(type(loss), lambda x: x)(inner if type(loss) in link else X)
    X = inner if type(loss) in link else X
    assert np.all(loss.value(X, M) >= loss.value(X, best) - 1e-12)
    np.testing.assert_allclose(loss.mean(best), X, rtol=1e-12, atol=1e-12)
    if not isinstance(loss, Absolute):  # which has no slope there
        np.testing.assert_allclose(loss.slope(X, best), 0, atol=1e-12)


@every
def test_single_precision_stays(loss):
    X, M = (A.astype(np.float32) for A in cells(loss, 0))
    for method in ("value", "slope", "curvature"):
        found = getattr(loss, method)(X, M)
        assert found.dtype == np.float32 and found.shape == X.shape, method
    assert loss.mean(M).dtype == loss.start(X).dtype == np.float32


@every
def test_extreme_values_stay_finite(loss):
    X, _ = cells(loss, 0)
    for value in (0.0, 1e-300, 1e3, -1e3):
        if value < 0 and loss.positive:
            continue
        M = np.full(X.shape, value)
        for method in ("value", "slope", "curvature"):
            assert np.isfinite(getattr(loss, method)(X, M)).all(), (method, value)


def test_huber_is_squared_near_zero_and_absolute_far_out():
    X, M = np.zeros(3), np.array([0.5, -0.5, 100.0])
    np.testing.assert_allclose(Huber(1.0).value(X, M), [0.125, 0.125, 99.5])
    assert Huber(1e6).value(X, M) == pytest.approx(Squared().value(X, M))


@pytest.mark.parametrize(
    ("loss", "good", "bad"), [(Logistic(), [0, 0.5, 1], [-0.1, 1.1, 2]), (Poisson(), [0, 0.5, 7], [-1, -0.1, -1e9])]
)
def test_cells_outside_are_known_and_holes_are_none_of_them(loss, good, bad):
    assert loss.outside(np.array(bad)).all()
    assert not loss.outside(np.array([*good, np.nan])).any()
