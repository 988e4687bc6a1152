"""Children of a process that has used threads: every model must answer there as it does in the parent."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import twofold
from tests.attack.child import run
from tests.contract.registry import table

MODELS: dict[str, Callable[[], Any]] = {
    "KMeans": lambda: twofold.KMeans(3, random_state=0),
    "PCA": lambda: twofold.PCA(3),
    "NMF": lambda: twofold.NMF(3, max_iter=20, tol=0, random_state=0),
    "ALS": lambda: twofold.ALS(2, max_iter=3, random_state=0),
    "LatentDirichletAllocation": lambda: twofold.LatentDirichletAllocation(3, max_iter=5, random_state=0),
    "GaussianMixture": lambda: twofold.GaussianMixture(3, random_state=0),
    "KSVD": lambda: twofold.KSVD(8, n_nonzero=2, max_iter=3, random_state=0),
    "Autoencoder": lambda: twofold.Autoencoder(2, max_iter=1, random_state=0),
    "MLPClassifier": lambda: twofold.MLPClassifier(max_iter=2, random_state=0),
}
WAYS = ("predicts", "fits", "predicts in a pool")


def answer(model: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(model.transform(X) if hasattr(model, "transform") else model.predict(X))


def require_same(model: Any, X: np.ndarray, wanted: np.ndarray) -> None:
    if not np.array_equal(answer(model, X), wanted):
        raise AssertionError("the child's answer is another")


def answer_in_pool(model: Any, X: np.ndarray) -> np.ndarray:
    """The answer of a worker of a pool that forks."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply_async(answer, (model, X)).get(100)


def attack(count: int) -> Iterator[tuple[str, str]]:
    """Fit in the parent with threads; predict, and fit again, in a child."""
    X, y = table(n=20_000)
    with twofold.config(threads=4):
        for tried in range(count):
            name, how = list(MODELS)[tried % len(MODELS)], WAYS[tried // len(MODELS) % len(WAYS)]
            model = MODELS[name]().fit(X, y)
            wanted = answer(model, X)
            if how == "predicts":
                said = run(lambda model=model, wanted=wanted: require_same(model, X, wanted))
            elif how == "fits":
                said = run(lambda name=name, wanted=wanted: require_same(MODELS[name]().fit(X, y), X, wanted))
            else:
                said = run(lambda model=model, wanted=wanted: require_same_in_pool(model, X, wanted))
            yield f"{name} {how} in a child", "" if said == "done" else said


def require_same_in_pool(model: Any, X: np.ndarray, wanted: np.ndarray) -> None:
    if not np.array_equal(answer_in_pool(model, X), wanted):
        raise AssertionError("the worker's answer is another")
