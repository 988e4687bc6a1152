"""The model, the loss and the constraint printed in CONTRIBUTING.md are ones that work."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from twofold import Factorization
from twofold.linalg import low_rank

TEXT = Path(__file__).parents[2] / "CONTRIBUTING.md"


def exec_printed(name: str, monkeypatch: pytest.MonkeyPatch) -> type:
    """The class of that name, from the block of code that defines it."""
    blocks = re.findall(r"```python\n(.*?)```", TEXT.read_text(encoding="utf-8"), re.S)
    (code,) = (block for block in blocks if f"class {name}(" in block)
    module = ModuleType("contributing")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    exec(code, vars(module))
    return vars(module)[name]


def test_printed_model_reaches_the_best_rank_k(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(300, 4)) @ np.random.default_rng(1).normal(size=(4, 20))
    X += 0.1 * np.random.default_rng(2).normal(size=X.shape)
    model = exec_printed("AlternatingLeastSquares", monkeypatch)(3, tol=1e-14, random_state=0).fit(X)
    error = ((X - model.transform(X) @ model.components_) ** 2).sum()
    assert np.isclose(error, ((X - low_rank(X, 3)) ** 2).sum(), rtol=1e-6)
    assert np.all(np.diff(model.history_["objective"]) <= 1e-9 * model.history_["objective"][0])


@pytest.mark.parametrize("q", [0.2, 0.8])
def test_printed_loss_is_above_its_share_of_the_cells(q: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 1)) @ rng.normal(size=(1, 30)) + rng.gumbel(size=(100, 30))
    loss = exec_printed("Quantile", monkeypatch)(q)
    model = Factorization(1, loss=loss, intercept=True, tol=1e-4, random_state=0).fit(X)
    below = np.mean(model.inverse_transform(model.transform(X)) > X)
    assert abs(below - q) < 0.02
    assert np.all(np.diff(model.history_["objective"]) <= 0)


def test_printed_parabola_touches_the_loss_and_lies_above(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = exec_printed("Quantile", monkeypatch)(0.9)
    x, m = np.random.default_rng(0).normal(size=(2, 1, 500))
    slope, h = loss.slope(x, m), 1e-6
    assert np.allclose(slope, (loss.value(x, m + h) - loss.value(x, m - h)) / (2 * h), atol=1e-4)
    for step in (-3.0, -0.5, 0.5, 3.0):
        parabola = loss.value(x, m) + slope * step + 0.5 * loss.curvature(x, m) * step**2
        assert np.all(loss.value(x, m + step) <= parabola + 1e-9)


def test_printed_constraint_gives_bounded_least_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 1.5, size=(60, 3)) @ rng.random((3, 20))
    box = exec_printed("Box", monkeypatch)()
    model = Factorization(3, left=box, right=box, random_state=0).fit(X)
    codes = model.transform(X)
    assert codes.min() == 0 and codes.max() == 1
    for row, code in zip(X[:10], codes, strict=False):
        assert np.allclose(code, lsq_linear(model.components_.T, row, (0, 1), tol=1e-12).x, atol=1e-3)
