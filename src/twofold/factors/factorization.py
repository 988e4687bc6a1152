"""Factorization: a loss and a constraint on each factor define the model.

    minimize  Σ_ij w_ij ℓ_j(x_ij, (U Z + μ)_ij)  +  Σ_i left(u_i)  +  right(Z)
    X (n,d) data in row blocks, with holes   U (n,k) codes   Z (k,d) components   μ (d,) on request
    A column of categories has several columns of Z, and (U Z + μ)_ij is then a vector.

One sweep:  each block  every row's loss becomes a parabola: proximal steps on U_b, and sums for the columns
            then once   every column's loss becomes a parabola: the same steps on Z, accelerated while that helps
References: Udell, Horn, Zadeh & Boyd 2016 (the language); Xu & Yin 2013; Ang & Gillis 2019 (acceleration).
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError, check_weights
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import add, engine_for, fingerprint
from twofold.core.estimator import Model, fitting
from twofold.core.heldout import SQUARED, Split, dense_slices, keep_above_zero
from twofold.core.numerics.extrapolation import DRAWS, SMALL, State, begin, choose_start, sweeper
from twofold.core.numerics.moments import Columns
from twofold.core.params import Interval
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.factors import constraints, losses
from twofold.factors._block import Problem, as_dense, compute_row_costs, find_codes
from twofold.factors._constants import find_scales
from twofold.factors._init import (
    average_tied,
    check_cell_weights,
    check_init,
    compute_columns,
    draw_init,
    find_init,
    is_sum_of_parts,
    start_all_codes,
    start_intercept,
)
from twofold.factors._right_step import Data, make_extrapolation, make_sweep
from twofold.factors.losses.mixed import Mixed


class Factorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """Any loss, any constraint on either factor: ``X ≈ codes @ components_``, in one line.

    ============================  ===================================================================================
    the classical name            the line
    ============================  ===================================================================================
    PCA (of centered X)            ``Factorization(k, right=Orthonormal())``
    low rank with holes, ALS      ``Factorization(k, left=Ridge(a), right=Ridge(a))``
    NMF                           ``Factorization(k, left=NonNegative(), right=NonNegative())``
    k-means                       ``Factorization(k, left=OneHot())``
    sparse PCA                    ``Factorization(k, right=L1(a), left=UnitNorm())``
    dictionary learning           ``Factorization(k, left=KSparse(s), right=UnitNorm())``
    logistic PCA                  ``Factorization(k, loss=Logistic(), left=Ridge(), right=Ridge(), intercept=True)``
    pLSA                          ``Factorization(k, loss=Poisson(), left=NonNegative(), right=Simplex())``
    ============================  ===================================================================================

    Parameters
    ----------
    n_components : int or None, default=None
        k; None means 10, or fewer if the table is smaller.
    loss : Loss, list of Loss or None, default=None
        `Squared` (which None means), `Huber`, `Absolute`, `Logistic`, `Poisson`, `Categorical`, `Ordinal`, or your own.
        A list has one for each column of X; columns of categories hold codes 0 to L−1.
    left, right : Constraint or None, default=None
        What a row of the codes, and a component, may be: `Free` (which None means), `Ridge`, `L1`, `NonNegative`,
        `Simplex`, `OneHot`, `UnitNorm`, `KSparse`, for the right also `Orthonormal`; or your own.
    intercept : bool, default=False
        Whether every column has a level of its own, free of the constraints.
    scale : bool, default=False
        Whether the loss of every column is divided by its mean at the best constant, so that columns of different
        kinds and units have equal weight; and whether the right constraint sees numbers in standard deviations.
    init : array of shape (k, d) or None, default=None
        First components; None takes noise of the columns' size, or for sparse codes rows of X, for one-hot ones the
        result of k-means on a sample, and for the Poisson loss of non-negative codes parts of singular vectors
        (NNDSVD). With constraints, on a small table, two more are drawn, and the lowest after 40 sweeps is taken.
    n_init : int, default=1
        Starts, of which the best is kept.
    tol : float, default=1e-6
        Stop when the last sweeps, and a tenth of the decrease that their trend predicts, lower the objective by less
        than this share of itself.
    max_iter : int, default=500
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the first components.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Z. A column of L categories has L columns here, one of L ordered levels has L−1 that are equal.
    intercept_ : ndarray of shape (d,)
        μ, or zeros. For ordered levels, minus their thresholds.
    owners_ : ndarray of shape (d,)
        The column of X to which each column of components_ belongs.
    scales_ : ndarray of shape (d,)
        What the loss of each column of X is multiplied by.
    history_, n_iter_, converged_
        The objective never rises.

    Notes
    -----
    NaN is a hole. An unstored cell of a sparse table is a zero; to mark it as a hole give it the weight 0. The penalty
    of a row's code counts as often as the row.

    References
    ----------
    Udell, Horn, Zadeh & Boyd (2016), *Foundations and Trends in Machine Learning* 9, 1-118. Xu & Yin (2013), *SIAM J.
    Imaging Sciences* 6, 1758-1789.

    Examples
    --------
    Robust directions: one cell in twenty is wild, and PCA chases it.

    >>> from twofold import PCA, Factorization
    >>> from twofold.factors import Absolute
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 30))
    >>> X = np.where(rng.random(clean.shape) < 0.05, 100.0, clean)
    >>> robust = Factorization(2, loss=Absolute(), random_state=0).fit(X)
    >>> error = np.abs(robust.inverse_transform(robust.transform(X)) - clean).mean()
    >>> pca = PCA(2).fit(X)
    >>> bool(error < 0.01), bool(np.abs(pca.inverse_transform(pca.transform(X)) - clean).mean() > 5)
    (True, True)

    Columns of different kinds: a number, yes or no, and one of three colors, which follow from two hidden numbers.

    >>> from twofold.factors import Logistic, Categorical, Ridge, Squared
    >>> hidden = rng.normal(size=(500, 2))
    >>> colors = np.argmax(hidden @ rng.normal(size=(2, 3)), axis=1)
    >>> X = np.column_stack([100 * hidden.sum(axis=1), hidden[:, 0] > 0, colors])
    >>> X[:100, 2] = np.nan  # unknown colors
    >>> kinds, ridge = [Squared(), Logistic(), Categorical(3)], Ridge(1.0)
    >>> model = Factorization(2, loss=kinds, left=ridge, right=ridge, intercept=True, scale=True, random_state=0)
    >>> filled = model.fit(X).complete(X)
    >>> bool(np.mean(filled[:100, 2] == colors[:100]) > 0.6)  # the most frequent color: less than half
    True
    """

    components_: Annotated[np.ndarray, "k m"]
    intercept_: Annotated[np.ndarray, "m"]
    owners_: Annotated[np.ndarray, "m, >= 0, < d"]
    scales_: Annotated[np.ndarray, "d, > 0"]
    _allow_nan: ClassVar[bool] = True
    _records: ClassVar[tuple] = (
        *(getattr(losses, name) for name in losses.__all__ if name != "Loss"),
        *(getattr(constraints, name) for name in constraints.__all__ if name != "Constraint"),
    )
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "loss": [None, losses.Loss, list],
        "left": [None, constraints.Constraint],
        "right": [None, constraints.Constraint],
        "intercept": ["boolean"],
        "scale": ["boolean"],
        "init": [None, "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        loss: losses.Loss | list[losses.Loss] | None = None,
        left: constraints.Constraint | None = None,
        right: constraints.Constraint | None = None,
        intercept: bool = False,
        scale: bool = False,
        init: Any = None,
        n_init: int = 1,
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.loss = loss
        self.left = left
        self.right = right
        self.intercept = intercept
        self.scale = scale
        self.init = init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    # ---- fitting -----------------------------------------------------------------------------------------------

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Factorization:
        """Find both factors.

        Parameters
        ----------
        X : array, sparse array, frame, path or dask array of shape (n, d)
            NaN (dense) is a hole; an unstored cell (sparse) is a zero.
        y : ignored
        sample_weight : array of shape (n,) or (n, d), optional
            How much each row, or each cell, counts; a cell of weight 0 is a hole.
        """
        blocks = self._blocks(X, reset=True)
        seed, k = seed_of(self.random_state), self._rank(blocks.shape)
        data, columns = self._data(blocks, sample_weight, k)
        seeds = [seed, *(seed_of(generator(seed, 3, t)) for t in range(DRAWS))] if self._races(data) else [seed]
        firsts = [self._first(data, columns, s, sample_weight, bool(t)) for t, s in enumerate(seeds)]
        sweep = sweeper(make_sweep(data), make_extrapolation(data.problem), self.tol)

        def name_factors(state: State) -> dict:
            Z, mu = data.problem.split(state.V)
            p = data.problem
            owners = np.arange(len(mu)) if p.owners is None else p.owners
            scales = np.ones(len(p.shift)) if p.scales is None else p.scales
            return {
                "components_": Z,
                "intercept_": mu + p.spread(p.shift),
                "owners_": owners,
                "scales_": scales,
            }

        loop.run(
            self,
            sweep,
            choose_start(sweep, [begin(V, start_all_codes(V, data)) for V in firsts], self.max_iter),
            max_iter=self.max_iter,
            tol=self.tol,
            fitted=name_factors,
            X=X,
            fingerprint=lambda: fingerprint(blocks, data.w) + data.sign(),
            seed=seed,
        )
        return self

    def _rank(self, shape: tuple[int, int]) -> int:
        return min(10, *shape) if self.n_components is None else int(self.n_components)

    def _choices(self) -> tuple[losses.Loss, constraints.Constraint, constraints.Constraint]:
        """Loss, left and right, with None resolved."""
        loss = combine(self.loss) if isinstance(self.loss, list) else self.loss or losses.Squared()
        return loss, self.left or constraints.Free(), self.right or constraints.Free()

    def _data(self, blocks: Blocks, sample_weight: Any, k: int) -> tuple[Data, Columns]:
        """The problem, its weights, and moments of the columns; cells that cannot be used are refused."""
        loss, left, right = self._choices()
        check_choices(loss, left, right, self.intercept)
        self._check_columns(loss, blocks)
        w, W = check_cell_weights(sample_weight, blocks.shape)
        engine = engine_for(blocks)
        if engine.reduce(add, engine.map(count_outside, blocks, engine.broadcast(loss))):
            self._refuse(blocks)
        columns = compute_columns(blocks, w, W)
        squares = columns.scatter + columns.weight * columns.mean**2
        if not np.isfinite(squares).all():
            j = int(np.argmin(np.isfinite(squares)))
            raise InputError(f"column {j} of X has values too large to be squared in {blocks.dtype}. Scale it.")
        shift = np.zeros(blocks.shape[1], blocks.dtype)
        if self.intercept:  # far from zero, sums of squares would lose their digits
            shift = np.where(loss.shifts, columns.mean, 0).astype(blocks.dtype)
        plain = loss.quadratic and W is None and not columns.missing and not self.scale
        data = Data.of(blocks, w, W, Problem(loss, left, right, k, plain, shift))
        columns_of_x = columns
        if data.problem.owners is not None:
            columns = compute_columns(blocks, w, W, loss)
        if self.scale:
            scales = find_scales(data, start_intercept(data.problem, columns))
            own = np.where(loss.shifts, np.sqrt(columns_of_x.variance), 0)
            units = data.problem.spread(np.where(own > 0, own, 1))
            data = data._replace(problem=replace(data.problem, scales=scales, units=units))
        return data, columns

    def _check_columns(self, loss: losses.Loss, blocks: Blocks) -> None:
        """Refuse a list of losses that does not fit the columns of X."""
        d = blocks.shape[1]
        if isinstance(self.loss, list) and len(self.loss) != d:
            raise InputError(
                f"loss is a list of {len(self.loss)} and X has {d} columns. Give one loss for each column."
            )
        if blocks.is_sparse and (isinstance(loss, Mixed) or loss.width > 1):
            raise InputError(
                "X is sparse; losses of several kinds, or of categories, need a dense table. Give X.toarray()."
            )

    def _races(self, data: Data) -> bool:
        """True if several starts compete: on small tables, unless the optimum does not depend on the start or k-means
        has chosen it."""
        p, (n, d) = data.problem, data.blocks.shape
        plain = all(isinstance(side, constraints.Free | constraints.Ridge) for side in (p.left, p.right))
        drawn = self.init is None and self.n_init == 1 and not isinstance(p.left, constraints.OneHot)
        return drawn and not plain and n * d * p.k <= SMALL

    def _first(self, data: Data, columns: Columns, seed: int, sample_weight: Any, drawn: bool) -> np.ndarray:
        """The first V (d,k), with the intercept as one more column; `drawn`: at random in any case."""
        parts = is_sum_of_parts(data, columns)
        if self.n_init > 1 and self.init is None:
            fits = []
            for t in range(self.n_init):
                one = clone(self).set_params(n_init=1, random_state=seed_of(generator(seed, t))).set_callbacks()
                if parts and t:  # all would start the same
                    one.set_params(init=draw_init(data, columns, one.random_state))
                with loop.quietly():
                    fits.append(one.fit(data.blocks, sample_weight=sample_weight))
            best = min(fits, key=lambda m: m.history_["objective"][-1])
            Z, mu = best.components_, best.intercept_ - data.problem.spread(data.problem.shift)
        else:
            p, mu = data.problem, np.zeros(len(columns.mean))
            if self.intercept:
                mu = start_intercept(p, columns)
            if self.init is not None:
                Z = check_init(self.init, data)
            elif parts and not drawn:
                Z = find_init(data, columns, seed)
            else:
                Z = draw_init(data, columns, seed) - mu
        Z = average_tied(Z, data.problem)
        V = data.problem.in_units(np.asarray(Z, data.blocks.dtype).T)
        V = data.problem.from_units(data.problem.right.start(V.T).T).astype(data.blocks.dtype)
        return np.column_stack([V, mu]).astype(data.blocks.dtype) if self.intercept else np.ascontiguousarray(V)

    # ---- using -------------------------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _folding(self) -> tuple[np.ndarray, Problem]:
        check_is_fitted(self)
        Z = self.components_
        shift = np.zeros(self.n_features_in_, self.intercept_.dtype)
        loss, left, right = self._choices()
        scales = self.scales_ if self.scale else None
        p = Problem(loss, left, right, len(Z), loss.quadratic and scales is None, shift, scales)
        return np.column_stack([Z.T, self.intercept_]), p

    def _check_parts(self, require: Any) -> None:
        """A file's components must be as wide as its losses say."""
        d = self.n_features_in_
        if isinstance(self.loss, list):
            require(
                len(self.loss) == d, f"is damaged: loss of Factorization has {len(self.loss)} items for {d} columns."
            )
        owners = self._choices()[0].owners(d)
        owners = np.arange(d) if owners is None else owners
        require(np.array_equal(self.owners_, owners), "is damaged: owners_ of Factorization do not belong to its loss.")

    def _refuse(self, blocks: Blocks, allow_nan: bool | None = None) -> None:
        super()._refuse(blocks, allow_nan=not blocks.is_sparse if allow_nan is None else allow_nan)
        refuse_values(blocks, self._choices()[0])

    def transform(self, X: Table) -> Any:
        """The codes (n,k) of rows, given the components; holes are ignored."""
        return self._rowwise(_fold_codes, X, *self._folding())

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Rows from codes: the expected cells for the model's values U Z + μ.

        Of a column of categories this is the code of the most probable one, of ordered levels the median.
        """
        return self._choices()[0].mean(self._check_codes(X) @ self.components_ + self.intercept_)

    def level_probabilities(self, X: Table, column: int) -> np.ndarray:
        """The probabilities (n,L) of the levels of one column in rows given by their codes.

        Parameters
        ----------
        X : array of shape (n, k)
            Codes, as `transform` gives them.
        column : int
            A column of the table whose loss is `Categorical`, `Ordinal` or `Logistic`.
        """
        codes = self._check_codes(X)
        if not 0 <= column < self.n_features_in_:
            raise InputError(f"column={column}: the table has columns 0 to {self.n_features_in_ - 1}.")
        loss, mine = self._choices()[0].column(column), self.owners_ == column
        M = codes @ self.components_[:, mine] + self.intercept_[mine]
        if isinstance(loss, losses.Logistic):
            return np.hstack([1 - loss.mean(M), loss.mean(M)])
        if not isinstance(loss, losses.Categorical | losses.Ordinal):
            raise InputError(f"column {column} has loss={loss!r}, which has no levels. Use inverse_transform.")
        return loss.probabilities(M)

    def complete(self, X: Table) -> np.ndarray:
        """X with its holes (NaN) filled; every other cell as it is."""
        blocks = self._blocks(X)
        filled = np.concatenate([as_dense(blocks[i]) for i in range(len(blocks))])
        return np.where(np.isnan(filled), self.inverse_transform(self.transform(X)), filled).astype(blocks.dtype)

    @property
    def _heldout_unit(self) -> str:  # type: ignore[override]
        loss = self._choices()[0]
        if isinstance(loss, Mixed):
            return "minus the loss of a hidden cell"
        return SQUARED if isinstance(loss, losses.Squared) else f"minus the loss {loss!r} of a hidden cell"

    def _hiding(self) -> tuple:
        return _score_hidden_cells, *self._folding()

    def score(self, X: Table, y: Any = None, sample_weight: Weights = None) -> float:
        """Minus the mean objective a row, over its known cells, with the row's best code."""
        cost = self._rowwise(_cost_rows, X, *self._folding())
        return -float(np.average(np.asarray(cost), weights=check_weights(sample_weight, len(cost))))


