"""Scores of items without ratings, and of users without ratings: a model's own scores, regressed on features.

    S (m,d) scores of d known lines    F (d,q) their features, less their means
    ŝ = s̄ + (S − s̄) F (FᵀF + λI)⁻¹ f                          f (q,) the features of a new line

For an item, S are what a model says about the known items, one row a user: the regression is linear in S, so for a
model of factors it is the item's factors that are regressed on features, and for EASE its column of weights. For a user
the sides are exchanged. With the ratings themselves in place of a model's scores it is the pure content model.
λ has the least error when each known line is left out once, which the eigenvectors of FᵀF give for all λ at once:

    left out error = (s − ŝ) / (1 − f_jᵀ (FᵀF + λI)⁻¹ f_j − 1/d)
References: Gantner et al. 2010 (factors from attributes); Golub, Heath & Wahba 1979 (leaving one out).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.completion.ids import places
from twofold.completion.recommender._features import Column, Features, as_ids

LAMBDAS = 10.0 ** np.arange(-1.0, 4.5, 0.5)
SAMPLE = 500  # rows of scores that choose λ
CHUNK = 2**22  # scores at a time


class Content(NamedTuple):
    """Directions of the features, how much each counts, and the known lines in them."""

    mean: np.ndarray  # (q,)
    axes: np.ndarray  # (q,r) eigenvectors of FᵀF
    held: np.ndarray  # (r,) its eigenvalues plus λ
    known: np.ndarray  # (d,r) the known lines along the axes
    explained: float  # share of the squared scores of a line left out that is explained


def learn_content(F: sparse.csr_array, S: np.ndarray) -> Content:
    """From the features of the known lines (d,q) and some rows of scores (m,d)."""
    d = F.shape[0]
    mean = np.asarray(F.mean(axis=0)).ravel()
    G = (F.T @ F).toarray() - d * np.outer(mean, mean)
    values, axes = np.linalg.eigh(G)
    keep = values > 1e-9 * max(values[-1], 1e-300)
    values, axes = values[keep], axes[:, keep]
    known = F @ axes - mean @ axes
    R = np.asarray(S[:: max(1, len(S) // SAMPLE)], dtype=np.float64)
    R = R - R.mean(axis=1, keepdims=True)
    along, squares = R @ known, known**2
    errors = []
    for lam in LAMBDAS:
        free = 1 - squares @ (1 / (values + lam)) - 1 / d
        errors.append(float((((R - (along / (values + lam)) @ known.T) / np.maximum(free, 1e-6)) ** 2).mean()))
    best = int(np.argmin(errors))
    plain = max(float((R**2).mean()), 1e-300)
    return Content(mean, axes, values + LAMBDAS[best], known, max(0.0, 1 - errors[best] / plain))


def make_profiles(content: Content, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m,q) what each feature adds to a score, and (m,) the mean score, for rows of scores (m,d) of the known lines."""
    middle = S.mean(axis=1)
    return (((S - middle[:, None]) @ content.known) / content.held) @ content.axes.T, middle


def score_new(content: Content, profiles: np.ndarray, middle: np.ndarray, F: sparse.csr_array) -> np.ndarray:
    """(m,new) scores of lines with features F (new,q)."""
    return middle[:, None] + (F @ profiles.T).T - (profiles @ content.mean)[:, None]


# ---- beside a model -----------------------------------------------------------------------------------------------


def learn_items(features: Features, model: Any, seen: sparse.csr_array, ids: np.ndarray) -> dict:
    """Fit the regression on the items' features; keep it, and the features of items that `seen` does not have."""
    at = places(ids, features.ids)
    there = at >= 0
    rows = np.arange(0, seen.shape[0], max(1, seen.shape[0] // SAMPLE))
    content = learn_content(features.F[there], _score(model, seen, rows)[:, at[there]])
    new = {"ids": as_ids(features.ids[~there], ids), "new": features.F[~there]}
    return {**new, "at": at[there], **_describe(features, content)}


def learn_users(features: Features, model: Any, seen: sparse.csr_array, ids: np.ndarray) -> dict:
    """Fit the regression on the users' features; keep what each adds to every item's score, and the mean scores."""
    at = places(ids, features.ids)
    there = np.flatnonzero(at >= 0)
    some = np.arange(0, seen.shape[1], max(1, seen.shape[1] // SAMPLE))
    step = max(1, CHUNK // seen.shape[1])
    blocks = [there[a : a + step] for a in range(0, len(there), step)]
    content = learn_content(features.F[there], np.concatenate([_score(model, seen, at[b])[:, some] for b in blocks]).T)
    total, along = np.zeros(seen.shape[1]), np.zeros((content.known.shape[1], seen.shape[1]))
    for b, place in zip(blocks, np.split(np.arange(len(there)), np.cumsum([len(b) for b in blocks])[:-1]), strict=True):
        S = _score(model, seen, at[b])
        total += S.sum(axis=0)
        along += content.known[place].T @ S  # the known lines are centered, so the mean scores add nothing
    added = content.axes @ (along / content.held[:, None])
    new = {"ids": as_ids(features.ids[at < 0], ids), "new": features.F[at < 0]}
    return {**new, "added": added, "middle": total / len(there), **_describe(features, content)}


def _describe(features: Features, content: Content) -> dict:
    columns = [[c.name, c.kind, c.words, c.numbers] for c in features.columns]
    kept = {"mean": content.mean, "axes": content.axes, "held": content.held, "known": content.known}
    return {**kept, "explained": content.explained, "names": features.names, "columns": columns}


def get_content(kept: dict) -> Content:
    """The regression, from what was kept of it."""
    return Content(kept["mean"], kept["axes"], kept["held"], kept["known"], kept["explained"])


def get_columns(kept: dict) -> list[Column]:
    """The encoding of features, from what was kept of it."""
    return [Column(*column) for column in kept["columns"]]


def score_user(kept: dict, f: sparse.csr_array) -> np.ndarray:
    """(d,) the scores of all known items for a user with features f (1,q)."""
    return kept["middle"] + (f @ kept["added"])[0] - kept["mean"] @ kept["added"]


def score_items(kept: dict, S: np.ndarray) -> np.ndarray:
    """(m,new) scores of the new items for rows of scores (m,d) of all known ones."""
    content = get_content(kept)
    return score_new(content, *make_profiles(content, S[:, kept["at"]].astype(np.float64)), kept["new"])


def split_features(kept: dict, scores: np.ndarray, new: int) -> np.ndarray:
    """(q,) what each feature adds to a new item's score, for the scores (d,) of the known ones."""
    profile, _ = make_profiles(get_content(kept), scores[None, kept["at"]].astype(np.float64))
    return profile[0] * (kept["new"][[new]].toarray()[0] - kept["mean"])


def _score(model: Any, seen: sparse.csr_array, rows: np.ndarray) -> np.ndarray:
    return model.make_scorer(seen).score_fully(rows).astype(np.float64)
