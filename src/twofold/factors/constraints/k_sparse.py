"""At most s numbers that are not zero: sparse codes. Reference: Pati, Rezaiifar & Krishnaprasad 1993 (the pursuit)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from twofold.factors.constraints.base import Constraint, check_number, multiply_rows


@dataclass(frozen=True)
class KSparse(Constraint):
    """At most `n_nonzero` numbers other than zero in every row."""

    n_nonzero: int = 1
    discrete: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self, "n_nonzero", 1, whole=True)

    def prox(self, F: np.ndarray, step: Any) -> np.ndarray:
        if self.n_nonzero >= F.shape[1]:
            return F
        smallest = np.argpartition(np.abs(F), F.shape[1] - self.n_nonzero, axis=1)[:, : F.shape[1] - self.n_nonzero]
        F = F.copy()
        np.put_along_axis(F, smallest, 0, axis=1)
        return F

    def solve(self, H: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Orthogonal matching pursuit for all rows at once: the component that helps most joins, all are refitted."""
        m, k = B.shape
        every = np.broadcast_to(H, (m, k, k)) if H.ndim == 2 else H
        size = np.sqrt(np.maximum(np.diagonal(H, axis1=-2, axis2=-1), np.finfo(H.dtype).tiny))
        tiny = 1e-12 * size.max(axis=-1, keepdims=True) ** 2 + np.finfo(H.dtype).tiny
        rows, chosen = np.arange(m)[:, None], np.empty((m, 0), dtype=np.int64)
        F, gain = np.zeros_like(B), np.abs(B) / size
        for _ in range(min(self.n_nonzero, k)):
            np.put_along_axis(gain, chosen, -1, axis=1)
            chosen = np.hstack([chosen, gain.argmax(axis=1)[:, None]])
            A = every[rows[:, :, None], chosen[:, :, None], chosen[:, None, :]]
            A = A + np.multiply.outer(np.broadcast_to(tiny, (m, 1))[:, 0], np.eye(A.shape[1], dtype=H.dtype))
            f = np.linalg.solve(A, np.take_along_axis(B, chosen, axis=1)[:, :, None])[:, :, 0]
            F = np.zeros_like(B)
            np.put_along_axis(F, chosen, f, axis=1)
            gain = np.abs(B - multiply_rows(F, H)) / size
        return F
