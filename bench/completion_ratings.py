"""Factor models on MovieLens-100K: all five published splits, fitted and predicted, errors pooled."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from bench import machine
from bench.completion_neighbors import Split, as_good, errors, ours, splits, surprise
from bench.harness import Bar, Contestant, Event, Missing, Row, optional
from twofold import ALS, Biases, GradientFactorization, Neighborhood, SVDPlusPlus, datasets
from twofold.core.checks import InputError

TIMES_SURPRISE = 50.0


def single(sets: list[Split]) -> list[Split]:
    """The same splits with ratings in float32."""
    return [s._replace(X=s.X.astype(np.float32)) for s in sets]


def libmf(name: str, sets: list[Split], **options: Any) -> Contestant | Missing:
    """LIBMF through its Python interface: no biases, so the mean is taken off before and put back after."""

    def build() -> Contestant:
        with contextlib.redirect_stdout(io.StringIO()):
            from libmf import mf
        jobs = []
        for s in sets:
            cells, mean = s.X.tocoo(), float(s.X.data.mean())
            known = np.column_stack([cells.row, cells.col, cells.data - mean]).astype(np.float32)
            jobs.append((known, (s.users, s.items), mean))

        def run() -> list[np.ndarray]:
            out = []
            for known, asked, mean in jobs:
                model = mf.MF(nr_threads=machine.threads(), quiet=True, **options)
                model.fit(known)
                m = model.model  # its own predict mixes up cells, so its factors are multiplied here
                P, Q = (np.ctypeslib.as_array(f, (rows, m.k)) for f, rows in ((m.P, m.m), (m.Q, m.n)))
                i, j = asked
                there = (i < m.m) & (j < m.n)
                found = np.zeros(len(i))
                found[there] = np.nan_to_num(np.einsum("tk,tk->t", P[i[there]], Q[j[there]]))  # NaN: never rated
                out.append(found + mean)
            return out

        return Contestant(name, run)

    return optional(name, "libmf", build)


def event(name: str, title: str, entries: Callable[[list[Split]], list], bar: Bar, quick: bool, **more: Any) -> Any:
    try:
        sets = splits()[: 1 if quick else 5]
    except InputError as why:
        return Missing(f"completion_ratings {name}", str(why))
    return Event(
        f"completion_ratings {name}",
        f"{title}, MovieLens-100K, {len(sets)} published splits fitted and predicted",
        entries(sets),
        quality=lambda predicted: errors(predicted, sets),
        as_good=as_good,
        bar=bar,
        notes=["Predictions are held between 1 and 5 for everyone."],
        **more,
    )


def at_most(limit: float) -> Callable[[list[Row]], bool]:
    """The first of ours reaches the error."""
    return lambda rows: next(row for row in rows if row.ours).quality["rmse"] <= limit


def best(quick: bool) -> Event | Missing:
    def entries(sets: list[Split]) -> list:
        return [
            ours("twofold SVDPlusPlus", lambda: SVDPlusPlus(random_state=0), sets),
            surprise("Surprise SVDpp", lambda s: s.SVDpp(random_state=0, cache_ratings=True), sets),
        ]

    bar = Bar("RMSE <= 0.905 over all splits together, defaults", test=at_most(0.905))
    return event("best", "The best model with its defaults", entries, bar, quick, budget=1.0)


def stochastic(quick: bool) -> Event | Missing:
    def entries(sets: list[Split]) -> list:
        mine, few = single(sets), {"max_iter": 5, "tol": 0, "random_state": 0}
        return [
            ours("twofold", lambda: GradientFactorization(random_state=0), mine),
            ours("twofold, 5 sweeps", lambda: _quietly(GradientFactorization(**few)), mine),
            surprise("Surprise SVD", lambda s: s.SVD(random_state=0), sets),
            libmf("LIBMF, defaults", sets),
        ]

    def fast(rows: list[Row]) -> bool:
        peer = next(row for row in rows if row.contestant == "Surprise SVD")
        good = [row for row in rows if row.ours and as_good(row.quality, peer.quality)]
        return bool(good) and peer.median >= TIMES_SURPRISE * min(row.median for row in good)

    bar = Bar(f"{TIMES_SURPRISE:g} x Surprise's SVD at an RMSE no worse than its", test=fast)
    return event("stochastic", "Stochastic gradients", entries, bar, quick)


class _quietly:
    """A model that is meant to stop before it has converged."""

    def __init__(self, model: Any):
        self.model = model

    def fit(self, X: Any) -> Any:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.model.fit(X)


def alternating(quick: bool) -> Event | Missing:
    def entries(sets: list[Split]) -> list:
        mine = single(sets)
        return [
            ours("twofold ALS", lambda: ALS(random_state=0), mine),
            ours("twofold ALS, nonnegative", lambda: ALS(nonnegative=True, random_state=0), mine, counts=False),
            surprise("Surprise SVD", lambda s: s.SVD(random_state=0), sets),
            surprise("Surprise NMF", lambda s: s.NMF(random_state=0), sets),
        ]

    bar = Bar("RMSE <= 0.934 over all splits together, defaults", test=at_most(0.934))
    return event("alternating", "Alternating least squares", entries, bar, quick)


def sparse_ratings(quick: bool) -> Event | Missing:
    """Few ratings and much noise: every factor model beside biases, on the set's own test part."""
    name = "completion_ratings sparse"
    try:
        frame = datasets.fetch("flixster").ratings
    except InputError as why:
        return Missing(name, str(why))
    i, j = (frame[column].rank("dense").to_numpy().astype(np.int64) - 1 for column in ("user", "item"))
    x, test = frame["rating"].to_numpy().astype(float), (frame["part"] == "test").to_numpy()
    shape = (int(i.max()) + 1, int(j.max()) + 1)
    X = sparse.csr_array((x[~test], (i[~test], j[~test])), shape=shape)
    sets = [Split(X, i[test], j[test], x[test])]
    models = {
        "Biases": Biases(),
        "Neighborhood": Neighborhood(),
        "ALS": ALS(random_state=0),
        "GradientFactorization": GradientFactorization(random_state=0),
        "SVDPlusPlus": SVDPlusPlus(random_state=0),
    }

    def no_worse(rows: list[Row]) -> bool:
        plain = next(row for row in rows if row.contestant == "twofold Biases").quality["rmse"]
        return all(
            row.quality["rmse"] <= plain + 5e-5 for row in rows if row.ours and "Neighborhood" not in row.contestant
        )

    return Event(
        name,
        f"Ratings of a small film site (flixster), {X.nnz:,} known of {shape[0]:,} x {shape[1]:,}, its own test part",
        [ours(f"twofold {label}", lambda model=model: model, sets) for label, model in models.items()],
        quality=lambda predicted: {"rmse": float(np.sqrt(((predicted[0] - x[test]) ** 2).mean()))},
        as_good=as_good,
        bar=Bar("every factor model at or below Biases, defaults", test=no_worse),
    )


def first_split(quick: bool) -> Event | Missing:
    """u1 alone, where a network of kernels is published at 0.889."""

    def entries(sets: list[Split]) -> list:
        return [ours("twofold SVDPlusPlus", lambda: SVDPlusPlus(random_state=0), sets[:1])]

    bar = Bar("RMSE <= 0.91", test=at_most(0.91))
    found = event("u1", "The first split alone", entries, bar, True, budget=1.0)
    if isinstance(found, Event):
        found.notes.append("GLocal-K is published at 0.889 (Han et al. 2021).")
    return found


EVENTS = (best, stochastic, alternating, sparse_ratings, first_split)
