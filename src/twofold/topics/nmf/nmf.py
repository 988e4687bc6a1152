"""Non-negative factorization.

    minimize  ½‖X − U Z‖²,  or  Σ x log(x/ŷ) − x + ŷ with ŷ = U Z,   over  U ≥ 0, Z ≥ 0
    X (n,d) data in row blocks   U (n,k) codes   Z (k,d) parts
    and, with penalties,  α_W d (ρ Σ u + (1−ρ)/2 Σ u²) + α_H n (ρ Σ z + (1−ρ)/2 Σ z²)

One sweep:  each block  U_b ← better codes given Z, and their sums
            then once   Z   ← better parts given the sums, extrapolated along the last step while that lowers the cost
Half-steps, a file a divergence: squared, kullback_leibler, beta_divergence. Extrapolation: core.numerics.extrapolation.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows, is_dask
from twofold.core.data.known_cells import Observed, find_known_cells, see_both_sides
from twofold.core.engine.local import fingerprint, stack_rows
from twofold.core.estimator import Reorderable, fitting
from twofold.core.heldout import SQUARED, Split, dense_slices, keep_above_zero
from twofold.core.numerics import extrapolation
from twofold.core.params import ITERATIVE, Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.topics._nonnegative import NonnegativeModel, find_cell, sum_cells
from twofold.topics.merging import Mergeable
from twofold.topics.nmf import beta_divergence, kullback_leibler, squared
from twofold.topics.nmf.problem import (
    Data,
    Penalty,
    Problem,
    divergences,
    expect_holes,
    measure_holes,
    share_of_holes,
    start,
)

BETA = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}
SOLVERS = {2.0: ("cd", "als", "mu"), 1.0: ("newton", "mu")}  # by β; ("mu",) for all others
STARTS = ("nndsvd", "nndsvda", "nndsvdar", "random", "custom")


class NMF(Mergeable, Reorderable, NonnegativeModel):
    """Non-negative matrix factorization: rows are sums, never differences, of k parts.

    ``X ≈ codes @ components_``, both non-negative, by squared error, the generalized Kullback-Leibler divergence or
    another β-divergence. Cells that are NaN are missing; `sample_weight` may weigh rows or single cells. A missing cell
    has its column's mean as value, with a small weight: the share of the data that the parts leave unexplained.

    Parameters
    ----------
    n_components : int, "auto" or None, default="auto"
        Parts; None and "auto" mean as many as columns, or as `H` has rows with ``init="custom"``.
    init : {"random", "nndsvd", "nndsvda", "nndsvdar", "custom"}, array of shape (k, d) or None, default=None
        The start: random; singular vectors, with their zeros unchanged, at the mean of X or at small random numbers;
        the `W` and `H` of :meth:`fit_transform`; or an array of parts. None means "nndsvd", with zeros raised a little
        for solvers that multiply; on a small table "cd" and "newton" also try two random starts for 40 sweeps each,
        and take the best.
    solver : {"auto", "cd", "als", "mu", "newton"}, default="auto"
        For squared error "cd" (coordinate descent, or HALS, with extrapolation: the default), "als" (least squares
        clipped at zero: simple, and the only one whose objective may rise) or "mu" (Lee & Seung's multiplicative
        updates: slow). For "kullback-leibler" "newton" (the default) or "mu"; for other divergences "mu".
    beta_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float, default="frobenius"
        The β-divergence to minimize: half the squared error (2), the generalized Kullback-Leibler divergence (1), which
        suits counts and has the optimum of :class:`PLSA`, Itakura-Saito (0), which does not depend on units, or
        another β. All but the first two are for dense tables without missing cells.
    alpha_W, alpha_H : float, default=0.0 and "same"
        Penalties of codes and of parts, times the columns and the rows of X, so that they do not depend on the size
        of the table; "same" means that of the codes. For whole tables. If only one side has a penalty, it shrinks and
        the other grows.
    l1_ratio : float, default=0.0
        The share of the penalties that is a sum of entries, which makes many of them zero; the rest is half a sum of
        squares.
    tol : float, default=1e-5
        Stop when the relative fall of the objective in the last sweeps, plus a tenth of the fall that their trend
        predicts, is below this.
    max_iter : int, default=500
        Maximum number of sweeps.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Z, the parts.
    reconstruction_err_ : float
        The Frobenius norm of ``X - codes @ components_``, or the root of twice the divergence, with weights.
    means_ : ndarray of shape (d,)
        Of the known cells of each column.
    unexplained_ : float
        The divergence of the known cells from the parts, divided by that from `means_`: the weight of a missing cell.
    n_components_ : int
    solver_ : str
    history_, n_iter_, converged_
        The objective, with the penalties, never rises, but with "als". Unless it is the squared error it is taken after
        the codes and before the parts move.
        With missing cells it is D exp(P / D₀): D the divergence of the known cells, D₀ that from their columns' means,
        P the divergence of these means, in the missing cells, from the parts.

    References
    ----------
    Cichocki & Phan (2009), *IEICE Trans. Fundamentals* E92-A, 708-721 (HALS). Gillis & Glineur (2012), *Neural
    Computation* 24, 1085-1105. Ang & Gillis (2019), *Neural Computation* 31, 417-439 (extrapolation). Hsieh & Dhillon
    (2011), *KDD*, 1064-1072 (KL). Boutsidis & Gallopoulos (2008), *Pattern Recognition* 41, 1350-1362 (NNDSVD).

    Examples
    --------
    >>> from twofold import NMF
    >>> parts = np.kron(np.eye(3), np.ones(4))                             # three parts of four columns each
    >>> codes = np.random.default_rng(0).gamma(1.0, size=(100, 3))
    >>> X = codes @ parts
    >>> X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan         # a cell in ten is missing
    >>> model = NMF(3, tol=1e-9, random_state=0).fit(X)
    >>> bool(np.abs(model.inverse_transform(model.transform(X)) - codes @ parts).max() < 1e-3)
    True
    """

    _allow_nan: ClassVar[bool] = True
    _component_axes: ClassVar[dict[str, int]] = {"components_": 0}
    components_: Annotated[np.ndarray, "k d, >= 0"]
    means_: Annotated[np.ndarray, "d"]
    n_components_: int
    solver_: str
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [None, StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "init": [None, StrOptions(STARTS), "array-like"],
        "solver": [StrOptions({"auto", "cd", "als", "mu", "newton"})],
        "beta_loss": [StrOptions(BETA), Interval(Real, None, None, closed="neither")],
        "alpha_W": [Interval(Real, 0, None, closed="left")],
        "alpha_H": [StrOptions({"same"}), Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        **ITERATIVE,
    }
    _instead: ClassVar[dict[str, str]] = {
        "shuffle": "coordinates are visited in their order. Leave it out.",
    }

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: Any = None,
        solver: str = "auto",
        beta_loss: str | float = "frobenius",
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        tol: float = 1e-5,
        max_iter: int = 500,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.beta_loss = beta_loss
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None, W: Any = None, H: Any = None) -> NMF:
        """Find the parts.

        Parameters
        ----------
        X : array, sparse array, frame, path or dask array of shape (n, d)
            Nothing below zero. NaN (dense) is missing; an unstored cell (sparse) is a zero.
        y : ignored
        sample_weight : array of shape (n,) or (n, d), optional
            How much each row, or each cell, counts.
        W, H : arrays of shape (n, k) and (k, d), optional
            The start, for ``init="custom"``.
        """
        self._fit(X, sample_weight, W, H)
        return self

    @fitting
    def fit_transform(
        self, X: Table, y: Any = None, sample_weight: Weights = None, W: Any = None, H: Any = None
    ) -> Any:
        """Find the parts, and give the codes of the rows; the arguments are those of :meth:`fit`."""
        kept, n = self._fit(X, sample_weight, W, H)
        return self.transform(X) if is_dask(X) else stack_rows((U for (U,) in kept.local()), n)

    def _fit(self, X: Any, sample_weight: Any, W: Any, H: Any) -> tuple[Rows, int]:
        """Codes kept by the blocks, and of how many rows."""
        if not (W is None and H is None) and self._start() != "custom":
            raise InputError('W and H are the start only with init="custom". Set it, or leave them out.')
        data, seed = self._data(X, sample_weight), seed_of(self.random_state)
        k, solver = self._rank(data.blocks.shape, H), self._solver(data.cells is not None)
        problem = self._problem(data, solver)

        def begin_at(init: Any, seed: int) -> extrapolation.State:
            kept, V = start(data, k, init, solver, seed, (W, H))
            return extrapolation.begin(V, kept)

        starts = [begin_at(self._start(), seed)]
        extrapolate = {"cd": extrapolation.nonnegative, "newton": extrapolation.geometric}.get(solver)
        sweep = extrapolation.sweeper(problem.advance, extrapolate, self.tol, falls=solver != "als")
        small = data.cells is None and np.prod(data.blocks.shape) * k <= extrapolation.SMALL
        if self.init is None and extrapolate and small:
            starts += [begin_at("random", seed_of(generator(seed, 3, t))) for t in range(extrapolation.DRAWS)]

        def list_fitted(state: extrapolation.State) -> dict:
            left = data.holes.compute_kappa(state.objective)
            parts = {"components_": np.ascontiguousarray(state.V.T), "means_": data.holes.means}
            return {**parts, "unexplained_": left, "solver_": solver, "n_components_": k}

        last = loop.run(
            self,
            sweep,
            extrapolation.choose_start(sweep, starts, self.max_iter),
            fitted=list_fitted,
            X=X,
            fingerprint=lambda: fingerprint(data.blocks, data.w) + ("" if data.cells is None else data.cells.sign()),
            seed=seed,
        )
        kept, misfit, self.unexplained_ = problem.finish(last.kept, last.V)
        self.reconstruction_err_ = float(np.sqrt(2 * misfit))
        return kept, data.blocks.shape[0]

    def _data(self, X: Any, sample_weight: Any) -> Data:
        blocks, W = self._blocks(X, reset=True), None
        if sparse.issparse(sample_weight):
            W = sparse.csr_array(sample_weight)
        elif sample_weight is not None and (given := np.asarray(sample_weight)).ndim == 2:
            W = given
        w = None if W is not None else self._weights(blocks, sample_weight)
        beta = self._beta()
        totals = sum_cells(self, blocks, w, allow_nan=not blocks.is_sparse, logs=beta == 1)
        whole = W is None and not totals.missing
        if beta not in SOLVERS and not (whole and not blocks.is_sparse):
            raise InputError(
                f"beta_loss={self.beta_loss!r} needs a dense table without missing or weighted cells: every cell has "
                'its own curvature. Fill the holes, or use "frobenius" or "kullback-leibler".'
            )
        zero = find_cell(blocks, lambda x: x == 0) if beta <= 0 else None
        if zero is not None:
            raise InputError(
                f"X[{zero.row}, {zero.column}] is 0; beta_loss={self.beta_loss!r} divides by it. Add a small number to "
                'X, or use "kullback-leibler".'
            )
        if whole:
            return Data(blocks, w, None, totals, None, expect_holes(blocks, w, totals, beta))
        cells = gather_cells(blocks, w if W is None else W, type(self).__name__)
        return Data(blocks, w, W, totals, cells, measure_holes(cells, beta))

    def _start(self) -> Any:
        """The start: its name, or parts."""
        return self.init if self.init is None or isinstance(self.init, str) else np.asarray(self.init)

    def _beta(self) -> float:
        return BETA[self.beta_loss] if isinstance(self.beta_loss, str) else float(self.beta_loss)

    def _rank(self, shape: tuple[int, int], H: Any) -> int:
        if self.n_components is not None and not isinstance(self.n_components, str):
            return int(self.n_components)
        return shape[1] if H is None else len(H)

    def _penalties(self, rows: float) -> tuple[Penalty, Penalty]:
        """Penalties of the codes and of the parts of a table with `rows` rows, by weight."""
        parts = self.alpha_W if isinstance(self.alpha_H, str) else self.alpha_H
        sides = ((self.alpha_W, self.n_features_in_), (parts, rows))
        return tuple(Penalty(a * m * self.l1_ratio, a * m * (1 - self.l1_ratio)) for a, m in sides)  # type: ignore[return-value]

    def _solver(self, masked: bool) -> str:
        """The solver by name, or an error where it cannot do what is asked."""
        beta = self._beta()
        known = SOLVERS.get(beta, ("mu",))
        solver = known[0] if self.solver == "auto" else self.solver
        if solver not in known:
            raise InputError(
                f'solver="{solver}" does not minimize beta_loss={self.beta_loss!r}. Use one of {", ".join(known)}.'
            )
        if masked and beta == 2 and solver != "cd":
            raise InputError(f'solver="{solver}" needs every cell of X. Use "auto" for missing or weighted cells.')
        if masked and any(map(any, self._penalties(1.0))):
            raise InputError(
                f"alpha_W={self.alpha_W} and alpha_H={self.alpha_H!r} do not work with missing or weighted cells, "
                "which have a penalty already. Set them to 0, or fill the holes first."
            )
        return solver

    def _problem(self, data: Data, solver: str) -> Problem:
        blocks, w, W, totals, cells, holes = data
        beta, penalties = self._beta(), self._penalties(blocks.shape[0] if w is None else float(w.sum()))
        if beta == 1 and cells is not None:
            return kullback_leibler.MaskedKullbackLeibler(blocks, w, W, solver, holes)
        if beta == 1:
            return kullback_leibler.KullbackLeibler(blocks, w, totals.logs, solver, *penalties, holes)
        if beta != 2:
            return beta_divergence.BetaDivergence(blocks, w, beta, *penalties, holes)
        if cells is not None:
            return squared.MaskedSquared(cells, holes)
        return squared.Squared(blocks, w, totals.square, solver, *penalties, holes)

    # ---- using -------------------------------------------------------------------------------------------------

    def _refuse(self, blocks: Blocks, allow_nan: bool | None = None) -> None:
        super()._refuse(blocks, not blocks.is_sparse if allow_nan is None else allow_nan)

    def _folding(self) -> Folding:
        check_is_fitted(self)
        V, penalty = np.ascontiguousarray(self.components_.T), self._penalties(0.0)[0]
        return Folding(V, penalty, self._beta(), self.means_, self.unexplained_)

    def transform(self, X: Table) -> Any:
        """The codes (n,k) of rows, given the parts; missing cells count as in fitting."""
        return self._rowwise(find_codes, X, self._folding())

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Rows from codes: U Z."""
        return self._check_codes(X) @ self.components_

    @property
    def _heldout_unit(self) -> str:  # type: ignore[override]
        beta = self._beta()
        return SQUARED if beta == 2 else f"minus the beta divergence ({beta:g}) of a hidden cell"

    def _hiding(self) -> tuple:
        return _score_hidden_cells, self._folding()

    def score(self, X: Table, y: Any = None, sample_weight: Weights = None) -> float:
        """Minus the mean objective a row, over its known cells, with the row's best code."""
        cost = np.asarray(self._rowwise(row_costs, X, self._folding()))
        return -float(np.average(cost, weights=None if sample_weight is None else np.asarray(sample_weight)))


