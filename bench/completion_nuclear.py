"""Exact recovery by SVT and SVP, and nuclear-norm completion beside fancyimpute at the same λ."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from bench.harness import Bar, Contestant, Event, Missing, Row, Timed, optional
from twofold import ALS, SVP, SVT, SoftImpute, datasets
from twofold.core.checks import InputError
from twofold.linalg import norm


def plant_matrix(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, sparse.csr_array]:
    """Factors of an n × n matrix of rank k with Gaussian entries, and 6 known cells for each degree of freedom."""
    rng = np.random.default_rng(seed)
    U, Z = rng.normal(size=(n, k)), rng.normal(size=(k, n))
    known = rng.choice(n * n, 6 * k * (2 * n - k), replace=False)
    i, j = np.divmod(known, n)
    return U, Z, sparse.csr_array((np.einsum("tk,kt->t", U[i], Z[:, j]), (i, j)), shape=(n, n))


def is_recovered(rows: list[Row]) -> bool:
    """SVT: relative error at most 2e-4 in at most 120 sweeps and 10 seconds; SVP and ALS: as near."""
    svt = next(row for row in rows if row.contestant == "twofold SVT")
    near = all(row.quality["error"] <= 2e-4 for row in rows)
    return near and svt.quality["sweeps"] <= 120 and svt.median < 10


def recovery(quick: bool) -> Event:
    n, k = (300, 8) if quick else (1000, 10)
    U, Z, X = plant_matrix(n, k)
    M = U @ Z

    def entry(name: str, model: Any, **more: Any) -> Contestant:
        return Contestant(name, lambda: model.fit(X), **more)

    def quality(model: Any) -> dict[str, float]:
        error = norm(model.row_factors_ @ model.components_ - M) / norm(M)
        return {"error": error, "sweeps": model.n_iter_}

    return Event(
        "completion_nuclear recovery",
        f"exact recovery of {n:,} x {n:,}, rank {k}, from {X.nnz:,} known cells (6 for each degree of freedom)",
        [
            entry("twofold SVT", SVT(random_state=0), ours=True),
            entry("twofold SVP", SVP(k, random_state=0), ours=True, note="is told the rank"),
            entry(
                "twofold ALS", ALS(k, reg=1e-6, biases=False, tol=1e-3, random_state=0), ours=True, note="so is this"
            ),
        ],
        quality=quality,
        as_good=lambda a, b: a["error"] <= 2e-4,
        bar=Bar("SVT: error <= 2e-4 in <= 120 sweeps and 10 s; SVP and ALS recover it too", test=is_recovered),
        notes=["The SVT paper reports 117 iterations and an error of 1.6e-4 for this task."],
    )


def objective(X: sparse.csr_array, M: np.ndarray, reg: float) -> float:
    """½‖P(X − M)‖² + λ‖M‖_*, for anyone's M."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return 0.5 * float(((X.data - M[rows, X.indices]) ** 2).sum()) + reg * norm(M, "nuclear")


def fancy(X: sparse.csr_array, reg: float) -> Callable[[], Timed]:
    """fancyimpute's SoftImpute as it is, but for a parameter of scikit-learn that has another name now."""
    import fancyimpute.soft_impute as module
    import fancyimpute.solver as solver
    from sklearn.utils import check_array

    def check_array_of_old_name(X: Any, force_all_finite: bool = True, **options: Any) -> Any:
        return check_array(X, ensure_all_finite=force_all_finite, **options)

    module.check_array = solver.check_array = check_array_of_old_name
    last: list[np.ndarray] = []

    class Watched(module.SoftImpute):  # type: ignore[name-defined, misc]
        """It returns the filled table; the objective is about the low-rank matrix behind it."""

        def _svd_step(self, *arguments: Any, **options: Any) -> Any:
            out = super()._svd_step(*arguments, **options)
            last[:] = [out[0]]
            return out

    H = np.full(X.shape, np.nan)
    H[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data

    def run() -> Timed:
        began = time.perf_counter()
        Watched(shrinkage_value=reg, verbose=False).fit_transform(H)
        return Timed(time.perf_counter() - began, last[0])

    return run


def tenfold(rows: list[Row]) -> bool:
    """Ours in a tenth of the time, at an objective that is equal or lower."""
    ours = next(row for row in rows if row.ours)
    theirs = [row for row in rows if not row.ours and row.seconds]
    lower = all(ours.quality["objective"] <= (1 + 1e-6) * row.quality["objective"] for row in theirs)
    return bool(theirs) and lower and all(row.median >= 10 * ours.median for row in theirs)


def soft(name: str, data_title: str, X: sparse.csr_array, share: float) -> Event:
    reg = share * norm(X, "spectral")

    def ours() -> Timed:
        began = time.perf_counter()
        model = SoftImpute(reg, random_state=0).fit(X)
        return Timed(time.perf_counter() - began, model.row_factors_ @ model.components_)

    def warm() -> None:
        SoftImpute(reg, random_state=0).fit(X[:50])

    def theirs() -> Contestant:
        run = fancy(X, reg)
        return Contestant("fancyimpute", run, warm=lambda: None)

    return Event(
        f"completion_nuclear {name}",
        f"SoftImpute of {data_title}, {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} known cells, λ = {reg:.3g}",
        [Contestant("twofold", ours, ours=True, warm=warm), optional("fancyimpute", "fancyimpute", theirs)],
        quality=lambda M: {"objective": objective(X, M, reg), "rank": float(np.linalg.matrix_rank(M))},
        as_good=lambda a, b: a["objective"] <= 1.01 * b["objective"],
        bar=Bar("10 x fancyimpute at an objective that is no worse", test=tenfold),
        budget=20.0,
        notes=["fancyimpute stops by its own rule (0.001); ours at its default tolerance."],
    )


def noisy(quick: bool) -> Event:
    n = 300 if quick else 1000
    rng = np.random.default_rng(0)
    M = rng.normal(size=(n, 10)) @ rng.normal(size=(10, n)) + rng.normal(size=(n, n))
    X = sparse.csr_array(np.where(rng.random((n, n)) < 0.25, M, 0.0))
    return soft("noise", "a noisy matrix of rank 10", X, 0.1)


def films(quick: bool) -> Event | Missing:
    try:
        ratings = datasets.fetch("movielens100k").ratings
    except InputError as why:
        return Missing("completion_nuclear films", str(why))
    i, j, x = (ratings[name].to_numpy() for name in ("user", "item", "rating"))
    X = sparse.csr_array((x.astype(np.float64), (i - 1, j - 1)))
    return soft("films", "film ratings (movielens100k)", X[:300] if quick else X, 0.03)


EVENTS = (recovery, noisy, films)
