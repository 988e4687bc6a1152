"""Sparse arrays whose indices lead outside them, for every estimator that takes sparse data, in fit and after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from tests.attack.child import is_refused, run
from tests.contract.registry import MODELS, remove_middle, table


def spoil(X: sparse.csr_array, kind: str, rng: np.random.Generator) -> Any:
    """A copy of X with one thing wrong."""
    X = X.copy()
    at = int(rng.integers(X.nnz))
    if kind == "index is d":
        X.indices[at] = X.shape[1]
    elif kind == "index far":
        X.indices[at] = 2**31 - 1 - int(rng.integers(1000))
    elif kind == "index negative":
        X.indices[at] = -1 - int(rng.integers(1000))
    elif kind == "ids from 1":
        X.indices += 1
    elif kind == "indptr falls":
        X.indptr[int(rng.integers(1, X.shape[0]))] = X.nnz + 5
    elif kind == "indptr long":
        X.indptr[-1] = X.nnz + int(rng.integers(1, 10**6))
    elif kind == "indptr start":
        X.indptr[0] = -int(rng.integers(1, 1000))
    elif kind == "columns of a csc":
        X = X.tocsc()
        X.indices[at] = X.shape[0] + int(rng.integers(10**6))
    elif kind == "rows of a coo":
        X = X.tocoo()
        X.coords[0][at] = X.shape[0] + int(rng.integers(10**6))
    return X


KINDS = (
    "index is d",
    "index far",
    "index negative",
    "ids from 1",
    "indptr falls",
    "indptr long",
    "indptr start",
    "columns of a csc",
    "rows of a coo",
)


def cases() -> list[Any]:
    """One setting of every estimator that takes sparse data, and all settings of those with several solvers."""
    return [case for case in MODELS if case.sparse]


def calls(case: Any, X: Any) -> Iterator[tuple[str, Any]]:
    """fit, and what follows it, of X."""
    _, y = table()
    yield "fit", lambda: case.fit(X, y)
    model = case.get_fitted()
    for name in ("transform", "predict", "score", "fold_in", "complete", "partial_fit", "score_samples"):
        if hasattr(model, name):
            labels = (y,) if name == "score" and case.needs_y else ()
            yield name, lambda name=name, labels=labels: getattr(model, name)(X, *labels)


def attack(count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the attempt and its fault or "", this many times: estimators in turn, kinds in turn."""
    rng = np.random.default_rng(seed)
    for tried in range(count // 2):
        case = cases()[tried % len(cases())]
        kind = KINDS[(tried + tried // len(cases())) % len(KINDS)]
        _, good = remove_middle(case, table()[0])
        some = list(calls(case, spoil(good, kind, rng)))
        for name, call in [some[0], some[1 + int(rng.integers(len(some) - 1))]]:
            said = run(call)
            yield f"{case}.{name}, {kind}", "" if is_refused(said) else said
