"""Neighborhoods of columns (or rows) that deviate in the same way.

    x̂_ij = m + b_i + c_j  +  Σ_l v_jl r_il / (Σ_l |v_jl| + damping)

    l                   the n_neighbors columns most like j among those known in row i
    r = x − m − b − c   what the known cells deviate from their baseline (see `Biases`)
    s_jl                their correlation over the n_jl rows that know both, times (n_jl − 1)/(n_jl − 1 + shrinkage)
    v = s |s|^(power−1) so that the strong ones count more

Fit: the baseline; then for each column its strongest similarities, which are all that is kept of s.
With kind="user" the sides are exchanged: rows similar to row i, known in column j. A line is a row or a column.
Similarities S (m,q) are CSR arrays whose rows run from strong to weak, so that the first few known neighbors of a
place are met by walking along its row.
References: Sarwar, Karypis, Konstan & Riedl 2001 (items); Herlocker et al. 1999 (users); Bell & Koren 2007 (shrinkage,
baselines); Breese, Heckerman & Kadie 1998 (powers).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from twofold.completion.biases import Biases, compute_shifts
from twofold.completion.cells import MemoryCells
from twofold.completion.model import NORMALIZE, Completion, find_columns
from twofold.completion.scorer import FoldScorer, Scorer
from twofold.core import loop
from twofold.core.data.blocks import Rows
from twofold.core.data.known_cells import Observed
from twofold.core.engine.local import Engine
from twofold.core.estimator import fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.types import Table, Weights
from twofold.kernels import neighbors as kernels

WORK = 2**20  # pairs of cells that meet in one block of lines
LINES = 1024  # lines of a block at most
REQUESTS = 2**14  # cells predicted in one block


# ---- similar lines ------------------------------------------------------------------------------------------------


class Rule(NamedTuple):
    """How similarities are made and used."""

    shrinkage: float
    n_similar: int
    n_neighbors: int
    power: float
    damping: float


def find_similarities(
    A: sparse.csr_array, B: sparse.csr_array, g: Any, h: Any, rule: Rule, same: bool
) -> sparse.csr_array:
    """The strongest similarities of the rows of A (m,p) to the columns of B (p,q), strongest first: (m,q).

    g and h are square roots of the weights of their cells; `same` says that line t of A is line t of B.
    """
    max_count = min(rule.n_similar, B.shape[1])
    engine = Engine()
    cuts = _cut_lines(A, B)
    spans = Rows(pairwise(cuts))
    shared = [engine.broadcast(s) for s in (A, B, g, h, rule.shrinkage, max_count, same)]
    parts = engine.gather(engine.map(_compare_block, spans, *shared))
    return _join_blocks(parts, (A.shape[0], B.shape[1]))


def _join_blocks(parts: list, shape: tuple[int, int]) -> sparse.csr_array:
    count, index, value = (np.concatenate([part[a] for part in parts]) for a in range(3))
    return sparse.csr_array((value, index, np.append(0, np.cumsum(count))), shape=shape)


def sort_by_strength(S: sparse.csr_array) -> sparse.csr_array:
    """S itself, unless its owner's dealings with it have sorted its rows by column: then ordered again."""
    row, strength = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr)), np.abs(S.data)
    if not ((np.diff(strength) > 0) & (np.diff(row) == 0)).any():
        return S
    order = np.lexsort((S.indices, -strength, row))
    return sparse.csr_array((S.data[order], S.indices[order], S.indptr), shape=S.shape)


def _cut_lines(A: sparse.csr_array, B: sparse.csr_array) -> np.ndarray:
    """Cut the lines of A into blocks of about equal work, which depends on the cells alone."""
    meets = np.append(0, np.cumsum(np.diff(B.indptr)[A.indices], dtype=np.int64))[A.indptr]
    by_work = np.searchsorted(meets, np.arange(WORK, meets[-1], WORK))
    return np.unique(np.concatenate([by_work, np.arange(0, A.shape[0], LINES), [A.shape[0]]]))


