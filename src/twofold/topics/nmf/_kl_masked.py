"""Non-negative factorization of the known cells alone, or of cells that count differently, under KL.

    minimise  D = Σ_Ω w (x log(x/ŷ) − x + ŷ)   over  U ≥ 0, Z ≥ 0, and a little of what is outside Ω: nmf_holes
    X (n,d) in row blocks, known in the cells Ω   U (n,k) kept by the blocks   V = Zᵀ (d,k)

One sweep:  each block  D, for what the missing cells count; U as in nmf_kl, each row over its own cells; its sums
            then once   V ← V · Σ w u x/ŷ  /  Σ w u, column by column
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import kl_div

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import add, engine_for
from twofold.topics.nmf._holes import Holes
from twofold.topics.nmf._kl import Cells, Rule, by_weight, improved, parts, to_the_end


class Table(NamedTuple):
    """A block with its holes filled: all its cells, and which of them are known."""

    X: np.ndarray  # (m,d) holes at their column's mean
    w: np.ndarray  # (m,d) weights; of a hole, to be multiplied by κ
    known: np.ndarray  # (m,d)

    def cells(self, kappa: float) -> Cells:
        m, d = self.X.shape
        w = np.where(self.known, self.w, self.w.dtype.type(kappa) * self.w).ravel()
        indices, indptr = np.tile(np.arange(d, dtype=np.int32), m), np.arange(0, m * d + 1, d)
        return Cells(sparse.csr_array((self.X.ravel() * w, indices, indptr), shape=self.X.shape), w)


def filled(X: Any, W: Any, share: np.ndarray, means: np.ndarray) -> Table:
    """A block, its cell weights (or None), and what its holes stand at and count."""
    X, W = (A.toarray() if sparse.issparse(A) else A for A in (X, W))
    known = ~np.isnan(X) if W is None else ~np.isnan(X) & (W > 0)
    w = np.where(known, 1.0 if W is None else W, share[:, None]).astype(X.dtype)
    return Table(np.where(known, X, means.astype(X.dtype)), w, known)


def divergences(t: Table, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(m,2): of the known cells, and of the holes without κ."""
    y = np.maximum((U @ V.T).astype(np.float64, copy=False), 1e-30)
    cost = t.w * kl_div(t.X.astype(np.float64, copy=False), y)
    return np.stack([cost.sum(axis=1, where=t.known), cost.sum(axis=1, where=~t.known)], axis=1)


class Sums(NamedTuple):
    """Added over blocks, in float64; of known cells, and of holes without κ."""

    UR: np.ndarray  # (d,k) Σ w u x/ŷ
    U: np.ndarray  # (d,k) Σ w u
    UR_holes: np.ndarray
    U_holes: np.ndarray
    D: float
    P: float


def codes(
    X: Any, W: Any, w: np.ndarray | None, share: np.ndarray, kept: tuple, means: np.ndarray, V: np.ndarray,
    kappa: float, rule: Rule,
) -> tuple[tuple, Sums]:  # fmt: skip
    """The rows' half-step of one block, and what it adds."""
    t = filled(X, W, share, means)
    c, (U,) = t.cells(kappa), kept
    U, ratio, _ = improved(c, V, U, rule)
    weighted, ratio = by_weight(U, w), ratio.reshape(X.shape)
    D, P = divergences(t, U, V).T @ (np.ones(len(U)) if w is None else w)
    back = X.dtype.type(1 / kappa)  # ratio has κ in it where cells are missing
    pieces = (np.where(t.known, *pair) for pair in ((ratio, 0), (t.w, 0), (0, ratio * back), (0, t.w)))
    UR, total, UR_holes, total_holes = ((A.T @ weighted).astype(np.float64) for A in pieces)
    return (U,), Sums(UR, total, UR_holes, total_holes, float(D), float(P))


def known_divergence(
    X: Any, W: Any, w: np.ndarray | None, share: np.ndarray, kept: tuple, means: np.ndarray, V: np.ndarray
) -> float:
    each = divergences(filled(X, W, share, means), kept[0], V)[:, 0]
    return float(each.sum() if w is None else each @ w)


class MaskedKullbackLeibler:
    """The problem as the sweeps see it: row weights w (n,), or cell weights W (n,d), or neither."""

    def __init__(self, blocks: Blocks, w: np.ndarray | None, W: Any, holes: Holes, rule: Rule):
        self.engine, self.blocks, self.holes, self.rule = engine_for(blocks), blocks, holes, rule
        share = holes.share if w is None else holes.share / np.where(w > 0, w, 1.0)  # w multiplies whole rows
        self.rows = (blocks.rows(W), blocks.rows(w), blocks.rows(share))

    def unexplained(self, kept: Rows, V: np.ndarray) -> float:
        shared = (self.engine.broadcast(self.holes.means), self.engine.broadcast(V))
        found = self.engine.map(known_divergence, self.blocks, *self.rows, kept, *shared)
        return self.holes.unexplained(self.engine.reduce(add, found))

    def _codes(self, kept: Rows, V: np.ndarray, kappa: float, rule: Rule) -> tuple[Rows, Sums]:
        shared = [self.engine.broadcast(value) for value in (self.holes.means, V, kappa, rule)]
        return self.engine.reduce(add, self.engine.map(codes, self.blocks, *self.rows, kept, *shared), keep=True)

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        kept, s = self._codes(kept, V, self.unexplained(kept, V), self.rule)
        kappa = self.holes.unexplained(s.D)
        new = parts(V, s.UR + kappa * s.UR_holes, s.U + kappa * s.U_holes)
        return kept, new.astype(self.blocks.dtype), self.holes.objective(s.D, s.P)

    def settled(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        """Codes to the end, given V; how far the known cells are; and the κ that was used."""
        kappa = self.unexplained(kept, V)
        kept, s = self._codes(kept, V, kappa, to_the_end(V.dtype))
        return kept, s.D, kappa
