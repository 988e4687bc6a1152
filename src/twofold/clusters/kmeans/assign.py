"""The rows' half-step of k-means: the nearest center, computed only where it can have changed.

    ‖x − z‖² = ‖x̃‖² + ‖z̃‖² − 2 x·z̃ + 2 m·z̃      x̃ = x − m, z̃ = z − m, m the mean of all rows

The first sweep is one matrix product of the rows and the shifted centers. If the mean is much larger than the spread,
rows are shifted too, to avoid cancellation. In later sweeps each row has an upper bound on the distance to its center
and lower bounds on those to groups of other centers (Ding et al. 2015, Yinyang; with one group Hamerly 2010), and only
distances that the bounds do not decide are computed. A few centers in a few columns need no bounds: one vectorized pass
over rows less the mean compares every row with all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.kernels import kmeans as kernels

CHUNK_ROWS = 1024  # of one product, which stays in cache
MAX_DIRECT_COLUMNS = 64  # up to which one pass over rows and centers is faster than a product


class Centers(NamedTuple):
    """The shared factor for the rows' half-step, sorted by group."""

    Z: np.ndarray  # (k,d) less the mean
    mean: np.ndarray  # (d,)
    far: bool  # True if rows must be shifted too
    drift: np.ndarray  # (k,) distance that each moved in the last sweep
    group: np.ndarray | None  # (k,) ascending; None without bounds
    half: np.ndarray  # (k,) slightly less than half the distance to the nearest other center


class Sums(NamedTuple):
    """Changes in counts and sums of a block, rows that moved, and its farthest row."""

    counts: np.ndarray  # (k,)
    sums: np.ndarray  # (k,d) of rows less the mean
    moved: int
    distance: float
    farthest: np.ndarray  # (d,) less the mean


def wrap_centers(Z: np.ndarray, mean: np.ndarray, far: bool) -> Centers:
    """Wrap centers that have not moved, without bounds."""
    return Centers(Z, mean, far, np.zeros(len(Z)), None, np.zeros(len(Z)))


def measure_half_gaps(Z: np.ndarray) -> np.ndarray:
    """Return half the distance of each center to the nearest other, slightly less because of rounding."""
    square = (Z**2).sum(axis=1)
    gaps = square[:, None] + square[None, :] - 2 * Z @ Z.T
    np.fill_diagonal(gaps, np.inf)
    return 0.5 * (1 - 1e-5) * np.sqrt(np.maximum(gaps.min(axis=1), 0.0))


def merge(a: Sums, b: Sums) -> Sums:
    far = a if a.distance >= b.distance else b
    np.add(a.counts, b.counts, out=a.counts)
    np.add(a.sums, b.sums, out=a.sums)
    return Sums(a.counts, a.sums, a.moved + b.moved, far.distance, far.farthest)


def cut_chunks(X: Any, c: Centers) -> Any:
    """Yield the rows in chunks for products: (start, stop, rows), and the constants −2z̃ᵀ (d,k) and base (k,)."""
    far = c.far and not sparse.issparse(X)
    shift = np.zeros_like(c.mean) if far else c.mean
    minus = (-2 * c.Z).astype(X.dtype).T
    base = ((c.Z**2).sum(axis=1) + 2 * (c.Z @ shift)).astype(X.dtype)
    mean = c.mean.astype(X.dtype)
    for a in range(0, X.shape[0], CHUNK_ROWS):
        part = X[a : a + CHUNK_ROWS]
        yield a, a + part.shape[0], part - mean if far else part, shift, minus, base


def sum_squares(X: Any, shift: np.ndarray) -> np.ndarray:
    """Compute ‖x − shift‖² of each row."""
    m = shift.astype(X.dtype)
    own = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return np.maximum(own - 2 * (X @ m) + m @ m, 0)


