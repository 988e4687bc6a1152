"""Row and column biases.

    minimize  P = Σ_{ij in Ω} w_ij (x_ij − m − b_i − c_j)²  +  λ_r Σ_i b_i²  +  λ_c Σ_j c_j²

    X (n,d) known in the cells Ω    m one number    b (n,) row biases    c (d,) column biases

One sweep:  (m, c) ← shrunk column means of x − b:  c_j = Σ_i w_ij (x_ij − m − b_i) / (Σ_i w_ij + λ_c), m exactly
            (m, b) ← the same, sides exchanged
A bias seen in λ cells is shrunk by half. It is σ²/τ², noise over the biases' own variance,
where biases are draws of a Gaussian; left to itself it minimizes, together with the biases,

    ½ ( N log(2πe P/N) + Σ_i log(1 + w_i/λ_r) + Σ_j log(1 + w_j/λ_c) )      N known cells    w_i = Σ_j w_ij

the negative of a variational bound on their likelihood, in which b and c are independent and σ² = P/N.
References: Searle, Casella & McCulloch 1992 (variance components); MacKay 1992 (the step of λ); Koren 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.cells import Cells, Lines, Sums, open_cells
from twofold.completion.model import Completion
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.missing_patterns import LOG_2PI
from twofold.core.estimator import fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.types import Table, Weights

FLOOR = 1e-14  # the squared error left is at least this share of the squares, so that its logarithm exists
CRAWL = 0.25  # a step of ln λ below this may be doubled
FAR = 1e8  # λ stays within this factor of the mean number of cells in a line


class State(NamedTuple):
    """Biases around the mean of the cells, and the pseudo-counts of both sides."""

    mean: float
    b: np.ndarray  # (n,)
    c: np.ndarray  # (d,)
    row_reg: float
    column_reg: float


def find_floor(s: Sums) -> float:
    """The least squared error that is taken for no rounding."""
    return FLOOR * s.square + 1e-30 * s.rows.mass.sum() * s.center**2 + 1e-290


def shrink_means(total: np.ndarray, mass: np.ndarray, lam: float) -> tuple[float, np.ndarray]:
    """The mean and one side's biases, jointly, from the sums of what the other side leaves.

    Given m, b = (total − mass·m) / (mass + λ); what remains is a quadratic in m. At λ = 0 this is the limit, in which
    the biases sum to zero.
    """
    weight = np.where(mass > 0, mass + lam, 1.0)
    alone, share = total / weight, mass / weight
    mean = float(alone.sum() / share.sum())
    return mean, alone - share * mean


def solve_side(
    s: Sums, lines: Lines, across: Lines, other: np.ndarray, lam: float, lam_other: float, find: bool
) -> tuple:
    """One side given the other side's biases: λ (a better one, with `find`), mean, biases and objective."""
    total = lines.total - lines.W @ other
    fixed = s.square - 2 * other @ across.total + across.mass @ other**2 + lam_other * (other @ other)

    def solve(lam: float) -> tuple[float, float, np.ndarray, float, float]:
        mean, b = shrink_means(total, lines.mass, lam)
        # At the minimum of a quadratic its value is the constant less ⟨solution, right-hand side⟩.
        left = max(float(fixed - mean * total.sum() - b @ total), find_floor(s))
        occam = float(np.log1p(lines.mass / lam).sum() + np.log1p(across.mass / lam_other).sum()) if find else 0.0
        return lam, mean, b, left, 0.5 * (s.cells * (LOG_2PI + 1 + np.log(left / s.cells)) + occam)

    now = solve(lam)
    if not find:
        return *now[:3], now[3]
    step = np.log(propose_reg(lines.mass, now, s.cells)) - np.log(lam)
    for _ in range(5):  # halved until it does not rise: nearly always the first will do
        there = solve(lam * np.exp(step))
        if there[4] <= now[4]:
            break
        step /= 2
    else:
        return *now[:3], now[4]
    while 0 < abs(step) < CRAWL:  # towards λ = ∞ the proposals crawl: doubled while that lowers the objective
        step *= 2
        further = solve(lam * np.exp(step))
        if further[4] >= there[4]:
            break
        there = further
    return *there[:3], there[4]


def propose_reg(mass: np.ndarray, now: tuple, cells: int) -> float:
    """λ at which the objective's derivative by λ is zero, all else fixed: σ² times the effective biases over Σ b²."""
    lam, _, b, left, _ = now
    middle = mass.mean()
    used, square = (mass / (mass + lam)).sum(), max(float(b @ b), 1e-290)
    return float(np.clip(left / cells * used / square, middle / FAR, middle * FAR))