def check_choices(
    loss: losses.Loss, left: constraints.Constraint, right: constraints.Constraint, intercept: bool
) -> None:
    """Refuse a loss and constraints that do not fit together."""
    if left.joint:
        raise InputError(
            f"left={left!r} ties all rows of X together, which only the right factor can do. Give X transposed, and "
            f"right={left!r}."
        )
    for name, side in (("left", left), ("right", right)):
        if loss.positive and type(side).shares is constraints.Constraint.shares:
            raise InputError(
                f"{loss!r} needs values above 0, which {name}={side!r} does not keep. Use NonNegative() or Simplex() "
                'on both sides, or Poisson(link="log").'
            )
    tied = isinstance(loss, losses.Ordinal) or (isinstance(loss, Mixed) and any(part.tied for part in loss.parts))
    if tied and not intercept:
        raise InputError("Ordinal() has its thresholds in the intercept. Set intercept=True.")
    if tied and not right.elementwise:
        raise InputError(
            f"right={right!r} does not keep the columns of Z equal that Ordinal() needs. Use Free(), Ridge(), L1() or "
            "NonNegative()."
        )
    if loss.positive and intercept:
        raise InputError(f"{loss!r} needs values above 0, which an intercept does not keep. Set it to False.")


def combine(parts: list[Any]) -> losses.Loss:
    """The loss of a table from one for each column; one that all columns share stands for itself."""
    for j, part in enumerate(parts):
        if not isinstance(part, losses.Loss):
            raise InputError(
                f"loss[{j}] is {part!r}. Give a loss for each column, such as Squared() or Categorical(3)."
            )
        if part.positive:
            raise InputError(f'loss[{j}] is {part!r}, which needs values above 0. In a list use Poisson(link="log").')
    if not parts:
        raise InputError("loss is an empty list. Give one loss for each column of X.")
    return parts[0] if all(part == parts[0] for part in parts) else Mixed(tuple(parts))


