"""Singular value projection: gradient steps on the known cells, each followed by the nearest matrix of rank k.

    minimize  ½ Σ_{ij in Ω} w_ij (x_ij − m_ij)²   over M (n,d) of rank k

    M = L Rᵀ never multiplied out    G = P_Ω(W(X − M)) the descent direction, stored in the known cells alone

One sweep:  D ← G + β D           conjugate to the last direction as seen from the tangent space of M
            M ← P_k(M + α D)      α by exact line search there; leading singular triplets of sparse + low rank
References: Jain, Meka & Dhillon 2010; Tanner & Wei 2013 (exact step); Blanchard, Tanner & Wei 2015 (conjugate ones).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold.completion import _sparse_low_rank as low_rank
from twofold.completion._sparse_low_rank import FixedRank
from twofold.completion.svd_impute import Problem, compute_error
from twofold.core import loop
from twofold.core.estimator import fitting
from twofold.core.seeds import seed_of
from twofold.core.types import Table, Weights


class State(NamedTuple):
    """M = L Rᵀ with orthonormal R and orthogonal L, its values in the cells, and the last direction."""

    L: np.ndarray
    R: np.ndarray
    at: np.ndarray
    D: np.ndarray
    V: np.ndarray  # where the next search for singular vectors begins
    objective: float


class SVP(FixedRank):
    """Singular value projection: the matrix of rank k nearest to the known cells, by projected gradients.

    Minimizes the squared error on the known cells over all matrices of rank k, without penalty: for tables that
    really are low-rank, or nearly so. Where enough cells are known it recovers them exactly; see
    :func:`recovery_report`. Ratings, which are far from it, want `ALS` or `SoftImpute`.

    Parameters
    ----------
    n_components : int or None, default=None
        The rank k. None means 20, or the most for which k(n + d − k) is at most a third of the known cells.
    normalize : {"row", "column"} or None, default=None
        Fit the z-scores of rows or of columns: as in :class:`ALS`.
    tol : float, default=1e-6
        Stop when the last sweeps, and a tenth of the change that their trend predicts, lower the error by less than
        this, relatively, or when it is within this of the cells' own norm.
    max_iter : int, default=500
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        Where the first search for singular vectors begins.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        √S Zᵀ for M = U S Zᵀ.
    row_factors_ : ndarray of shape (n, k)
        U√S. A row (column) without a known cell has the mean factor of the others.
    singular_values_ : ndarray of shape (k,)
    row_bias_, column_bias_, mean_, normalization_
        Zeros, and the z-scores as in :class:`ALS`.
    history_, n_iter_, converged_
        The objective is half the weighted squared error on the known cells; it never rises. ``residual`` is the
        error's norm relative to that of the cells.

    Notes
    -----
    `sample_weight` weighs the cells: the weighted Frobenius norm. New rows are least squares on the components.

    References
    ----------
    Jain, Meka & Dhillon (2010), *NIPS* 23. Tanner & Wei (2013), *SIAM J. Sci. Comput.* 35.
    Blanchard, Tanner & Wei (2015), *Information and Inference* 4.

    Examples
    --------
    >>> from twofold import SVP
    >>> rng = np.random.default_rng(0)
    >>> M = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 80))
    >>> X = np.where(rng.random(M.shape) < 0.3, M, np.nan)          # 70 % of the cells are lost
    >>> bool(np.abs(SVP(3, random_state=0).fit_transform(X) - M).max() < 1e-3)
    True
    """

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> SVP:
        """Fit to the known cells of X (NaN or unstored is unknown); `sample_weight` one number a row or a cell."""
        cells = self._observe(X, sample_weight)
        seed, k = seed_of(self.random_state), self._limit_rank(cells)
        x, w = cells.X.data.astype(np.float64), cells.W.data.astype(np.float64)
        problem = Problem(low_rank.index_cells(cells), x, w, k, 1.0)
        whole = float(np.sqrt(problem.w @ problem.x**2))

        def sweep(state: State, t: int) -> loop.Sweep:
            state = improve(problem, state) if state.L.shape[1] else take_first_step(problem, state)
            residual = np.sqrt(2 * state.objective) / whole if whole else 0.0
            return loop.Sweep(state, state.objective, {"residual": residual}, done=residual <= self.tol)

        n, d = cells.shape
        empty, V = np.zeros_like(problem.x), low_rank.draw_start(problem.where, k + 5, seed)
        start = State(np.zeros((n, 0)), np.zeros((d, 0)), empty, empty, V, whole**2 / 2)
        self._run(cells, sweep, start, seed, X, low_rank.make_attributes(cells, k))
        return self


def take_first_step(p: Problem, state: State) -> State:
    """From nothing: the known cells scaled up as if holes were like them, projected; less if that overshoots."""
    n, d = p.where.shape
    step = n * d / p.w.sum()
    while True:
        new = project_step(p, state, p.w * p.x, step, max_steps=10)
        if new.objective <= state.objective or step * p.w.max() <= 1:
            return new
        step = max(step / 2, 1 / p.w.max())


def improve(p: Problem, state: State) -> State:
    """One sweep; where the conjugate or the exact step would let the error rise, shorter steps that cannot."""
    G = p.w * (p.x - state.at)
    U = state.L / np.maximum(np.linalg.norm(state.L, axis=0), 1e-300)
    g, last = project_on_tangent(p, G, U, state.R), project_on_tangent(p, state.D, U, state.R)
    curve = float(p.w @ last**2)
    beta = -float(p.w @ (g * last)) / curve if curve > 0 else 0.0
    for turn in (beta, 0.0):
        D, along = G + turn * state.D, g + turn * last
        curve = float(p.w @ along**2)
        step = float(G @ along) / curve if curve > 0 else 0.0
        if step > 0:
            new = project_step(p, state, D, step)
            if new.objective <= state.objective:
                return new
    safe = 1 / p.w.max()  # a step of majorization, which cannot fail
    step = max(step / 2, safe)
    while True:
        new = project_step(p, state, G, step)
        if new.objective <= state.objective:
            return new
        if step <= safe:
            return state  # nothing but rounding is left
        step = max(step / 2, safe)


def project_on_tangent(p: Problem, D: np.ndarray, U: np.ndarray, R: np.ndarray) -> np.ndarray:
    """D (stored in the cells) projected onto the tangent space of the rank-k matrices at U · Rᵀ, in the cells."""
    S = low_rank.add_low_rank(p.where, D)
    DR, DU = low_rank.multiply(S, R), low_rank.multiply_transposed(S, U)  # (n,k), (d,k)
    return low_rank.compute_at_cells(p.where, np.hstack([U, DR - U @ (U.T @ DR)]), np.hstack([DU, R]))


def project_step(p: Problem, state: State, D: np.ndarray, step: float, max_steps: int = 1) -> State:
    """P_k(M + step·D), within a space that holds the rows of M."""
    found = low_rank.find_leading(
        low_rank.add_low_rank(p.where, step * D, state.L, state.R), state.V, k=p.k, tol=1e-12, max_steps=max_steps
    )
    L, R = np.ascontiguousarray(found.L[:, : p.k]), np.ascontiguousarray(found.V[:, : p.k])
    at = low_rank.compute_at_cells(p.where, L, R)
    return State(L, R, at, D, found.V, compute_error(p, at))
