"""PCA of a wide table: 500 x 50,000, k = 10."""

from __future__ import annotations

import numpy as np

from bench.harness import Contestant, Event, Work
from bench.subspace import Exact, draw_spiked, near, sklearn_pca
from twofold import PCA

K = 10


def wide(quick: bool) -> Event:
    n, d = (200, 10_000) if quick else (500, 50_000)
    X = draw_spiked(n, d, K, np.float64)
    exact = Exact(X, K)
    return Event(
        "linear_wide",
        f"PCA of {n} x {d:,}, k = {K}, float64",
        [
            Contestant("twofold", lambda: PCA(K, random_state=0).fit(X), ours=True),
            *(sklearn_pca(X, K, solver) for solver in ("randomized", "full", "arpack")),
        ],
        quality=exact.quality,
        as_good=near(1e-3),
        work=Work(flops=float(d) * n * (n + 1), bytes=float(X.nbytes)),
        notes=["covariance_eigh would need a 20 GB covariance here, and is left out."],
    )


EVENTS = (wide,)
