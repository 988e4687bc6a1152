"""Ids around a completion model: ratings in, predicted ratings out.

    (user, item, rating) rows  →  X (n,d) with holes  →  a model of the holes  →  a rating for any pair of ids

Pairs whose user or item the ratings do not have are predicted from biases, so that there is always an answer.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from twofold.completion._base import Completion
from twofold.completion.biases import Biases
from twofold.completion.recommender._default_model import fit_chosen, fit_given
from twofold.completion.recommender._ids import places
from twofold.completion.recommender._ratings_table import Cells, cells_of
from twofold.core.checks import InputError
from twofold.core.estimator import Model
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import seed_of
from twofold.core.sklearn_shim import callbacks_of


class RatingModel(Model):
    """Base class of the recommender: fits a completion model to rated pairs, and predicts others."""

    users_: np.ndarray
    items_: np.ndarray
    ratings_: sparse.csr_array
    model_: Any
    implicit_: bool
    _parameter_constraints: ClassVar[dict] = {
        "model": [None, Completion],
        "user": [None, str],
        "item": [None, str],
        "rating": [None, str],
        "duplicates": [StrOptions({"mean", "last"})],
        "clip": ["boolean"],
        "holdout": [Interval(Real, 0, 0.9, closed="both")],
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
        random_state: Any = None,
    ):
        self.model = model
        self.user = user
        self.item = item
        self.rating = rating
        self.duplicates = duplicates
        self.clip = clip
        self.holdout = holdout
        self.random_state = random_state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    # ---- learning ----------------------------------------------------------------------------------------------

    def fit(self, ratings: Any, y: Any = None) -> Any:
        """Learn from ratings.

        Parameters
        ----------
        ratings : frame, path, or arrays
            A pandas or polars frame; the path of a CSV, TSV or Parquet file; a tuple (users, items) or (users, items,
            ratings); or a list or array of such rows. Ids may be of any type; ratings may be text: "4.5" or "4,5".
        y : ignored
        """
        self._validate_params()
        return self._learn(self._cells(ratings))

    def _cells(self, ratings: Any) -> Cells:
        return cells_of(ratings, self.user, self.item, self.rating, self.duplicates, self._implicit())

    def _implicit(self) -> bool | None:
        """Whether a model that was given wants counts; None if the data has to say."""
        return True if type(self.model).__name__ == "ImplicitALS" else None

    def _learn(self, cells: Cells) -> Any:
        callbacks, seed = callbacks_of(self), seed_of(self.random_state)
        X = cells.X
        if self.model is None:
            model, self.choice_ = fit_chosen(X, cells.implicit, self.holdout, seed, callbacks)
        else:
            model, self.choice_ = fit_given(self.model, X, callbacks)
        return self._keep(cells, model.set_callbacks())

    def _keep(self, cells: Cells, model: Any) -> Any:
        """Everything that follows from the ratings and a fitted model of them."""
        self.model_, X = model, cells.X
        self.users_, self.items_, self.ratings_ = cells.users, cells.items, X
        self.implicit_, self.columns_ = cells.implicit, cells.columns
        self.range_ = (float(X.data.min()), float(X.data.max()))
        self.baseline_ = None
        if not cells.implicit:
            self.baseline_ = Biases().fit(X)
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """The predicted rating of each pair (users[t], items[t]); one user or item may stand for all.

        Users and items that the ratings do not have are predicted from what is known: the item's bias, the user's, or
        the mean. Never NaN.
        """
        check_is_fitted(self)
        i, j = self._pairs(users, items)
        out = self._biased(i, j)
        both = (i >= 0) & (j >= 0)
        if both.any():
            out[both] = self.model_.predict(i[both], j[both])
        return self._clipped(out)

    def _baseline(self, users: Any, items: Any) -> np.ndarray:
        """What biases alone predict."""
        return self._clipped(self._biased(*self._pairs(users, items)))

    def _liked(self) -> np.ndarray:
        """(items,) how much each item is liked overall: its mean and bias, or the share of users who have it."""
        if self.baseline_ is None:
            return np.bincount(self.ratings_.indices, minlength=len(self.items_)) / len(self.users_)
        return self.baseline_.column_bias_.astype(np.float64) + self.baseline_.mean_

    def _biased(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        middle = 0.0 if self.baseline_ is None else float(self.baseline_.mean_)
        out = np.where(j >= 0, self._liked()[j], middle)
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

    def _clipped(self, scores: np.ndarray) -> np.ndarray:
        return np.clip(scores, *self.range_) if self.clip and not self.implicit_ else scores
