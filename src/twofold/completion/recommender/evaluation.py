"""How well a recommender does on ratings it has not seen.

Every part of the ratings that is tested is predicted by a recommender that was fitted without it:

    rmse  √(Σ e² / T), mae  Σ |e| / T       over all T test ratings of all folds together, never a mean of users' means
    precision, recall, ndcg, map, mrr       of the n best of ALL items the user has no training rating of
    coverage                                share of the training items that are in any list
    novelty                                 bits of surprise of what is listed: see `twofold.metrics.novelty`

A test item is relevant if its rating reaches the threshold (implicit data: always). Items that training never saw stay
relevant although they cannot be recommended, and their ratings are predicted from the user's bias; a user that training
never saw gets what is liked most, unless the split shows some of the user's ratings to the fitted model. Users without
a relevant test item do not count for the lists.

Where whole items are held out they are ranked among themselves, by features: the scores that the recommender gives to
the items of training are regressed on these, and beside them, in the same way, who has seen an item (content alone)
and how many have (popularity).

Biases and popularity are measured on the same parts. Intervals are over users, who are drawn independently, not over
ratings: the mean ± 1.96 standard errors, which for rmse and mae are those of a ratio of sums over users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from twofold import metrics
from twofold.completion.ids import number_ids, places, plain
from twofold.completion.ratings_table import RatingsTable, count_items, merge_pairs, table, triples
from twofold.completion.recommender._features import SAMPLE, learn_content, make_profiles, read_features, score_new
from twofold.completion.recommender.splits import Part
from twofold.completion.scorer import ProductScorer, Scorer, rank_items, rank_row
from twofold.core.checks import InputError
from twofold.core.data.known_cells import keep_stored

LISTS = {
    "precision": metrics.precision_at_k,
    "recall": metrics.recall_at_k,
    "ndcg": metrics.ndcg_at_k,
    "map": metrics.map_at_k,
    "mrr": metrics.mrr_at_k,
}
WIDTH = 1.96  # standard errors either side, for 95 %
CHUNK = 2**22  # predicted cells at a time


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found; ``result["rmse"]`` is the recommender's own figure.

    Attributes
    ----------
    table : polars.DataFrame
        One row for the recommender and one for each baseline: model, rmse, mae, precision, recall, ndcg, map, mrr,
        coverage, novelty. Null where a figure has no meaning, such as the RMSE of implicit data.
    intervals : polars.DataFrame
        For each model and each figure that is a mean over users: model, measure, value, and the ends low and high of
        its 95 % interval.
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
    intervals: pl.DataFrame
    n: int
    split: str
    relevant: float | None
    ratings: int
    users: int
    unseen: int

    def __getitem__(self, name: str) -> float | None:
        return self.table[name][0]

    def interval(self, name: str, model: str | None = None) -> tuple[float, float] | None:
        """The 95 % interval of one figure, of the recommender or of another model of the table."""
        model = self.table["model"][0] if model is None else model
        found = self.intervals.filter(model=model, measure=name)
        return (found["low"][0], found["high"][0]) if len(found) else None

    def __str__(self) -> str:
        ends = {(m, name): (high - low) / 2 for m, name, _, low, high in self.intervals.iter_rows()}
        shown = self.table.select(
            pl.Series(c, [write_figure(v, ends.get((m, c))) for m, v in zip(self.table["model"], column, strict=True)])
            if (c := column.name) != "model"
            else column
            for column in self.table.iter_columns()
        )
        with pl.Config(
            tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True, tbl_cols=-1, tbl_width_chars=200
        ):
            return (
                f"{self.ratings:,} test ratings ({self.split}), {self.unseen:,} of them of a user or item not seen in "
                f"training; lists of {self.n} for {self.users:,} users; ± 95 % over users\n{shown}"
            )


def write_figure(value: float | None, end: float | None) -> str:
    return "" if value is None else f"{value:.4f}" + ("" if end is None else f" ±{end:.3f}")


class Method(NamedTuple):
    """One way to recommend: what its lists are ranked by, and what predicts ratings."""

    scorer: Scorer
    score_new: Callable[[sparse.csr_array], np.ndarray]  # scores of rows of ratings that the fit did not have
    rating: Any  # None where it predicts no ratings
    predict: Callable | None  # ratings of pairs of ids


class Fold(NamedTuple):
    """One method's figures on one fold, before they are pooled."""

    errors: np.ndarray | None  # (test ratings,)
    rows: np.ndarray  # (test ratings,) whose they are
    lists: dict[str, np.ndarray]  # a figure a user
    coverage: float
    novelty: float | None


