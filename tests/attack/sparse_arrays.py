"""Sparse arrays whose indices lead outside them, for every estimator that takes sparse data, in fit and after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from tests.attack.child import is_refused, run
from tests.contract.registry import MODELS, remove_middle, table

KINDS: dict[str, tuple[str, Any, Any]] = {  # format, the array to change and where, the number that is written
    "index is d": ("csr", lambda X, at, some: (X.indices, at), lambda X, some: X.shape[1]),
    "index far": ("csr", lambda X, at, some: (X.indices, at), lambda X, some: 2**31 - 1 - some % 1000),
    "index negative": ("csr", lambda X, at, some: (X.indices, at), lambda X, some: -1 - some % 1000),
    "ids from 1": ("csr", lambda X, at, some: (X.indices, slice(None)), lambda X, some: X.indices + 1),
    "indptr falls": ("csr", lambda X, at, some: (X.indptr, 1 + some % (X.shape[0] - 1)), lambda X, some: X.nnz + 5),
    "indptr long": ("csr", lambda X, at, some: (X.indptr, -1), lambda X, some: X.nnz + 1 + some),
    "indptr start": ("csr", lambda X, at, some: (X.indptr, 0), lambda X, some: -1 - some % 1000),
    "columns of a csc": ("csc", lambda X, at, some: (X.indices, at), lambda X, some: X.shape[0] + some),
    "rows of a coo": ("coo", lambda X, at, some: (X.coords[0], at), lambda X, some: X.shape[0] + some),
}
CASES = [case for case in MODELS if case.sparse]


def spoil(X: sparse.csr_array, kind: str, rng: np.random.Generator) -> Any:
    """A copy of X with one thing wrong."""
    form, find, write = KINDS[kind]
    bad, at, some = X.copy().asformat(form), int(rng.integers(X.nnz)), int(rng.integers(10**6))
    array, place = find(bad, at, some)
    array[place] = write(bad, some)
    return bad


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
        case = CASES[tried % len(CASES)]
        kind = list(KINDS)[(tried + tried // len(CASES)) % len(KINDS)]
        _, good = remove_middle(case, table()[0])
        some = list(calls(case, spoil(good, kind, rng)))
        for name, call in [some[0], some[1 + int(rng.integers(len(some) - 1))]]:
            said = run(call)
            yield f"{case}.{name}, {kind}", "" if is_refused(said) else said
