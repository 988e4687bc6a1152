"""Tables at the edge of what numbers can hold: every estimator gives finite results, or refuses with a reason."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.attack.child import REFUSED
from tests.contract.registry import MODELS, table

SECONDS = 120


def with_constants(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X[:, :5], np.full(len(X), 7.0), np.zeros((len(X), 2))])


TABLES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "times 1e300": lambda X: X * 1e300,
    "times 1e-300": lambda X: X * 1e-300,
    "single, times 1e37": lambda X: (X * 1e36).astype(np.float32),
    "single, times 1e-38": lambda X: (X * 1e-38).astype(np.float32),
    "offset 1e15": lambda X: X + 1e15,
    "constant columns": with_constants,
    "all alike": lambda X: np.full_like(X, 3.0),
    "all zero": np.zeros_like,
}
WEIGHTS: dict[str, Callable[[int], np.ndarray]] = {
    "weights of 1e300": lambda n: np.full(n, 1e300),
    "weights of 1e-300": lambda n: np.full(n, 1e-300),
    "one weight above 0": lambda n: np.eye(1, n, 5)[0],
}


def not_finite(model: Any, X: np.ndarray) -> str:
    """Which fitted attribute or answer holds a number that is not finite, "" if none."""
    fitted = {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}
    for name in ("transform", "predict"):
        if hasattr(model, name):
            fitted[name] = getattr(model, name)(X)
    for name, value in fitted.items():
        for one in value if isinstance(value, (tuple, list)) else [value]:
            one = one.data if hasattr(one, "indptr") else one
            if isinstance(one, (np.ndarray, np.floating)) and one.dtype.kind == "f" and not np.isfinite(one).all():
                return name
    return ""


def attack(names: tuple[str, ...] = (*TABLES, *WEIGHTS)) -> Iterator[tuple[str, str]]:
    """Each estimator of the registry on each table and with each kind of weights."""
    good, y = table()
    for case in MODELS:
        for name in names:
            if name in WEIGHTS and not case.weights:
                continue
            X = TABLES[name](good) if name in TABLES else good
            weights = None if name in TABLES else WEIGHTS[name](len(X))
            yield f"{case}, {name}", outcome(case, X, y, weights)


def outcome(case: Any, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> str:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = case.fit(X, y, weights)
            where = not_finite(model, X)
        return f"{where} is not finite" if where else ""
    except Exception as error:
        return "" if type(error).__name__ in REFUSED else f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