def count_outside(X: Any, loss: losses.Loss) -> int:
    """The count of cells of a block that cannot be used; NaN is a hole in a dense one."""
    if sparse.issparse(X):
        return int(np.count_nonzero(loss.outside(X.data) | ~np.isfinite(X.data)))
    return int(np.count_nonzero(loss.outside(X) | np.isinf(X)))


def refuse_values(blocks: Blocks, loss: losses.Loss) -> None:
    """Raise an error that names the first cell outside the range of the loss."""
    for i, start in enumerate(blocks.bounds[:-1]):
        if count_outside(blocks[i], loss):
            X = blocks[i].toarray() if sparse.issparse(blocks[i]) else blocks[i]
            row, column = divmod(int(np.argmax(loss.outside(X))), X.shape[1])
            own = loss.column(column)
            raise InputError(
                f"X[{int(start) + row}, {column}] is {X[row, column]:g}; loss={own!r} needs {own.needs}. Scale the "
                "data, or use another loss: Squared()."
            )


def _fold_codes(X: Any, V: np.ndarray, p: Problem) -> np.ndarray:
    if count_outside(X, p.loss):  # shows in the result, and is then refused with its place
        return np.full((X.shape[0], p.k), np.nan)
    return find_codes(X, V.astype(X.dtype), replace(p, shift=p.shift.astype(X.dtype)))


