"""Factorization of clicks and counts: every cell counts, those that were seen count more.

    minimise  Σ_ij c_ij (p_ij − ⟨u_i, z_j⟩)²  +  λ (‖U‖² + ‖Z‖²)      over all cells, with
              p_ij = 1 where something was seen, else 0;   c_ij = 1 + α r_ij

    R (n,d) counts, stored where something was seen   U (n,k) rows   Z (k,d) columns

One sweep:  each column  z_j ← ridge regression in which UᵀU speaks for all the zeros at once
            each row     u_i ← the same, sides exchanged
The n·d zeros cost nothing: with w = α r and x = (1 + w)/w, a seen cell adds w (x − ⟨u,z⟩)² to uᵀZᵀZu and a constant.
References: Hu, Koren & Volinsky 2008; Takács, Pilászy & Tikk 2011 (conjugate gradients).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion._base import Factors
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.data.known_cells import Observed, Side, known, sides
from twofold.core.estimator import fitting
from twofold.core.numerics.alternating_ridge import SMALL, STEPS, Ridge, half_step, solve_rows
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights


class State(NamedTuple):
    """Both factors."""

    U: np.ndarray  # (n,k)
    Z: np.ndarray  # (d,k)


class ImplicitALS(Factors):
    """Recommendations from what people did, not from what they said.

    Unstored cells mean "not seen": they pull towards 0 with weight 1, while a stored count r pulls towards 1 with
    weight ``1 + alpha r``. The prediction is a preference, about 0 to 1, to rank by; it is not a count.

    Parameters
    ----------
    n_components : int or None, default=None
        Factors a row; None means 64, or the columns if fewer.
    reg : float, default=50.0
        Ridge on both factors.
    alpha : float, default=10.0
        How much more a seen cell counts, per count.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        Exact half-steps, or a few conjugate gradient steps from where each row stands.
    tol : float, default=1e-3
        Stop when a sweep lowers the objective by less than this, relatively.
    max_iter : int, default=20
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        Where the column factors start.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
    row_factors_ : ndarray of shape (n, k)
    row_bias_, column_bias_, mean_
        All zero.
    history_, n_iter_, converged_

    References
    ----------
    Hu, Koren & Volinsky (2008), *ICDM*, 263-272.

    Examples
    --------
    Two kinds of people, each with their own six films; a person who saw one film of a kind is led to the others.

    >>> from twofold import ImplicitALS
    >>> rng = np.random.default_rng(0)
    >>> kind = np.arange(40) % 2
    >>> seen = (rng.random((40, 12)) < 0.5) & (np.arange(12) // 6 == kind[:, None])
    >>> model = ImplicitALS(2, reg=0.1, random_state=0).fit(seen.astype(float))
    >>> newcomer = np.zeros((1, 12)); newcomer[0, 1] = 1
    >>> sorted(np.argsort(-model.predict(newcomer)[0])[:6].tolist())
    [0, 1, 2, 3, 4, 5]
    """

    _default_components: ClassVar[int] = 64
    _allow_negative: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict] = {
        **Factors._parameter_constraints,
        "reg": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"auto", "cholesky", "cg"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        reg: float = 50.0,
        alpha: float = 10.0,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 20,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.reg = reg
        self.alpha = alpha
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> ImplicitALS:
        """Fit to counts X (n, d) >= 0; unstored cells, zeros and NaN mean "not seen".

        Parameters
        ----------
        X : array-like, CSR, frame, path or dask array of shape (n, d)
        y : ignored
        sample_weight : array-like of shape (n,) or (n, d), optional
            Multiplies the counts.
        """
        cells = self._seen(self._observed(X, sample_weight))
        k, seed = self._rank(cells.shape), seed_of(self.random_state)
        ridge, constant = Ridge(float(self.reg), False), float((cells.W.data.astype(float) + 1).sum())
        constant -= float((cells.W.data.astype(float) * cells.X.data.astype(float) ** 2).sum())
        steps = STEPS if self.solver == "cg" or (self.solver == "auto" and k > SMALL) else 0

        def half(side: Side, mine: np.ndarray, other: np.ndarray, steps: int) -> tuple[np.ndarray, float]:
            return half_step(side, mine, other.T @ other, other, np.zeros(len(other), other.dtype), ridge, steps)

        def sweep(state: State, t: int) -> loop.Sweep:
            Z, _ = half(cells.cols, state.Z, state.U, steps)
            U, cost = half(cells.rows, state.U, Z, steps)
            return loop.Sweep(State(U, Z), cost + constant + self.reg * float((Z.astype(float) ** 2).sum()))

        Z = (generator(seed).normal(size=(cells.shape[1], k)) / k).astype(cells.dtype)
        U, _ = half(cells.rows, np.zeros((cells.shape[0], k), cells.dtype), Z, steps)
        self._run(cells, sweep, State(U, Z), seed, X, _attributes)
        if steps:  # so that a row folded in again gets its own factor back
            Z = np.ascontiguousarray(self.components_.T)
            self.row_factors_ = half(cells.rows, self.row_factors_, Z, 0)[0]
        return self

    def _seen(self, cells: Observed) -> Observed:
        """Counts as (weight, target) pairs: w = α r, x = (1 + w)/w."""
        R = cells.X
        _check_counts(R)
        W = R * cells.W * R.dtype.type(self.alpha)
        W.eliminate_zeros()
        if W.nnz == 0:
            raise InputError("X holds only zeros: nothing was seen by anyone, so there is nothing to learn from.")
        return sides(make_targets(W), W)

    def _refuse(self, blocks: Blocks, allow_nan: bool | None = None) -> None:
        super()._refuse(blocks, allow_nan)
        for i, first in enumerate(blocks.bounds[:-1]):
            _check_counts(known(blocks[i]), int(first))

    def _folding(self) -> tuple[Callable, tuple]:
        Z = np.ascontiguousarray(self.components_.T)
        return fold_counts, (Z, Z.T @ Z, Ridge(float(self.reg), False), float(self.alpha))


def _check_counts(R: sparse.csr_array, first: int = 0) -> None:
    """Refuse a negative count, with its place; `first` is the number of the first row."""
    if R.nnz and R.data.min() < 0:
        at = int(np.argmax(R.data < 0))
        row = first + int(np.searchsorted(R.indptr, at, side="right")) - 1
        raise InputError(
            f"Negative values in data passed to ImplicitALS: X[{row}, {R.indices[at]}] is {R.data[at]:g}, and counts "
            "are >= 0. For ratings that may be negative use ALS."
        )


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
