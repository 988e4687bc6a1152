"""Tables at the edge of what numbers can hold: every estimator gives finite results, or refuses with a reason."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import twofold
from tests.attack.child import REFUSED
from tests.contract.registry import MODELS, remove_middle, table

SECONDS = 120


TABLES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "times 1e300": lambda X: X * 1e300,
    "times 1e-300": lambda X: X * 1e-300,
    "single, times 1e37": lambda X: (X * 1e36).astype(np.float32),
    "single, times 1e-38": lambda X: (X * 1e-38).astype(np.float32),
    "offset 1e15": lambda X: X + 1e15,
    "constant columns": lambda X: np.column_stack([X[:, :5], np.full(len(X), 7.0), np.zeros((len(X), 2))]),
    "all alike": lambda X: np.full_like(X, 3.0),
    "all zero": np.zeros_like,
}
SPARSE = ("times 1e300", "times 1e-300", "single, times 1e37", "single, times 1e-38", "all zero")
WEIGHTS: dict[str, Callable[[int], np.ndarray]] = {
    "weights of 1e300": lambda n: np.full(n, 1e300),
    "weights of 1e-300": lambda n: np.full(n, 1e-300),
    "one weight above 0": lambda n: np.eye(1, n, 5)[0],
}


def not_finite(model: Any, X: np.ndarray) -> str:
    """Return the fitted attribute or answer holds a number that is not finite, "" if none."""
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


@dataclass(frozen=True)
class Other:
    """An estimator that is not in the registry, made small."""

    model: str
    params: dict[str, Any]
    needs_y: bool = False

    def fit(self, X: np.ndarray, y: np.ndarray, _: None = None) -> Any:
        model = getattr(twofold, self.model)(**self.params)
        return model.fit(X, y) if self.needs_y else model.fit(X)


HIDDEN = {"hidden_layer_sizes": (4,), "max_iter": 2, "random_state": 0}
OTHERS = (
    Other("MLPClassifier", HIDDEN, True),
    Other("MLPClassifier", HIDDEN | {"solver": "lbfgs"}, True),
    Other("MLPRegressor", HIDDEN, True),
    Other("Autoencoder", HIDDEN),
    Other("VAE", HIDDEN),
    Other("VAE", HIDDEN | {"output": "gaussian"}),
    Other("DLGM", HIDDEN | {"n_components": (2,)}),
    Other("GAN", HIDDEN),
    Other("VAEGAN", HIDDEN),
    Other("NormalizingFlow", HIDDEN | {"n_layers": 2}),
    Other("PixelCNN", {"n_layers": 1, "levels": 4, "image_shape": (2, 4), "max_iter": 2, "random_state": 0}),
    Other("CNNClassifier", HIDDEN | {"channels": (2,), "kernel_size": 1, "pooling": 1, "image_shape": (2, 4)}, True),
    Other("SparseCoder", {"dictionary": np.eye(8)}),
    Other("CompressiveSensing", {"n_measurements": 4, "random_state": 0}),
)


def recommend_scaled(factor: float) -> str:
    """Return the fault of a recommender whose ratings are this large."""
    rows = [(i, j, factor * (1 + i * j % 5)) for i in range(30) for j in range(8) if (i + j) % 3]
    try:
        model = twofold.Recommender(twofold.SVDPlusPlus(2, random_state=0)).fit(rows)
        return "" if np.isfinite(model.predict([1, 2], [1, 2])).all() else "predict is not finite"
    except Exception as error:
        return "" if type(error).__name__ in REFUSED else f"{type(error).__name__}: {error}"


def attack(names: tuple[str, ...] = (*TABLES, *WEIGHTS)) -> Iterator[tuple[str, str]]:
    """Each estimator on each table, sparse too where it takes that, and with each kind of weights."""
    good, y = table()
    for other in OTHERS:
        for name in (name for name in names if name in TABLES):
            yield f"{other.model}, {name}", outcome(other, TABLES[name](good), y, None)
    for factor in (1e300, 1e-300, 0.0) if len(names) > 1 else ():
        yield f"Recommender, ratings times {factor}", recommend_scaled(factor)
    for case in (case for case in MODELS if case.sparse):
        for name in (name for name in names if name in SPARSE):
            kept = remove_middle(case, good)[1]
            X = sparse.csr_array((TABLES[name](kept.data), kept.indices, kept.indptr), shape=kept.shape)
            yield f"{case}, sparse, {name}", outcome(case, X, y, None)
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
