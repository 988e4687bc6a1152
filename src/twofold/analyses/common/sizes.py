"""The best number in a range without a known end: it grows while the best is near its end, then narrows around it.

    the best is one of the two largest   ▶   up to twice as many, in four steps
    then                                 ▶   half-way from the best to its neighbors, until these are near

Every round is one call of `select`, with the best so far among the sizes, so that its rules hold between all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from twofold.model_selection.selection import Selection


MIN_RELATIVE_GAP = 0.05  # a smaller gap beside the best is not searched


def find_size(
    choose: Callable[[list[int], float | None], Selection],
    name: str,
    first: Sequence[int],
    largest: int,
    seconds: float,
    narrow: bool = True,
) -> tuple[Selection, pl.DataFrame]:
    """Return the last choice, and the table of all sizes tried; `choose` takes sizes and the seconds they may take.

    The first round has all the time it needs; from then on it ends with the seconds, or at `largest`. The best so far
    comes first in every other round, so that it is there when time is short.
    """
    end: float | None = None
    tables = list[pl.DataFrame]()

    def ask(sizes: list[int]) -> Selection:
        found = choose(sizes, None if end is None else max(end - perf_counter(), 0.0))
        tables.append(found.table)
        return found

    found, tried = ask(list(first)), sorted(first)
    end = perf_counter() + seconds
    while found.best_params[name] in tried[-2:] and tried[-1] < largest and perf_counter() < end:
        top = tried[-1]
        new = sorted({min(top + max(top * i // 4, i), largest) for i in range(1, 5)})
        tried += new
        found = ask([found.best_params[name], *new])
    while narrow and perf_counter() < end:
        new = list_sizes_beside(found.best_params[name], tried)
        if not new:
            break
        tried = sorted([*tried, *new])
        found = ask([found.best_params[name], *new])
    keys = list(found.best_params)
    rows = pl.concat(tables, how="diagonal").sort("note", nulls_last=True, maintain_order=True)  # of two, the measured
    return found, rows.unique(keys, keep="last").sort(keys)


def list_sizes_beside(best: int, tried: Sequence[int]) -> list[int]:
    """List the sizes half-way from the best to the nearest ones tried, where these are far.

    >>> list_sizes_beside(100, [60, 80, 100, 120]), list_sizes_beside(7, range(1, 11))
    ([90, 110], [])
    """
    below, above = max((k for k in tried if k < best), default=best), min((k for k in tried if k > best), default=best)
    far = max(1.0, MIN_RELATIVE_GAP * best)
    return [(k + best) // 2 for k in (below, above) if abs(k - best) > far]
