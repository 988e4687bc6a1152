"""The rows' half-step of k-means: who is nearest, as one matrix product, and only where it can have changed.

    ‖x − z‖² = ‖x̃‖² + ‖z̃‖² − 2 x·z̃ + 2 m·z̃      x̃ = x − m, z̃ = z − m, m the mean of all rows

Rows stay as they are and the centres are shifted, so nothing is copied; where the mean dwarfs the spread, rows are
shifted too, because the product would cancel. Between sweeps each row keeps an upper bound on the distance to its
centre and a lower bound on all others (Hamerly 2010): a row is looked at again only if the bounds meet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.kernels.kmeans import best_two, loosen, move, tighten

CHUNK = 512  # rows a product: distances of a chunk stay in cache


class Centres(NamedTuple):
    """The shared factor as the rows need it."""

    Z: np.ndarray  # (k,d) less the mean
    mean: np.ndarray  # (d,)
    far: bool  # whether rows must be shifted too
    drift: np.ndarray  # (k,) how far each moved in the last sweep


class Sums(NamedTuple):
    """What a block adds: changes in counts and sums, rows that moved, and its farthest row."""

    counts: np.ndarray  # (k,)
    sums: np.ndarray  # (k,d) of rows less the mean
    moved: int
    distance: float
    farthest: np.ndarray  # (d,) less the mean


def merge(a: Sums, b: Sums) -> Sums:
    far = a if a.distance >= b.distance else b
    np.add(a.counts, b.counts, out=a.counts)
    np.add(a.sums, b.sums, out=a.sums)
    return Sums(a.counts, a.sums, a.moved + b.moved, far.distance, far.farthest)


def shifted(X: Any, c: Centres) -> tuple[Any, np.ndarray]:
    """Rows ready for products, and what is left to subtract from them."""
    if c.far:
        return X - c.mean.astype(X.dtype), np.zeros_like(c.mean)
    return X, c.mean


def products(X: Any, c: Centres, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """−2z̃ and the constants, in the data's dtype: base[c] + (−2z̃·x) = ‖x − z‖² − ‖x̃‖²."""
    base = (c.Z**2).sum(axis=1) + 2 * (c.Z @ shift)
    return (-2 * c.Z).astype(X.dtype), base.astype(X.dtype)


def squares(X: Any, shift: np.ndarray) -> np.ndarray:
    """‖x̃‖² of each row."""
    m = shift.astype(X.dtype)
    own = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return np.maximum(own - 2 * (X @ m) + m @ m, 0)


def nearest(X: Any, minus: np.ndarray, base: np.ndarray, rows: np.ndarray | None = None) -> tuple:
    """Label, best and second best value of ‖x − z‖² − ‖x̃‖², for some rows or all."""
    n = X.shape[0] if rows is None else len(rows)
    best, second = np.empty(n, X.dtype), np.empty(n, X.dtype)
    label = np.empty(n, np.int32)
    for a in range(0, n, CHUNK):
        b = min(a + CHUNK, n)
        part = X[a:b] if rows is None else X[rows[a:b]]
        G = np.ascontiguousarray((part @ minus.T).T) if sparse.issparse(X) else minus @ part.T  # (k,m)
        best_two(G, base, best[a:b], second[a:b], label[a:b])
    return label, best, second


