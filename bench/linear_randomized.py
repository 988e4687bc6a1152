"""Few components of a large dense table with a slowly falling spectrum, at equal error; and MNIST."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np

from bench.harness import Bar, Contestant, Event, Missing
from bench.subspace import Exact, decaying, sklearn_pca
from twofold import PCA


def no_more_error(a: dict[str, float], b: dict[str, float]) -> bool:
    """Loses at most a tenth more variance; differences below one in a million do not count."""
    return a["variance lost"] <= max(1.1 * b["variance lost"], 1e-6)


def compare(name: str, title: str, X: np.ndarray, k: int) -> Event:
    """Both at several settings: each of scikit-learn's is compared with our fastest that loses at most as much."""
    exact = Exact(X, k)
    ours = [
        Contestant(
            f"twofold randomized, tol={tol:g}",
            lambda tol=tol: PCA(k, svd_solver="randomized", tol=tol, random_state=0).fit(X),  # type: ignore[misc]
            ours=True,
        )
        for tol in (1e-2, 1e-3, 1e-4, 1e-6, 1e-9)
    ]
    peers = [
        sklearn_pca(X, k, "randomized", iterated_power=steps)._replace(
            name=f"scikit-learn randomized, iterated_power={steps}"
        )
        for steps in (2, 4, "auto", 10, 15)
    ]
    return Event(
        name,
        title,
        [
            *ours,
            *peers,
            Contestant("twofold auto", lambda: PCA(k, random_state=0).fit(X), ours=True, counts=False),
            sklearn_pca(X, k, "auto", counts=False),
            sklearn_pca(X, k, "arpack", counts=False),
        ],
        quality=exact.quality,
        as_good=no_more_error,
        bar=Bar("1.5 x scikit-learn's randomized solver at equal error", ratio=1.5),
    )


def slow_decay(quick: bool) -> Event:
    n, d, k = (4_000, 800, 20) if quick else (20_000, 2_000, 20)
    title = f"PCA of {n:,} x {d:,}, k = {k}, standard deviations falling like 1/sqrt(i), float64"
    return compare("linear_randomized decay", title, decaying(n, d, 0.5, np.float64), k)


def mnist(quick: bool) -> Event | Missing:
    path = Path(os.environ.get("TWOFOLD_DATA", "")) / "mnist" / "train-images-idx3-ubyte.gz"
    if not path.is_file():
        return Missing("linear_randomized mnist", "TWOFOLD_DATA does not name a folder with mnist in it")
    with gzip.open(path) as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    X = pixels[: 5_000 if quick else None].astype(np.float64) / 255
    return compare("linear_randomized mnist", f"PCA of MNIST, {len(X):,} x 784, k = 20, float64", X, 20)


EVENTS = (slow_decay, mnist)
