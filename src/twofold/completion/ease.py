"""A linear autoencoder of rows that may not copy a cell: every column is predicted from all the others.

    minimize  ‖X − X B‖²  +  λ ‖B‖²      over B (d,d) with a zero diagonal

    X (n,d) what was seen, 0 where nothing was    B the weight of a column for each other one

In closed form, with P = (XᵀX + λI)⁻¹:      B_ij = −P_ij / P_jj,   B_jj = 0
since the regression of column j on the others is column j of P, scaled. One Gram matrix, one Cholesky factor.

With an intercept X is centered first, x̂ = p + (x − p) B with p the columns' means; a large λ leaves p: popularity.
With more columns than `max_items` only the m most frequent are inputs (B has m rows); the others are regressed on
these:

    X = [X_h X_t]      B_t = P X_hᵀX_t      so that x̂_t = (x_h P) X_hᵀX_t = ((x_h − x_h B) ∘ diag P) X_hᵀX_t

which needs only the sparse X_hᵀX_t. λ is chosen by leaving out one row x after the other. What a column is
predicted without it differs from x by

    e_j = y_j / (P_jj (1 − h) + y_j²)      y = P x    h = xᵀy

so that one λ costs one inverse and one product.
References: Steck 2019; Steck 2020 (what the diagonal does); Cook 1977 (leaving out a row).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import lapack
from sklearn.utils.validation import check_is_fitted

from twofold.completion.cells import Cells, find_ratings, open_cells
from twofold.completion.model import Ranking, find_columns
from twofold.completion.scorer import FoldScorer, Scorer
from twofold.core.checks import InputError
from twofold.core.estimator import fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.types import Table, Weights

MAX_ROWS_LEFT_OUT = 2_000  # rows that are left out, one after the other, to choose λ
MAX_JUDGES = 1_500  # columns, the most frequent, that they are judged by
REG_FACTOR = 4.0  # between the values of λ that are tried
MAX_TRIES = 12  # of them at most
MIN_RELATIVE_GAIN = 1e-3  # relative; below, no larger λ is tried
CHUNK = 2**22  # cells of fitted rows predicted at a time


class Solution(NamedTuple):
    """The weights of m input columns for all d."""

    B: np.ndarray  # (m,m) about each other
    diagonal: np.ndarray  # (m,) of P
    heads: np.ndarray  # (m,) which columns they are, ascending
    cross: sparse.csr_array  # (m,d) products with the other columns
    mean: np.ndarray  # (d,) zero without an intercept
    mass: float  # rows, by weight
    reg: float


# ---- the closed form ----------------------------------------------------------------------------------------------


def invert(G: np.ndarray, reg: float) -> np.ndarray:
    """(G + λI)⁻¹ in the place of G, of which only the upper triangle is read."""
    G.flat[:: len(G) + 1] += G.dtype.type(reg)
    factor, invert_factor = lapack.get_lapack_funcs(("potrf", "potri"), (G,))
    P, failed = factor(G.T, lower=1, overwrite_a=1, clean=0)
    if not failed:
        P, failed = invert_factor(P, lower=1, overwrite_c=1)
    if failed:
        raise InputError(f"reg={reg:g} is too small for these columns: the Gram matrix has no inverse. Raise it.")
    P = P.T
    for a in range(0, len(P), 256):  # the lower triangle, a few rows at a time
        b = a + 256
        P[a:b, :a] = P[:a, a:b].T
        P[a:b, a:b] = np.triu(P[a:b, a:b]) + np.triu(P[a:b, a:b], 1).T
    return P


def center_gram(G: np.ndarray, mean: np.ndarray, mass: float) -> np.ndarray:
    """G − mass·mean meanᵀ in the place of G."""
    if mean.any():
        root = (np.sqrt(mass) * mean).astype(G.dtype)
        for a in range(0, len(G), 256):
            G[a : a + 256] -= np.outer(root[a : a + 256], root)
    return G


def make_weights(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """B in the place of P, and the diagonal that P had."""
    diagonal = P.diagonal().copy()
    P /= -diagonal
    P.flat[:: len(P) + 1] = 0
    return P, diagonal


# ---- how large λ is -----------------------------------------------------------------------------------------------


def leave_out_rows(G: np.ndarray, X: np.ndarray, reg: float) -> float:
    """The mean squared error of rows X (m,d), each predicted by the weights of all other rows."""
    P = invert(G.copy(), reg)
    Y = X @ P
    h = np.einsum("ij,ij->i", X, Y)[:, None]
    Y /= P.diagonal() * np.maximum(1 - h, 1e-6) + Y**2
    return float(np.mean(Y.astype(np.float64) ** 2))


def search_reg(
    X: np.ndarray, roots: np.ndarray, mass: float, G: np.ndarray, mean: np.ndarray, judges: np.ndarray
) -> float:
    """λ with the least error of rows left out, X (m,judges); G and the means are of the input columns, `judges` those
    of them by which the rows are judged, `own` the roots of the rows' weights.

    λ is walked along powers of 4 from the mean square of a column; the lowest point lies on a parabola.
    """
    if mean.any():  # a row that is left out leaves the means, too
        X -= np.outer(roots, mean[judges]).astype(X.dtype)
        X *= np.sqrt(mass / np.maximum(mass - roots**2, 1e-12 * mass))[:, None].astype(X.dtype)
    G = np.ascontiguousarray(G[np.ix_(judges, judges)])
    start = float(G.diagonal().mean())
    if not start > 0:
        return 1.0
    errors: dict[int, float] = {}

    def error(step: int) -> float:
        if step not in errors:
            errors[step] = leave_out_rows(G, X, start * REG_FACTOR**step)
        return errors[step]

    at = 0
    way = 1 if error(1) < error(0) else -1
    while len(errors) < MAX_TRIES and error(at + way) < (1 - MIN_RELATIVE_GAIN * (way > 0)) * error(at):
        at += way
    left, here, right = error(at - 1), error(at), error(at + 1)
    bend = left - 2 * here + right
    shift = np.clip((left - right) / (2 * bend), -0.5, 0.5) if bend > 0 else 0.0
    return float(start * REG_FACTOR ** (at + shift))


# ---- predictions --------------------------------------------------------------------------------------------------


def predict_rows(X: sparse.csr_array, w: Solution) -> np.ndarray:
    """(m,d) predictions for all columns of new rows."""
    every = len(w.heads) == len(w.mean)
    H = X if every else X[:, w.heads]
    mean = w.mean[w.heads]
    S = H @ w.B
    S = S.toarray() if sparse.issparse(S) else np.asarray(S)  # weights are sparse in a model for serving
    if mean.any():
        S += mean - mean @ w.B
    if every:
        return S
    out = np.empty(X.shape, S.dtype)
    left = (H - S) * w.diagonal
    out[:] = left @ w.cross + w.mean * (1 - w.mass * (left @ mean))[:, None]
    out[:, w.heads] = S
    return out


class EASE(Ranking):
    """Lists from what was seen together: a linear autoencoder with a zero diagonal, in closed form.

    Unstored, unknown and zero cells mean "not seen". The prediction is a preference to rank by: about the value that
    seen cells have where a column is likely to be seen, about 0 where it is not.

    Parameters
    ----------
    reg : "auto" or float, default="auto"
        Ridge λ on the weights, in squares of the cells' unit. "auto" takes the one with the least squared error when
        rows are left out one after the other, which needs no second fit.
    intercept : bool, default=False
        Whether columns are centered first, so that little data leads to popularity rather than to nothing. Lists become
        less personal: better where there is little to learn, a little worse where there is much.
    max_items : int, default=10000
        Input columns, the most frequent ones; the others are predicted from them. A fit takes ``max_items²``
        numbers of memory and ``max_items³`` operations.

    Attributes
    ----------
    weights_ : ndarray of shape (m, m)
        Weights among the input columns; m is d unless that is more than `max_items`.
    columns_ : ndarray of shape (m,)
        The input columns.
    diagonal_ : ndarray of shape (m,)
        The diagonal of P.
    products_ : CSR array of shape (m, d)
        Products of the input columns with the others, from which these are predicted.
    column_means_ : ndarray of shape (d,)
        Zero without an intercept.
    seen_ : CSR array of shape (n, d)
        The fitted rows, which `predict(rows, cols)` needs. Partitioned ratings beyond a quarter of the memory budget
        stay in their folder and are read as they are asked for; such a model cannot be saved.
    reg_, mass_ : float
        λ, and the number of rows in which anything was seen, by weight.
    history_, n_iter_, converged_
        The objective over the input columns; there is nothing to iterate.

    References
    ----------
    Steck (2019), Embarrassingly shallow autoencoders for sparse data, *WWW*, 3251-3257.

    Examples
    --------
    Two kinds of people, each with their own six films; a person that saw one film of a kind is led to the others.

    >>> from twofold import EASE
    >>> rng = np.random.default_rng(0)
    >>> kind = np.arange(40) % 2
    >>> seen = (rng.random((40, 12)) < 0.5) & (np.arange(12) // 6 == kind[:, None])
    >>> model = EASE().fit(seen.astype(float))
    >>> newcomer = np.zeros((1, 12)); newcomer[0, 1] = 1
    >>> sorted(np.argsort(-model.predict(newcomer)[0])[:5].tolist())
    [0, 2, 3, 4, 5]
    """

    weights_: Annotated[Any, "m m"]  # an array; in a model for serving, sparse
    columns_: Annotated[np.ndarray, "m, >= 0, < d"]
    diagonal_: Annotated[np.ndarray, "m"]
    products_: Annotated[sparse.csr_array, "m d, sparse"]
    column_means_: Annotated[np.ndarray, "d"]
    seen_: Annotated[sparse.csr_array, "n d, sparse"]
    reg_: float
    mass_: float
    _parameter_constraints: ClassVar[dict] = {
        "reg": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "intercept": ["boolean"],
        "max_items": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, *, reg: str | float = "auto", intercept: bool = False, max_items: int = 10_000):
        self.reg = reg
        self.intercept = intercept
        self.max_items = max_items

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> EASE:
        """Fit to the cells of X that were seen.

        Parameters
        ----------
        X : array, sparse array, frame or path of shape (n, d)
            Ones, counts or ratings; NaN, 0 or unstored where nothing was seen. Or :class:`PartitionedRatings`, and what
            these are made of: a path or a dask frame of rows whose columns are called user and item, or something like
            that. Their Gram matrix is summed shard by shard; its inverse is made in the memory of this process.
        y : ignored
        sample_weight : array-like of shape (n,) or (n, d), optional
            What a row, or a cell, counts: two cells that meet in a row count the geometric mean of their weights.
        """
        cells = open_cells(self, find_ratings(X, "sum"), sample_weight)
        read_rows = cells.keep_rows()

        def solve() -> tuple[dict, float, dict]:
            w = self._solve(cells)
            attributes = {
                "weights_": w.B,
                "columns_": w.heads,
                "diagonal_": w.diagonal,
                "products_": w.cross,
                "column_means_": w.mean,
                "reg_": w.reg,
                "mass_": w.mass,
                "seen_": read_rows(),
            }
            return attributes, float((1 / w.diagonal.astype(np.float64) - w.reg).sum()), {"reg": w.reg}

        return self._fit_at_once(solve, cells.source, cells.sign)

    def _solve(self, cells: Cells) -> Solution:
        d, dtype = cells.shape[1], cells.dtype
        counts, sums, root = cells.count_seen()
        mass = float(root @ root) or 1.0
        mean = (sums / mass if self.intercept else np.zeros(d)).astype(dtype)
        heads = np.sort(np.argsort(-counts, kind="stable")[: self.max_items])
        G = center_gram(cells.multiply_gram(heads), mean[heads], mass)
        if isinstance(self.reg, str):
            judges = np.sort(np.argsort(-counts[heads], kind="stable")[:MAX_JUDGES])
            rows = np.unique(np.linspace(0, cells.shape[0] - 1, MAX_ROWS_LEFT_OUT).astype(np.int64))
            reg = search_reg(cells.take_seen(rows, heads[judges]), root[rows], mass, G, mean[heads], judges)
        else:
            reg = float(self.reg)
        B, diagonal = make_weights(invert(G, reg))
        cross = sparse.csr_array((len(heads), d), dtype=dtype) if len(heads) == d else cells.multiply_tails(heads)
        return Solution(B, diagonal, heads, cross, mean, mass, reg)

    def _get_solution(self) -> Solution:
        own = (self.weights_, self.diagonal_, self.columns_, self.products_, self.column_means_)
        return Solution(*own, self.mass_, self.reg_)

    def _folding(self) -> tuple[Callable, tuple]:
        return predict_rows, (self._get_solution(),)

    def _valuing(self) -> tuple[Callable, tuple]:
        return np.asarray, ()

    def _predict_cells(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        if not self.seen_.nnz:
            raise InputError("this EASE was made for serving, without the rows it was fitted to. Give rows to predict.")
        asked, at = np.unique(rows, return_inverse=True)
        order = np.argsort(at, kind="stable")
        step = max(1, CHUNK // self.n_features_in_)
        out, w = np.empty(len(rows), self.weights_.dtype), self._get_solution()
        for a in range(0, len(asked), step):
            here = order[np.searchsorted(at[order], a) : np.searchsorted(at[order], a + step)]
            out[here] = predict_rows(self.seen_[asked[a : a + step]], w)[at[here] - a, cols[here]]
        return out

    def make_scorer(self, seen: Any) -> Scorer:
        return FoldScorer(self, self.seen_ if self.seen_.nnz else seen, self.weights_.dtype)

    def contributions(self, cols: ArrayLike, values: ArrayLike, target: int) -> np.ndarray:
        """The exact contribution of each cell of a row to the prediction of one column.

        `cols` and `values` (m,) are the cells of a row that were seen, new or not. The prediction of column `target` is
        the sum of the result (m,), plus what a row without any is predicted.
        """
        check_is_fitted(self)
        at, x = find_columns(cols, values, target, self.n_features_in_)
        said, place = np.zeros(self.n_features_in_, self.weights_.dtype), np.searchsorted(self.columns_, target)
        if place < len(self.columns_) and self.columns_[place] == target:
            column = self.weights_[:, [place]]
            said[self.columns_] = (column.toarray() if sparse.issparse(column) else column)[:, 0]
        else:
            mean = self.column_means_
            met = self.products_[:, [target]].toarray()[:, 0] - self.mass_ * mean[self.columns_] * mean[target]
            met *= self.diagonal_
            said[self.columns_] = met - self.weights_ @ met
        return x * said[at]