def assign(X: Any, w: np.ndarray | None, kept: tuple | None, c: Centres) -> tuple[tuple, Sums]:
    """New labels and bounds of a block, and what its moved rows change. `kept` is None in the first sweep."""
    n = X.shape[0]
    w = np.ones(n) if w is None else w
    X, shift = shifted(X, c)
    minus, base = products(X, c, shift)
    if kept is None:
        square = squares(X, shift)
        label, best, second = nearest(X, minus, base)
        upper, lower = np.sqrt(np.maximum(best + square, 0)), np.sqrt(np.maximum(second + square, 0))
        rows, old, new = np.arange(n), np.full(n, -1, np.int32), label
    else:
        label, upper, lower, square = (a.copy() for a in kept)
        rows = doubtful(X, shift, label, upper, lower, c)
        old = label[rows]
        new, best, second = nearest(X, minus, base, rows)
        label[rows] = new
        upper[rows] = np.sqrt(np.maximum(best + square[rows], 0))
        lower[rows] = np.sqrt(np.maximum(second + square[rows], 0))
    i = int(np.argmax(upper * (w > 0)))
    farthest = np.asarray(X[[i]].todense() if sparse.issparse(X) else X[[i]], dtype=np.float64).ravel() - shift
    counts, sums, moved = moves(X, shift, w, rows, old, new, c.Z.shape)
    return (label, upper, lower, square), Sums(counts, sums, moved, float(upper[i]), farthest)


def doubtful(X: Any, shift: np.ndarray, label: Any, upper: Any, lower: Any, c: Centres) -> np.ndarray:
    """The rows whose bounds no longer prove that their centre is the nearest; bounds are moved in place."""
    k = len(c.Z)
    gaps = np.sqrt(np.maximum(_squared_gaps(c.Z), 0.0))
    half = (0.5 * gaps.min(axis=1)).astype(X.dtype) if k > 1 else np.full(1, np.inf, X.dtype)
    order = np.argsort(-c.drift, kind="stable")
    most, runner_up = c.drift[order[0]], c.drift[order[1]] if k > 1 else 0.0
    active = np.empty(len(label), np.int64)
    drift = c.drift.astype(X.dtype)
    count = loosen(label, upper, lower, drift, X.dtype.type(most), X.dtype.type(runner_up), order[0], half, active)
    if count and not sparse.issparse(X):
        count = tighten(X, (c.Z + shift).astype(X.dtype), label, upper, lower, half, active, count)
    return active[:count]


def _squared_gaps(Z: np.ndarray) -> np.ndarray:
    """Squared distances between centres, infinite to themselves."""
    square = (Z**2).sum(axis=1)
    out = square[:, None] + square[None, :] - 2 * Z @ Z.T
    np.fill_diagonal(out, np.inf)
    return out


def moves(X: Any, shift: np.ndarray, w: np.ndarray, rows: Any, old: Any, new: Any, shape: tuple) -> tuple:
    """Changes in counts (k,) and sums (k,d), and how many rows moved."""
    k, d = shape
    if not sparse.issparse(X):
        counts, sums = np.zeros(k), np.zeros((k, d))
        moved = move(X, shift, w, rows, old, new, counts, sums)
        return counts, sums, moved
    changed = old != new
    rows, old, new = rows[changed], old[changed], new[changed]
    had = old >= 0
    signs = np.concatenate([w[rows], -w[rows[had]]])
    places = (np.concatenate([new, old[had]]), np.concatenate([rows, rows[had]]))
    H = sparse.csr_array((signs, places), shape=(k, X.shape[0]))
    counts = np.asarray(H.sum(axis=1)).ravel()
    return counts, (H @ X).toarray() - np.outer(counts, shift), len(rows)


def label_rows(X: Any, c: Centres) -> np.ndarray:
    """The nearest centre of each row."""
    X, shift = shifted(X, c)
    return nearest(X, *products(X, c, shift))[0]


def squared_distances(X: Any, c: Centres) -> np.ndarray:
    """The squared distance of each row to its nearest centre, in float64."""
    X, shift = shifted(X, c)
    return np.maximum(nearest(X, *products(X, c, shift))[1].astype(np.float64) + squares(X, shift), 0.0)


def all_distances(X: Any, c: Centres) -> np.ndarray:
    """The distance of each row to every centre: (n,k)."""
    X, shift = shifted(X, c)
    minus, base = products(X, c, shift)
    return np.sqrt(np.maximum(X @ minus.T + base + squares(X, shift)[:, None], 0))
