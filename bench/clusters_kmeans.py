"""Lloyd's k-means from the same start for as many sweeps: proteins, mails, blobs, a plane."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.cluster import MiniBatchKMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from bench import machine
from bench.harness import Bar, Contestant, Event, Missing, Row, Timed, optional
from twofold import KMeans, datasets
from twofold.core.checks import InputError

PEERS = {"scikit-learn lloyd": 2.0, "faiss": 1.0}  # how many times their speed the bar asks for


def fetch(event: str, name: str) -> Bunch | Missing:
    """Load a standard data set, or return the reason why the event cannot run."""
    try:
        return datasets.fetch(name)
    except InputError as why:
        return Missing(event, str(why))


def proteins(event: str) -> np.ndarray | Missing:
    """kdd_bio: 145,751 x 74 in float32, one row after the other."""
    found = fetch(event, "kdd_bio")
    return found if isinstance(found, Missing) else np.ascontiguousarray(found.data, dtype=np.float32)


def inertia(X: np.ndarray, Z: np.ndarray) -> float:
    """The sum of squared distances to the nearest center, in float64 whatever the contestant computed in."""
    mean = X[:65536].mean(axis=0, dtype=np.float64)  # taken off, so that large numbers do not cancel
    Z, total = Z.astype(np.float64) - mean, 0.0
    for start in range(0, len(X), 16384):
        part = X[start : start + 16384].astype(np.float64) - mean
        values = part @ (-2 * Z.T) + (Z**2).sum(axis=1)
        total += float(np.maximum(values.min(axis=1) + (part**2).sum(axis=1), 0).sum())
    return total


def quietly(fit: Callable[[], Any]) -> Any:
    """A fit that is meant to stop before it has converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit()


def time_repeats(fit: Callable[[], Any], fits: int) -> Timed:
    """Seconds of one fit, where a single one is too short to time."""
    began = time.perf_counter()
    for _ in range(fits):
        result = fit()
    return Timed((time.perf_counter() - began) / fits, result)


def fast_enough(rows: list[Row]) -> bool:
    """Ours against the two peers the bar names, where they are as good as ours; and ours must be as good as they."""
    ours = next(row for row in rows if row.ours)
    peers = [row for row in rows if row.contestant in PEERS and row.seconds and row.equal]
    fast = all(row.median >= PEERS[row.contestant] * ours.median for row in peers)
    return bool(peers) and fast and all(as_good(ours.quality, row.quality) for row in peers)


def as_good(a: dict[str, float], b: dict[str, float]) -> bool:
    return a["inertia"] <= 1.001 * b["inertia"]


def lloyd(name: str, data_title: str, X: np.ndarray, k: int, sweeps: int, fits: int = 1) -> Event:
    start = kmeans_plusplus(X[np.random.default_rng(0).permutation(len(X))[:20_000]], k, random_state=0)[0]
    common: dict[str, Any] = {"init": start, "n_init": 1, "max_iter": sweeps, "tol": 0, "random_state": 0}

    def ours(X: np.ndarray) -> np.ndarray:
        return quietly(lambda: KMeans(k, **common).fit(X)).cluster_centers_

    def sklearn(algorithm: str, X: np.ndarray) -> np.ndarray:
        return SklearnKMeans(k, algorithm=algorithm, **common).fit(X).cluster_centers_

    def minibatch(X: np.ndarray) -> np.ndarray:
        return quietly(lambda: MiniBatchKMeans(k, **common).fit(X)).cluster_centers_

    def entry(name: str, fit: Callable[[np.ndarray], np.ndarray], **more: Any) -> Contestant:
        return Contestant(name, lambda: time_repeats(lambda: fit(X), fits), warm=lambda: fit(X[:3000]), **more)

    def faiss_entry() -> Contestant:
        import faiss

        faiss.omp_set_num_threads(machine.threads())

        def fit(X: np.ndarray) -> np.ndarray:
            # It would take 256 rows a center otherwise, and warn below 39.
            model = faiss.Kmeans(
                X.shape[1], k, niter=sweeps, nredo=1, max_points_per_centroid=len(X), min_points_per_centroid=1
            )
            model.train(X, init_centroids=start)
            return model.centroids

        return entry("faiss", fit, note="gives no labels")

    return Event(
        f"clusters_kmeans {name}",
        f"k-means of {data_title}, {len(X):,} x {X.shape[1]}, {X.dtype}, k = {k}, {sweeps} sweeps from one start",
        [
            entry("twofold", ours, ours=True),
            entry("scikit-learn lloyd", lambda X: sklearn("lloyd", X)),
            entry("scikit-learn elkan", lambda X: sklearn("elkan", X)),
            optional("faiss", "faiss-cpu", faiss_entry),
            entry("scikit-learn MiniBatchKMeans", minibatch, counts=False, note="stops by its own rule"),
        ],
        quality=lambda Z: {"inertia": inertia(X, Z)},
        as_good=as_good,
        bar=Bar("2 x scikit-learn's lloyd and 1 x faiss at equal inertia (within 0.1 %)", test=fast_enough),
        budget=10.0,
        repeats=None if fits > 1 else 3,
        notes=["Whoever sees that no row moves any more stops before the last sweep; faiss does not look."],
    )


def bio(quick: bool) -> Event | Missing:
    X = proteins("clusters_kmeans kdd_bio")
    if isinstance(X, Missing):
        return X
    return lloyd("kdd_bio", "proteins (kdd_bio)", X[:20_000] if quick else X, 100, 50)


def spam(quick: bool) -> Event | Missing:
    found = fetch("clusters_kmeans spambase", "clusters")
    if isinstance(found, Missing):
        return found
    return lloyd(
        "spambase", "mails (spambase)", found.spambase.data.astype(np.float32), 20, 50, fits=3 if quick else 20
    )


def blobs(quick: bool) -> Event:
    n, d, k = (50_000, 32, 64) if quick else (1_000_000, 32, 256)
    rng = np.random.default_rng(0)
    centers = 3 * rng.standard_normal((k, d), dtype=np.float32)
    X = rng.standard_normal((n, d), dtype=np.float32)
    for start in range(0, n, 65536):
        part = X[start : start + 65536]
        part += centers[rng.integers(0, k, len(part))]
    return lloyd("blobs", f"{k} Gaussian blobs", X, k, 10)


def plane(quick: bool) -> Event:
    """Points of uneven density without gaps: where clusters end is never clear."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000 if quick else 200_000, 2), dtype=np.float32)
    return lloyd("plane", "one Gaussian cloud in the plane", X * np.abs(X), 50, 50)


EVENTS = (bio, spam, blobs, plane)
