"""Half-steps over partitioned ratings: one task a shard, given the factors of the other side's shards.

solve      the ridge regressions of a shard's rows, on what its cells need of the other side
pick       the rows of one factor shard that one unit needs, where the shard is; whole shards go as they are
sum_cells  of a row that is cut: VᵀV, Vᵀt and tᵀt of some of its cells, V and t being their weighted features and
           targets; the sums stand for the row, as a triangle R with RᵀR = VᵀV does for any V
gram       ZᵀZ of a shard, for models in which every cell counts
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.partitioned._files import missing_message, read_arrays, write_array
from twofold.completion.partitioned._layout import Side, read_needs, read_unit
from twofold.completion.partitioned.ratings import PartitionedRatings
from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.engine.tasks import Saved, Tasks, add_results
from twofold.core.files.headers import reads_headers
from twofold.core.numerics.alternating_ridge import (
    Ridge,
    features,
    hold_rows,
    multiply_block,
    per_feature,
    solve_rows,
    weigh_cells,
)

LITTLE = 2**10  # rows of a shard up to which it is always sent whole
CHUNK = 2**15  # cells of a heavy row at a time


class Shard(NamedTuple):
    """Factors of a run of rows, what their cells cost with their own ridge, and that ridge term alone."""

    factors: np.ndarray  # (rows,p)
    cost: float = 0.0
    held: float = 0.0


class Picked(NamedTuple):
    """Some of a shard's rows."""

    factors: np.ndarray


class How(NamedTuple):
    """What a half-step is: k factors, offsets, ridge and solver; `alpha` where stored counts are weights."""

    k: int
    mean: float
    unit: float
    ridge: Ridge
    steps: int = 0
    size: int = 0
    alpha: float | None = None


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

    def local(self) -> list[Any]:
        return [(array,) for array in self.arrays()]


# ---- the tasks ----------------------------------------------------------------------------------------------------


def read_weighted(folder: Path, side: str, u: int, alpha: float | None) -> tuple[sparse.csr_array, np.ndarray]:
    """The targets of a unit's cells, and their weights."""
    X = read_unit(folder, side, u)
    if alpha is None:
        return X, np.ones_like(X.data)
    W = (X * X.dtype.type(alpha)).tocsr()
    W.eliminate_zeros()
    return sparse.csr_array(((1 + W.data) / W.data, W.indices, W.indptr), shape=W.shape), W.data


def pick(folder: Path, side: str, u: int, q: int, first: int, shard: Shard) -> Picked:
    """The rows of factor shard q, which begins at row `first`, that unit u needs."""
    need, starts = read_needs(folder, side, u)
    return Picked(shard.factors[need[starts[q] : starts[q + 1]] - first])


def join(folder: Path, side: str, u: int, bounds: np.ndarray, sources: list[Shard | Picked]) -> np.ndarray:
    """The factor rows that unit u needs, of the shards it needs any of."""
    need, starts = read_needs(folder, side, u)
    asked, at = np.flatnonzero(np.diff(starts)), 0
    out = np.empty((len(need), sources[0].factors.shape[1]), sources[0].factors.dtype)
    for q, source in zip(asked, sources, strict=True):
        rows, count = source.factors, int(starts[q + 1] - starts[q])
        if len(rows) > count:
            rows = rows[need[starts[q] : starts[q + 1]] - bounds[q]]
        out[at : at + count] = rows
        at += count
    return out


def solve(
    folder: Path, side: str, u: int, bounds: np.ndarray, how: How, mine: Shard | None, base: Any, sources: list[Any]
) -> Shard:
    """The rows of a shard that is one unit."""
    X, w = read_weighted(folder, side, u, how.alpha)
    seen = look(join(folder, side, u, bounds, sources), how)
    start = np.zeros((X.shape[0], seen[0].shape[1]), seen[0].dtype) if mine is None else mine.factors
    U, cost = solve_rows(X, w, start, settle(base), *seen, how.ridge, how.steps, how.size)
    return Shard(U, float(cost.sum()), hold(U, weigh_cells(X, w), how.ridge))


def look(other: np.ndarray, how: How) -> tuple[np.ndarray, np.ndarray]:
    """What rows regress on, and the offsets."""
    if how.alpha is not None:
        return other, np.zeros(len(other), other.dtype)
    return features(other, how.k, how.mean, how.unit)


