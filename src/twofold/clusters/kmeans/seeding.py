"""Starting centers of k-means.

k-means++    each next center drawn with probability ∝ squared distance; the rows must fit in memory
             plain: one draw each; expected cost at most 8(ln k + 2) times the least (Arthur & Vassilvitskii 2007)
             greedy, the meaning of "k-means++" here and in scikit-learn: the best of 2 + ln k draws; usually better,
             but without that bound (it can be worse by a factor of order log k: Bhattacharya et al. 2020)
k-means‖     a few passes that each draw about 2k rows at once, then k-means++ on these (Bahmani et al. 2012)
random       rows drawn with probability ∝ weight
sample       of long tables: the best of some fits to a sample, each from k-means++ and improved by swaps, in which a
             row drawn like a center of k-means++ takes the place of the center that is missed least, if that is
             cheaper (Lattanzi & Sohler 2019); then rows that are added make no start worse
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.clusters.kmeans.assign import Centers, find_nearest, wrap_centers
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import Engine, add, fetch_rows
from twofold.core.seeds import generator

ROUNDS = 5  # passes of k-means‖
MIN_SAMPLE_ROWS, ROWS_PER_CENTER = 5_000, 50  # of a sample
MAX_SAMPLE_SHARE = 1 / 3  # of the rows, in all fits to samples: about as much work as four sweeps
MAX_SAMPLE_FITS, SAMPLE_SWEEPS = 10, 8
SWAPS_PER_CENTER, MAX_SWAPS = 2, 40  # tried after each fit
MAX_PLUSPLUS_BYTES = 64 * 2**20  # of data up to which k-means++ reads every row


class Seeding(NamedTuple):
    """Arguments of every start."""

    engine: Engine
    blocks: Blocks
    w: np.ndarray | None
    mean: np.ndarray  # (d,)
    far: bool
    k: int
    seed: int

    def centers(self, Z: np.ndarray) -> Centers:
        return wrap_centers(Z - self.mean, self.mean, self.far)


def choose_init(blocks: Blocks, k: int) -> str:
    """Choose k-means++ if the rows fit easily in memory, else k-means‖."""
    n, d = blocks.shape
    return "k-means++" if n * d * blocks.dtype.itemsize <= MAX_PLUSPLUS_BYTES and k <= 50 else "k-means||"


def draw_centers(s: Seeding, init: str) -> np.ndarray:
    """Draw k starting centers (k,d), in float64."""
    init = choose_init(s.blocks, s.k) if init == "auto" else init
    if init.endswith("k-means++"):
        return _start_plusplus(gather_rows(s.engine, s.blocks), s.w, s, tries=1 if init.startswith("plain") else None)
    return {"k-means||": _start_parallel, "random": _start_random}[init](s)


def count_sample_fits(blocks: Blocks, k: int) -> int:
    """Return how many fits to samples cost little beside the fit; 0 for sparse rows and short tables."""
    rows = max(MIN_SAMPLE_ROWS, ROWS_PER_CENTER * k)
    return 0 if blocks.is_sparse else int(min(MAX_SAMPLE_SHARE * blocks.shape[0] / rows, MAX_SAMPLE_FITS))


def draw_sample(s: Seeding) -> np.ndarray:
    """Draw rows for the choice of a start, with probability ∝ weight, less the mean."""
    n, size = s.blocks.shape[0], max(MIN_SAMPLE_ROWS, ROWS_PER_CENTER * s.k)
    p = None if s.w is None else s.w / s.w.sum()
    rows = np.sort(generator(s.seed, 1).choice(n, size, replace=p is not None, p=p))
    return _as_dense(fetch_rows(s.engine, s.blocks, rows)) - s.mean


def swap_centers(rows: np.ndarray, Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Try to put rows in the place of centers (k,d), some times, and return the centers of least cost."""
    Z, k = Z.copy(), len(Z)
    squares = (rows**2).sum(axis=1)

    def measure(centers: np.ndarray) -> np.ndarray:
        return np.maximum(squares[:, None] - 2 * rows @ centers.T + (centers**2).sum(axis=1), 0.0)

    gaps = measure(Z)
    for _ in range(min(SWAPS_PER_CENTER * k, MAX_SWAPS) if k > 1 else 0):
        label = gaps.argmin(axis=1)
        two = np.partition(gaps, 1, axis=1)[:, :2]
        cost = two[:, 0].sum()
        if cost <= 0:
            break
        new = measure(rows[rng.choice(len(rows), p=two[:, 0] / cost)][None])[:, 0]
        kept = np.minimum(two[:, 0], new)
        loss = np.bincount(label, weights=np.minimum(two[:, 1], new) - kept, minlength=k)
        c = int(loss.argmin())
        if kept.sum() + loss[c] < cost:
            gaps[:, c] = new
            Z[c] = rows[np.argmin(new)]
    return Z


