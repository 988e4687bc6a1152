"""SVD++: factors that also learn from *which* cells are known, with every factor a distribution.

    x_ij = m + b_i + c_j + ⟨u_i, z_j⟩ + noise        noise ~ N(0, 1/τ)
    (u_i, b_i) ~ N(Σ_{j in Ω_i} y_j /√n_i, 1/λ)      (z_j, c_j) ~ N(Σ_{i in Ω_j} v_i /√n_j, 1/μ)

    y (d,p), v (n,p): what it says about a row that it has a known cell in column j, and the other way round;  p = k + 1

One sweep:  each column  its Gaussian posterior given the moments of the rows
            each row     the same, sides exchanged; then y, v, and all precisions from what is left
What is minimized is the negative evidence bound, so τ, λ, μ are learned and nothing needs tuning or early stopping.
The start: m, b, c as in `Biases`, and factors that have shown on cells put aside that they predict better than b and c
alone. Where cells are few, factors that fit the known cells say nothing of the others, and the bound does not see it,
for it takes rows and columns as independent: then they start at zero, where they stay.

The prior of one side, `Link`, for each of its p columns:

    t_i ~ N(f_iᵀ Y, 1/λ)     f_ij = 1/√n_i where cell (i,j) is known     Y ~ N(0, 1/ρ)
    F (n,d) the scaled pattern, never stored   T (n,p) what is explained   Y (d,p) its coefficients

Given T, the posterior of Y is a ridge regression, solved by conjugate gradients from the last Y; the traces its
precisions need come from the spectrum of FFᵀ, known once and for all by Lanczos quadrature.
References: Koren 2008 (SVD++); Lim & Teh 2007 (variational factorization); Rendle 2013 (both sides' known cells);
Golub & Meurant 2010 (quadrature).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh_tridiagonal

from twofold.completion._auto_ridge import MIN_CELLS, hold_out, is_better
from twofold.completion.biases import Biases
from twofold.completion.cells import MemoryCells
from twofold.completion.model import Factors
from twofold.core import loop
from twofold.core.data.known_cells import Observed, Side
from twofold.core.data.missing_patterns import LOG_2PI
from twofold.core.engine.local import Engine
from twofold.core.estimator import fitting
from twofold.core.history import History
from twofold.core.numerics.alternating_ridge import spread_of
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.kernels import svdpp

MIN_CELLS_PER_LINE = 25  # known cells for each row and column, from which on factors need no trial
TRIAL_SWEEPS = 60  # sweeps of the trial: enough to see where factors lead that only fit
MIN_ERRORS, MAX_LOSS_RATIO = 2, 0.99  # standard errors, share of the loss of biases alone
PROBES, LANCZOS, STEPS = 8, 20, 3  # random vectors and steps of the quadrature; conjugate gradient steps a sweep
MAX_SERIAL_NUMBERS = 4_000_000  # numbers that are added up sooner than they are handed to threads
PRECISION_RANGE = 1e-6, 1e6  # in which precisions may lie, of numbers of size one


# ---- the prior that follows from which cells are known ------------------------------------------------------------


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
    source = side.blocks.source
    if np.asarray(source.indptr)[-1] * Y.shape[1] < MAX_SERIAL_NUMBERS:
        return sum_block(source.read(0, len(side.mass)), np.ascontiguousarray(Y))
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


def update_link(F: Pattern, link: Link, T: np.ndarray, variance: np.ndarray) -> Link:
    """Coefficients and precisions given the rows T (n,p) and their summed posterior variances (p,)."""
    n, d = F.scale.shape[0], len(F.across.mass)
    ridge = (link.strength / link.precision).astype(T.dtype)
    Y = _regress_link(F, link.Y, T, ridge)
    mean = F.apply(Y)
    cost, size = ((T - mean).astype(float) ** 2).sum(axis=0), (Y.astype(float) ** 2).sum(axis=0)
    spread = link.precision * F.nodes[:, None] + link.strength  # (q,p)
    of_fit = (F.shares[:, None] * F.nodes[:, None] / spread).sum(axis=0)  # tr F Cov(Y) Fᵀ
    strength = np.clip(d / (size + _trace_coefficients(F, link)), *PRECISION_RANGE)
    precision = np.clip(n / (cost + variance + of_fit), *PRECISION_RANGE)
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


# ---- the half-steps -----------------------------------------------------------------------------------------------


class Posterior(NamedTuple):
    """Gaussians of one side: (factors, bias) of each row."""

    mean: np.ndarray  # (n,p)
    cov: np.ndarray  # (n,t) packed lower halves


class State(NamedTuple):
    """All that is learned."""

    U: Posterior
    Z: Posterior
    left: float  # expected squared error over the known cells, in units of the spread, as all else here
    tau: float
    rows: Link  # prior of the rows
    cols: Link


class Plan(NamedTuple):
    """What stays the same over the sweeps."""

    cells: Observed
    rows: Pattern
    cols: Pattern
    mean: float
    spread: float


class Moments(NamedTuple):
    """What one side's posterior means to the other: φ = (factors, 1), c its bias."""

    Q: np.ndarray  # (n,t) E[φφᵀ] packed
    F: np.ndarray  # (n,p) E[φ]
    G: np.ndarray  # (n,p) E[c φ]
    h: np.ndarray  # (n,2) E[c], E[c²]


