"""Alternating least squares as often as cmfrec and implicit: ratings of anime, and views of users."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from bench import machine
from bench.harness import Bar, Contestant, Event, Missing, Row, optional
from twofold import ALS, ImplicitALS, datasets
from twofold.core.checks import InputError

SWEEPS = 15


def anime(event: str) -> tuple | Missing:
    """Rows, columns and ratings, in float32, and a tenth of them held out."""
    try:
        found = datasets.fetch("anime").ratings
    except InputError as why:
        return Missing(event, str(why))
    i, j = (np.unique(found[name].to_numpy(), return_inverse=True)[1] for name in ("user", "item"))
    held = np.random.default_rng(0).random(len(i)) < 0.1
    return i, j, found["rating"].to_numpy().astype(np.float32), held


def faster(peer: str, figure: str) -> Callable[[list[Row]], bool]:
    """Ours that counts is no worse than the peer and takes at most two thirds of its time."""

    def test(rows: list[Row]) -> bool:
        own, other = next(r for r in rows if r.ours and r.counts), next(r for r in rows if r.contestant == peer)
        return own.quality[figure] <= 1.001 * other.quality[figure] and other.median >= 1.5 * own.median

    return test


def quietly(model: Any, X: Any) -> Any:
    """A fit that is meant to stop before it has converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


def explicit(quick: bool) -> Event | Missing:
    name = "completion_als explicit"
    data = anime(name)
    if isinstance(data, Missing):
        return data
    i, j, x, held = data
    k, shape = 10 if quick else 50, (int(i.max()) + 1, int(j.max()) + 1)
    X = sparse.csr_array((x[~held], (i[~held], j[~held])), shape=shape)
    asked, truth, spread = (i[held], j[held]), x[held], float(x[~held].std())

    def mine(solver: str) -> Any:
        model = ALS(k, reg=0.1, solver=solver, max_iter=SWEEPS, tol=0, random_state=0)
        return lambda: quietly(model, X).predict(*asked)

    def cmfrec(cg: bool) -> Contestant:
        from cmfrec import CMF

        given = sparse.coo_matrix(X)

        def run() -> np.ndarray:
            model = CMF(
                k=k, lambda_=0.1 * spread, scale_lam=True, method="als", use_cg=cg, niter=SWEEPS, use_float=True,
                nthreads=machine.threads(), verbose=False, random_state=1, precompute_for_predictions=False,
            )  # fmt: skip
            return model.fit(given).predict(*asked)

        return Contestant(f"cmfrec {'CG' if cg else 'Cholesky'}", run)

    return Event(
        name,
        f"ALS of {X.nnz:,} ratings (anime), {shape[0]:,} x {shape[1]:,}, k = {k}, {SWEEPS} sweeps, biases, float32",
        [
            Contestant("twofold CG", mine("cg"), ours=True),
            Contestant("twofold Cholesky", mine("cholesky"), ours=True, counts=False),
            optional("cmfrec CG", "cmfrec", lambda: cmfrec(True)),
            optional("cmfrec Cholesky", "cmfrec", lambda: cmfrec(False)),
        ],
        quality=lambda p: {"rmse": float(np.sqrt(np.mean((np.clip(p, 1, 10) - truth) ** 2)))},
        as_good=lambda a, b: a["rmse"] <= 1.002 * b["rmse"],
        bar=Bar("1.5 x cmfrec's CG at an RMSE on held-out ratings no worse than its", test=faster("cmfrec CG", "rmse")),
        notes=["λ is scaled by counts and equal for all; everyone ends with exact rows."],
    )


def implicit(quick: bool) -> Event | Missing:
    name = "completion_als implicit"
    data = anime(name)
    if isinstance(data, Missing):
        return data
    i, j, x, _ = data
    k, reg, alpha = 32 if quick else 64, 10.0, 2.0
    X = sparse.csr_array((x, (i, j)), shape=(int(i.max()) + 1, int(j.max()) + 1))

    def objective(factors: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
        U, Z = (f.astype(np.float64) for f in factors)
        rows, cols = X.nonzero()
        said, c = np.einsum("tk,tk->t", U[rows], Z[cols]), 1 + alpha * X.data.astype(np.float64)
        everywhere = float(((U.T @ U) * (Z.T @ Z)).sum())
        return {
            "objective": everywhere + float((c * (1 - said) ** 2 - said**2).sum() + reg * ((U**2).sum() + (Z**2).sum()))
        }

    def mine() -> tuple[np.ndarray, np.ndarray]:
        ours = ImplicitALS(k, reg=reg, reg_power=0, alpha=alpha, solver="cg", max_iter=SWEEPS, tol=0, random_state=0)
        model = quietly(ours, X)
        return model.row_factors_, model.components_.T

    def peer() -> Contestant:
        from implicit.cpu.als import AlternatingLeastSquares

        given = sparse.csr_matrix(X)
        given.data = 1 + alpha * given.data  # its weight of a seen cell

        def run() -> tuple[np.ndarray, np.ndarray]:
            model = AlternatingLeastSquares(
                factors=k,
                regularization=reg,
                alpha=1.0,
                iterations=SWEEPS,
                num_threads=machine.threads(),
                random_state=0,
            )
            model.fit(given, show_progress=False)
            return model.user_factors, model.item_factors

        return Contestant("implicit", run, note="conjugate gradients, 3 steps")

    return Event(
        name,
        f"Implicit ALS of {X.nnz:,} cells (anime), {X.shape[0]:,} x {X.shape[1]:,}, k = {k}, {SWEEPS} sweeps, float32",
        [Contestant("twofold", mine, ours=True), optional("implicit", "implicit", peer)],
        quality=objective,
        as_good=lambda a, b: a["objective"] <= 1.001 * b["objective"],
        bar=Bar("1.5 x implicit at an objective no worse than its", test=faster("implicit", "objective")),
    )


EVENTS = (explicit, implicit)
