"""Maps that do not spin: each is turned towards the one before."""

from __future__ import annotations

import numpy as np


def turn_to(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """`now` (m,2) rotated or mirrored to lie nearest to `before` (m,2): orthogonal Procrustes."""
    if not np.any(before):
        return now
    left, _, right = np.linalg.svd(now.T @ before)
    return now @ left @ right


def find_plane(rows: np.ndarray) -> np.ndarray:
    """(m,2) rows along the two directions in which they differ most; a column of zeros if there is but one."""
    Z = rows - rows.mean(axis=0)
    left, size, _ = np.linalg.svd(Z, full_matrices=False)
    at = left[:, :2] * size[:2]
    return np.column_stack([at, np.zeros((len(at), 2 - at.shape[1]))])