def find_nearest(X: Any, c: Centers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each row's label, its squared distance, and lower bounds by group (n,g), in one pass or by products."""
    n, d = X.shape
    starts = np.zeros(1, np.int64) if c.group is None or sparse.issparse(X) else _group_starts(c.group)
    label, best = np.empty(n, np.int32), np.empty(n, X.dtype)
    lower = np.empty((n, len(starts) - 1), X.dtype)
    if d <= MAX_DIRECT_COLUMNS and not lower.shape[1] and not sparse.issparse(X):
        kernels.assign_directly(X, c.mean.astype(X.dtype), c.Z.astype(X.dtype), label, best)
        return label, best, lower
    for a, b, part, shift, minus, base in cut_chunks(X, c):
        V = part @ minus  # (m,k)
        kernels.take_minima(V, base, label[a:b], best[a:b])
        own = sum_squares(part, shift)
        best[a:b] = np.maximum(best[a:b] + own, 0)
        if lower.shape[1]:
            kernels.group_minima(V, starts, label[a:b], lower[a:b])
            lower[a:b] = np.sqrt(np.maximum(lower[a:b] + own[:, None], 0))
    return label, best, lower


def _group_starts(group: np.ndarray) -> np.ndarray:
    return np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(group))


def assign(X: Any, w: np.ndarray | None, kept: tuple | None, c: Centers) -> tuple[tuple, Sums]:
    """Compute new labels and bounds of a block, and the sums of its moved rows. `kept` is None in the first sweep.

    `kept` is changed in place, because bounds take much memory.
    """
    n = X.shape[0]
    if kept is not None and len(kept) == 3:
        label, upper, lower = kept
        rows, former = reassign(X, label, upper, lower, c)
    else:
        label, best, lower = find_nearest(X, c)
        upper = np.sqrt(best)
        former = np.full(n, -1, np.int32) if kept is None else kept[0]
        rows = np.flatnonzero(label != former)
        former = former[rows]
    i = int(np.argmax(upper if w is None else upper * (w > 0)))
    farthest = np.asarray(X[[i]].todense() if sparse.issparse(X) else X[[i]], dtype=np.float64).ravel() - c.mean
    w = np.ones(n) if w is None else w
    counts, sums = sum_moves(X, c.mean, w, rows, former, label, c.Z.shape)
    state = (label, upper, lower) if lower.shape[1] else (label,)
    return state, Sums(counts, sums, len(rows), float(upper[i]), farthest)


def reassign(X: np.ndarray, label: Any, upper: Any, lower: Any, c: Centers) -> tuple[np.ndarray, np.ndarray]:
    """Update bounds and labels in place; return the rows that moved and their former labels."""
    assert c.group is not None
    kind, starts = X.dtype, _group_starts(c.group)
    retreat = np.maximum.reduceat(c.drift, starts[:-1]).astype(kind)
    moved, former = np.empty(len(label), np.int64), np.empty(len(label), np.int32)
    Z = (c.Z + c.mean).astype(kind)
    bounds = (label, upper, lower, c.drift.astype(kind), retreat, c.group, starts, c.half.astype(kind))
    count = kernels.reassign(X, Z, *bounds, moved, former)
    return moved[:count], former[:count]


def sum_moves(X: Any, shift: np.ndarray, w: np.ndarray, rows: Any, old: Any, label: Any, shape: tuple) -> tuple:
    """Return the changes in counts (k,) and sums (k,d) of rows less the mean."""
    k, d = shape
    if not sparse.issparse(X):
        counts, sums = np.zeros(k), np.zeros((k, d))
        kernels.move_rows(X, shift, w, rows, old, label, counts, sums)
        return counts, sums
    had = old >= 0
    signs = np.concatenate([w[rows], -w[rows[had]]])
    places = (np.concatenate([label[rows], old[had]]), np.concatenate([rows, rows[had]]))
    H = sparse.csr_array((signs, places), shape=(k, X.shape[0]))
    counts = np.asarray(H.sum(axis=1)).ravel()
    return counts, (H @ X).toarray() - np.outer(counts, shift)


def label_rows(X: Any, c: Centers) -> np.ndarray:
    """Return the nearest center of each row."""
    return find_nearest(X, c)[0]


def measure_costs(X: Any, c: Centers) -> np.ndarray:
    """Return the squared distance of each row to its nearest center, in float64."""
    return find_nearest(X, c)[1].astype(np.float64)


def measure_distances(X: Any, c: Centers) -> np.ndarray:
    """Return the distance of each row to every center: (n,k)."""
    parts = [
        np.sqrt(np.maximum(part @ minus + base + sum_squares(part, shift)[:, None], 0))
        for _, _, part, shift, minus, base in cut_chunks(X, c)
    ]
    return np.concatenate(parts)
