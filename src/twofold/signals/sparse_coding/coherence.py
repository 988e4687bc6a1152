"""How far a dictionary is from a basis, and what that allows to recover.

D (k,d) atoms as rows; for sensing A (m,d) the atoms are its columns
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from scipy.optimize import linprog

from twofold.core.checks import InputError
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed

BLOCK = 1024  # atoms whose products with all others are looked at together
MOST = 20_000  # linear programs at most


def _check_atoms(dictionary: Any) -> np.ndarray:
    D = np.asarray(dictionary, dtype=np.float64)
    if D.ndim != 2 or len(D) < 2:
        raise InputError(f"the dictionary has shape {D.shape}; two atoms or more, as rows (k, d), are needed.")
    lengths = np.linalg.norm(D, axis=1)
    if not (lengths > 0).all():
        raise InputError(f"atom {int(np.argmin(lengths))} is zero: it has no direction. Leave it out.")
    return D / lengths[:, None]


def _iterate_products(D: np.ndarray) -> Any:
    """|⟨a, b⟩| of some atoms with all, the product with itself left out."""
    for start in range(0, len(D), BLOCK):
        G = np.abs(D[start : start + BLOCK] @ D.T)
        G[np.arange(len(G)), start + np.arange(len(G))] = 0
        yield G


def coherence(dictionary: Any) -> float:
    """μ, the largest cosine between two different atoms: 0 for a basis, 1 if two are the same.

    Examples
    --------
    Spikes and waves are as different as two bases can be, μ = √(2/d):

    >>> from twofold.signals import DCT, coherence
    >>> both = np.vstack([np.eye(64), DCT().matrix(64)])
    >>> bool(np.isclose(coherence(both), np.sqrt(2 / 64), rtol=1e-3))
    True
    """
    return min(1.0, float(max(G.max() for G in _iterate_products(_check_atoms(dictionary)))))


def babel(dictionary: Any, K: int) -> float:
    """μ₁(K), the largest sum of cosines of one atom with K others: K μ at most, and often far less.

    Reference: Tropp (2004), *IEEE Trans. Information Theory* 50, 2231-2242.

    Examples
    --------
    >>> from twofold.signals import babel
    >>> babel(np.eye(5), 3)
    0.0
    """
    D = _check_atoms(dictionary)
    if not 1 <= K < len(D):
        raise InputError(f"K={K!r} must be from 1 to {len(D) - 1}, the number of other atoms.")
    return float(max(np.sort(G, axis=1)[:, -K:].sum(axis=1).max() for G in _iterate_products(D)))


def recovery_bound(dictionary: Any) -> float:
    """½ (1 + 1/μ): a code with fewer atoms than this is the sparsest one, and both pursuits find it.

    Reference: Donoho & Elad (2003), *PNAS* 100, 2197-2202.

    Examples
    --------
    >>> from twofold.signals import DCT, recovery_bound
    >>> round(recovery_bound(np.vstack([np.eye(64), DCT().matrix(64)])), 1)
    3.3
    """
    mu = coherence(dictionary)
    return float("inf") if mu < 1e-12 else 0.5 * (1 + 1 / mu)


def rip_estimate(A: Any, K: int, *, n_trials: int = 200, random_state: Seed = None) -> float:
    """A lower bound on the restricted isometry constant δ_K of a sensing matrix A (m,d).

    δ_K is the largest |‖A x‖² − 1| over x of length 1 with K numbers that are not zero. To know it one would have to
    look at all choices of K columns; this looks at some, drawn at random, and δ_K may be larger than what it finds.

    Examples
    --------
    >>> from twofold.signals import rip_estimate
    >>> A = np.random.default_rng(0).normal(size=(100, 400)) / 10
    >>> 0.3 < rip_estimate(A, 5, random_state=0) < 0.9
    True
    """
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or not 1 <= K <= A.shape[1]:
        raise InputError(f"A has shape {A.shape} and K={K!r}; K columns of a matrix (m, d) are to be looked at.")
    rng, worst = generator(seed_of(random_state)), 0.0
    for _ in range(n_trials):
        columns = A[:, rng.choice(A.shape[1], K, replace=False)]
        values = np.linalg.svd(columns, compute_uv=False) ** 2
        least = values[-1] if len(A) >= K else 0.0
        worst = max(worst, abs(values[0] - 1), abs(1 - least))
    return float(worst)


def null_space_constant(A: Any, K: int = 1) -> float:
    """The largest share of ‖h‖₁ that K numbers of an h with A h = 0 can hold.

    Below ½, basis pursuit recovers every x with K numbers that are not zero, and only then. Each choice of places and
    signs is a linear program, solved exactly; there are many of them, so A must be small.

    Reference: Cohen, Dahmen & DeVore (2009), *J. American Mathematical Society* 22, 211-231.

    Examples
    --------
    >>> from twofold.signals import null_space_constant
    >>> A = np.random.default_rng(0).normal(size=(12, 20))
    >>> null_space_constant(A) < 0.5                     # one number is always recovered
    True
    """
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or not 1 <= K <= A.shape[1]:
        raise InputError(f"A has shape {A.shape} and K={K!r}; K numbers of a vector (d,) are to be chosen.")
    m, d = A.shape
    choices = itertools.combinations(range(d), K)
    count = math.comb(d, K) * 2 ** (K - 1)
    if count > MOST:
        raise InputError(
            f"K={K} of d={d} means {count:,} linear programs; {MOST:,} are the most. Use a smaller K or A."
        )
    best = 0.0
    for places in choices:
        for signs in itertools.product((1.0, -1.0), repeat=K - 1):
            cost = np.zeros(2 * d)  # h = p − q with p, q ≥ 0 and Σ p + q = 1
            cost[list(places)] = -np.array([1.0, *signs])
            cost[[d + j for j in places]] = np.array([1.0, *signs])
            found = linprog(cost, A_eq=np.vstack([np.hstack([A, -A]), np.ones(2 * d)]), b_eq=[*np.zeros(m), 1.0])
            best = max(best, -found.fun if found.success else 0.0)
    return float(best)
