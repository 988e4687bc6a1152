"""GloVe without steps pair by pair: weights that need no gradient, and full gradient descent.

    all         f = 1           minimize  Σ_ij (⟨u_i, z_j⟩ + b_i + c_j − m_ij)²   over all cells, m = log(1 + n)
    observed    f = 1[n > 0]    the same over the cells with n > 0, m = log n, with a ridge

all        For any U and Z, the best biases subtract the means of rows and columns. U Zᵗ is then the nearest matrix of
           rank k to P M P, P = I − 11ᵀ/V: its truncated SVD. (Without biases, that of M.)
observed   is matrix completion: alternating least squares over the known cells.
References: Eckart & Young 1936; Levy & Goldberg 2014 (log counts and factorization).

Full gradients: one step an epoch.

    U ← U − η/L · R Z,   Z ← Z − η/L · Rᵗ U,   b ← b − η/L · R1,   c ← c − η/L · Rᵗ1      R_ij = f(n_ij) · gap_ij

    L the largest sum of weights of a word, Σ_j f(n_ij) or Σ_i f(n_ij), so that η does not depend on the text

One sweep:  each block of words  its part of R, of the cost, and of the four gradients;  then one step
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.data.known_cells import find_known_cells
from twofold.core.engine.local import Engine, add, stack_results
from twofold.core.numerics import alternating_ridge
from twofold.core.numerics.krylov import krylov
from twofold.core.numerics.spectrum import scatter_operator
from twofold.core.seeds import generator
from twofold.linalg import fix_signs, project_centered, truncated_svd
from twofold.words._mapped_cells import map_cells, replace_cells, sum_blocks, sum_rows, sum_squares

TOL = 1e-8  # relative accuracy of the squared singular values
MAX_ITER = 100  # products of the table with a thin matrix


class Factors(NamedTuple):
    """Both sides in the order of the vocabulary: U, Z (V,k) and their biases (V,)."""

    U: np.ndarray
    Z: np.ndarray
    b: np.ndarray
    c: np.ndarray


class Problem(NamedTuple):
    """The functions that the loop calls, for one weighting."""

    start: Any
    sweep: Callable[[Any, int], loop.Sweep]
    factors: Callable[[Any], Factors]
    close: Callable[[], None] = lambda: None


# ---- all cells -------------------------------------------------------------------------------------------------


def factorize(blocks: Blocks, k: int, biases: bool, seed: int) -> Problem:
    """Weigh all cells equally: one sweep, a singular value decomposition."""
    V = blocks.shape[0]
    max_k = V - 1 if biases else V
    if k > max_k:
        raise InputError(
            f'n_components={k} is more than {V} words can have with weighting="all"; at most {max_k}. Lower it.'
        )
    empty = Factors(*(np.zeros((V, k), blocks.dtype) for _ in "UZ"), *(np.zeros(V, blocks.dtype) for _ in "bc"))

    def sweep(state: Factors, t: int) -> loop.Sweep:
        M = map_cells(blocks, logarithms)
        factors, left, converged = (center_and_svd if biases else plain_svd)(M, k, seed)
        return loop.Sweep(factors, 0.5 * max(left, 0.0) / V**2, done=True, converged=converged)

    return Problem(empty, sweep, lambda state: state)


def logarithms(X: sparse.csr_array, first: int) -> sparse.csr_array:
    """log(1 + n): zero for pairs with count zero."""
    return replace_cells(X, np.log1p(X.data))


def plain_svd(M: Blocks, k: int, seed: int) -> tuple[Factors, float, bool]:
    """M ≈ U Zᵗ, and the squared error."""
    total = sum_blocks(M, sum_squares)
    U, s, Zt = truncated_svd(M, k, svd_solver="randomized", tol=TOL, random_state=seed)
    none = np.zeros(len(U), U.dtype)
    return Factors(U * np.sqrt(s), Zt.T * np.sqrt(s), none, none), total - float((s.astype(float) ** 2).sum()), True


def center_and_svd(M: Blocks, k: int, seed: int) -> tuple[Factors, float, bool]:
    """M ≈ U Zᵗ + b 1ᵗ + 1 cᵗ, and the squared error. U, Z and the residual have means of zero."""
    engine, V = Engine(), M.shape[0]
    times, column_means, _ = scatter_operator(engine, M, None, center=True)

    def both(Q: np.ndarray) -> np.ndarray:  # P Mᵗ P M P Q
        SQ = times(Q - Q.mean(axis=0))
        return SQ - SQ.mean(axis=0)

    values, axes, converged = krylov(both, V, k, rng=generator(seed), tol=TOL, max_iter=MAX_ITER)
    axes = axes * fix_signs(axes)[:, None]
    shared = engine.broadcast(column_means), engine.broadcast(np.asfortranarray(axes))
    US = engine.stack(engine.map(project_centered, M, *shared))  # P M Zᵗ, of length s
    row_means = engine.stack(engine.map(sum_rows, M)) / V
    mean = float(row_means.mean())
    left = sum_blocks(M, sum_squares) - V * float(row_means @ row_means + column_means @ column_means)
    left += V**2 * mean**2 - float(values.sum())
    root = np.sqrt(np.sqrt(values))  # of s
    U = US / np.where(root > 0, root, 1.0)
    sides = (U, axes.T * root, row_means - mean / 2, column_means - mean / 2)
    return Factors(*(np.ascontiguousarray(a, M.dtype) for a in sides)), left, converged


# ---- cells with n > 0 -------------------------------------------------------------------------------------------


def complete(blocks: Blocks, k: int, biases: bool, reg: float, seed: int) -> Problem:
    """Weigh all pairs with n > 0 equally: matrix completion of their logarithms."""
    if k > blocks.shape[0]:
        raise InputError(
            f'n_components={k} is more than {blocks.shape[0]} words can have with weighting="observed". Lower it.'
        )
    cells = find_known_cells(map_cells(blocks, _log_counts), name="GloVe")
    plan = alternating_ridge.make_plan(cells, k, reg=reg, biases=biases)
    start = alternating_ridge.start_state(plan, biases, 1 if reg >= 0.01 else 5, generator(seed))

    def sweep(state: alternating_ridge.State, t: int) -> loop.Sweep:
        state, cost = alternating_ridge.sweep_once(plan, state)
        return loop.Sweep(state, 0.5 * cost / cells.X.nnz)

    def factors(state: alternating_ridge.State) -> Factors:
        if plan.steps:  # solve the words' side exactly
            state = state._replace(U=plan._replace(steps=0).half(cells.rows, state.U, state.Z)[0])
        unit = cells.dtype.type(np.sqrt(plan.spread))
        b, c = (alternating_ridge.bias_of(side, k) * unit for side in state)
        b, c = (side + cells.dtype.type(plan.mean / 2) for side in (b, c))  # each side has half of the mean
        return Factors(state.U[:, :k].copy(), state.Z[:, :k].copy(), b, c)

    return Problem(start, sweep, factors)


def _log_counts(X: sparse.csr_array, first: int) -> sparse.csr_array:
    """log n; the zero of n = 1 stays stored, since the cell is known."""
    return sparse.csr_array((np.log(X.data), X.indices, X.indptr), shape=X.shape)


# ---- full gradients -------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """The gradient of one block of words."""

    U: np.ndarray  # (n,k)
    b: np.ndarray  # (n,)


class Shared(NamedTuple):
    """Sums over all words."""

    Z: np.ndarray  # (V,k)
    c: np.ndarray  # (V,)
    cost: float
    pairs: int


def descend_fully(
    blocks: Blocks, k: int, *, rate: float, x_max: float, alpha: float, biases: bool, seed: int
) -> Problem:
    """Make one step a sweep."""
    V, engine = blocks.shape[0], Engine()
    U, Z = ((generator(seed, 0, side).random((V, k)) - 0.5) / k for side in (0, 1))
    weights = engine.gather(engine.map(sum_weights, blocks, engine.broadcast(x_max), engine.broadcast(alpha)))
    largest = max(
        float(max(rows.max(initial=0.0) for rows, _ in weights)), float(sum(cols for _, cols in weights).max())
    )
    step = rate / max(largest, 1e-300)

    def sweep(state: Factors, t: int) -> loop.Sweep:
        shared = [engine.broadcast(value) for value in (state, x_max, alpha)]
        parts = engine.map(compute_gradient, blocks, blocks.rows(state.U), blocks.rows(state.b), *shared)
        rows, sums = zip(*engine.gather(parts), strict=True)
        total: Shared = sums[0]
        for part in sums[1:]:
            total = add(total, part)
        bias_step = biases * step
        U, b = (stack_results([getattr(part, name) for part in rows]) for name in ("U", "b"))
        after = Factors(
            state.U - step * U, state.Z - step * total.Z, state.b - bias_step * b, state.c - bias_step * total.c
        )
        return loop.Sweep(after, total.cost / max(total.pairs, 1))

    def factors(state: Factors) -> Factors:
        return Factors(*(a.astype(np.float32) for a in state))

    return Problem(Factors(U, Z, np.zeros(V), np.zeros(V)), sweep, factors)


def weigh_pairs(n: np.ndarray, x_max: float, alpha: float) -> np.ndarray:
    """f(n), and 0 for cells without a count."""
    return np.minimum(1.0, (n / x_max) ** alpha) * (n > 0)


def sum_weights(X: sparse.csr_array, x_max: float, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the pairs of each word, and of each context in this block."""
    F = sparse.csr_array((weigh_pairs(X.data.astype(np.float64), x_max, alpha), X.indices, X.indptr), X.shape)
    return F.sum(axis=1), F.sum(axis=0)


def compute_gradient(
    X: sparse.csr_array, U: np.ndarray, b: np.ndarray, state: Factors, x_max: float, alpha: float
) -> tuple[Part, Shared]:
    """The gradient of the words of one block, whose vectors and biases are U and b."""
    n = X.data.astype(np.float64)
    f, known = weigh_pairs(n, x_max, alpha), n > 0
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    gap = b[row] + state.c[X.indices] - np.log(np.where(known, n, 1.0))
    for a in range(U.shape[1]):
        gap += U[row, a] * state.Z[X.indices, a]
    R = sparse.csr_array((f * gap, X.indices, X.indptr), X.shape)
    cost = 0.5 * float(f @ gap**2)
    return Part(R @ state.Z, R.sum(axis=1)), Shared(R.T @ U, R.sum(axis=0), cost, int(known.sum()))
