"""Matrix completion by gradient descent, cell by cell or all at once.

    minimise  Σ_Ω w_ij (x_ij − m − b_i − c_j − ⟨u_i, z_j⟩)² + λ Σ_i n_i (‖u_i‖² + b_i²/s) + λ Σ_j n_j (‖z_j‖² + c_j²/s)

    X (n,d) known in the cells Ω   U (n,k) row factors   Z (k,d) column factors   b, c biases   n_i, n_j known cells
    s the spread of x

sgd        rows and columns are dealt into B groups, so Ω falls into B × B tiles; one sweep is B strata of B tiles that
           share no row and no column: threads never write the same vector, and any number of them gives the same bits
gradient   both factors step along the full gradient, each row by its own curvature, with momentum
References: Gemulla, Haas, Nijkamp & Sismanis 2011 (strata); Chin, Zhuang, Juan & Lin 2015 (a rate a row); Polyak 1964.
"""

from __future__ import annotations

from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion._base import Factors, split_biases
from twofold.core import loop
from twofold.core.data.blocks import Rows
from twofold.core.data.known_cells import Observed, Side
from twofold.core.engine.local import Engine
from twofold.core.engine.strata import groups
from twofold.core.estimator import fitting
from twofold.core.numerics.alternating_ridge import Ridge, features, spread_of
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.kernels import sgd

TILE = 4096  # cells a tile should have at least


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
    lam: float
    momentum: float
    strata: list[list[Tile]]


def deal_tiles(cells: Observed, rng: np.random.Generator) -> list[list[Tile]]:
    """B strata of B tiles; tile b of stratum s holds the cells of row group b and column group b + s."""
    (n, d), count = cells.shape, cells.X.nnz
    B = int(np.clip(np.sqrt(count / TILE), 1, 32))
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


def sweep_tiles(state: State, plan: Plan) -> State:
    """One sweep over all cells, stratum after stratum."""
    U, Z, of_U, of_Z = (a.copy() for a in state[:4])
    engine, total = Engine(), 0.0
    common = [engine.broadcast(s) for s in (plan, state.rate, U, Z, of_U, of_Z)]
    for tiles in plan.strata:
        total += sum(engine.gather(engine.map(step_tile, Rows(tiles), *common)))
    return State(U, Z, of_U, of_Z, state.rate, total)


def step_tile(
    t: Tile, plan: Plan, rate: float, U: np.ndarray, Z: np.ndarray, of_U: np.ndarray, of_Z: np.ndarray
) -> float:
    """The steps of one tile, in place: no other tile of the stratum touches its rows and columns."""
    kind = U.dtype.type
    return sgd.sgd_cells(*t, plan.k, kind(plan.mean), kind(plan.unit), kind(plan.lam), kind(rate), U, Z, of_U, of_Z)


def compute_gradients(side: Side, U: np.ndarray, Z: np.ndarray, plan: Plan) -> tuple[np.ndarray, float]:
    """One side's scaled gradient and its share of the objective."""
    engine, seen = Engine(), features(Z, plan.k, plan.mean, plan.unit)
    shared = [engine.broadcast(s) for s in (*seen, U.dtype.type(plan.lam))]
    parts = engine.gather(engine.map(_block_gradient, side.blocks, side.weights, side.blocks.rows(U), *shared))
    return np.concatenate([p[0] for p in parts]), float(np.concatenate([p[1] for p in parts]).sum())


def _block_gradient(
    X: sparse.csr_array, w: np.ndarray, U: np.ndarray, Z: np.ndarray, offset: np.ndarray, lam: Any
) -> tuple[np.ndarray, np.ndarray]:
    G, cost = np.empty_like(U), np.empty(len(U))
    sgd.row_gradients(X.indptr, X.indices, X.data, w, Z, offset, lam, U, G, cost)
    return G, cost


def step_with_momentum(state: State, plan: Plan) -> State:
    """One step along the full gradient with momentum; a step that would raise the objective is retried, shorter."""
    GU, _ = compute_gradients(plan.cells.rows, state.U, state.Z, plan)
    GZ, _ = compute_gradients(plan.cells.cols, state.Z, state.U, plan)
    rate, momentum = state.rate, plan.momentum
    while True:
        of_U, of_Z = momentum * state.of_U - rate * GU, momentum * state.of_Z - rate * GZ
        U, Z = (state.U + of_U).astype(GU.dtype), (state.Z + of_Z).astype(GU.dtype)
        now = compute_objective(U, Z, plan)
        if now <= state.objective or rate < 1e-6:
            return State(U, Z, of_U, of_Z, min(1.1 * rate, 1.0), now)
        rate, momentum = rate / 2, 0.0


