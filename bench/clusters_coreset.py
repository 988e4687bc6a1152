"""k-means on a coreset against k-means on all rows: kdd_bio, k = 100, for several sizes and seeds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.clusters_kmeans import inertia, proteins, quietly
from bench.harness import Bar, Contestant, Event, Missing, Row, Timed
from twofold import KMeans
from twofold.clusters import coreset

K = 100
SIZES = (2_000, 5_000, 10_000, 20_000, 30_000)
FASTER, WORSE = 20.0, 1.02


def over_seeds(fit: Callable[[int], np.ndarray], seeds: int) -> Timed:
    """The median seconds of a fit, and the centers each seed gives."""
    seconds, centers = [], []
    for seed in range(seeds):
        began = time.perf_counter()
        centers.append(fit(seed))
        seconds.append(time.perf_counter() - began)
    return Timed(statistics.median(seconds), centers)


def sketches(quick: bool) -> Event | Missing:
    found = proteins("clusters_coreset")
    if isinstance(found, Missing):
        return found
    X: np.ndarray = found[:20_000] if quick else found
    sizes, seeds, whole = (SIZES[:2], 2, 2) if quick else (SIZES, 10, 3)
    base: list[float] = []  # the mean inertia of the full fits, which come first

    def fit(X: np.ndarray, w: np.ndarray | None, seed: int) -> np.ndarray:
        return quietly(lambda: KMeans(K, n_init=1, random_state=seed).fit(X, sample_weight=w)).cluster_centers_

    def by_coreset(m: int, seed: int) -> np.ndarray:
        return fit(*coreset(X, m, random_state=seed), seed)

    def by_sample(m: int, seed: int) -> np.ndarray:
        rows = np.sort(np.random.default_rng(seed).choice(len(X), m, replace=False))
        return fit(X[rows], None, seed)

    def quality(centers: list[np.ndarray]) -> dict[str, float]:
        costs = np.array([inertia(X, Z) for Z in centers])
        if not base:
            base.append(float(costs.mean()))
        rest = costs / base[0]
        return {"inertia": float(rest.mean()), "best": float(rest.min()), "worst": float(rest.max())}

    def entry(name: str, job: Callable[[int, int], np.ndarray], m: int, **more: Any) -> Contestant:
        return Contestant(
            f"{name} {m:,}", lambda: over_seeds(lambda s: job(m, s), seeds), warm=lambda: job(m, 0), **more
        )

    def small_and_good(rows: list[Row]) -> bool:
        slow = next(row.median for row in rows if not row.ours)
        return any(row.ours and row.quality["inertia"] <= WORSE and slow >= FASTER * row.median for row in rows)

    return Event(
        "clusters_coreset",
        f"k-means of {len(X):,} x {X.shape[1]}, k = {K}: all rows, or a few that stand for them",
        [
            Contestant(
                "twofold, all rows",
                lambda: over_seeds(lambda s: fit(X, None, s), whole),
                warm=lambda: by_sample(2_000, 0),
            ),
            *(entry("twofold, coreset of", by_coreset, m, ours=True) for m in sizes),
            *(entry("twofold, uniform sample of", by_sample, m, counts=False) for m in sizes),
        ],
        quality=quality,
        as_good=lambda a, b: a["inertia"] <= WORSE * b["inertia"],
        bar=Bar(f"a coreset {FASTER:g} x as fast as all rows with at most 2 % more inertia", test=small_and_good),
        repeats=1,
        notes=[
            f"Inertia is that of all rows, over the mean of the full fits ({whole} seeds); the others' are "
            f"the mean, best and worst of {seeds} seeds. Seconds are the median of the seeds, drawing included.",
        ],
    )


EVENTS = (sketches,)
