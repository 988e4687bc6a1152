"""Half-steps of non-negative factorization under squared error.

    minimise  ½ Σ w ‖x − u Z‖² + λ Σ w u   over  U ≥ 0, Z ≥ 0  (with λ > 0 every part has norm 1 at most)
    X (n,d) in row blocks   U (n,k) kept by the blocks   V = Zᵀ (d,k)

One sweep:  each block  U ← non-negative least squares given V (hals), or least squares clipped at 0 (als),
                        or Lee & Seung's rule (multiplicative); its sums ΣUᵀU, ΣUᵀX
            then once   V ← the same, given the sums, which also give the objective
References: Cichocki & Phan 2009 (HALS); Gillis & Glineur 2012; Lee & Seung 2001; Berry et al. 2007 (projected ALS).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import Engine, add, engine_for
from twofold.kernels.nnls import nnls, nnls_end
from twofold.topics.nmf._holes import Holes

ENOUGH = 0.01  # a row stops when a sweep gains this share of what its first one gained
DENSE_SWEEPS, SPARSE_SWEEPS = 4, 2  # while G stays; with sparse data a sweep costs as much as a product with X
CHUNK = 4096  # columns of X a task, in the shared half-step
SMALL = 2**18  # cells of a block up to which sums in single precision are made in double: over few rows, their rounding
# does not average out and would pass for the end
NEAR, EXACT = 20, 2000  # sweeps before active sets take over, where codes are wanted to the end; and without them


class Rule(NamedTuple):
    """How a half-step is made."""

    solver: str
    l1: float
    sweeps: int


class Sums(NamedTuple):
    """Added over blocks, in float64."""

    UU: np.ndarray  # (k,k)
    UX: np.ndarray  # (d,k)
    codes: float  # Σ w u


def half(G: np.ndarray, B: np.ndarray, U: np.ndarray, rule: Rule) -> np.ndarray:
    """One side given G = VᵀV (k,k) and B = XV (m,k), from where U (m,k) stands."""
    dtype = U.dtype
    G, B = G.astype(dtype, copy=False), np.ascontiguousarray(B, dtype=dtype)
    if rule.l1:
        B = B - dtype.type(rule.l1)
    if rule.solver == "als":
        return np.maximum(B @ np.linalg.pinv(G, hermitian=True).astype(dtype), 0)
    if rule.solver == "multiplicative":
        return U * (B / np.maximum(U @ G, np.finfo(dtype).tiny))
    U = U.copy()
    nnls(G, B, U, rule.sweeps, dtype.type(ENOUGH))
    return U


def codes(X: Any, w: np.ndarray | None, kept: tuple, V: np.ndarray, rule: Rule) -> tuple[tuple, Sums]:
    """The rows' half-step of one block, and what it adds."""
    U = half(V.T @ V, X @ V, kept[0], rule)
    return (U,), sums(X, w, U)


def sums(X: Any, w: np.ndarray | None, U: np.ndarray) -> Sums:
    weighted = U if w is None else U * w.astype(U.dtype)[:, None]
    if X.shape[0] * X.shape[1] <= SMALL:
        weighted = weighted.astype(np.float64, copy=False)
    UX = np.asarray(X.T @ weighted, dtype=np.float64)
    return Sums((weighted.T @ U).astype(np.float64), UX, float(weighted.sum(dtype=np.float64)))


def parts(V: np.ndarray, s: Sums, rule: Rule) -> np.ndarray:
    """The shared half-step: the same, transposed. Columns of X are independent, so they go through the engine."""
    if rule.l1:
        return unit_parts(V, s, rule.sweeps)
    engine, plain = Engine(), rule._replace(l1=0.0)
    cuts = range(0, len(V), CHUNK)
    pieces = (Rows(A[a : a + CHUNK] for a in cuts) for A in (s.UX, V))
    done = engine.map(half, engine.broadcast(s.UU), *pieces, engine.broadcast(plain))
    return np.concatenate(engine.gather(done))


def unit_parts(V: np.ndarray, s: Sums, sweeps: int) -> np.ndarray:
    """One part after the other to its best value of norm 1 at most: the best in the cone, then pulled to the ball."""
    V = V.astype(np.float64)
    for _ in range(sweeps):
        for c in np.flatnonzero(np.diagonal(s.UU) > 0):
            best = np.maximum(V[:, c] + (s.UX[:, c] - V @ s.UU[c]) / s.UU[c, c], 0)
            V[:, c] = best / max(1.0, float(np.linalg.norm(best)))
    return V


def held(V: np.ndarray) -> np.ndarray:
    """Parts pulled to norm 1 at most, as the penalty of the codes wants them."""
    return V / np.maximum(np.sqrt((V**2).sum(axis=0)), 1).astype(V.dtype)


class Squared:
    """The problem as the sweeps see it."""

    def __init__(self, blocks: Blocks, w: np.ndarray | None, square: float, holes: Holes, rule: Rule):
        self.engine, self.blocks, self.rows = engine_for(blocks), blocks, blocks.rows(w)
        self.square, self.holes, self.rule = square, holes, rule

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        shared = (self.engine.broadcast(V), self.engine.broadcast(self.rule))
        parts_of = self.engine.map(codes, self.blocks, self.rows, kept, *shared)
        kept, s = self.engine.reduce(add, parts_of, keep=True)
        V = parts(V, s, self.rule).astype(self.blocks.dtype, copy=False)
        return kept, V, self.objective(V, s)

    def objective(self, V: np.ndarray, s: Sums) -> float:
        return misfit(self.square, V, s) + self.rule.l1 * s.codes

    def settled(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        """Codes to the end, given V; the misfit ½ Σ w ‖x − uZ‖²; and what share of the data that leaves unexplained."""
        shared = (self.engine.broadcast(V), self.engine.broadcast(self.rule.l1))
        kept, s = self.engine.reduce(add, self.engine.map(settle, self.blocks, self.rows, kept, *shared), keep=True)
        D = misfit(self.square, V, s)
        return kept, D, self.holes.unexplained(D)


def misfit(square: float, V: np.ndarray, s: Sums) -> float:
    """½ Σ w ‖x − uZ‖², a difference of large sums: what may be their rounding counts as nothing."""
    rounding, V = 1e-13 if V.dtype == np.float64 else 1e-7, V.astype(np.float64, copy=False)
    left = 0.5 * (square - 2 * np.vdot(s.UX, V) + np.vdot(s.UU, V.T @ V))
    return left if left > rounding * square else 0.0


def to_the_end(G: np.ndarray, B: np.ndarray, U: np.ndarray) -> None:
    """U (m,k) ← the minimum, in place, from where it stands."""
    done = np.empty(len(U), bool)
    nnls(G, B, U, NEAR, end_of(U.dtype))
    nnls_end(G.astype(np.float64), B, U, done)
    if not done.all():
        rest = U[~done]
        nnls(G, B[~done], rest, EXACT, end_of(U.dtype))
        U[~done] = rest


def settle(X: Any, w: np.ndarray | None, kept: tuple, V: np.ndarray, l1: float) -> tuple[tuple, Sums]:
    U = kept[0].copy()
    to_the_end(V.T @ V, less(X @ V, l1), U)
    return (U,), sums(X, w, U)


def less(B: np.ndarray, l1: float) -> np.ndarray:
    return np.ascontiguousarray(B - B.dtype.type(l1) if l1 else B)


def end_of(dtype: np.dtype) -> Any:
    """What counts as no gain any more, as a share of the first sweep's."""
    return dtype.type(1e-18 if dtype == np.float64 else 1e-10)