def evaluate_parts(
    learn: Callable[[RatingsTable], Any],
    cells: RatingsTable,
    parts: Iterable[Part],
    n: int,
    relevant: float | None,
    split: str,
    features: Any = None,
) -> Evaluation:
    """Fit by `learn` to every training part, look at its test part, and pool; with `features` items are new."""
    judge = judge_fold if features is None else partial(judge_new_items, features, cells.items)
    found: dict[str, list[Fold]] = {}
    tested = unseen = users = 0
    thresholds = []
    for train, shown, test in parts:
        rec = learn(compress_table(cells, train))
        level = None if cells.implicit else float(train.data.mean(dtype=np.float64)) if relevant is None else relevant
        wanted = test if level is None else keep_stored(test, test.data >= level)
        thresholds.append(level)
        for name, fold in judge(rec, shown, test, wanted, n).items():
            found.setdefault(name, []).append(fold)
        i, j = list_coordinates(test)
        tested, users = tested + test.nnz, users + int(np.count_nonzero(np.diff(wanted.indptr)))
        unseen += int(np.sum((places(rec.users_, i) < 0) | (places(rec.items_, j) < 0)))
    level = None if cells.implicit else float(np.mean([t for t in thresholds if t is not None]))
    ends = {name: list(find_intervals(name, folds)) for name, folds in found.items()}
    table = pl.DataFrame([pool_folds(name, folds, ends[name]) for name, folds in found.items()])
    intervals = pl.DataFrame([row for rows in ends.values() for row in rows], INTERVAL_COLUMNS, orient="row")
    return Evaluation(table, intervals, n, split, level, tested, users, unseen)


def compress_table(cells: RatingsTable, train: sparse.csr_array) -> RatingsTable:
    """The training part as a table of its own: users and items without a training rating do not exist in it.

    Ids are the rows and columns of the whole table.
    """
    rows = np.flatnonzero(np.diff(train.indptr))
    cols, index = np.unique(train.indices, return_inverse=True)
    indptr = np.append(train.indptr[rows], train.nnz)
    X = sparse.csr_array((train.data, index.astype(train.indices.dtype), indptr), shape=(len(rows), len(cols)))
    return RatingsTable(rows, cols.astype(np.int64), X, cells.implicit, cells.columns)


