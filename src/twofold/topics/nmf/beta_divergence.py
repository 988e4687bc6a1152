"""Non-negative factorization under any β-divergence, of whole dense tables.

    minimize  Σ w d(x, ŷ) + penalties   over  U ≥ 0, Z ≥ 0     ŷ = U Z
    d(x, y) = (x^β + (β − 1) y^β − β x y^(β−1)) / (β (β − 1)),   x/y − log(x/y) − 1 at β = 0 (Itakura–Saito)

One sweep:  each block  U ← U · [(x ŷ^(β−2)) V / (ŷ^(β−1) V + λ₁ + λ₂ U)]^γ, and the same sums for the parts
            then once   V ← the same, given the sums; γ = 1/(2−β) below β = 1, 1/(β−1) above 2, else 1
With this γ the divergence never rises. The objective is that before V moves.
Reference: Févotte & Idier 2011.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from twofold.core.data.blocks import Blocks, Rows
from twofold.topics.nmf.problem import FREE, Holes, Penalty, WholeTable, divergences

MAX_FOLD_PASSES = 2000  # for the best codes


class Rule(NamedTuple):
    """Settings of one half-step."""

    beta: float
    penalty: Penalty = FREE
    passes: int = 1
    tol: float = 0.0  # stop when no code moves by more than this share of its sum


class Sums(NamedTuple):
    """Added over blocks, in float64."""

    above: np.ndarray  # (d,k) Σ w u x ŷ^(β−2)
    below: np.ndarray  # (d,k) Σ w u ŷ^(β−1)
    cost: float  # Σ w d(x, ŷ)
    penalty: float  # of the codes


def multiply(U: np.ndarray, above: np.ndarray, below: np.ndarray, rule: Rule) -> np.ndarray:
    """Apply the multiplicative rule to one side."""
    beta, (l1, l2) = rule.beta, rule.penalty
    gamma = 1 / (2 - beta) if beta < 1 else 1 / (beta - 1) if beta > 2 else 1.0
    ratio = above / np.maximum(below + l1 + l2 * U, np.finfo(U.dtype).tiny)
    return U * ratio**gamma if gamma != 1 else U * ratio


def predict(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """ŷ, at least a rounding error."""
    return np.maximum(U @ V.T, np.finfo(V.dtype).eps)


def improve(X: np.ndarray, U: np.ndarray, V: np.ndarray, rule: Rule) -> np.ndarray:
    """Lower the cost of the codes U (m,k)."""
    for _ in range(rule.passes):
        Y = predict(U, V)
        new = multiply(U, (X * Y ** (rule.beta - 2)) @ V, Y ** (rule.beta - 1) @ V, rule)
        change, U = np.abs(new - U).sum(axis=1), new
        if rule.tol and (change <= rule.tol * new.sum(axis=1)).all():
            break
    return U


def update_codes(
    X: np.ndarray, w: np.ndarray | None, kept: tuple, V: np.ndarray, rule: Rule
) -> tuple[tuple[np.ndarray], Sums]:
    """Improve the codes of one block; return them and the block's sums."""
    U = improve(X, kept[0], V, rule)
    Y, weights = predict(U, V), np.ones(len(U)) if w is None else w
    weighted = U * weights.astype(U.dtype)[:, None]
    above, below = ((A.T @ weighted).astype(np.float64) for A in (X * Y ** (rule.beta - 2), Y ** (rule.beta - 1)))
    cost = float(weights @ divergences(X.astype(np.float64), Y.astype(np.float64), rule.beta).sum(axis=1))
    l1, l2 = rule.penalty
    return (U,), Sums(above, below, cost, l1 * float(weighted.sum()) + 0.5 * l2 * float(np.vdot(weighted, U)))


class BetaDivergence(WholeTable):
    """The problem on whole dense tables."""

    def __init__(self, blocks: Blocks, w: np.ndarray | None, beta: float, codes: Penalty, parts: Penalty, holes: Holes):
        super().__init__(blocks, w, codes, parts, holes)
        self.beta = beta

    def advance(self, kept: Rows, V: np.ndarray) -> tuple[Rows, np.ndarray, float]:
        kept, s = self.update(update_codes, kept, V, Rule(self.beta, self.codes))
        new = multiply(V.astype(np.float64), s.above, s.below, Rule(self.beta, self.parts))
        return kept, new.astype(self.blocks.dtype), s.cost + s.penalty + self.parts.cost(V)

    def finish(self, kept: Rows, V: np.ndarray) -> tuple[Rows, float, float]:
        kept, s = self.update(update_codes, kept, V, exact_rule(self.beta, self.codes, V.dtype))
        return kept, s.cost, self.holes.compute_kappa(s.cost)


def exact_rule(beta: float, penalty: Penalty, dtype: np.dtype) -> Rule:
    """Settings that bring codes to their minimum."""
    return Rule(beta, penalty, MAX_FOLD_PASSES, 1e-8 if dtype == np.float64 else 1e-5)


def fold(X: np.ndarray, V: np.ndarray, penalty: Penalty, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """The codes (m,k) of new rows, and the objective of each row."""
    level = X.mean(axis=1, keepdims=True) / max(float(V.mean()) * V.shape[1], 1e-300)
    U = improve(X, np.repeat(level, V.shape[1], axis=1).astype(V.dtype), V, exact_rule(beta, penalty, V.dtype))
    cost = divergences(X.astype(np.float64), predict(U, V).astype(np.float64), beta).sum(axis=1)
    return U, penalty.add_to_rows(cost, U)
