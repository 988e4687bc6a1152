"""The model a Recommender takes when none is given, and what it says about it.

Some of the ratings are held out. The model is fitted to the others until the error on those held out no longer falls,
and is compared with a baseline that knows no one's taste: biases for ratings, popularity for what has no ratings, where
the ridge is chosen, too. Then it is fitted again, to everything. Biases that were better are taken instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from twofold.completion.recommender._splits import split_cells, take_cells
from twofold.completion.recommender._top_n import Product, rank_items
from twofold.core.callbacks import Checkpoint, EarlyStopping
from twofold.core.loop import quietly
from twofold.metrics import ndcg_at_k

ENOUGH = 100  # ratings, below which holding some out would tell nothing
PATIENCE = 25  # sweeps without gain: the error on held-out ratings may rise for a dozen and then fall further
LISTS = 5_000  # users whose lists are looked at
N = 10  # places that count
RIDGES = (10.0, 50.0, 200.0)  # of ImplicitALS: how much is held back depends on how many people and things there are


def fit_given(model: Any, X: sparse.csr_array, callbacks: list) -> tuple[Any, dict]:
    """A copy of the model that was given, fitted."""
    fitted = clone(model).set_callbacks(*callbacks).fit(X)
    return fitted, {**_describe(fitted), "why": "it was given"}


def fit_chosen(X: sparse.csr_array, implicit: bool, holdout: float, seed: int, callbacks: list) -> tuple[Any, dict]:
    """The model that suits the data, fitted to all of it, and a dict that says what was chosen and why."""
    if X.nnz < ENOUGH or not holdout:
        why = "nothing was held out" if not holdout else f"{X.nnz} ratings are too few to hold some out"
        with quietly():  # its sweeps were not chosen by the one who would be warned
            fitted = make_default_model(implicit, seed).set_callbacks(*callbacks).fit(X)
        return fitted, {**_describe(fitted), "why": f"the default for {_name_kind(implicit)} data; {why}"}
    fold = split_cells(X, "random", holdout, None, seed)
    watching = [c for c in callbacks if not isinstance(c, (Checkpoint, EarlyStopping))]  # those belong to the last fit
    try_out = _try_rankings if implicit else _try_ratings
    model, figures = try_out(take_cells(X, fold < 0), take_cells(X, fold == 0), seed, watching)
    with quietly():  # it stops where the trial did
        fitted = clone(model).set_callbacks(*callbacks).fit(X)
    won = figures["score"] > figures["baseline_score"] if implicit else figures["score"] <= figures["baseline_score"]
    verdict = "beats" if won else "does not beat"
    why = f"the default for {_name_kind(implicit)} data {verdict} the baseline on ratings held out"
    return fitted, {**_describe(fitted), "why": why, "held_out": int((fold == 0).sum()), **figures}


def make_default_model(implicit: bool, seed: int) -> Any:
    """SVDPlusPlus for ratings, ImplicitALS for what has none."""
    if implicit:
        from twofold.completion.implicit_als import ImplicitALS

        return ImplicitALS(random_state=seed)
    from twofold.completion.svd_plus_plus import SVDPlusPlus

    return SVDPlusPlus(random_state=seed)


def _try_ratings(train: sparse.csr_array, held: sparse.csr_array, seed: int, callbacks: list) -> tuple[Any, dict]:
    """The model to fit to everything, by the error on held-out ratings."""
    from twofold.completion.biases import Biases

    model, stop = make_default_model(False, seed), EarlyStopping(train, held, patience=PATIENCE)
    with quietly():
        trial = clone(model).set_callbacks(stop, *callbacks).fit(train)
        baseline = Biases().fit(train)
    sweeps = stop.best_sweep_ + 1
    score, base = _measure_rmse(trial, held, train), _measure_rmse(baseline, held, train)
    figures = {"measure": "rmse", "score": score, "sweeps": sweeps, "baseline": "Biases", "baseline_score": base}
    if score > base:
        return Biases(), figures
    return (model.set_params(max_iter=sweeps) if sweeps < trial.n_iter_ else model), figures


def _try_rankings(train: sparse.csr_array, held: sparse.csr_array, seed: int, callbacks: list) -> tuple[Any, dict]:
    """The same for implicit data, by the lists; a large ridge comes down to popularity."""
    users = np.flatnonzero(np.diff(held.indptr))[:LISTS]
    scores = {}
    for reg in RIDGES:
        model = make_default_model(True, seed).set_params(reg=reg)
        with quietly():
            scores[reg] = _measure_ndcg(model.set_callbacks(*callbacks).fit(train), held, train, users)
    best = max(RIDGES, key=lambda reg: scores[reg])
    figures = {"measure": f"ndcg@{N}", "score": scores[best], "tried": {f"reg={r:g}": scores[r] for r in RIDGES}}
    base = _measure_ndcg(score_by_popularity(train), held, train, users)
    return make_default_model(True, seed).set_params(reg=best), {
        **figures,
        "baseline": "popularity",
        "baseline_score": base,
    }


def score_by_popularity(X: sparse.csr_array) -> Product:
    """Everyone is recommended what most people have."""
    counts = np.bincount(X.indices, minlength=X.shape[1]).astype(np.float32)
    return Product(np.ones((X.shape[0], 1), np.float32), counts[None], np.zeros(X.shape[0], np.float32))


def _measure_rmse(model: Any, held: sparse.csr_array, train: sparse.csr_array) -> float:
    rows = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
    found = np.clip(model.predict(rows, held.indices), train.data.min(), train.data.max())
    return float(np.sqrt(np.mean((found.astype(np.float64) - held.data) ** 2)))


def _measure_ndcg(model: Any, held: sparse.csr_array, train: sparse.csr_array, users: np.ndarray) -> float:
    lists = np.concatenate([found.items for _, found in rank_items(model, train, users, N)])
    return float(ndcg_at_k(lists, held[users], N))


def _name_kind(implicit: bool) -> str:
    return "implicit" if implicit else "explicit"


def _describe(model: Any) -> dict:
    plain = (bool, int, float, str, type(None))
    parameters = {k: v if isinstance(v, plain) else repr(v) for k, v in model.get_params(deep=False).items()}
    return {"model": type(model).__name__, "parameters": parameters}
