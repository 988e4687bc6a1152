"""More ratings in a fitted recommender: only the users and items they concern are solved for again."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from twofold.completion.ids import number_ids
from twofold.completion.ratings_table import RatingsTable, merge_pairs, triples
from twofold.completion.recommender.evaluation import join_ids, list_coordinates
from twofold.core.checks import InputError


def join_ratings(rec: Any, ratings: Any) -> tuple[RatingsTable, Any]:
    """The table of a recommender with more ratings in it, and its model grown to that table."""
    if not hasattr(rec.model_, "add_rows"):
        raise InputError(
            f"{type(rec.model_).__name__} cannot take in more ratings. Fit again, or use a model that can: ALS."
        )
    t = triples(ratings, rec.user, rec.item, rec.rating)
    if t.rating is None:
        raise InputError("the new ratings have no column of ratings. Give user, item and rating.")
    old_users, old_items = (pl.Series(ids.tolist()) for ids in (rec.users_, rec.items_))
    (users, i), (items, j) = number_ids(join_ids(old_users, t.user)), number_ids(join_ids(old_items, t.item))
    n, d = len(old_users), len(old_items)
    rows, cols = i[:n], j[:d]  # where the old ones are now
    old_i, old_j = list_coordinates(rec.ratings_)
    both = np.append(rows[old_i], i[n:]), np.append(cols[old_j], j[d:])
    values = np.append(rec.ratings_.data, t.rating).astype(np.float64)
    X = merge_pairs(*both, values, (len(users), len(items)), rec.duplicates).astype(rec.ratings_.dtype)
    names = None if rec.names_ is None else np.full(len(items), "", dtype=object)
    if names is not None:
        names[cols] = rec.names_
    return RatingsTable(users, items, X, False, rec.columns_, names), grow_model(
        rec.model_, X, rows, cols, np.unique(i[n:])
    )


def grow_model(model: Any, X: sparse.csr_array, rows: np.ndarray, cols: np.ndarray, touched: np.ndarray) -> Any:
    """The model of the table X, whose rows and columns `rows` and `cols` are those it was fitted to.

    Only rows and columns that the new cells touch are solved for; everything else stays as it was. New users are folded
    in from the known items, new items from all users that rated them, then every user with new cells once more.
    """
    model = copy.deepcopy(model)
    new_rows, new_cols = (np.setdiff1d(np.arange(size), old) for size, old in zip(X.shape, (rows, cols), strict=True))
    if len(new_rows):
        model.add_rows(X[new_rows][:, cols])
    order_rows, order_cols = np.append(rows, new_rows), np.append(cols, new_cols)
    if len(new_cols):
        model.add_columns(X[order_rows][:, new_cols])
    back_rows, back_cols = np.argsort(order_rows), np.argsort(order_cols)
    model.row_factors_, model.row_bias_ = model.row_factors_[back_rows], model.row_bias_[back_rows]
    model.components_ = np.ascontiguousarray(model.components_[:, back_cols])
    model.column_bias_ = model.column_bias_[back_cols]
    lines = model.normalization_
    if lines is not None:
        lines = model.normalization_ = lines.take(back_rows if lines.by_row else back_cols)
    (codes, own), k = model._fold(X[touched]), len(model.components_)
    if own is not None:
        lines.center[touched], lines.scale[touched] = own.center, own.scale
    model.row_factors_[touched], model.row_bias_[touched] = codes[:, :k], model._bias_of(codes)
    return model