def compute_moments(q: Posterior) -> Moments:
    """The expectations a half-step of the other side needs."""
    p, t = q.mean.shape[1], q.cov.shape[1]
    a, c = np.tril_indices(p)
    b = q.mean[:, -1:]
    Q, F, G = q.cov + q.mean[:, a] * q.mean[:, c], q.mean.copy(), q.mean * b
    G[:, :-1] += q.cov[:, t - p : t - 1]
    G[:, -1:] = b
    h = np.column_stack([b, q.cov[:, -1:] + b * b])
    Q[:, t - p : t - 1] = q.mean[:, :-1]
    Q[:, -1] = F[:, -1] = 1
    return Moments(Q, F, G, h)


def compute_posterior(
    X: sparse.csr_array,
    w: np.ndarray,
    prior: np.ndarray,
    moments: Moments,
    lam: np.ndarray,
    tau: float,
    mean: float,
    spread: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Posterior means, covariances, expected squares and log-determinants of one block of rows.

    Values are taken as (x − mean)/spread.
    """
    (m, p), dtype = prior.shape, moments.F.dtype
    U, V = np.empty((m, p), dtype), np.empty((m, moments.Q.shape[1]), dtype)
    left, logdet = np.empty(m), np.empty(m)
    x = ((X.data - X.data.dtype.type(mean)) / X.data.dtype.type(spread)).astype(dtype, copy=False)
    cells = (X.indptr, X.indices, x, w.astype(dtype, copy=False))
    svdpp.posterior_rows(*cells, *moments, prior, lam.astype(dtype), dtype.type(tau), U, V, left, logdet)
    return U, V, left, logdet


def half_step(side: Side, prior: np.ndarray, *state: Any) -> tuple[Posterior, float, float]:
    """All rows of one side; their sums are taken row by row, so that cuts do not show."""
    engine = Engine()
    shared = [engine.broadcast(s) for s in state]
    parts = engine.gather(engine.map(compute_posterior, side.blocks, side.weights, side.blocks.rows(prior), *shared))
    U, V, left, logdet = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Posterior(U, V), float(left.sum()), float(logdet.sum())


def measure_slow_steps(history: History) -> float:
    """The bound falls quickly, then slowly for hundreds of sweeps: the last step shows more than the trend."""
    return max(10 * history.step(), history.gain())


class SVDPlusPlus(Factors):
    """Biased factors with an implicit term, fitted as distributions: the best of the family on ratings, untuned.

    ``x̂_ij = mean + b_i + c_j + ⟨u_i, z_j⟩`` where a row's factors are drawn towards the sum of what its known columns
    say by being known at all, and a column's likewise. Precisions of noise, factors and implicit terms are learned.

    Parameters
    ----------
    n_components : int or None, default=None
        Factors a row; None means 10, or the columns if fewer. The implicit terms do much of what more factors would.
    normalize : {"row", "column"} or None, default=None
        Fit the z-scores of rows or of columns: as in :class:`ALS`.
    tol : float, default=5e-4
        Stop when ten times the last sweep, and a tenth of the change that the trend of the last ones predicts, lower
        the negative evidence bound by less than this, relatively.
    max_iter : int, default=300
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        Where the factors start.

    Attributes
    ----------
    components_, row_factors_, row_bias_, column_bias_, mean_, normalization_
        As in :class:`ALS`.
    noise_variance_ : float
        1/τ.
    implicit_ : ndarray of shape (d, k+1)
        y: what each column says about the factors and the bias of a row in which it is known.
    precision_ : ndarray of shape (k+1,)
        λ of the rows' factors and bias.
    row_covariance_, column_covariance_ : ndarray of shape (n, (k+1)(k+2)/2), (d, (k+1)(k+2)/2)
        Posterior covariances of the rows' and columns' factors and bias, lower halves row by row.
    history_, n_iter_, converged_

    References
    ----------
    Koren (2008), *KDD*, 426-434. Lim & Teh (2007), *KDD Cup and Workshop*.

    Examples
    --------
    >>> from scipy import sparse
    >>> from twofold import SVDPlusPlus, datasets
    >>> stars = datasets.ratings().ratings
    >>> user, rating = stars["user"].to_numpy(), stars["rating"].to_numpy()
    >>> item = np.unique(stars["item"].to_numpy(), return_inverse=True)[1]
    >>> held = np.random.default_rng(0).random(len(rating)) < 0.1
    >>> X = sparse.csr_array((rating[~held], (user[~held], item[~held])), shape=(500, 300))
    >>> model = SVDPlusPlus(random_state=0).fit(X)
    >>> error = model.predict(user[held], item[held]) - rating[held]
    >>> bool(np.sqrt((error**2).mean()) < 0.85 * rating.std())
    True
    """

    noise_variance_: float
    implicit_: Annotated[np.ndarray, "d k+1"]
    precision_: Annotated[np.ndarray, "k+1"]
    row_covariance_: Annotated[np.ndarray, "n p"]
    column_covariance_: Annotated[np.ndarray, "d p"]
    _default_components: ClassVar[int] = 10

    def __init__(
        self,
        n_components: int | None = None,
        *,
        normalize: str | None = None,
        tol: float = 5e-4,
        max_iter: int = 300,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> SVDPlusPlus:
        """Fit to the known cells of X; see :meth:`ALS.fit` for the arguments."""
        cells, seed = self._observe(X, sample_weight), seed_of(self.random_state)
        k, (plan, biases) = self._rank(cells.shape), make_plan(cells, seed)
        start = choose_start(plan, biases, k, seed)
        fitted = partial(_attributes, plan=plan)
        self._run(cells, lambda state, t: sweep(state, plan), start, seed, X, fitted, moved=measure_slow_steps)
        return self

    def _deviate(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        out = np.empty(len(rows))
        for start in range(0, len(rows), 2**14):
            at = slice(start, start + 2**14)
            U, Z = (
                Posterior(np.column_stack([factors[line], bias[line]]).astype(np.float64), cov[line].astype(np.float64))
                for line, factors, bias, cov in (
                    (rows[at], self.row_factors_, self.row_bias_, self.row_covariance_),
                    (cols[at], self.components_.T, self.column_bias_, self.column_covariance_),
                )
            )
            out[at] = compute_variances(U, Z)
        return np.sqrt(out + self.noise_variance_)

    def _folding(self) -> tuple[Callable, tuple]:
        Z = Posterior(np.column_stack([self.components_.T, self.column_bias_]), self.column_covariance_)
        return fold_rows, (self.implicit_, compute_moments(Z), self.precision_, 1 / self.noise_variance_, self.mean_)


def compute_variances(U: Posterior, Z: Posterior) -> np.ndarray:
    """Var(b + c + ⟨u, z⟩) for independent Gaussians (u, b), (z, c), pair by pair (m,)."""
    m, p = U.mean.shape
    a, c = np.tril_indices(p)
    A, B = np.empty((m, p, p)), np.empty((m, p, p))
    A[:, a, c] = A[:, c, a] = U.cov
    B[:, a, c] = B[:, c, a] = Z.cov
    u, z = U.mean.copy(), Z.mean.copy()
    u[:, -1] = z[:, -1] = 1  # what the other side's bias is multiplied by
    own = np.einsum("ta,tab,tb->t", z, A, z) + np.einsum("ta,tab,tb->t", u, B, u)
    return own + np.einsum("tab,tab->t", A[:, :-1, :-1], B[:, :-1, :-1])


def fold_rows(
    X: sparse.csr_array, Y: np.ndarray, moments: Moments, lam: np.ndarray, tau: float, mean: float
) -> np.ndarray:
    """Posterior means (m,p) of new rows."""
    scale = 1 / np.sqrt(np.maximum(np.diff(X.indptr), 1)).astype(Y.dtype)[:, None]
    return compute_posterior(X, np.ones_like(X.data), scale * sum_block(X, Y), moments, lam, tau, mean)[0]


def make_plan(cells: Observed, seed: int) -> tuple[Plan, Biases]:
    """Make what stays the same over the sweeps, and the biases they start from."""
    rows = link_pattern(cells.rows, cells.cols, generator(seed, 1))
    cols = link_pattern(cells.cols, cells.rows, generator(seed, 2))
    biases = Biases()
    with loop.quietly():
        biases._solve(MemoryCells(cells))
    return Plan(cells, rows, cols, biases.mean_, spread_of(cells)[1]), biases


def choose_start(plan: Plan, biases: Biases, k: int, seed: int) -> State:
    """Small factors, unless those that most of the cells lead to do not predict the others: then biases alone."""
    start, (kept, held) = start_state(plan, biases, k, seed), hold_out(plan.cells, generator(seed, 5))
    if plan.cells.X.nnz > MIN_CELLS_PER_LINE * sum(plan.cells.shape) or len(held.x) < MIN_CELLS:
        return start
    trial, alone = make_plan(kept, seed)
    state = start_state(trial, alone, k, seed)
    for _ in range(TRIAL_SWEEPS):
        state = sweep(state, trial).state
    baseline = alone.mean_ + alone.row_bias_[held.rows] + alone.column_bias_[held.cols]
    before, after = held.losses(baseline), held.losses(compute_cells(state, trial, held.rows, held.cols))
    helps = is_better(before, after, MIN_ERRORS) and after.mean() < MAX_LOSS_RATIO * before.mean()
    return start if helps else start_state(plan, biases, k, seed, 0.0)


def compute_cells(state: State, plan: Plan, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """The model's value in some cells."""
    U, Z = state.U.mean[rows].astype(np.float64), state.Z.mean[cols].astype(np.float64)
    return plan.mean + plan.spread * (np.einsum("tk,tk->t", U[:, :-1], Z[:, :-1]) + U[:, -1] + Z[:, -1])


def start_state(plan: Plan, biases: Biases, k: int, seed: int, factors: float = 0.1) -> State:
    """Small random factors, sure of themselves, and the biases."""
    size, (a, c), cells, p = 0.1, np.tril_indices(k + 1), plan.cells, k + 1

    def draw(bias: np.ndarray, stream: int) -> Posterior:
        count = len(bias)
        mean = generator(seed, stream).normal(size=(count, k + 1)) * factors
        mean[:, -1] = bias / plan.spread
        return Posterior(mean.astype(cells.dtype), np.tile(((a == c) * size**2).astype(cells.dtype), (count, 1)))

    rows, cols = (  # no effect of the pattern yet
        Link(np.zeros((d, p), cells.dtype), np.zeros((n, p), cells.dtype), np.full(p, 5.0), np.full(p, 5.0))
        for n, d in (cells.shape, cells.shape[::-1])
    )
    left = float(cells.rows.mass.sum()) * 0.7
    return State(draw(biases.row_bias_, 3), draw(biases.column_bias_, 4), left, 0.0, rows, cols)


def sweep(state: State, plan: Plan) -> loop.Sweep:
    """Columns, then priors, then rows; and the negative evidence bound."""
    cells, total = plan.cells, float(plan.cells.rows.mass.sum())
    tau = total / state.left
    Z, _, log_z = half_step(
        cells.cols, state.cols.mean, compute_moments(state.U), state.cols.precision, tau, plan.mean, plan.spread
    )
    rows = update_link(plan.rows, state.rows, state.U.mean, _sum_variances(state.U))
    cols = update_link(plan.cols, state.cols, Z.mean, _sum_variances(Z))
    U, left, log_u = half_step(cells.rows, rows.mean, compute_moments(Z), rows.precision, tau, plan.mean, plan.spread)
    bound = 0.5 * (tau * left - total * (np.log(tau) - LOG_2PI) + log_z + log_u - U.mean.size - Z.mean.size)
    bound += compute_divergence(plan.rows, rows, U.mean, _sum_variances(U)) + compute_divergence(
        plan.cols, cols, Z.mean, _sum_variances(Z)
    )
    left = max(left, 1e-6 * total)  # a table without noise has a floor under it
    return loop.Sweep(State(U, Z, left, tau, rows, cols), bound, {"noise": plan.spread**2 / tau})


def _sum_variances(q: Posterior) -> np.ndarray:
    """The posterior variances of all rows, summed (p,)."""
    p = q.mean.shape[1]
    return q.cov[:, np.arange(1, p + 1).cumsum() - 1].sum(axis=0, dtype=np.float64)


def _attributes(state: State, plan: Plan) -> dict:
    """Convert the state of (x − mean)/spread to the data's own unit: biases by it, factors by its root."""
    dtype, p = plan.cells.dtype, state.U.mean.shape[1]
    unit = np.full(p, np.sqrt(plan.spread))
    unit[-1] = plan.spread
    a, c = np.tril_indices(p)
    U, Z = (state.U.mean * unit).astype(dtype), (state.Z.mean * unit).astype(dtype)
    return {
        "components_": np.ascontiguousarray(Z[:, :-1].T),
        "row_factors_": np.ascontiguousarray(U[:, :-1]),
        "row_bias_": U[:, -1].copy(),
        "column_bias_": Z[:, -1].copy(),
        "mean_": plan.mean,
        "noise_variance_": plan.spread**2 / state.tau,
        "implicit_": (state.rows.Y * unit).astype(dtype),
        "precision_": (state.rows.precision / unit**2).astype(dtype),
        "row_covariance_": (state.U.cov * (unit[a] * unit[c])).astype(dtype),
        "column_covariance_": (state.Z.cov * (unit[a] * unit[c])).astype(dtype),
    }
