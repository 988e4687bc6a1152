"""The data of a fit of non-negative factorization, and its start.

nndsvd   of :mod:`twofold.core.numerics.nndsvd`
nndsvda  its zeros at the data's mean;  nndsvdar  at small random numbers
random   absolute normals whose products have the data's mean
custom   both factors are given
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, LazyRows, Rows, as_blocks
from twofold.core.data.known_cells import Observed
from twofold.core.engine.local import add, engine_for, stack_results
from twofold.core.numerics.nndsvd import LIFT, Start, nndsvd
from twofold.core.seeds import generator
from twofold.topics._nonnegative import Totals, check_init
from twofold.topics.nmf.problem import Holes


class Data(NamedTuple):
    """The data of one fit, checked."""

    blocks: Blocks
    w: np.ndarray | None  # (n,) row weights
    W: Any  # (n,d) cell weights, or None
    totals: Totals
    cells: Observed | None  # the known cells, where some are missing or count differently
    holes: Holes

    @property
    def mean(self) -> float:
        """Of the known cells, by weight."""
        if self.cells is not None:
            return float(np.average(self.cells.X.data, weights=self.cells.W.data))
        n, d = self.blocks.shape
        return self.totals.total / ((n if self.w is None else self.w.sum()) * d)


def start(data: Data, k: int, init: Any, solver: str, seed: int, factors: tuple[Any, Any]) -> Start:
    """Both factors to start from; U is one array if the known cells are in one array."""
    blocks, cells = data.blocks, data.cells
    level = float(np.sqrt(data.mean / k))
    floor = LIFT * level if solver in ("newton", "mu") else 0.0
    if isinstance(init, str) and init == "custom":
        W, H = check_factors(*factors, k, blocks.shape)
        V = np.ascontiguousarray(H.T.astype(blocks.dtype))
        found = Start(Rows((np.ascontiguousarray(U),) for U in blocks.rows(W.astype(blocks.dtype))), V)
    elif isinstance(init, np.ndarray):
        V = np.maximum(check_init(init, k, blocks.shape[1], allow_empty=True).T, floor).astype(blocks.dtype)
        found = start_level(blocks, np.ascontiguousarray(V), level)
    elif init == "random":
        found = start_randomly(blocks, k, seed, level)
    else:
        found = from_singular_vectors(data, k, seed, level, floor if init in (None, "nndsvd") else 0.0)
        if init in ("nndsvda", "nndsvdar"):
            found = fill_zeros(blocks, found, data.mean, seed if init == "nndsvdar" else None)
    if solver == "cd" and cells is not None:
        found = found._replace(kept=Rows([(stack_results([U for (U,) in found.kept.local()]),)]))
    return found


def from_singular_vectors(data: Data, k: int, seed: int, level: float, floor: float) -> Start:
    """Start by NNDSVD; a cell of weight 0 is missing."""
    blocks, cells = data.blocks, data.cells
    if cells is None or data.W is None:
        return nndsvd(engine_for(blocks), blocks, data.w, cells is not None, k, seed, level, floor)
    whole = mark_weightless(cells, blocks.is_sparse)
    kept, V = nndsvd(engine_for(whole), whole, None, not whole.is_sparse, k, seed, level, floor)
    return Start(Rows((U,) for U in blocks.rows(stack_results([U for (U,) in kept]))), V)


def check_factors(W: Any, H: Any, k: int, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Both factors of the user, in float64."""
    found = []
    for name, given, wanted in (("W", W, (shape[0], k)), ("H", H, (k, shape[1]))):
        A = np.zeros(()) if given is None else np.asarray(given, dtype=np.float64)
        if A.shape != wanted or not np.isfinite(A).all() or A.min() < 0:
            what = "is not given" if given is None else f"has shape {A.shape}"
            raise InputError(f'{name} {what}; init="custom" needs {wanted} finite numbers >= 0 as {name}.')
        found.append(A)
    return found[0], found[1]


def fill_zeros(blocks: Blocks, first: Start, mean: float, seed: int | None) -> Start:
    """Zeros at the data's mean; with a seed, at absolute normals of a hundredth of it."""
    engine = engine_for(blocks)
    at, shared = Rows(range(1, len(blocks) + 1)), (engine.broadcast(mean), engine.broadcast(seed))
    kept, _ = engine.reduce(add, engine.map(_fill_rows, blocks, first.kept, at, *shared), keep=True)
    return Start(kept, _fill(first.V, 0, mean, seed))


def _fill_rows(X: Any, kept: tuple, at: int, mean: float, seed: int | None) -> tuple[tuple, int]:
    return (_fill(kept[0], at, mean, seed),), 0


def _fill(U: np.ndarray, at: int, mean: float, seed: int | None) -> np.ndarray:
    level = mean if seed is None else mean / 100 * np.abs(generator(seed, 2, at).standard_normal(U.shape))
    return np.where(U > 0, U, level).astype(U.dtype)


def mark_weightless(cells: Observed, stored: bool) -> Blocks:
    """The table with holes where a cell does not count; zeros there if it came as sparse."""
    if stored:
        return as_blocks(cells.X)
    X = np.full(cells.shape, np.nan, cells.dtype)
    X[np.repeat(np.arange(cells.shape[0]), np.diff(cells.X.indptr)), cells.X.indices] = cells.X.data
    return as_blocks(X)


class LevelRows(LazyRows):
    """Codes that are all equal, made for a block when it is used."""

    def __init__(self, blocks: Blocks, k: int, level: float):
        super().__init__(np.diff(blocks.bounds).tolist())
        self.k, self.level, self.dtype = k, level, blocks.dtype

    def make(self, it: int) -> tuple[np.ndarray]:
        return (np.full((it, self.k), self.level, self.dtype),)


def start_level(blocks: Blocks, V: np.ndarray, level: float) -> Start:
    """Start with equal codes."""
    return Start(LevelRows(blocks, V.shape[1], level), V)


def start_randomly(blocks: Blocks, k: int, seed: int, level: float) -> Start:
    """Start with random parts and equal codes."""
    V = level * np.abs(generator(seed, 1).standard_normal((blocks.shape[1], k)))
    return start_level(blocks, V.astype(blocks.dtype), level)
