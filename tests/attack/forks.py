"""Children of a process that has used threads: every model must answer there as it does in the parent."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from functools import partial
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


def answer(model: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(model.transform(X) if hasattr(model, "transform") else model.predict(X))


def answer_in_pool(model: Any, X: np.ndarray) -> np.ndarray:
    """The answer of a worker of a pool that forks."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply_async(answer, (model, X)).get(100)


def attack(count: int) -> Iterator[tuple[str, str]]:
    """Fit in the parent with threads; predict, and fit again, in a child."""
    X, y = table(n=20_000)
    with twofold.config(threads=4):
        for tried in range(count):
            name = list(MODELS)[tried % len(MODELS)]
            model = MODELS[name]().fit(X, y)
            ways = {
                "predicts": partial(answer, model, X),
                "fits": lambda name=name: answer(MODELS[name]().fit(X, y), X),
                "predicts in a pool": partial(answer_in_pool, model, X),
            }
            how = list(ways)[tried // len(MODELS) % len(ways)]
            said = run(partial(require_same, ways[how], answer(model, X)))
            yield f"{name} {how} in a child", "" if said == "done" else said


def require_same(ask: Callable[[], np.ndarray], wanted: np.ndarray) -> None:
    if not np.array_equal(ask(), wanted):
        raise AssertionError("the child's answer is another")
