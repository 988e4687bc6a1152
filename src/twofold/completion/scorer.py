"""Scores of whole rows, by which the columns of each are ranked. Every completion model makes one.

s_ij     how high column j belongs in the list of row i; a part that is the same in the whole row is added last
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

_own = threading.local()  # each thread's scores: fresh memory for every block would cost as much as the product


class Scorer(ABC):
    """Scores of the rows of a fitted table."""

    dtype: np.dtype
    in_threads: bool = True  # False where `score` uses the engine, which must not wait for itself

    @abstractmethod
    def score(self, rows: np.ndarray) -> np.ndarray:
        """(m,d) what ranks the columns of some rows; the next call may overwrite it."""

    def shift(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Add to scores of these rows what is the same in a whole row, which ranks nothing."""
        return scores

    def score_fully(self, rows: np.ndarray) -> np.ndarray:
        """(m,d) the scores, shifted, in memory of their own."""
        return self.shift(rows, np.array(self.score(rows)))


class ProductScorer(Scorer):
    """Scores that are one product, U Z: of U (n,p), or (n,p-1) if the last feature of every row is 1, and Z (p,d)."""

    def __init__(self, U: np.ndarray, Z: np.ndarray, bias: np.ndarray):
        self.U, self.Z, self.bias, self.dtype = U, Z, bias, Z.dtype

    def score(self, rows: np.ndarray) -> np.ndarray:
        size, kept = len(rows) * self.Z.shape[1], getattr(_own, "scores", None)
        if kept is None or kept.dtype != self.dtype or kept.size < size:
            kept = _own.scores = np.empty(size, self.dtype)
        U = self.U[rows]
        if U.shape[1] < len(self.Z):
            U = np.column_stack([U, np.ones(len(rows), U.dtype)])
        return np.matmul(U, self.Z, out=kept[:size].reshape(len(rows), -1))

    def shift(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return scores + self.bias[rows, None]


class FoldScorer(Scorer):
    """Scores of rows folded in again, for models whose holes then hold what `predict(rows, cols)` gives."""

    def __init__(self, model: Any, X: Any, dtype: np.dtype):
        self.X, self.codes, self.dtype = X, model._both(), dtype

    def score(self, rows: np.ndarray) -> np.ndarray:
        fold, state, value, shared = self.codes
        return np.array(value(fold(self.X[rows], *state), *shared))


class CellScorer(Scorer):
    """Scores cell by cell, for any model."""

    in_threads = False
    dtype = np.dtype(np.float64)

    def __init__(self, model: Any):
        self.model = model

    def score(self, rows: np.ndarray) -> np.ndarray:
        d = self.model.n_features_in_
        return self.model.predict(np.repeat(rows, d), np.tile(np.arange(d), len(rows))).reshape(len(rows), d)


class ExtendedScorer(Scorer):
    """Scores of the fitted columns and, after them, of new ones: `extend` makes them (m,new) of the scores (m,d)."""

    def __init__(self, known: Scorer, extend: Callable[[np.ndarray], np.ndarray]):
        self.known, self.extend, self.dtype, self.in_threads = known, extend, known.dtype, known.in_threads

    def score(self, rows: np.ndarray) -> np.ndarray:
        S = self.known.score_fully(rows)
        return np.hstack([S, self.extend(S).astype(S.dtype)])
