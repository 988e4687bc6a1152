"""What every other model has to beat, over partitioned ratings: biases and popularity.

The sweeps of `Biases` see the ratings in one product alone, of who has rated what with the other side's biases; here it
is a task for every shard.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from twofold.completion.biases import Biases, Lines, Sums, fit_sums
from twofold.completion.partitioned._ease import count_seen
from twofold.completion.partitioned._files import write_array
from twofold.completion.partitioned._fit import begin_fit
from twofold.completion.partitioned._half_steps import File, Shard, Sweeper
from twofold.completion.partitioned._layout import Side, read_shard
from twofold.completion.partitioned._rows import ShardMap
from twofold.completion.partitioned.ratings import PartitionedRatings
from twofold.completion.popularity import Popularity, fit_counts
from twofold.core.engine.tasks import add_results


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


class WhoRated:
    """(lines, other side's lines) 1 where there is a rating: known by its products alone."""

    def __init__(self, sweeper: Sweeper, side: Side):
        self.shards, self.sweeper, self.side = ShardMap(sweeper.ratings, side, sweeper.tasks), sweeper, side
        self.turn = count()

    def __matmul__(self, other: np.ndarray) -> np.ndarray:
        path = self.sweeper.paths(f"biases-{next(self.turn) % 2}", self.side)[0]  # whoever read the one before is done
        write_array(path, other)
        tasks = self.sweeper.tasks
        return np.concatenate(tasks.gather(self.shards.map(sum_others, tasks.load(File(path)))))


def fit_biases(model: Biases, ratings: PartitionedRatings, sample_weight: Any) -> Biases:
    """Biases as their class says it."""
    sweeper = begin_fit(model, ratings, sample_weight, 1)
    total, _, cells = sweeper.values(None)
    center, square, lines = float(total / cells), 0.0, []
    for side in (ratings.rows, ratings.cols):
        found = sweeper.tasks.gather(ShardMap(ratings, side, sweeper.tasks).map(sum_lines, center))
        mass, sums = (np.concatenate(part) for part in list(zip(*found, strict=True))[:2])
        square = float(add_results([part[2] for part in found]))
        lines.append(Lines(WhoRated(sweeper, side), mass, sums))
    return fit_sums(model, Sums(lines[0], lines[1], center, square, int(cells)), ratings.dtype, ratings, ratings.sign)


def fit_popularity(model: Popularity, ratings: PartitionedRatings, sample_weight: Any) -> Popularity:
    """Popularity as its class says it."""
    sweeper = begin_fit(model, ratings, sample_weight, 1)
    counts, rows = (
        np.concatenate(
            [part[0] for part in sweeper.tasks.gather(ShardMap(ratings, side, sweeper.tasks).map(count_seen))]
        )
        for side in (ratings.cols, ratings.rows)
    )
    return fit_counts(model, counts.astype(np.float64), float((rows > 0).sum()), ratings.dtype, ratings, ratings.sign)
