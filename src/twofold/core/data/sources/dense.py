"""Rows of an array in memory."""

from __future__ import annotations

import numpy as np

from twofold.core.data.sources.base import Source, float_dtype


class DenseSource(Source):
    """An array in memory. Blocks are C-contiguous, by copying if need be, so the order of X never shows in a result."""

    in_memory = True

    def __init__(self, X: np.ndarray):
        self.X = X.astype(float_dtype(X.dtype), copy=False)
        self.shape, self.dtype = self.X.shape, self.X.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        return np.ascontiguousarray(self.X[start:stop])

    def across(self) -> DenseSource:
        return DenseSource(self.X.T)
