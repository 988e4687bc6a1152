"""Matrix completion by gradient descent, cell by cell or all at once.

    minimize  Σ_Ω w_ij (x_ij − m − b_i − c_j − ⟨u_i, z_j⟩)²
              + λ Σ_i n_i^p (‖u_i‖² + b_i²/s) + λ Σ_j n_j^p (‖z_j‖² + c_j²/s)

    X (n,d) known in the cells Ω   U (n,k) row factors   Z (k,d) column factors   b, c biases   n_i, n_j known cells
    s the spread of x; with reg="auto" λ is found and the biases have ridges of their own, as in als.py

sgd        rows and columns are dealt into B groups, so Ω falls into B × B tiles; one sweep is B strata of B tiles that
           share no row and no column: threads never write the same vector, and any number of them gives the same bits
plain-sgd  the same with one rate for all rows, the textbook's
gradient   both factors step along the full gradient, each row by its own curvature, with momentum
References: Gemulla, Haas, Nijkamp & Sismanis 2011 (strata); Chin, Zhuang, Juan & Lin 2015 (a rate a row); Polyak 1964.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion import _auto_ridge as auto_ridge
from twofold.completion.cells import split_biases
from twofold.completion.model import Factors
from twofold.core import loop
from twofold.core.data.blocks import Rows
from twofold.core.data.known_cells import Observed, Side
from twofold.core.engine.local import Engine
from twofold.core.engine.strata import groups
from twofold.core.estimator import fitting
from twofold.core.numerics import alternating_ridge as ridges
from twofold.core.numerics.alternating_ridge import Ridge, features, hold_rows
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.kernels import sgd

MIN_TILE_CELLS = 4096  # cells a tile should have at least
REMEMBERED_SWEEPS = 10.0  # sweeps that steps remember where they start near the goal
MAX_CELL_RIDGE = 8.0  # ridge on a cell at most, in units of the spread


class State(NamedTuple):
    """Both factors with biases last, and what their steps remember: squared gradients (n,), or velocities (n,p)."""

    U: np.ndarray
    Z: np.ndarray
    of_U: np.ndarray
    of_Z: np.ndarray
    rate: float
    objective: float


class Tile(NamedTuple):
    """Some cells, shuffled."""

    rows: np.ndarray
    cols: np.ndarray
    x: np.ndarray
    w: np.ndarray


class Plan(NamedTuple):
    """What stays the same over the sweeps."""

    cells: Observed
    k: int
    mean: float
    unit: float  # √s
    ridges: tuple[np.ndarray, np.ndarray]  # (n,2) and (d,2), of every row and column and of their biases
    shares: tuple[np.ndarray, np.ndarray]  # the same for one known cell of each


def deal_tiles(cells: Observed, rng: np.random.Generator) -> list[list[Tile]]:
    """B strata of B tiles; tile b of stratum s holds the cells of row group b and column group b + s."""
    (n, d), count = cells.shape, cells.X.nnz
    B = int(np.clip(np.sqrt(count / MIN_TILE_CELLS), 1, 32))
    row = np.repeat(np.arange(n, dtype=np.int32), np.diff(cells.X.indptr))
    col = cells.X.indices.astype(np.int32, copy=False)
    of_row, of_col = (
        groups(np.bincount(line, minlength=m), B, rng).astype(np.int16) for line, m in ((row, n), (col, d))
    )
    b = of_row[row]
    shuffled = rng.permutation(count).astype(np.int32 if count < 2**31 else np.int64)
    tile = (((of_col[col] - b) % B) * B + b).astype(np.uint16)[shuffled]  # of few bits, which sort in one pass
    order = shuffled[np.argsort(tile, kind="stable")]
    cuts = np.concatenate([[0], np.cumsum(np.bincount(tile, minlength=B * B))])
    columns = row[order], col[order], cells.X.data[order], cells.W.data[order]
    tiles = [Tile(*(c[a:e] for c in columns)) for a, e in pairwise(cuts)]
    return [tiles[s * B : (s + 1) * B] for s in range(B)]


class TileSteps:
    """A step a cell, one tile after the other: the rate of a row falls ("sgd"), or stays ("plain-sgd")."""

    def __init__(self, cells: Observed, learning_rate: float, falls: bool, rng: np.random.Generator):
        self.learning_rate, self.growth, self.strata = learning_rate, float(falls), deal_tiles(cells, rng)

    def start(self, plan: Plan, U: np.ndarray, Z: np.ndarray, near: bool) -> State:
        """Steps that remember nothing, or are short where the factors are `near` the goal."""
        dtype = plan.cells.dtype
        first = dtype.type(plan.unit**6)  # the square of an error times a factor: of s √s
        of_U, of_Z = (
            first * (1 + REMEMBERED_SWEEPS * near * self.growth * side.mass).astype(dtype)
            for side in (plan.cells.rows, plan.cells.cols)
        )
        return State(U, Z, of_U, of_Z, self.learning_rate * plan.unit, 0.0)

    def advance(self, plan: Plan, state: State) -> State:
        """One sweep over all cells, stratum after stratum."""
        U, Z, of_U, of_Z = (a.copy() for a in state[:4])
        engine, total = Engine(), 0.0
        common = [engine.broadcast(s) for s in (plan, (state.rate, self.growth), U, Z, of_U, of_Z)]
        for tiles in self.strata:
            total += sum(engine.gather(engine.map(step_tile, Rows(tiles), *common)))
        return State(U, Z, of_U, of_Z, state.rate, total)


def step_tile(
    t: Tile, plan: Plan, rates: tuple[float, float], U: np.ndarray, Z: np.ndarray, of_U: np.ndarray, of_Z: np.ndarray
) -> float:
    """The steps of one tile, in place: no other tile of the stratum touches its rows and columns."""
    mean, unit, rate, growth = map(U.dtype.type, (plan.mean, plan.unit, *rates))
    return sgd.sgd_cells(*t, plan.k, mean, unit, *plan.shares, rate, growth, U, Z, of_U, of_Z)


def compute_gradients(side: Side, U: np.ndarray, Z: np.ndarray, plan: Plan) -> tuple[np.ndarray, float]:
    """One side's scaled gradient and its share of the objective."""
    engine, shared = Engine(), features(Z, plan.k, plan.mean, plan.unit)
    ridge = side.blocks.rows(plan.ridges[side is plan.cells.cols])
    given = side.blocks, side.weights, side.blocks.rows(U), ridge, *(engine.broadcast(s) for s in shared)
    parts = engine.gather(engine.map(_block_gradient, *given))
    return np.concatenate([p[0] for p in parts]), float(np.concatenate([p[1] for p in parts]).sum())


