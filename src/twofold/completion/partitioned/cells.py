"""Cells partitioned on disk: the same sweeps as in memory, by tasks over shards in place of arrays.

On a cluster, where a task costs some milliseconds whatever it does, small shards that lie together are taken as one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from scipy import sparse

from twofold.completion.cells import NEGATIVE, NO_COUNTS, Cells, Costs, HalfStep, HalfSteps, Lines, Sums
from twofold.completion.partitioned import _tasks as tasks
from twofold.completion.partitioned._layout import Side, missing_message, write_array
from twofold.completion.partitioned._tasks import File, Shards
from twofold.completion.partitioned.ratings import PartitionedRatings
from twofold.completion.partitioned.stored_rows import StoredRows
from twofold.core import loop
from twofold.core.callbacks import EarlyStopping
from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.known_cells import Observed, see_both_sides
from twofold.core.engine.tasks import SUMS_PER_TASK, add_results, find_tasks
from twofold.core.numerics.alternating_ridge import State
from twofold.core.sklearn_shim import callbacks_of

SAMPLE_RATINGS = 2**20  # by which λ and the number of factors are found
SWEEPS_PER_FILE = 5  # after which factors are written, and recipes begin with the files
GRAM_NUMBERS = 2**16, 2**23  # numbers of the Gram matrix that are summed at a time, as the budget allows


def count_task_bytes(ratings: PartitionedRatings, p: int) -> int:
    """Estimate the bytes of the largest task: its cells, what they need of the other side, and its own rows."""
    item, most = ratings.dtype.itemsize, 0
    for side in (ratings.rows, ratings.cols):
        cells = np.array(ratings.cells[side.name])
        most = max(most, int((cells * 2 * (item + 4) + 3 * side.routes.sum(axis=1) * p * item).max()))
    return most


def keeps_on_disk(ratings: PartitionedRatings, p: int) -> bool:
    """Return True if fitted factors stay on disk, mapped: they would take more than a quarter of the budget."""
    return sum(ratings.shape) * p * ratings.dtype.itemsize > config().memory // 4


def split_rows(Z: np.ndarray, side: Side) -> Iterator[np.ndarray]:
    return (Z[a:b] for a, b in pairwise(side.bounds))


class PartitionedCells(Cells):
    """Cells of partitioned ratings for one fit, whose lines have p features; features are shards."""

    def __init__(self, model: Any, ratings: PartitionedRatings, sample_weight: Any, p: int):
        if sample_weight is not None:
            raise InputError("sample_weight is for tables: partitioned ratings all count the same. Leave it out.")
        if getattr(model, "normalize", None) is not None:
            raise InputError(
                f"normalize={model.normalize!r} is for tables in memory. Leave it out for partitioned ratings."
            )
        model.n_rows_, model.n_features_in_ = ratings.shape
        for name in ("normalization_", "feature_names_in_"):
            model.__dict__.pop(name, None)
        on_disk = keeps_on_disk(ratings, p)
        if on_disk and ratings._temporary is not None:
            size = sum(ratings.shape) * p * ratings.dtype.itemsize
            raise InputError(
                f"the factors take {size / 1e6:,.0f} MB, more than a quarter of the memory budget, and would stay in a "
                "temporary folder. Give PartitionedRatings a folder to keep them in, or raise "
                "twofold.config(memory=...)."
            )
        self.source, self.folder, self.n_cells = ratings, ratings.folder, ratings.n_ratings
        self.shape, self.dtype = ratings.shape, ratings.dtype
        self.tasks = find_tasks(count_task_bytes(ratings, p), not on_disk)
        rows, cols = ratings.rows, ratings.cols
        runs = [
            tasks.take_together(side, ratings.cells[side.name], other, self.tasks)
            for side, other in ((rows, cols), (cols, rows))
        ]
        self.sides = {"rows": tasks.take_side(rows, *runs), "cols": tasks.take_side(cols, *runs[::-1])}

    def sign(self) -> str:
        return self.source.sign()

    def other(self, side: str) -> Side:
        return self.sides["rows" if side == "cols" else "cols"]

    # ---- alternating least squares -----------------------------------------------------------------------------

    def measure(self) -> tuple[float, float, float]:
        (n, d), (total, _, count) = self.shape, self._sum_values(None)
        mean = total / count
        spread = np.sqrt(self._sum_values(mean)[1] / count)
        spread = float(spread) if spread > 1e-12 * abs(mean) else 1.0
        return float(mean), spread, float(np.sqrt(count / n * (count / d)))

    def _sum_values(self, mean: float | None, alpha: float | None = None) -> np.ndarray:
        found = [self.tasks.submit(tasks.sum_values, self.folder, some, mean, alpha) for some in self._list_units()]
        return add_results([one for part in self.tasks.gather(found) for one in part])

    def _list_units(self) -> list[list[int]]:
        """The units of the rows, as tasks take them."""
        return [self.sides["rows"].units_of(s) for s in range(len(self.sides["rows"].bounds) - 1)]

    def as_counts(self, alpha: float) -> tuple[Cells, float, float]:
        found = [self.tasks.submit(tasks.find_least, self.folder, units) for units in self._list_units()]
        least = min(self.tasks.gather(found))
        if least < 0:
            raise InputError(f"Negative values in data passed to ImplicitALS: one is {least:g}, {NEGATIVE}")
        mass, constant, cells = self._sum_values(None, alpha)
        if not cells:
            raise InputError(NO_COUNTS)
        return self, float(mass), float(constant)

    def sample(self) -> Observed:
        n, share = self.shape[0], min(1.0, SAMPLE_RATINGS / self.n_cells)
        some = np.unique(np.linspace(0, n - 1, max(2, int(share * n))).astype(np.int64)) if share < 1 else np.arange(n)
        X = self._take_rows(some, tasks.take_rows)
        return see_both_sides(X, sparse.csr_array((np.ones_like(X.data), X.indices, X.indptr), shape=X.shape))

    def list_sizes(self, side: str) -> list[int]:
        return np.diff(self.sides[side].bounds).tolist()

    def place(self, side: str, pieces: Iterable[np.ndarray]) -> Shards:
        return self._place("begin", side, pieces)

    def _place(self, name: str, side: str, pieces: Iterable[np.ndarray]) -> Shards:
        """Features that come from here, as files."""
        paths = self.list_paths(name, side)
        for path, piece in zip(paths, pieces, strict=True):
            write_array(path, piece)
        return Shards([self.tasks.load(File(path)) for path in paths], self.tasks)

    def _persist(self, name: str, side: str, shards: Shards) -> Shards:
        """Write features where they are; what is made of them next begins with the files."""
        paths = self.list_paths(name, side)
        self.tasks.gather([self.tasks.submit(tasks.save, *both) for both in zip(paths, shards, strict=True)])
        return Shards([self.tasks.load(File(path)) for path in paths], self.tasks)

    def list_paths(self, name: str, side: str) -> list[Path]:
        at = self.folder / "factors"
        if not self.folder.is_dir():
            raise InputError(missing_message(at / name))
        at.mkdir(exist_ok=True)
        return [at / f"{name}.{side}.{s:05}.npy" for s in range(len(self.sides[side].bounds) - 1)]

    def multiply_square(self, Z: np.ndarray, mean: float) -> np.ndarray:
        sent = self._place("start", "cols", split_rows(Z, self.sides["cols"]))
        U = self._multiply("rows", sent, mean, False)
        return np.concatenate(list(self._multiply("cols", U, mean, True).arrays()))

    def _multiply(self, side: str, Z: Sequence[Any], mean: float, weighted: bool) -> Shards:
        """(X − mean) Z."""

        def light(units: list[int], where: Any, sources: list[Any], s: int) -> Any:
            sizes = self.sides[side].count_rows(units)
            return self.tasks.submit(tasks.multiply, self.folder, side, sizes, where, mean, weighted, sources)

        def heavy(s: int, ready: list[tuple[list[int], Any, list[Any]]]) -> Any:
            return self.tasks.reduce([light(*one, s) for one in ready])

        return self._submit_shards(side, light, heavy, Z)

    def _submit_shards(
        self, side: str, light: Callable[..., Any], heavy: Callable[..., Any], other: Sequence[Any]
    ) -> Shards:
        """light(units, shard, given, sources) for shards of whole rows; heavy(shard, [(unit, given, sources)]) for rows
        that are cut. `given` is where the other side's shards begin, and which of them are the sources."""
        own, bounds, out = self.sides[side], self.other(side).bounds, []
        for s in range(len(own.bounds) - 1):
            units = own.units_of(s)
            is_cut = len({own.units[u].first for u in units}) < len(units)
            ready = []
            for some in [[u] for u in units] if is_cut else [units]:
                asked = np.flatnonzero(own.routes[some].any(axis=0))
                if len(asked) or not is_cut:
                    ready.append((some, (bounds, asked), self._find_sources(side, some, asked, other)))
            out.append(heavy(s, ready) if is_cut else light(*ready[0], s))
        return Shards(out, self.tasks)

    def _find_sources(self, side: str, units: Sequence[int], asked: np.ndarray, other: Sequence[Any]) -> list[Any]:
        """The parts of the asked factor shards that units are sent: the rows one unit needs, or all of them."""
        bounds, out = self.other(side).bounds, []
        whole = tasks.goes_whole(self.sides[side], bounds, self.tasks.workers)
        for q in asked.tolist():
            if len(units) > 1 or whole[q]:
                out.append(other[q])
            else:
                rows = int(bounds[q]), int(bounds[q + 1])
                out.append(self.tasks.submit(tasks.pick, self.folder, side, units[0], *rows, other[q]))
        return out

    def half_step(self, side: str, current: Any, other: Any, step: HalfStep) -> tuple[Any, Costs]:
        base = None if step.alpha is None else self._multiply_gram(self.other(side), other)

        def light(units: list[int], where: Any, sources: list[Any], s: int) -> Any:
            own, sizes = None if current is None else current[s], self.sides[side].count_rows(units)
            return self.tasks.submit(tasks.solve, self.folder, side, sizes, where, step, own, base, sources)

        def heavy(s: int, ready: list[tuple[list[int], Any, list[Any]]]) -> Any:
            sums = self.tasks.reduce(
                [
                    self.tasks.submit(tasks.sum_cells, self.folder, side, u, where, step, some)
                    for (u,), where, some in ready
                ]
            )
            own = None if current is None else current[s]
            return self.tasks.submit(tasks.solve_sums, step, own, base, sums, self.dtype)

        shards = self._submit_shards(side, light, heavy, other)
        return shards, lambda: self._add_costs(shards)

    def _add_costs(self, shards: Shards) -> tuple[float, float]:
        """The sums of cost and of its ridge term, along the fixed tree."""
        found = self.tasks.gather([self.tasks.submit(tasks.get_costs, shard) for shard in shards])
        cost, penalty = np.array(add_results([one for some in found for one in some]))
        return float(cost), float(penalty)

    def _multiply_gram(self, side: Side, shards: Sequence[Any]) -> Any:
        """FᵀF of all features of a side, shard by shard of the partition."""
        fine = getattr(self.source, side.name).bounds
        cuts = (fine[(fine >= a) & (fine <= b)] - a for a, b in pairwise(side.bounds))
        grams = [self.tasks.submit(tasks.gram, *both) for both in zip(cuts, shards, strict=True)]
        return self.tasks.submit(tasks.add_grams, grams)

    def run(
        self, model: Any, steps: HalfSteps, start: State, seed: int, constant: float = 0.0, **attributes: Any
    ) -> None:
        keep = any(isinstance(c, EarlyStopping) for c in callbacks_of(model))  # it may come back to what was written
        small = not keeps_on_disk(self.source, steps.rows.k + 1)

        def sweep(state: State, t: int) -> loop.Sweep:
            found = self.sweep(self._revive(state), steps, constant)
            if (t + 1) % SWEEPS_PER_FILE and small:
                return found
            name = f"sweep-{t + 1:05}"
            kept = State(self._persist(name, "rows", found.state.U), self._persist(name, "cols", found.state.Z))
            for path in () if keep else (self.folder / "factors").glob("*.npy"):
                if not path.name.startswith(name):
                    path.unlink(missing_ok=True)
            return found._replace(state=kept)

        def to_attributes(state: State) -> dict[str, Any]:
            U, Z = self._revive(state)
            if steps.exact != steps.rows:
                U, _ = self.half_step("rows", U, Z, steps.exact)
            rows, cols = self._collect("rows", U, steps.rows), self._collect("cols", Z, steps.rows)
            found = {"components_": np.ascontiguousarray(cols[0].T) if small else cols[0].T, "row_factors_": rows[0]}
            return {**found, "row_bias_": rows[1], "column_bias_": cols[1], **attributes}

        try:
            loop.run(model, sweep, start, fitted=to_attributes, X=self.source, seed=seed, fingerprint=self.sign)
        finally:
            shutil.rmtree(self.folder / "factors", ignore_errors=True)

    def _revive(self, state: State) -> State:
        """Shards as they are, or those that a checkpoint gave back, however they were cut, as files."""
        if isinstance(state.U, Shards):
            return state
        whole = {
            side: np.concatenate([item[0] for item in found]) for side, found in zip(self.sides, state, strict=True)
        }
        return State(*(self._place("resumed", name, split_rows(Z, self.sides[name])) for name, Z in whole.items()))

    def _collect(self, name: str, shards: Shards, step: HalfStep) -> tuple[np.ndarray, np.ndarray]:
        """(n,k) factors and (n,) biases: in memory, or mapped from files of the folder if they are too large."""
        side, k, path = self.sides[name], step.k, None
        n = int(side.bounds[-1])
        bias = np.zeros(n, self.dtype)
        factors: np.ndarray
        if keeps_on_disk(self.source, k + 1):
            path = self.folder / f"factors_of_{name}.{uuid4().hex[:8]}.npy"  # other models have theirs there
            factors = np.lib.format.open_memmap(path, "w+", self.dtype, (n, k))
        else:
            factors = np.empty((n, k), self.dtype)
        for a, b, found in zip(side.bounds[:-1], side.bounds[1:], shards.arrays(), strict=True):
            factors[a:b] = found[:, :k]
            if found.shape[1] > k:
                bias[a:b] = found[:, k] * self.dtype.type(step.unit)
        if path is not None:
            del factors
            factors = np.load(path, mmap_mode="r")
        return factors, bias

    # ---- shard by shard ----------------------------------------------------------------------------------------

    def submit(self, side: str, s: int, fn: Callable[..., Any], *args: Any) -> Any:
        """fn(cells, …) for one shard of the partition."""
        own = getattr(self.source, side)._replace(routes=np.empty((0, 0)))  # which no such task needs
        given = (self.folder, own, own.units_of(s), self.shape[side == "rows"])
        return self.tasks.submit(tasks.read_and_call, fn, *given, *args)

    def count_shards(self, side: str) -> int:
        return len(getattr(self.source, side).bounds) - 1

    def map(self, side: str, fn: Callable[..., Any], *args: Any) -> list[Any]:
        return [self.submit(side, s, fn, *args) for s in range(self.count_shards(side))]

    def _take_rows(self, wanted: np.ndarray, fn: Callable[..., Any], *args: Any) -> sparse.csr_array:
        """Some rows, ascending, one below the other: fn(…, rows of the shard, …)."""
        handles = []
        for s, (a, b) in enumerate(pairwise(self.source.rows.bounds.tolist())):
            mine = wanted[(wanted >= a) & (wanted < b)] - a
            if len(mine):
                handles.append(self.submit("rows", s, fn, mine, *args))
        return sparse.vstack(self.tasks.gather(handles), format="csr")

    def sum_lines(self) -> Sums:
        total, _, cells = self._sum_values(None)
        center, square, lines = float(total / cells), 0.0, []
        for side in ("rows", "cols"):
            found = self.tasks.gather(self.map(side, tasks.sum_lines, center))
            mass, sums = (np.concatenate(part) for part in list(zip(*found, strict=True))[:2])
            square = float(add_results([part[2] for part in found]))
            lines.append(Lines(Incidence(self, side), mass, sums))
        return Sums(lines[0], lines[1], center, square, int(cells))

    def count_columns(self) -> tuple[np.ndarray, float]:
        counts, _, root = self.count_seen()
        return counts.astype(np.float64), float(root.sum())

    def count_seen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = self.tasks.gather(self.map("cols", tasks.count_seen))
        counts, sums = (np.concatenate(part) for part in zip(*found, strict=True))
        of_rows = np.concatenate([part[0] for part in self.tasks.gather(self.map("rows", tasks.count_seen))])
        return counts, sums, (of_rows > 0).astype(np.float64)

    def multiply_gram(self, heads: np.ndarray) -> np.ndarray:
        m = len(heads)
        G = np.zeros((m, m), self.dtype)
        step = max(1, int(np.clip(config().memory // (16 * SUMS_PER_TASK), *GRAM_NUMBERS)) // m)
        for lo in range(0, m, step):
            hi = min(lo + step, m)
            G[lo:hi] = self._reduce_rows(tasks.sum_block, heads, lo, hi)
        return G

    def _reduce_rows(self, fn: Callable[..., Any], *args: Any) -> Any:
        """The sum over the shards of the rows, along the fixed tree; a run of them is added before the next are begun,
        so that few results wait in memory."""
        runs, shards = [], self.count_shards("rows")
        for a in range(0, shards, SUMS_PER_TASK):
            some = [self.submit("rows", s, fn, *args) for s in range(a, min(a + SUMS_PER_TASK, shards))]
            runs.append(self.tasks.submit(add_results, some))
        return self.tasks.gather([self.tasks.reduce(runs)])[0]

    def take_seen(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return self._take_rows(rows, tasks.take_rows, cols).toarray()

    def multiply_tails(self, heads: np.ndarray) -> sparse.csr_array:
        products = self.map("rows", tasks.multiply_tails, heads)
        return self.tasks.gather([self.tasks.reduce(products, tasks.add_sparse)])[0]

    def keep_rows(self) -> Callable[[], Any]:
        fits = self.n_cells * (self.dtype.itemsize + 4) <= config().memory // 4
        if not fits and self.source._temporary is not None:
            raise InputError(
                f"the {self.n_cells:,} ratings, which predict(rows, cols) needs, take more than a quarter of the "
                "memory budget and would stay in a temporary folder. Give PartitionedRatings a folder to keep them in, "
                "or raise twofold.config(memory=...)."
            )
        rows = StoredRows(self.source)
        return lambda: rows[np.arange(self.shape[0])] if fits else rows


class Incidence:
    """(lines, other side's lines) 1 where there is a rating: known by its products alone, a task for every shard."""

    def __init__(self, cells: PartitionedCells, side: str):
        self.cells, self.side, self.turn = cells, side, count()

    def __matmul__(self, other: np.ndarray) -> np.ndarray:
        # Two files take turns: no task reads the one before any longer.
        path = self.cells.list_paths(f"biases-{next(self.turn) % 2}", self.side)[0]
        write_array(path, other)
        handles = self.cells.map(self.side, tasks.sum_others, self.cells.tasks.load(File(path)))
        return np.concatenate(self.cells.tasks.gather(handles))
