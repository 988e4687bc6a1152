"""Completion under a nuclear norm: as close to the known cells as a bounded sum of singular values allows.

    minimize  ½ Σ_{ij in Ω} w_ij (x_ij − m_ij)²  +  λ‖M‖_*   over M (n,d)
    or        ½ Σ_{ij in Ω} w_ij (x_ij − m_ij)²  with  ‖M‖_* ≤ r: the same for the λ whose M has the norm r

    filled = P_Ω(W(X − M)) + M, a sparse matrix and a low-rank one, never written down;  W at most 1

One sweep:  λ_t ← half the last, down to λ: a warm-started path, on which the rank grows from below
            M ← shrink(filled, λ_t): directions come and go
            M ← U Zᵀ, both sides improved in turn by a few conjugate gradients on ½‖x − UZᵀ‖²_Ω + ½λ_t(‖U‖² + ‖Z‖²),
                which is nowhere below the objective, and equal to it where U and Z are balanced
The shrinkage alone moves as slowly as few cells are known; the rows' regressions on their own cells do not.
References: Mazumder, Hastie & Tibshirani 2010; Hastie, Mazumder, Lee & Zadeh 2015 (both sides in turn); Hsieh & Olsen
2014 (regressions in the span of the directions that are active).
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from twofold.completion._sparse_low_rank import (
    LowRank,
    add_low_rank,
    compute_at_cells,
    draw_start,
    find_leading,
    improve_side,
    make_attributes,
)
from twofold.completion.svd_impute import Problem, State, compute_column_means, compute_error, make_problem, truncate
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import as_blocks
from twofold.core.data.known_cells import Observed, find_known_cells
from twofold.core.estimator import fitting
from twofold.core.numerics.alternating_ridge import Ridge
from twofold.core.params import Interval
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights

CELLS_PER_HELD_OUT = 10  # one known cell in so many is held out to choose λ
REG_FACTOR = 0.7  # from one λ of the search to the next
MIN_REG_RATIO = 1e-4  # of the largest λ, where the search ends
MAX_IDLE_REGS = 2  # values of λ without a held-out error that is smaller
MAX_ERROR_RATIO = 0.995  # by this factor
BISECTIONS = 40  # at most, for the λ that belongs to a radius
SWEEPS_PER_REG = 2  # of the search, where each λ begins at the answer for the last
ROUNDS = 2  # of regressions of both sides, between two shrinkages
RANK_TOLERANCE = 1e-12  # of the largest singular value; less is rounding
EMPTY_PATH: dict[str, list[float]] = {"reg": [], "rmse": [], "rank": []}


class SoftImpute(LowRank):
    """Nuclear-norm completion: shrinks singular values until the known cells are met as well as λ allows.

    A convex problem, so the answer does not depend on a start, and the rank need not be known. The whole fit works
    on a sparse residual plus a low-rank matrix and never holds the filled table.

    Parameters
    ----------
    reg : float or None, default=None
        λ, in the units of singular values; the largest singular value of the known cells, or more, gives M = 0.
        None holds out a tenth of the known cells, follows the path from that value down by factors of 0.7, each
        fit begun at the last, until the held-out error has not fallen by half a per cent for two of them, and takes
        the last that did.
    radius : float or None, default=None
        r, in place of `reg`: the largest sum of singular values allowed. λ is looked for on the same path, where the
        norm of M rises as λ falls; it is 0 if the cells can be met with a smaller norm.
    n_components : int or None, default=None
        The most components to keep; None keeps every singular value that λ leaves positive.
    center : bool, default=False
        Take the columns' means off first, so that they are not shrunk: better for ratings and for columns in units
        of their own.
    normalize : {"row", "column"} or None, default=None
        Fit the z-scores of rows or of columns: as in :class:`ALS`.
    tol : float, default=1e-5
        When the sweeps end: as in :class:`ALS`.
    max_iter : int, default=500
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        Which cells are held out, and where the first search for singular vectors begins.

    Attributes
    ----------
    reg_ : float
        The λ used.
    path_ : dict of lists
        What was tried to choose it: ``reg``, held-out ``rmse``, ``rank``; empty if `reg` or `radius` was given.
    components_, row_factors_, singular_values_, normalization_
        As in :class:`SVP`; k is the rank found.
    column_bias_ : ndarray of shape (d,)
        The columns' means with `center`, else zeros, as are ``row_bias_`` and ``mean_``.
    history_, n_iter_, converged_
        The objective above, at the λ reached (``reg``); it never rises. ``rank`` is that of M.

    Notes
    -----
    `sample_weight` weighs the cells in the squared error. New rows are ridge regressions on the components with the
    same λ, for ½‖X − UZ‖² + ½λ(‖U‖² + ‖Z‖²) over the factors has the same minimum.

    References
    ----------
    Mazumder, Hastie & Tibshirani (2010), *JMLR* 11, 2287-2322. Hastie et al. (2015), *JMLR* 16, 3367-3402.

    Examples
    --------
    >>> from twofold import SoftImpute
    >>> rng = np.random.default_rng(0)
    >>> M = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 80))
    >>> X = np.where(rng.random(M.shape) < 0.3, M + 0.1 * rng.normal(size=M.shape), np.nan)
    >>> model = SoftImpute(random_state=0).fit(X)
    >>> bool(np.linalg.norm(model.predict(X) - M) < 0.15 * np.linalg.norm(M))
    True
    """

    reg_: float
    path_: dict
    _parameter_constraints: ClassVar[dict] = {
        **LowRank._parameter_constraints,
        "reg": [Interval(Real, 0, None, closed="left"), None],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "center": ["boolean"],
    }

    def __init__(
        self,
        reg: float | None = None,
        *,
        radius: float | None = None,
        n_components: int | None = None,
        center: bool = False,
        normalize: str | None = None,
        tol: float = 1e-5,
        max_iter: int = 500,
        random_state: Seed = None,
    ):
        self.reg = reg
        self.radius = radius
        self.n_components = n_components
        self.center = center
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> SoftImpute:
        """Fit to the known cells of X (NaN or unstored is unknown); `sample_weight` one number a row or a cell."""
        cells = self._observe(X, sample_weight)
        seed, cap = seed_of(self.random_state), None if self.n_components is None else self._rank(cells.shape)
        offset = compute_column_means(cells) if self.center else np.zeros(cells.shape[1])
        problem = make_problem(cells, cap, offset)
        if self.reg is not None and self.radius is not None:
            raise InputError(f"reg={self.reg:g} and radius={self.radius:g} say the same thing twice. Give one of them.")
        if self.reg is not None:
            reg, path = float(self.reg), EMPTY_PATH
        elif self.radius is not None:
            reg, path = find_reg(problem, float(self.radius), seed), EMPTY_PATH
        else:
            reg, path = choose_reg(cells, cap, offset, seed)
        said: dict[str, Any] = {"reg_": reg, "path_": path, "column_bias_": offset.astype(cells.dtype)}

        def sweep(state: State, t: int) -> loop.Sweep:
            state = descend_path(problem, state, reg / problem.scale, self.tol)
            extra = {"reg": problem.scale * state.lam, "rank": state.L.shape[1]}
            return loop.Sweep(state, problem.scale * state.objective, extra)

        self._run(cells, sweep, start_from_zero(problem, seed), seed, X, make_attributes(cells, **said))
        return self

    def _ridge(self) -> Ridge:
        return Ridge(max(self.reg_, super()._ridge().lam), False)


def start_from_zero(p: Problem, seed: int) -> State:
    """M = 0, which is the answer for every λ from the largest singular value of the known cells on."""
    n, d = p.where.shape
    found = find_leading(add_low_rank(p.where, p.w * p.x), draw_start(p.where, 6, seed), k=1)
    L, R, at = np.zeros((n, 0)), np.zeros((d, 0)), np.zeros_like(p.x)
    return State(L, R, at, L, R, at, found.V, 1.0, float(found.s[0]), compute_error(p, at))


def lower_penalty(p: Problem, now: State, lam: float) -> State:
    """The same M seen under a smaller λ."""
    return now._replace(lam=lam, objective=compute_error(p, now.at) + lam * _norm(now))


def descend_path(p: Problem, now: State, lam: float, tol: float) -> State:
    """One sweep at the next λ of the path; more of them while a λ on the way leaves the objective where it was."""
    before, least = now.objective, max(lam, 1e-6 * float(np.linalg.norm(p.x)))  # λ = 0 is not reached by halves
    while True:
        if now.lam != lam:
            now = lower_penalty(p, now, now.lam / 2 if now.lam / 2 > least else lam)
        now = shrink_and_regress(p, now)
        if now.lam == lam or before - now.objective > tol * before:
            return now


def shrink_and_regress(p: Problem, now: State) -> State:
    """One sweep at the λ of the state; the objective cannot rise but by rounding, and then nothing is left to gain."""
    new = truncate(p, now, now.at, now.L, now.R, 1)
    new = regress_sides(p, new) if new.L.shape[1] else new
    return new if new.objective <= now.objective else now


def regress_sides(p: Problem, now: State) -> State:
    """M with both its factors improved in turn, as L Rᵀ again."""
    root = np.sqrt(np.linalg.norm(now.L, axis=0))
    U, Z = now.L / root, now.R * root
    rows, cols, turn = p.where.rows, p.where.cols, p.where.turn
    for _ in range(ROUNDS):
        Z = improve_side(cols, p.x[turn], p.w[turn], Z, U, now.lam)
        U = improve_side(rows, p.x, p.w, U, Z, now.lam)
    (left, a), (right, b) = np.linalg.qr(U), np.linalg.qr(Z)
    W, s, Vt = np.linalg.svd(a @ b.T)
    kept = s > RANK_TOLERANCE * s[0]
    L, R = (left @ W * s)[:, kept], np.ascontiguousarray((right @ Vt.T)[:, kept])
    at = compute_at_cells(p.where, L, R)
    V = np.hstack([R, now.V[:, now.L.shape[1] :]])
    return now._replace(L=L, R=R, at=at, V=V, objective=compute_error(p, at) + now.lam * float(s[kept].sum()))


def choose_reg(cells: Observed, cap: int | None, offset: np.ndarray, seed: int) -> tuple[float, dict]:
    """The best λ, and the path over λ on nine tenths of the known cells with the error on the others."""
    X, W = cells.X, cells.W
    held = generator(seed, 1).permutation(X.nnz) < X.nnz // CELLS_PER_HELD_OUT
    kept = sparse.csr_array((np.where(held, 0, W.data), W.indices, W.indptr), shape=W.shape)
    p = make_problem(find_known_cells(as_blocks(X), kept), cap, offset)
    rows, cols = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[held], X.indices[held]
    goal, w = X.data[held] - offset[cols], W.data[held]
    state = start_from_zero(p, seed)
    lam, least = state.lam, MIN_REG_RATIO * state.lam
    best, waited, reg = np.inf, 0, p.scale * lam * REG_FACTOR
    path: dict[str, list[float]] = {name: [] for name in EMPTY_PATH}
    while waited < MAX_IDLE_REGS and lam > least and (len(goal) or not path["reg"]):
        lam *= REG_FACTOR
        state = _settle(p, lower_penalty(p, state, lam), max_steps=SWEEPS_PER_REG)
        gap = goal - np.einsum("tk,tk->t", state.L[rows], state.R[cols])
        rmse = float(np.sqrt(w @ gap**2 / w.sum())) if len(goal) else 0.0
        for name, value in zip(EMPTY_PATH, (p.scale * lam, rmse, state.L.shape[1]), strict=True):
            path[name].append(float(value))
        waited += 1
        if rmse < MAX_ERROR_RATIO * best:
            best, waited, reg = rmse, 0, p.scale * lam
    return reg, path


def find_reg(p: Problem, radius: float, seed: int) -> float:
    """The λ whose M has singular values with the sum `radius`: down the path until it is passed, then by bisection."""
    goal = radius / p.scale
    high = start_from_zero(p, seed)  # its norm is below the goal
    lam, least = high.lam, MIN_REG_RATIO * high.lam
    while True:
        lam *= REG_FACTOR
        now = _settle(p, lower_penalty(p, high, lam), 1e-7, 200)
        if _norm(now) >= goal:
            break
        high = now
        if lam <= least:
            return 0.0
    low = lam
    for _ in range(BISECTIONS):
        lam = np.sqrt(low * high.lam)
        now = _settle(p, lower_penalty(p, high, lam), 1e-7, 200)
        if abs(_norm(now) - goal) <= 1e-4 * goal:
            break
        low, high = (lam, high) if _norm(now) > goal else (low, now)
    return p.scale * float(lam)


def _norm(state: State) -> float:
    """‖M‖_*, whose singular values are the lengths of L's columns."""
    return float(np.linalg.norm(state.L, axis=0).sum())


def _settle(p: Problem, start: State, tol: float = 1e-3, max_steps: int = 20) -> State:
    """The answer for one λ of the search, to the accuracy that a comparison needs."""
    with loop.quietly():
        return loop.run(
            SoftImpute(),
            lambda state, t: loop.Sweep(new := shrink_and_regress(p, state), new.objective),
            start,
            max_iter=max_steps,
            tol=tol,
            fitted=lambda state: {},
        )
