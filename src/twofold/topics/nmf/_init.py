"""What a non-negative factorization is made to, and where it begins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.known_cells import Observed
from twofold.core.engine.local import engine_for, stacked
from twofold.topics._nonnegative import Look
from twofold.topics.nmf._holes import Holes
from twofold.topics.nmf._nndsvd import Start, flat, nndsvd, random
from twofold.topics.nmf._squared_masked import without_weightless

LEAST = 0.01  # of the typical entry: what zeros of the start are lifted to, for rules that multiply


class Data(NamedTuple):
    """What a fit is made to."""

    blocks: Blocks
    w: np.ndarray | None  # (n,) row weights
    W: Any  # (n,d) cell weights, or None
    seen: Look
    cells: Observed | None  # the known cells, where some are missing or count differently
    holes: Holes

    @property
    def mean(self) -> float:
        """Of the known cells, by weight."""
        if self.cells is not None:
            return float(np.average(self.cells.X.data, weights=self.cells.W.data))
        n, d = self.blocks.shape
        return self.seen.total / ((n if self.w is None else self.w.sum()) * d)


def start(data: Data, k: int, loss: str, init: Any, solver: str, seed: int) -> Start:
    """Both factors to begin with; U is one array where the known cells are in one place."""
    blocks, cells = data.blocks, data.cells
    level = float(np.sqrt(data.mean / k))
    least = LEAST * level if solver in ("newton", "multiplicative") else 0.0
    if not isinstance(init, str):
        V = np.maximum(given(init, k, blocks.shape[1]).T, least).astype(blocks.dtype)
        found = flat(blocks, np.ascontiguousarray(V), level)
    elif init == "random":
        found = random(blocks, k, seed, level)
    else:
        found = by_singular_vectors(data, k, seed, level, least)
    if loss == "squared" and cells is not None:
        found = found._replace(kept=Rows([(stacked([U for (U,) in found.kept.local()]),)]))
    return found


def by_singular_vectors(data: Data, k: int, seed: int, level: float, least: float) -> Start:
    """NNDSVD; a cell without weight is a hole to it, too."""
    blocks, cells = data.blocks, data.cells
    if cells is None or data.W is None:
        return nndsvd(engine_for(blocks), blocks, data.w, cells is not None, k, seed, level, least)
    whole = without_weightless(cells, blocks.is_sparse)
    kept, V = nndsvd(engine_for(whole), whole, None, not whole.is_sparse, k, seed, level, least)
    return Start(Rows((U,) for U in blocks.rows(stacked([U for (U,) in kept]))), V)


def given(init: Any, k: int, d: int) -> np.ndarray:
    """Parts from the user, checked."""
    Z = np.asarray(init, dtype=np.float64)
    if Z.shape != (k, d) or not np.isfinite(Z).all() or Z.min() < 0:
        raise InputError(f"init must be {(k, d)} finite numbers >= 0; it has shape {Z.shape}. Check or clip it.")
    return Z
