"""What alignment is made of: vectors prepared, the turn that fits pairs best, and the pairs that fit a turn best.

prepared     x / |x|, less the mean of these, at length 1 again
procrustes   argmin ‖X W − Y‖² over W with WᵗW = I  =  U Vᵗ, where XᵗY = U diag(s) Vᵗ
density      r(x): the mean cosine of x with its nearest words on the other side
mutual       pairs that choose each other by CSLS(x, y) = 2 cos(x, y) − r(x) − r(y)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.words.word_vectors._nearest import norms_of, top, unit
from twofold.words.word_vectors.word_vectors import WordVectors


class Side(NamedTuple):
    """The vectors of one side, prepared."""

    rows: np.ndarray  # (V,k) of length 1, or zero
    norms: np.ndarray  # (V,)
    mean: np.ndarray  # (k,) what was taken off


def prepared(W: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Rows at length 1, less the mean, at length 1 again; a zero vector stays one."""
    rows = unit(W)
    if mean.any():
        zero = norms_of(rows) == 0
        rows = unit(rows - mean.astype(W.dtype))
        rows[zero] = 0
    return rows


def side(v: WordVectors, center: bool, vocabulary: int) -> Side:
    W = v.vectors_
    mean = unit(W[:vocabulary]).mean(axis=0, dtype=np.float64) if center else np.zeros(W.shape[1])
    rows = prepared(W, mean)
    return Side(rows, norms_of(rows), mean)


def procrustes(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The orthogonal matrix (k,k) that brings the rows X (p,k) nearest to the rows Y (p,k).

    >>> turn = procrustes(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 1.0], [-2.0, 0.0]]))
    >>> turn.round(6) + 0.0
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    U, _, Vt = np.linalg.svd(X.astype(np.float64).T @ Y.astype(np.float64))
    return U @ Vt


def density(Q: np.ndarray, other: np.ndarray, norms: np.ndarray, neighbors: int) -> np.ndarray:
    """r: the mean cosine of each row Q (m,k) with its nearest rows among the others, or with all if there are fewer."""
    scores = top(Q, other, norms, neighbors).scores.astype(np.float64)
    there = np.isfinite(scores)
    return np.where(there, scores, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)


def mutual(X: np.ndarray, Y: np.ndarray, neighbors: int) -> np.ndarray:
    """Pairs (p,2) of rows of X (n,k), already turned, and Y (m,k) that choose each other by CSLS."""
    nx, ny = norms_of(X), norms_of(Y)
    rx, ry = density(X, Y, ny, neighbors), density(Y, X, nx, neighbors)
    there = top(X, Y, ny, 1, handicap=(ry / 2).astype(Y.dtype)).words[:, 0]  # r(x) is the same for all y
    back = top(Y, X, nx, 1, handicap=(rx / 2).astype(X.dtype)).words[:, 0]
    x = np.flatnonzero((there >= 0) & (nx > 0))
    x = x[back[there[x]] == x]
    return np.column_stack([x, there[x]])
