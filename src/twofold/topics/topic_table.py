"""Leading words of topics as a table, and topics as points on a map."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from scipy.special import xlogy
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.linalg import fix_signs


def topic_table(topics: Any, words: Any, top: int = 10, *, share: Any = None) -> pl.DataFrame:
    """The leading words of every topic.

    Parameters
    ----------
    topics : fitted model or array of shape (k, d)
        A row of weights a topic: ``components_`` of PLSA, LatentDirichletAllocation, NMF, LSA.
    words : array of d words, or a fitted BagOfWords
    top : int, default=10
        How many words of each topic.
    share : array of shape (k,), optional
        The share of each topic in the corpus; by default the model's ``topic_share_``, if it has one.

    Returns
    -------
    polars.DataFrame
        ``topic``, ``share`` (if known), ``rank`` (from 1), ``word``, ``weight``; topics in their order, words by the
        size of their weights, equal ones by the order of the columns.

    Examples
    --------
    >>> print(topic_table([[0.7, 0.3, 0.0], [0.1, 0.2, 0.7]], ["sun", "sea", "snow"], top=2))
    shape: (4, 4)
    ┌───────┬──────┬──────┬────────┐
    │ topic ┆ rank ┆ word ┆ weight │
    │ ---   ┆ ---  ┆ ---  ┆ ---    │
    │ i64   ┆ i64  ┆ str  ┆ f64    │
    ╞═══════╪══════╪══════╪════════╡
    │ 0     ┆ 1    ┆ sun  ┆ 0.7    │
    │ 0     ┆ 2    ┆ sea  ┆ 0.3    │
    │ 1     ┆ 1    ┆ snow ┆ 0.7    │
    │ 1     ┆ 2    ┆ sea  ┆ 0.2    │
    └───────┴──────┴──────┴────────┘
    """
    Z, names = _weights_of(topics), _names(words)
    k, d = Z.shape
    if len(names) != d:
        raise InputError(f"there are {len(names)} words for topics over {d}; give the words that X was counted with.")
    if not isinstance(top, (int, np.integer)) or top < 1:
        raise InputError(f"top={top!r} must be a whole number of at least 1.")
    top = min(int(top), d)
    order = np.argsort(-np.abs(Z), axis=1, kind="stable")[:, :top]  # (k,top)
    share = getattr(topics, "topic_share_", None) if share is None else share
    columns: dict[str, Any] = {"topic": np.repeat(np.arange(k), top)}
    if share is not None:
        columns["share"] = np.repeat(_shares(share, k), top)
    columns["rank"] = np.tile(np.arange(1, top + 1), k)
    columns["word"] = [str(word) for word in names[order].ravel()]
    columns["weight"] = np.take_along_axis(Z, order, axis=1).ravel()
    return pl.DataFrame(columns)


def topic_map(topics: Any, *, share: Any = None) -> np.ndarray:
    """Points (k,2) for the topics; topics with common words are close.

    Classical scaling of the Jensen–Shannon distances between the topics as distributions over words, so that distances
    on the map approximate them as well as two dimensions allow. `topics` is a fitted model or an array (k, d) of
    weights >= 0, scaled here to sum to 1; `share` (k,) is the weight of each topic in the fit of the map, equal by
    default.

    Examples
    --------
    >>> near = topic_map([[0.5, 0.5, 0.0], [0.4, 0.6, 0.0], [0.0, 0.0, 1.0]])
    >>> bool(np.hypot(*(near[0] - near[1])) < 0.2 * np.hypot(*(near[0] - near[2])))
    True
    """
    P = _distributions(_weights_of(topics))
    k = len(P)
    w = np.full(k, 1 / k) if share is None else np.maximum(_shares(share, k), 1e-6)  # a share of 0 has a point, too
    w = w / w.sum()
    D = _divergences(P)  # its root is a distance, so these are the squares
    C = D - w @ D  # J = I − 1wᵀ removes the weighted center:  B = −½ J D Jᵀ
    B = -0.5 * (C - (C @ w)[:, None])
    root = np.sqrt(w)
    values, vectors = np.linalg.eigh(root[:, None] * (B + B.T) / 2 * root)
    lead = np.argsort(-values, kind="stable")[:2]
    axes = vectors[:, lead].T
    axes = axes * fix_signs(axes)[:, None]
    places = np.zeros((k, 2))
    places[:, : len(lead)] = axes.T / root[:, None] * np.sqrt(np.maximum(values[lead], 0.0))
    return places


def _divergences(P: np.ndarray) -> np.ndarray:
    """Jensen–Shannon divergences in bits (k,k): H(½(p+q)) − ½H(p) − ½H(q)."""
    k = len(P)
    entropy = -xlogy(P, P).sum(axis=1)
    D = np.zeros((k, k))
    for c in range(k - 1):
        M = (P[c] + P[c + 1 :]) / 2  # (k−c−1,d)
        D[c, c + 1 :] = -xlogy(M, M).sum(axis=1) - (entropy[c] + entropy[c + 1 :]) / 2
    return np.maximum(D + D.T, 0.0) / np.log(2)


def _weights_of(topics: Any) -> np.ndarray:
    if hasattr(topics, "fit"):
        check_is_fitted(topics)
        topics = topics.components_
    Z = np.asarray(topics, dtype=np.float64)
    if Z.ndim != 2 or 0 in Z.shape:
        raise InputError(f"topics has shape {Z.shape}; a row of weights a topic is needed, (k, d).")
    if not np.isfinite(Z).all():
        c, j = np.argwhere(~np.isfinite(Z))[0]
        raise InputError(f"topics[{c}, {j}] is {Z[c, j]}; weights must be finite.")
    return Z


def _distributions(Z: np.ndarray) -> np.ndarray:
    """Rows that sum to 1; a topic without any weight is spread over all words."""
    if (Z < 0).any():
        c, j = np.argwhere(Z < 0)[0]
        raise InputError(
            f"topics[{c}, {j}] is {Z[c, j]:g}; distances between topics need weights >= 0. Use PLSA, "
            "LatentDirichletAllocation or NMF."
        )
    total = Z.sum(axis=1, keepdims=True)
    return np.where(total > 0, Z / np.where(total > 0, total, 1.0), 1 / Z.shape[1])


def _names(words: Any) -> np.ndarray:
    found = words.get_feature_names_out() if hasattr(words, "get_feature_names_out") else list(words)
    return np.asarray(found, dtype=object)


def _shares(share: Any, k: int) -> np.ndarray:
    found = np.asarray(share, dtype=np.float64)
    if found.shape != (k,) or not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise InputError(f"share has shape {found.shape}; {k} numbers >= 0 are needed, one a topic, not all zero.")
    return found
