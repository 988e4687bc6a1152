"""Lists of all users of partitioned ratings: a task for some thousand of them, where their ratings are.

The columns' side of the product goes to the folder once; a task is sent its users' side of it. Only a few tasks run
ahead of the caller, so that the lists of all users are never in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from scipy import sparse

from twofold.completion.partitioned._files import missing_message, write_array
from twofold.completion.partitioned._layout import Side, read_shard
from twofold.completion.partitioned.stored_rows import StoredRows, join_cells
from twofold.completion.scorer import ProductScorer, Scorer
from twofold.completion.top_n import Lists, join_lists, rank_block, rank_items
from twofold.core.checks import InputError
from twofold.core.data.sources import rows_per_block
from twofold.core.engine.tasks import find_tasks
from twofold.core.files.headers import reads_headers

USERS = 2**12  # of a task


@reads_headers
def rank_shard(
    folder: Path,
    side: Side,
    units: list[int],
    width: int,
    rows: tuple[int, int],
    held: sparse.csr_array | None,
    U: np.ndarray,
    bias: np.ndarray,
    path: Path,
    n: int,
) -> Lists:
    """The n best columns, not seen, of some rows of a shard."""
    seen = read_shard(folder, side, units, width)[rows[0] : rows[1]]
    seen = seen if held is None else join_cells(seen, held)
    try:
        Z = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(missing_message(path)) from None
    scorer, step = ProductScorer(U, Z, bias), rows_per_block(width, Z.dtype)
    starts = range(0, seen.shape[0], step)
    return join_lists([rank_block(np.arange(a, min(a + step, seen.shape[0])), seen, n, scorer) for a in starts])


def rank_all(scorer: Scorer, seen: StoredRows, n: int) -> Iterator[tuple[np.ndarray, Lists]]:
    """For all rows, some thousand at a time: the rows, and their n best columns that are not stored in `seen`."""
    (_, d), side, folder = seen.shape, seen.ratings.rows, seen.folder
    if not isinstance(scorer, ProductScorer):
        yield from rank_items(scorer, seen, np.arange(seen.shape[0]), n)
        return
    at = folder / "lists"
    at.mkdir(exist_ok=True)
    path = at / f"{uuid4().hex}.npy"
    write_array(path, np.ascontiguousarray(scorer.Z))
    cells = max(seen.ratings.cells["rows"])
    tasks = find_tasks(
        cells * 12 + USERS * (scorer.U.shape[1] * 4 + 12 * n) + 3 * rows_per_block(d, scorer.dtype) * d * 4
    )
    bare, waiting = side._replace(routes=np.empty((0, 0))), deque[tuple[np.ndarray, Any]]()
    try:
        for s, (first, last) in enumerate(zip(side.bounds[:-1].tolist(), side.bounds[1:].tolist(), strict=True)):
            for a in range(first, last, USERS):
                b = min(a + USERS, last)
                held = None if seen.held is None else seen.held[a:b]
                given = (side.units_of(s), d, (a - first, b - first), held, np.array(scorer.U[a:b]), scorer.bias[a:b])
                if len(waiting) > 2 * tasks.threads:
                    rows, handle = waiting.popleft()
                    yield rows, tasks.gather([handle])[0]
                waiting.append((np.arange(a, b), tasks.submit(rank_shard, folder, bare, *given, path, min(n, d))))
        while waiting:
            rows, handle = waiting.popleft()
            yield rows, tasks.gather([handle])[0]
    finally:
        path.unlink(missing_ok=True)