def gather_cells(blocks: Blocks, weights: Any, name: str) -> Observed:
    """The cells that count. In sparse data an unstored cell is a zero like any other: its weight says if it counts."""
    if not blocks.is_sparse or np.ndim(weights) < 2:
        return find_known_cells(blocks, weights, name)
    if weights.shape != blocks.shape:
        raise InputError(f"sample_weight has shape {weights.shape}; one weight a cell of X {blocks.shape} is needed.")
    X = sparse.vstack([blocks[b] for b in range(len(blocks))], format="csr")
    W = sparse.csr_array(weights).astype(X.dtype)
    W.sum_duplicates()
    W.eliminate_zeros()
    if not (np.isfinite(W.data) & (W.data > 0)).all():
        raise InputError(
            "sample_weight has a cell that is negative or not finite; set 0 where a cell should not count."
        )
    row = np.repeat(np.arange(X.shape[0]), np.diff(W.indptr))
    values = np.asarray(X[row, W.indices]).ravel()
    return see_both_sides(sparse.csr_array((values, W.indices, W.indptr), shape=X.shape), W)


# --- new rows -----------------------------------------------------------------------------------------------


class Folding(NamedTuple):
    """The fitted values that codes of new rows depend on."""

    V: np.ndarray  # (d,k)
    penalty: Penalty
    beta: float
    means: np.ndarray  # (d,) the values of missing cells
    kappa: float  # their weight