def _compare_block(span: tuple, A: Any, B: Any, g: Any, h: Any, shrinkage: float, max_count: int, same: bool) -> tuple:
    start, stop = span
    own = np.arange(start, stop) if same else np.full(stop - start, -1)
    index, value = np.empty((len(own), max_count), np.int32), np.empty((len(own), max_count), A.dtype)
    count = np.empty(len(own), np.int64)
    given = (A.indptr[start : stop + 1], A.indices, A.data, g, B.indptr, B.indices, B.data, h)
    kernels.find_similar(*given, own, float(shrinkage), index, value, count, np.zeros((B.shape[1], 4)))
    kept = np.arange(max_count) < count[:, None]
    return count, index[kept], value[kept]


def predict_deviations(
    R: sparse.csr_array, S: sparse.csr_array, lines: np.ndarray, places: np.ndarray, rule: Rule
) -> np.ndarray:
    """The prediction for each request: place t (a row of S) from its neighbors known in line t (a row of R)."""
    engine, order = Engine(), np.argsort(lines, kind="stable")
    cuts = [*range(0, len(order), REQUESTS), len(order)]
    chosen = Rows(order[a:b] for a, b in pairwise(cuts))
    asked = [Rows(a[at] for at in chosen) for a in (lines, places)]
    parts = engine.gather(engine.map(_predict_requests, *asked, *(engine.broadcast(s) for s in (R, S, rule))))
    out = np.empty(len(order), R.dtype)
    for at, part in zip(chosen, parts, strict=True):
        out[at] = part
    return out


def _predict_requests(
    lines: np.ndarray, places: np.ndarray, R: sparse.csr_array, S: sparse.csr_array, rule: Rule
) -> np.ndarray:
    out = np.empty(len(lines), R.dtype)
    given = (R.indptr, R.indices, R.data, S.indptr, S.indices, S.data, lines, places)
    kernels.interpolate(*given, rule.n_neighbors, rule.power, rule.damping, np.full(R.shape[1], np.nan), out)
    return out


def predict_all_deviations(R: sparse.csr_array, S: sparse.csr_array, rule: Rule) -> np.ndarray:
    """The predictions of neighbors in every line (row of R) for every place (row of S)."""
    out = np.empty((R.shape[0], S.shape[0]), R.dtype)
    given = (R.indptr, R.indices, R.data, S.indptr, S.indices, S.data)
    kernels.interpolate_all(*given, rule.n_neighbors, rule.power, rule.damping, np.full(R.shape[1], np.nan), out)
    return out


def compare_to_fitted(R: sparse.csr_array, fitted: sparse.csr_array, rule: Rule) -> sparse.csr_array:
    """Similarities (m,n) of new rows to the fitted ones; one after the other, because a block is one thread's."""
    max_count, ones = min(rule.n_similar, fitted.shape[1]), np.ones(max(R.nnz, fitted.nnz), R.dtype)
    spans = [(a, min(a + LINES, R.shape[0])) for a in range(0, R.shape[0], LINES)]
    parts = [_compare_block(span, R, fitted, ones, ones, rule.shrinkage, max_count, False) for span in spans]
    return _join_blocks(parts, (R.shape[0], fitted.shape[1]))


