"""The interface of a problem of non-negative factorization; its data, start and penalties; the cost of missing cells.

    minimize  D exp(P / D₀)   over  U ≥ 0, Z ≥ 0
    D   divergence of the known cells from U Z: squared error or KL, with weights
    D₀  divergence of the known cells from the means of their columns
    P   divergence of these means from U Z in the missing cells; the missing cells of a row count together at most as
        much as its known cells

Without P, a part that is small in a row could grow without bound where the row is not known. The minimum is the most
probable factorization if missing cells vary about their column's mean as known cells do and the noise is learned too.
Where U Z meets the known cells exactly, the missing cells count nothing. A sweep lowers D + κP with κ = D / D₀, the
unexplained share of the data; since the logarithm is concave, that also lowers D exp(P / D₀).

nndsvd   of :mod:`twofold.core.numerics.nndsvd`
nndsvda  its zeros at the data's mean;  nndsvdar  at small random numbers
random   absolute normals whose products have the data's mean
custom   both factors are given
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import kl_div, xlogy

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, LazyRows, Rows, as_blocks
from twofold.core.data.known_cells import Observed
from twofold.core.engine.local import add, engine_for, stack_results
from twofold.core.numerics.moments import column_moments
from twofold.core.numerics.nndsvd import LIFT, Start, nndsvd
from twofold.core.seeds import generator
from twofold.topics._nonnegative import Totals, check_init

MIN_UNEXPLAINED = 1e-6  # share of D₀ that is added to D, so that missing cells always cost something


class Problem(ABC):
    """An objective on one table: `advance` makes one sweep, `finish` the best codes at the end."""

    @abstractmethod
    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        """Improve the codes given V (d,k), then V; return both and the objective."""

    @abstractmethod
    def finish(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        """Find the best codes given V; return them, the divergence D of the known cells, and κ."""


class Penalty(NamedTuple):
    """λ₁ Σ u + ½ λ₂ Σ u² of one side."""

    l1: float = 0.0
    l2: float = 0.0

    def cost(self, U: np.ndarray) -> float:
        if not any(self):
            return 0.0
        U = U.astype(np.float64, copy=False)
        return self.l1 * float(U.sum()) + 0.5 * self.l2 * float(np.vdot(U, U))

    def add_to_rows(self, cost: np.ndarray, U: np.ndarray) -> np.ndarray:
        """The costs (m,) of the rows, with the penalty of each row of U (m,k)."""
        u = U.astype(np.float64)
        return cost + self.l1 * u.sum(axis=1) + 0.5 * self.l2 * (u**2).sum(axis=1)


FREE = Penalty()


class Holes(NamedTuple):
    """Values and costs of missing cells."""

    means: np.ndarray  # (d,) of the known cells: the values of missing cells
    null: float  # D₀
    share: np.ndarray  # (n,) cost of a missing cell of each row, to be multiplied by κ; 0 in rows without any

    def compute_kappa(self, D: float) -> float:
        """κ"""
        return (D + MIN_UNEXPLAINED * self.null) / self.null

    def objective(self, D: float, P: float) -> float:
        floor = MIN_UNEXPLAINED * self.null
        return float((D + floor) * np.exp(min(P / self.null, 500.0)) - floor)


NO_HOLES = Holes(np.empty(0), 1.0, np.empty(0))


class WholeTable(Problem):
    """A problem on a table without missing cells, whose rows have weights w (n,) or None."""

    def __init__(
        self,
        blocks: Blocks,
        w: np.ndarray | None,
        codes: Penalty = FREE,
        parts: Penalty = FREE,
        holes: Holes = NO_HOLES,
    ):
        self.engine, self.blocks, self.rows = engine_for(blocks), blocks, blocks.rows(w)
        self.codes, self.parts, self.holes = codes, parts, holes

    def update(self, half_step: Callable, kept: Rows, V: np.ndarray, rule: Any) -> tuple[Rows, Any]:
        """Run half_step(block, weights, codes, V, rule) on all blocks; return the new codes and the sums."""
        shared = (self.engine.broadcast(V), self.engine.broadcast(rule))
        return self.engine.reduce(add, self.engine.map(half_step, self.blocks, self.rows, kept, *shared), keep=True)


def measure_holes(cells: Observed, beta: float) -> Holes:
    """Means and costs from the known cells and their weights."""
    x, w = cells.X.data.astype(np.float64), cells.W.data.astype(np.float64)
    d, j = cells.shape[1], cells.X.indices
    mass = np.bincount(j, w, d)
    means = np.bincount(j, w * x, d) / np.where(mass > 0, mass, 1.0)
    if beta == 2:
        null, size = 0.5 * float(w @ (x - means[j]) ** 2), 0.5 * float(w @ x**2)
    else:
        null, size = float(w @ (xlogy(x, x) - xlogy(x, np.where(x > 0, means[j], 1.0)))), float(w @ x)
    known = np.diff(cells.X.indptr)
    level = cells.rows.mass / np.maximum(known, 1)
    return Holes(means.astype(cells.dtype), _keep_positive(null, size), share_of_holes(known, d) * level)


def expect_holes(blocks: Blocks, w: np.ndarray | None, totals: Totals, beta: float) -> Holes:
    """Means and costs from a whole table; new rows may have missing cells if β is 1 or 2."""
    engine = engine_for(blocks)
    moments = column_moments(engine, blocks, w)
    if beta == 2:
        null, size = 0.5 * float(moments.scatter.sum()), 0.5 * totals.square
    elif beta == 1:
        sums, size = moments.mean * moments.weight, totals.total
        null = totals.logs + totals.total - float(xlogy(sums, np.maximum(moments.mean, 1e-300)).sum())
    else:
        shared = engine.broadcast(np.maximum(moments.mean, 1e-300)), engine.broadcast(beta)
        null, size = engine.reduce(add, engine.map(_from_means, blocks, blocks.rows(w), *shared)), totals.total
    return Holes(moments.mean.astype(blocks.dtype), _keep_positive(null, size), np.empty(0))


def divergences(X: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """d(x, y) of every cell: x/y − log(x/y) − 1 at β = 0, (x^β + (β−1) y^β − β x y^(β−1)) / (β (β−1)) elsewhere."""
    if beta == 0:
        ratio = X / Y
        return ratio - np.log(ratio) - 1
    if beta == 1:
        return kl_div(X, Y)
    return (X**beta + (beta - 1) * Y**beta - beta * X * Y ** (beta - 1)) / (beta * (beta - 1))


def _from_means(X: np.ndarray, w: np.ndarray | None, means: np.ndarray, beta: float) -> float:
    """The β-divergence of one block from the columns' means."""
    return sum_weighted(divergences(X.astype(np.float64), means, beta).sum(axis=1), w)


def sum_weighted(each: np.ndarray, w: np.ndarray | None) -> float:
    """Σ w x, or Σ x without weights."""
    return float(each.sum() if w is None else each @ w)


def _keep_positive(null: float, size: float) -> float:
    """D₀, at least a rounding error of the data's size, since it divides."""
    return max(null, 1e-12 * size) or 1.0


def share_of_holes(known: np.ndarray, d: int) -> np.ndarray:
    """The cost of a missing cell in rows with `known` known cells of d, before κ and the row's weight."""
    missing = d - known
    return np.where(missing > 0, np.minimum(1.0, known / np.maximum(missing, 1)), 0.0)


# ---- the data and the start -----------------------------------------------------------------------------------------


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
