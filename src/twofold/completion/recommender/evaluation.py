"""How well a recommender does on ratings it has not seen.

Every part of the ratings that is tested is predicted by a recommender that was fitted without it:

    rmse  √(Σ e² / T), mae  Σ |e| / T       over all T test ratings of all folds together, never a mean of users' means
    precision, recall, ndcg, map            of the n best of ALL items the user has no training rating of
    coverage                                share of the training items that are in anybody's list

A test item is relevant if its rating reaches the threshold (implicit data: always). Items that training never saw stay
relevant although nobody can recommend them, and their ratings are predicted from the user's bias; a user that training
never saw gets what is liked most. Users without a relevant test item do not count for the lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from twofold import metrics
from twofold.completion.recommender._default_model import score_by_popularity
from twofold.completion.recommender._ids import coded, places, plain
from twofold.completion.recommender._ratings_table import Cells, merged, table, triples
from twofold.completion.recommender._splits import take_cells
from twofold.completion.recommender._top_n import Product, rank_items, rank_row
from twofold.core.checks import InputError

MEASURES = {
    "precision": metrics.precision_at_k,
    "recall": metrics.recall_at_k,
    "ndcg": metrics.ndcg_at_k,
    "map": metrics.map_at_k,
}


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found; ``result["rmse"]`` is the recommender's own figure.

    Attributes
    ----------
    table : polars.DataFrame
        One row for the recommender and one for each baseline: model, rmse, mae, precision, recall, ndcg, map,
        coverage. Null where a figure has no meaning, such as the RMSE of implicit data.
    n : int
        Places of a list that count.
    split : str
        How the ratings were split.
    relevant : float or None
        The rating from which on a test item is relevant (the mean over folds); None for implicit data.
    ratings : int
        Test ratings, of all folds together.
    users : int
        Lists that were judged: one for each user with a relevant test item, in each fold.
    unseen : int
        Test ratings whose user or item training never saw.
    """

    table: pl.DataFrame
    n: int
    split: str
    relevant: float | None
    ratings: int
    users: int
    unseen: int

    def __getitem__(self, name: str) -> float | None:
        return self.table[name][0]

    def __str__(self) -> str:
        with pl.Config(tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True, float_precision=4, tbl_cols=-1):
            return (
                f"{self.ratings:,} test ratings ({self.split}), {self.unseen:,} of them of a user or item not seen in "
                f"training; lists of {self.n} for {self.users:,} users\n{self.table}"
            )


class Fold(NamedTuple):
    """One recommender's figures on one fold, before they are pooled."""

    errors: np.ndarray | None  # (test ratings,)
    lists: dict[str, np.ndarray]  # a figure a user
    coverage: float


def split_folds(X: sparse.csr_array, fold: np.ndarray) -> Iterator[tuple[sparse.csr_array, sparse.csr_array]]:
    """Training and test cells of every fold."""
    for f in range(int(fold.max()) + 1):
        yield take_cells(X, fold != f), take_cells(X, fold == f)


def evaluate_parts(
    learn: Callable[[Cells], Any],
    cells: Cells,
    parts: Iterator[tuple[sparse.csr_array, sparse.csr_array]],
    n: int,
    relevant: float | None,
    split: str,
) -> Evaluation:
    """Fit by `learn` to every training part, look at its test part, and pool."""
    found: dict[str, list[Fold]] = {}
    tested = unseen = users = 0
    thresholds = []
    for train, test in parts:
        rec = learn(compress_table(cells, train))
        level = None if cells.implicit else float(train.data.mean(dtype=np.float64)) if relevant is None else relevant
        wanted = test if level is None else take_cells(test, test.data >= level)
        thresholds.append(level)
        for name, fold in judge_fold(rec, test, wanted, n).items():
            found.setdefault(name, []).append(fold)
        i, j = list_coordinates(test)
        tested, users = tested + test.nnz, users + int(np.count_nonzero(np.diff(wanted.indptr)))
        unseen += int(np.sum((places(rec.users_, i) < 0) | (places(rec.items_, j) < 0)))
    level = None if cells.implicit else float(np.mean([t for t in thresholds if t is not None]))
    table = pl.DataFrame([pool_folds(name, folds) for name, folds in found.items()])
    return Evaluation(table, n, split, level, tested, users, unseen)


def compress_table(cells: Cells, train: sparse.csr_array) -> Cells:
    """The training part as a table of its own: users and items without a training rating do not exist in it.

    Ids are the rows and columns of the whole table.
    """
    rows = np.flatnonzero(np.diff(train.indptr))
    cols, index = np.unique(train.indices, return_inverse=True)
    indptr = np.append(train.indptr[rows], train.nnz)
    X = sparse.csr_array((train.data, index.astype(train.indices.dtype), indptr), shape=(len(rows), len(cols)))
    return Cells(rows, cols.astype(np.int64), X, cells.implicit, cells.columns)


