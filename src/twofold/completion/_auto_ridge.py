"""How firmly factors are held to the biases: ridges found from the known cells.

    minimise  Σ_Ω w_ij (x_ij − m − b_i − c_j − ⟨u_i, z_j⟩)²
              + λ Σ_i √n_i ‖u_i‖² + λ Σ_j √n_j ‖z_j‖² + λ_r Σ_i b_i² + λ_c Σ_j c_j²

m, λ_r and λ_c are those of `Biases`, ratios of variances; as factors explain more, the noise in them falls, and they
with it. Over U and Z the ridge is 2λ times a weighted nuclear norm, so from

    λ_max = the largest singular value of (w r)_ij / (n_i n_j)^¼        r what the biases leave

on every factor is zero, and the model is `Biases`. From there λ falls, each fit begun at the last, as long as cells put
aside are predicted better. A table that is all noise keeps its biases; one without noise goes down to almost nothing.
References: Srebro & Salakhutdinov 2010 (the weighted norm); Mazumder, Hastie & Tibshirani 2010 (the path).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion._held_out import FEWEST, hold_out, is_better
from twofold.completion.biases import Biases
from twofold.core import loop
from twofold.core.data.known_cells import Observed
from twofold.core.numerics.alternating_ridge import Plan, State, swept
from twofold.core.numerics.krylov import iterate_subspace
from twofold.core.seeds import generator

POWER = 0.5  # of the known cells of a row or column, by which its ridge grows
FALL, FAR = 0.7, 0.3  # from one λ to the next, and after the first few
NEAR = 12  # such few
LEAST = 1e-7  # of λ_max, where the search ends
PATIENCE = 2  # values of λ that do not help
SURE = 2  # standard errors by which factors must help
SWEEPS, STILL = 8, 1e-3  # for one λ of the search: at most, and where they end
TURNS = 5  # of the subspace iteration that finds the start
GRAIN = 0.1  # of the start is given back at every λ, since a factor that has come to zero stays there


def get_power(reg: str | float, power: float | None) -> float:
    """`reg_power` as given; None means λ by counts, or by their roots where λ is found."""
    if power is None:
        return POWER if isinstance(reg, str) else 1.0
    return float(power)


class Found(NamedTuple):
    """The problem with its ridges, where its sweeps start, and what was tried."""

    plan: Plan
    start: State
    path: dict[str, list[float]]


def find_ridges(plan: Plan, biases: bool, seed: int) -> Found:
    """`plan` with λ and the ridges of the biases that suit its cells."""
    kept, held = hold_out(plan.cells, generator(seed, 6))
    plan, model = _with_biases(plan, plan.cells, biases)
    if len(held.x) < FEWEST:  # too few to ask: a tenth of λ_max
        top, alone, grain = _start(plan, model, generator(seed))
        return Found(_with_ridge(plan, top / 10, 1.0), State(alone.U, alone.Z + grain), {"reg": [], "rmse": []})
    trial, without = _with_biases(plan, kept, biases)
    top, alone, grain = _start(trial, without, generator(seed))
    nothing = held.losses(_predict(trial, alone, held.rows, held.cols))
    path = {"reg": [top], "rmse": [_rmse(nothing)]}
    best, found, waited = nothing, (top, 1.0, alone), 0
    lam, state, share = top, State(alone.U, alone.Z + (1 - GRAIN) * grain), 1.0
    while waited < PATIENCE and lam > LEAST * top:
        lam *= FALL if len(path["reg"]) <= NEAR else FAR
        state = _settle(_with_ridge(trial, lam, share), State(state.U, state.Z + GRAIN * grain))
        now = held.losses(_predict(trial, state, held.rows, held.cols))
        path["reg"].append(lam)
        path["rmse"].append(_rmse(now))
        waited += 1
        if now.mean() < best.mean():
            share = min(1.0, float(now.mean() / nothing.mean()))
            best, found, waited = now, (lam, share, state), 0
    lam, share, start = found if is_better(nothing, best, SURE) else (top, 1.0, _alone(plan, model))
    return Found(_with_ridge(plan, lam, share), start, path)


def describe_ridges(plan: Plan) -> dict:
    """The mean, the spread and the ridges of a fitted problem, as attributes."""
    lasts = (plan.ridge.last, plan.last)
    biases = None if None in lasts else tuple(float(last) / plan.spread for last in lasts if last is not None)
    return {"mean_": plan.mean, "spread_": plan.spread, "reg_": float(plan.ridge.lam), "bias_reg_": biases}


def _with_biases(plan: Plan, cells: Observed, biases: bool) -> tuple[Plan, Biases | None]:
    """The mean and the ridges of the biases, as `Biases` finds them in these cells, and its model."""
    if not biases:
        return plan._replace(cells=cells), None
    model = Biases()
    with loop.quietly():
        model._solve(cells)
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
    V, reached = iterate_subspace(lambda V: A.T @ (A @ V), rng.normal(size=(d, k)), TURNS)
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
    for _ in range(SWEEPS):
        state, objective = swept(plan, state)
        if last - objective < STILL * objective:
            break
        last = objective
    return state


def _predict(plan: Plan, state: State, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    U, Z = (side.astype(np.float64)[at] for side, at in ((state.U, rows), (state.Z, cols)))
    out = plan.mean + np.einsum("tk,tk->t", U[:, : plan.k], Z[:, : plan.k])
    return out + np.sqrt(plan.spread) * (U[:, plan.k :] + Z[:, plan.k :]).sum(axis=1)


def _rmse(losses: np.ndarray) -> float:
    return float(np.sqrt(losses.mean()))
