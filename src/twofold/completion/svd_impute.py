"""Filling the holes by a truncated SVD of the filled table, again and again.

    minimize  ½ Σ_{ij in Ω} w_ij (x_ij − m_ij)²   over M (n,d) of rank k

    filled = P_Ω(W(X − M)) + M, a sparse matrix and a low-rank one, never written down;  W at most 1

One sweep:  the holes of X ← M (and known cells of weight w < 1 ← w x + (1 − w) m)
            M ← the k leading singular triplets of the filled table, from those of the last
The start fills with the columns' means. A step goes on a little in the direction of the last one, unless the error
would rise (Nesterov's momentum, restarted).
References: Troyanskaya et al. 2001; Srebro & Jaakkola 2003 (weights); O'Donoghue & Candès 2015 (restarts).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold.completion import _sparse_low_rank as low_rank
from twofold.completion._sparse_low_rank import FixedRank, Places
from twofold.core import loop
from twofold.core.data.known_cells import Observed
from twofold.core.estimator import fitting
from twofold.core.seeds import seed_of
from twofold.core.types import Table, Weights


class Problem(NamedTuple):
    """What does not change during a fit."""

    where: Places
    x: np.ndarray  # (cells,)
    w: np.ndarray  # (cells,) at most 1
    k: int | None  # the rank, or its cap
    scale: float  # what the weights were divided by


class State(NamedTuple):
    """M = L Rᵀ with orthonormal R and orthogonal L, its values in the cells, and the same for the M before it."""

    L: np.ndarray
    R: np.ndarray
    at: np.ndarray
    L0: np.ndarray
    R0: np.ndarray
    at0: np.ndarray
    V: np.ndarray  # where the next search for singular vectors begins; holds the span of R
    pace: float  # grows with the momentum
    lam: float  # singular values are shrunk by this
    objective: float


class SVDImpute(FixedRank):
    """Fill the holes, take a truncated SVD, fill the holes with it, and so on until nothing moves.

    The rank-k matrix nearest to the known cells, by expectation and maximization; begun at the columns' means.

    Parameters
    ----------
    n_components : int or None, default=None
        The rank k; None as in :class:`SVP`.
    normalize : {"row", "column"} or None, default=None
        Fit the z-scores of rows or of columns: as in :class:`ALS`.
    tol, max_iter, random_state
        As in :class:`SVP`.

    Attributes
    ----------
    components_, row_factors_, singular_values_, row_bias_, column_bias_, mean_
        As in :class:`SVP`.
    history_, n_iter_, converged_
        The objective is half the weighted squared error on the known cells; it never rises.

    Notes
    -----
    A cell of weight w, relative to the largest weight, is filled with w x + (1 − w) m: partly known. The objective
    is then the weighted squared error. New rows are least squares on the components.

    References
    ----------
    Troyanskaya et al. (2001), *Bioinformatics* 17, 520-525. Srebro & Jaakkola (2003), *ICML* 20.

    Examples
    --------
    >>> from twofold import SVDImpute, datasets
    >>> X = datasets.digits().data
    >>> holes = np.random.default_rng(0).random(X.shape) < 0.2
    >>> H = np.where(holes, np.nan, X)
    >>> error = (SVDImpute(10, random_state=0).fit_transform(H) - X)[holes]
    >>> by_means = (np.nanmean(H, axis=0) - X)[holes]
    >>> bool(np.linalg.norm(error) < 0.75 * np.linalg.norm(by_means))
    True
    """

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> SVDImpute:
        """Fit to the known cells of X (NaN or unstored is unknown); `sample_weight` one number a row or a cell."""
        cells = self._observe(X, sample_weight)
        seed, problem = seed_of(self.random_state), make_problem(cells, self._limit_rank(cells))
        whole = float(problem.w @ problem.x**2) / 2

        def sweep(state: State, t: int) -> loop.Sweep:
            state = refill(problem, state, self.tol)
            return loop.Sweep(state, problem.scale * state.objective, done=state.objective <= self.tol**2 * whole)

        start = start_from_means(problem, cells, seed)
        self._run(cells, sweep, start, seed, X, low_rank.make_attributes(cells, problem.k or 1))
        return self


def make_problem(cells: Observed, k: int | None, offset: np.ndarray | float = 0.0) -> Problem:
    """The cells in float64 less their column's offset, their weights divided by the largest."""
    w, x = cells.W.data.astype(np.float64), cells.X.data.astype(np.float64)
    x -= np.broadcast_to(offset, cells.shape[1])[cells.X.indices]
    return Problem(low_rank.index_cells(cells), x, w / w.max(), k, float(w.max()))


def compute_column_means(cells: Observed) -> np.ndarray:
    """The mean of every column's known cells, and that of all where a column is empty: (d,)."""
    mass, total = cells.cols.mass, np.asarray(cells.X.multiply(cells.W).sum(axis=0, dtype=np.float64)).ravel()
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), total.sum() / mass.sum())


def start_from_means(p: Problem, cells: Observed, seed: int) -> State:
    """M with every cell at its column's mean."""
    mean = compute_column_means(cells)
    length = np.linalg.norm(mean) or 1.0
    L, R = np.full((cells.shape[0], 1), length), (mean / length)[:, None]
    at = low_rank.compute_at_cells(p.where, L, R)
    V = np.hstack([R, low_rank.draw_start(p.where, (p.k or 1) + 5, seed)])[:, : cells.shape[1]]
    return State(L, R, at, L, R, at, V, 1.0, 0.0, compute_error(p, at))


def compute_error(p: Problem, at: np.ndarray) -> float:
    """Half the weighted squared error on the known cells."""
    return 0.5 * float(p.w @ (p.x - at) ** 2)


def refill(p: Problem, now: State, tol: float, max_steps: int = 1) -> State:
    """One sweep: fill and truncate, with momentum unless that gains nothing worth `tol`; then it starts again."""
    pace = (1 + np.sqrt(1 + 4 * now.pace**2)) / 2
    on = (now.pace - 1) / pace
    if on > 0:
        L, R = np.hstack([(1 + on) * now.L, -on * now.L0]), np.hstack([now.R, now.R0])
        new = truncate(p, now, now.at + on * (now.at - now.at0), L, R, max_steps)
        if new.objective < (1 - tol) * now.objective:
            return new._replace(pace=pace)
    new = truncate(p, now, now.at, now.L, now.R, max_steps)
    # Without momentum it cannot rise but by rounding; then nothing is left to gain.
    return new._replace(pace=(1 + np.sqrt(5)) / 2) if new.objective <= now.objective else now


def truncate(p: Problem, now: State, at: np.ndarray, L: np.ndarray, R: np.ndarray, max_steps: int) -> State:
    """The holes of X filled from L Rᵀ, and the leading triplets of that, shrunk by λ: the next M."""
    filled = low_rank.add_low_rank(p.where, p.w * (p.x - at), L, R)
    found = low_rank.find_leading(filled, now.V, k=p.k, above=now.lam, tol=1e-12, max_steps=max_steps)
    r = min(int((found.s > now.lam).sum()), len(found.s) if p.k is None else p.k)
    s = found.s[:r] - now.lam
    L, R = found.L[:, :r] * (s / found.s[:r]), np.ascontiguousarray(found.V[:, :r])
    at = low_rank.compute_at_cells(p.where, L, R)
    objective = compute_error(p, at) + now.lam * float(s.sum())
    return State(L, R, at, now.L, now.R, now.at, found.V, now.pace, now.lam, objective)
