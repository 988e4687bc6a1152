"""Scores of items nobody rated, and of users who rated nothing: a model's own scores, regressed on features.

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

from typing import NamedTuple

import numpy as np
from scipy import sparse

LAMBDAS = 10.0 ** np.arange(-1.0, 4.5, 0.5)
SAMPLE = 500  # rows of scores that choose λ


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
