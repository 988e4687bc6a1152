"""Singular value thresholding: the least nuclear norm that agrees with the known cells.

    minimise  τ‖M‖_* + ½‖M‖²   over M (n,d) with  m_ij = x_ij in the known cells Ω

    Y (n,d) the multipliers of these equations, stored in the known cells alone; M = L Rᵀ never multiplied out

One sweep:  Y ← Y + δ P_Ω(X − M)         a gradient step on the dual, whose negative is the objective
            M ← shrink(Y, τ)             singular values less τ, from products with the sparse Y
Reference: Cai, Candès & Shen 2010.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from twofold.completion.low_rank import LowRank, Places, at_cells, leading, places, plus, start_block
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.estimator import fitting
from twofold.core.observed import Observed
from twofold.core.seeds import seed_of


class Problem(NamedTuple):
    """What does not change during a fit."""

    where: Places
    x: np.ndarray  # (cells,)
    tau: float


class State(NamedTuple):
    """The multipliers, M = L Rᵀ made of them, and its error in the cells."""

    y: np.ndarray  # (cells,)
    L: np.ndarray
    R: np.ndarray
    gap: np.ndarray  # (cells,) x − m
    V: np.ndarray  # where the next search for singular vectors begins
    step: float
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
        would rise is taken back and halved, down to 1, which cannot fail.
    tol : float, default=1e-4
        Stop when the error on the known cells is within this of their norm.
    max_iter : int, default=500
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        Where the first search for singular vectors begins.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        √S Zᵀ for M = U S Zᵀ; k is the rank found.
    row_factors_ : ndarray of shape (n, k)
        U√S. A row (column) without a known cell has the mean factor of the others.
    singular_values_ : ndarray of shape (k,)
    tau_ : float
        The threshold used.
    row_bias_, column_bias_, mean_
        Zeros.
    history_, n_iter_, converged_
        The objective is the negative dual ½‖M‖² − ⟨Y, X⟩, which never rises; ``residual`` is the error on the
        known cells relative to their norm, ``rank`` that of M.

    Notes
    -----
    Known cells are met exactly, so they cannot count more or less: `sample_weight` says which are known (positive)
    and which are not (0); positive weights that differ are refused. New rows are least squares on the components.

    References
    ----------
    Cai, Candès & Shen (2010), *SIAM J. Optim.* 20, 1956-1982.

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
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        *,
        tau: float | None = None,
        step: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 500,
        random_state: Any = None,
    ):
        self.tau = tau
        self.step = step
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SVT:
        """Fit to the known cells of X (NaN or unstored is unknown, and so is a cell of weight 0)."""
        cells = self._observed(X, sample_weight)
        _refuse_weights(cells)
        x, seed, (n, d) = cells.X.data.astype(np.float64), seed_of(self.random_state), cells.shape
        whole = float(np.linalg.norm(x))
        size = whole / np.sqrt(len(x)) or 1.0
        problem = Problem(places(cells), x, float(self.tau or 1.5 * np.sqrt(n * d) * size))

        def sweep(state: State, t: int) -> loop.Sweep:
            last = float(np.linalg.norm(state.gap)) / (whole or 1.0)
            state = ascended(problem, state, min(0.1 * last, 1e-2)) if t else kicked(problem, state)
            residual = float(np.linalg.norm(state.gap)) / (whole or 1.0)
            extra = {"residual": residual, "rank": len(state.L.T)}
            return loop.Sweep(state, state.objective, extra, done=residual <= self.tol)

        V = start_block(problem.where, 6, seed)
        step = float(self.step or 1.2 * n * d / len(x))
        start = State(np.zeros_like(x), np.zeros((n, 0)), np.zeros((d, 0)), x, V, step, 0.0)
        advice = "Raise max_iter, or loosen tol; noisy cells are for SoftImpute"
        self._run(cells, sweep, start, seed, X, tol=0.0, advice=advice, more=lambda state: {"tau_": problem.tau})
        return self


def _refuse_weights(cells: Observed) -> None:
    w = cells.W.data
    if w.min() != w.max():
        raise InputError(
            f"sample_weight has positive values from {w.min():g} to {w.max():g}; SVT meets every known cell exactly, "
            "so none can count more. Give 0 or 1, or use SoftImpute or SVP, which weigh cells."
        )


def kicked(p: Problem, state: State) -> State:
    """The first sweep: as many steps at once as leave every singular value of Y below τ, and one more."""
    found = leading(plus(p.where, p.x), state.V, k=1, tol=1e-4)
    steps = np.ceil(p.tau / (state.step * found.s[0])) if found.s[0] > 0 else 1.0
    return shrunk(p, steps * state.step * p.x, state._replace(V=found.V), 1e-4)


def ascended(p: Problem, state: State, tol: float) -> State:
    """One step on the dual; the singular vectors need be only as good as the residual."""
    while True:
        new = shrunk(p, state.y + state.step * state.gap, state, tol)
        slack = 1e-10 * abs(state.objective)  # what the accuracy of the singular vectors leaves open
        if new.objective <= state.objective + slack or state.step <= 1:
            return new
        state = state._replace(step=max(state.step / 2, min(state.step, 1.0)))


def shrunk(p: Problem, y: np.ndarray, state: State, tol: float) -> State:
    """M = shrink(Y, τ), its error, and the negative dual ½‖M‖² − ⟨Y, X⟩."""
    found = leading(plus(p.where, y), state.V, above=p.tau, tol=tol)
    r = int((found.s > p.tau).sum())
    left = found.s[:r] - p.tau
    L, R = found.L[:, :r] * (left / found.s[:r]), np.ascontiguousarray(found.V[:, :r])
    gap = p.x - at_cells(p.where, L, R)
    return State(y, L, R, gap, found.V, state.step, 0.5 * float(left @ left) - float(y @ p.x))
