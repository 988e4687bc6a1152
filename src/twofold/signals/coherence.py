"""The distance of a dictionary from a basis, the codes that can be recovered, and the sparsest one among all.

D (k,d) atoms as rows; for sensing A (m,d) the atoms are its columns
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from twofold.core.checks import InputError
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed
from twofold.signals.pursuits import Atoms, check_limits

BLOCK_ATOMS = 1024  # whose products with all others are computed together
MAX_PROGRAMS = 20_000  # linear ones
MAX_CHOICES = 200_000  # of columns or atoms
MIN_SINGULAR_VALUE = 1e-10  # of the largest: smaller is a direction that the atoms do not have


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
    for start in range(0, len(D), BLOCK_ATOMS):
        G = np.abs(D[start : start + BLOCK_ATOMS] @ D.T)
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


class Isometry(NamedTuple):
    """Bounds of a restricted isometry constant δ_K."""

    lower: float
    upper: float


def rip_estimate(A: Any, K: int, *, n_trials: int = 200, random_state: Seed = None) -> Isometry:
    """Bounds of the restricted isometry constant δ_K of a sensing matrix A (m,d).

    δ_K is the largest |‖A x‖² − 1| over x of length 1 with at most K numbers that are not zero. To know it one would
    have to look at all choices of K columns, as :func:`rip_constant` does. The lower bound looks at some, drawn at
    random. The upper one is by Gershgorin: the products of a column with the K − 1 that are most like it, and how far
    its own square is from 1; for columns of length 1 it is μ (K − 1) at most, with the coherence μ.

    Parameters
    ----------
    A : array of shape (m, d)
    K : int
    n_trials : int, default=200
        Choices of columns that are tried.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    lower, upper : named tuple of float

    Examples
    --------
    >>> from twofold.signals import rip_estimate
    >>> A = np.random.default_rng(0).normal(size=(100, 400)) / 10
    >>> lower, upper = rip_estimate(A, 5, random_state=0)
    >>> 0.3 < lower < 0.9 < upper < 2
    True
    """
    A = _check_columns(A, K)
    rng, worst = generator(seed_of(random_state)), 0.0
    for _ in range(n_trials):
        chosen = A[:, rng.choice(A.shape[1], K, replace=False)]
        worst = max(worst, _find_deviation((chosen.T @ chosen)[None]))
    most = 0.0
    for start in range(0, A.shape[1], BLOCK_ATOMS):
        G = A[:, start : start + BLOCK_ATOMS].T @ A
        rows = np.arange(len(G))
        own = np.abs(G[rows, start + rows] - 1)
        G[rows, start + rows] = 0
        most = max(most, float((own + np.sort(np.abs(G), axis=1)[:, A.shape[1] - K + 1 :].sum(axis=1)).max()))
    return Isometry(worst, max(most, worst))


def rip_constant(A: Any, K: int) -> float:
    """δ_K itself, the restricted isometry constant of a small matrix A (m,d): all choices of K columns are tried.

    If δ_2K < 1/3, basis pursuit recovers every x with K numbers that are not zero.

    Reference: Candès & Tao (2005), *IEEE Trans. Information Theory* 51, 4203-4215; Foucart & Rauhut (2013), *A
    Mathematical Introduction to Compressive Sensing*, Theorem 6.9.

    Examples
    --------
    Of two columns of length 1 it is their cosine:

    >>> from twofold.signals import rip_constant
    >>> A = np.array([[1.0, 0.6], [0.0, 0.8]])
    >>> round(rip_constant(A, 2), 12), round(rip_constant(A, 1), 12)
    (0.6, 0.0)
    """
    A = _check_columns(A, K)
    G = A.T @ A
    return max(_find_deviation(G[one[:, :, None], one[:, None, :]]) for one in iterate_choices(len(G), K, "columns"))


def _check_columns(A: Any, K: int) -> np.ndarray:
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or not 1 <= K <= A.shape[1]:
        raise InputError(f"A has shape {A.shape} and K={K!r}; K columns of a matrix (m, d) are to be looked at.")
    return A


def _find_deviation(grams: np.ndarray) -> float:
    """The largest distance from 1 of the eigenvalues of Gram matrices (b,K,K)."""
    return float(np.abs(np.linalg.eigvalsh(grams) - 1).max())


def iterate_choices(n: int, K: int, noun: str) -> Iterator[np.ndarray]:
    """All choices of K among n, some at a time: (b,K)."""
    count = math.comb(n, K)
    if count > MAX_CHOICES:
        raise InputError(f"K={K} of {n} {noun} are {count:,} choices; {MAX_CHOICES:,} are the most. Use a smaller K.")
    choices = itertools.combinations(range(n), K)
    while some := list(itertools.islice(choices, BLOCK_ATOMS)):
        yield np.array(some, dtype=np.intp).reshape(len(some), K)


@dataclass(frozen=True)
class Certificate:
    """What is known about codes with K atoms over a dictionary.

    Attributes
    ----------
    K : int
    coherence : float
        μ.
    bound : float
        ½ (1 + 1/μ): below it both pursuits find every code.
    isometry : float
        δ_2K, or where there are too many choices to look at, what it is at most: the lesser of μ (2K − 1) and the sum
        of cosines.
    exact : bool
        Whether δ_2K was computed from all choices of 2K atoms.
    """

    K: int
    coherence: float
    bound: float
    isometry: float
    exact: bool

    @property
    def reasons(self) -> list[str]:
        """Conditions that hold; each suffices for codes of K atoms to be the sparsest, and found by basis pursuit."""
        found = []
        if self.bound > self.K:
            found.append(f"K = {self.K} < ½(1 + 1/μ) = {self.bound:.4g}: orthogonal matching pursuit finds it too")
        if self.isometry < 1 / 3:
            how = "" if self.exact else "≤ "
            found.append(f"δ_{2 * self.K} {how}= {self.isometry:.4g} < 1/3".replace("≤ =", "≤"))
        return found

    @property
    def certain(self) -> bool:
        return bool(self.reasons)


def certify_recovery(dictionary: Any, K: int) -> Certificate:
    """The conditions under which every signal of K atoms (k,d) is sure to be coded with them.

    The chain: δ_s ≤ μ (s − 1) for atoms of length 1 with coherence μ; δ_2K < 1/3 is enough for basis pursuit; and so is
    K < ½ (1 + 1/μ), for orthogonal matching pursuit as well. From 3 μ K ≤ 1 follows the last. For few atoms δ_2K is
    computed from all choices, which can be certain where the coherence is not.

    Parameters
    ----------
    dictionary : array of shape (k, d)
        Atoms as rows; only their directions matter.
    K : int

    Returns
    -------
    Certificate
        With ``certain``, ``reasons``, ``coherence``, ``bound``, ``isometry``, ``exact``.

    References
    ----------
    Donoho & Elad (2003), *PNAS* 100, 2197-2202. Foucart & Rauhut (2013), *A Mathematical Introduction to Compressive
    Sensing*, Theorem 6.9.

    Examples
    --------
    >>> from twofold.signals import DCT, certify_recovery
    >>> both = np.vstack([np.eye(64), DCT().matrix(64)])
    >>> certify_recovery(both, 3).certain, certify_recovery(both, 4).certain
    (True, False)
    >>> certify_recovery(both, 1).reasons[1]
    'δ_2 = 0.1767 < 1/3'
    """
    D = _check_atoms(dictionary)
    if not 1 <= K <= len(D):
        raise InputError(f"K={K!r} must be from 1 to {len(D)}, the number of atoms.")
    mu, twice = coherence(D), min(2 * K, len(D))
    exact = math.comb(len(D), twice) <= MAX_CHOICES
    delta = rip_constant(D.T, twice) if exact else min(mu * (twice - 1), babel(D, twice - 1))
    return Certificate(int(K), mu, recovery_bound(D), delta, exact)


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
    A = _check_columns(A, K)
    m, d = A.shape
    choices = itertools.combinations(range(d), K)
    count = math.comb(d, K) * 2 ** (K - 1)
    if count > MAX_PROGRAMS:
        raise InputError(f"K={K} of d={d} is {count:,} linear programs, more than {MAX_PROGRAMS:,}. Use a smaller K.")
    best = 0.0
    for places in choices:
        for signs in itertools.product((1.0, -1.0), repeat=K - 1):
            cost = np.zeros(2 * d)  # h = p − q with p, q ≥ 0 and Σ p + q = 1
            cost[list(places)] = -np.array([1.0, *signs])
            cost[[d + j for j in places]] = np.array([1.0, *signs])
            found = linprog(cost, A_eq=np.vstack([np.hstack([A, -A]), np.ones(2 * d)]), b_eq=[*np.zeros(m), 1.0])
            best = max(best, -found.fun if found.success else 0.0)
    return float(best)


def sparsest_code(
    dictionary: Any, x: Any, *, error: float | None = None, relative_error: float | None = None
) -> np.ndarray:
    """The code with the fewest atoms, found by trying all choices: for small dictionaries, and to test pursuits.

    Parameters
    ----------
    dictionary : array of shape (k, d)
        Atoms as rows, of any length.
    x : array of shape (d,)
    error : float, optional
        The length of x − code · dictionary that is small enough.
    relative_error : float, optional
        The same as a share of ‖x‖. With neither: 1e-9.

    Returns
    -------
    codes : array of shape (k,)

    References
    ----------
    Natarajan (1995), *SIAM J. Computing* 24, 227-234.

    Examples
    --------
    Matching pursuit takes three atoms for this, the one between the others first:

    >>> from twofold.signals import sparsest_code
    >>> D = np.array([[1.0, 0.0], [0.0, 1.0], [0.5**0.5, 0.5**0.5]])
    >>> sparsest_code(D, [2.0, 1.0]).round(12)
    array([2., 1., 0.])
    """
    check_limits(None, error, relative_error)
    atoms = Atoms(dictionary, x)
    if atoms.basis is not None:
        raise InputError("all choices of atoms need them as an array: give basis.matrix(shape).")
    D, x = atoms.array / atoms.lengths[:, None], atoms.x
    whole = float(np.linalg.norm(x))
    share = 1e-9 if error is None and relative_error is None else relative_error or 0.0
    enough = max(error or 0.0, share * whole)
    codes, K = np.zeros(len(D)), 0
    while min(D.shape) >= K:
        best, chosen = np.inf, np.zeros(0, np.intp)
        for some in iterate_choices(len(D), K, "atoms") if K else [np.zeros((1, 0), np.intp)]:
            left = _fit_errors(D[some], x)
            if left.min() < best:
                best, chosen = float(left.min()), some[int(left.argmin())]
        if best <= enough:
            codes[chosen] = np.linalg.lstsq(D[chosen].T, x, rcond=None)[0]
            return codes / atoms.lengths
        K += 1
    raise InputError(
        f"no code comes within {enough:.3g} of x: the atoms leave {best:.3g} of it. Allow more, or give more atoms."
    )


def _fit_errors(chosen: np.ndarray, x: np.ndarray) -> np.ndarray:
    """‖x − its best fit‖ for some choices of atoms (b,K,d)."""
    if not chosen.shape[1]:
        return np.full(len(chosen), np.linalg.norm(x))
    _, values, axes = np.linalg.svd(chosen, full_matrices=False)
    axes = axes * (values > MIN_SINGULAR_VALUE * values[:, :1])[..., None]
    rest = x - np.einsum("bK,bKd->bd", axes @ x, axes)
    return np.linalg.norm(rest, axis=1)
