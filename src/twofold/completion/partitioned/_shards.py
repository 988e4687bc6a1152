"""Tasks over whole shards: some of their rows, and the sums that biases, popularity and EASE are fitted by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from twofold.completion.partitioned._half_steps import Shard
from twofold.completion.partitioned._layout import Side, read_shard
from twofold.core.data.known_cells import keep_stored
from twofold.kernels.moments import csr_gram_rows


def take_cells(folder: Path, side: Side, units: list[int], width: int, rows: np.ndarray) -> sparse.csr_array:
    """Some rows of a shard."""
    return read_shard(folder, side, units, width)[rows]


def sum_lines(folder: Path, side: Side, units: list[int], width: int, center: float) -> tuple[Any, ...]:
    """Of every row of a shard, how many cells it has and the sum of x − center; and the sum of its square over all."""
    X = read_shard(folder, side, units, width)
    y = X.data.astype(np.float64) - center
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.diff(X.indptr).astype(np.float64), np.bincount(row, y, X.shape[0]), float(y @ y)


def sum_others(folder: Path, side: Side, units: list[int], width: int, other: Shard) -> np.ndarray:
    """Of every row of a shard, the sum of the other side's biases over its cells."""
    X = read_shard(folder, side, units, width)
    return sparse.csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape) @ other.factors


def count_seen(folder: Path, side: Side, units: list[int], width: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows,) how many cells that are not zero each row of a shard has, and their sum."""
    X = read_shard(folder, side, units, width)
    X = keep_stored(X, X.data != 0)
    return np.diff(X.indptr), np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()


def read_heads(folder: Path, side: Side, units: list[int], width: int, heads: np.ndarray) -> sparse.csr_array:
    """The cells of a shard that are not zero, in the input columns `heads`."""
    X = read_shard(folder, side, units, width)
    place = np.full(width, -1, np.int32)
    place[heads] = np.arange(len(heads), dtype=np.int32)
    at = place[X.indices]
    X = keep_stored(X, (X.data != 0) & (at >= 0))
    return sparse.csr_array((X.data, place[X.indices], X.indptr), shape=(X.shape[0], len(heads)))


def sum_block(
    folder: Path, side: Side, units: list[int], width: int, heads: np.ndarray, lo: int, hi: int
) -> np.ndarray:
    """Rows lo..hi of the upper triangle of the Gram matrix of a shard."""
    H = read_heads(folder, side, units, width, heads)
    G = np.zeros((hi - lo, len(heads)))
    csr_gram_rows(H.data, H.indices, H.indptr, lo, G)
    return G


def multiply_tails(folder: Path, side: Side, units: list[int], width: int, heads: np.ndarray) -> sparse.csr_array:
    """(m,d) products of the input columns `heads` with the others, over a shard."""
    X = read_shard(folder, side, units, width)
    silent = np.ones(width, bool)
    silent[heads] = False
    tails = keep_stored(X, (X.data != 0) & silent[X.indices])
    return read_heads(folder, side, units, width, heads).T.tocsr() @ tails


def add_sparse(results: list[sparse.csr_array]) -> sparse.csr_array:
    total = results[0]
    for result in results[1:]:
        total = total + result
    return total


def take_rows(
    folder: Path, side: Side, units: list[int], width: int, rows: np.ndarray, heads: np.ndarray
) -> sparse.csr_array:
    """Some rows of a shard, in the input columns `heads`."""
    return read_heads(folder, side, units, width, heads)[rows]