def _score_hidden_cells(X: Any, split: Split, V: np.ndarray, p: Problem) -> np.ndarray:
    """(m,2) of each row: the loss of its hidden cells with the code of the others, and their number."""
    out, h = np.empty((X.shape[0], 2)), split.hidden
    Z, mu = p.split(V.astype(np.float64))
    places = h if p.owners is None else np.flatnonzero(np.isin(p.owners, h))
    own = p.loss.pick(h)
    for rows, x in dense_slices(X):
        shown = x.copy()
        shown[:, h] = np.nan
        M = _fold_codes(shown, V.astype(np.float64), p) @ Z[:, places] + mu[places]
        if p.loss.positive:
            M = keep_above_zero(M, x[:, split.seen])
        known = ~np.isnan(x[:, h])
        loss = own.value(np.where(known, x[:, h], own.hole), M) * (2 if isinstance(p.loss, losses.Squared) else 1)
        if p.scales is not None:
            loss = loss * p.scales[h]
        out[rows] = np.stack([np.where(known, loss, 0).sum(axis=1), known.sum(axis=1)], axis=1)
    return out


def _cost_rows(X: Any, V: np.ndarray, p: Problem) -> np.ndarray:
    U = _fold_codes(X, V, p)
    return compute_row_costs(X, U, V.astype(X.dtype), replace(p, shift=p.shift.astype(X.dtype)))
