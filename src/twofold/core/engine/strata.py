"""Rows and columns dealt into groups, so that threads that step on cells never write the same vector.

    B groups of rows and B groups of columns cut the cells into B × B tiles
    a stratum is B tiles, one for each group of rows and one for each group of columns; B strata are all of them

The tiles of a stratum may be worked on at once, in any order, with the same result.
Reference: Gemulla, Haas, Nijkamp & Sismanis 2011.
"""

from __future__ import annotations

import numpy as np


def groups(cells: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """The group (n,) of each line, 0 … count−1, given how many cells each has (n,).

    Groups have equally many lines, give or take one, and nearly equally many cells however skewed the lines are:
    the lines with most cells are dealt first, to and fro, so that what a group loses in one round it wins in the
    next. Ties fall at random.

    >>> cells = np.array([900, 4, 300, 100, 5, 30, 800, 400])
    >>> group = groups(cells, 2, np.random.default_rng(0))
    >>> np.bincount(group), np.bincount(group, cells)
    (array([4, 4]), array([1304., 1235.]))
    """
    order = np.lexsort((rng.random(len(cells)), -np.asarray(cells, np.int64)))
    turn = np.arange(len(cells)) % (2 * count)
    group = np.empty(len(cells), np.int32)
    group[order] = np.minimum(turn, 2 * count - 1 - turn)
    return group


def strata(count: int, rng: np.random.Generator) -> np.ndarray:
    """All tiles (B,B,2) as pairs of groups (row, column), a stratum a line, in an order that is drawn.

    >>> for tiles in strata(3, np.random.default_rng(0)):
    ...     assert sorted(tiles[:, 0]) == sorted(tiles[:, 1]) == [0, 1, 2]
    """
    row = np.arange(count)
    shift, across = rng.permutation(count), rng.permutation(count)
    column = across[(row + shift[:, None]) % count]
    return np.stack([np.broadcast_to(row, column.shape), column], axis=2)
