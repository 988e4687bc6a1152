"""How well k-means finds clusters that are known: S1 to S4, A1, D31 and unbalance."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import adjusted_rand_score

from bench.clusters_kmeans import fetch
from bench.harness import Bar, Contestant, Event, Missing, Row
from twofold import KMeans

NAMES = ("s1", "s2", "s3", "s4", "a1", "d31", "unbalance")


def sets(quick: bool) -> Event | Missing:
    found = fetch("clusters_sets", "clusters")
    if isinstance(found, Missing):
        return found
    names, seeds = (NAMES[:2], 2) if quick else (NAMES, 5)

    def best(make: type, name: str, seed: int) -> np.ndarray:
        """The labels of the cheapest of ten fits, each until no row moves, from starts that both contestants share."""
        X, k, rng = found[name].data, len(np.unique(found[name].target)), np.random.RandomState(seed)
        starts = [kmeans_plusplus(X, k, random_state=rng)[0] for _ in range(10)]
        fits = [make(k, init=start, n_init=1, tol=0).fit(X) for start in starts]
        return min(fits, key=lambda fit: fit.inertia_).labels_

    def shared(make: type) -> dict[str, list[np.ndarray]]:
        return {name: [best(make, name, seed) for seed in range(seeds)] for name in names}

    def defaults(make: type, **options: Any) -> dict[str, list[np.ndarray]]:
        return {
            name: [
                make(len(np.unique(found[name].target)), random_state=seed, **options).fit(found[name].data).labels_
                for seed in range(seeds)
            ]
            for name in names
        }

    def quality(result: dict[str, list[np.ndarray]]) -> dict[str, float]:
        return {
            name: float(np.mean([adjusted_rand_score(found[name].target, guess) for guess in guesses]))
            for name, guesses in result.items()
        }

    def as_good(a: dict[str, float], b: dict[str, float]) -> bool:
        return all(a[name] >= b[name] for name in b)

    def no_worse(rows: list[Row]) -> bool:
        ours = next(row.quality for row in rows if row.ours)
        return all(as_good(ours, row.quality) for row in rows if row.counts)

    small = found.s1.data[::10]
    return Event(
        "clusters_sets",
        f"adjusted Rand index of k-means in the plane, mean of {seeds} seeds",
        [
            Contestant(
                "twofold", lambda: defaults(KMeans), ours=True, note="defaults", warm=lambda: KMeans(15).fit(small)
            ),
            Contestant("scikit-learn, best of 10", lambda: defaults(SklearnKMeans, n_init=10), warm=lambda: None),
            Contestant("twofold, shared starts", lambda: shared(KMeans), counts=False, note="10", warm=lambda: None),
            Contestant(
                "scikit-learn, shared starts", lambda: shared(SklearnKMeans), counts=False, note="10", warm=lambda: None
            ),
        ],
        quality=quality,
        as_good=as_good,
        bar=Bar("no worse on any set than scikit-learn's best of 10 starts", test=no_worse),
        repeats=1,
        notes=[
            "Seconds are for all sets and seeds together; the bar looks at the indices alone.",
            "From shared starts, until no row moves, both end the same. With starts of their own the indices of both "
            "differ from seed to seed by more than they differ from each other: one row of 5,000 is worth 0.0004.",
        ],
    )


EVENTS = (sets,)
