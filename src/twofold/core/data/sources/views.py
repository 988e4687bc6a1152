"""Another source seen differently: scaled, or some of its rows or columns."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from twofold.core.data.sources.base import Source
from twofold.core.types import Block


class ScaledSource(Source):
    """Another source's values divided by a scale: (d,) for its columns, (n,1) for its rows."""

    def __init__(self, source: Source, scale: np.ndarray):
        self.source, self.shape, self.dtype = source, source.shape, source.dtype
        self.scale = scale.astype(self.dtype)
        self.elsewhere = source.elsewhere

    def read(self, start: int, stop: int) -> np.ndarray:
        return self.source.read(start, stop) / (self.scale[start:stop] if self.scale.ndim == 2 else self.scale)

    def part(self, start: int, stop: int) -> tuple[ScaledSource, int]:
        source, first = self.source.part(start, stop)
        scale = self.scale[first : first + source.shape[0]] if self.scale.ndim == 2 else self.scale
        return ScaledSource(source, scale), first

    def across(self) -> ScaledSource:
        return ScaledSource(self.source.across(), self.scale[:, None])


class ChosenSource(Source):
    """Some rows of another source's blocks; blocks without any are left out."""

    def __init__(self, source: Source, bounds: np.ndarray, chosen: np.ndarray):
        self.source, self.rows, self.dtype = source, np.flatnonzero(chosen), source.dtype
        self.is_sparse, self.elsewhere = source.is_sparse, source.elsewhere
        self.shape = (len(self.rows), source.shape[1])
        self.cuts = bounds
        self.bounds: np.ndarray = np.unique(np.searchsorted(self.rows, bounds))

    def read(self, start: int, stop: int) -> Block:
        rows = self.rows[start:stop]
        at = int(np.searchsorted(self.cuts, rows[0], side="right")) - 1
        first = int(self.cuts[at])
        return self.source.read(first, int(self.cuts[at + 1]))[rows - first]

    def across(self) -> ColumnsOf:
        return ColumnsOf(self.source.across(), self.rows)


class SomeRows(Source):
    """Some rows of another source, in their order."""

    def __init__(self, source: Source, rows: np.ndarray):
        self.source, self.rows, self.dtype = source, rows, source.dtype
        self.shape, self.is_sparse, self.elsewhere = (len(rows), source.shape[1]), source.is_sparse, source.elsewhere

    def read(self, start: int, stop: int) -> Block:
        rows = self.rows[start:stop]
        runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
        parts = [self.source.read(int(run[0]), int(run[-1]) + 1) for run in runs]
        if len(parts) == 1:
            return parts[0]
        return sparse.vstack(parts, format="csr") if self.is_sparse else np.concatenate(parts)

    def part(self, start: int, stop: int) -> tuple[SomeRows, int]:
        rows = self.rows[start:stop]
        source, first = self.source.part(int(rows[0]), int(rows[-1]) + 1)
        return SomeRows(source, rows - first), start

    def across(self) -> ColumnsOf:
        return ColumnsOf(self.source.across(), self.rows)


class ColumnsOf(Source):
    """Some columns of another source."""

    def __init__(self, source: Source, chosen: np.ndarray):
        self.source, self.chosen, self.dtype = source, chosen, source.dtype
        self.shape, self.is_sparse = (source.shape[0], len(chosen)), source.is_sparse
        self.elsewhere = source.elsewhere
        self.columns = None if source.columns is None else [source.columns[j] for j in chosen]

    def read(self, start: int, stop: int) -> Block:
        rows = self.source.read(start, stop)[:, self.chosen]
        return rows if self.is_sparse else np.ascontiguousarray(rows)

    def part(self, start: int, stop: int) -> tuple[ColumnsOf, int]:
        source, first = self.source.part(start, stop)
        return ColumnsOf(source, self.chosen), first

    def across(self) -> Source:
        raise NotImplementedError("no model looks at chosen rows both ways and back")
