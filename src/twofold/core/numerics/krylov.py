"""Leading eigenpairs of a symmetric matrix S (d,d) that is known by its products alone.

krylov             a thin block is multiplied again and again, and the best pairs are sought in the span of all products
iterate_subspace   the same, with the last product alone: a rough start for models that go on themselves
rayleigh_ritz      the best pairs in the span of a basis
extend_basis       what new vectors add to a basis
References: Halko, Martinsson & Tropp 2011; Musco & Musco 2015.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg

from twofold.core.config import config

OVERSAMPLE = 10  # columns of a block beyond the pairs that are wanted
SHARE = 6  # 1 / SHARE of the memory budget may be taken by the products so far; more wait on disk
ROWS = 2**13  # that are changed at once

Times = Callable[[np.ndarray], np.ndarray]  # Q (d,l) → S Q


def krylov(
    times: Times, d: int, k: int, *, rng: np.random.Generator, tol: float, max_iter: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """The k largest eigenvalues of S (d,d), their vectors (k,d) as rows, and whether they are accurate to `tol`.

    The accuracy is that of the squared residuals, relative to the largest eigenvalue.

    >>> S = np.diag(np.arange(100.0))
    >>> values, axes, _ = krylov(S.__matmul__, 100, 2, rng=np.random.default_rng(0), tol=1e-12, max_iter=100)
    >>> values.round(6), axes[0, 99].round(6) ** 2
    (array([99., 98.]), np.float64(1.0))
    """
    Q, converged = random_basis(d, k, rng), False
    T = np.empty((0, 0))  # S within the span of all blocks so far
    with Basis(d) as K:
        for _ in range(max_iter):
            K.append(Q)
            products, Q = K.take_away(np.asarray(times(Q), np.float64))
            old, new = len(T), len(products)
            T = np.block([[T, products[:old]], [products[:old].T, products[old:]]]) if old else products
            values, Y = leading_pairs(T, k)
            if new >= d:
                converged = True
                break
            R = orthonormalize(Q)
            residual = np.linalg.norm(R @ Y[old:], axis=0)  # of S K Y − K Y diag(values): only the last block leaves K
            converged = bool(np.all(residual**2 <= tol * max(values[0], 0.0) ** 2))
            if converged:
                break
            Q = K.take_away(np.ascontiguousarray(Q[:, : d - new]))[1]  # twice, for orthogonality
            orthonormalize(Q)
        del Q
        return np.maximum(values, 0.0), K.combine(Y), converged


class Basis:
    """Orthonormal columns (d,l), a block after the other; beyond a share of the memory budget in a temporary file."""

    def __init__(self, d: int):
        self.d, self.widths, self.blocks = d, list[int](), list[np.ndarray]()
        self.file: Any = None

    def __enter__(self) -> Basis:
        return self

    def __exit__(self, *why: object) -> None:
        if self.file is not None:
            self.file.close()

    def append(self, Q: np.ndarray) -> None:
        self.widths.append(Q.shape[1])
        self.blocks.append(np.ascontiguousarray(Q))
        if 8 * self.d * sum(self.widths) > config().memory // SHARE:
            self.file = self.file or tempfile.TemporaryFile(prefix="twofold-basis-")  # noqa: SIM115  (see __exit__)
            self.file.seek(0, os.SEEK_END)
            for block in self.blocks:
                self.file.write(block.data)
            self.blocks = []

    def __iter__(self) -> Iterator[np.ndarray]:
        if self.file is None:
            yield from self.blocks
            return
        self.file.seek(0)
        room = np.empty(self.d * max(self.widths))  # for one block after the other
        for width in self.widths:
            block = room[: self.d * width].reshape(self.d, width)
            self.file.readinto(block.data.cast("B"))
            yield block

    def take_away(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The products Kᵀ B (l,b) and what is left of B outside the span of K, in its place."""
        products = []
        for block in self:
            products.append(block.T @ B)
            for rows in range(0, self.d, ROWS):
                B[rows : rows + ROWS] -= block[rows : rows + ROWS] @ products[-1]
        return np.vstack(products), B

    def combine(self, Y: np.ndarray) -> np.ndarray:
        """(K Y)ᵀ, a row a vector."""
        out, at = np.zeros((Y.shape[1], self.d)), 0
        for block in self:
            out += (block @ Y[at : at + block.shape[1]]).T
            at += block.shape[1]
        return out


def random_basis(d: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Orthonormal columns to begin with, a few more than the k that are wanted."""
    Q = rng.standard_normal((d, min(k + OVERSAMPLE, d)))
    orthonormalize(Q)
    return Q


def orthonormalize(B: np.ndarray) -> np.ndarray:
    """The columns of B (d,l), d ≥ l, in their place: orthonormal, and R (l,l) such that they were B R.

    It takes B once more, where numpy.linalg.qr, with the same bits, takes it four times.
    """
    Q, R = scipy.linalg.qr(np.asfortranarray(B), mode="economic", overwrite_a=True, check_finite=False)
    B[:] = Q
    return R


def iterate_subspace(times: Times, Q: np.ndarray, turns: int) -> tuple[np.ndarray, np.ndarray]:
    """Q (d,l) ← an orthonormal basis of S Q, `turns` times; and the length that S gave to each of its columns (l,)."""
    reached = np.ones(Q.shape[1])
    for _ in range(turns):
        Q, R = np.linalg.qr(times(Q))
        reached = np.abs(np.diagonal(R))
    return Q, reached


def rayleigh_ritz(K: np.ndarray, SK: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of S within the span of orthonormal K (d,l), and their vectors as K Y, Y (l,k)."""
    return leading_pairs(K.T @ SK, k)


def leading_pairs(T: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a small matrix that is symmetric but for rounding, and their vectors (l,k)."""
    values, Y = np.linalg.eigh((T + T.T) / 2)
    return values[::-1][:k], Y[:, ::-1][:, :k]


def extend_basis(K: np.ndarray, B: np.ndarray) -> np.ndarray:
    """An orthonormal basis of what B has outside the span of K; twice, for orthogonality."""
    B = B - K @ (K.T @ B)
    Q = np.linalg.qr(B)[0][:, : K.shape[0] - K.shape[1]]
    return np.linalg.qr(Q - K @ (K.T @ Q))[0]