class Biases(Completion):
    """What a row and a column add to the mean, fitted jointly and shrunk towards it.

    ``x̂_ij = mean + b_i + c_j``: some people rate kindly, some films are good. The model every other one should beat.

    Parameters
    ----------
    reg : "auto", float or (float, float), default="auto"
        Pseudo-counts λ for rows and columns: a bias seen in n cells keeps n/(n+λ) of its mean deviation. "auto" finds
        both as ratios of variances, so that neither the unit nor the amount of noise in the table matters. 0 gives
        least squares: on a full table, the means of the two-way analysis of variance.
    tol : float, default=1e-8
        Stop when the last sweeps, and a tenth of the change that their trend predicts, lower the objective by less
        than this, relatively.
    max_iter : int, default=1000
        Sweeps at most.

    Attributes
    ----------
    mean_ : float
        The value of an average row in an average column, which is not the mean of the known cells.
    row_bias_, column_bias_ : ndarray of shape (n,), (d,)
        0 where no cell is known.
    reg_ : tuple of two floats
        λ of the rows and of the columns.
    history_, n_iter_, converged_

    References
    ----------
    Searle, Casella & McCulloch (1992), *Variance Components*. Koren (2008), *KDD*, 426-434.

    Examples
    --------
    >>> from twofold import Biases
    >>> rng = np.random.default_rng(0)
    >>> b, c = 0.5 * rng.normal(size=(300, 1)), rng.normal(size=40)
    >>> full = 3 + b + c + rng.normal(size=(300, 40))
    >>> X = np.where(rng.random(full.shape) < 0.2, full, np.nan)
    >>> model = Biases().fit(X)
    >>> [round(lam) for lam in model.reg_]                  # noise 1 over 0.25 and 1
    [4, 1]
    >>> error = model.predict(X) - (3 + b + c)
    >>> bool(np.sqrt((error**2).mean()) < 0.9 * np.sqrt(((Biases(reg=0).fit(X).predict(X) - 3 - b - c) ** 2).mean()))
    True
    """

    mean_: float
    row_bias_: Annotated[np.ndarray, "n"]
    column_bias_: Annotated[np.ndarray, "d"]
    reg_: tuple[float, float]
    _parameter_constraints: ClassVar[dict] = {
        "reg": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left"), tuple, list],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, *, reg: str | float | tuple[float, float] = "auto", tol: float = 1e-8, max_iter: int = 1000):
        self.reg = reg
        self.tol = tol
        self.max_iter = max_iter

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Biases:
        """Fit to the known cells of X, or to :class:`PartitionedRatings`; see :meth:`ALS.fit` for the arguments."""
        return self._solve(open_cells(self, X, sample_weight))

    def _solve(self, cells: Cells) -> Biases:
        """The fit, to cells already gathered."""
        regs, sums = _read_reg(self.reg), cells.sum_lines()
        rows, cols, find = sums.rows, sums.cols, regs is None

        def sweep(state: State, t: int) -> loop.Sweep:
            """Columns, then rows, so that a row folded in again has the bias it has."""
            lam_col, _, c, _ = solve_side(sums, cols, rows, state.b, state.column_reg, state.row_reg, find)
            lam_row, mean, b, objective = solve_side(sums, rows, cols, c, state.row_reg, lam_col, find)
            return loop.Sweep(
                State(mean, b, c, lam_row, lam_col), objective, {"row_reg": lam_row, "column_reg": lam_col}
            )

        def to_attributes(state: State) -> dict:
            return {
                "mean_": sums.center + state.mean,
                "row_bias_": state.b.astype(cells.dtype),
                "column_bias_": state.c.astype(cells.dtype),
                "reg_": (float(state.row_reg), float(state.column_reg)),
            }

        loop.run(self, sweep, _start(sums, regs), fitted=to_attributes, X=cells.source, fingerprint=cells.sign)
        return self

    def _folding(self) -> tuple[Callable, tuple]:
        return compute_shifts, (self.column_bias_ + self.column_bias_.dtype.type(self.mean_), self.reg_[0])

    def _valuing(self) -> tuple[Callable, tuple]:
        return np.add, (self.column_bias_ + self.column_bias_.dtype.type(self.mean_),)

    def _predict_cells(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return self.row_bias_[rows] + self.column_bias_[cols] + self.row_bias_.dtype.type(self.mean_)


def compute_shifts(X: sparse.csr_array, offset: np.ndarray, lam: float) -> np.ndarray:
    """The biases (m,1) of new rows, given what the columns stand for."""
    row, known = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), np.diff(X.indptr)
    total = np.bincount(row, X.data.astype(np.float64) - offset[X.indices], X.shape[0])
    return (total / np.where(known > 0, known + lam, 1.0)).astype(offset.dtype)[:, None]


def _read_reg(reg: Any) -> tuple[float, float] | None:
    """λ of rows and columns as given, or None if they are to be found."""
    if isinstance(reg, str):
        return None
    pair = tuple(reg) if isinstance(reg, (tuple, list)) else (reg, reg)
    if len(pair) != 2 or not all(isinstance(lam, Real) and 0 <= float(lam) < np.inf for lam in pair):
        raise InputError(f'reg={reg!r} is not usable: give "auto", one finite number >= 0, or a pair (rows, columns).')
    return float(pair[0]), float(pair[1])


def _start(s: Sums, regs: tuple[float, float] | None) -> State:
    """No biases; λ as given, or such that the bias of an average line is shrunk by half."""
    row_reg, column_reg = regs or (float(s.rows.mass.mean()), float(s.cols.mass.mean()))
    return State(0.0, np.zeros(len(s.rows.mass)), np.zeros(len(s.cols.mass)), row_reg, column_reg)
