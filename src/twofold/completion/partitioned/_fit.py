"""Fits of ALS and ImplicitALS over partitioned ratings: the sweeps of memory, with shards in place of arrays."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from scipy import sparse

from twofold.completion._auto_ridge import describe_ridges, get_power, start_path
from twofold.completion.als import ALS
from twofold.completion.implicit_als import NOTHING, SIGNED, ImplicitALS, draw_start
from twofold.completion.partitioned._half_steps import How, Shards, Sweeper, find_least
from twofold.completion.partitioned._layout import Side
from twofold.completion.partitioned._rows import ShardMap
from twofold.completion.partitioned.ratings import PartitionedRatings
from twofold.core import loop
from twofold.core.callbacks import EarlyStopping
from twofold.core.checks import InputError
from twofold.core.config import config
from twofold.core.data.known_cells import sides
from twofold.core.engine.tasks import find_tasks
from twofold.core.numerics.alternating_ridge import Plan, planned, point_columns
from twofold.core.seeds import generator, seed_of
from twofold.core.sklearn_shim import callbacks_of

FITTING = ("ALS", "ImplicitALS", "EASE", "Biases", "Popularity")
SAMPLE = 2**20  # ratings by which λ and the number of factors are found
EVERY = 5  # sweeps after which factors are written, and recipes begin anew


class State(NamedTuple):
    """Both factors, shard by shard."""

    U: Any
    Z: Any


def open_ratings(
    given: Any, model: Any, columns: dict[str, str | None], duplicates: str, holdout: float
) -> PartitionedRatings:
    """Ratings for a recommender with this model, which must be one that fits them where they are, or None."""
    if model is not None and type(model).__name__ not in FITTING:
        raise InputError(
            f"ratings beyond one memory need a model that fits them there, not {model!r}. Give Recommender one of "
            f"{', '.join(FITTING[:-1])} and {FITTING[-1]}, such as ImplicitALS(64), or none, to have it chosen."
        )
    if isinstance(given, PartitionedRatings):
        return given
    folder = tempfile.TemporaryDirectory(prefix="twofold-ratings-")
    how: dict[str, Any] = {**columns, "duplicates": duplicates, "holdout": holdout}
    found = PartitionedRatings(given, folder.name, **how)
    found.keeper = folder  # it lasts as long as the recommender, so that factors may stay in it
    return found


def begin_fit(model: Any, ratings: PartitionedRatings, sample_weight: Any, p: int) -> Sweeper:
    """Sweeps over these ratings, after what cannot be done with them is refused."""
    if sample_weight is not None:
        raise InputError("sample_weight is for tables: partitioned ratings all count the same. Leave it out.")
    if getattr(model, "normalize", None) is not None:
        raise InputError(
            f"normalize={model.normalize!r} is for tables in memory. Leave it out for partitioned ratings."
        )
    model.n_rows_, model.n_features_in_ = ratings.shape
    for name in ("normalization_", "feature_names_in_"):
        model.__dict__.pop(name, None)
    if keeps_on_disk(ratings, p) and ratings._temporary is not None:
        size = sum(ratings.shape) * p * ratings.dtype.itemsize
        raise InputError(
            f"the factors take {size / 1e6:,.0f} MB, more than a quarter of the memory budget, and would stay in a "
            "temporary folder. Give PartitionedRatings a folder to keep them in, or raise twofold.config(memory=...)."
        )
    return Sweeper(ratings, find_tasks(bytes_of_task(ratings, p), not keeps_on_disk(ratings, p)))


def bytes_of_task(ratings: PartitionedRatings, p: int) -> int:
    """What the largest task holds, about: its cells, what they need of the other side, and its own rows."""
    item = ratings.dtype.itemsize
    most = 0
    for side in (ratings.rows, ratings.cols):
        cells = np.array(ratings.cells[side.name])
        most = max(most, int((cells * 2 * (item + 4) + 3 * side.routes.sum(axis=1) * p * item).max()))
    return most


def keeps_on_disk(ratings: PartitionedRatings, p: int) -> bool:
    """Whether fitted factors are left on disk, mapped, because they would take more than a quarter of the budget."""
    return sum(ratings.shape) * p * ratings.dtype.itemsize > config().memory // 4


def run_sweeps(
    model: Any, sweeper: Sweeper, how: dict[str, How], start: State, seed: int, constant: float, extra: dict[str, Any]
) -> None:
    """The loop; `how` has the half-steps of "rows", of "cols" and the one that makes rows exact at the end."""
    ratings = sweeper.ratings
    keep = any(isinstance(c, EarlyStopping) for c in callbacks_of(model))  # it may come back to what was written
    small = not keeps_on_disk(ratings, how["rows"].k + 1)

    def sweep(state: State, t: int) -> loop.Sweep:
        U, Z = (revive(sweeper, name, shards) for name, shards in zip(("rows", "cols"), state, strict=True))
        Z = sweeper.half(sweeper.cols, Z, U, how["cols"])
        U = sweeper.half(sweeper.rows, U, Z, how["rows"])
        objective = float(sweeper.costs(U)[0] + sweeper.costs(Z)[1]) + constant
        if (t + 1) % EVERY == 0 or not small:
            name = f"sweep-{t + 1:05}"
            U, Z = (sweeper.persist(name, side, f) for side, f in ((sweeper.rows, U), (sweeper.cols, Z)))
            for path in () if keep else (ratings.folder / "factors").glob("*.npy"):
                if not path.name.startswith(name):
                    path.unlink(missing_ok=True)
        return loop.Sweep(State(U, Z), objective)

    def fitted(state: State) -> dict[str, Any]:
        U, Z = (revive(sweeper, name, shards) for name, shards in zip(("rows", "cols"), state, strict=True))
        if how["exact"] is not how["rows"]:  # so that a row folded in again gets its own factor back
            U = sweeper.half(sweeper.rows, U, Z, how["exact"])
        rows, cols = (collect(ratings, side, f, how["rows"]) for side, f in ((sweeper.rows, U), (sweeper.cols, Z)))
        found = {"components_": np.ascontiguousarray(cols[0].T) if small else cols[0].T, "row_factors_": rows[0]}
        return {**found, "row_bias_": rows[1], "column_bias_": cols[1], **extra}

    try:
        loop.run(model, sweep, start, fitted=fitted, X=ratings, seed=seed, fingerprint=ratings.sign)
    finally:
        shutil.rmtree(ratings.folder / "factors", ignore_errors=True)


def revive(sweeper: Sweeper, name: str, shards: Any) -> Shards:
    """Shards as they are, or those that a checkpoint gave back, however they were cut, as files."""
    if isinstance(shards, Shards):
        return shards
    side = getattr(sweeper, name)
    return sweeper.put("resumed", side, split(np.concatenate([item[0] for item in shards]), side))


def collect(ratings: PartitionedRatings, side: Side, shards: Shards, how: How) -> tuple[np.ndarray, np.ndarray]:
    """(n,k) factors and (n,) biases: in memory, or mapped from files of the folder if they are too large."""
    n, k, dtype = int(side.bounds[-1]), how.k, ratings.dtype
    factors, bias = np.empty((0, k), dtype), np.zeros(n, dtype)
    path: Path | None = None
    if keeps_on_disk(ratings, k + 1):
        path = ratings.folder / f"factors_of_{side.name}.{uuid4().hex[:8]}.npy"  # other models have theirs there
        factors = np.lib.format.open_memmap(path, "w+", dtype, (n, k))
    else:
        factors = np.empty((n, k), dtype)
    for a, b, found in zip(side.bounds[:-1], side.bounds[1:], shards.arrays(), strict=True):
        factors[a:b] = found[:, :k]
        if found.shape[1] > k:
            bias[a:b] = found[:, k] * dtype.type(how.unit)
    if path is not None:
        del factors
        factors = np.load(path, mmap_mode="r")
    return factors, bias


# ---- ALS ----------------------------------------------------------------------------------------------------------


def fit_als(model: ALS, ratings: PartitionedRatings, sample_weight: Any) -> ALS:
    """ALS as its class says it."""
    k, seed = model._rank(ratings.shape), seed_of(model.random_state)
    sweeper = begin_fit(model, ratings, sample_weight, k + model.biases)
    if isinstance(model.reg, str):
        plan, start, model.path_ = begin_with_sample(model, sweeper, seed)
    else:
        how: dict[str, Any] = {"reg": model.reg, "power": get_power(model.reg, model.reg_power)}
        how |= {"nonnegative": model.nonnegative, "biases": model.biases, "solver": model.solver}
        plan, model.path_ = planned(Measured(sweeper), k, **how), start_path()
        start = start_als(sweeper, plan, model.biases, 1 if model.reg >= 0.01 else 5, generator(seed))
    extra = {**describe_ridges(plan), "solver_": "cg" if plan.steps else "cholesky"}
    run_sweeps(model, sweeper, get_steps(plan), start, seed, 0.0, extra)
    return model


def begin_with_sample(model: ALS, sweeper: Sweeper, seed: int) -> tuple[Plan, State, dict[str, list]]:
    """The ridges, the number of factors and the start, as some users' ratings have them.

    λ is found for these, and is as many times what noise alone would ask for with all users: the largest singular value
    of noise with n_i cells a row and n_j a column, each divided by (n_i n_j)^(p/2), is about

        (n_i n_j)^(-p/2) (√n_i + √n_j)
    """
    ratings, (n, d) = sweeper.ratings, sweeper.ratings.shape
    share = min(1.0, SAMPLE / ratings.n_ratings)
    some = np.unique(np.linspace(0, n - 1, max(2, int(share * n))).astype(np.int64)) if share < 1 else np.arange(n)
    X = ShardMap(ratings, ratings.rows, sweeper.tasks).take(some)
    found = model._begin(sides(X, sparse.csr_array((np.ones_like(X.data), X.indices, X.indptr), shape=X.shape)), seed)
    plan, Z = found.plan, found.start.Z
    if share == 1:
        U = sweeper.put("begin", sweeper.rows, split(found.start.U, sweeper.rows))
        start = State(U, sweeper.put("begin", sweeper.cols, split(Z, sweeper.cols)))
        return plan._replace(cells=None), start, found.path
    of_rows, of_cols = ratings.n_ratings / n, ratings.n_ratings / d
    noise = [(of_rows * c) ** (-plan.ridge.power / 2) * (of_rows**0.5 + c**0.5) for c in (of_cols, X.nnz / d)]
    plan = plan._replace(cells=None, ridge=plan.ridge._replace(lam=plan.ridge.lam * noise[0] / noise[1]))
    return plan, start_rows(sweeper, split(Z, sweeper.cols), get_steps(plan)["rows"]), found.path


class Measured:
    """Partitioned ratings as the makers of plans see cells."""

    def __init__(self, sweeper: Sweeper):
        self.sweeper, self.shape, self.dtype = sweeper, sweeper.ratings.shape, sweeper.ratings.dtype

    def measure(self) -> tuple[float, float, float]:
        total, _, count = self.sweeper.values(None)
        mean = total / count
        spread = np.sqrt(self.sweeper.values(mean)[1] / count)
        (n, d), spread = self.shape, float(spread) if spread > 1e-12 * abs(mean) else 1.0
        return float(mean), spread, float(np.sqrt(count / n * (count / d)))


def get_steps(plan: Plan) -> dict[str, How]:
    """The half-steps of a plan."""
    rows = How(plan.k, plan.mean, float(np.sqrt(plan.spread)), plan.ridge, plan.steps)
    cols = rows._replace(ridge=plan.ridge._replace(last=plan.last))
    return {"rows": rows, "cols": cols, "exact": rows._replace(steps=0) if plan.steps else rows}


def start_als(sweeper: Sweeper, plan: Plan, biases: bool, turns: int, rng: np.random.Generator) -> State:
    """Column factors by a rough SVD, no biases, and the rows that suit them."""
    ratings, dtype = sweeper.ratings, sweeper.ratings.dtype

    def times(Z: np.ndarray) -> np.ndarray:
        sent = sweeper.put("start", sweeper.cols, split(Z, sweeper.cols))
        there = sweeper.product(sweeper.rows, sent, plan.mean, False)
        return np.concatenate(list(sweeper.product(sweeper.cols, there, plan.mean, True).arrays()))

    Z = point_columns(times, ratings.shape[1], plan.k, turns, rng) * np.sqrt(plan.spread)
    Z = abs(Z) if plan.ridge.floor is not None else Z
    Z = np.column_stack([Z, *([np.zeros(len(Z))] * biases)]).astype(dtype)
    return start_rows(sweeper, split(Z, sweeper.cols), get_steps(plan)["rows"])


def start_rows(sweeper: Sweeper, columns: Iterator[np.ndarray], how: How) -> State:
    """The rows that suit the columns to begin with."""
    Z = sweeper.put("begin", sweeper.cols, columns)
    return State(sweeper.half(sweeper.rows, None, Z, how), Z)


def split(Z: np.ndarray, side: Side) -> Iterator[np.ndarray]:
    return (Z[a:b] for a, b in zip(side.bounds[:-1], side.bounds[1:], strict=True))


# ---- ImplicitALS --------------------------------------------------------------------------------------------------


def fit_implicit(model: ImplicitALS, ratings: PartitionedRatings, sample_weight: Any) -> ImplicitALS:
    """ImplicitALS as its class says it."""
    k, seed, alpha = model._rank(ratings.shape), seed_of(model.random_state), float(model.alpha)
    sweeper = begin_fit(model, ratings, sample_weight, k)
    refuse_negative(sweeper)
    mass, constant, seen = sweeper.values(None, alpha)
    if not seen:
        raise InputError(NOTHING)
    lam, ridges = model._scale_ridge(ratings.shape, float(mass))
    solver, quick = model._choose_solver(k)
    cols, rows = (How(k, 0.0, 1.0, ridge, *quick, alpha) for ridge in ridges)
    how = {"rows": rows, "cols": cols, "exact": rows if solver == "cholesky" else rows._replace(steps=0, size=0)}
    rng = generator(seed)
    drawn = (draw_start(int(m), k, rng).astype(ratings.dtype) for m in np.diff(sweeper.cols.bounds))
    run_sweeps(
        model, sweeper, how, start_rows(sweeper, drawn, rows), seed, float(constant), {"mean_": 0.0, "reg_": lam}
    )
    return model


def refuse_negative(sweeper: Sweeper) -> None:
    """Counts must not be below 0."""
    tasks = sweeper.tasks
    least = min(tasks.gather([tasks.submit(find_least, sweeper.folder, units) for units in sweeper.units()]))
    if least < 0:
        raise InputError(
            f"Negative values in data passed to ImplicitALS: one is {least:g}, and counts are >= 0. {SIGNED}"
        )