def find_codes(X: Any, f: Folding) -> np.ndarray:
    """The codes (m,k) of new rows."""
    return solve_rows(X, f)[0]


def row_costs(X: Any, f: Folding) -> np.ndarray:
    """The objective of each new row (m,) over its known cells, with its best code."""
    return solve_rows(X, f)[1]


def _score_hidden_cells(X: Any, split: Split, f: Folding) -> np.ndarray:
    """(m,2) of each row: the divergence of its hidden cells from their prediction, and their number.

    A code is found from the seen rows of V alone; holes among them count as in fitting.
    """
    out, s, h = np.empty((X.shape[0], 2)), split.seen, split.hidden
    V, means = f.V.astype(np.float64), f.means.astype(np.float64)
    seen = f._replace(V=np.ascontiguousarray(V[s]), means=means[s])
    for rows, x in dense_slices(X):
        M = solve_rows(x[:, s], seen)[0] @ V[h].T
        known = ~np.isnan(x[:, h])
        truth = np.where(known, x[:, h], 1.0)
        cost = (truth - M) ** 2 if f.beta == 2 else divergences(truth, keep_above_zero(M, x[:, s]), f.beta)
        out[rows] = np.stack([np.where(known, cost, 0).sum(axis=1), known.sum(axis=1)], axis=1)
    return out


def solve_rows(X: Any, f: Folding) -> tuple[np.ndarray, np.ndarray]:
    """The best codes of new rows, missing cells at their column's mean with weight κ, and the cost of each row.

    The codes are NaN if a cell cannot be used; the model then refuses it by name.
    """
    V, beta = f.V, f.beta
    X = X.astype(V.dtype, copy=False)
    values = X.data if sparse.issparse(X) else X
    holes = not sparse.issparse(X) and bool(np.isnan(X).any())
    unusable = (sparse.issparse(X) or beta not in SOLVERS) and np.isnan(values).any()
    if (values < 0).any() or not np.isfinite(np.nansum(values)) or unusable:
        return np.full((X.shape[0], V.shape[1]), np.nan, V.dtype), np.full(X.shape[0], np.nan)
    if beta not in SOLVERS:
        return beta_divergence.fold(X.toarray() if sparse.issparse(X) else X, V, f.penalty, beta)
    solver = squared if beta == 2 else kullback_leibler
    if not holes:
        return solver.fold(X, V, f.penalty)
    share = share_of_holes((~np.isnan(X)).sum(axis=1), X.shape[1])
    return solver.fold_known(X, V, share, f.means, f.kappa)