def hold(U: np.ndarray, mass: np.ndarray, ridge: Ridge) -> float:
    """The ridge term of these rows."""
    held = per_feature(hold_rows(mass, ridge), U.shape[1])
    return float((held * U.astype(float) ** 2).sum())


class Sums(NamedTuple):
    """What some cells of one row add up to."""

    G: np.ndarray  # (p+1,p+1) of features and targets, weighted
    mass: float


def sum_cells(folder: Path, side: str, u: int, bounds: np.ndarray, how: How, sources: list[Any]) -> Sums:
    """Of the cells of a unit, all of one row."""
    X, w = read_weighted(folder, side, u, how.alpha)
    Z, offset = look(join(folder, side, u, bounds, sources), how)
    p = Z.shape[1]
    G = np.zeros((p + 1, p + 1))
    for a in range(0, X.nnz, CHUNK):
        at, x = X.indices[a : a + CHUNK], X.data[a : a + CHUNK]
        V = np.column_stack([Z[at], x - offset[at]]).astype(np.float64)
        V *= np.sqrt(w[a : a + CHUNK].astype(np.float64))[:, None]
        G += V.T @ V
    return Sums(G, float(w.sum(dtype=np.float64)))


def solve_sums(how: How, mine: Shard | None, base: np.ndarray | None, sums: Sums, dtype: np.dtype) -> Shard:
    """One row from the sums of its cells, by p cells that have the same sums."""
    p, G = len(sums.G) - 1, settle(sums.G)
    values, Q = np.linalg.eigh(G[:p, :p])
    roots = np.sqrt(np.maximum(values, 0.0))
    there = roots > 1e-12 * max(roots.max(), 1e-300)
    targets = np.where(there, (Q.T @ G[:p, p]) / np.where(there, roots, 1.0), 0.0)
    Z = np.ascontiguousarray((Q * roots).T, dtype=dtype)
    X = sparse.csr_array((targets.astype(dtype), np.arange(p), np.array([0, p])), shape=(1, p))
    start = np.zeros((1, p), dtype) if mine is None else mine.factors
    given = (np.ones(p, dtype), start, settle(base), Z, np.zeros(p, dtype), how.ridge, how.steps, how.size)
    mass = np.array([sums.mass])
    U, cost = solve_rows(X, *given, mass=mass)
    rest = float(G[p, p] - (targets**2).sum())  # what no factor explains
    return Shard(U, float(cost.sum()) + rest, hold(U, mass, how.ridge))


def gram(shard: Shard) -> np.ndarray:
    F = settle(shard.factors)
    return F.T @ F


def settle(array: Any) -> Any:
    """An array as this process would have made it: what came over the network may be unaligned, which changes the order
    of sums, or not writable, for which kernels would be compiled again."""
    return None if array is None else np.require(array, requirements=["A", "W"])


def multiply(
    folder: Path, side: str, u: int, bounds: np.ndarray, mean: float, weighted: bool, sources: list[Any]
) -> Shard:
    """(X − mean) Z over the cells of a unit."""
    X, Z = read_unit(folder, side, u), join(folder, side, u, bounds, sources)
    return Shard(multiply_block(X, np.ones_like(X.data), Z, mean, weighted))


def get_cost(shard: Shard) -> tuple[float, float]:
    return shard.cost, shard.held


def save(path: Path, shard: Shard) -> None:
    write_array(path, shard.factors)


def sum_values(folder: Path, u: int, mean: float | None, alpha: float | None) -> np.ndarray:
    """Of the cells of a unit of rows: Σx, Σ(x − mean)² and their number; with `alpha`, Σw, Σw + 1 − w x² and n."""
    X, w = read_weighted(folder, "rows", u, alpha)
    x = X.data.astype(np.float64)
    if alpha is not None:
        w = w.astype(np.float64)
        return np.array([w.sum(), (w + 1).sum() - (w * x**2).sum(), X.nnz])
    return np.array([x.sum(), 0.0 if mean is None else ((x - mean) ** 2).sum(), X.nnz])


def find_least(folder: Path, u: int) -> float:
    """The least value in a unit of rows."""
    return float(read_arrays(folder / "rows" / f"{u:05}.npz", "values")[0].min(initial=np.inf))


# ---- sides --------------------------------------------------------------------------------------------------------


