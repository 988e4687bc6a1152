"""The phase transition of sparse recovery: the curve by its other formula, the decisions by linear programs."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from twofold import InputError
from twofold.plots.models.signals import transition_figure
from twofold.signals import basis_pursuit, donoho_tanner, phase_diagram
from twofold.signals.phase_diagram import check_least_sum, find_half_success, plant_signals


@pytest.mark.parametrize(
    "nonnegative, points",
    [
        (False, {0.05: 0.154, 0.1: 0.189, 0.2: 0.243, 0.3: 0.291, 0.5: 0.386, 0.75: 0.534, 0.9: 0.678}),
        (True, {0.1: 0.241, 0.5: 0.558, 0.75: 0.766}),
    ],
)
def test_the_curve_meets_the_published_points(nonnegative, points):
    found = donoho_tanner(list(points), nonnegative=nonnegative)
    np.testing.assert_allclose(found, list(points.values()), atol=6e-4)


@pytest.mark.parametrize("delta", [0.03, 0.4, 0.85])
def test_the_curve_is_the_size_of_the_cone_of_descent(delta):
    """δ = min over τ of the mean squared distance of a normal vector to τ times the subgradients at x."""
    share = delta * donoho_tanner(delta)

    def distance(tau):
        beyond = quad(lambda g: (g - tau) ** 2 * norm.pdf(g), tau, np.inf)[0]
        return share * (1 + tau**2) + (1 - share) * 2 * beyond

    assert minimize_scalar(distance, bounds=(0, 10), method="bounded").fun == pytest.approx(delta, rel=1e-5)


def test_the_curve_rises_from_nothing_to_all():
    rho = donoho_tanner(np.linspace(0, 1, 50))
    assert rho[0] == 0 and rho[-1] == pytest.approx(1) and (np.diff(rho) > 0).all()
    inner = np.linspace(0.01, 0.99, 30)
    assert (donoho_tanner(inner, nonnegative=True) > donoho_tanner(inner)).all()
    assert isinstance(donoho_tanner(0.5), float)


def test_every_decision_is_that_of_the_linear_program():
    rng = np.random.default_rng(0)
    agreed = []
    for m, K in [(10, 3), (20, 7), (30, 14), (30, 10)]:
        A, X = rng.standard_normal((m, 40)), plant_signals(40, K, 15, rng)
        rows = np.linalg.qr(A.T)[0]
        said = check_least_sum(lambda V, Q=rows: V - Q @ (Q.T @ V), np.sign(X))
        true = [np.allclose(basis_pursuit(A, A @ x, solver="lp"), x, atol=1e-6) for x in X.T]
        np.testing.assert_array_equal(said[said != 0.5], np.array(true)[said != 0.5])
        agreed += true
    assert 10 < sum(agreed) < 50  # both outcomes were there to be decided


@pytest.mark.parametrize("delta", [0.25, 0.75])  # the null space is larger, or smaller, than its complement
def test_half_of_the_signals_are_recovered_where_the_theory_says(delta):
    rho = donoho_tanner(delta) + np.linspace(-0.12, 0.12, 5)
    found = phase_diagram(300, delta=[delta], rho=rho, trials=40, random_state=0)
    assert abs(found.curve50[0] - found.theory[0]) < 0.03
    assert found.success[0, 0] > 0.9 and found.success[0, -1] < 0.1


def test_matching_pursuit_needs_more_when_measurements_are_many():
    grid = {"delta": [0.8], "rho": [0.2, 0.35, 0.5, 0.65], "random_state": 0}
    greedy = phase_diagram(100, method="orthogonal_matching_pursuit", **grid)
    assert greedy.success[0, 0] > 0.8
    assert greedy.curve50[0] < phase_diagram(100, **grid).curve50[0]


def test_the_same_seed_gives_the_same_diagram_and_progress_ends_at_one():
    grid, seen = {"delta": [0.3, 0.6], "rho": [0.2, 0.4], "trials": 25}, []
    first = phase_diagram(60, random_state=3, progress=seen.append, **grid)
    np.testing.assert_array_equal(first.success, phase_diagram(60, random_state=3, **grid).success)
    assert seen == [0.25, 0.5, 0.75, 1.0]
    alone = phase_diagram(60, delta=[0.6], rho=[0.4], trials=25, random_state=3)
    assert alone.success[0, 0] == first.success[1, 1]  # a point does not depend on the others


def test_points_are_of_whole_numbers_and_rows_may_differ():
    found = phase_diagram(10, delta=[0.33, 0.5], rho=[[0.1, 0.9], [0.3, 1.0]], trials=2, random_state=0)
    np.testing.assert_allclose(found.delta, [0.3, 0.5])
    np.testing.assert_allclose(found.rho, [[1 / 3, 1], [0.4, 1]])


def test_the_fit_finds_the_middle_of_a_logistic_curve():
    rho = np.linspace(0.1, 0.6, 9)
    assert find_half_success(rho, 1 / (1 + np.exp(40 * (rho - 0.37))), 10_000) == pytest.approx(0.37, abs=1e-3)
    assert 0.3 < find_half_success(rho, (rho < 0.32) * 1.0, 10) < 0.36  # a step: between its two sides
    assert np.isnan(find_half_success(rho, np.ones(9), 10))


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: donoho_tanner(1.2), "delta=1.2"),
        (lambda: phase_diagram(method="no"), "not one of"),
        (lambda: phase_diagram(1), "n=1"),
        (lambda: phase_diagram(20, delta=[0.0]), "delta="),
        (lambda: phase_diagram(20, rho=[[0.5]]), "shape"),
    ],
)
def test_bad_input_is_named(call, word):
    with pytest.raises(InputError, match=word):
        call()


def test_the_picture_shows_both_curves():
    found = phase_diagram(40, delta=[0.3, 0.6, 0.9], rho=[0.1, 0.4, 0.7], trials=5, random_state=0)
    ax = transition_figure({"basis pursuit": found}).axes[0]
    assert [line.get_label() for line in ax.get_lines()] == ["Donoho–Tanner, n → ∞", "half recovered"]
    np.testing.assert_array_equal(ax.get_lines()[1].get_ydata(), found.curve50)
