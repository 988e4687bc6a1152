"""Lists for users of a fitted recommender, many in one pass; what all lists share is prepared once.

    known users          scores of the model of the lists  →  the best, without what they have seen
    users with features  scores regressed on features      →  the best
    new users            scores of their ratings, folded in →  the best, without what they have rated

Items without ratings follow the known ones: column len(items_) + a is the a-th of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from twofold.completion.ids import find_ids, place, places
from twofold.completion.ratings_table import row_of
from twofold.completion.recommender import _features
from twofold.completion.scorer import ExtendedScorer, Lists, Scorer, join_lists, rank_items, rank_scores
from twofold.core.checks import InputError
from twofold.core.data.sources import rows_per_block
from twofold.core.engine.local import single_blas


class Choice(NamedTuple):
    """How many items a list has, and which may be in it."""

    n: int
    barred: np.ndarray | None  # columns that are in no list
    filter_seen: bool


def is_many(users: Any) -> bool:
    """Tell whether several users are asked for, and not one."""
    return not isinstance(users, (str, bytes)) and hasattr(users, "__len__") and np.ndim(users) == 1


class ListMaker:
    """Makes the lists of one fitted recommender."""

    def __init__(self, rec: Any):
        self.rec = rec
        kept = rec.content_.get("item")
        self.kept = kept if kept is not None and len(kept["ids"]) else None
        self.n_known = len(rec.items_)
        self.ids = rec.items_ if self.kept is None else np.append(rec.items_, self.kept["ids"])
        self.hidden = rec.ratings_ if rec.refused_ is None else rec.ratings_ + rec.refused_
        seen = rec.ratings_ if not sparse.issparse(rec.ratings_) else rec._rank_values(rec.ratings_)
        self.scorer: Scorer = rec.ranking_.make_scorer(seen)
        if self.kept is not None:
            X, shape = self.hidden, (self.hidden.shape[0], len(self.ids))
            self.hidden = sparse.csr_array((X.data, X.indices, X.indptr), shape=shape)
            self.scorer = ExtendedScorer(self.scorer, partial(_features.score_items, self.kept))
        self.empty: Any = sparse.csr_array(self.hidden.shape, dtype=np.float32)
        self.codes: dict[int, tuple] = {}  # how each model folds in new rows

    # ---- what may be in a list ----------------------------------------------------------------------------------

    def choose(self, n: int, exclude: Any, items: Any, filter_seen: bool) -> Choice:
        """Columns to leave out, from ids; ids that are unknown have no column."""
        barred = np.zeros(len(self.ids), bool)
        if items is not None:
            at = self._find_columns(items, "items")
            if len(items) and not (at >= 0).any():
                raise InputError(f"none of the {len(items)} items to choose from is known; the first is {items[0]!r}.")
            barred[:] = True
            barred[at[at >= 0]] = False
        at = self._find_columns(exclude, "exclude")
        barred[at[at >= 0]] = True
        return Choice(n, np.flatnonzero(barred) if barred.any() else None, filter_seen)

    def _find_columns(self, ids: Any, name: str) -> np.ndarray:
        if isinstance(ids, (str, bytes)) or not hasattr(ids, "__len__"):
            raise InputError(f"{name}={ids!r} is one id. Give a list of ids.")
        if not len(ids):
            return np.empty(0, np.int64)
        at = places(self.rec.items_, ids)
        if self.kept is not None and (at < 0).any():
            new = find_ids(self.kept["ids"], [one for one, known in zip(ids, at >= 0, strict=True) if not known])
            at[at < 0] = np.where(new >= 0, self.n_known + new, -1)
        return at

    # ---- lists -----------------------------------------------------------------------------------------------

    def list_users(self, users: Any, choice: Choice, by_place: bool = False) -> pl.DataFrame:
        """The lists of users by id: one user's frame, or one frame of many; `by_place` calls these 0, 1, 2, ..."""
        rec, many = self.rec, is_many(users)
        given = list(users) if many else [users]
        rows, new = self.find_users(given)
        unknown = np.flatnonzero((rows < 0) & (new < 0))
        if len(unknown):
            place(rec.users_, given[unknown[0]], "user")
        found = Lists(*self._start(len(rows), choice.n))
        known = np.flatnonzero(rows >= 0)
        if len(known):
            hidden = self.hidden if choice.filter_seen else self.empty
            ranked = [one for _, one in rank_items(self.scorer, hidden, rows[known], choice.n, choice.barred)]
            found.items[known], found.scores[known] = join_lists(ranked)
        with_features = np.flatnonzero(new >= 0)
        if len(with_features):
            self._list_features(rec.content_["user"]["new"][new[with_features]], with_features, found, choice)
        owner = np.repeat(np.arange(len(rows)), (found.items >= 0).sum(axis=1))
        column = pl.Series(owner) if by_place else None
        if many and not by_place:
            ids = np.empty(len(rows), rec.users_.dtype)
            ids[known] = rec.users_[rows[known]]
            if len(with_features):
                ids[with_features] = rec.content_["user"]["ids"][new[with_features]]
            column = as_series(ids[owner])
        return self._as_frame(found, rows[owner], column)

    def find_users(self, users: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Rows of users with ratings, and places of those known by features alone; -1 where there is none."""
        rows, features = places(self.rec.users_, users), self.rec.content_.get("user")
        new = np.full(len(rows), -1)
        if features is not None and (rows < 0).any():
            new = np.where(rows < 0, find_ids(features["ids"], users), -1)
        return rows, new

    def list_new(self, ratings: Any, features: Any, choice: Choice) -> tuple[pl.DataFrame, list]:
        """The lists of users that are not in the data, from ratings or features, and the items that are unknown."""
        rec, many = self.rec, _is_several(ratings, features)
        given = list(ratings if many and ratings is not None else [ratings if not many else None])
        told = list(features if many and features is not None else [features if not many else None])
        size = max(len(given), len(told))
        given, told = (list(side) * (size if len(side) == 1 else 1) for side in (given, told))
        if len(given) != len(told):
            raise InputError(f"{len(given)} new users have ratings and {len(told)} features. Give one each.")
        rows = [row_of(one or {}, rec.items_, rec.implicit_, rec.ratings_.dtype) for one in given]
        X = sparse.vstack([row for row, _ in rows], format="csr") if rows else rec.ratings_[:0]
        found = Lists(*self._start(size, choice.n))
        by_features = np.array([one is not None and not g for one, g in zip(told, given, strict=True)], bool)
        at = np.flatnonzero(by_features)
        if len(at):
            columns = _features.get_columns(rec.content_["user"])
            F = sparse.vstack([_features.encode_one(told[a], columns, "user") for a in at], format="csr")
            self._list_features(F, at, found, choice)
        rated = self._list_ratings(X, np.flatnonzero(~by_features), found, choice)
        owner = np.repeat(np.arange(size), (found.items >= 0).sum(axis=1))
        frame = self._as_frame(found, np.full(len(owner), -1), pl.Series(owner) if many else None, rated)
        return frame, [item for _, unknown in rows for item in unknown]

    def _start(self, m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        n = min(n, len(self.ids))
        return np.full((m, n), -1, np.int64), np.full((m, n), -np.inf)

    def _list_features(self, F: sparse.csr_array, at: np.ndarray, lists: Lists, choice: Choice) -> None:
        """Lists of users known by features alone, some at a time."""
        step = rows_per_block(len(self.ids), np.dtype(np.float64))
        for a in range(0, len(at), step):
            S = self._with_new(_features.score_users(self.rec.content_["user"], F[a : a + step]))
            best = rank_scores(S, _nothing(len(S)), choice.n, choice.barred)
            lists.items[at[a : a + step]], lists.scores[at[a : a + step]] = best

    def _list_ratings(self, X: sparse.csr_array, at: np.ndarray, lists: Lists, choice: Choice) -> np.ndarray | None:
        """Lists of new users from their ratings (m,d), some at a time; the ratings they would give, if another model
        than that of the lists predicts them."""
        rec, step = self.rec, rows_per_block(len(self.ids), np.dtype(np.float64))
        rated = None if rec.ranker_ is None else np.zeros(lists.items.shape)
        for a in range(0, len(at), step):
            some = at[a : a + step]
            x = X[some]
            S = self._with_new(self.fold(rec.ranking_, rec._rank_values(x), rec._score_unknown))
            best = rank_scores(S, x if choice.filter_seen else _nothing(len(S)), choice.n, choice.barred)
            lists.items[some], lists.scores[some] = best
            if rated is not None:
                values = self.fold(rec.model_, x, rec._rate_unknown)
                padded = np.hstack([values, np.full((len(x.indptr) - 1, len(self.ids) - self.n_known), rec._middle())])
                rated[some] = np.take_along_axis(padded, np.maximum(best.items, 0), axis=1)
        return rated

    def fold(self, model: Any, X: sparse.csr_array, unknown: Any) -> np.ndarray:
        """(m,d) what a model says of new rows; rows without any cell get what holds for everyone."""
        if id(model) not in self.codes:
            self.codes[id(model)] = model._both()
        fold, state, value, shared = self.codes[id(model)]
        with single_blas():
            S = np.array(value(fold(X, *state), *shared))
        if not np.isfinite(S).all():
            S = np.array(model.predict(X))  # it says which cell is to blame
        bare = np.diff(X.indptr) == 0
        if bare.any():
            S = S.astype(np.float64)
            S[bare] = unknown()
        return S

    def _with_new(self, S: np.ndarray) -> np.ndarray:
        """(m,d+new) scores of known items, and after them those of items without ratings."""
        if self.kept is None:
            return S
        return np.hstack([S, _features.score_items(self.kept, S).astype(S.dtype)])

    # ---- frames ----------------------------------------------------------------------------------------------

    def _as_frame(
        self, lists: Lists, rows: np.ndarray, users: pl.Series | None, rated: np.ndarray | None = None
    ) -> pl.DataFrame:
        there = lists.items >= 0
        items, scores = lists.items[there], lists.scores[there]
        ratings = self.rate(rows, items, scores) if rated is None else rated[there]
        return self.as_frame(items, scores, ratings, users)

    def rate(self, rows: np.ndarray, cols: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """The predicted rating of items in lists, which are the scores if there is one model."""
        rec = self.rec
        if rec.ranker_ is None:
            return scores
        known = cols < self.n_known
        out = rec._predict_by_biases(rows, np.where(known, cols, -1))
        both = known & (rows >= 0)
        if both.any():
            out[both] = rec.model_.predict(rows[both], cols[both])
        return out

    def as_frame(
        self, items: np.ndarray, scores: np.ndarray, ratings: np.ndarray, users: pl.Series | None = None
    ) -> pl.DataFrame:
        """Items with their scores and, where there are ratings, predicted ratings; with users, these first."""
        rec, scores = self.rec, scores.astype(np.float64)
        columns = [] if users is None else [users.alias("user")]
        columns += [as_series(self.ids[items]).alias("item")]
        columns += [pl.Series("score", rec._clip(scores) if rec.ranker_ is None else scores)]
        return pl.DataFrame(columns + ([] if rec.implicit_ else [pl.Series("rating", rec._clip(ratings))]))


def as_series(ids: np.ndarray) -> pl.Series:
    """Ids as a column: text, or numbers."""
    return pl.Series(ids.tolist(), dtype=pl.String) if ids.dtype == object else pl.Series(ids)


def _is_several(ratings: Any, features: Any) -> bool:
    """Tell whether there are several new users: a list of dicts, or of lists."""
    for given in (ratings, features):
        if isinstance(given, Sequence) and not isinstance(given, (str, bytes)) and len(given):
            return isinstance(given[0], (dict, list, tuple, set))
    return False


def _nothing(m: int) -> Any:
    """No cell in m rows."""
    return sparse.csr_array((m, 1))
