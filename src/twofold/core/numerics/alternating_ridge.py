"""Alternating least squares over known cells: the half-steps, the start and the sweep that every such model shares.

    minimize  Σ_Ω w_ij (x_ij − m − b_i − c_j − ⟨u_i, z_j⟩)²
              + λ Σ_i n_i^p (‖u_i‖² + b_i²/s) + λ Σ_j n_j^p (‖z_j‖² + c_j²/s)

    X (n,d) known in the cells Ω   U (n,k) row factors   Z (d,k) column factors, both with their bias last if there are
    biases   n_i, n_j known cells   s the spread of x, so that one λ suits factors and biases
    or with ridges of their own for the biases, Σ_i λ_r b_i² + Σ_j λ_c c_j²

One sweep:  each column  (z_j, c_j) ← ridge regression of its known cells on (u_i, √s)
            each row     (u_i, b_i) ← the same, sides exchanged
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.data.known_cells import Observed, Side
from twofold.core.engine.local import Engine
from twofold.core.numerics.krylov import Times, iterate_subspace
from twofold.kernels import ridge as kernels

FREE = -1e30  # a floor that binds nothing
STEPS = 3  # of conjugate gradients a half-step; more gain nothing, since the next sweep starts where this one stops
SMALL = 12  # features up to which Cholesky is as quick


class Ridge(NamedTuple):
    """How a row's regression is held: λ times its known cells to some power, a lowest value for every feature, the
    plain ridge of the last feature if it has one of its own, and what cells that are not stored count, all together."""

    lam: float
    power: float
    floor: np.ndarray | None = None
    last: float | None = None
    rest: float = 0.0


class State(NamedTuple):
    """Both factors, each with its bias as a last column if there are biases."""

    U: Any  # (n,k) or (n,k+1)
    Z: Any  # (d,k) or (d,k+1)


class Plan(NamedTuple):
    """What stays the same over the sweeps."""

    cells: Any  # Observed, or cells that are not in memory
    k: int
    mean: float
    spread: float
    ridge: Ridge  # of the rows
    steps: int  # of conjugate gradients; 0 means exact
    last: float | None = None  # of the columns' biases, if they have a ridge of their own

    def half(self, side: Side, start: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, float]:
        """One side's features given the other's, and the cost with its own ridge term."""
        ridge = self.ridge._replace(last=self.last) if side is self.cells.cols else self.ridge
        return half_step(
            side, start, None, *features(other, self.k, self.mean, np.sqrt(self.spread)), ridge, self.steps
        )


def make_plan(
    cells: Any,
    k: int,
    *,
    reg: float,
    biases: bool,
    solver: str = "auto",
    nonnegative: bool = False,
    power: float = 1.0,
) -> Plan:
    """The problem for `reg` in units of the spread; "cg", "cholesky", or "auto" by the number of factors."""
    # A whisker of ridge at least, so that rows with fewer cells than factors have a solution.
    mean, spread, typical = measure_cells(cells)
    lam = max(reg, 1e-12) * spread * typical ** (1 - power)
    floor = np.array([0.0] * k + [FREE] * biases, cells.dtype) if nonnegative else None
    quick = solver == "cg" or (solver == "auto" and k > SMALL)
    steps = STEPS if quick and not nonnegative else 0
    return Plan(cells, k, mean if biases else 0.0, spread, Ridge(lam, power, floor), steps)


def start_state(plan: Plan, biases: bool, turns: int, rng: np.random.Generator) -> State:
    """Column factors by a rough SVD, no biases, and the rows that suit them."""
    (n, d), cells = plan.cells.shape, plan.cells
    times = partial(multiply_square, cells, mean=plan.mean)
    Z = start_columns(plan, times, d, biases, turns, rng).astype(cells.dtype)
    return State(plan.half(cells.rows, np.zeros((n, Z.shape[1]), cells.dtype), Z)[0], Z)


def sweep_once(plan: Plan, state: State) -> tuple[State, float]:
    """Both half-steps, and the objective after them."""
    Z, _ = plan.half(plan.cells.cols, state.Z, state.U)
    U, cost = plan.half(plan.cells.rows, state.U, Z)
    return State(U, Z), cost + penalize(Z, plan.cells.cols.mass, plan.ridge._replace(last=plan.last))


def penalize(U: np.ndarray, mass: np.ndarray, ridge: Ridge) -> float:
    """The ridge term of these rows, whose known cells weigh `mass`."""
    return float((per_feature(hold_rows(mass, ridge), U.shape[1]) * U.astype(float) ** 2).sum())


def features(other: np.ndarray, k: int, mean: float, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Return what a row regresses on: the other side's factors and a unit if there are biases; and the offsets."""
    if other.shape[1] == k:
        return other, np.full(len(other), mean, other.dtype)
    return with_unit(other[:, :k], unit), other[:, k] * other.dtype.type(unit) + other.dtype.type(mean)


def with_unit(Z: np.ndarray, unit: float) -> np.ndarray:
    """A last column of one value, whose coefficient is a bias."""
    return np.column_stack([Z, np.full(len(Z), unit, Z.dtype)])


def bias_of(codes: np.ndarray, k: int) -> np.ndarray:
    """The last column if it is a bias, else zeros."""
    return codes[:, k] if codes.shape[1] > k else np.zeros(len(codes), codes.dtype)


