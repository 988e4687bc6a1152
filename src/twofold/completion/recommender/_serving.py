"""A recommender made small for serving: what lists need, in half precision, and what that costs in NDCG.

    weights of EASE      the strongest of each item; the fitted rows, which ratings_ has, too, are left out
    ratings              by biases alone: the model of ratings is left out
    everything           as 16-bit numbers in the file, and as 32-bit numbers when it is loaded

The loss is measured on a tenth of the cells, held out: the model of the lists is fitted to the others, once more, and
its lists are compared with those of its own small copy.
"""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from twofold.completion.ease import EASE
from twofold.completion.recommender.splits import split_cells
from twofold.completion.scorer import rank_items
from twofold.core.data.known_cells import keep_stored
from twofold.core.files import model_file
from twofold.core.loop import quietly
from twofold.metrics import ndcg_at_k

N = 10  # places that count
MAX_USERS = 1_000  # whose lists are compared
HELD_OUT = 0.1  # of the cells


def make_serving(rec: Any, n_neighbors: int) -> Any:
    """The small copy of a recommender, as it is after it was saved and loaded."""
    small = copy.copy(rec)
    ranking = keep_strongest(rec.ranking_, n_neighbors) if isinstance(rec.ranking_, EASE) else rec.ranking_
    small.choice_ = copy.deepcopy(rec.choice_)
    if rec.implicit_ or rec.ranker_ is None:
        small.model_ = ranking
    else:
        small.model_, small.ranker_ = rec.baseline_, ranking
    small.half_ = True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.twofold"
        model_file.save(small, path, half=True)
        small = model_file.load(path)
    small.choice_["serving"] = compare_lists(rec, n_neighbors)
    return small


def compare_lists(rec: Any, n_neighbors: int) -> dict[str, Any]:
    """NDCG of the lists of a model and of its small copy, on cells held out."""
    fold = split_cells(rec.ratings_, "random", HELD_OUT, None, 0)
    train, held = keep_stored(rec.ratings_, fold < 0), keep_stored(rec.ratings_, fold == 0)
    users = np.flatnonzero(np.diff(held.indptr))[:MAX_USERS]
    if not len(users) or not isinstance(rec.ranking_, EASE):
        return {"measure": f"ndcg@{N}", "note": "only rounded to 16 bits"}
    shown = rec._rank_values(train)
    with quietly():
        model = clone(rec.ranking_).set_params(reg=float(rec.ranking_.reg_)).fit(shown)
    found = []
    for one in (model, keep_strongest(model, n_neighbors)):
        ranked = rank_items(one.make_scorer(shown), train, users, N)
        lists = np.concatenate([part.items for _, part in ranked])
        found.append(float(ndcg_at_k(lists, held[users], N)))
    return {"measure": f"ndcg@{N}", "score": found[1], "full": found[0], "users": len(users)}


def keep_strongest(model: EASE, n_neighbors: int) -> EASE:
    """A copy of EASE with the strongest weights of each item alone, and without the rows it was fitted to."""
    small = copy.copy(model)
    dense = model.weights_
    small.weights_ = dense if sparse.issparse(dense) else prune(np.asarray(dense), n_neighbors)
    small.products_ = prune(model.products_, n_neighbors)
    n, d = model.seen_.shape
    small.seen_ = sparse.csr_array((n, d), dtype=model.seen_.dtype)
    return small


def prune(W: Any, count: int) -> sparse.csr_array:
    """The entries of largest absolute value of each column, some columns at a time."""
    m, d = W.shape
    parts, step = [], max(1, 2**22 // max(m, 1))
    by_column = W.tocsc() if sparse.issparse(W) else None
    for start in range(0, d, step):
        block = (
            by_column[:, start : start + step].toarray() if by_column is not None else W[:, start : start + step].copy()
        )
        if m > count:
            cut = np.partition(np.abs(block), m - count, axis=0)[m - count]
            block[np.abs(block) < cut] = 0
        parts.append(sparse.csr_array(block))
    return sparse.csr_array(sparse.hstack(parts, format="csr")) if parts else sparse.csr_array((m, d), dtype=W.dtype)
