"""The number of measurements from which a sparse signal can be recovered: measured, and in theory.

    δ = m/n   measurements for each unknown        ρ = K/m   numbers that are not zero for each measurement

A (m,n) Gaussian, x (n,) with K numbers, y = A x. Below ρ*(δ) basis pursuit finds x, above it does not, and for large n
the change is sudden.

Basis pursuit finds x unless it can leave x downhill: with s the signs of x and S their places, it fails if (and, but
for ties, only if)

    an h with A h = 0 has   slope(h) = Σ_S s h + Σ_rest |h|  <  0

so only the signs, the places and the null space matter. `check_least_sum` looks for such an h by alternating
between the two (Douglas & Rachford): either h turns up, or there is a proof w that no slope is below −10⁻⁶ √n ‖h‖.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx
from sklearn.linear_model import LogisticRegression

from twofold.core.checks import InputError
from twofold.core.progress import part, report_share_to
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed
from twofold.signals.pursuits import orthogonal_matching_pursuit

SIGNALS_PER_MATRIX = 20
MAX_DEVIATIONS = 37.0  # standard deviations; beyond, a normal density is 0 in double precision
MAX_STEPS = 2000
ZERO_SLOPE = 1e-6  # times √n ‖h‖


def compute_curve_point(z: float, nonnegative: bool = False) -> tuple[float, float]:
    """δ and ρ of the point of the curve with parameter z > 0; both fall as z grows.

    δ = c φ(z) / (z + c (φ(z) − z Φ(−z)))     ρ = 1 − z Φ(−z) / φ(z)     c = 2, or 1 if the signal is not negative
    """
    sides = 1.0 if nonnegative else 2.0
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    rho = 1 - z * np.sqrt(np.pi / 2) * erfcx(z / np.sqrt(2))
    return float(sides * density / (z + sides * density * rho)), float(rho)


def donoho_tanner(delta: Any, *, nonnegative: bool = False) -> Any:
    """ρ*(δ): below it basis pursuit recovers nearly every signal, above it hardly any (the weak threshold).

    It is exact for Gaussian measurements and n → ∞, and has been observed for many other kinds.

    Parameters
    ----------
    delta : float or array
        m/n, from 0 to 1.
    nonnegative : bool, default=False
        For signals known to have no negative numbers, recovered with that knowledge.

    Returns
    -------
    rho : float or ndarray

    References
    ----------
    Donoho & Tanner (2009), *J. American Mathematical Society* 22, 1-53. Donoho, Maleki & Montanari (2009), *PNAS* 106,
    18914-18919.

    Examples
    --------
    >>> from twofold.signals import donoho_tanner
    >>> np.round(donoho_tanner([0.1, 0.5, 0.9]), 3)
    array([0.189, 0.386, 0.678])
    """
    asked = np.asarray(delta, dtype=np.float64)
    if not ((asked >= 0) & (asked <= 1)).all():
        raise InputError(f"delta={delta!r}: measurements for each unknown are from 0 to 1.")

    def one(d: float) -> float:
        if d <= compute_curve_point(MAX_DEVIATIONS, nonnegative)[0]:
            return 0.0
        return compute_curve_point(
            brentq(lambda z: compute_curve_point(z, nonnegative)[0] - d, 0, MAX_DEVIATIONS), nonnegative
        )[1]

    found = np.array([one(d) for d in asked.ravel()]).reshape(asked.shape)
    return found if asked.ndim else float(found)


class PhaseDiagram(NamedTuple):
    """The shares of signals that were recovered."""

    n: int
    trials: int
    method: str
    delta: np.ndarray  # (p,) m/n, of whole m
    rho: np.ndarray  # (p,q) K/m, of whole K
    success: np.ndarray  # (p,q) share of trials recovered
    curve50: np.ndarray  # (p,) the ρ of half success, by a logistic fit; NaN where the row has no change
    theory: np.ndarray  # (p,) the ρ of the Donoho-Tanner curve


def phase_diagram(
    n: int = 200,
    *,
    delta: Sequence[float] | np.ndarray | None = None,
    rho: Sequence[float] | np.ndarray | None = None,
    trials: int = 20,
    method: str = "basis_pursuit",
    random_state: Seed = None,
    progress: Callable[[float], Any] | None = None,
) -> PhaseDiagram:
    """The share of K-sparse signals of length n recovered from m Gaussian measurements, over δ = m/n and ρ = K/m.

    Places and values of a signal are random, the values normal. Twenty signals share a matrix.

    Parameters
    ----------
    n : int, default=200
        Length of the signals. The change from always to never narrows like 1/√n.
    delta, rho : sequence of float, optional
        The grid; from 0.05 to 0.95 in tenths and twentieths by default. Values of `rho` may be one row (q,) for all, or
        (p,q) a row for each delta.
    trials : int, default=20
        Signals for each point.
    method : {"basis_pursuit", "orthogonal_matching_pursuit"}, default="basis_pursuit"
        The first is decided by proof, either way, not by a solver and a tolerance; the second is told K, and succeeds
        if the error is below a thousandth.
    random_state : int, RandomState, Generator or None, default=None
    progress : callable, optional
        Called with the share done, from 0 to 1.

    Returns
    -------
    PhaseDiagram
        With ``delta``, ``rho``, ``success``, ``curve50`` and ``theory``.

    Notes
    -----
    The theory is for n → ∞. At n = 200 the curve of half success lies about 0.01 above it where δ is small, at n = 1000
    within a few thousandths of it.

    References
    ----------
    Donoho & Tanner (2009), *Phil. Trans. Royal Society A* 367, 4273-4293.

    Examples
    --------
    >>> from twofold.signals import phase_diagram
    >>> found = phase_diagram(100, delta=[0.5], rho=[0.1, 0.3, 0.5, 0.7], random_state=0)
    >>> found.success[0, [0, -1]]
    array([1., 0.])
    >>> bool(abs(found.curve50[0] - found.theory[0]) < 0.1)
    True
    """
    if method not in TRIALS:
        raise InputError(f'method="{method}" is not one of {", ".join(TRIALS)}.')
    if n < 2 or trials < 1:
        raise InputError(f"n={n!r} and trials={trials!r}: a length of 2 and one trial are the least.")
    m, K = _make_grid(n, delta, rho)
    seed, success = seed_of(random_state), np.zeros(K.shape)
    with report_share_to(progress):
        for point, (i, j) in enumerate(itertools.product(*map(range, K.shape))):
            with part(point, point + 1, K.size):
                for start in range(0, trials, SIGNALS_PER_MATRIX):
                    rng = generator(seed, int(m[i]), int(K[i, j]), start)
                    count = min(SIGNALS_PER_MATRIX, trials - start)
                    success[i, j] += TRIALS[method](n, int(m[i]), int(K[i, j]), count, rng)
    success /= trials
    ratio = K / m[:, None]
    curve = np.array([find_half_success(r, s, trials) for r, s in zip(ratio, success, strict=True)])
    return PhaseDiagram(n, trials, method, m / n, ratio, success, curve, donoho_tanner(m / n))


def _make_grid(n: int, delta: Any, rho: Any) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers m (p,) and K (p,q) nearest to the wanted ones."""
    delta = np.arange(0.05, 1, 0.1) if delta is None else np.atleast_1d(np.asarray(delta, dtype=np.float64))
    rho = np.arange(0.05, 1, 0.05) if rho is None else np.atleast_1d(np.asarray(rho, dtype=np.float64))
    for name, values in (("delta", delta), ("rho", rho)):
        if values.size == 0 or not ((values > 0) & (values <= 1)).all():
            raise InputError(f"{name}={values}: numbers above 0 and up to 1 are needed.")
    if delta.ndim > 1 or rho.ndim > 2 or (rho.ndim == 2 and len(rho) != len(delta)):
        raise InputError(f"delta has shape {delta.shape} and rho {rho.shape}; (p,) and (q,) or (p, q) are needed.")
    m = np.clip(np.rint(delta * n), 1, n).astype(np.int64)
    K = np.rint(np.broadcast_to(rho, (len(m), rho.shape[-1])) * m[:, None])
    return m, np.clip(K, 1, m[:, None]).astype(np.int64)


