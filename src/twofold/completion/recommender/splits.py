"""Honest splits: which known cells are held out.

    random      any cells                          how well are holes filled
    leave-out   some cells of every user           the same, the same share for all
    last        the last cells of every user       what each does next
    users       whole users, of whom 80 % of the cells are shown to the fitted model and 20 % tested (strong
                generalization: Liang et al. 2018)
    items       whole items, for users that keep a cell: items without ratings

No cell is ever in two parts, because a pair that occurs twice was made one cell before.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.data.known_cells import keep_stored
from twofold.core.seeds import generator

KINDS = ("random", "leave-out", "last", "users", "items")
SHOWN = 0.8  # share of the cells of a new user


class Part(NamedTuple):
    """Tables of one shape: what is learned from, what new users show to the fitted model, and what is tested."""

    train: sparse.csr_array
    shown: sparse.csr_array | None
    test: sparse.csr_array


def split_table(
    X: sparse.csr_array, kind: str, test_size: Any, folds: int | None, seed: int, times: np.ndarray | None = None
) -> Iterator[Part]:
    """The parts of every fold, one if `folds` is None; `times` (stored cells,) are needed for "last"."""
    if kind == "items":
        yield from split_items(X, test_size, folds, seed)
        return
    if kind != "users":
        fold = split_cells(X, kind, test_size, folds, seed, times)
        for f in range(int(fold.max()) + 1):
            yield Part(keep_stored(X, fold != f), None, keep_stored(X, fold == f))
        return
    check_split(kind, test_size, folds)
    rng, counts = generator(seed), np.diff(X.indptr)
    able = rng.permutation(np.flatnonzero(counts > 1))
    held = test_size if isinstance(test_size, Integral) else max(1, round(test_size * len(able)))
    if held >= X.shape[0] or not len(able) or (folds or 1) > len(able):
        raise InputError(
            f"test_size={test_size}, folds={folds}: of {X.shape[0]} users {len(able)} have two ratings or more, and "
            "some must be left to train on. Lower it."
        )
    row = np.repeat(np.arange(X.shape[0]), counts)
    place = shuffle_rows(X, rng)
    for users in [able[:held]] if folds is None else np.array_split(able, folds):
        new = np.isin(row, users)
        tested = new & (place < np.maximum(1, np.round((1 - SHOWN) * counts).astype(int))[row])
        yield Part(keep_stored(X, ~new), keep_stored(X, new & ~tested), keep_stored(X, tested))


def split_items(X: sparse.csr_array, test_size: Any, folds: int | None, seed: int) -> Iterator[Part]:
    """Hold out whole items: a share `test_size` or that number of them, or each of `folds` equal parts in turn."""
    check_split("items", test_size, folds)
    items = generator(seed).permutation(np.unique(X.indices))
    held = int(test_size) if isinstance(test_size, Integral) else max(1, round(test_size * len(items)))
    if held >= len(items) or (folds or 1) > len(items):
        raise InputError(
            f"test_size={test_size}, folds={folds}: some of the {len(items)} items must be left to train on. Lower it."
        )
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    for new in [items[:held]] if folds is None else np.array_split(items, folds):
        tested = np.isin(X.indices, new)
        keeps = np.bincount(row[~tested], minlength=X.shape[0]) > 0
        yield Part(keep_stored(X, ~tested), None, keep_stored(X, tested & keeps[row]))


def split_cells(
    X: sparse.csr_array, kind: str, test_size: Any, folds: int | None, seed: int, times: np.ndarray | None = None
) -> np.ndarray:
    """(stored cells,) the fold each is tested in, -1 for none.

    "random": a share `test_size` of all cells, or each of `folds` equal parts in turn. "leave-out": of every row
    `test_size` cells (a whole number: exactly that many; a fraction: that share of the row, rounded), or its cells
    dealt evenly into `folds`. A row keeps at least one cell for training, else it has none held out. "last": the same
    of every row's latest cells.

    >>> X = sparse.csr_array(np.ones((3, 4)))
    >>> fold = split_cells(X, "leave-out", 1, None, seed=0)
    >>> (fold.reshape(3, 4) == 0).sum(axis=1).tolist()
    [1, 1, 1]
    """
    check_split(kind, test_size, folds)
    rng, counts = generator(seed), np.diff(X.indptr)
    if kind == "random":
        place, size = rng.permutation(X.nnz), X.nnz
        if folds is not None:
            if folds > size:
                raise InputError(f"folds={folds} is more than the {size} ratings there are. Lower it.")
            return place * folds // size
        held = test_size if isinstance(test_size, Integral) else max(1, round(test_size * size))
        if held >= size:
            raise InputError(f"test_size={test_size} leaves none of the {size} ratings to train on. Lower it.")
        return np.where(place < held, 0, -1)
    row = np.repeat(np.arange(X.shape[0]), counts)
    place = shuffle_rows(X, rng, None if kind == "leave-out" else times)
    if folds is not None:
        return np.where(counts[row] > 1, place % folds, -1)
    held = (
        np.full(len(counts), test_size) if isinstance(test_size, Integral) else np.round(test_size * counts).astype(int)
    )
    held = np.where(counts > held, held, 0)
    if not held.any():
        raise InputError(
            f"no user has more than test_size={test_size} ratings to leave out. Lower it, or split at random."
        )
    return np.where(place < held[row], 0, -1)


def shuffle_rows(X: sparse.csr_array, rng: np.random.Generator, times: np.ndarray | None = None) -> np.ndarray:
    """(stored cells,) the place of each among those of its row: any order, or the latest first."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = np.lexsort((rng.random(X.nnz), row) if times is None else (rng.random(X.nnz), -times, row))
    place = np.empty(X.nnz, np.int64)
    place[order] = np.arange(X.nnz) - X.indptr[row]
    return place


def check_split(kind: str, test_size: Any, folds: Any) -> None:
    if kind not in KINDS:
        raise InputError(f"split={kind!r} is unknown; choose {' or '.join(map(repr, KINDS))}.")
    if kind == "last" and folds is not None:
        raise InputError(f'folds={folds}: what comes last is held out once. Leave folds out, or choose "leave-out".')
    count, size = isinstance(test_size, Integral), float(test_size)
    if isinstance(test_size, bool) or not (size >= 1 if count else 0 < size < 1):
        raise InputError(f"test_size={test_size!r} must be a fraction between 0 and 1, or a whole number of ratings.")
    if folds is not None and (not isinstance(folds, Integral) or folds < 2):
        raise InputError(f"folds={folds!r} must be a whole number of at least 2, or None for a single split.")
