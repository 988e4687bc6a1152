"""How many, where nobody knows how far to look: the range grows while the best is near its end, then narrows around it.

    the best is one of the two largest   ▶   up to twice as many, in four steps
    then                                 ▶   half-way from the best to its neighbours, until these are near

Every round is one call of `select`, with the best so far among the sizes, so that its rules hold between all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from twofold.model_selection.selection import Selection


FINE = 0.05  # a gap beside the best below this share of it is not looked into


def find_size(
    choose: Callable[[list[int], float | None], Selection],
    name: str,
    first: Sequence[int],
    most: int,
    seconds: float,
    narrow: bool = True,
) -> tuple[Selection, pl.DataFrame]:
    """The last choice made, and the table of all sizes tried; `choose` takes sizes and the seconds they may take.

    The first round has all the time it needs; from then on it ends with the seconds, or at `most`. The best so far
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
    while found.best_params[name] in tried[-2:] and tried[-1] < most and perf_counter() < end:
        top = tried[-1]
        new = sorted({min(top + max(top * i // 4, i), most) for i in range(1, 5)})
        tried += new
        found = ask([found.best_params[name], *new])
    while narrow and perf_counter() < end:
        new = beside(found.best_params[name], tried)
        if not new:
            break
        tried = sorted([*tried, *new])
        found = ask([found.best_params[name], *new])
    keys = list(found.best_params)
    rows = pl.concat(tables, how="diagonal").sort("note", nulls_last=True, maintain_order=True)  # of two, the measured
    return found, rows.unique(keys, keep="last").sort(keys)


def beside(best: int, tried: Sequence[int]) -> list[int]:
    """Sizes half-way from the best to the nearest ones tried, where these are far.

    >>> beside(100, [60, 80, 100, 120]), beside(100, [98, 100, 101]), beside(7, range(1, 11))
    ([90, 110], [], [])
    """
    below, above = max((k for k in tried if k < best), default=best), min((k for k in tried if k > best), default=best)
    far = max(1.0, FINE * best)
    return [(k + best) // 2 for k in (below, above) if abs(k - best) > far]
