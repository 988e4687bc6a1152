"""PCA of a tall table: 1,000,000 x 100, k = 10, in float64 and float32."""

from __future__ import annotations

import numpy as np
import sklearn
from sklearn.decomposition import PCA as SklearnPCA

from bench.harness import Bar, Contestant, Event, Work
from bench.subspace import Exact, draw_spiked, near, sklearn_pca
from twofold import PCA

K = 10
SOLVERS = ("covariance_eigh", "auto", "randomized", "full", "arpack")


def tall(dtype: type, ratio: float, quick: bool) -> Event:
    n, d = (50_000 if quick else 1_000_000), 100
    X = draw_spiked(n, d, K, dtype)
    exact = Exact(X, K)
    name = np.dtype(dtype).name

    def trusting() -> SklearnPCA:
        with sklearn.config_context(assume_finite=True):
            return SklearnPCA(K, svd_solver="covariance_eigh").fit(X)

    return Event(
        f"linear_tall {name}",
        f"PCA of {n:,} x {d}, k = {K}, {name}",
        [
            Contestant("twofold", lambda: PCA(K, random_state=0).fit(X), ours=True),
            *(sklearn_pca(X, K, solver) for solver in SOLVERS),
            Contestant("scikit-learn covariance_eigh, assume_finite", trusting, counts=False, note="input not checked"),
        ],
        quality=exact.quality,
        as_good=near(1e-3),
        bar=Bar(f"{ratio} x scikit-learn's fastest solver", ratio=ratio),
        # The symmetric half of one product, and one reading of X.
        work=Work(flops=float(n) * d * (d + 1), bytes=float(X.nbytes), dtype=name),
    )


EVENTS = (lambda quick: tall(np.float64, 1.3, quick), lambda quick: tall(np.float32, 2.0, quick))
