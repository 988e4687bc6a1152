"""People's ids and things' ids around any completion model.

    (user, item, rating) rows  →  X (n,d) with holes  →  a model of the holes  →  for each user the best of them

Each thing is done by a module beside it: `ratings` reads, `choice` picks a model, `rating_model` fits and predicts,
`toplists` ranks, `explaining` splits a prediction into shares, `evaluation` measures.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from twofold.completion.recommender import evaluation
from twofold.completion.recommender._explain import split_prediction
from twofold.completion.recommender._ids import place
from twofold.completion.recommender._rating_model import RatingModel
from twofold.completion.recommender._ratings_table import Cells, row_of
from twofold.completion.recommender._similarity import compare_items
from twofold.completion.recommender._splits import split_cells
from twofold.completion.recommender._top_n import Lists, rank_items, rank_row, write_frames
from twofold.completion.recommender._update import join_ratings
from twofold.core.checks import InputError
from twofold.core.seeds import seed_of
from twofold.core.sklearn_shim import callbacks_of


class Recommender(RatingModel):
    """Recommendations by id, from rows of user, item and rating.

    A rating is predicted by a completion model of the table users × items, whose holes are what a user has not rated;
    the best of the holes are recommended. Without a rating column, or if all ratings are alike, the data is implicit:
    what was seen, bought or played, perhaps how often.

    Parameters
    ----------
    model : completion model or None, default=None
        Any model of ``twofold.completion``, which is copied. None means :class:`SVDPlusPlus` for ratings and
        :class:`ImplicitALS` for implicit data, checked on ratings held out: see ``choice_``.
    user, item, rating : str or None, default=None
        Names of the columns. None means: found by name (userId, customer, movie_id, isbn, stars, ...), else the first,
        second and third column. What was found is in ``columns_``.
    duplicates : {"mean", "last"}, default="mean"
        What a pair (user, item) that occurs more than once is worth. Implicit counts are always summed.
    clip : bool, default=True
        Keep predicted ratings within the range of those seen. The order of recommendations does not depend on it.
    holdout : float, default=0.1
        With ``model=None``, the share of the ratings that decides when to stop and whether the model beats its
        baseline; all ratings are used in the end. 0 leaves that out and takes half the time.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the default model and every split.

    Attributes
    ----------
    users_, items_ : ndarray
        The ids, sorted: numbers, or text if they are anything else. Their places are the rows and columns of the rest.
    ratings_ : CSR array of shape (users, items)
        What was learnt from.
    model_ : completion model
        The fitted model of ``ratings_``.
    baseline_ : Biases or None
        For users or items that the ratings do not have; None for implicit data.
    choice_ : dict
        The model chosen, its parameters, why, and its score beside the baseline's on ratings held out.
    columns_ : dict
        Which columns were taken for user, item and rating.
    implicit_ : bool
    range_ : tuple of float
        The lowest and the highest rating.

    Examples
    --------
    >>> from twofold import ALS, Recommender, datasets
    >>> ratings = datasets.ratings().ratings
    >>> rec = Recommender(ALS(8, max_iter=100), random_state=0).fit(ratings)
    >>> rec.recommend(7, n=3).columns
    ['item', 'score']
    >>> best = rec.recommend(7, n=1)["item"][0]
    >>> best in ratings.filter(user=7)["item"]                     # never what was already rated
    False
    >>> result = rec.evaluate()                                    # on ratings it was not fitted to
    >>> bool(result["rmse"] < result.table.filter(model="Biases")["rmse"][0])
    True
    """

    def add_ratings(self, ratings: Any) -> Recommender:
        """Take in more ratings, of known and of new users and items, without refitting.

        Only the users and new items they concern change; with many new ratings, fit again. A pair that was rated
        before counts as a duplicate. The model must be able to grow, as :class:`ALS` is.
        """
        check_is_fitted(self)
        return self._keep(*join_ratings(self, ratings))

    # ---- recommending ------------------------------------------------------------------------------------------

    def recommend(self, user: Any, n: int = 10) -> pl.DataFrame:
        """The n best items the user has no rating of, best first: a frame of item and score, the predicted rating."""
        check_is_fitted(self)
        _check_n(n)
        row = np.array([place(self.users_, user, "user")])
        _, found = next(rank_items(self.model_, self.ratings_, row, n))
        there = found.items[0] >= 0
        return self._frame(Lists(found.items[0, there], found.scores[0, there]))

    def recommend_new(self, ratings: Any, n: int = 10) -> pl.DataFrame:
        """The n best items for someone who is not in the data, from ratings ``{item: rating}``; nothing is refitted.

        Unknown items are left out with a warning. Without any, what is liked most overall. For implicit data a list
        of items will do.
        """
        check_is_fitted(self)
        _check_n(n)
        x, unknown = row_of(ratings, self.items_, self.implicit_, self.ratings_.dtype)
        if unknown:
            warnings.warn(
                f"left out, being no items of the ratings: {', '.join(map(repr, unknown[:10]))}", stacklevel=2
            )
        scores = self.model_.predict(x)[0] if x.nnz else self._liked()
        return self._frame(rank_row(np.asarray(scores), x.indices, n))

    def recommend_all(self, n: int = 10, path: str | os.PathLike | None = None) -> Iterator[pl.DataFrame] | None:
        """The n best items of every user, in the order of ``users_``, without ever holding all scores.

        Parameters
        ----------
        n : int, default=10
        path : str or path, optional
            A .csv, .tsv or .parquet file to write, which appears when it is complete.

        Returns
        -------
        iterator of polars.DataFrame, or None if a path is given
            Frames of user, item and score, for some thousand users each.
        """
        check_is_fitted(self)
        _check_n(n)
        frames = self._all_frames(n)
        if path is None:
            return frames
        write_frames(frames, path)
        return None

    def _all_frames(self, n: int) -> Iterator[pl.DataFrame]:
        users, items = _as_series(self.users_), _as_series(self.items_)
        for rows, found in rank_items(self.model_, self.ratings_, np.arange(len(self.users_)), n):
            there = found.items >= 0
            who = np.repeat(rows, there.sum(axis=1))
            scores = self._clipped(found.scores[there])
            yield pl.DataFrame(
                [users[who].alias("user"), items[found.items[there]].alias("item"), pl.Series("score", scores)]
            )

    def similar_items(self, item: Any, n: int = 10) -> pl.DataFrame:
        """The n items most like one: a frame of item and similarity, a cosine that is shrunk where ratings are few."""
        check_is_fitted(self)
        _check_n(n)
        col = place(self.items_, item, "item")
        found = rank_row(compare_items(self.model_, self.ratings_, col), np.array([col]), n)
        return pl.DataFrame([_as_series(self.items_)[found.items].alias("item"), pl.Series("similarity", found.scores)])

    def explain(self, user: Any, item: Any, n: int | None = 5) -> pl.DataFrame:
        """The items the user has rated that carried the prediction for another item.

        Returns
        -------
        polars.DataFrame of item, rating, share
            The n largest shares (all with None), largest first. A share is in the unit of the prediction: over all
            rated items they add up to the prediction (not clipped) less that for someone without ratings.
        """
        check_is_fitted(self)
        row, col = place(self.users_, user, "user"), place(self.items_, item, "item")
        x = self.ratings_[[row]]
        shares = split_prediction(self.model_, x, col)
        order = np.argsort(-shares, kind="stable")[:n]
        seen = _as_series(self.items_)[x.indices[order].astype(np.int64)].alias("item")
        return pl.DataFrame([seen, pl.Series("rating", x.data[order]), pl.Series("share", shares[order])])

    # ---- measuring ---------------------------------------------------------------------------------------------

    def evaluate(
        self,
        ratings: Any = None,
        *,
        test: Any = None,
        split: str = "random",
        test_size: float | int = 0.2,
        folds: int | None = None,
        n: int = 10,
        relevant: float | None = None,
        random_state: Any = None,
    ) -> evaluation.Evaluation:
        """How well this recommender does on ratings it was not fitted to, beside biases and popularity.

        Everything, the choice of the model included, is done again on the training part alone.

        Parameters
        ----------
        ratings : as in :meth:`fit`, optional
            None means those of the fit.
        test : as ratings, optional
            Held-out ratings; without, some are split off.
        split : {"random", "leave-out"}, default="random"
            Any ratings, or some of each user.
        test_size : float or int, default=0.2
            The share of the ratings, or how many (of each user with "leave-out"), to test on.
        folds : int, optional
            Test every rating once, in so many parts, instead of a single split; figures are pooled.
        n : int, default=10
            Length of the lists.
        relevant : float, optional
            The rating from which on a test item is relevant. None means the mean of the training ratings.
        random_state : int, RandomState, Generator or None, default=None
            Seeds the split; None means the recommender's own.

        Returns
        -------
        Evaluation
            Its ``table`` has rmse, mae, precision, recall, ndcg, map and coverage, as its module defines them.
        """
        self._validate_params()
        _check_n(n)
        if ratings is None:
            check_is_fitted(self)
            if test is not None:
                raise InputError("test was given without ratings to train on. Call evaluate(ratings, test=...).")
            cells = Cells(self.users_, self.items_, self.ratings_, self.implicit_, self.columns_)
        if test is not None:
            cells, parts = evaluation.read_given_test(self, ratings, test)
            return evaluation.evaluate_parts(self._again, cells, parts, n, relevant, "given")
        cells = cells if ratings is None else self._cells(ratings)
        seed = seed_of(self.random_state if random_state is None else random_state)
        fold = split_cells(cells.X, split, test_size, folds, seed)
        said = f"{split}, {folds} folds" if folds else f"{split}, {test_size:g}"
        return evaluation.evaluate_parts(self._again, cells, evaluation.split_folds(cells.X, fold), n, relevant, said)

    def _again(self, cells: Cells) -> Recommender:
        return clone(self).set_callbacks(*callbacks_of(self))._learn(cells)

    # ---- helpers -----------------------------------------------------------------------------------------------

    def _frame(self, found: Lists) -> pl.DataFrame:
        items = _as_series(self.items_)[found.items].alias("item")
        return pl.DataFrame([items, pl.Series("score", self._clipped(found.scores))])


def _as_series(ids: np.ndarray) -> pl.Series:
    return pl.Series(ids.tolist(), dtype=pl.String) if ids.dtype == object else pl.Series(ids)


def _check_n(n: Any) -> None:
    if not isinstance(n, Integral) or n < 1:
        raise InputError(f"n={n!r} must be a whole number of at least 1.")
