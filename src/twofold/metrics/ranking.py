"""The quality of lists of recommendations.

    hit_ir   1 if the item at rank r of user i's list is relevant to i, else 0       R_i   how many are relevant to i

    precision  Σ_{r≤k} hit_ir / k                         share of the list that is relevant
    recall     Σ_{r≤k} hit_ir / R_i                       share of the relevant items that are in the list
    NDCG       Σ_{r≤k} hit_ir / log2(r+1)  over its largest possible value
    MAP        Σ_{r≤k} hit_ir (Σ_{s≤r} hit_is / r) / min(R_i, k)
    MRR        1 / rank of the first hit, 0 if there is none among the first k
    novelty    mean of −log2 (share of the users that have item j) over the items j of all lists: bits of surprise

Precision to MRR are judged on whole rankings of all items. Ranking the relevant items among a sample of the others
gives figures that cannot be compared with these and may even order two models wrongly (Krichene & Rendle 2020).
Each is the mean over the users with relevant items: no list could be right for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError, check_places, check_sparse


def precision_at_k(recommended: Any, relevant: Any, k: int = 10, *, average: bool = True) -> Any:
    """The share of the k places of each list that hold a relevant item; a list shorter than k has empty places.

    Parameters
    ----------
    recommended : sequence of sequences, or int array of shape (users, length)
        For each user the items recommended, best first, none twice. In an array, items are columns of `relevant`
        and -1 is an empty place.
    relevant : sequence of collections, or sparse array of shape (users, items)
        For each user the items that are relevant; in a sparse array, those stored.
    k : int, default=10
        Places that count.
    average : bool, default=True
        The mean over the users with at least one relevant item; else one value a user, NaN for the others.

    Examples
    --------
    One of the four places is right:

    >>> precision_at_k([["a", "b", "c", "d"]], [{"a", "x"}], k=4)
    0.25
    """
    hits, _, counts = _hits(recommended, relevant, k)
    return _over_users(hits.sum(axis=1) / k, counts, average)


def recall_at_k(recommended: Any, relevant: Any, k: int = 10, *, average: bool = True) -> Any:
    """The share of each user's relevant items that are among the first k of the list.

    Parameters are those of :func:`precision_at_k`.

    Examples
    --------
    One of the two that are relevant was found:

    >>> recall_at_k([["a", "b", "c", "d"]], [{"a", "x"}], k=4)
    0.5
    """
    hits, _, counts = _hits(recommended, relevant, k)
    return _over_users(hits.sum(axis=1) / np.maximum(counts, 1), counts, average)


def ndcg_at_k(recommended: Any, relevant: Any, k: int = 10, *, average: bool = True) -> Any:
    """Discounted gain of the hits, 1/log2(rank+1) each, over that of a list that begins with min(R, k) hits.

    Parameters are those of :func:`precision_at_k`. Relevance is yes or no.

    References
    ----------
    Järvelin & Kekäläinen (2002), *ACM Transactions on Information Systems* 20, 422-446.

    Examples
    --------
    The only relevant item is third, where it counts 1/log2(4) of a hit at the first place:

    >>> ndcg_at_k([["a", "b", "c"]], [{"c"}], k=3)
    0.5
    """
    hits, places, counts = _hits(recommended, relevant, k)
    gains = 1 / np.log2(np.arange(2, places + 2))
    best = np.concatenate([[1.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))[: counts.max(initial=1)]])
    return _over_users(hits @ gains / best[np.minimum(counts, k)], counts, average)


def map_at_k(recommended: Any, relevant: Any, k: int = 10, *, average: bool = True) -> Any:
    """Mean average precision: the precision at the rank of every hit among the first k, summed, over min(R, k).

    Parameters are those of :func:`precision_at_k`. With ``average=False``, each user's average precision.

    Examples
    --------
    Hits at ranks 1 and 3, so precisions 1/1 and 2/3, of three relevant items:

    >>> round(map_at_k([["a", "b", "c"]], [{"a", "c", "x"}], k=3), 4)
    0.5556
    """
    hits, places, counts = _hits(recommended, relevant, k)
    precision = np.cumsum(hits, axis=1) / np.arange(1, places + 1)
    return _over_users((hits * precision).sum(axis=1) / np.clip(counts, 1, k), counts, average)


def mrr_at_k(recommended: Any, relevant: Any, k: int = 10, *, average: bool = True) -> Any:
    """Mean reciprocal rank: one over the rank of the first relevant item, 0 if none is among the first k.

    Parameters are those of :func:`precision_at_k`. With ``average=False``, each user's reciprocal rank.

    Examples
    --------
    The first relevant item is third:

    >>> round(mrr_at_k([["a", "b", "c"]], [{"c", "x"}], k=3), 4)
    0.3333
    """
    hits, _, counts = _hits(recommended, relevant, k)
    first = np.where(hits.any(axis=1), 1 / (1 + np.argmax(hits, axis=1)), 0.0)
    return _over_users(first, counts, average)


def novelty(recommended: Any, counts: Any, n_users: int, k: int = 10) -> float:
    """The mean surprise −log2(p) in bits of all items recommended, p being the share of the users that have the item.

    Parameters
    ----------
    recommended : sequence of sequences, or int array of shape (users, length)
        As in :func:`precision_at_k`.
    counts : array or mapping
        For each item, how many users have it; an item without users is as surprising as one with one user.
    n_users : int
        How many users there are.
    k : int, default=10

    References
    ----------
    Zhou et al. (2010), *Proceedings of the National Academy of Sciences* 107, 4511-4515.

    Examples
    --------
    An item of half of the users is one bit of surprise, one of an eighth is three:

    >>> novelty([["a", "b"]], {"a": 4, "b": 1}, n_users=8)
    2.0
    """
    _check_k(k)
    if isinstance(recommended, np.ndarray) and recommended.dtype.kind in "iuf":
        shown, known = recommended[:, :k], np.asarray(counts)
        have = known[check_places(shown[shown >= 0], len(known), "recommended", "counts has items")]
    else:
        have = np.array([counts[item] for row in recommended for item in row[:k]])
    if not len(have):
        raise InputError("no list has an item, so there is no novelty. Give at least one recommendation.")
    return float(-np.mean(np.log2(np.maximum(have, 1) / n_users)))


def coverage(recommended: Any, n_items: int, k: int = 10) -> float:
    """The share of all items that are among the first k of at least one list.

    Parameters
    ----------
    recommended : sequence of sequences, or int array of shape (users, length)
        As in :func:`precision_at_k`.
    n_items : int
        How many items there are.
    k : int, default=10

    Examples
    --------
    Three of six items are ever shown:

    >>> coverage([["a", "b"], ["b", "c"]], n_items=6)
    0.5
    """
    _check_k(k)
    if isinstance(recommended, np.ndarray):
        first = recommended[:, :k]
        shown = len(np.unique(first[first >= 0])) if first.dtype.kind in "iu" else len(np.unique(first))
    else:
        shown = len({item for row in recommended for item in row[:k]})
    if shown > n_items:
        raise InputError(f"{shown} different items are recommended, and n_items={n_items}. Count all items there are.")
    return shown / n_items


def _hits(recommended: Any, relevant: Any, k: int) -> tuple[np.ndarray, int, np.ndarray]:
    """(users, places) 1 where a relevant item is, how many places there are, and how many items are relevant."""
    _check_k(k)
    n = len(recommended)
    others = relevant.shape[0] if sparse.issparse(relevant) else len(relevant)
    if n != others:
        raise InputError(f"recommended has {n} users, relevant {others}; one entry a user is needed in both.")
    if sparse.issparse(relevant):
        check_sparse(relevant, "relevant")
        hits, counts = _hits_of_array(np.asarray(recommended), sparse.csr_array(relevant), k)
    else:
        hits, counts = _hits_of_lists(recommended, relevant, k)
    if not counts.any():
        raise InputError("nothing is relevant to any user. Give at least one relevant item, or lower the threshold.")
    return hits, hits.shape[1], counts


def _hits_of_lists(recommended: Sequence[Sequence], relevant: Sequence[Any], k: int) -> tuple[np.ndarray, np.ndarray]:
    hits = np.zeros((len(recommended), k))
    for i, (row, right) in enumerate(zip(recommended, relevant, strict=True)):
        first, right = list(row[:k]), set(right)
        if len(set(first)) < len(first):
            twice = next(item for item in first if first.count(item) > 1)
            raise InputError(f"recommended[{i}] has {twice!r} more than once. Leave out repeated items.")
        hits[i, : len(first)] = [item in right for item in first]
    return hits, np.array([len(set(right)) for right in relevant])


def _hits_of_array(recommended: np.ndarray, relevant: sparse.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    if recommended.ndim != 2 or recommended.dtype.kind not in "iu":
        raise InputError(
            f"recommended is an array of {recommended.dtype} with shape {recommended.shape}; with sparse relevance, "
            "columns as whole numbers, one row a user, are needed."
        )
    first, d = recommended[:, :k], relevant.shape[1]
    ordered = np.sort(first, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if twice.any():
        raise InputError(f"recommended[{int(np.argmax(twice))}] has an item more than once. Leave out the second.")
    if first.size and first.max() >= d:
        raise InputError(f"recommended names item {first.max()}; relevant has columns 0 to {d - 1}.")
    counts = np.diff(relevant.indptr)
    right = np.repeat(np.arange(len(first)), counts) * np.int64(d) + relevant.indices  # each pair as one number
    here = np.arange(len(first))[:, None] * np.int64(d) + first
    return (np.isin(here, right) & (first >= 0)).astype(float), counts


def _over_users(values: np.ndarray, counts: np.ndarray, average: bool) -> Any:
    values = np.where(counts > 0, values, np.nan)
    return float(np.nanmean(values)) if average else values


def _check_k(k: int) -> None:
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise InputError(f"k={k!r} must be a whole number of at least 1.")
