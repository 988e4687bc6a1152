"""Missing cells: the rows of a block grouped by which of their cells are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import add, engine_for
from twofold.core.estimator import Model
from twofold.core.numerics.moments import Columns, column_moments
from twofold.core.sklearn_shim import as_chosen_output
from twofold.core.types import Block, Table, Weights

LOG_2PI = float(np.log(2 * np.pi))


class Patterns(NamedTuple):
    """Which cells of a block are there, by distinct pattern."""

    mask: np.ndarray  # (P,d) bool, True where observed
    order: np.ndarray  # (n,) rows sorted by pattern
    starts: np.ndarray  # (P+1,)


def whole(n: int, d: int) -> Patterns:
    """The pattern of rows without holes."""
    return Patterns(np.ones((1, d), bool), np.arange(n), np.array([0, n]))


def find_patterns(X: Block) -> tuple[Patterns, int]:
    """The patterns of missing cells in a block, and how many cells are missing."""
    holes = None if sparse.issparse(X) else np.isnan(X)
    if holes is None or not holes.any():
        return whole(*X.shape), 0
    packed = np.packbits(holes, axis=1)
    keys: np.ndarray
    if packed.shape[1] <= 8:  # one whole number a row, in the order of its bytes: sorted faster
        wide = np.zeros((len(packed), 8), np.uint8)
        wide[:, : packed.shape[1]] = packed
        keys = wide.view(">u8").ravel().astype(np.uint64)
    else:
        keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(inverse)))
    return Patterns(~holes[first], order, starts), int(np.count_nonzero(holes))


def recall_patterns(X: Block, kept: Patterns | None) -> Patterns:
    """The patterns of a block; found again where they were too many to be kept."""
    return find_patterns(X)[0] if kept is None else kept


def center_rows(X: Block, patterns: Patterns, mean: np.ndarray) -> Block:
    """X less the mean with zeros in the holes; sparse rows as they are, their mean is taken off implicitly."""
    if sparse.issparse(X):
        return X
    x = X - mean.astype(X.dtype)
    if not patterns.mask.all():
        x[np.isnan(x)] = 0.0
    return x


class Observed(NamedTuple):
    """What a fit to data with holes keeps of it between sweeps."""

    blocks: Blocks
    w: np.ndarray | None
    columns: Columns
    patterns: Rows  # None for every block of files where all would take too much memory
    holes: bool


def observe(model: Model, X: Table, sample_weight: Weights, reset: bool = True) -> Observed:
    """Read X for a fit: refuse what cannot be used, find the columns' moments and the patterns of missing cells."""
    blocks = model._blocks(X, reset=reset, min_rows=2 if reset else 1)
    w = model._weights(blocks, sample_weight)
    engine = engine_for(blocks)
    columns = column_moments(engine, blocks, w)
    if not np.isfinite(columns.mean).all():
        model._refuse(blocks, allow_nan=not blocks.is_sparse)
    if reset and not columns.weight.all():
        j = int(np.argmin(columns.weight))
        raise InputError(f"column {j} of X has no observed value (all NaN). Drop it: there is nothing to learn from.")
    n, d = blocks.shape
    if blocks.source.elsewhere and n * (d + 16) > config().memory // 8:
        return Observed(blocks, w, columns, blocks.rows(None), bool(columns.missing))
    patterns, missing = engine.reduce(add, engine.map(find_patterns, blocks), keep=True)
    return Observed(blocks, w, columns, patterns, bool(missing))


class Imputer(Model):
    """A model that fills missing cells. A subclass gives `_imputer`, the function that fills a block, and its state."""

    _imputer: Callable[[], tuple[Any, ...]]

    def impute(self, X: Table, return_std: bool = False) -> Any:
        """X with every NaN replaced by its expectation given the row's observed cells, as `set_output` wants it.

        With `return_std`, also the standard deviation of each filled cell (0 where X was known).
        """
        fn, *state = self._imputer()
        filled, std = self._rowwise(fn, X, *state)
        filled = as_chosen_output(self, X, filled)
        return (filled, std) if return_std else filled


def mix_fillings(
    X: np.ndarray, share: np.ndarray, fillings: Iterable[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Fill the holes of X by components that are responsible for shares (n,c) of its rows; also standard deviations.

    Each filling is the expectation and the variance (n,d) under one component.
    """
    first, second = np.zeros(X.shape), np.zeros(X.shape)
    for c, (filled, variance) in enumerate(fillings):
        first += share[:, c, None] * filled
        second += share[:, c, None] * (variance + filled**2)
    std = np.where(np.isnan(X), np.sqrt(np.maximum(second - first**2, 0.0)), 0.0)
    return first, std
