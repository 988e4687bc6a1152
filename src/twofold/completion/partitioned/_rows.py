"""Functions over the shards of one side, as tasks; and some of the rows, wherever they are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from twofold.completion.partitioned._layout import Side, read_shard
from twofold.completion.partitioned.ratings import PartitionedRatings
from twofold.core.engine.tasks import RUN, Tasks, add_results


def take_cells(folder: Path, side: Side, units: list[int], width: int, rows: np.ndarray) -> sparse.csr_array:
    """Some rows of a shard."""
    return read_shard(folder, side, units, width)[rows]


class ShardMap:
    """The shards of one side: fn(folder, side, units, width, …) for each."""

    def __init__(self, ratings: PartitionedRatings, side: Side, tasks: Tasks):
        self.folder, self.tasks = ratings.folder, tasks
        self.side = side._replace(routes=np.empty((0, 0)))  # which no task here needs
        self.units = [side.units_of(s) for s in range(len(side.bounds) - 1)]
        self.width = ratings.shape[side is ratings.rows]

    def map(self, fn: Callable[..., Any], *args: Any) -> list[Any]:
        return [self._submit(s, fn, *args) for s in range(len(self.units))]

    def reduce(self, fn: Callable[..., Any], *args: Any) -> Any:
        """The sum over the shards, along the fixed tree; a run of them is added before the next are begun, so that few
        results wait in memory."""
        runs, count = [], len(self.units)
        for a in range(0, count, RUN):
            some = [self._submit(s, fn, *args) for s in range(a, min(a + RUN, count))]
            runs.append(self.tasks.submit(add_results, some))
        return self.tasks.reduce(runs)

    def _submit(self, s: int, fn: Callable[..., Any], *args: Any) -> Any:
        return self.tasks.submit(fn, self.folder, self.side, self.units[s], self.width, *args)

    def take(self, wanted: np.ndarray, fn: Callable[..., Any] = take_cells, *args: Any) -> sparse.csr_array:
        """Some rows, ascending, one below the other: fn(…, rows of the shard, …)."""
        handles = []
        for s, (a, b) in enumerate(pairwise(self.side.bounds.tolist())):
            mine = wanted[(wanted >= a) & (wanted < b)] - a
            if len(mine):
                handles.append(self._submit(s, fn, mine, *args))
        return sparse.vstack(self.tasks.gather(handles), format="csr")
