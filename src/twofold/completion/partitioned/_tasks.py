"""The tasks of fits to partitioned ratings: half-steps, one task a shard, given the factors of the other side's shards;
and sums over whole shards, by which biases, popularity and EASE are fitted.

On a cluster, where a task costs some milliseconds whatever it does, small shards that lie together are taken as one.

solve      the ridge regressions of a shard's rows, on what its cells need of the other side
pick       the rows of one factor shard that one unit needs, where the shard is; whole shards go as they are
sum_cells  of a row that is cut: VᵀV, Vᵀt and tᵀt of some of its cells, V and t being their weighted features and
           targets; the sums stand for the row, as a triangle R with RᵀR = VᵀV does for any V
gram       ZᵀZ of a shard, for models in which every cell counts
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.cells import HalfStep, make_targets
from twofold.completion.partitioned._layout import (
    Side,
    missing_message,
    read_arrays,
    read_needs,
    read_shard,
    read_unit,
    write_array,
)
from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.data.known_cells import keep_stored
from twofold.core.engine.tasks import Saved, Tasks, add_results
from twofold.core.files.headers import reads_headers
from twofold.core.numerics.alternating_ridge import multiply_block, penalize, solve_rows, weigh_cells
from twofold.kernels.moments import csr_gram_rows

SMALL_SHARD_ROWS = 2**10  # rows of a shard up to which it is always sent whole
CHUNK = 2**15  # cells of a heavy row at a time
MAX_JOINED_CELLS = 2**20  # cells up to which shards are taken as one on a cluster,
SHARDS_PER_THREAD = 4  # if each of its threads still has so many


class Shard(NamedTuple):
    """Factors of a run of rows; and of each unit in it, what its cells cost with their own ridge, and that ridge term
    alone."""

    factors: np.ndarray  # (rows,p)
    cost: tuple[float, ...] = ()
    held: tuple[float, ...] = ()


class Picked(NamedTuple):
    """Some of a shard's rows."""

    factors: np.ndarray


class File(Saved):
    """A factor shard on disk."""

    def __init__(self, path: Path):
        self.path = path

    @reads_headers
    def read(self) -> Shard:
        try:
            return Shard(np.load(self.path, allow_pickle=False))
        except FileNotFoundError:
            raise InputError(missing_message(self.path)) from None
        except (OSError, ValueError, EOFError) as why:
            raise InputError(f"{self.path} is damaged ({why}). Fit again.") from None


class Shards(Rows):
    """Handles of one side's factor shards."""

    def __init__(self, handles: Sequence[Any], tasks: Tasks):
        super().__init__(handles)
        self.tasks = tasks

    def arrays(self) -> Iterator[np.ndarray]:
        """The factors, shard by shard."""
        for handle in self:
            yield (handle.read() if isinstance(handle, Saved) else self.tasks.gather([handle])[0]).factors

    def local(self) -> Iterator[Any]:
        return ((array,) for array in self.arrays())


# ---- the tasks ----------------------------------------------------------------------------------------------------


def read_weighted(folder: Path, side: str, u: int, alpha: float | None) -> tuple[sparse.csr_array, np.ndarray]:
    """The targets of a unit's cells, and their weights."""
    X = read_unit(folder, side, u)
    if alpha is None:
        return X, np.ones_like(X.data)
    W = (X * X.dtype.type(alpha)).tocsr()
    W.eliminate_zeros()
    return make_targets(W), W.data


def pick(folder: Path, side: str, u: int, first: int, last: int, shard: Shard) -> Picked:
    """The rows of a factor shard, first..last, that unit u needs."""
    need = read_needs(folder, side, u)
    return Picked(shard.factors[need[slice(*np.searchsorted(need, [first, last]))] - first])


def join(
    folder: Path, side: str, u: int, bounds: np.ndarray, asked: np.ndarray, sources: list[Shard | Picked]
) -> np.ndarray:
    """The factor rows that unit u needs, of the shards that were asked."""
    need = read_needs(folder, side, u)
    starts = np.searchsorted(need, bounds)
    out = np.empty((len(need), sources[0].factors.shape[1]), sources[0].factors.dtype)
    for q, source in zip(asked.tolist(), sources, strict=True):
        rows, at = source.factors, slice(starts[q], starts[q + 1])
        out[at] = rows if isinstance(source, Picked) else rows[need[at] - bounds[q]]
    return out


