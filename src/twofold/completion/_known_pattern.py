"""A prior whose mean follows from which cells are known.

    t_i ~ N(f_iᵀ Y, 1/λ)     f_ij = 1/√n_i where cell (i,j) is known     Y ~ N(0, 1/ρ)     for each of p columns

    F (n,d) the scaled pattern, never stored   T (n,p) what is explained   Y (d,p) its coefficients

Given T, the posterior of Y is a ridge regression, solved by conjugate gradients from the last Y; the traces its
precisions need come from the spectrum of FFᵀ, known once and for all by Lanczos quadrature (Golub & Meurant 2010).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh_tridiagonal

from twofold.core.data.known_cells import Side
from twofold.core.engine.local import Engine
from twofold.kernels import svdpp

PROBES, LANCZOS, STEPS = 8, 40, 6
SPAN = 1e-6, 1e6  # in which precisions may lie, of numbers of size one


class Link(NamedTuple):
    """The prior of one side."""

    Y: np.ndarray  # (d,p) coefficients
    mean: np.ndarray  # (n,p) = F Y
    precision: np.ndarray  # (p,) λ, of the rows around the mean
    strength: np.ndarray  # (p,) ρ, of the coefficients


class Pattern(NamedTuple):
    """F and its transpose, as sums over the known cells, and the spectrum of FFᵀ."""

    side: Side
    across: Side
    scale: np.ndarray  # (n,1) 1/√n_i
    nodes: np.ndarray  # (q,) eigenvalues
    shares: np.ndarray  # (q,) how many of the n each stands for

    def apply(self, Y: np.ndarray) -> np.ndarray:
        """F Y."""
        return self.scale.astype(Y.dtype) * _sum_known(self.side, Y)

    def back(self, T: np.ndarray) -> np.ndarray:
        """Fᵀ T."""
        return _sum_known(self.across, self.scale.astype(T.dtype) * T)


def link_pattern(side: Side, across: Side, rng: np.random.Generator) -> Pattern:
    """The pattern seen from one side."""
    known = np.diff(np.asarray(side.blocks.source.indptr))
    even = (1 / np.sqrt(np.maximum(known, 1)))[:, None]
    bare = Pattern(side, across, even, np.empty(0), np.empty(0))
    nodes, shares = _estimate_spectrum(bare, rng)
    return bare._replace(nodes=nodes, shares=shares)


def _sum_known(side: Side, Y: np.ndarray) -> np.ndarray:
    engine = Engine()
    return np.concatenate(engine.gather(engine.map(sum_block, side.blocks, engine.broadcast(np.ascontiguousarray(Y)))))


def sum_block(X: sparse.csr_array, Y: np.ndarray) -> np.ndarray:
    """Σ_j Y_j over the known cells of each row."""
    out = np.empty((X.shape[0], Y.shape[1]), Y.dtype)
    svdpp.pattern_sums(X.indptr, X.indices, Y, out)
    return out


def _estimate_spectrum(F: Pattern, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights with Σ weights f(node) ≈ tr f(FFᵀ), from a few random signs at once."""
    n = len(F.scale)
    V = rng.choice([-1.0, 1.0], size=(n, PROBES)) / np.sqrt(n)
    before, beta = np.zeros_like(V), np.zeros(PROBES)
    basis, alphas, betas = [V], list[np.ndarray](), list[np.ndarray]()
    for _ in range(min(LANCZOS, n)):
        W = F.apply(F.back(V)) - before * beta
        alphas.append((W * V).sum(axis=0))
        W -= V * alphas[-1]
        for B in basis:  # without it, rounding makes ghosts of the largest
            W -= B * (B * W).sum(axis=0)
        beta = np.linalg.norm(W, axis=0)
        betas.append(beta)
        before, V = V, W / np.maximum(beta, 1e-300)
        V[:, beta < 1e-10] = 0  # that probe is exhausted: what follows has weight 0
        basis.append(V)
    nodes, shares = [], []
    for s in range(PROBES):
        e, Q = eigh_tridiagonal(np.array([a[s] for a in alphas]), np.array([b[s] for b in betas[:-1]]))
        nodes.append(np.maximum(e, 0))
        shares.append(Q[0] ** 2 * n / PROBES)
    return np.concatenate(nodes), np.concatenate(shares)


def start_link(F: Pattern, p: int, precision: float, dtype: np.dtype) -> Link:
    """No effect of the pattern yet."""
    n, d = len(F.scale), len(F.across.mass)
    return Link(np.zeros((d, p), dtype), np.zeros((n, p), dtype), np.full(p, precision), np.full(p, precision))


def update_link(F: Pattern, link: Link, T: np.ndarray, variance: np.ndarray) -> Link:
    """Coefficients and precisions given the rows T (n,p) and their summed posterior variances (p,)."""
    n, d = F.scale.shape[0], len(F.across.mass)
    ridge = (link.strength / link.precision).astype(T.dtype)
    Y = _regress_link(F, link.Y, T, ridge)
    mean = F.apply(Y)
    cost, size = ((T - mean).astype(float) ** 2).sum(axis=0), (Y.astype(float) ** 2).sum(axis=0)
    spread = link.precision * F.nodes[:, None] + link.strength  # (q,p)
    of_fit = (F.shares[:, None] * F.nodes[:, None] / spread).sum(axis=0)  # tr F Cov(Y) Fᵀ
    strength = np.clip(d / (size + _trace_coefficients(F, link)), *SPAN)
    precision = np.clip(n / (cost + variance + of_fit), *SPAN)
    return Link(Y, mean, precision, strength)


def _trace_coefficients(F: Pattern, link: Link) -> np.ndarray:
    """tr Cov(Y), (p,)."""
    n, d = F.scale.shape[0], len(F.across.mass)
    spread = link.precision * F.nodes[:, None] + link.strength
    return (F.shares[:, None] / spread).sum(axis=0) + (d - n) / link.strength


def _regress_link(F: Pattern, Y: np.ndarray, T: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """A few conjugate gradient steps on (FᵀF + ridge_c) Y_c = Fᵀ T_c, all columns at once."""
    R = F.back(T - F.apply(Y)) - ridge * Y
    P, rr = R.copy(), (R * R).sum(axis=0)
    for _ in range(STEPS):
        AP = F.back(F.apply(P)) + ridge * P
        curve = (P * AP).sum(axis=0)
        step = np.divide(rr, curve, out=np.zeros_like(rr), where=curve > 0)
        Y = Y + step * P
        R = R - step * AP
        new = (R * R).sum(axis=0)
        P = R + np.divide(new, rr, out=np.zeros_like(rr), where=rr > 0) * P
        rr = new
    return Y


def compute_divergence(F: Pattern, link: Link, T: np.ndarray, variance: np.ndarray) -> float:
    """−E[log p(T | Y)] + KL(Y), without the entropy of T and the constants that cancel against it."""
    n, d = F.scale.shape[0], len(F.across.mass)
    spread = link.precision * F.nodes[:, None] + link.strength
    of_fit = (F.shares[:, None] * F.nodes[:, None] / spread).sum(axis=0)
    log_cov = (F.shares[:, None] * np.log(spread)).sum(axis=0) + (d - n) * np.log(link.strength)
    cost = ((T - link.mean).astype(float) ** 2).sum(axis=0) + variance + of_fit
    size = (link.Y.astype(float) ** 2).sum(axis=0) + _trace_coefficients(F, link)
    rows = link.precision * cost - n * np.log(link.precision)
    return 0.5 * float((rows + link.strength * size - d * np.log(link.strength) + log_cov - d).sum())
