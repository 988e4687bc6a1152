"""Rows of a .npy file."""

from __future__ import annotations

import os

import numpy as np

from twofold.core.checks import DAMAGED_ARRAY, InputError, reason_of
from twofold.core.data.sources.base import Source, float_dtype
from twofold.core.files.headers import reads_headers
from twofold.core.types import PathLike


class NpySource(Source):
    """A .npy file read block by block: never mapped, so that resident memory stays within the budget."""

    elsewhere = True

    @reads_headers
    def __init__(self, path: PathLike, transposed: bool = False):
        self.path, self.transposed = os.fspath(path), transposed
        try:
            X = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise InputError(f"{self.path}: no such file.") from None
        except DAMAGED_ARRAY as why:
            raise InputError(f"{self.path} is not a readable .npy file ({reason_of(why)}).") from None
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise InputError(f"{self.path} holds {X.dtype} of shape {X.shape}; a 2-D array of numbers is needed.")
        self.stored, self.offset = X.dtype, int(X.offset)
        # Rows lie together if the file is in C order; seen along its columns it is the other way round.
        self.row_major = bool(X.flags.c_contiguous) != transposed
        self.shape = X.shape[::-1] if transposed else X.shape
        self.dtype = float_dtype(X.dtype)

    def read(self, start: int, stop: int) -> np.ndarray:
        n, d = self.shape
        size, wanted = self.stored.itemsize, stop - start
        with open(self.path, "rb", buffering=0) as file:
            if self.row_major:
                cells = np.fromfile(file, self.stored, wanted * d, offset=self.offset + start * d * size)
                return self._whole(cells, wanted * d).reshape(wanted, d).astype(self.dtype, copy=False)
            block = np.empty((wanted, d), self.dtype)
            for j in range(d):
                file.seek(self.offset + (j * n + start) * size)
                block[:, j] = self._whole(np.fromfile(file, self.stored, wanted), wanted)
        return block

    def _whole(self, cells: np.ndarray, wanted: int) -> np.ndarray:
        if len(cells) < wanted:
            raise InputError(f"{self.path} ends before its last row: it is truncated. Write it again.")
        return cells

    def across(self) -> NpySource:
        return NpySource(self.path, not self.transposed)