def solve(
    folder: Path,
    side: str,
    units: list[tuple[int, int]],
    where: tuple[np.ndarray, np.ndarray],
    step: HalfStep,
    current: Shard | None,
    base: Any,
    sources: list[Any],
) -> Shard:
    """The rows of a shard: of units, one below the other, each with its number of rows."""
    found, first = [], 0
    for u, count in units:
        X, w = read_weighted(folder, side, u, step.alpha)
        seen = step.read_features(join(folder, side, u, *where, sources))
        start = (
            np.zeros((count, seen[0].shape[1]), seen[0].dtype)
            if current is None
            else current.factors[first : first + count]
        )
        U, cost = solve_rows(X, w, start, settle(base), *seen, step.ridge, step.steps, step.size)
        found.append((U, float(cost.sum()), penalize(U, weigh_cells(X, w), step.ridge)))
        first += count
    factors, costs, held = zip(*found, strict=True)
    return Shard(put_together(factors), costs, held)


def put_together(parts: Sequence[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class Sums(NamedTuple):
    """What some cells of one row add up to."""

    G: np.ndarray  # (p+1,p+1) of features and targets, weighted
    mass: float


def sum_cells(
    folder: Path, side: str, u: int, where: tuple[np.ndarray, np.ndarray], step: HalfStep, sources: list[Any]
) -> Sums:
    """Of the cells of a unit, all of one row."""
    X, w = read_weighted(folder, side, u, step.alpha)
    Z, offset = step.read_features(join(folder, side, u, *where, sources))
    p = Z.shape[1]
    G = np.zeros((p + 1, p + 1))
    for a in range(0, X.nnz, CHUNK):
        at, x = X.indices[a : a + CHUNK], X.data[a : a + CHUNK]
        V = np.column_stack([Z[at], x - offset[at]]).astype(np.float64)
        V *= np.sqrt(w[a : a + CHUNK].astype(np.float64))[:, None]
        G += V.T @ V
    return Sums(G, float(w.sum(dtype=np.float64)))


def solve_sums(step: HalfStep, current: Shard | None, base: np.ndarray | None, sums: Sums, dtype: np.dtype) -> Shard:
    """One row from the sums of its cells, by p cells that have the same sums."""
    p, G = len(sums.G) - 1, settle(sums.G)
    values, Q = np.linalg.eigh(G[:p, :p])
    roots = np.sqrt(np.maximum(values, 0.0))
    there = roots > 1e-12 * max(roots.max(), 1e-300)
    targets = np.where(there, (Q.T @ G[:p, p]) / np.where(there, roots, 1.0), 0.0)
    Z = np.ascontiguousarray((Q * roots).T, dtype=dtype)
    X = sparse.csr_array((targets.astype(dtype), np.arange(p), np.array([0, p])), shape=(1, p))
    start = np.zeros((1, p), dtype) if current is None else current.factors
    given = (np.ones(p, dtype), start, settle(base), Z, np.zeros(p, dtype), step.ridge, step.steps, step.size)
    mass = np.array([sums.mass])
    U, cost = solve_rows(X, *given, mass=mass)
    rest = float(G[p, p] - (targets**2).sum())  # what no factor explains
    return Shard(U, (float(cost.sum()) + rest,), (penalize(U, mass, step.ridge),))


def gram(cuts: np.ndarray, shard: Shard) -> list[np.ndarray]:
    """FᵀF of the rows F between two cuts each."""
    parts = (np.array(shard.factors[a:b]) for a, b in pairwise(cuts))
    return [F.T @ F for F in parts]


def add_grams(grams: list[list[np.ndarray]]) -> np.ndarray:
    return add_results([G for some in grams for G in some])


def settle(array: Any) -> Any:
    """An array as this process would have made it: what came over the network may be unaligned, which changes the order
    of sums, or not writable, for which kernels would be compiled again."""
    return None if array is None else np.require(array, requirements=["A", "W"])


def multiply(
    folder: Path,
    side: str,
    units: list[tuple[int, int]],
    where: tuple[np.ndarray, np.ndarray],
    mean: float,
    weighted: bool,
    sources: list[Any],
) -> Shard:
    """(X − mean) Z over the cells of units, one below the other."""
    found = []
    for u, _ in units:
        X, Z = read_unit(folder, side, u), join(folder, side, u, *where, sources)
        found.append(multiply_block(X, np.ones_like(X.data), Z, mean, weighted))
    return Shard(put_together(found))


def get_costs(shard: Shard) -> list[tuple[float, float]]:
    return list(zip(shard.cost, shard.held, strict=True))


def save(path: Path, shard: Shard) -> None:
    write_array(path, shard.factors)


def sum_values(folder: Path, units: list[int], mean: float | None, alpha: float | None) -> list[np.ndarray]:
    """Of the cells of each unit of rows: Σx, Σ(x − mean)² and their number; with `alpha`, Σw, Σw + 1 − w x² and n."""
    found = []
    for u in units:
        X, w = read_weighted(folder, "rows", u, alpha)
        x = X.data.astype(np.float64)
        if alpha is not None:
            w = w.astype(np.float64)
            found.append(np.array([w.sum(), (w + 1).sum() - (w * x**2).sum(), X.nnz]))
        else:
            found.append(np.array([x.sum(), 0.0 if mean is None else ((x - mean) ** 2).sum(), X.nnz]))
    return found


def find_least(folder: Path, units: list[int]) -> float:
    """The least value in units of rows."""
    return min(float(read_arrays(folder / "rows" / f"{u:05}.npz", "values")[0].min(initial=np.inf)) for u in units)


# ---- whole shards -------------------------------------------------------------------------------------------------


def read_and_call(fn: Callable[..., Any], folder: Path, side: Side, units: list[int], width: int, *args: Any) -> Any:
    """fn(cells of a shard, *args)."""
    return fn(read_shard(folder, side, units, width), *args)


def take_rows(X: sparse.csr_array, rows: np.ndarray, heads: np.ndarray | None = None) -> sparse.csr_array:
    """Some rows of a shard; with `heads` the cells that are not zero, in these input columns."""
    return (X if heads is None else take_heads(X, heads))[rows]


def sum_lines(X: sparse.csr_array, center: float) -> tuple[Any, ...]:
    """Of every row of a shard, how many cells it has and the sum of x − center; and the sum of its square over all."""
    y = X.data.astype(np.float64) - center
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.diff(X.indptr).astype(np.float64), np.bincount(row, y, X.shape[0]), float(y @ y)


def sum_others(X: sparse.csr_array, other: Shard) -> np.ndarray:
    """Of every row of a shard, the sum of the other side's biases over its cells."""
    return sparse.csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape) @ other.factors


def count_seen(X: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """(rows,) how many cells that are not zero each row of a shard has, and their sum."""
    X = keep_stored(X, X.data != 0)
    return np.diff(X.indptr), np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()


def take_heads(X: sparse.csr_array, heads: np.ndarray) -> sparse.csr_array:
    """The cells of a shard that are not zero, in the input columns `heads`."""
    place = np.full(X.shape[1], -1, np.int32)
    place[heads] = np.arange(len(heads), dtype=np.int32)
    X = keep_stored(X, (X.data != 0) & (place[X.indices] >= 0))
    return sparse.csr_array((X.data, place[X.indices], X.indptr), shape=(X.shape[0], len(heads)))


def sum_block(X: sparse.csr_array, heads: np.ndarray, lo: int, hi: int) -> np.ndarray:
    """Rows lo..hi of the upper triangle of the Gram matrix of a shard."""
    H, G = take_heads(X, heads), np.zeros((hi - lo, len(heads)))
    csr_gram_rows(H.data, H.indices, H.indptr, lo, G)
    return G


def multiply_tails(X: sparse.csr_array, heads: np.ndarray) -> sparse.csr_array:
    """(m,d) products of the input columns `heads` with the others, over a shard."""
    is_tail = np.ones(X.shape[1], bool)
    is_tail[heads] = False
    tails = keep_stored(X, (X.data != 0) & is_tail[X.indices])
    return take_heads(X, heads).T.tocsr() @ tails


def add_sparse(results: list[sparse.csr_array]) -> sparse.csr_array:
    return functools.reduce(operator.add, results)


# ---- sides --------------------------------------------------------------------------------------------------------


def goes_whole(side: Side, bounds: np.ndarray, workers: int) -> np.ndarray:
    """(shards of the other side,) whether they are sent as they are, or only the rows that each unit needs.

    A worker keeps a whole shard for all units it has, so that is less unless these need few of its rows.
    """
    rows = np.diff(bounds)
    return (rows <= SMALL_SHARD_ROWS) | (side.routes.sum(axis=0) >= rows * workers)


def take_together(side: Side, cells: Sequence[int], other: Side, tasks: Tasks) -> np.ndarray:
    """The shards at which a run of shards begins that are taken as one, and their number."""
    count = len(side.bounds) - 1
    if not tasks.costly or not goes_whole(side, other.bounds, tasks.workers).all():
        return np.arange(count + 1)
    of = [unit.shard for unit in side.units]
    weight, is_cut = np.bincount(of, cells, count), np.bincount(of, minlength=count) > 1
    goal = max(1.0, min(MAX_JOINED_CELLS, weight.sum() / (SHARDS_PER_THREAD * tasks.threads)))
    turn = (np.cumsum(weight) - weight / 2) // goal
    begins = (np.diff(turn) > 0) | is_cut[1:] | is_cut[:-1]
    return np.concatenate([[0], 1 + np.flatnonzero(begins), [count]])


def take_side(side: Side, runs: np.ndarray, other_runs: np.ndarray) -> Side:
    """A side, its runs of shards taken as one, and those of the other side."""
    units = [u._replace(shard=int(np.searchsorted(runs, u.shard, side="right")) - 1) for u in side.units]
    return side._replace(
        bounds=side.bounds[runs], units=units, routes=np.add.reduceat(side.routes, other_runs[:-1], axis=1)
    )
