"""The model printed in CONTRIBUTING.md is one that works."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from twofold.linalg import low_rank

TEXT = Path(__file__).parents[2] / "CONTRIBUTING.md"


def printed_model() -> type:
    code = re.search(r"```python\n(.*?)```", TEXT.read_text(encoding="utf-8"), re.S)
    assert code is not None
    names: dict = {"__name__": "contributing"}
    exec(code[1], names)
    return names["AlternatingLeastSquares"]


def test_printed_model_reaches_the_best_rank_k() -> None:
    X = np.random.default_rng(0).normal(size=(300, 4)) @ np.random.default_rng(1).normal(size=(4, 20))
    X += 0.1 * np.random.default_rng(2).normal(size=X.shape)
    model = printed_model()(3, tol=1e-14, random_state=0).fit(X)
    error = ((X - model.transform(X) @ model.components_) ** 2).sum()
    assert np.isclose(error, ((X - low_rank(X, 3)) ** 2).sum(), rtol=1e-6)
    assert np.all(np.diff(model.history_["objective"]) <= 1e-9 * model.history_["objective"][0])
