"""Singular value thresholding: the least nuclear norm that agrees with the known cells.

    minimize  τ‖M‖_* + ½‖M‖²   over M (n,d) with  m_ij = x_ij in the known cells Ω

    Y (n,d) the multipliers of these equations, stored in the known cells alone; M = L Rᵀ never multiplied out

One sweep:  Y ← Y + δ P_Ω(X − M)         a gradient step on the dual, whose negative is the objective
            M ← shrink(Y, τ)             singular values less τ, from products with the sparse Y
A step goes on a little in the direction of the last one, unless the objective would rise by it.
References: Cai, Candès & Shen 2010; Huang, Ma & Goldfarb 2013 (momentum).
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from twofold.completion import _sparse_low_rank as low_rank
from twofold.completion._sparse_low_rank import LowRank, Places
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.estimator import fitting
from twofold.core.params import Interval
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table, Weights


class Problem(NamedTuple):
    """What does not change during a fit."""

    where: Places
    x: np.ndarray  # (cells,)
    tau: float


class State(NamedTuple):
    """The multipliers, M = L Rᵀ made of them, and its error in the cells."""

    y: np.ndarray  # (cells,)
    z: np.ndarray  # (cells,) where the last step led, before momentum
    L: np.ndarray
    R: np.ndarray
    gap: np.ndarray  # (cells,) x − m
    V: np.ndarray  # where the next search for singular vectors begins
    step: float
    pace: float  # grows with the momentum
    objective: float


class SVT(LowRank):
    """Singular value thresholding: exact on the known cells, and as low-rank as the nuclear norm can make it.

    For a large `tau` this is the matrix of least nuclear norm among all that agree with the known cells, which is
    the table itself if that is low-rank and enough cells are known; see :func:`recovery_report`. For noisy cells,
    which no low-rank matrix meets exactly, use `SoftImpute`.

    Parameters
    ----------
    tau : float or None, default=None
        The threshold. None means 1.5 √(nd) times the root mean square of the known cells, which on the paper's
        tables (rank 10, entries of that size √10) is its 5n, and in any other unit is the same choice.
    step : float or None, default=None
        δ, the length of a dual step. None means 1.2 nd/m for m known cells. A step under which the objective
        rises is taken back and halved, down to 1, which cannot fail.
    normalize : {"row", "column"} or None, default=None
        Fit the z-scores of rows or of columns: as in :class:`ALS`.
    tol : float, default=1e-4
        Stop when the error on the known cells is within this of their norm.
    max_iter, random_state
        As in :class:`SVP`.

    Attributes
    ----------
    components_, row_factors_, singular_values_
        As in :class:`SVP`; k is the rank found.
    tau_ : float
        The threshold used.
    row_bias_, column_bias_, mean_, normalization_
        Zeros, and the z-scores as in :class:`ALS`.
    history_, n_iter_, converged_
        The objective is the negative dual ½‖M‖² − ⟨Y, X⟩, which falls, but for the accuracy to which singular
        vectors are found; ``residual`` is the error on the known cells relative to their norm, ``rank`` that of M.

    Notes
    -----
    Known cells are met exactly, so they cannot count more or less: `sample_weight` marks which are known (positive)
    and which are not (0); positive weights that differ are refused. New rows are least squares on the components.

    References
    ----------
    Cai, Candès & Shen (2010), *SIAM J. Optim.* 20, 1956-1982. Huang, Ma & Goldfarb (2013), *J. Sci. Comput.* 54.

    Examples
    --------
    >>> from twofold import SVT
    >>> rng = np.random.default_rng(0)
    >>> M = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 60))
    >>> X = np.where(rng.random(M.shape) < 0.4, M, np.nan)
    >>> model = SVT(random_state=0).fit(X)
    >>> len(model.singular_values_), bool(np.abs(model.complete(X) - M).max() < 0.01)
    (2, True)
    """

    tau_: float
    _parameter_constraints: ClassVar[dict] = {
        "tau": [Interval(Real, 0, None, closed="neither"), None],
        "step": [Interval(Real, 0, None, closed="neither"), None],
        **{name: rule for name, rule in LowRank._parameter_constraints.items() if name != "n_components"},
    }

    def __init__(
        self,
        *,
        tau: float | None = None,
        step: float | None = None,
        normalize: str | None = None,
        tol: float = 1e-4,
        max_iter: int = 500,
        random_state: Seed = None,
    ):
        self.tau = tau
        self.step = step
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> SVT:
        """Fit to the known cells of X (NaN or unstored is unknown, and so is a cell of weight 0)."""
        cells = self._observe(X, sample_weight)
        w = cells.W.data
        if w.min() != w.max():
            raise InputError(
                f"sample_weight has positive values from {w.min():g} to {w.max():g}; SVT meets every known cell "
                "exactly, so none can count more. Give 0 or 1, or use SoftImpute or SVP, which weigh cells."
            )
        x, seed, (n, d) = cells.X.data.astype(np.float64), seed_of(self.random_state), cells.shape
        whole = float(np.linalg.norm(x))
        size = whole / np.sqrt(len(x)) or 1.0
        problem = Problem(low_rank.index_cells(cells), x, float(self.tau or 1.5 * np.sqrt(n * d) * size))

        def sweep(state: State, t: int) -> loop.Sweep:
            last = float(np.linalg.norm(state.gap)) / (whole or 1.0)
            state = ascend_dual(problem, state, min(0.01 * last, 1e-2)) if t else start_dual(problem, state)
            residual = float(np.linalg.norm(state.gap)) / (whole or 1.0)
            extra = {"residual": residual, "rank": len(state.L.T)}
            return loop.Sweep(state, state.objective, extra, done=residual <= self.tol)

        V = low_rank.draw_start(problem.where, 6, seed)
        step = float(self.step or 1.2 * n * d / len(x))
        none = np.zeros_like(x)
        start = State(none, none, np.zeros((n, 0)), np.zeros((d, 0)), x, V, step, 1.0, 0.0)
        advice = "Raise max_iter, or loosen tol; noisy cells are for SoftImpute"
        fitted = low_rank.make_attributes(cells, tau_=problem.tau)
        self._run(cells, sweep, start, seed, X, fitted, tol=0.0, advice=advice)
        return self


def start_dual(p: Problem, state: State) -> State:
    """The first sweep: as many steps at once as leave every singular value of Y below τ, and one more."""
    found = low_rank.find_leading(low_rank.add_low_rank(p.where, p.x), state.V, k=1, tol=1e-4)
    steps = np.ceil(p.tau / (state.step * found.s[0])) if found.s[0] > 0 else 1.0
    y = steps * state.step * p.x
    return shrink_dual(p, y, state._replace(z=y, V=found.V), 1e-4)


def ascend_dual(p: Problem, now: State, tol: float) -> State:
    """One step on the dual, with momentum unless the objective would rise by it, and then shorter if it still does.

    The singular vectors need be only as good as the residual: `tol`.
    """
    slack = 5e-3 * now.step * float(now.gap @ now.gap)  # what their accuracy leaves open
    z = now.y + now.step * now.gap
    pace = (1 + np.sqrt(1 + 4 * now.pace**2)) / 2
    if now.pace > 1:
        new = shrink_dual(p, z + (now.pace - 1) / pace * (z - now.z), now, tol)
        if new.objective <= now.objective + slack:
            return new._replace(z=z, pace=pace)
    new = shrink_dual(p, z, now, tol)
    if new.objective > now.objective + slack:  # or did a singular vector hide before? Look again from here
        now = shrink_dual(p, now.y, now._replace(V=new.V), 0.1 * tol)
    while new.objective > now.objective + slack and now.step > 1:
        now = now._replace(step=max(now.step / 2, 1.0))
        z = now.y + now.step * now.gap
        new = shrink_dual(p, z, now, tol)
    return new._replace(z=z, pace=(1 + np.sqrt(5)) / 2)


def shrink_dual(p: Problem, y: np.ndarray, now: State, tol: float) -> State:
    """M = shrink(Y, τ), its error, and the negative dual ½‖M‖² − ⟨Y, X⟩."""
    found = low_rank.find_leading(low_rank.add_low_rank(p.where, y), now.V, above=p.tau, tol=tol)
    r = int((found.s > p.tau).sum())
    left = found.s[:r] - p.tau
    L, R = found.L[:, :r] * (left / found.s[:r]), np.ascontiguousarray(found.V[:, :r])
    gap = p.x - low_rank.compute_at_cells(p.where, L, R)
    return now._replace(y=y, L=L, R=R, gap=gap, V=found.V, objective=0.5 * float(left @ left) - float(y @ p.x))
