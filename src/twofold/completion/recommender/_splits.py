"""Honest splits: which known cells are held out.

A split says for every stored cell of X which fold it is tested in, or -1 if it always trains. No cell is ever in both
parts, because a pair that occurs twice was made one cell before.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.seeds import generator

KINDS = ("random", "leave-out")


def split_cells(X: sparse.csr_array, kind: str, test_size: Any, folds: int | None, seed: int) -> np.ndarray:
    """(stored cells,) the fold each is tested in, -1 for none.

    "random": a share `test_size` of all cells, or each of `folds` equal parts in turn. "leave-out": of every row
    `test_size` cells (a whole number: exactly that many; a fraction: that share of the row, rounded), or its cells
    dealt evenly into `folds`. A row keeps at least one cell for training, else it has none held out.

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
    order = np.lexsort((rng.random(X.nnz), row))
    place = np.empty(X.nnz, np.int64)  # of a cell among its row's, shuffled
    place[order] = np.arange(X.nnz) - X.indptr[row]
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


def check_split(kind: str, test_size: Any, folds: Any) -> None:
    if kind not in KINDS:
        raise InputError(f"split={kind!r} is unknown; choose {' or '.join(map(repr, KINDS))}.")
    count, size = isinstance(test_size, Integral), float(test_size)
    if isinstance(test_size, bool) or not (size >= 1 if count else 0 < size < 1):
        raise InputError(f"test_size={test_size!r} must be a fraction between 0 and 1, or a whole number of ratings.")
    if folds is not None and (not isinstance(folds, Integral) or folds < 2):
        raise InputError(f"folds={folds!r} must be a whole number of at least 2, or None for a single split.")


def take_cells(X: sparse.csr_array, chosen: np.ndarray) -> sparse.csr_array:
    """Only some of the stored cells, in a table of the same shape."""
    indptr = np.concatenate([[0], np.cumsum(chosen)])[X.indptr].astype(X.indptr.dtype)
    return sparse.csr_array((X.data[chosen], X.indices[chosen], indptr), shape=X.shape)