def _as_dense(rows: Any) -> np.ndarray:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)


def _start_random(s: Seeding) -> np.ndarray:
    n = s.blocks.shape[0]
    p = None if s.w is None else s.w / s.w.sum()
    few = s.w is not None and int(np.count_nonzero(s.w)) < s.k
    return _as_dense(fetch_rows(s.engine, s.blocks, generator(s.seed).choice(n, size=s.k, replace=few, p=p)))


def gather_rows(engine: Engine, blocks: Blocks) -> Any:
    """Read all rows into memory."""
    return engine.stack(engine.map(_read, blocks))


def _read(X: Any) -> Any:
    return X


def _start_plusplus(rows: Any, w: np.ndarray | None, s: Seeding, tries: int | None = None) -> np.ndarray:
    from sklearn.cluster import kmeans_plusplus

    if not sparse.issparse(rows):  # squared distances cancel far from the origin; sparse rows are near it
        own = isinstance(rows, np.ndarray) and rows.flags.owndata and not s.blocks.source.in_memory
        rows = np.subtract(rows, s.mean.astype(rows.dtype), out=rows if own else None)
    chosen, _ = kmeans_plusplus(rows, s.k, sample_weight=w, random_state=s.seed % 2**32, n_local_trials=tries)
    return chosen.astype(np.float64) + s.mean


def _start_parallel(s: Seeding) -> np.ndarray:
    """Draw candidates in rounds, each row with probability min(1, 2k·w·d²/Σwd²), and choose among them.

    Every row keeps its nearest candidate and the squared distance to it, so that a round computes only distances to the
    candidates of the last one.
    """
    places, rows = Rows(range(len(s.blocks))), s.blocks.rows(s.w)
    Z = new = _start_random(s._replace(k=1))
    kept = Rows([None] * len(s.blocks))
    for t in range(ROUNDS + 1):
        step = s.engine.broadcast((s.centers(new), len(Z) - len(new)))
        kept, (total, weights) = s.engine.reduce(
            add, s.engine.map(_update_nearest, s.blocks, rows, kept, step), keep=True
        )
        if total <= 0 or t == ROUNDS:
            break
        draw = s.engine.broadcast((s.seed, t, 2 * s.k / total))
        new = np.concatenate(s.engine.gather(s.engine.map(_draw, s.blocks, rows, kept, places, draw)))
        if len(new):
            Z = np.concatenate([Z, new])
        else:
            new = Z[-1:]
    weights = np.append(weights, np.zeros(len(Z) - len(weights)))
    if len(Z) < s.k:  # with fewer distinct rows than centers, rows repeat
        return np.concatenate([Z, Z[np.arange(s.k - len(Z)) % len(Z)]])
    return _start_plusplus(Z, np.maximum(weights, 1e-12), s)


def _update_nearest(X: Any, w: np.ndarray | None, kept: tuple | None, step: tuple) -> tuple[tuple, tuple]:
    """Update distances for new candidates; return them, their weighted sum, and each candidate's weight."""
    centers, first = step
    label, gap, _ = find_nearest(X, centers)
    label, gap = label + np.int32(first), gap.astype(np.float64)
    if kept is not None:
        closer = gap < kept[0]
        gap, label = np.where(closer, gap, kept[0]), np.where(closer, label, kept[1])
    weights = np.bincount(label, weights=w, minlength=first + len(centers.Z)).astype(np.float64)
    return (gap, label), (float(gap.sum() if w is None else gap @ w), weights)


def _draw(X: Any, w: np.ndarray | None, kept: tuple, place: int, draw: tuple) -> np.ndarray:
    seed, t, rate = draw
    chance = rate * kept[0] * (1.0 if w is None else w)
    return _as_dense(X[generator(seed, t, place).random(len(chance)) < chance])
