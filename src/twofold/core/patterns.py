"""Missing cells: the rows of a block grouped by which of their cells are there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

LOG_2PI = float(np.log(2 * np.pi))


class Patterns(NamedTuple):
    """Which cells of a block are there, by distinct pattern."""

    mask: np.ndarray  # (P,d) bool, True where observed
    order: np.ndarray  # (n,) rows sorted by pattern
    starts: np.ndarray  # (P+1,)


def whole(n: int, d: int) -> Patterns:
    """The pattern of rows without holes."""
    return Patterns(np.ones((1, d), bool), np.arange(n), np.array([0, n]))


def find_patterns(X: Any) -> tuple[Patterns, int]:
    """The patterns of missing cells in a block, and how many cells are missing."""
    holes = None if sparse.issparse(X) else np.isnan(X)
    if holes is None or not holes.any():
        return whole(*X.shape), 0
    packed = np.packbits(holes, axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(inverse)))
    return Patterns(~holes[first], order, starts), int(np.count_nonzero(holes))


def _triangle(k: int) -> tuple[np.ndarray, np.ndarray]:
    return np.tril_indices(k)


def centred(X: Any, patterns: Patterns, mean: np.ndarray) -> Any:
    """X less the mean with zeros in the holes; sparse rows as they are, their mean is taken off implicitly."""
    if sparse.issparse(X):
        return X
    x = X - mean.astype(X.dtype)
    if not patterns.mask.all():
        x[np.isnan(x)] = 0.0
    return x