def list_coordinates(X: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of every stored cell."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices.astype(np.int64)


def judge_fold(rec: Any, test: sparse.csr_array, wanted: sparse.csr_array, n: int) -> dict[str, Fold]:
    """The recommender and its baselines on one test part, whose rows and columns are the ids."""
    users = np.flatnonzero(np.diff(wanted.indptr))
    i, j = list_coordinates(test)
    entries: dict[str, tuple[Any, Any]] = {type(rec.model_).__name__: (rec.model_, rec.predict)}
    if not rec.implicit_ and "Biases" not in entries:
        entries["Biases"] = (score_by_biases(rec), rec._baseline)
    entries["popularity"] = (score_by_popularity(rec.ratings_), None)
    out = {}
    for name, (source, predict) in entries.items():
        errors = None if predict is None or rec.implicit_ else predict(i, j) - test.data
        lists, figures = list_items(rec, source, users, n), {}
        if len(users):
            figures = {m: f(lists, wanted[users], n, average=False) for m, f in MEASURES.items()}
        out[name] = Fold(errors, figures, metrics.coverage(lists, len(rec.items_), n))
    return out


def score_by_biases(rec: Any) -> Product:
    """The order that biases alone put items in."""
    b = rec.baseline_
    return Product(np.ones((len(b.row_bias_), 1)), b.column_bias_[None].astype(np.float64), b.row_bias_)


def list_items(rec: Any, source: Any, users: np.ndarray, n: int) -> np.ndarray:
    """(users, n) the ids of the items recommended to each, -1 where there are no more."""
    out = np.full((len(users), n), -1, np.int64)
    row = places(rec.users_, users)
    liked = rank_row(rec._liked(), np.empty(0, np.int64), n).items
    out[row < 0, : len(liked)] = rec.items_[liked]
    at = np.flatnonzero(row >= 0)
    start = 0
    for group, found in rank_items(source, rec.ratings_, row[at], n):
        here = at[start : start + len(group)]
        out[here, : found.items.shape[1]] = np.where(found.items >= 0, rec.items_[found.items], -1)
        start += len(group)
    return out


def pool_folds(name: str, folds: list[Fold]) -> dict[str, Any]:
    """One row of the table."""
    row: dict[str, Any] = {"model": name, "rmse": None, "mae": None}
    if folds[0].errors is not None:
        errors = np.concatenate([f.errors for f in folds if f.errors is not None]).astype(np.float64)
        row |= {"rmse": float(np.sqrt(np.mean(errors**2))), "mae": float(np.mean(np.abs(errors)))}
    for measure in MEASURES:
        values = [f.lists[measure] for f in folds if f.lists]
        row[measure] = float(np.mean(np.concatenate(values))) if values else None
    return row | {"coverage": float(np.mean([f.coverage for f in folds]))}


def read_given_test(
    rec: Any, ratings: Any, test: Any
) -> tuple[Cells, Iterator[tuple[sparse.csr_array, sparse.csr_array]]]:
    """Ratings and test ratings as tables of all users and items of either."""
    t, more = (triples(r, rec.user, rec.item, rec.rating) for r in (ratings, test))
    (users, i), (items, j) = coded(join_ids(t.user, more.user)), coded(join_ids(t.item, more.item))
    m = len(t.user)
    cells = table(users, items, i[:m], j[:m], t, rec.duplicates, rec._implicit())
    values = np.ones(len(i) - m) if more.rating is None else more.rating
    held = merged(i[m:], j[m:], values, cells.X.shape, "sum" if cells.implicit else rec.duplicates)
    check_apart(cells, held)
    return cells, iter([(cells.X, held)])


def join_ids(a: pl.Series, b: pl.Series) -> pl.Series:
    """The ids of two tables, in one type."""
    a, b = plain(a), plain(b)
    return pl.concat([a, b] if a.dtype == b.dtype else [a.cast(pl.String), b.cast(pl.String)])


def check_apart(cells: Cells, test: sparse.csr_array) -> None:
    """No pair may be in both parts."""
    keys = [i * np.int64(test.shape[1]) + j for i, j in map(list_coordinates, (cells.X, test))]
    both = np.intersect1d(*keys)
    if len(both):
        i, j = divmod(int(both[0]), test.shape[1])
        raise InputError(
            f"user {cells.users[i]!r} with item {cells.items[j]!r} is in the ratings and in test; such a test is not "
            f"honest ({len(both)} pairs in all). Drop them from one of the two."
        )