def measure_cells(cells: Any) -> tuple[float, float, float]:
    """Mean and spread of the known cells, and how many a typical row or column has, so that `reg` means the same for
    every power; cells that are not in memory measure themselves."""
    if not isinstance(cells, Observed):
        return cells.measure()
    return *spread_of(cells), float(np.sqrt(cells.rows.mass.mean() * cells.cols.mass.mean()))


def spread_of(cells: Observed) -> tuple[float, float]:
    """Mean and standard deviation of the known cells, the latter 1 if they are all equal."""
    x, w = cells.X.data.astype(np.float64), cells.W.data.astype(np.float64)
    mean = np.average(x, weights=w)
    spread = np.sqrt(np.average((x - mean) ** 2, weights=w))
    return float(mean), float(spread) if spread > 1e-12 * abs(mean) else 1.0


# ---- half-steps ------------------------------------------------------------------------------------------------


def half_step(side: Side, U: np.ndarray, *state: Any) -> tuple[np.ndarray, float]:
    """All rows of one side given the other side's features; their cost is summed row by row, so cuts do not show."""
    engine = Engine()
    shared = [engine.broadcast(s) for s in state]
    parts = engine.gather(engine.map(solve_rows, side.blocks, side.weights, side.blocks.rows(U), *shared))
    return np.concatenate([p[0] for p in parts]), float(np.concatenate([p[1] for p in parts]).sum())


def solve_rows(
    X: sparse.csr_array,
    w: np.ndarray,
    U: np.ndarray,
    base: np.ndarray | None,
    Z: np.ndarray,
    offset: np.ndarray,
    ridge: Ridge,
    steps: int = 0,
    size: int = 0,
    mass: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The half-step of one block: its rows' features given those of the columns, and the cost of each row.

    `steps` of conjugate gradients from U if positive, or blocks of `size` features from U, else exactly by Cholesky;
    with a floor, by coordinate descent.
    `base` is a quadratic all rows share, or None. `mass` is the weight of each row's cells, where
    these stand for others.
    """
    p, dtype = Z.shape[1], Z.dtype
    mass = weigh_cells(X, w) if mass is None else mass
    lam = hold_rows(mass, ridge).astype(dtype)
    B = np.zeros((p, p), dtype) if base is None else base
    U, cost = U.copy(), np.empty(X.shape[0])
    given = (X.indptr, X.indices, X.data.astype(dtype, copy=False), w, Z, offset, B)
    if ridge.floor is not None:
        kernels.ridge_bounded(*given, lam, ridge.floor, 50, U, cost)
    elif steps:
        kernels.ridge_cg(*given, base is not None, lam, steps, U, cost)
    elif size:
        kernels.ridge_blocks(*given, base is not None, lam, size, U, cost)
    else:
        kernels.ridge_cholesky(*given, lam, U, cost)
    return U, cost


def weigh_cells(X: sparse.csr_array, w: np.ndarray) -> np.ndarray:
    """(rows,) the weight of each row's cells."""
    return np.add.reduceat(np.append(w, 0), X.indptr[:-1]) * (np.diff(X.indptr) > 0)


def hold_rows(mass: np.ndarray, ridge: Ridge) -> np.ndarray:
    """(rows,2) what holds each row's features, and its last one, given the weight of its known cells."""
    lam = np.empty((len(mass), 2))
    lam[:] = (ridge.lam * (mass + ridge.rest) ** ridge.power)[:, None]
    if ridge.last is not None:
        lam[:, 1] = ridge.last
    return lam


def per_feature(lam: np.ndarray, p: int) -> np.ndarray:
    """(rows,2) → (rows,p)."""
    return np.repeat(lam, [p - 1, 1], axis=1)


# ---- the start -------------------------------------------------------------------------------------------------


def start_columns(plan: Plan, times: Times, d: int, biases: bool, turns: int, rng: np.random.Generator) -> np.ndarray:
    """Column features (d,p) near the leading right singular vectors of the known cells, holes taken as the mean, given
    the product with (X − mean)ᵀ(X − mean) over the known cells; biases are zero.

    Without a firm ridge, a random start lets single columns run off with a factor of their own; a few turns of
    subspace iteration point all of them the right way.
    """
    drawn = rng.normal(size=(d, plan.k)) / np.sqrt(d)
    Z, reached = iterate_subspace(times, drawn, turns)
    Z = np.where(reached > 1e-8 * reached.max(), Z, drawn)  # beyond the data's rank the product says nothing
    Z = Z * (np.sqrt(len(Z)) / plan.k**0.25) * np.sqrt(plan.spread)
    Z = abs(Z) if plan.ridge.floor is not None else Z
    return np.column_stack([Z, *([np.zeros(len(Z))] * biases)])


def multiply_square(cells: Observed, Z: np.ndarray, mean: float) -> np.ndarray:
    """(X − mean)ᵀ(X − mean) Z over the known cells."""
    return _product(cells.cols, _product(cells.rows, Z, mean, False), mean, True)


def _product(side: Side, Z: np.ndarray, mean: float, weighted: bool) -> np.ndarray:
    """(X − mean) Z over the known cells."""
    engine = Engine()
    shared = [engine.broadcast(s) for s in (Z, mean, weighted)]
    return np.concatenate(engine.gather(engine.map(multiply_block, side.blocks, side.weights, *shared)))


def multiply_block(X: sparse.csr_array, w: np.ndarray, Z: np.ndarray, mean: float, weighted: bool) -> np.ndarray:
    gaps = (X.data - mean) * w if weighted else X.data - mean
    return sparse.csr_array((gaps, X.indices, X.indptr), shape=X.shape) @ Z
