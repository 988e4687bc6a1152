"""First and second moments of the rows, mergeable over blocks, batches and machines.

    weight  Σw      mean  Σwx / Σw      scatter  Σw(x−mean)(x−mean)ᵀ

Two sets of moments merge exactly (Chan, Golub & LeVeque 1979): nothing is lost to cancellation, however far
from zero the data lies, and the order of merging is the engine's fixed tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import Engine
from twofold.core.types import Block
from twofold.kernels.moments import column_sums, csr_column_sums, csr_gram, row_sum


class Columns(NamedTuple):
    """Moments of each column by itself, over the cells that are not missing."""

    weight: np.ndarray  # (d,) Σw of the observed cells
    mean: np.ndarray  # (d,)
    scatter: np.ndarray  # (d,) Σw(x−mean)²
    missing: int  # cells that are NaN
    rows: float  # Σw

    @property
    def variance(self) -> np.ndarray:
        return self.scatter / np.maximum(self.weight, 1e-300)

    def level(self, dtype: np.dtype) -> float:
        """The mean variance, never zero: at least what rounding leaves of the means, so that floors can scale by it."""
        rounding = float(np.finfo(np.float64).eps * np.abs(self.mean).max(initial=0.0)) ** 2
        return max(float(self.variance.mean()), rounding, 1e-20 if dtype == np.float32 else 1e-200)

    def floor(self, dtype: np.dtype) -> float:
        """The smallest variance that products in this dtype can tell from rounding."""
        return self.level(dtype) * (1e-6 if dtype == np.float32 else 1e-10)

    @property
    def spread(self) -> np.ndarray:
        """Standard deviations to scale by, with n − 1; 1 for a column that does not vary."""
        std = np.sqrt(self.scatter / np.maximum(self.weight - 1.0, 1e-300))
        return np.where(std > 1e-12 * np.maximum(np.abs(self.mean), 1e-300), std, 1.0)


class Moments(NamedTuple):
    """Moments of whole rows."""

    weight: float
    mean: np.ndarray  # (d,)
    scatter: np.ndarray  # (d,d)


def merge(a: Any, b: Any) -> Any:
    """The moments of two sets of rows taken together."""
    weight = a.weight + b.weight
    share = b.weight / np.maximum(weight, 1e-300)
    gap = b.mean - a.mean
    mean = a.mean + share * gap
    if isinstance(a, Columns):
        scatter = a.scatter + b.scatter + gap**2 * a.weight * share
        return Columns(weight, mean, scatter, a.missing + b.missing, a.rows + b.rows)
    scatter = np.add(a.scatter, b.scatter, out=a.scatter)
    scatter += np.outer(gap, gap * (a.weight * share))
    return Moments(weight, mean, scatter)


def column_moments(engine: Engine, blocks: Blocks, w: np.ndarray | None = None) -> Columns:
    """One pass: the moments of every column, NaN left out. Infinite cells show as means that are not finite."""
    return engine.reduce(merge, engine.map(block_columns, blocks, blocks.rows(w)))


def block_columns(X: Block, w: np.ndarray | None) -> Columns:
    n, d = X.shape
    weights = np.ones(n) if w is None else w
    weight, first, second = np.zeros(d), np.zeros(d), np.zeros(d)
    total = float(weights.sum())
    if hasattr(X, "indptr"):
        csr_column_sums(X.data, X.indices, X.indptr, weights, first, second)
        weight += total
        shift, missing = 0.0, 0
        # A NaN in stored values makes the sums NaN, which the caller refuses.
    else:
        shift = np.nan_to_num(X[0], nan=0.0, posinf=0.0, neginf=0.0).astype(np.float64)
        column_sums(X, weights, shift, weight, first, second)
        missing = 0 if w is None and np.all(weight == n) else int(np.isnan(X).sum())
    center = first / np.maximum(weight, 1e-300)
    return Columns(weight, shift + center, np.maximum(second - weight * center**2, 0.0), missing, total)


def moments(engine: Engine, blocks: Blocks, w: np.ndarray | None = None) -> Moments:
    """One pass: weight, mean and scatter matrix of the rows."""
    return engine.reduce(merge, engine.map(block_moments, blocks, blocks.rows(w)))


def block_moments(X: Block, w: np.ndarray | None = None) -> Moments:
    """The moments of one block. The product runs in the data's dtype, what leaves is float64."""
    n, d = X.shape
    weights = np.ones(n) if w is None else w
    total = float(weights.sum())
    if hasattr(X, "indptr"):
        G = np.zeros((d, d))
        csr_gram(X.data, X.indices, X.indptr, weights, G)
        G += np.triu(G, 1).T
        mean = (weights @ X) / max(total, 1e-300)
        return Moments(total, mean, G - total * np.outer(mean, mean))
    mean = np.zeros(d)
    row_sum(X, weights, mean)
    mean /= max(total, 1e-300)
    G = _product(X, w)
    # Where the mean dwarfs the spread, XᵀX − n·mean·meanᵀ would cancel: center first, and pay for the copy.
    limit = 1e4 if X.dtype == np.float64 else 10.0
    if np.any(total * mean**2 > limit * np.maximum(np.diag(G) - total * mean**2, 0.0)):
        rest = X - mean.astype(X.dtype)
        G, drift = _product(rest, w), np.zeros(d)
        row_sum(rest, weights, drift)
        drift /= max(total, 1e-300)
        return Moments(total, mean.astype(X.dtype) + drift, G - total * np.outer(drift, drift))
    return Moments(total, mean, G - total * np.outer(mean, mean))


def _product(X: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """XᵀWX in float64; NumPy calls the symmetric product, half the work, when both sides are one array."""
    if w is not None:
        X = X * np.sqrt(w).astype(X.dtype)[:, None]
    return (X.T @ X).astype(np.float64)
