"""A few weighted rows that represent all: lightweight coresets, in two passes.

    q(x) = ½ · w/Σw + ½ · w·d²(x, mean)/Σw·d²      m rows drawn with probability q, each of weight w/(m·q)

For any k centers the weighted cost of the coreset is the cost of all rows on average, and close to it for m large.
First pass:   each block  its weight, mean and scatter, which give the share of every block
Second pass:  each block  draws its number of rows
References: Bachem, Lucic & Krause 2018 (lightweight coresets); Bentley & Saxe 1980 (merge and reduce).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from twofold.clusters.kmeans.assign import sum_squares
from twofold.core.checks import InputError, check_sparse, check_weights, refuse
from twofold.core.data.blocks import Blocks, Rows, as_blocks, is_dask, is_path
from twofold.core.engine.local import Tree, engine_for, single_blas, stack_results
from twofold.core.numerics.moments import block_columns, merge
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights


def coreset(X: Table, m: int, *, sample_weight: Weights = None, random_state: Seed = None) -> tuple[Any, np.ndarray]:
    """Draw a lightweight coreset: m weighted rows whose k-means cost is that of all rows, for any centers.

    Half of a row's chance is the same for all, half grows with its squared distance from the mean. m rows are drawn
    with replacement; a row drawn twice appears once, with both weights, so there may be fewer than m points.

    Parameters
    ----------
    X : array, sparse array, frame, path or dask array of shape (n, d)
    m : int
        Rows to draw. For m ≥ n all rows are returned with their own weights.
    sample_weight : array of shape (n,), optional
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    points : array or CSR array of shape (at most m, d)
        In the order of the rows, and in their dtype.
    weights : ndarray of shape (at most m,)

    References
    ----------
    Bachem, Lucic & Krause (2018), *KDD*, 1119-1127.

    Examples
    --------
    >>> from twofold.clusters import KMeans, coreset
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, size=(10_000, 2)) for c in (0, 1, 2)])
    >>> points, weights = coreset(X, 500, random_state=0)
    >>> small = KMeans(3, random_state=0).fit(points, sample_weight=weights)
    >>> full = KMeans(3, random_state=0).fit(X)
    >>> bool(-small.score(X) < 1.01 * full.inertia_)
    True
    """
    _check_m(m)
    blocks = _table(X)
    w = check_weights(sample_weight, blocks.shape[0])
    with single_blas(), np.errstate(invalid="ignore", over="ignore"):  # an error names the cell
        return _draw(blocks, w, int(m), seed_of(random_state))


def coreset_size(k: int, d: int, eps: float, delta: float = 0.1) -> int:
    """Return the number of rows that a coreset needs: m = (d·k·log k + log 1/δ) / ε².

    With probability 1 − δ, for every set of k centers at once, the cost of the coreset is then within
    ½ε·(cost of the rows) + ½ε·(cost of the rows with one center, their mean) of the cost of the rows. The theorem
    does not determine the constant of the formula; it is 1 here, which is enough in measurements. For k = 1, log 2
    replaces log k.

    References
    ----------
    Bachem, Lucic & Krause (2018), *KDD*, theorem 2.

    Examples
    --------
    >>> coreset_size(10, 5, eps=0.1, delta=0.1)
    11744
    """
    for name, value in (("k", k), ("d", d)):
        if not isinstance(value, Integral) or value < 1:
            raise InputError(f"{name}={value!r}; a whole number from 1 on is needed.")
    for name, share in (("eps", eps), ("delta", delta)):
        if not isinstance(share, Real) or not 0 < share < 1:
            raise InputError(f"{name}={share!r}; a number between 0 and 1 is needed.")
    return int(np.ceil((d * k * np.log(max(k, 2)) + np.log(1 / delta)) / eps**2))


class CoresetStream:
    """A coreset of rows that come in batches, by merge and reduce: memory for m·log(n/m) rows of n.

    Every 2m rows become a coreset of m points; two coresets of equal rank become one of the next rank, like the
    digits of a binary counter. The result does not depend on the sizes of the batches.

    Parameters
    ----------
    m : int
        Points of every coreset, the final one included.
    random_state : int, RandomState, Generator or None, default=None

    Examples
    --------
    >>> from twofold.clusters import CoresetStream
    >>> stream = CoresetStream(200, random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(20):
    ...     stream.add(rng.normal(size=(1000, 3)))
    >>> points, weights = stream.result()
    >>> len(points) <= 200, bool(abs(weights.sum() / 20_000 - 1) < 0.1)
    (True, True)
    """

    def __init__(self, m: int, *, random_state: Seed = None):
        _check_m(m)
        self.m, self.seed = int(m), seed_of(random_state)
        self.waiting: list[tuple[Any, np.ndarray]] = []  # rows not yet in the tree
        self.tree, self.drawn = Tree(self._merge), 0

    def add(self, batch: Any, sample_weight: Weights = None) -> None:
        """Add rows in any form that `coreset` takes, with as many columns as the rows before."""
        blocks = _table(batch)
        w = check_weights(sample_weight, blocks.shape[0])
        refuse(type(self).__name__, blocks)
        known = self._parts()
        if known and known[0][0].shape[1] != blocks.shape[1]:
            raise InputError(f"the batch has {blocks.shape[1]} columns; the rows before have {known[0][0].shape[1]}.")
        weights = np.ones(blocks.shape[0]) if w is None else w
        for i, part in enumerate(blocks.rows(weights)):
            self.waiting.append((blocks[i], part))
            while sum(len(v) for _, v in self.waiting) >= 2 * self.m:
                rows, v = stack_results(self.waiting)
                self.waiting = [(rows[2 * self.m :], v[2 * self.m :])]
                self.tree.push(self._reduce(rows[: 2 * self.m], v[: 2 * self.m]))

    def result(self) -> tuple[Any, np.ndarray]:
        """Return the coreset of all rows so far: (points, weights). More rows may follow."""
        parts = [part for part in self._parts() if len(part[1])]
        if not parts:
            raise InputError("CoresetStream has no rows yet. Call add(batch) first.")
        before = self.drawn
        points, weights = self._reduce(*stack_results(parts))
        self.drawn = before  # a result does not change the state
        return points, weights

    def _parts(self) -> list[tuple[Any, np.ndarray]]:
        return [part for _, part in self.tree.stack] + self.waiting

    def _merge(self, a: tuple, b: tuple) -> tuple:
        return self._reduce(*stack_results([a, b]))

    def _reduce(self, rows: Any, w: np.ndarray) -> tuple[Any, np.ndarray]:
        self.drawn += 1
        if not w.any():
            return rows[:0], w[:0]
        return coreset(rows, self.m, sample_weight=w, random_state=seed_of(generator(self.seed, self.drawn)))


def _check_m(m: Any) -> None:
    if not isinstance(m, Integral) or m < 1:
        raise InputError(f"m={m!r}; a coreset has a whole number of rows, from 1 on.")


def _table(X: Any) -> Blocks:
    """Read row blocks from any input of a model."""
    if is_path(X) or is_dask(X) or isinstance(X, Blocks):
        return as_blocks(X)
    if sparse.issparse(X):
        check_sparse(X)
    return as_blocks(check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False))


def _draw(blocks: Blocks, w: np.ndarray | None, m: int, seed: int) -> tuple[Any, np.ndarray]:
    engine, rows = engine_for(blocks), blocks.rows(w)
    parts = engine.gather(engine.map(block_columns, blocks, rows))
    tree = Tree(merge)
    for part in parts:
        tree.push(part)
    total = tree.result()
    if not np.isfinite(total.scatter).all() or total.missing:
        refuse("coreset", blocks)
        raise InputError("X has numbers too large to square. Scale its columns, or give it as float64.")
    if m >= blocks.shape[0]:
        return stack_results(engine.gather(engine.map(_copy, blocks))), np.ones(
            blocks.shape[0]
        ) if w is None else w.copy()
    spread = float(total.scatter.sum())
    share = 1.0 if spread <= 0 else 0.5  # equal rows differ only in weight
    far = np.array([p.scatter.sum() + p.rows * ((p.mean - total.mean) ** 2).sum() for p in parts])
    chance = share * np.array([p.rows for p in parts]) / total.rows + (1 - share) * far / (spread or 1.0)
    counts = Rows(generator(seed).multinomial(m, chance / chance.sum()).tolist())
    fixed = engine.broadcast((seed, m, total.mean, share / total.rows, (1 - share) / (spread or 1.0)))
    drawn = engine.gather(engine.map(_draw_block, blocks, rows, Rows(range(len(blocks))), counts, fixed))
    return stack_results(drawn)


def _draw_block(X: Any, w: np.ndarray | None, place: int, count: int, fixed: tuple) -> tuple[Any, np.ndarray]:
    """Draw rows of a block; return them and their weights."""
    seed, m, mean, per_weight, per_distance = fixed
    w = np.ones(X.shape[0]) if w is None else w
    per_row = per_weight + per_distance * _square_distances(X, mean)  # q / w
    ladder = np.cumsum(w * per_row)
    steps = np.searchsorted(ladder, generator(seed, place).random(count) * ladder[-1], side="right")
    chosen, times = np.unique(np.minimum(steps, int(np.flatnonzero(w).max(initial=0))), return_counts=True)
    return X[chosen], times / (m * per_row[chosen])


def _square_distances(X: Any, mean: np.ndarray) -> np.ndarray:
    """Compute ‖x − mean‖² of each row, in float64; dense rows are centered first to avoid cancellation."""
    if sparse.issparse(X):
        return sum_squares(X.astype(np.float64), mean)
    gap = X - mean
    return np.einsum("ij,ij->i", gap, gap)


def _copy(X: Any) -> Any:
    return X.copy()
