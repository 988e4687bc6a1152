"""PCA of a sparse table, centered without filling it in: 100,000 x 5,000 at 0.5 %, k = 20."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

from bench.harness import Contestant, Event, Work
from bench.subspace import Exact, near, sklearn_pca
from twofold import PCA

K = 20


def counts_like(n: int, d: int, density: float, seed: int = 0) -> sparse.csr_matrix:
    """Rows that favor one of 40 groups of columns, columns of unequal popularity: sparse, with structure."""
    rng = np.random.default_rng(seed)
    per_row = int(density * d)
    popularity = np.cumsum(1.0 / np.arange(1, d + 1) ** 0.7)
    group = rng.integers(0, 40, n)[:, None]
    drawn = np.searchsorted(popularity, rng.random((n, per_row)) * popularity[-1])
    themed = 40 * rng.integers(0, d // 40, (n, per_row)) + group
    columns = np.where(rng.random((n, per_row)) < 0.4, themed, drawn)
    rows = np.repeat(np.arange(n), per_row)
    values = rng.gamma(2.0, 0.5, n * per_row)
    return sparse.coo_matrix((values, (rows, columns.ravel())), shape=(n, d)).tocsr()


def sparse_pca(quick: bool) -> Event:
    n, d = (10_000, 1_500) if quick else (100_000, 5_000)
    X = counts_like(n, d, 0.005)
    exact = Exact(X, K)
    return Event(
        "linear_sparse",
        f"PCA of a sparse {n:,} x {d:,}, {X.nnz:,} stored, k = {K}, float64",
        [
            Contestant("twofold", lambda: PCA(K, random_state=0).fit(X), ours=True),
            Contestant(
                "twofold arpack", lambda: PCA(K, svd_solver="arpack", random_state=0).fit(X), ours=True, counts=False
            ),
            Contestant(
                "twofold randomized",
                lambda: PCA(K, svd_solver="randomized", random_state=0).fit(X),
                ours=True,
                counts=False,
            ),
            sklearn_pca(X, K, "arpack"),
            Contestant(
                "scikit-learn TruncatedSVD",
                lambda: TruncatedSVD(K, algorithm="arpack", random_state=0).fit(X),
                counts=False,
                note="not centered: another problem",
            ),
        ],
        quality=exact.quality,
        as_good=near(1e-3),
        work=Work(flops=0.0, bytes=12.0 * X.nnz * 2 * (2 * K + 1)),
        notes=[
            "The limit is that of ARPACK's least number of visits, 2k + 1, each reading X twice.",
            f"scikit-learn's covariance_eigh solves a dense {d:,} x {d:,} problem, many times slower: left out.",
        ],
    )


EVENTS = (sparse_pca,)
