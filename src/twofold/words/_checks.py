"""Checks of vectors, counts and queries; errors name the place of what is wrong."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from twofold.core.checks import InputError, first_bad


def check_vectors(vectors: Any, words: np.ndarray) -> np.ndarray:
    """Vectors (V,k) of words, float64 if they are, else float32."""
    W = np.asarray(vectors)
    W = np.ascontiguousarray(W, dtype=np.float64 if W.dtype == np.float64 else np.float32)
    if W.ndim != 2 or not W.shape[1] or len(W) != len(words):
        raise InputError(f"vectors has shape {W.shape}; {len(words)} words need ({len(words)}, k), a row a word.")
    bad = first_bad(W, allow_nan=False)
    if bad is not None:
        raise InputError(f"vectors[{bad[0]}, {bad[1]}], of {words[bad[0]]!r}, is {bad[2]}; numbers must be finite.")
    return W


def check_counts(counts: Any, V: int) -> np.ndarray:
    """Counts of V words."""
    n = np.asarray(counts)
    if n.shape != (V,) or n.dtype.kind not in "iuf" or not (n >= 0).all() or not 0 < n.sum() < np.inf:
        raise InputError(f"counts has shape {n.shape}; {V} numbers >= 0 are needed, one a word, not all zero.")
    return n


def check_n(n: Any) -> int:
    """A number of answers."""
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise InputError(f"n={n!r} must be a whole number of at least 1.")
    return int(n)


def as_words(query: Any) -> list[str] | None:
    """The words of a query, or None if it has none."""
    if isinstance(query, str):
        return [query]
    listed = isinstance(query, (list, tuple, set)) or (isinstance(query, np.ndarray) and query.dtype.kind in "UO")
    return list(query) if listed and len(query) and any(isinstance(word, str) for word in query) else None


def as_vector(query: Any, k: int) -> np.ndarray:
    """A query that is a vector (k,)."""
    try:
        found = np.asarray(query, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the query {query!r} is neither a word, nor a list of words, nor a vector.") from None
    if found.shape != (k,):
        raise InputError(f"the query has shape {found.shape}; a vector here has {(k,)}.")
    return found


def as_direction(x: np.ndarray) -> np.ndarray:
    """A vector (k,) at length 1."""
    length = np.linalg.norm(x)
    if not (np.isfinite(length) and length > 0):
        raise InputError(f"the query's vector has length {length:g}: it has no direction, so no word is near it.")
    return x / length
