"""Rows of a CSR array in memory, and what every sparse source shares."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.sources.base import Source, cuts_by_stored, float_dtype
from twofold.core.data.sources.dense import DenseSource
from twofold.core.types import Block


class StoredRows(Source):
    """What sparse sources share: rows cut by their stored values."""

    is_sparse = True
    indptr: np.ndarray
    bounds: np.ndarray

    def finer(self, cells: int) -> Self:
        """The same rows, cut after every so many stored values."""
        other = copy.copy(self)
        other.bounds = cuts_by_stored(self.indptr, self.dtype, cells)
        return other


class SparseSource(StoredRows):
    """A CSR array in memory; a block shares its stored values."""

    in_memory = True

    def __init__(self, X: Block, cells: int | None = None):
        X = sparse.csr_array(X)
        X = X.astype(float_dtype(X.dtype), copy=False)
        if not X.has_canonical_format:
            X = X.copy()  # the caller's array stays as it is
            X.sum_duplicates()
        self.X, self.shape, self.dtype, self.indptr = X, X.shape, X.dtype, X.indptr
        self.bounds = cuts_by_stored(X.indptr, X.dtype, cells)

    def read(self, start: int, stop: int) -> sparse.csr_array:
        a, b = self.X.indptr[start], self.X.indptr[stop]
        parts = (self.X.data[a:b], self.X.indices[a:b], self.X.indptr[start : stop + 1] - a)
        return sparse.csr_array(parts, shape=(stop - start, self.shape[1]))

    def across(self) -> SparseSource:
        return SparseSource(self.X.T)

    def divide_columns(self, scale: np.ndarray) -> SparseSource:
        return SparseSource(self.X @ sparse.diags_array(1 / scale.astype(self.dtype)))


def turn_in_memory(source: Source, name: str) -> SparseSource | DenseSource:
    """Rows and columns exchanged where that takes all of it at once: done in memory, if the budget allows."""
    needed = source.n_stored * 2 * (source.dtype.itemsize + (4 if source.is_sparse else 0))
    if needed > config().memory:
        raise InputError(
            f"{name} is wanted along its columns, which takes {needed / 1e6:.0f} MB at once and the budget is "
            f"{config().memory / 1e6:.0f} MB. Raise twofold.config(memory=...), or load it into an array."
        )
    whole = source.read(0, source.shape[0])
    return (SparseSource(whole) if source.is_sparse else DenseSource(whole)).across()
