"""What the PCA events share: data of a given spectrum, the exact answer, and how far a result is from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as sla
from scipy import sparse
from sklearn.decomposition import PCA as SklearnPCA

from bench.harness import Contestant


def draw_spiked(n: int, d: int, k: int, dtype: type, seed: int = 0) -> np.ndarray:
    """Rows with k strong directions over unit noise and a mean that is not zero."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((k, d), dtype=np.float32) * np.linspace(2.0, 0.5, k, dtype=np.float32)[:, None]
    mean = rng.standard_normal(d, dtype=np.float32)
    X: np.ndarray = np.empty((n, d), dtype)
    for start in range(0, n, 65536):  # in pieces, so that only X itself is large
        stop = min(start + 65536, n)
        codes = rng.standard_normal((stop - start, k), dtype=np.float32)
        X[start:stop] = codes @ W + rng.standard_normal((stop - start, d), dtype=np.float32) + mean
    return X


def decaying(n: int, d: int, power: float, dtype: type, seed: int = 0) -> np.ndarray:
    """Gaussian rows whose standard deviations fall like i^-power along turned axes: there is no gap to lean on."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    scales = np.arange(1, d + 1) ** -power
    return (rng.standard_normal((n, d)) @ (scales[:, None] * axes)).astype(dtype)


class Exact:
    """The answer by the plainest route, in float64: LAPACK on the full scatter matrix of the smaller side."""

    def __init__(self, X: Any, k: int):
        n, d = X.shape
        if sparse.issparse(X):
            mean = np.asarray(X.mean(axis=0)).ravel()
            S = (X.T @ X).toarray() - n * np.outer(mean, mean)
        else:
            mean = X.mean(axis=0, dtype=np.float64)
            S = _scatter(X, mean) if d <= n else _gram(X, mean)
        self.total = float(S.trace()) / (n - 1)
        size = len(S)
        values, vectors = sla.eigh(S, subset_by_index=[size - k, size - 1])
        if d > n:  # the vectors are those of the rows: carry them over to the columns
            vectors = np.linalg.qr((X.T @ vectors) - np.outer(mean, vectors.sum(axis=0)))[0]
        self.axes, self.variance = vectors, values[::-1] / (n - 1)

    def quality(self, model: Any) -> dict[str, float]:
        """The sine of the largest angle to the exact axes, and by how much the variance kept falls short."""
        Z = model.components_.astype(np.float64)
        angle = np.linalg.norm(self.axes - Z.T @ (Z @ self.axes), 2)
        kept = float(np.sum(model.explained_variance_, dtype=np.float64))
        return {"angle": float(angle), "variance lost": 1 - kept / float(self.variance.sum())}


def _scatter(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    S = np.zeros((X.shape[1],) * 2)
    for start in range(0, len(X), 65536):
        part = X[start : start + 65536].astype(np.float64) - mean
        S += part.T @ part
    return S


def _gram(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    rest = X.astype(np.float64) - mean
    return rest @ rest.T


def near(angle: float) -> Callable[[dict[str, float], dict[str, float]], bool]:
    """As good: within `angle` of the exact axes, or about as near as the other."""
    return lambda a, b: a["angle"] <= max(angle, 1.5 * b["angle"])


def sklearn_pca(X: Any, k: int, solver: str, counts: bool = True, note: str = "", **options: Any) -> Contestant:
    """scikit-learn's PCA with one of its solvers. Nothing compiles there: some rows are enough to warm it up."""

    def fit(X: Any) -> SklearnPCA:
        return SklearnPCA(k, svd_solver=solver, random_state=0, **options).fit(X)

    return Contestant(f"scikit-learn {solver}", lambda: fit(X), counts=counts, note=note, warm=lambda: fit(X[:2000]))
