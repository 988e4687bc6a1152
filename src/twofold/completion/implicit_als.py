"""Factorization of clicks and counts: every cell counts, those that were seen count more.

    minimise  Σ_ij c_ij (p_ij − ⟨u_i, z_j⟩)²  +  Σ_i λ_i ‖u_i‖²  +  Σ_j λ_j ‖z_j‖²      over all cells, with
              p_ij = 1 where something was seen, else 0;   c_ij = 1 + α r_ij;
              λ_i = λ (c_i / c)^ν   for a row whose cells count c_i = Σ_j c_ij, where a typical one's count c

    R (n,d) counts, stored where something was seen   U (n,k) rows   Z (k,d) columns

With ν = 0 this is the plain ridge; with ν = 1 those of whom more is known are held more firmly, so that each cell bears
the same share. In the units of Rendle et al., α = 1/α₀ and c_i = (n_i + α₀ d)/α₀, whose power is their ridge.

One sweep:  each column  z_j ← ridge regression in which UᵀU speaks for all the zeros at once
            each row     u_i ← the same, sides exchanged
exactly, by conjugate gradients, or exactly in one block of the factors after the other (iALS++).
The n·d zeros cost nothing: with w = α r and x = (1 + w)/w, a seen cell adds w (x − ⟨u,z⟩)² to uᵀZᵀZu and a constant.
References: Hu, Koren & Volinsky 2008; Takács, Pilászy & Tikk 2011 (conjugate gradients); Rendle, Krichene, Zhang &
Koren 2021 (how the ridge scales, where to start); Rendle, Krichene, Zhang & Koren 2021, iALS++ (blocks).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.model import Factors, Ranking, find_partitioned
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.data.known_cells import Observed, Side, known, sides
from twofold.core.estimator import fitting
from twofold.core.numerics.alternating_ridge import SMALL, STEPS, Ridge, half_step, hold_rows, solve_rows
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights

BLOCK = 64  # factors that are solved for together
NOTHING = "X holds only zeros: nothing was seen by anyone, so there is nothing to learn from."
SIGNED = "For ratings that may be negative use ALS."
START = 0.1  # about the length of a column's factor at first


class State(NamedTuple):
    """Both factors."""

    U: np.ndarray  # (n,k)
    Z: np.ndarray  # (d,k)


class ImplicitALS(Ranking, Factors):
    """Recommendations from what people did, not from what they said.

    Unstored cells mean "not seen": they pull towards 0 with weight 1, while a stored count r pulls towards 1 with
    weight ``1 + alpha r``. The prediction is a preference, about 0 to 1, to rank by; it is not a count.

    Parameters
    ----------
    n_components : int or None, default=None
        Factors a row; None means 128, or the columns if fewer.
    reg : float, default=35.0
        Ridge λ on both factors, that of a typical row or column.
    reg_power : float, default=1.0
        The ridge grows as what the cells of a row count, to this power: 1 holds those of whom more is known more
        firmly, 0 is the plain ``λ‖u‖²``.
    alpha : float, default=5.0
        How much more a seen cell counts, per count.
    solver : {"auto", "cholesky", "cg", "blocks"}, default="auto"
        Exact half-steps, a few conjugate gradient steps from where each row stands, or 64 factors at a time exactly.
        "auto" is exact with up to 12 factors, then "cg", which gets as far as "blocks" at a third of the cost.
    tol : float, default=1e-3
        Stop when the last sweeps, and a tenth of what their trend says is still to come, lower the objective by less
        than this, relatively.
    max_iter : int, default=20
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        Where the column factors start.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
    row_factors_ : ndarray of shape (n, k)
    reg_ : float
        λ / c^ν: the ridge of a row is this times what its cells count to the power `reg_power`.
    row_bias_, column_bias_, mean_
        All zero.
    history_, n_iter_, converged_

    References
    ----------
    Hu, Koren & Volinsky (2008), *ICDM*, 263-272. Rendle, Krichene, Zhang & Koren (2022), *RecSys*, 427-435; (2021),
    arXiv:2110.14044.

    Examples
    --------
    Two kinds of people, each with their own six films; a person who saw one film of a kind is led to the others.

    >>> from twofold import ImplicitALS
    >>> rng = np.random.default_rng(0)
    >>> kind = np.arange(40) % 2
    >>> seen = (rng.random((40, 12)) < 0.5) & (np.arange(12) // 6 == kind[:, None])
    >>> model = ImplicitALS(2, reg=1.0, random_state=0).fit(seen.astype(float))
    >>> newcomer = np.zeros((1, 12)); newcomer[0, 1] = 1
    >>> sorted(np.argsort(-model.predict(newcomer)[0])[:6].tolist())
    [0, 1, 2, 3, 4, 5]
    """

    reg_: float
    _default_components: ClassVar[int] = 128
    _allow_negative: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict] = {
        **Factors._parameter_constraints,
        "reg": [Interval(Real, 0, None, closed="neither")],
        "reg_power": [Interval(Real, 0, 1, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"auto", "cholesky", "cg", "blocks"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        reg: float = 35.0,
        reg_power: float = 1.0,
        alpha: float = 5.0,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 20,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.reg = reg
        self.reg_power = reg_power
        self.alpha = alpha
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @classmethod
    def _modernized(cls, params: dict[str, Any], fitted: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        if "reg_power" not in params:  # there was the plain ridge
            params["reg_power"] = 0.0
            fitted |= {"reg_": float(params["reg"])} if "components_" in fitted else {}
        return params, fitted

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> ImplicitALS:
        """Fit to counts X (n, d) >= 0; unstored cells, zeros and NaN mean "not seen".

        Parameters
        ----------
        X : array-like, CSR, frame, path or dask array of shape (n, d)
            Or :class:`PartitionedRatings`, and what these are made of: a path or a dask frame of rows whose columns are
            called user and item, or something like that.
        y : ignored
        sample_weight : array-like of shape (n,) or (n, d), optional
            Multiplies the counts.
        """
        ratings = find_partitioned(X, "sum")
        if ratings is not None:
            from twofold.completion.partitioned._fit import fit_implicit

            return fit_implicit(self, ratings, sample_weight)
        cells = self._seen(self._observed(X, sample_weight))
        k, seed = self._rank(cells.shape), seed_of(self.random_state)
        lam, (of_cols, of_rows) = self._scale_ridge(cells.shape, cells.W.data.sum(dtype=float))
        held = hold_rows(cells.cols.mass, of_cols)[:, :1]
        constant = float((cells.W.data.astype(float) + 1).sum())
        constant -= float((cells.W.data.astype(float) * cells.X.data.astype(float) ** 2).sum())
        solver, quick = self._choose_solver(k)

        def half(side: Side, mine: np.ndarray, other: np.ndarray, how: tuple) -> tuple[np.ndarray, float]:
            ridge = of_rows if side is cells.rows else of_cols
            return half_step(side, mine, other.T @ other, other, np.zeros(len(other), other.dtype), ridge, *how)

        def sweep(state: State, t: int) -> loop.Sweep:
            Z, _ = half(cells.cols, state.Z, state.U, quick)
            U, cost = half(cells.rows, state.U, Z, quick)
            return loop.Sweep(State(U, Z), cost + constant + float((held * Z.astype(float) ** 2).sum()))

        Z = draw_start(cells.shape[1], k, generator(seed)).astype(cells.dtype)
        U, _ = half(cells.rows, np.zeros((cells.shape[0], k), cells.dtype), Z, quick)
        self._run(cells, sweep, State(U, Z), seed, X, lambda state: {**_attributes(state), "reg_": lam})
        if solver != "cholesky":  # so that a row folded in again gets its own factor back
            Z = np.ascontiguousarray(self.components_.T)
            self.row_factors_ = half(cells.rows, self.row_factors_, Z, (0, 0))[0]
        return self

    def _scale_ridge(self, shape: tuple[int, int], mass: float) -> tuple[float, list[Ridge]]:
        """λ / c^ν, and the ridges of columns and of rows."""
        typical = np.sqrt(np.prod([d + mass / n for n, d in (shape, shape[::-1])]))
        lam = float(self.reg / typical**self.reg_power)
        return lam, [Ridge(lam, float(self.reg_power), rest=float(others)) for others in shape]

    def _choose_solver(self, k: int) -> tuple[str, tuple[int, int]]:
        """Its name, and steps of conjugate gradients or features of a block."""
        solver = self.solver if self.solver != "auto" else "cg" if k > SMALL else "cholesky"
        return solver, {"cg": (STEPS, 0), "blocks": (0, BLOCK), "cholesky": (0, 0)}[solver]

    def _seen(self, cells: Observed) -> Observed:
        """Counts as (weight, target) pairs: w = α r, x = (1 + w)/w."""
        R = cells.X
        _check_counts(R)
        W = R * cells.W * R.dtype.type(self.alpha)
        W.eliminate_zeros()
        if W.nnz == 0:
            raise InputError(NOTHING)
        return sides(make_targets(W), W)

    def _refuse(self, blocks: Blocks, allow_nan: bool | None = None) -> None:
        super()._refuse(blocks, allow_nan)
        for i, first in enumerate(blocks.bounds[:-1]):
            _check_counts(known(blocks[i]), int(first))

    def _folding(self) -> tuple[Callable, tuple]:
        Z = np.ascontiguousarray(self.components_.T)
        return fold_counts, (Z, Z.T @ Z, Ridge(self.reg_, float(self.reg_power), rest=float(len(Z))), float(self.alpha))


def _check_counts(R: sparse.csr_array, first: int = 0) -> None:
    """Refuse a negative count, with its place; `first` is the number of the first row."""
    if R.nnz and R.data.min() < 0:
        at = int(np.argmax(R.data < 0))
        row = first + int(np.searchsorted(R.indptr, at, side="right")) - 1
        raise InputError(
            f"Negative values in data passed to ImplicitALS: X[{row}, {R.indices[at]}] is {R.data[at]:g}, and counts "
            f"are >= 0. {SIGNED}"
        )


def draw_start(d: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """(d,k) where the factors of columns begin."""
    return START / np.sqrt(k) * rng.normal(size=(d, k))


def make_targets(W: sparse.csr_array) -> sparse.csr_array:
    """The targets x = (1 + w)/w that belong to the weights w."""
    return sparse.csr_array(((1 + W.data) / W.data, W.indices, W.indptr), shape=W.shape)


def fold_counts(R: sparse.csr_array, Z: np.ndarray, base: np.ndarray, ridge: Ridge, alpha: float) -> np.ndarray:
    """Factors of new rows of counts."""
    if R.nnz and R.data.min() < 0:
        return np.full((R.shape[0], Z.shape[1]), np.inf, Z.dtype)  # to be refused with its place
    W = (R * Z.dtype.type(alpha)).tocsr()
    W.eliminate_zeros()
    start = np.zeros((W.shape[0], Z.shape[1]), Z.dtype)
    offset = np.zeros(len(Z), Z.dtype)
    return solve_rows(make_targets(W), W.data, start, base, Z, offset, ridge)[0]


def _attributes(state: State) -> dict:
    n, d, dtype = len(state.U), len(state.Z), state.U.dtype
    return {
        "components_": np.ascontiguousarray(state.Z.T),
        "row_factors_": state.U,
        "row_bias_": np.zeros(n, dtype),
        "column_bias_": np.zeros(d, dtype),
        "mean_": 0.0,
    }
