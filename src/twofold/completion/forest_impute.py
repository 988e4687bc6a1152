"""Blanks filled by iterated forests: every column is predicted from all others by trees, several times over.

    start      a number is its column's mean, a category its column's mode
    a round    for every column j, those with fewest blanks first:
               a forest learns x_j from the other columns, blanks as they are filled by now, on rows where x_j is known,
               and fills it elsewhere

    numbers     extremely randomized trees: thresholds are drawn at random, the best of them is taken
    categories  random forests: rows are drawn with replacement, √d columns are tried at each split

Forests of the last round are kept; they fill new rows in as many rounds. The trees of all columns lie one after another
in arrays, see kernels/trees.py. A leaf holds the mean and the mean square of a number, standardized, or the share of
each level: so each filled cell comes with its standard deviation, or with the chance that it is wrong.
References: Stekhoven & Bühlmann 2012 (missForest); Geurts, Ernst & Wehenkel 2006 (extremely randomized trees).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.data.blocks import Rows
from twofold.core.data.missing_patterns import Imputer
from twofold.core.engine.local import Engine, engine_for, fetch_rows
from twofold.core.estimator import fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.progress import part, report
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table
from twofold.kernels.trees import average_leaves

MAX_ROWS = 20_000  # that forests learn from
MAX_ROWS_PER_TREE = 2_000
MAX_COLUMNS_PER_SPLIT = 32  # that a split of a number's tree tries
MIN_ROWS_PER_LEAF = 3
MIN_CELLS_FOR_THREADS = 20_000  # of a forest's table, below which threads cost more than they save


class Trees(NamedTuple):
    """Trees one after another, see kernels/trees.py; those of column j begin at roots[j]."""

    roots: np.ndarray  # (d,t)
    features: np.ndarray  # (m,)
    thresholds: np.ndarray  # (m,)
    nexts: np.ndarray  # (m,)
    leaves: np.ndarray  # (l,)


class Columns(NamedTuple):
    """What cells are before anything is learned from others."""

    levels: np.ndarray  # (d,) how many a category has; 0 for a number
    center: np.ndarray  # (d,) mean, or mode
    scale: np.ndarray  # (d,) standard deviation; 1 of a category
    order: np.ndarray  # (d,) columns, those with fewest blanks first
    n_rounds: int


class ForestImpute(OneToOneFeatureMixin, TransformerMixin, Imputer):
    """Fill blanks of numbers and categories by forests, one a column, learned and applied in turn.

    Parameters
    ----------
    n_trees : int, default=40
        Trees of each column.
    levels : sequence of int or None, default=None
        How many levels each column has, coded 0, 1, ...; 0 for a column of numbers. None: all are numbers.
    n_rounds : int, default=2
        How often each column is predicted from the others.
    columns : {"all", "blank"}, default="all"
        Which columns get trees: all, so that blanks of new rows are filled wherever they are; or those with blanks in
        the table of the fit, which is quicker. Others get their mean or mode.
    random_state : int, Generator, RandomState or None, default=None
        Seed of all random numbers.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (d,)
        Mean and standard deviation of a number; mode and 1 of a category.
    roots_, features_, thresholds_, nexts_, leaves_ : ndarray
        The trees of all columns.
    order_, levels_ : ndarray of shape (d,)
        The order in which columns are filled, and their numbers of levels.

    References
    ----------
    Stekhoven & Bühlmann (2012), *Bioinformatics* 28, 112-118.

    Examples
    --------
    >>> from twofold import ForestImpute
    >>> x = np.arange(100.0)
    >>> X = np.column_stack([x, x >= 50])
    >>> X[70, 1] = np.nan
    >>> ForestImpute(levels=[0, 2], random_state=0).fit_transform(X)[70, 1]
    np.float64(1.0)
    """

    roots_: Annotated[np.ndarray, "d t, >= 0"]
    features_: Annotated[np.ndarray, "m, >= -1, < d"]
    thresholds_: Annotated[np.ndarray, "m"]
    nexts_: Annotated[np.ndarray, "m, >= 0"]
    leaves_: Annotated[np.ndarray, "l"]
    center_: Annotated[np.ndarray, "d"]
    scale_: Annotated[np.ndarray, "d, > 0"]
    order_: Annotated[np.ndarray, "d, >= 0, < d"]
    levels_: Annotated[np.ndarray, "d, >= 0"]
    _allow_nan: ClassVar[bool] = True
    _allow_sparse: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict] = {
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "levels": ["array-like", None],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "columns": [StrOptions({"all", "blank"})],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_trees: int = 40,
        *,
        levels: Sequence[int] | None = None,
        n_rounds: int = 2,
        columns: str = "all",
        random_state: Seed = None,
    ):
        self.n_trees = n_trees
        self.levels = levels
        self.n_rounds = n_rounds
        self.columns = columns
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None) -> ForestImpute:
        """Learn a forest for each column; of many rows, from some drawn at random."""
        blocks = self._blocks(X, reset=True, min_rows=2)
        n, seed = blocks.shape[0], seed_of(self.random_state)
        rows = np.sort(generator(seed).permutation(n)[:MAX_ROWS])
        with part(0.0, 0.0):
            known = fetch_rows(engine_for(blocks), blocks, rows).astype(np.float64)
        if np.isinf(known).any():
            self._refuse(blocks)
        columns = describe_columns(known, check_levels(self.levels, known), self.n_rounds)
        trees = learn_trees(known, columns, self.n_trees, seed, self.columns == "blank")
        for name, value in (columns._asdict() | trees._asdict()).items():
            if name != "n_rounds":
                setattr(self, f"{name}_", value)
        return self

    def transform(self, X: Table) -> np.ndarray:
        """X with its blanks filled and every known cell as it was; rows need not be those of the fit."""
        return self.impute(X)

    def _imputer(self) -> tuple[Any, ...]:
        check_is_fitted(self)
        columns = Columns(self.levels_, self.center_, self.scale_, self.order_, self.n_rounds)
        trees = Trees(self.roots_, self.features_, self.thresholds_, self.nexts_, self.leaves_)
        return fill_by_forests, columns, trees

    def _check_parts(self, require: Callable[[bool, str], None]) -> None:
        """Walks along the trees of a file must end at leaves, and leaves lie within their array."""
        m, inner = len(self.features_), self.features_ >= 0
        whole = all(a.dtype.kind == "i" for a in (self.roots_, self.features_, self.nexts_, self.order_, self.levels_))
        widths = max(2, self.levels_.max(initial=0)) if whole else 2
        inside = np.where(inner, (self.nexts_ > np.arange(m) + 1) & (self.nexts_ < m), True)
        ends = np.where(inner, True, self.nexts_ + widths <= len(self.leaves_))
        right = whole and inside.all() and ends.all() and (self.roots_ < m).all()
        require(bool(right), "is damaged: the trees of ForestImpute lead outside their arrays.")


def check_levels(levels: Sequence[int] | None, X: np.ndarray) -> np.ndarray:
    """(d,) the numbers of levels, refused where a column has other codes."""
    d = X.shape[1]
    out = np.zeros(d, np.int64) if levels is None else np.asarray(levels)
    if out.shape != (d,) or out.dtype.kind not in "iu" or (out < 0).any():
        raise InputError(f"levels={levels!r} must be a whole number of levels for each of the {d} columns, 0 or more.")
    for j in np.flatnonzero(out):
        codes = np.unique(X[~np.isnan(X[:, j]), j])
        if not np.isin(codes, np.arange(out[j])).all():
            raise InputError(f"column {j} of X has the code {codes[-1]:g}; its {out[j]} levels are 0 to {out[j] - 1}.")
    return out.astype(np.int64)


def describe_columns(X: np.ndarray, levels: np.ndarray, n_rounds: int) -> Columns:
    center, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    scale = np.where((scale > 1e-12 * np.abs(center)) & (levels == 0), scale, 1.0)
    for j in np.flatnonzero(levels):
        center[j] = np.bincount(X[~np.isnan(X[:, j]), j].astype(np.int64)).argmax()
    order = np.argsort(np.isnan(X).sum(axis=0), kind="stable")
    return Columns(levels, center, scale, order, n_rounds)


def standardize(X: np.ndarray, columns: Columns) -> np.ndarray:
    """Numbers without their mean and spread, codes as they are; blanks are 0 or the mode."""
    center = np.where(columns.levels > 0, 0.0, columns.center)
    Z = np.where(np.isnan(X), columns.center, X)
    return ((Z - center) / columns.scale).astype(np.float32)


# --- learning -----------------------------------------------------------------------------------------------


def learn_trees(X: np.ndarray, columns: Columns, n_trees: int, seed: int, blank_alone: bool) -> Trees:
    """The forests of the last round."""
    Z, blank, d = standardize(X, columns), np.isnan(X), X.shape[1]
    rounds = columns.n_rounds if blank.any() else 1
    forests = [make_stump(X[:, j], int(columns.levels[j]), n_trees) for j in range(d)]
    last = blank.any(axis=0) if blank_alone else np.ones(d, bool)
    work = [
        (t, int(j)) for t in range(rounds) for j in columns.order if blank[:, j].any() or (t == rounds - 1 and last[j])
    ]
    for done, (t, j) in enumerate(work):
        report(done, len(work), f"forests, round {t + 1} of {rounds}")
        if d > 1:
            forests[j] = grow(Z, blank[:, j], j, int(columns.levels[j]), n_trees, seed)
        predict_column(Z, blank[:, j], j, int(columns.levels[j]), forests[j], forests[j].roots[0])
    return join_trees(forests, int(columns.levels.max(initial=0)))


def make_stump(x: np.ndarray, n_levels: int, n_trees: int) -> Trees:
    """Trees without a split: the mean and the mean square of a standardized number, or the share of each level."""
    known = x[~np.isnan(x)].astype(np.int64) if n_levels else x
    leaf = np.bincount(known, minlength=n_levels) / len(known) if n_levels else np.array([0.0, 1.0])
    root = np.zeros((1, n_trees), np.int64)
    return Trees(root, np.array([-1], np.int32), np.zeros(1), np.zeros(1, np.int64), leaf)


def grow(Z: np.ndarray, blank: np.ndarray, j: int, n_levels: int, n_trees: int, seed: int) -> Trees:
    """The forest of column j, learned from rows where it is known."""
    others = np.delete(np.arange(Z.shape[1]), j)
    F, target = np.ascontiguousarray(Z[~blank][:, others]), Z[~blank, j].astype(np.float64)
    task = F, target, n_levels
    seeds = generator(seed, 1, j).integers(2**31, size=n_trees)
    if F.size < MIN_CELLS_FOR_THREADS:
        trees = [grow_tree(one, *task) for one in seeds]
    else:
        engine = Engine()
        trees = engine.gather(engine.map(grow_tree, Rows(seeds), *map(engine.broadcast, task)))
    return join_trees([as_arrays(tree, others, n_levels, levels) for tree, levels in trees], axis=1)


def grow_tree(seed: int, F: np.ndarray, target: np.ndarray, n_levels: int) -> tuple[Any, np.ndarray | None]:
    """One tree as scikit-learn keeps it, and the levels that it knows.

    It is fitted without a forest around it, which takes longer to copy each tree than a small table takes to learn.
    """
    from sklearn import config_context
    from sklearn.tree import DecisionTreeClassifier, ExtraTreeRegressor

    rng = generator(int(seed))
    rows: Any = slice(None)
    weights: np.ndarray | None = None
    if n_levels or len(F) > MAX_ROWS_PER_TREE:
        drawn = np.bincount(rng.integers(len(F), size=min(len(F), MAX_ROWS_PER_TREE)), minlength=len(F))
        rows = np.flatnonzero(drawn)
        weights = drawn[rows].astype(np.float64)
    settings: dict[str, Any] = {"min_samples_leaf": MIN_ROWS_PER_LEAF, "random_state": int(rng.integers(2**31))}
    tree: Any
    if n_levels:
        tree = DecisionTreeClassifier(max_features="sqrt", **settings)
    else:
        tree = ExtraTreeRegressor(max_features=min(1.0, MAX_COLUMNS_PER_SPLIT / F.shape[1]), **settings)
    with config_context(skip_parameter_validation=True):
        tree.fit(F[rows], target[rows], sample_weight=weights, check_input=False)
    return tree.tree_, tree.classes_.astype(np.int64) if n_levels else None


def as_arrays(tree: Any, others: np.ndarray, n_levels: int, levels: np.ndarray | None) -> Trees:
    """A tree of scikit-learn, whose nodes lie in the order of a walk that goes left first."""
    leaf = tree.children_left < 0
    value = tree.value[leaf, 0]
    if levels is None:
        held = np.column_stack([value[:, 0], tree.impurity[leaf] + value[:, 0] ** 2])
    else:
        held = np.zeros((len(value), n_levels))
        held[:, levels] = value
    nexts = tree.children_right.astype(np.int64)
    nexts[leaf] = np.arange(leaf.sum()) * held.shape[1]
    features = np.where(leaf, -1, others[np.where(leaf, 0, tree.feature)])
    return Trees(np.zeros((1, 1), np.int64), features.astype(np.int32), tree.threshold, nexts, held.ravel())


def join_trees(parts: Sequence[Trees], most_levels: int = 0, axis: int = 0) -> Trees:
    """Put trees one after another: those of more columns (axis 0), or more of one column (axis 1).

    Behind the last leaf there is room for as many values as the widest leaf has.
    """
    nodes = np.cumsum([0, *(len(part.features) for part in parts)])
    ends = np.cumsum([0, *(len(part.leaves) for part in parts)])
    moved = [
        part.nexts + np.where(part.features < 0, end, node) for part, node, end in zip(parts, nodes, ends, strict=False)
    ]
    padding = np.zeros(max(2, most_levels))
    return Trees(
        np.concatenate([part.roots + node for part, node in zip(parts, nodes, strict=False)], axis=axis),
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.thresholds for part in parts]),
        np.concatenate(moved),
        np.concatenate([*(part.leaves for part in parts), padding]).astype(np.float32),
    )


# --- filling ------------------------------------------------------------------------------------------------


def predict_column(
    Z: np.ndarray, blank: np.ndarray, j: int, n_levels: int, trees: Trees, roots: np.ndarray
) -> np.ndarray:
    """Fill the blanks of column j in place, and return how unsure each is: a deviation, or the chance to be wrong."""
    found = average_leaves(Z[blank], roots, *trees[1:], n_levels or 2)
    if n_levels:
        Z[blank, j] = found.argmax(axis=1)
        return 1.0 - found.max(axis=1)
    Z[blank, j] = found[:, 0]
    return np.sqrt(np.maximum(found[:, 1] - found[:, 0] ** 2, 0.0))


def fill_by_forests(X: np.ndarray, columns: Columns, trees: Trees) -> tuple[np.ndarray, np.ndarray]:
    """A block with its blanks filled, and how unsure each is; 0 where a cell was known."""
    X = np.asarray(X)
    filled, unsure, blank = X.copy(), np.zeros_like(X), np.isnan(X)
    rows = np.flatnonzero(blank.any(axis=1))
    Z, holes = standardize(X[rows], columns), blank[rows]
    doubt = np.zeros(Z.shape)
    for _ in range(columns.n_rounds):
        for j in columns.order:
            blank_here = holes[:, j]
            doubt[blank_here, j] = predict_column(Z, blank_here, int(j), int(columns.levels[j]), trees, trees.roots[j])
    center = np.where(columns.levels > 0, 0.0, columns.center)
    filled[rows] = np.where(holes, center + columns.scale * Z, X[rows])
    unsure[rows] = columns.scale * doubt
    return filled, unsure
