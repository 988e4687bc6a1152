"""How many factors there are and how firmly they are held to the biases, found from the known cells.

    minimize  Σ_Ω w_ij (x_ij − m − b_i − c_j − ⟨u_i, z_j⟩)²
              + λ Σ_i √n_i ‖u_i‖² + λ Σ_j √n_j ‖z_j‖² + λ_r Σ_i b_i² + λ_c Σ_j c_j²

m, λ_r and λ_c are those of `Biases`, ratios of variances; as factors explain more, the noise in them falls, and they
with it. Over U and Z the ridge is 2λ times a weighted nuclear norm, so from

    λ_max = the largest singular value of (w r)_ij / (n_i n_j)^¼        r what the biases leave

on every factor is zero, and the model is `Biases`. From there λ falls, each fit begun at the last, as long as cells put
aside are predicted better. A table that is all noise keeps its biases; one without noise goes down to almost nothing.

The norm shrinks what is there as much as what is noise; with fewer factors λ can be lower. So a few ranks are tried,
each with a path of its own.
References: Srebro & Salakhutdinov 2010 (the weighted norm); Mazumder, Hastie & Tibshirani 2010 (the path).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.biases import Biases
from twofold.completion.cells import Cells, HalfSteps, MemoryCells
from twofold.core import loop
from twofold.core.data.known_cells import Observed, keep_stored, see_both_sides
from twofold.core.numerics.alternating_ridge import Plan, State, sweep_once
from twofold.core.numerics.krylov import iterate_subspace
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator

RIDGE_POWER = 0.5  # of the known cells of a row or column, by which its ridge grows
FIRST_FACTOR, LATER_FACTOR = 0.7, 0.3  # from one λ to the next, and after the first few
FIRST_LAMBDAS = 12  # such few
MIN_LAMBDA_RATIO = 1e-7  # of λ_max, where the search ends
RIDGE_PARAMETERS: dict[str, list] = {  # the constraints of models that find them
    "n_components": [None, StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "reg": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    "reg_power": [None, Interval(Real, 0, 1, closed="both")],
    "biases": ["boolean"],
}
MAX_IDLE_LAMBDAS = 2  # values of λ that do not help
RANKS = (13, 8, 5, 3, 2, 1)  # below the most
MIN_ERRORS, MIN_ERRORS_OF_FEWER = 2, 1  # standard errors by which factors must help, and by which fewer must help more
MAX_SWEEPS, MIN_RELATIVE_GAIN = 8, 1e-3  # for one λ of the search: at most, and where they end
MIN_SHARE, MAX_SHARE = 0.1, 0.25  # share of the known cells put aside to choose
TARGET_CELLS = 2000  # cells put aside where that share allows
MIN_CELLS = 20  # fewer decide nothing
SUBSPACE_ROUNDS = 5  # of the subspace iteration that finds the start
RESTORED_SHARE = 0.1  # of the start is given back at every λ, since a factor that has come to zero stays there


class Held(NamedTuple):
    """Cells put aside, their values and weights."""

    rows: np.ndarray
    cols: np.ndarray
    x: np.ndarray
    w: np.ndarray

    def losses(self, predicted: np.ndarray) -> np.ndarray:
        """w (x − x̂)², one a cell."""
        return self.w * (self.x - predicted) ** 2


def hold_out(cells: Observed, rng: np.random.Generator) -> tuple[Observed, Held]:
    """The other cells, and some put aside by chance: a tenth, or up to a quarter where cells are few."""
    X, W = cells.X, cells.W
    share = float(np.clip(TARGET_CELLS / X.nnz, MIN_SHARE, MAX_SHARE))
    out = rng.permutation(X.nnz) < int(share * X.nnz)
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[out]
    held = Held(row, X.indices[out], X.data[out].astype(np.float64), W.data[out].astype(np.float64))
    return see_both_sides(keep_stored(X, ~out), keep_stored(W, ~out)), held


def is_better(before: np.ndarray, after: np.ndarray, errors: float) -> bool:
    """Return True if the mean loss falls by more than `errors` standard errors, cells compared in pairs."""
    gain = before - after
    return bool(gain.mean() > errors * gain.std() / np.sqrt(len(gain)))


def get_power(reg: str | float, power: float | None) -> float:
    """`reg_power` as given; None means λ by counts, or by their roots where λ is found."""
    if power is None:
        return RIDGE_POWER if isinstance(reg, str) else 1.0
    return float(power)


class Found(NamedTuple):
    """The problem with its ridges, where its sweeps start, and what was tried."""

    plan: Plan
    start: State
    path: dict[str, list]


class Trial(NamedTuple):
    """The best λ for one rank, and the losses of the cells put aside."""

    nothing: np.ndarray  # (cells,) losses without factors
    losses: np.ndarray  # with them
    lam: float
    share: float
    state: State


def find_ridges(make: Callable[[int], Plan], ranks: Sequence[int], biases: bool, seed: int) -> Found:
    """The problem `make(k)` of the best of the ranks, with λ and the ridges of the biases that suit its cells."""
    whole, model = _with_biases(make(ranks[0]), None, biases)
    kept, held = hold_out(whole.cells, generator(seed, 6))
    path = start_path()
    if len(held.x) < MIN_CELLS:  # too few to decide: a tenth of λ_max
        top, alone, grain = _start(whole, model, generator(seed))
        return Found(_with_ridge(whole, top / 10, 1.0), State(alone.U, alone.Z + grain), path)
    trials = {k: _search(*_with_biases(make(k), kept, biases), held, seed, path) for k in ranks}
    rank = min(trials, key=lambda k: float(trials[k].losses.mean()))
    rank = rank if is_better(trials[ranks[0]].losses, trials[rank].losses, MIN_ERRORS_OF_FEWER) else ranks[0]
    plan, model, best = *_with_biases(make(rank), None, biases), trials[rank]
    if not is_better(best.nothing, best.losses, MIN_ERRORS):
        return Found(_with_ridge(plan, path["reg"][0], 1.0), _alone(plan, model), path)
    return Found(_with_ridge(plan, best.lam, best.share), best.state, path)


def scale_to_all(of_sample: Found, sample: Observed, cells: Cells) -> Found:
    """The problem of all cells, from that of some rows.

    λ is as many times what noise alone would ask for as it is for these rows: the largest singular value of noise with
    n_i cells a row and n_j a column, each divided by (n_i n_j)^(p/2), is about

        (n_i n_j)^(-p/2) (√n_i + √n_j)
    """
    (n, d), plan, start = cells.shape, of_sample.plan._replace(cells=None), of_sample.start
    if sample.shape[0] == n:
        return of_sample._replace(plan=plan, start=State(*map(cells.place_array, ("rows", "cols"), start)))
    of_rows, of_cols, power = cells.n_cells / n, cells.n_cells / d, -plan.ridge.power / 2
    noise = [(of_rows * c) ** power * (of_rows**0.5 + c**0.5) for c in (of_cols, sample.X.nnz / d)]
    plan = plan._replace(ridge=plan.ridge._replace(lam=plan.ridge.lam * noise[0] / noise[1]))
    return of_sample._replace(
        plan=plan, start=cells.start_rows(cells.place_array("cols", start.Z), HalfSteps.of_plan(plan).rows)
    )


def start_path() -> dict[str, list]:
    """Nothing tried yet."""
    return {"n_components": [], "reg": [], "rmse": []}


def list_ranks(max_rank: int, auto: bool) -> list[int]:
    """The ranks to try."""
    return [max_rank, *(k for k in RANKS if k < max_rank)] if auto else [max_rank]


def _search(trial: Plan, model: Biases | None, held: Held, seed: int, path: dict[str, list]) -> Trial:
    """λ for one rank: falling from where all factors are zero."""
    top, alone, grain = _start(trial, model, generator(seed))
    nothing = held.losses(_predict(trial, alone, held.rows, held.cols))
    best, waited, tried = Trial(nothing, nothing, top, 1.0, alone), 0, 1
    lam, state = top, State(alone.U, alone.Z + (1 - RESTORED_SHARE) * grain)
    _note(path, trial.k, lam, nothing)
    while waited < MAX_IDLE_LAMBDAS and lam > MIN_LAMBDA_RATIO * top:
        lam *= FIRST_FACTOR if tried <= FIRST_LAMBDAS else LATER_FACTOR
        state = _settle(_with_ridge(trial, lam, best.share), State(state.U, state.Z + RESTORED_SHARE * grain))
        now = held.losses(_predict(trial, state, held.rows, held.cols))
        _note(path, trial.k, lam, now)
        waited, tried = waited + 1, tried + 1
        if now.mean() < best.losses.mean():
            best, waited = Trial(nothing, now, lam, min(1.0, float(now.mean() / nothing.mean())), state), 0
    return best


def _note(path: dict[str, list], k: int, lam: float, losses: np.ndarray) -> None:
    for name, value in (("n_components", k), ("reg", lam), ("rmse", float(np.sqrt(losses.mean())))):
        path[name].append(value)


def describe_ridges(plan: Plan) -> dict:
    """The mean, the spread and the ridges of a fitted problem, as attributes."""
    lasts = (plan.ridge.last, plan.last)
    biases = None if None in lasts else tuple(float(last) / plan.spread for last in lasts if last is not None)
    return {"mean_": plan.mean, "spread_": plan.spread, "reg_": float(plan.ridge.lam), "bias_reg_": biases}


def _with_biases(plan: Plan, cells: Observed | None, biases: bool) -> tuple[Plan, Biases | None]:
    """The mean and the ridges of the biases, as `Biases` finds them in these cells (None: all), and its model."""
    cells = plan.cells if cells is None else cells
    if not biases:
        return plan._replace(cells=cells), None
    model = Biases()
    with loop.quietly():
        model._solve(MemoryCells(cells))
    row, column = (lam * plan.spread for lam in model.reg_)
    return plan._replace(cells=cells, mean=model.mean_, ridge=plan.ridge._replace(last=row), last=column), model


def _alone(plan: Plan, model: Biases | None) -> State:
    """Biases without factors."""
    sides = [np.zeros((m, plan.k + (model is not None)), plan.cells.dtype) for m in plan.cells.shape]
    if model is not None:
        for side, bias in zip(sides, (model.row_bias_, model.column_bias_), strict=True):
            side[:, -1] = bias / np.sqrt(plan.spread)
    return State(*sides)


def _with_ridge(plan: Plan, lam: float, share: float) -> Plan:
    """λ for the factors; the noise in the biases' ridges is this share of what it was."""
    row, column = (None if last is None else max(last * share, 1e-12) for last in (plan.ridge.last, plan.last))
    return plan._replace(ridge=plan.ridge._replace(lam=lam, last=row), last=column)


