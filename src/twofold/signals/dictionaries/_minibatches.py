"""Rows in mini-batches, wherever they lie: a run of blocks at a time, of which a batch takes every B-th row.

Neighbouring rows are often alike (patches of a picture, documents of a day): taken far apart, batches are alike
instead. Where batches are cut depends on the data alone, so that they are the same from disk and on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.sources import DenseSource
from twofold.core.engine.local import Engine, engine_for
from twofold.signals.sparse_coding.pursuits import cut_into_pieces


class MiniBatches:
    """About `size` rows a batch; a batch is a Blocks of its own, and the weights of its rows."""

    def __init__(self, blocks: Blocks, w: np.ndarray | None, size: int):
        self.blocks, self.w, self.engine = blocks, w, engine_for(blocks)
        self.apart = type(self.engine) is not Engine  # the rows are elsewhere, and stay there
        many = max(1, size // max(1, int(blocks.bounds[1])))  # blocks a run
        self.cuts = np.append(blocks.bounds[:-1:many], blocks.bounds[-1])
        self.first = np.append(np.arange(len(blocks))[::many], len(blocks))
        self.counts = -(-np.diff(self.cuts) // size)  # batches a run
        self._kept: dict[tuple[int, int], Blocks] = {}

    def __len__(self) -> int:
        return int(self.counts.sum())

    def shuffled(self, rng: np.random.Generator) -> Iterator[tuple[Blocks, Rows]]:
        """Every batch once, the runs in a new order."""
        for r in rng.permutation(len(self.counts)):
            X, w = self._run(r), None if self.w is None else self.w[self.cuts[r] : self.cuts[r + 1]]
            for b in rng.permutation(self.counts[r]):
                every = slice(b, None, self.counts[r])
                batch = self._batch(X, every, (r, b))
                yield batch, batch.rows(None if w is None else w[every])

    def _run(self, r: int) -> Any:
        if self.apart:
            return self.blocks.source.some(slice(self.cuts[r], self.cuts[r + 1]))
        parts = [self.blocks[i] for i in range(self.first[r], self.first[r + 1])]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _batch(self, X: Any, every: slice, name: tuple[int, int]) -> Blocks:
        if not self.apart:
            return cut_into_pieces(DenseSource(X[every]))
        if name not in self._kept:  # its workers keep it from sweep to sweep
            self._kept[name] = cut_into_pieces(X.some(every))
        return self._kept[name]
