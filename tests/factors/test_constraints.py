"""Every constraint: its prox is the best there is, what it allows is left alone, and its short ways lead there, too."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold.core.checks import InputError
from twofold.factors import L1, Free, KSparse, NonNegative, OneHot, Orthonormal, Ridge, Simplex, UnitNorm

SETS = [Free(), NonNegative(), Simplex(), OneHot(), UnitNorm(), KSparse(1), KSparse(3), Orthonormal()]
PENALTIES = [Ridge(0.7), L1(0.4)]
ROWS, COLUMNS = 4, 6
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25)
every = pytest.mark.parametrize("constraint", SETS + PENALTIES, ids=repr)


def allowed(constraint, F):
    """Whether F keeps to it, by its definition."""
    near = {"atol": 1e-10}
    match constraint:
        case NonNegative():
            return F.min() >= 0
        case Simplex():
            return F.min() >= 0 and np.allclose(F.sum(axis=1), 1, **near)
        case OneHot():
            return np.array_equal(np.sort(F, axis=1), np.eye(F.shape[1])[[-1] * len(F)])
        case UnitNorm():
            return np.allclose((F**2).sum(axis=1), 1, **near)
        case KSparse(s):
            return np.count_nonzero(F, axis=1).max() <= s
        case Orthonormal():
            return np.allclose(F @ F.T, np.eye(len(F)), **near)
    return True


def others(constraint, F, rng):
    """Points that keep to it, near F and far from it, each made without its prox."""
    for size in (1e-3, 0.1, 1.0, 10.0):
        G = F + size * rng.normal(size=F.shape)
        match constraint:
            case NonNegative():
                yield np.abs(G)
            case Simplex():
                yield np.abs(G) / np.abs(G).sum(axis=1, keepdims=True)
                yield np.eye(F.shape[1])[rng.integers(F.shape[1], size=len(F))]
            case OneHot():
                yield np.eye(F.shape[1])[rng.integers(F.shape[1], size=len(F))]
            case UnitNorm():
                yield G / np.linalg.norm(G, axis=1, keepdims=True)
            case KSparse(s):
                yield G * (rng.random(G.shape).argsort(axis=1) < s)
                yield G * (F != 0)
            case Orthonormal():
                yield np.linalg.qr(G.T)[0].T
            case _:
                yield G


@every
@few
@given(seed=seeds, step=st.sampled_from([0.01, 1.0, 20.0]), size=st.sampled_from([0.1, 1.0, 5.0]))
def test_prox_is_the_best_there_is(constraint, seed, step, size):
    rng = np.random.default_rng(seed)
    Y = size * rng.normal(size=(ROWS, COLUMNS))
    F = constraint.prox(Y, step)
    assert allowed(constraint, F)

    def cost(G):
        rows = 0.5 * ((G - Y) ** 2).sum(axis=1) + step * constraint.values(G)
        return rows.sum(keepdims=True) if constraint.joint else rows

    for G in others(constraint, F, rng):
        assert np.all(cost(F) <= cost(G) + 1e-9)


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@few
@given(seed=seeds)
def test_what_is_allowed_stays_and_costs_nothing(constraint, seed):
    F = constraint.prox(np.random.default_rng(seed).normal(size=(ROWS, COLUMNS)), 1.0)
    np.testing.assert_allclose(constraint.prox(F, 1.0), F, atol=1e-12)
    np.testing.assert_array_equal(constraint.values(F), np.zeros(ROWS))


@every
@few
@given(seed=seeds)
def test_a_start_is_allowed(constraint, seed):
    Y = np.random.default_rng(seed).normal(size=(ROWS, COLUMNS))
    for guess in (Y, np.zeros_like(Y), np.abs(Y)):
        assert allowed(constraint, constraint.start(guess)) and np.isfinite(constraint.start(guess)).all()


@pytest.mark.parametrize("constraint", PENALTIES, ids=repr)
def test_penalties_are_what_they_say(constraint):
    F = np.array([[3.0, -4.0], [0.0, 0.0]])
    expected = {Ridge: 0.5 * 0.7 * 25, L1: 0.4 * 7}[type(constraint)]
    np.testing.assert_allclose(constraint.values(F), [expected, 0])


@pytest.mark.parametrize("constraint", [Free(), Ridge(0.5), OneHot(), KSparse(1), KSparse(4)], ids=repr)
@pytest.mark.parametrize("own", [False, True])
@few
@given(seed=seeds)
def test_the_short_way_leads_to_the_minimum(constraint, own, seed):
    """Of ½ f H fᵀ − b fᵀ + penalty, with one H for all rows or each its own. (Pursuit is exact for one and for all.)"""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(5, 6, 4)) if own else rng.normal(size=(6, 4))
    H, B = np.swapaxes(A, -1, -2) @ A, rng.normal(size=(5, 4))
    F = constraint.solve(H, B)
    assert allowed(constraint, F)

    def cost(G):
        return np.einsum("ic,ic->i", G, 0.5 * np.einsum("ic,...icb->...ib" if own else "ic,cb->ib", G, H) - B) + (
            constraint.values(G)
        )

    for G in itertools.chain(others(constraint, F, rng), others(constraint, F, rng)):
        assert np.all(cost(F) <= cost(G) + 1e-8 * (1 + np.abs(cost(G))))


@few
@given(seed=seeds)
def test_orthonormal_in_one_step(seed):
    rng = np.random.default_rng(seed)
    U, B = rng.normal(size=(20, 3)), rng.normal(size=(7, 3))
    F = Orthonormal().solve(U.T @ U, B)
    assert allowed(Orthonormal(), F.T)
    cost = lambda G: 0.5 * np.trace(G @ U.T @ U @ G.T) - np.vdot(B, G)  # noqa: E731
    assert all(cost(F) <= cost(G.T) + 1e-9 for G in others(Orthonormal(), F.T, rng))


@pytest.mark.parametrize("constraint", [NonNegative(), Simplex()], ids=repr)
@few
@given(seed=seeds)
def test_shares_minimise_their_logarithms(constraint, seed):
    rng = np.random.default_rng(seed)
    A, S = rng.gamma(0.3, size=(ROWS, COLUMNS)) + 1e-6, rng.gamma(1.0, size=(ROWS, COLUMNS))
    F = constraint.shares(A, S)
    assert allowed(constraint, F)
    cost = lambda G: (S * G - A * np.log(np.maximum(G, 1e-300))).sum(axis=1)  # noqa: E731
    for G in others(constraint, F, rng):
        assert np.all(cost(F) <= cost(G) + 1e-9 * (1 + np.abs(cost(G))))


def test_shares_of_nothing():
    none = np.zeros((2, 4))
    np.testing.assert_allclose(Simplex().shares(none, none), 0.25)
    np.testing.assert_array_equal(NonNegative().shares(none, none), none)
    one = np.array([[0.0, 3.0, 0.0, 0.0]])
    np.testing.assert_allclose(Simplex().shares(one, np.ones((1, 4))), [[0, 1, 0, 0]])


@every
def test_single_precision_stays(constraint):
    F = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32)
    assert constraint.prox(F, np.float32(0.5)).dtype == constraint.start(F).dtype == np.float32
    square = F.T @ F
    solved = constraint.solve(square, F) if not constraint.joint else constraint.solve(F @ F.T, F.T)
    assert solved is None or solved.dtype == np.float32
    own = None if constraint.joint else constraint.solve(np.stack([square] * ROWS), F)
    assert own is None or own.dtype == np.float32


def test_a_row_of_zeros_has_a_direction():
    found = UnitNorm().prox(np.zeros((1, 4)), 1.0)
    assert np.linalg.norm(found) == pytest.approx(1)


def test_too_many_right_angles_are_refused():
    with pytest.raises(InputError, match=r"5 rows of 3 numbers.*n_components=3"):
        Orthonormal().prox(np.ones((5, 3)), 1.0)


def test_one_hot_lists_its_options_and_others_have_too_many():
    np.testing.assert_array_equal(OneHot().options(3), np.eye(3))
    assert all(c.options(3) is None for c in SETS + PENALTIES if not isinstance(c, OneHot))