def _start(plan: Plan, model: Biases | None, rng: np.random.Generator) -> tuple[float, State, np.ndarray]:
    """λ_max, the biases alone, and columns along the leading singular vectors of what they leave."""
    cells, k = plan.cells, plan.k
    (n, d), alone = cells.shape, _alone(plan, model)
    gap = cells.X.data - _predict(plan, alone, np.repeat(np.arange(n), np.diff(cells.X.indptr)), cells.X.indices)
    R = sparse.csr_array((cells.W.data * gap, cells.X.indices, cells.X.indptr), shape=cells.shape)
    rows, cols = (np.maximum(side.mass, 1e-12) ** (-plan.ridge.power / 2) for side in (cells.rows, cells.cols))
    A = sparse.diags_array(rows) @ R @ sparse.diags_array(cols)
    V, reached = iterate_subspace(lambda V: A.T @ (A @ V), rng.normal(size=(d, k)), SUBSPACE_ROUNDS)
    s = np.sqrt(reached)
    Z = np.zeros_like(alone.Z)
    Z[:, :k] = cols[:, None] * V * np.sqrt(s)
    Z = abs(Z) if plan.ridge.floor is not None else Z
    return max(float(s.max()), 1e-12 * plan.spread), alone, Z


def _settle(plan: Plan, start: State) -> State:
    """Sweeps for one λ of the search, to the accuracy that a comparison needs."""
    state, last = start, np.inf
    if not state.U[:, : plan.k].any():
        state = State(plan.half(plan.cells.rows, state.U, state.Z)[0], state.Z)
    for _ in range(MAX_SWEEPS):
        state, objective = sweep_once(plan, state)
        if last - objective < MIN_RELATIVE_GAIN * objective:
            break
        last = objective
    return state


def _predict(plan: Plan, state: State, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    U, Z = (side.astype(np.float64)[at] for side, at in ((state.U, rows), (state.Z, cols)))
    out = plan.mean + np.einsum("tk,tk->t", U[:, : plan.k], Z[:, : plan.k])
    return out + np.sqrt(plan.spread) * (U[:, plan.k :] + Z[:, plan.k :]).sum(axis=1)