def split_deviation(known: sparse.csr_array, S: sparse.csr_array, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """The neighbors (one row of S) that one line (of known cells) has, and what each adds."""
    here = np.full(S.shape[1], np.nan)
    here[known.indices] = known.data
    there = np.nonzero(~np.isnan(here[S.indices]))[0][: rule.n_neighbors]
    near, s = S.indices[there], S.data[there].astype(np.float64)
    v = np.sign(s) * np.abs(s) ** rule.power
    return near, v * here[near] / (np.abs(v).sum() + rule.damping or 1.0)


# ---- the model ----------------------------------------------------------------------------------------------------


def get_offset(baseline: Biases) -> np.ndarray:
    """m + c_j"""
    return baseline.column_bias_ + baseline.column_bias_.dtype.type(baseline.mean_)


def subtract_baseline(X: sparse.csr_array, bias: np.ndarray, offset: np.ndarray) -> sparse.csr_array:
    """The known cells as deviations from m + b_i + c_j."""
    gaps = X.data - np.repeat(bias, np.diff(X.indptr)) - offset[X.indices]
    return sparse.csr_array((gaps.astype(offset.dtype, copy=False), X.indices, X.indptr), shape=X.shape)


def predict_rows(
    X: sparse.csr_array, offset: np.ndarray, lam: float, known: sparse.csr_array, rule: Rule, by_rows: bool
) -> np.ndarray:
    """(m,d) new rows: from the similarities of the columns, or from the fitted rows (d,n) that are like them."""
    bias = compute_shifts(X, offset, lam)
    R = subtract_baseline(X, bias[:, 0], offset)
    if by_rows:
        return bias + offset + predict_all_deviations(known, compare_to_fitted(R, known, rule), rule).T
    out = predict_all_deviations(R, known, rule)
    out += bias + offset
    return out


class Neighborhood(Completion):
    """The baseline of a cell, plus what similar columns (or rows) deviate from theirs.

    Parameters
    ----------
    n_neighbors : int, default=40
        Neighbors a prediction uses at most, the most similar known ones.
    kind : {"item", "user"}, default="item"
        "item" compares columns: a row's value in column j comes from its own cells in similar columns, so new rows cost
        nothing and predictions explain themselves. "user" compares rows.
    shrinkage : float, default=100
        Common cells at which a correlation is shrunk by half.
    power : float, default=1.5
        Similarities count as their absolute value to this power, with their sign.
    damping : float, default=0.1
        Added to the sum of those, so that few and weak neighbors count little.
    n_similar : int, default=400
        Similarities kept for each column (or row). The memory they take is d (or n) times this; the strongest are kept.
    normalize : {"row", "column"} or None, default=None
        Fit the z-scores of rows or of columns: as in :class:`ALS`.

    Attributes
    ----------
    similarities_ : CSR array of shape (d, d), or (n, n) for "user"
        The strongest similarities of each column, those of a line stored from strong to weak.
    baseline_ : Biases
        The fitted biases.
    residuals_ : CSR array of shape (n, d), or (d, n) for "user"
        What the known cells of the fitted table deviate from the baseline.
    normalization_ : Normalization or None
        As in :class:`ALS`.
    history_, n_iter_, converged_
        The objective is the weighted squared error the baseline leaves to the neighbors; there is nothing to iterate.

    References
    ----------
    Sarwar, Karypis, Konstan & Riedl (2001), *WWW*, 285-295. Bell & Koren (2007), *ICDM*, 43-52.

    Examples
    --------
    Two groups of columns that rise and fall together:

    >>> from twofold import Biases, Neighborhood
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(400, 2)) @ np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=1)
    >>> X = np.where(rng.random(truth.shape) < 0.5, truth + 0.3 * rng.normal(size=truth.shape), np.nan)
    >>> model = Neighborhood().fit(X)
    >>> error = lambda model: np.sqrt(((model.predict(X) - truth)[np.isnan(X)] ** 2).mean())
    >>> bool(error(model) < 0.35 * error(Biases().fit(X)))
    True
    """

    similarities_: Annotated[sparse.csr_array, "d d (item) or n n (user), sparse"]
    residuals_: Annotated[sparse.csr_array, "n d (item) or d n (user), sparse"]
    baseline_: Biases
    _parameter_constraints: ClassVar[dict] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "kind": [StrOptions({"item", "user"})],
        "shrinkage": [Interval(Real, 0, None, closed="left")],
        "power": [Interval(Real, 0, None, closed="left")],
        "damping": [Interval(Real, 0, None, closed="left")],
        "n_similar": [Interval(Integral, 1, None, closed="left")],
        **NORMALIZE,
    }

    def __init__(
        self,
        n_neighbors: int = 40,
        *,
        kind: str = "item",
        shrinkage: float = 100.0,
        power: float = 1.5,
        damping: float = 0.1,
        n_similar: int = 400,
        normalize: str | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.kind = kind
        self.shrinkage = shrinkage
        self.power = power
        self.damping = damping
        self.n_similar = n_similar
        self.normalize = normalize

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Neighborhood:
        """Fit to the known cells of X; see :meth:`ALS.fit` for the arguments.

        Weights count in the baseline and in the similarities, where two cells that meet weigh the geometric mean of
        their weights; a prediction uses all neighbors without weights.
        """
        cells = self._observe(X, sample_weight)
        baseline = Biases()
        baseline.n_rows_, baseline.n_features_in_ = cells.shape
        with loop.quietly():
            baseline._solve(MemoryCells(cells))

        def solve() -> tuple[dict, float, dict]:
            R, S, left = self._compare_lines(cells, baseline)
            return {"residuals_": R, "similarities_": S, "baseline_": baseline}, left, {}

        self._fit_at_once(solve, X, cells.sign)
        self._strongest_first()  # found now, so that predicting changes nothing
        return self

    def _compare_lines(self, cells: Observed, baseline: Biases) -> tuple[sparse.csr_array, sparse.csr_array, float]:
        """Deviations lying the way predictions read them, similarities, and the squared error left to explain."""
        R = subtract_baseline(cells.X, baseline.row_bias_, get_offset(baseline))
        G = sparse.csr_array((np.sqrt(cells.W.data), R.indices, R.indptr), shape=R.shape)
        left = float(cells.W.data.astype(np.float64) @ R.data.astype(np.float64) ** 2)
        if self.kind == "user":
            R, G = R.T.tocsr(), G.T.tocsr()
        S = find_similarities(R.T.tocsr(), R, G.T.tocsr().data, G.data, self._rule(), True)
        return R, S, left

    def _rule(self) -> Rule:
        use = min(self.n_neighbors, 2**31), float(self.power), float(self.damping)
        return Rule(float(self.shrinkage), self.n_similar, *use)

    def _strongest_first(self) -> sparse.csr_array:
        """The similarities as predictions walk along them; looked through once."""
        S, kept = self.similarities_, getattr(self, "_ordered", None)
        if kept is None or kept[0] is not S or kept[1] != S.has_sorted_indices:  # whose owner may sort it
            kept = self._ordered = (S, S.has_sorted_indices, sort_by_strength(S))
        return kept[2]

    def _folding(self) -> tuple[Callable, tuple]:
        user = self.kind == "user"
        known = self.residuals_ if user else self._strongest_first()
        return predict_rows, (get_offset(self.baseline_), self.baseline_.reg_[0], known, self._rule(), user)

    def fold_in(self, X: Table) -> np.ndarray:
        """The predictions (m,d) for all cells of new rows: here a row has no factors other than its values.

        In the holes of a fitted row it is what `predict` gives. In its known cells that holds for "item" only: a new
        row that is a copy of a fitted one has this one for a neighbor.
        """
        return self.predict(X)

    def _valuing(self) -> tuple[Callable, tuple]:
        return np.asarray, ()

    def _predict_cells(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        lines, places = (cols, rows) if self.kind == "user" else (rows, cols)
        said = predict_deviations(self.residuals_, self._strongest_first(), lines, places, self._rule())
        return self.baseline_._predict_cells(rows, cols) + said

    def make_scorer(self, seen: Any) -> Scorer:
        return FoldScorer(self, seen, self.residuals_.dtype) if self.kind == "item" else super().make_scorer(seen)

    def contributions(self, cols: ArrayLike, values: ArrayLike, target: int) -> np.ndarray:
        """The contribution of each known cell of a row to the prediction of one more.

        `cols` and `values` (m,) are the known cells of a row, new or not. The prediction of column `target` is the
        row's baseline plus the sum of the result (m,). For "user", each neighbor's part is divided among the cells it
        has in common with the row as they made it similar.
        """
        check_is_fitted(self)
        X, lines, unit = self._row(cols, values, target), self.normalization_, 1.0
        if lines is not None:
            own = lines.of_new(X)
            X, unit = own.standardize(X), own.scale[0 if own.by_row else target]
        offset, rule = get_offset(self.baseline_), self._rule()
        R = subtract_baseline(X, compute_shifts(X, offset, self.baseline_.reg_[0])[:, 0], offset)
        if self.kind == "user":
            near, added = split_deviation(self.residuals_[[target]], compare_to_fitted(R, self.residuals_, rule), rule)
            meets = self.residuals_[R.indices][:, near].toarray() * R.data[:, None]  # (m, neighbors)
            sums = meets.sum(axis=0)
            return (meets / np.where(sums == 0, 1, sums)) @ added * unit
        near, added = split_deviation(R, self._strongest_first()[[target]], rule)
        out = np.zeros(X.shape[1], R.dtype)
        out[near] = added * unit
        return out[R.indices]

    def _row(self, cols: ArrayLike, values: ArrayLike, target: int) -> sparse.csr_array:
        """Known cells as a table of one row, in the order given."""
        d = self.n_features_in_
        at, x = find_columns(cols, values, target, d)
        return sparse.csr_array((x.astype(self.residuals_.dtype), at, [0, len(at)]), shape=(1, d))