def _block_gradient(
    X: sparse.csr_array, w: np.ndarray, U: np.ndarray, lam: np.ndarray, Z: np.ndarray, offset: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    G, cost = np.empty_like(U), np.empty(len(U))
    sgd.row_gradients(X.indptr, X.indices, X.data, w, Z, offset, lam, U, G, cost)
    return G, cost


class FullSteps:
    """Steps along the full gradient, with momentum ("gradient")."""

    def __init__(self, momentum: float):
        self.momentum = momentum

    def start(self, plan: Plan, U: np.ndarray, Z: np.ndarray, near: bool) -> State:
        return State(U, Z, np.zeros_like(U), np.zeros_like(Z), 1.0, compute_objective(U, Z, plan))

    def advance(self, plan: Plan, state: State) -> State:
        """One step; one that would raise the objective is retried, shorter and without momentum."""
        GU, _ = compute_gradients(plan.cells.rows, state.U, state.Z, plan)
        GZ, _ = compute_gradients(plan.cells.cols, state.Z, state.U, plan)
        rate, momentum = state.rate, self.momentum
        while True:
            of_U, of_Z = momentum * state.of_U - rate * GU, momentum * state.of_Z - rate * GZ
            U, Z = (state.U + of_U).astype(GU.dtype), (state.Z + of_Z).astype(GU.dtype)
            now = compute_objective(U, Z, plan)
            if now <= state.objective or rate < 1e-6:
                return State(U, Z, of_U, of_Z, min(1.1 * rate, 1.0), now)
            rate, momentum = rate / 2, 0.0


def compute_objective(U: np.ndarray, Z: np.ndarray, plan: Plan) -> float:
    own = compute_gradients(plan.cells.rows, U, Z, plan)[1]
    size = Z.astype(float) ** 2
    return own + float(
        plan.ridges[1][:, 0] @ size[:, : plan.k].sum(axis=1) + plan.ridges[1][:, 1] @ size[:, plan.k :].sum(axis=1)
    )


def hold_sides(problem: ridges.Plan) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(n,2) and (d,2) the ridges of rows and columns and of their biases; and what falls on one known cell of each,
    held below where a step would overshoot."""
    cells, most = problem.cells, MAX_CELL_RIDGE * problem.spread
    out = []
    for side, last in ((cells.rows, problem.ridge.last), (cells.cols, problem.last)):
        lam = hold_rows(side.mass, problem.ridge._replace(last=last))
        share = np.minimum(lam / np.maximum(side.mass, 1e-12)[:, None], most)
        out.append((lam.astype(cells.dtype), share.astype(cells.dtype)))
    (rows, row_share), (cols, col_share) = out
    return (rows, cols), (row_share, col_share)


class GradientFactorization(Factors):
    """Matrix completion by stochastic or full gradient steps: the objective of :class:`ALS`, another way down.

    Parameters
    ----------
    n_components : "auto", int or None, default="auto"
        Factors a row; "auto" finds them together with λ, as in :class:`ALS`. None means 20, or the columns if fewer.
    solver : {"sgd", "plain-sgd", "gradient"}, default="sgd"
        A step a cell, in strata of tiles that share no row and no column; the same with one rate for all rows, as in
        textbooks; or full gradients with momentum, whose objective never rises.
    reg : "auto" or float, default="auto"
    reg_power : float or None, default=None
        The ridge, in units of the standard deviation of the known cells, and how it grows with the known cells of a
        row: as in :class:`ALS`, whose half-steps "auto" uses to find it.
    biases : bool, default=True
        Fit a mean, row and column biases together with the factors.
    learning_rate : float, default=0.2
        First step of "sgd", which every row lowers as its gradients add up, and every step of "plain-sgd",
        ``u += learning_rate / s (e z − λ u)``; "gradient" finds its own.
    momentum : float, default=0.9
        How much of the last step "gradient" adds to the next.
    normalize : {"row", "column"} or None, default=None
        Fit the z-scores of rows or of columns: as in :class:`ALS`.
    tol : float, default=1e-3
    max_iter : int, default=100
        When the sweeps end: as in :class:`ALS`.
    random_state : int, RandomState, Generator or None, default=None
        The start, and how cells are dealt into tiles and shuffled.

    Attributes
    ----------
    components_, row_factors_, row_bias_, column_bias_, mean_, normalization_
        As in :class:`ALS`.
    spread_, reg_, bias_reg_, path_
        s, the standard deviation of the known cells, λ, and how it was found: as in :class:`ALS`.
    history_, n_iter_, converged_
        The objective of "sgd" adds up what each cell cost when its turn came.

    References
    ----------
    Gemulla, Haas, Nijkamp & Sismanis (2011), *KDD*, 69-77. Chin, Zhuang, Juan & Lin (2015), *PAKDD*, 442-455.

    Examples
    --------
    >>> from twofold import GradientFactorization
    >>> rng = np.random.default_rng(0)
    >>> truth = 3 + rng.normal(size=(300, 2)) @ rng.normal(size=(2, 100))
    >>> X = np.where(rng.random(truth.shape) < 0.3, truth, np.nan)
    >>> model = GradientFactorization(2, reg=0.01, random_state=0).fit(X)
    >>> error = (model.predict(X) - truth)[np.isnan(X)]
    >>> bool(np.sqrt((error**2).mean()) < 0.2 * truth.std())
    True
    """

    reg_: float
    bias_reg_: tuple[float, float] | None = None
    path_: dict
    spread_: float
    _parameter_constraints: ClassVar[dict] = {
        **Factors._parameter_constraints,
        **auto_ridge.RIDGE_PARAMETERS,
        "solver": [StrOptions({"sgd", "plain-sgd", "gradient"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "momentum": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        solver: str = "sgd",
        reg: str | float = "auto",
        reg_power: float | None = None,
        biases: bool = True,
        learning_rate: float = 0.2,
        momentum: float = 0.9,
        normalize: str | None = None,
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.solver = solver
        self.reg = reg
        self.reg_power = reg_power
        self.biases = biases
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> GradientFactorization:
        """Fit to the known cells of X; see :meth:`ALS.fit` for the arguments."""
        cells, seed = self._observe(X, sample_weight), seed_of(self.random_state)
        solver: TileSteps | FullSteps = FullSteps(self.momentum)
        if self.solver != "gradient":
            solver = TileSteps(cells, self.learning_rate, self.solver == "sgd", generator(seed, 1))
        problem, start, self.path_ = self._find(cells, seed)
        plan = Plan(cells, problem.k, problem.mean, float(np.sqrt(problem.spread)), *hold_sides(problem))

        def sweep(state: State, t: int) -> loop.Sweep:
            state = solver.advance(plan, state)
            return loop.Sweep(state, state.objective)

        def to_attributes(state: State) -> dict:
            return {**split_biases(state.U, state.Z, plan.k, plan.unit), **auto_ridge.describe_ridges(problem)}

        U, Z = start or self._draw(plan, seed)
        self._run(cells, sweep, solver.start(plan, U, Z, start is not None), seed, X, to_attributes)
        return self

    def _find(self, cells: Observed, seed: int) -> tuple[ridges.Plan, ridges.State | None, dict]:
        """The problem with its ridges; where λ was found, the factors it was found with; and how."""
        reg: float = 0.0 if isinstance(self.reg, str) else self.reg
        power, most = auto_ridge.get_power(self.reg, self.reg_power), self._rank(cells.shape)
        make = partial(ridges.make_plan, cells, reg=reg, biases=self.biases, power=power)
        if isinstance(self.reg, str):
            return auto_ridge.find_ridges(
                make, auto_ridge.list_ranks(most, self.n_components == "auto"), self.biases, seed
            )
        return make(most), None, auto_ridge.start_path()

    def _draw(self, plan: Plan, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Factors of equal size on both sides, whose products are a fraction of the spread; biases zero."""
        dtype, p, size = plan.cells.dtype, plan.k + self.biases, plan.unit * np.sqrt(0.1 / np.sqrt(plan.k))
        U, Z = (generator(seed, s).normal(size=(m, p)) * size for s, m in zip((2, 3), plan.cells.shape, strict=True))
        U[:, plan.k :], Z[:, plan.k :] = 0, 0
        return U.astype(dtype), Z.astype(dtype)

    def _ridge(self) -> Ridge:
        last = None if self.bias_reg_ is None else self.bias_reg_[0] * self.spread_
        return Ridge(self.reg_, auto_ridge.get_power(self.reg, self.reg_power), None, last)
