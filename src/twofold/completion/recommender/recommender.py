"""User and item ids around any completion model.

    (user, item, rating) rows  →  X (n,d) with holes  →  a model of which holes fill next  →  a list for each user
                                                      →  a model of what will be in them   →  a rating for any pair

They are two questions: people see much that they will not love, and would love much that they will never see. Pairs
whose user or item the ratings do not have are predicted from biases, so that there is always an answer.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from twofold.completion.ease import EASE
from twofold.completion.ids import find_ids, place, places
from twofold.completion.implicit_als import ImplicitALS
from twofold.completion.model import Completion
from twofold.completion.partitioned.ratings import open_ratings
from twofold.completion.partitioned.stored_rows import StoredRows, rank_all
from twofold.completion.popularity import Popularity
from twofold.completion.ratings_table import RatingsTable, cells_of, check_enough, count_items
from twofold.completion.recommender import _features, evaluation
from twofold.completion.recommender._choose import (
    AS_GIVEN,
    Candidates,
    StoredCandidates,
    TableCandidates,
    choose_models,
)
from twofold.completion.recommender._list_maker import ListMaker, as_series
from twofold.completion.recommender._lists import Scale, measure_cells, value_cells
from twofold.completion.recommender._serving import make_serving
from twofold.completion.recommender._update import join_ratings
from twofold.completion.recommender.explain import compare_items, compare_users, split_prediction
from twofold.completion.recommender.splits import split_table
from twofold.completion.scorer import rank_items, rank_row
from twofold.core.checks import InputError
from twofold.core.data.blocks import is_dask
from twofold.core.estimator import Model
from twofold.core.files import model_file
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import seed_of
from twofold.core.sklearn_shim import callbacks_of
from twofold.core.types import PathLike, Seed
from twofold.io.tables.write import write_frames


class Recommender(Model):
    """Recommendations by id, from rows of user, item and rating.

    Lists come from a model of what people see next, ratings from a model of the table users × items, whose holes are
    what a user has not rated. Each is chosen by its own question, on ratings held out, from a few that always include
    the trivial one. Without a rating column, or if all ratings are equal, the data is implicit: what was seen, bought
    or played, perhaps how often; then there is only the first.

    Parameters
    ----------
    model : completion model or None, default=None
        Any model of ``twofold.completion``, which is copied, and answers both questions: lists hold what it predicts to
        be rated highest. None means for lists the best of :class:`Popularity`, :class:`EASE` and :class:`ImplicitALS`,
        for ratings of :class:`Biases`, :class:`Neighborhood` and :class:`SVDPlusPlus`: see ``choice_``. Where more than
        half of all pairs are rated, what is missing says nothing, and lists hold what would be rated highest.
    user, item, rating : str or None, default=None
        Names of the columns. None means: found by name (userId, customer, movie_id, isbn, stars, ...), else the first,
        second and third column. What was found is in ``columns_``.
    duplicates : {"mean", "last"}, default="mean"
        What a pair (user, item) that occurs more than once is worth. Implicit counts are always summed.
    clip : bool, default=True
        Keep predicted ratings within the range of those seen. The order of recommendations does not depend on it.
    holdout : float, default=0.1
        With ``model=None``, the share of the ratings that decides between models and when to stop; all ratings are used
        in the end. 0 leaves that out and takes less than half the time.
    time : float or None, default=30.0
        Seconds that the choice and the fit of both models may take, by the clock. What would take longer is not tried,
        or with fewer input items, or fewer sweeps. Where the limit is felt, a slower machine may choose another model;
        None means no limit, so that the choice depends on the data alone.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the default model and every split.

    Attributes
    ----------
    users_, items_ : ndarray
        The ids, sorted: numbers, or text if they are anything else. Their places are the rows and columns of the rest.
    ratings_ : CSR array of shape (users, items)
        What was learned from.
    model_ : completion model
        The fitted model of ``ratings_``; for implicit data the one of the lists.
    ranking_ : completion model
        The fitted model of the lists, which is ``model_`` if that was given.
    baseline_ : Biases or None
        For users or items that the ratings do not have; None for implicit data.
    choice_ : dict
        The model chosen for ratings, its parameters, why, and its score beside the baseline's and that of all others
        tried, with standard errors, on ratings held out; under "ranking" the same for lists. For implicit data that for
        lists alone.
    columns_ : dict
        Which columns were taken for user, item and rating.
    names_ : ndarray of str, or None
        What the items are called, where the ratings have a column of names ("" where blank). May be set.
    implicit_ : bool
    refused_ : CSR array of shape (users, items), or None
        Items that users have answered with 0 where ratings are 0 and 1: nothing is learned from them, and they are not
        recommended again.
    range_ : tuple of float
        The lowest and the highest rating.
    content_ : dict
        The regressions on features of users and items, under "user" and "item", where they were given.

    Examples
    --------
    >>> from twofold import ALS, Recommender, datasets
    >>> ratings = datasets.ratings().ratings
    >>> rec = Recommender(ALS(8, max_iter=100), random_state=0).fit(ratings)
    >>> rec.recommend(7, n=3).columns
    ['item', 'score', 'rating']
    >>> best = rec.recommend(7, n=1)["item"][0]
    >>> best in ratings.filter(user=7)["item"]                     # never what was already rated
    False
    >>> result = rec.evaluate()                                    # on ratings it was not fitted to
    >>> bool(result["rmse"] < result.table.filter(model="Biases")["rmse"][0])
    True
    """

    users_: Annotated[np.ndarray, "n, text"]
    items_: Annotated[np.ndarray, "d, text"]
    ratings_: Annotated[sparse.csr_array, "n d, sparse"]
    model_: Any
    implicit_: bool
    names_: Annotated[np.ndarray | None, "d, text, or None"] = None
    ranker_: Any = None  # the model of the lists where it is not `model_`
    cells_: str = AS_GIVEN  # how the model of the lists sees ratings
    content_: Any = MappingProxyType({})
    refused_: Annotated[Any, "n d, sparse, or None"] = None
    half_: bool = False  # made for serving
    spread_: float = 1.0  # of what ratings deviate from the baseline
    _parameter_constraints: ClassVar[dict] = {
        "model": [None, Completion],
        "user": [None, str],
        "item": [None, str],
        "rating": [None, str],
        "duplicates": [StrOptions({"mean", "last"})],
        "clip": ["boolean"],
        "holdout": [Interval(Real, 0, 0.9, closed="both")],
        "time": [None, Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        model: Any = None,
        *,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        duplicates: str = "mean",
        clip: bool = True,
        holdout: float = 0.1,
        time: float | None = 30.0,
        random_state: Seed = None,
    ):
        self.model = model
        self.user = user
        self.item = item
        self.rating = rating
        self.duplicates = duplicates
        self.clip = clip
        self.holdout = holdout
        self.time = time
        self.random_state = random_state

    # ---- learning ----------------------------------------------------------------------------------------------

    def fit(self, ratings: Any, y: Any = None, *, users: Any = None, items: Any = None) -> Any:
        """Learn from ratings, and from what is known of users and items beside them.

        Parameters
        ----------
        ratings : frame, path, or arrays
            A pandas or polars frame; the path of a CSV, TSV or Parquet file; a tuple (users, items) or (users, items,
            ratings); or a list or array of such rows. Ids may be of any type; ratings may be text: "4.5" or "4,5".
            Beyond one memory, :class:`PartitionedRatings` or a dask frame: the models are then :class:`Biases` or
            :class:`ALS`, and :class:`Popularity`, :class:`ImplicitALS` or :class:`EASE`, or the one of these that is
            given; ``ratings_`` stays on disk, and what needs all of it, such as :meth:`evaluate`, does not work.
        y : ignored
        users, items : frame, dict of columns, or path, optional
            Features, a row for each user or item, with a column of ids: numbers, categories, lists ("Action|Comedy")
            and text. Items without ratings join the lists, and users without ratings get one: the scores of the
            model of the lists are regressed on the features.
        """
        self._validate_params()
        if is_dask(ratings) or hasattr(ratings, "n_ratings"):
            return self._fit_partitioned(ratings, users, items)
        cells = self._cells(ratings)
        check_enough(cells)
        found = {
            role: _features.read_features(given, ids, role, cells.columns.get(role))
            for role, given, ids in (("user", users, cells.users), ("item", items, cells.items))
            if given is not None
        }
        self._learn(cells)
        learn = {"user": _features.learn_users, "item": _features.learn_items}
        for role, features in found.items():
            ids = self.users_ if role == "user" else self.items_
            self.content_[role] = learn[role](features, self.ranking_, self.ratings_, ids)
        return self

    def _fit_partitioned(self, ratings: Any, users: Any, items: Any) -> Any:
        if users is not None or items is not None:
            raise InputError("features of users and items are for ratings in memory. Leave out users= and items=.")
        wanted = {"user": self.user, "item": self.item, "rating": self.rating}
        duplicates = "sum" if self._implicit() else self.duplicates
        parts = open_ratings(ratings, self.model, wanted, duplicates, self.holdout)
        seen = StoredRows(parts, whole=True)
        low, high = ends = seen.find_range()
        implicit = bool(self._implicit()) or parts.columns["rating"] is None or parts.counts or low == high
        implicit = implicit or (ends == (0, 1) and seen.is_binary())
        candidates = StoredCandidates(parts, implicit, ends, seed_of(self.random_state), callbacks_of(self))
        return self._choose(RatingsTable(parts.users, parts.items, seen, implicit, parts.columns), candidates)

    def _cells(self, ratings: Any, times: bool = False) -> RatingsTable:
        return cells_of(ratings, self.user, self.item, self.rating, self.duplicates, self._implicit(), times)

    def _implicit(self) -> bool | None:
        """True if a model that was given needs counts; None if the data decides."""
        return True if isinstance(self.model, (EASE, ImplicitALS, Popularity)) else None

    def _learn(self, cells: RatingsTable) -> Any:
        seed, callbacks = seed_of(self.random_state), callbacks_of(self)
        return self._choose(cells, TableCandidates(cells.X, cells.implicit, self.holdout, seed, callbacks))

    def _choose(self, cells: RatingsTable, candidates: Candidates) -> Any:
        model, self.ranker_, self.cells_, self.choice_ = choose_models(self.model, candidates, self.time)
        return self._keep(cells, model, candidates.scale)

    @property
    def ranking_(self) -> Any:
        """The model of the lists."""
        return self.model_ if self.ranker_ is None else self.ranker_

    def _keep(self, cells: RatingsTable, model: Any, scale: Scale) -> Any:
        """Everything that follows from the ratings and a fitted model of them."""
        self.model_, X = model, cells.X
        self.users_, self.items_, self.ratings_ = cells.users, cells.items, X
        self.implicit_, self.columns_, self.names_ = cells.implicit, cells.columns, cells.names
        self.range_, self.spread_ = (scale.low, scale.high), scale.spread
        self.baseline_ = scale.baseline
        self.content_, self.refused_ = {}, cells.refused
        self.__dict__.pop("_lists", None)  # of an earlier fit
        return self

    def _check_parts(self, require: Callable[[bool, str], None]) -> None:
        """The models of a file that is loaded must be models of its users and items."""
        for name in ("model_", "ranker_", "baseline_"):
            part = getattr(self, name, None)
            if part is not None:
                size = (getattr(part, "n_rows_", None), getattr(part, "n_features_in_", None))
                right = isinstance(part, Completion) and size == (len(self.users_), len(self.items_))
                require(right, f"is damaged: {name} of Recommender is no model of its users and items.")

    def add_ratings(self, ratings: Any) -> Recommender:
        """Take in more ratings, of known and of new users and items, without refitting.

        Only the users and new items they concern change; with many new ratings, fit again. A pair that was rated
        before counts as a duplicate. The model must be able to grow, as :class:`ALS` is. Features are not kept.
        """
        check_is_fitted(self)
        self._check_in_memory("add_ratings")
        cells, model = join_ratings(self, ratings)
        return self._keep(cells, model, measure_cells(cells.X, cells.implicit))

    # ---- predicting --------------------------------------------------------------------------------------------

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """The predicted rating of each pair (users[t], items[t]); one user or item may stand for all.

        Users and items that the ratings do not have are predicted from what is known: the item's bias, the user's, or
        the mean. Never NaN.
        """
        check_is_fitted(self)
        i, j = self._pairs(users, items)
        out = self._predict_by_biases(i, j)
        both = (i >= 0) & (j >= 0)
        if both.any():
            out[both] = self.model_.predict(i[both], j[both])
        return self._clip(out)

    def _baseline(self, users: Any, items: Any) -> np.ndarray:
        """The predictions of biases alone."""
        return self._clip(self._predict_by_biases(*self._pairs(users, items)))

    def _rank_values(self, X: sparse.csr_array) -> sparse.csr_array:
        """Rows of ratings as the model of the lists sees them."""
        if self.cells_ == AS_GIVEN:
            return X
        return value_cells(X, self.cells_, Scale(*self.range_, self.baseline_, self.spread_))

    def _score_unknown(self) -> np.ndarray:
        """(items,) the scores for a user of whom nothing is known."""
        if self.ranker_ is None:
            return self._rate_unknown()
        return count_items(self.ratings_) / len(self.users_)

    def _rate_unknown(self) -> np.ndarray:
        """(items,) how much each item is liked overall: its mean and bias, or the share of users that have it."""
        if self.baseline_ is None:
            return count_items(self.ratings_) / len(self.users_)
        return self.baseline_.column_bias_.astype(np.float64) + self.baseline_.mean_

    def _predict_by_biases(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        out = np.where(j >= 0, self._rate_unknown()[j], self._middle())
        return out if self.baseline_ is None else out + np.where(i >= 0, self.baseline_.row_bias_[i], 0.0)

    def _pairs(self, users: Any, items: Any) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of pairs of ids, -1 where there is none."""
        given = [
            [ids] if isinstance(ids, (str, bytes)) or not hasattr(ids, "__len__") else ids for ids in (users, items)
        ]
        if len(given[0]) != len(given[1]) and 1 not in map(len, given):
            raise InputError(f"{len(given[0])} users and {len(given[1])} items were given; pairs must be equally long.")
        i, j = np.broadcast_arrays(places(self.users_, given[0]), places(self.items_, given[1]))
        return i, j

    def _clip(self, scores: np.ndarray) -> np.ndarray:
        return np.clip(scores, *self.range_) if self.clip and not self.implicit_ else scores

    # ---- recommending ------------------------------------------------------------------------------------------

    def recommend(
        self,
        users: Any,
        n: int = 10,
        *,
        exclude: Sequence[Any] = (),
        items: Sequence[Any] | None = None,
        filter_seen: bool = True,
    ) -> pl.DataFrame:
        """The n best items for one user, or for each of many, best first.

        Parameters
        ----------
        users : id, or list or array of ids
            Many users are ranked in one pass.
        n : int, default=10
        exclude : list of ids, default=()
            Items that are in no list.
        items : list of ids, optional
            The only items that may be in a list. Ids that are not known are left out here and in `exclude`.
        filter_seen : bool, default=True
            Leave out items that the user has rated, or refused.

        Returns
        -------
        polars.DataFrame of item, score and, where there are ratings, rating; of many users, user before them
            The score of the model of the lists, in its own unit, and the predicted rating. They are one number if
            the model was given.
        """
        check_is_fitted(self)
        _check_n(n)
        maker = self._list_maker
        return maker.list_users(users, maker.choose(n, exclude, items, filter_seen))

    def recommend_new(
        self,
        ratings: Any = None,
        n: int = 10,
        *,
        features: Any = None,
        exclude: Sequence[Any] = (),
        items: Sequence[Any] | None = None,
        filter_seen: bool = True,
    ) -> pl.DataFrame:
        """The n best items for a user that is not in the data, from ratings ``{item: rating}``; nothing is refitted.

        Without ratings, from `features`, ``{column: value}`` as in the users' features of the fit. Of several users,
        give lists of these; the frame then begins with their places in the list, from 0.

        Unknown items are left out with a warning. Without any, what most people have (with a model that was given, what
        is liked most). For implicit data a list of items will do. All else is as in :meth:`recommend`.
        """
        check_is_fitted(self)
        _check_n(n)
        if features is not None and "user" not in self.content_:
            raise InputError("features were given, but the fit had none of users. Fit with users=frame.")
        maker = self._list_maker
        frame, unknown = maker.list_new(ratings, features, maker.choose(n, exclude, items, filter_seen))
        if unknown:
            warnings.warn(
                f"left out, being no items of the ratings: {', '.join(map(repr, unknown[:10]))}", stacklevel=2
            )
        return frame

    @property
    def _list_maker(self) -> ListMaker:
        """The maker of lists, which is prepared when the first list is asked for."""
        if "_lists" not in vars(self):
            self._lists = ListMaker(self)
        return self._lists

    def _find_new(self, role: str, known: np.ndarray, wanted: Any) -> int:
        """The place of an id among those without ratings, -1 if it is none of them."""
        kept = self.content_.get(role)
        return -1 if kept is None or places(known, [wanted])[0] >= 0 else int(find_ids(kept["ids"], [wanted])[0])

    def _middle(self) -> float:
        """The rating of an average user and item."""
        return 0.0 if self.baseline_ is None else float(self.baseline_.mean_)

    def recommend_all(self, n: int = 10, path: str | os.PathLike | None = None) -> Iterator[pl.DataFrame] | None:
        """The n best items of every user, in the order of ``users_``, without ever holding all scores.

        An iterator of frames of user and the columns of :meth:`recommend`, for some thousand users each. With the
        `path` of a .csv, .tsv, .xlsx or .parquet file they are written to it instead; it appears when it is complete.
        """
        check_is_fitted(self)
        _check_n(n)
        frames = self._all_frames(n)
        if path is None:
            return frames
        write_frames(frames, path)
        return None

    def _all_frames(self, n: int) -> Iterator[pl.DataFrame]:
        users, maker = as_series(self.users_), self._list_maker
        if sparse.issparse(maker.hidden):
            ranked = rank_items(maker.scorer, maker.hidden, np.arange(len(self.users_)), n)
        else:
            ranked = rank_all(maker.scorer, maker.hidden, n)
        for rows, found in ranked:
            there = found.items >= 0
            who = np.repeat(rows, there.sum(axis=1))
            items, scores = found.items[there], found.scores[there]
            yield maker.as_frame(items, scores, maker.rate(who, items, scores), users[who])

    def for_serving(self, n_neighbors: int = 100) -> Recommender:
        """A copy with what lists need: it takes a fraction of the memory, and of the disk when it is saved.

        Of EASE the `n_neighbors` strongest weights of each item stay; predicted ratings come from biases alone, unless
        one model was given; a file of it has numbers of 16 bits. ``choice_["serving"]`` has the NDCG of such lists and
        that of the full ones, on a tenth of the cells.
        """
        check_is_fitted(self)
        self._check_in_memory("for_serving")
        return make_serving(self, n_neighbors)

    def save(self, path: PathLike) -> None:
        """Write the fitted model to one `.twofold` file; that of :meth:`for_serving` in half precision."""
        check_is_fitted(self)
        model_file.save(self, path, half=self.half_)

    def similar_items(self, item: Any, n: int = 10) -> pl.DataFrame:
        """The n items most like one: a frame of item and similarity, a cosine that is shrunk where ratings are few."""
        check_is_fitted(self)
        _check_n(n)
        col = place(self.items_, item, "item")
        found = rank_row(compare_items(self.ranking_, self.ratings_, col), np.array([col]), n)
        return pl.DataFrame([as_series(self.items_[found.items]).alias("item"), pl.Series("similarity", found.scores)])

    def similar_users(self, user: Any, n: int = 10) -> pl.DataFrame:
        """The n users most like one: a frame of user and similarity, a cosine that is shrunk where ratings are few."""
        check_is_fitted(self)
        _check_n(n)
        row = place(self.users_, user, "user")
        found = rank_row(compare_users(self.ranking_, self.ratings_, row), np.array([row]), n)
        return pl.DataFrame([as_series(self.users_[found.items]).alias("user"), pl.Series("similarity", found.scores)])

    def to_faiss(self) -> Any:
        """An exact faiss index of the item factors, a row an item in the order of ``items_``, for lists from factors.

        A user's factors, ``ranking_.row_factors_[row]``, find the items of their list by inner product; where items
        have an offset, which is then one more number of each, append a 1.
        """
        return importlib.import_module("twofold.interchange.arrays").index_items(self)

    def explain(self, user: Any, item: Any, n: int | None = 5) -> pl.DataFrame:
        """The items the user has rated that carried the prediction for another item.

        Returns
        -------
        polars.DataFrame of item, rating, share; of an item without ratings, feature, value, share
            The n largest shares (all with None), largest first. A share is in the unit of the score in the lists: over
            all rated items they add up to the score (not clipped) less that for someone without ratings.
        """
        check_is_fitted(self)
        row, new = place(self.users_, user, "user"), self._find_new("item", self.items_, item)
        if new >= 0:
            return self._explain_features(row, new, n)
        col = place(self.items_, item, "item")
        x = self.ratings_[[row]]
        shares = split_prediction(self.ranking_, self._rank_values(x), col)
        order = np.argsort(-shares, kind="stable")[:n]
        seen = as_series(self.items_[x.indices[order]]).alias("item")
        return pl.DataFrame([seen, pl.Series("rating", x.data[order]), pl.Series("share", shares[order])])

    def _explain_features(self, row: int, new: int, n: int | None) -> pl.DataFrame:
        """The contribution of each feature of a new item to its score."""
        kept = self.content_["item"]
        scores = self.ranking_.make_scorer(self.ratings_).score_fully(np.array([row]))[0]
        shares = _features.split_features(kept, scores, new)
        values = kept["new"][[new]].toarray()[0]
        order = np.argsort(-shares, kind="stable")[:n]
        names = pl.Series("feature", [kept["names"][a] for a in order], dtype=pl.String)
        return pl.DataFrame([names, pl.Series("value", values[order]), pl.Series("share", shares[order])])

    # ---- measuring ---------------------------------------------------------------------------------------------

    def evaluate(
        self,
        ratings: Any = None,
        *,
        test: Any = None,
        items: Any = None,
        split: str = "random",
        test_size: float | int = 0.2,
        folds: int | None = None,
        n: int = 10,
        relevant: float | None = None,
        random_state: Seed = None,
    ) -> evaluation.Evaluation:
        """Measure this recommender on ratings it was not fitted to, beside biases and popularity.

        Everything, the choice of the model included, is done again on the training part alone.

        Parameters
        ----------
        ratings : as in :meth:`fit`, optional
            None means those of the fit.
        test : as ratings, optional
            Held-out ratings; without, some are split off.
        items : frame, dict of columns, or path, optional
            Features of the items, as in :meth:`fit`, for ``split="items"``.
        split : {"random", "leave-out", "last", "users", "items"}, default="random"
            Any ratings; some of each user; the last of each user, by the column of times in `ratings`; whole users, of
            whom the fitted model is shown 80 % of the ratings and tested on the others; or whole items, which are
            ranked among themselves by their features.
        test_size : float or int, default=0.2
            The share of the ratings, or how many (of each user with "leave-out" and "last"), to test on; with "users"
            of the users, with "items" of the items.
        folds : int, optional
            Test every rating once, in `folds` parts, instead of a single split; figures are pooled.
        n : int, default=10
            Length of the lists.
        relevant : float, optional
            The rating from which on a test item is relevant. None means the mean of the training ratings.
        random_state : int, RandomState, Generator or None, default=None
            Seeds the split; None means the recommender's own.

        Returns
        -------
        Evaluation
            Its ``table`` has rmse, mae, precision, recall, ndcg, map, mrr, coverage and novelty, as its module defines
            them; ``intervals`` how sure they are.
        """
        self._validate_params()
        _check_n(n)
        if (split == "items" and test is None) != (items is not None):
            raise InputError(
                'items were given, features that only split="items" looks at. Say so, or leave them out.'
                if items is not None
                else 'split="items" ranks items without ratings by their features. Give them: items=frame.'
            )
        if ratings is None:
            check_is_fitted(self)
            if test is not None:
                raise InputError("test was given without ratings to train on. Call evaluate(ratings, test=...).")
            self._check_in_memory("evaluate")
            cells = RatingsTable(self.users_, self.items_, self.ratings_, self.implicit_, self.columns_)
        if test is not None:
            cells, given = evaluation.read_given_test(self, ratings, test)
            return evaluation.evaluate_parts(self._again, cells, given, n, relevant, "given")
        if split == "last" and ratings is None:
            raise InputError('split="last" needs times, which are not kept. Call evaluate(ratings, split="last").')
        cells = cells if ratings is None else self._cells(ratings, times=split == "last")
        seed = seed_of(self.random_state if random_state is None else random_state)
        parts = split_table(cells.X, split, test_size, folds, seed, cells.times)
        said = f"{split}, {folds} folds" if folds else f"{split}, {test_size:g}"
        return evaluation.evaluate_parts(self._again, cells, parts, n, relevant, said, items)

    def _again(self, cells: RatingsTable) -> Recommender:
        return clone(self).set_callbacks(*callbacks_of(self))._learn(cells)

    def _check_in_memory(self, action: str) -> None:
        if not sparse.issparse(self.ratings_):
            raise InputError(f"{action} needs all ratings in memory; those of this fit are in {self.ratings_.folder}.")


def _check_n(n: Any) -> None:
    if not isinstance(n, Integral) or n < 1:
        raise InputError(f"n={n!r} must be a whole number of at least 1.")