def compute_objective(U: np.ndarray, Z: np.ndarray, plan: Plan) -> float:
    own = compute_gradients(plan.cells.rows, U, Z, plan)[1]
    return own + plan.lam * float(plan.cells.cols.mass @ (Z.astype(float) ** 2).sum(axis=1))


class GradientFactorization(Factors):
    """Matrix completion by stochastic or full gradient steps: the objective of :class:`ALS`, another way down.

    Parameters
    ----------
    n_components : int or None, default=None
        Factors a row; None means 20, or the columns if fewer.
    solver : {"sgd", "gradient"}, default="sgd"
        A step a cell, in strata of tiles that share no row and no column; or full gradients with momentum, whose
        objective never rises.
    reg : float, default=0.1
        Ridge, in units of the standard deviation of the known cells; n_i times it for a row with n_i known cells.
    biases : bool, default=True
        Fit a mean, row and column biases together with the factors.
    learning_rate : float, default=0.2
        First step of "sgd", which every row lowers as its gradients add up; "gradient" finds its own.
    momentum : float, default=0.9
        How much of the last step "gradient" adds to the next.
    tol : float, default=1e-3
        Stop when a sweep lowers the objective by less than this, relatively.
    max_iter : int, default=100
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        The start, and how cells are dealt into tiles and shuffled.

    Attributes
    ----------
    components_, row_factors_, row_bias_, column_bias_, mean_
        As in :class:`ALS`.
    spread_, reg_ : float
        s, the standard deviation of the known cells, and λ = reg · s.
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
    _parameter_constraints: ClassVar[dict] = {
        **Factors._parameter_constraints,
        "solver": [StrOptions({"sgd", "gradient"})],
        "reg": [Interval(Real, 0, None, closed="left")],
        "biases": ["boolean"],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "momentum": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        solver: str = "sgd",
        reg: float = 0.1,
        biases: bool = True,
        learning_rate: float = 0.2,
        momentum: float = 0.9,
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.solver = solver
        self.reg = reg
        self.biases = biases
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> GradientFactorization:
        """Fit to the known cells of X; see :meth:`ALS.fit` for the arguments."""
        cells, seed = self._observed(X, sample_weight), seed_of(self.random_state)
        k, (mean, spread) = self._rank(cells.shape), spread_of(cells)
        strata = deal_tiles(cells, generator(seed, 1)) if self.solver == "sgd" else []
        lam = max(self.reg, 1e-12) * spread
        plan = Plan(cells, k, mean if self.biases else 0.0, np.sqrt(spread), lam, self.momentum, strata)
        advance = sweep_tiles if self.solver == "sgd" else step_with_momentum

        def sweep(state: State, t: int) -> loop.Sweep:
            state = advance(state, plan)
            return loop.Sweep(state, state.objective)

        start = self._start(plan, seed)
        self._run(cells, sweep, start, seed, X, lambda state: self._attributes(state, plan))
        return self

    def _start(self, plan: Plan, seed: int) -> State:
        """Factors of equal size on both sides, whose products are a fraction of the spread; biases zero."""
        dtype, p, size = plan.cells.dtype, plan.k + self.biases, plan.unit * np.sqrt(0.1 / np.sqrt(plan.k))
        U, Z = (generator(seed, s).normal(size=(m, p)) * size for s, m in zip((2, 3), plan.cells.shape, strict=True))
        U[:, plan.k :], Z[:, plan.k :] = 0, 0
        U, Z = U.astype(dtype), Z.astype(dtype)
        if self.solver == "gradient":
            return State(U, Z, np.zeros_like(U), np.zeros_like(Z), 1.0, compute_objective(U, Z, plan))
        first = dtype.type(plan.unit**6)  # the square of an error times a factor: of s √s
        return State(U, Z, np.full(len(U), first), np.full(len(Z), first), self.learning_rate * plan.unit, 0.0)

    def _attributes(self, state: State, plan: Plan) -> dict:
        found = split_biases(state.U, state.Z, plan.k, plan.unit)
        return {**found, "mean_": plan.mean, "spread_": plan.unit**2, "reg_": plan.lam}

    def _ridge(self) -> Ridge:
        return Ridge(self.reg_, True)
