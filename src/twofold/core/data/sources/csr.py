"""Rows of a folder of sparse values on disk."""

from __future__ import annotations

import copy
import os

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError
from twofold.core.data.csr_folder import open_csr
from twofold.core.data.sources.base import Source, cuts_by_stored, float_dtype
from twofold.core.data.sources.sparse import StoredRows, turn_in_memory
from twofold.core.types import PathLike


class CsrSource(StoredRows):
    """A folder that `write_csr` wrote, read block by block: the cuts and the values of the same table in memory."""

    elsewhere = True

    def __init__(self, path: PathLike, scale: np.ndarray | None = None):
        self.path = os.fspath(path)
        self.shape, self.data, self.indices, self.indptr = open_csr(path)
        self.dtype = float_dtype(self.data.dtype)
        self.bounds = cuts_by_stored(self.indptr, self.dtype)
        self.per = None if scale is None else 1 / scale.astype(self.dtype)

    def read(self, start: int, stop: int) -> sparse.csr_array:
        a, b = int(self.indptr[start]), int(self.indptr[stop])
        data, indices = self.data.read(a, b).astype(self.dtype, copy=False), self.indices.read(a, b)
        if len(indices) and not 0 <= indices.min() <= indices.max() < self.shape[1]:
            raise InputError(f"{self.indices.path} is damaged: rows {start} to {stop} name columns that do not exist.")
        indptr = (self.indptr[start : stop + 1] - a).astype(indices.dtype)  # like a table in memory, if it is not huge
        parts = (data if self.per is None else data * self.per[indices], indices, indptr)
        X = sparse.csr_array(parts, shape=(stop - start, self.shape[1]))
        if not X.has_canonical_format:
            raise InputError(f"{self.indices.path} is damaged: columns do not ascend in rows {start} to {stop}.")
        return X

    def part(self, start: int, stop: int) -> tuple[CsrSource, int]:
        other = copy.copy(self)
        other.indptr, other.shape = self.indptr[start : stop + 1], (stop - start, self.shape[1])
        return other, start

    def across(self) -> Source:
        return turn_in_memory(self, self.path)

    def divide_columns(self, scale: np.ndarray) -> CsrSource:
        return CsrSource(self.path, scale)