class Sweeper:
    """The half-steps of one fit."""

    def __init__(self, ratings: PartitionedRatings, tasks: Tasks):
        self.ratings, self.tasks, self.folder = ratings, tasks, ratings.folder

    def other(self, side: Side) -> Side:
        return self.ratings.cols if side is self.ratings.rows else self.ratings.rows

    def sources(self, side: Side, u: int, other: Sequence[Any]) -> list[Any]:
        """What a unit is sent of each factor shard: nothing, the rows it needs, or all of them.

        A worker keeps a whole shard for all units it has, so that is less unless these need few of its rows.
        """
        bounds, out = self.other(side).bounds, []
        for q in np.flatnonzero(side.routes[u]).tolist():
            first, last = int(bounds[q]), int(bounds[q + 1])
            if last - first <= LITTLE or side.routes[:, q].sum() >= (last - first) * self.tasks.workers:
                out.append(other[q])
            else:
                out.append(self.tasks.submit(pick, self.folder, side.name, u, q, first, other[q]))
        return out

    def each(self, side: Side, light: Callable[..., Any], heavy: Callable[..., Any], other: Sequence[Any]) -> Shards:
        """light(u, shard, sources) for shards that are one unit; heavy(shard, [(u, sources)]) for rows that are cut."""
        out = []
        for s in range(len(side.bounds) - 1):
            units = side.units_of(s)
            if len(units) == 1:
                out.append(light(units[0], s, self.sources(side, units[0], other)))
            else:
                out.append(heavy(s, [(u, self.sources(side, u, other)) for u in units if side.routes[u].any()]))
        return Shards(out, self.tasks)

    def half(self, side: Side, mine: Sequence[Any] | None, other: Sequence[Any], how: How) -> Shards:
        """One side's factors given the other's."""
        tasks, bounds = self.tasks, self.other(side).bounds
        base = tasks.reduce([tasks.submit(gram, shard) for shard in other]) if how.alpha is not None else None

        def light(u: int, s: int, sources: list[Any]) -> Any:
            return tasks.submit(
                solve, self.folder, side.name, u, bounds, how, None if mine is None else mine[s], base, sources
            )

        def heavy(s: int, units: list[tuple[int, list[Any]]]) -> Any:
            given = ((self.folder, side.name, u, bounds, how, sources) for u, sources in units)
            sums = tasks.reduce([tasks.submit(sum_cells, *one) for one in given])
            own = None if mine is None else mine[s]
            return tasks.submit(solve_sums, how, own, base, sums, self.ratings.dtype)

        return self.each(side, light, heavy, other)

    def product(self, side: Side, Z: Sequence[Any], mean: float, weighted: bool) -> Shards:
        """(X − mean) Z."""
        tasks, bounds = self.tasks, self.other(side).bounds

        def light(u: int, s: int, sources: list[Any]) -> Any:
            return tasks.submit(multiply, self.folder, side.name, u, bounds, mean, weighted, sources)

        def heavy(s: int, units: list[tuple[int, list[Any]]]) -> Any:
            return tasks.reduce([light(u, s, sources) for u, sources in units])

        return self.each(side, light, heavy, Z)

    def costs(self, shards: Shards) -> np.ndarray:
        """Σ cost and Σ held of the shards, along the fixed tree."""
        return np.array(add_results(self.tasks.gather([self.tasks.submit(get_cost, shard) for shard in shards])))

    def values(self, mean: float | None, alpha: float | None = None) -> np.ndarray:
        """The sums of :func:`sum_values` over all cells."""
        count = len(self.ratings.rows.units)
        parts = [self.tasks.submit(sum_values, self.folder, u, mean, alpha) for u in range(count)]
        return add_results(self.tasks.gather(parts))

    def put(self, name: str, side: Side, pieces: Iterator[np.ndarray]) -> Shards:
        """Factors that come from here, as files."""
        paths = self.paths(name, side)
        for path, piece in zip(paths, pieces, strict=True):
            write_array(path, piece)
        return Shards([self.tasks.load(File(path)) for path in paths], self.tasks)

    def persist(self, name: str, side: Side, shards: Shards) -> Shards:
        """Write factors where they are; what is made of them next begins with the files."""
        paths = self.paths(name, side)
        self.tasks.gather([self.tasks.submit(save, *both) for both in zip(paths, shards, strict=True)])
        return Shards([self.tasks.load(File(path)) for path in paths], self.tasks)

    def paths(self, name: str, side: Side) -> list[Path]:
        at = self.folder / "factors"
        if not self.folder.is_dir():
            raise InputError(missing_message(at / name))
        at.mkdir(exist_ok=True)
        return [at / f"{name}.{side.name}.{s:05}.npy" for s in range(len(side.bounds) - 1)]
