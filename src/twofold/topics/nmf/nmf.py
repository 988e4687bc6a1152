"""Non-negative factorization.

    minimise  ½‖X − U Z‖²,  or  Σ x log(x/ŷ) − x + ŷ with ŷ = U Z,   over  U ≥ 0, Z ≥ 0
    X (n,d) data in row blocks   U (n,k) codes   Z (k,d) parts

One sweep:  each block  U_b ← better codes given Z, and their sums
            then once   Z   ← better parts given the sums; it runs ahead along its last step while that pays
The half-steps are in _squared and _kl, looking ahead in core.numerics.extrapolation, the start in _init.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows, is_dask
from twofold.core.data.known_cells import Observed, observed, sides
from twofold.core.engine.local import fingerprint, stacked
from twofold.core.estimator import Reorderable, fitting
from twofold.core.numerics.extrapolation import State, begin, geometric, nonnegative, sweeper
from twofold.core.params import ITERATIVE, Interval, StrOptions
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.topics._nonnegative import NonnegativeModel, sum_cells
from twofold.topics.nmf import _kl, _squared
from twofold.topics.nmf._init import Data, start
from twofold.topics.nmf._missing_cells import expect_holes, measure_holes, share_of_holes

SOLVERS = {"squared": ("hals", "als", "multiplicative"), "kl": ("newton", "multiplicative")}


class NMF(Reorderable, NonnegativeModel):
    """Non-negative matrix factorization: rows as sums, never differences, of k parts.

    ``X ≈ codes @ components_`` with nothing below zero, by squared error or by the generalised Kullback-Leibler
    divergence. Cells that are NaN are missing; `sample_weight` may weigh rows or single cells. So that nothing runs
    wild where nothing is known, a missing cell stands at its column's mean with a small weight: the share of the data
    that the parts leave unexplained.

    Parameters
    ----------
    n_components : int or None, default=None
        Parts; None means 10, or fewer if the table is smaller.
    loss : {"squared", "kl"}, default="squared"
        "kl" suits counts: its optimum is that of :class:`PLSA`.
    solver : {"auto", "hals", "als", "multiplicative", "newton"}, default="auto"
        For squared error "hals" (coordinate descent with looking ahead: the default), "als" (least squares clipped at
        zero: simple, and the only one whose objective may rise) or "multiplicative" (Lee & Seung: slow). For "kl"
        "newton" (the default) or "multiplicative".
    init : {"nndsvd", "random"} or array of shape (k, d), default="nndsvd"
        Where to begin: from singular vectors, at random, or from given parts.
    l1 : float, default=0.0
        Weight of the sum of the codes, which makes many of them zero; for "hals" on whole tables. With it every part
        has norm 1 at most, since codes could shrink at the parts' expense otherwise. (Under "kl" it would only rescale
        the codes.)
    tol : float, default=1e-5
        Stop when a sweep lowers the objective by less than this, relatively.
    max_iter : int, default=500
        Sweeps at most.
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
        The divergence of the known cells from the parts, divided by that from `means_`: what a missing cell counts.
    solver_ : str
    history_, n_iter_, converged_
        The objective never rises, but with "als". With "kl" it is taken after the codes and before the parts move.
        With missing cells it is D exp(P / D₀): D the divergence of the known cells, D₀ that from their columns' means,
        P the divergence of these means, in the missing cells, from the parts.

    References
    ----------
    Cichocki & Phan (2009), *IEICE Trans. Fundamentals* E92-A, 708-721 (HALS). Gillis & Glineur (2012), *Neural
    Computation* 24, 1085-1105. Ang & Gillis (2019), *Neural Computation* 31, 417-439 (looking ahead). Hsieh & Dhillon
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
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions(set(SOLVERS))],
        "solver": [StrOptions({"auto", "hals", "als", "multiplicative", "newton"})],
        "init": [StrOptions({"nndsvd", "random"}), "array-like"],
        "l1": [Interval(Real, 0, None, closed="left")],
        **ITERATIVE,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        loss: str = "squared",
        solver: str = "auto",
        init: Any = "nndsvd",
        l1: float = 0.0,
        tol: float = 1e-5,
        max_iter: int = 500,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.loss = loss
        self.solver = solver
        self.init = init
        self.l1 = l1
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> NMF:
        """Find the parts.

        Parameters
        ----------
        X : array, sparse array, frame, path or dask array of shape (n, d)
            Nothing below zero. NaN (dense) is missing; an unstored cell (sparse) is a zero.
        y : ignored
        sample_weight : array of shape (n,) or (n, d), optional
            How much each row, or each cell, counts.
        """
        self._fit(X, sample_weight)
        return self

    @fitting
    def fit_transform(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Any:
        """Find the parts, and give the codes of the rows."""
        kept = self._fit(X, sample_weight)
        return self.transform(X) if is_dask(X) else stacked([U for (U,) in kept.local()])

    def _fit(self, X: Any, sample_weight: Any) -> Rows:
        data, seed = self._data(X, sample_weight), seed_of(self.random_state)
        k, solver = self._rank(data.blocks.shape), self._solver(data.cells is not None)
        problem, (kept, V) = self._problem(data, solver), start(data, k, self.loss, self.init, solver, seed)
        sweep = sweeper(problem.advance, self._ahead(solver), self.tol, falls=solver != "als")

        def fitted(state: State) -> dict:
            left = data.holes.unexplained(state.objective)
            parts = {"components_": np.ascontiguousarray(state.V.T), "means_": data.holes.means}
            return {**parts, "unexplained_": left, "solver_": solver}

        last = loop.run(
            self,
            sweep,
            begin(_squared.clip_norms(V) if self.l1 else V, kept),
            fitted=fitted,
            X=X,
            fingerprint=lambda: fingerprint(data.blocks, data.w) + ("" if data.cells is None else data.cells.sign()),
            seed=seed,
        )
        kept, misfit, self.unexplained_ = problem.finish(last.kept, last.V)
        self.reconstruction_err_ = float(np.sqrt(2 * misfit))
        return kept

    def _data(self, X: Any, sample_weight: Any) -> Data:
        blocks, W = self._blocks(X, reset=True), None
        if sparse.issparse(sample_weight):
            W = sparse.csr_array(sample_weight)
        elif sample_weight is not None and (given := np.asarray(sample_weight)).ndim == 2:
            W = given
        w = None if W is not None else self._weights(blocks, sample_weight)
        totals = sum_cells(self, blocks, w, allow_nan=not blocks.is_sparse, logs=self.loss == "kl")
        if W is None and not totals.missing:
            return Data(blocks, w, None, totals, None, expect_holes(blocks, w, totals, self.loss))
        cells = gather_cells(blocks, w if W is None else W, type(self).__name__)
        return Data(blocks, w, W, totals, cells, measure_holes(cells, self.loss))

    def _rank(self, shape: tuple[int, int]) -> int:
        return min(10, *shape) if self.n_components is None else int(self.n_components)

    def _solver(self, masked: bool) -> str:
        """The solver by name, or an error where it cannot do what is asked."""
        known = SOLVERS[self.loss]
        solver = known[0] if self.solver == "auto" else self.solver
        if solver not in known:
            raise InputError(f'solver="{solver}" does not minimise loss="{self.loss}". Use one of {", ".join(known)}.')
        if masked and self.loss == "squared" and solver != "hals":
            raise InputError(f'solver="{solver}" needs every cell of X. Use "auto" for missing or weighted cells.')
        if self.l1 and (masked or solver != "hals"):
            what = "missing or weighted cells" if masked else f'solver="{solver}"'
            why = " (under that loss it would only rescale them)" if self.loss == "kl" else ""
            raise InputError(
                f"l1={self.l1} on the codes cannot go with {what}{why}. Set l1=0, or use HALS on all cells."
            )
        return solver

    def _problem(self, data: Data, solver: str) -> Any:
        blocks, w, W, totals, cells, holes = data
        if self.loss == "kl" and cells is not None:
            return _kl.MaskedKullbackLeibler(blocks, w, W, holes, _kl.Rule(solver))
        if self.loss == "kl":
            return _kl.KullbackLeibler(blocks, w, totals.logs, holes, _kl.Rule(solver))
        if cells is not None:
            return _squared.MaskedSquared(cells, holes)
        sweeps = _squared.SPARSE_SWEEPS if blocks.is_sparse else _squared.DENSE_SWEEPS
        return _squared.Squared(blocks, w, totals.square, holes, _squared.Rule(solver, self.l1, sweeps))

    def _ahead(self, solver: str) -> Any:
        """How parts run ahead, if the solver lets them."""
        if solver in ("als", "multiplicative"):
            return None
        run = nonnegative if solver == "hals" else geometric
        return (lambda *steps: _squared.clip_norms(run(*steps))) if self.l1 else run

    # ---- using -------------------------------------------------------------------------------------------------

    def _refuse(self, blocks: Blocks, allow_nan: bool | None = None) -> None:
        super()._refuse(blocks, not blocks.is_sparse if allow_nan is None else allow_nan)

    def _folding(self) -> tuple:
        check_is_fitted(self)
        return np.ascontiguousarray(self.components_.T), float(self.l1), self.loss, self.means_, self.unexplained_

    def transform(self, X: Table) -> Any:
        """The codes (n,k) of rows, given the parts; missing cells count as in fitting."""
        return self._rowwise(find_codes, X, *self._folding())

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Rows from codes: U Z."""
        return self._check_codes(X) @ self.components_

    def score(self, X: Table, y: Any = None, sample_weight: Weights = None) -> float:
        """Minus the mean objective a row, over its known cells, with the row's best code."""
        cost = self._rowwise(row_costs, X, *self._folding())
        return -float(
            np.average(np.asarray(cost), weights=None if sample_weight is None else np.asarray(sample_weight))
        )


def gather_cells(blocks: Blocks, weights: Any, name: str) -> Observed:
    """The cells that count. In sparse data an unstored cell is a zero like any other: its weight says if it counts."""
    if not blocks.is_sparse or np.ndim(weights) < 2:
        return observed(blocks, weights, name)
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
    return sides(sparse.csr_array((values, W.indices, W.indptr), shape=X.shape), W)


def find_codes(X: Any, V: np.ndarray, l1: float, loss: str, means: np.ndarray, kappa: float) -> np.ndarray:
    """The codes (m,k) of new rows."""
    return solve_rows(X, V, l1, loss, means, kappa)[0]


def row_costs(X: Any, V: np.ndarray, l1: float, loss: str, means: np.ndarray, kappa: float) -> np.ndarray:
    """The objective of each new row (m,) over its known cells, with its best code."""
    return solve_rows(X, V, l1, loss, means, kappa)[1]


def solve_rows(
    X: Any, V: np.ndarray, l1: float, loss: str, means: np.ndarray, kappa: float
) -> tuple[np.ndarray, np.ndarray]:
    """The best codes of new rows, missing cells at their column's mean with weight κ, and the cost of each row.

    A negative cell gives a code that is no number, so that it is refused by name.
    """
    X = X.astype(V.dtype, copy=False)
    values = X.data if sparse.issparse(X) else X
    holes = not sparse.issparse(X) and bool(np.isnan(X).any())
    if (values < 0).any() or not np.isfinite(np.nansum(values)) or (sparse.issparse(X) and np.isnan(values).any()):
        return np.full((X.shape[0], V.shape[1]), np.nan, V.dtype), np.full(X.shape[0], np.nan)
    if not holes:
        return _squared.fold(X, V, l1) if loss == "squared" else _kl.fold(X, V)
    share = share_of_holes((~np.isnan(X)).sum(axis=1), X.shape[1])
    return (_squared if loss == "squared" else _kl).fold_known(X, V, share, means, kappa)