def list_coordinates(X: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of every stored cell."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices.astype(np.int64)


def list_methods(rec: Any) -> dict[str, Method]:
    """The recommender itself, and what it has to beat."""
    ranking, rating = rec.ranking_, None if rec.implicit_ else rec.model_
    names = dict.fromkeys(type(model).__name__ for model in (ranking, rating) if model is not None)
    scorer = ranking.make_scorer(rec.ratings_)
    out = {" + ".join(names): Method(scorer, lambda X: ranking.predict(rec._rank_values(X)), rating, rec.predict)}
    if not rec.implicit_ and "Biases" not in out:
        b = rec.baseline_
        biases = ProductScorer(np.ones((len(b.row_bias_), 1)), b.column_bias_[None].astype(np.float64), b.row_bias_)
        out["Biases"] = Method(biases, partial(_repeat_scores, biases), rec.baseline_, rec._baseline)
    counts, n = count_items(rec.ratings_).astype(np.float32), len(rec.users_)
    popular = ProductScorer(np.ones((n, 1), np.float32), counts[None], np.zeros(n, np.float32))
    out["popularity"] = Method(popular, partial(_repeat_scores, popular), None, None)
    return out


def _repeat_scores(scorer: ProductScorer, X: sparse.csr_array) -> np.ndarray:
    """The one row of scores that all users share, for the rows of X."""
    return np.tile(scorer.Z[0], (X.shape[0], 1))


def judge_fold(
    rec: Any, shown: sparse.csr_array | None, test: sparse.csr_array, wanted: sparse.csr_array, n: int
) -> dict[str, Fold]:
    """The recommender and its baselines on one test part, whose rows and columns are the ids."""
    users = np.flatnonzero(np.diff(wanted.indptr))
    i, j = list_coordinates(test)
    new = None if shown is None else sparse.csr_array(shown[:, rec.items_])  # cells that the fitted model may see
    counts = np.zeros(test.shape[1], np.int64)
    counts[rec.items_] = np.bincount(rec.ratings_.indices, minlength=len(rec.items_))
    out = {}
    for name, method in list_methods(rec).items():
        errors = None
        if method.rating is not None and method.predict is not None:
            found = method.predict(i, j) if new is None else predict_new(rec, method.rating, new, i, j)
            errors = found.astype(np.float64) - test.data
        lists, figures = list_items(rec, method, users, n, new), {}
        if len(users):
            figures = {m: f(lists, wanted[users], n, average=False) for m, f in LISTS.items()}
        surprise = metrics.novelty(lists, counts, len(rec.users_), n) if (lists >= 0).any() else None
        out[name] = Fold(errors, i, figures, metrics.coverage(lists, len(rec.items_), n), surprise)
    return out


def judge_new_items(
    features: Any, ids: np.ndarray, rec: Any, shown: None, test: sparse.csr_array, wanted: sparse.csr_array, n: int
) -> dict[str, Fold]:
    """Items that training never saw, ranked by their features for the users that have one of them."""
    found = read_features(features, ids, "item", rec.columns_.get("item"))
    place = places(ids, found.ids)
    known = np.isin(place, rec.items_)
    new = np.flatnonzero(np.isin(place, test.indices))
    if not known.any() or not len(new):
        raise InputError(
            f"the features have {known.sum()} of the items to train on and {len(new)} of those to test on. Give "
            "features of most items, or hold out more with test_size."
        )
    at, F = places(rec.items_, place[known]), found.F[known]
    users, X = np.flatnonzero(np.diff(wanted.indptr)), rec.ratings_
    row, scorer = places(rec.users_, users), rec.ranking_.make_scorer(X)
    seen = sparse.csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)
    liked = np.bincount(X.indices, minlength=X.shape[1]) / X.shape[0]
    sample = np.arange(0, X.shape[0], max(1, X.shape[0] // SAMPLE))
    scores: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        f"{type(rec.ranking_).__name__} and features": lambda rows: scorer.score_fully(rows).astype(np.float64),
        "content alone": lambda rows: seen[rows].toarray(),
        "popularity by features": lambda rows: np.tile(liked, (len(rows), 1)),
    }
    out = {}
    for name, of_known in scores.items():
        content = learn_content(F, of_known(sample)[:, at])
        lists = np.full((len(users), n), -1, np.int64)
        for group in batch_rows(np.arange(len(users)), X.shape[1]):
            S = score_new(content, *make_profiles(content, of_known(row[group])[:, at]), found.F[new])
            best = np.argsort(-S, axis=1, kind="stable")[:, :n]
            lists[group, : best.shape[1]] = place[new][best]
        figures = {m: f(lists, wanted[users], n, average=False) for m, f in LISTS.items()} if len(users) else {}
        out[name] = Fold(None, np.empty(0, np.int64), figures, metrics.coverage(lists, len(new), n), None)
    return out


def list_items(rec: Any, method: Method, users: np.ndarray, n: int, new: sparse.csr_array | None = None) -> np.ndarray:
    """(users, n) the ids of the items recommended to each, -1 where a list is shorter.

    Users that training never saw get the best for what `new` shows of them, or else what is liked most.
    """
    out = np.full((len(users), n), -1, np.int64)
    row = places(rec.users_, users)
    if new is None:
        liked = rank_row(rec._score_unknown(), np.empty(0, np.int64), n).items
        out[row < 0, : len(liked)] = rec.items_[liked]
    else:
        for at in batch_rows(np.flatnonzero(row < 0), new.shape[1]):
            rows = new[users[at]]
            for place, one, seen in zip(
                at, method.score_new(rows), np.split(rows.indices, rows.indptr[1:-1]), strict=True
            ):
                best = rank_row(np.asarray(one), seen, n).items
                out[place, : len(best)] = rec.items_[best]
    at = np.flatnonzero(row >= 0)
    start = 0
    for group, found in rank_items(method.scorer, rec.ratings_, row[at], n):
        here = at[start : start + len(group)]
        out[here, : found.items.shape[1]] = np.where(found.items >= 0, rec.items_[found.items], -1)
        start += len(group)
    return out


def batch_rows(rows: np.ndarray, width: int) -> list[np.ndarray]:
    """The rows in groups whose scores fit into memory."""
    step = max(1, CHUNK // max(width, 1))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def predict_new(rec: Any, model: Any, new: sparse.csr_array, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """(pairs,) the ratings that users i, of whom the model sees the cells in `new`, would give to items j.

    An item that training never saw is predicted the mean of what the user is predicted.
    """
    users, at = np.unique(i, return_inverse=True)
    cols = places(rec.items_, j)
    out = np.empty(len(i))
    for group in batch_rows(np.arange(len(users)), new.shape[1]):
        values = np.asarray(model.predict(new[users[group]]))
        here = np.flatnonzero((at >= group[0]) & (at <= group[-1]))
        rows = at[here] - group[0]
        out[here] = np.where(cols[here] >= 0, values[rows, cols[here]], values.mean(axis=1)[rows])
    return rec._clip(out)


def pool_folds(name: str, folds: list[Fold], intervals: list[tuple]) -> dict[str, Any]:
    """One row of the table, from the rows of :func:`find_intervals` and what has no interval."""
    row = {"model": name} | dict.fromkeys(["rmse", "mae", *LISTS]) | {row[1]: row[2] for row in intervals}
    surprise = [f.novelty for f in folds if f.novelty is not None]
    novelty = float(np.mean(surprise)) if surprise else None
    return row | {"coverage": float(np.mean([f.coverage for f in folds])), "novelty": novelty}


INTERVAL_COLUMNS = dict.fromkeys(["model", "measure"], pl.String) | dict.fromkeys(["value", "low", "high"], pl.Float64)


def find_intervals(name: str, folds: list[Fold]) -> Iterator[tuple[str, str, float, float, float]]:
    """The 95 % interval over users of every figure that has one: model, measure, value, low, high."""
    if folds[0].errors is not None:
        errors = np.concatenate([f.errors for f in folds if f.errors is not None])
        rows = np.concatenate([f.rows for f in folds])
        for measure, values, back in (("rmse", errors**2, np.sqrt), ("mae", np.abs(errors), float)):
            mean, end = bound_ratio(values, rows)
            yield name, measure, back(mean), back(max(mean - end, 0.0)), back(mean + end)
    for measure in LISTS:
        values = [f.lists[measure] for f in folds if f.lists]
        if values:
            each = np.concatenate(values)
            end = WIDTH * float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else np.inf
            mean = float(each.mean())
            yield name, measure, mean, mean - end, mean + end


def bound_ratio(values: np.ndarray, rows: np.ndarray) -> tuple[float, float]:
    """The mean of values that come in groups (rows), and half the length of its interval if groups are drawn.

    mean m = Σ_g s_g / Σ_g n_g      variance ≈ G/(G−1) Σ_g (s_g − m n_g)² / (Σ_g n_g)²
    """
    _, group = np.unique(rows, return_inverse=True)
    sums, sizes = np.bincount(group, values), np.bincount(group)
    mean = float(values.mean())
    if len(sums) < 2:
        return mean, np.inf
    spread = len(sums) / (len(sums) - 1) * np.sum((sums - mean * sizes) ** 2)
    return mean, WIDTH * float(np.sqrt(spread) / len(values))


def read_given_test(rec: Any, ratings: Any, test: Any) -> tuple[RatingsTable, list[Part]]:
    """Ratings and test ratings as tables of all users and items of either."""
    t, more = (triples(r, rec.user, rec.item, rec.rating) for r in (ratings, test))
    (users, i), (items, j) = number_ids(join_ids(t.user, more.user)), number_ids(join_ids(t.item, more.item))
    m = len(t.user)
    cells = table(users, items, i[:m], j[:m], t, rec.duplicates, rec._implicit())
    values = np.ones(len(i) - m) if more.rating is None else more.rating
    held = merge_pairs(i[m:], j[m:], values, cells.X.shape, "sum" if cells.implicit else rec.duplicates)
    check_apart(cells, held)
    return cells, [Part(cells.X, None, held)]


def join_ids(a: pl.Series, b: pl.Series) -> pl.Series:
    """The ids of two tables, in one type."""
    a, b = plain(a), plain(b)
    return pl.concat([a, b] if a.dtype == b.dtype else [a.cast(pl.String), b.cast(pl.String)])


def check_apart(cells: RatingsTable, test: sparse.csr_array) -> None:
    """No pair may be in both parts."""
    keys = [i * np.int64(test.shape[1]) + j for i, j in map(list_coordinates, (cells.X, test))]
    both = np.intersect1d(*keys)
    if len(both):
        i, j = divmod(int(both[0]), test.shape[1])
        raise InputError(
            f"user {cells.users[i]!r} with item {cells.items[j]!r} is in the ratings and in test; such a test is not "
            f"honest ({len(both)} pairs in all). Drop them from one of the two."
        )
