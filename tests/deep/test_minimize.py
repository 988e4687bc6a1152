"""The optimizers of networks on any function: what theory promises of them, and refusals (steps: test_train)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from twofold import InputError
from twofold.deep import minimize


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6), st.floats(0.5, 20.0), st.integers(0, 2**31))
def test_gradient_descent_keeps_its_two_promises(curvatures: list[float], scale: float, seed: int) -> None:
    """2L(f₀ − f*)/ε² steps to an ε-critical point, and (1 − μ/L)ᵏ."""
    slopes = np.array(curvatures) * scale
    start = np.random.default_rng(seed).normal(size=len(slopes))
    smooth, strong = slopes.max(), slopes.min()
    first, eps = 0.5 * slopes @ start**2, 0.3
    by_hand = {"gradient": lambda x: slopes * x, "learning_rate": 1 / smooth}
    promised = int(np.ceil(2 * smooth * first / eps**2))
    assert minimize(lambda x: 0.5 * slopes @ x**2, start, "sgd", tol=eps, max_iter=promised, **by_hand).converged
    found = minimize(lambda x: 0.5 * slopes @ x**2, start, "sgd", tol=0, max_iter=30, **by_hand)
    left = first * (1 - strong / smooth) ** np.arange(len(found.values))
    assert (np.array(found.values) <= left * (1 + 1e-9) + 1e-16 * first).all()


def test_strong_convexity_gives_the_slopes_of_polyak_and_lojasiewicz() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    A = root @ root.T + 0.5 * np.eye(5)
    strong = np.linalg.eigvalsh(A)[0]
    x = rng.normal(size=(500, 5))
    values, gradients = 0.5 * np.einsum("ni,ij,nj->n", x, A, x), x @ A
    assert (0.5 * (gradients**2).sum(axis=1) >= strong * values * (1 - 1e-9)).all()


def test_a_function_of_torch_and_its_gradient_by_hand_agree() -> None:
    target = np.arange(6.0).reshape(2, 3)
    one = minimize(lambda x: ((x - torch.from_numpy(target)) ** 2).sum(), np.zeros((2, 3)), "sgd", learning_rate=0.1)
    two = minimize(
        lambda x: ((x - target) ** 2).sum(),
        np.zeros((2, 3)),
        "sgd",
        gradient=lambda x: 2 * (x - target),
        learning_rate=0.1,
    )
    assert one.converged and one.n_iter == two.n_iter
    np.testing.assert_allclose(one.x, two.x, atol=1e-12)
    np.testing.assert_allclose(one.x, target, atol=1e-6)


def test_the_start_is_left_as_it_was_and_a_minimum_is_found_at_once() -> None:
    start = np.zeros(3)
    found = minimize(lambda x: (x**2).sum(), start)
    assert found.n_iter == 0 and found.converged and found.values == [0.0]
    minimize(lambda x: ((x - 1) ** 2).sum(), start, max_iter=3)
    assert not start.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"optimizer": "newton"}, "must be .adagrad. or"),
        ({"x": [np.nan]}, "finite"),
        ({"x": []}, "at least one number"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"momentum": 1.0}, "momentum"),
        ({"max_iter": -1}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"f": lambda x: 1.0}, "Write it with torch"),
        ({"f": lambda x: x * torch.ones(2)}, "a tensor of shape"),
        ({"gradient": lambda x: np.ones(3)}, "shape"),
        ({"learning_rate": 1e200, "optimizer": "sgd"}, "diverged"),
    ],
)
def test_refusals(change: dict, message: str) -> None:
    asked = {"f": lambda x: (x**4).sum(), "x": [1.0], **change}
    with pytest.raises(InputError, match=message):
        minimize(asked.pop("f"), asked.pop("x"), **asked)