def find_half_success(rho: np.ndarray, success: np.ndarray, trials: int) -> float:
    """The ρ of half success: log odds = a − b ρ, fitted to all points of a row."""
    if not success.min() < 0.5 <= success.max():
        return float("nan")
    middle, width = rho.mean(), rho.std()
    scaled = np.tile((rho - middle) / width, 2)[:, None]
    weight = trials * np.concatenate([success, 1 - success])
    labels = np.repeat([1, 0], len(rho))
    fit = LogisticRegression(C=1e4, tol=1e-8, max_iter=1000).fit(scaled, labels, sample_weight=weight)
    return float(middle - width * fit.intercept_[0] / fit.coef_[0, 0])


def plant_signals(n: int, K: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Signals as columns (n,count), each with K normal numbers at random places."""
    places = np.argsort(rng.random((n, count)), axis=0)[:K]
    X = np.zeros((n, count))
    np.put_along_axis(X, places, rng.standard_normal((K, count)), axis=0)
    return X


def _count_by_least_sum(n: int, m: int, K: int, count: int, rng: np.random.Generator) -> float:
    """The null space of a Gaussian matrix is a random subspace, as is what is orthogonal to it: draw the smaller."""
    kernel = 2 * m > n
    space = np.linalg.qr(rng.standard_normal((n, n - m if kernel else m)))[0]

    def onto_kernel(V: np.ndarray) -> np.ndarray:
        part = space @ (space.T @ V)
        return part if kernel else V - part

    return float(check_least_sum(onto_kernel, np.sign(plant_signals(n, K, count, rng))).sum())


def check_least_sum(onto_kernel: Callable[[np.ndarray], np.ndarray], signs: np.ndarray) -> np.ndarray:
    """Success of basis pursuit for signals with these signs (n,T): 1, 0, or ½ if it is undecided.

    Each step makes a point h of the null space and a w with w = s on S, |w| ≤ 1 elsewhere. Since slope(h) ≥ w·h for
    every h, a w orthogonal to the null space proves success. The few that are open after MAX_STEPS steps (at the
    curve about one in a hundred) are on the edge, and count as half recovered.
    """
    n, count = signs.shape
    outcome, open_ = np.full(count, 0.5), np.arange(count)
    Z = pulled = np.zeros(signs.shape)
    for _ in range(MAX_STEPS):
        W = np.where(signs != 0, signs, np.clip(Z, -1, 1))
        part = onto_kernel(W)
        H = pulled - 2 * part
        slope = np.where(signs != 0, signs * H, np.abs(H)).sum(axis=0)
        proved = np.linalg.norm(part, axis=0) < ZERO_SLOPE * np.sqrt(n)
        decided = proved | (slope < -ZERO_SLOPE * np.sqrt(n) * np.linalg.norm(H, axis=0))
        Z, pulled = H + W, pulled - part
        if decided.any():
            outcome[open_[decided]] = proved[decided]
            open_, Z, pulled, signs = open_[~decided], Z[:, ~decided], pulled[:, ~decided], signs[:, ~decided]
        if not len(open_):
            break
    return outcome


def _count_by_matching(n: int, m: int, K: int, count: int, rng: np.random.Generator) -> float:
    A = rng.standard_normal((m, n))
    A /= np.linalg.norm(A, axis=0)
    X = plant_signals(n, K, count, rng).T
    found = orthogonal_matching_pursuit(A.T, X @ A.T, n_nonzero=K).toarray()
    return float((np.linalg.norm(found - X, axis=1) < 1e-3 * np.linalg.norm(X, axis=1)).sum())


TRIALS = {"basis_pursuit": _count_by_least_sum, "orthogonal_matching_pursuit": _count_by_matching}
