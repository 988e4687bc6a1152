"""A mixture of probabilistic principal component analyzers.

    maximize  Σ_i log Σ_c π_c N(x_i; m_c, W_cW_cᵀ + σ_c²I)      W_c (d,k)

One sweep:  each block  responsibilities r_ic, then each component's posterior codes, weighted by them
            then once   π, and every component's W, m, σ² as in PPCA
Only k×k systems are solved, so the cost of many columns is small; cells may be missing.
Reference: Tipping & Bishop 1999 (mixtures).
"""

from __future__ import annotations

import warnings
from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.missing_patterns import Imputer, Patterns, center_rows, mix_fillings, observe, recall_patterns
from twofold.core.engine.local import add, engine_for, fetch_rows, fingerprint
from twofold.core.estimator import Reorderable, fitting
from twofold.core.history import History
from twofold.core.numerics.density import MixtureDensity
from twofold.core.params import ITERATIVE, Interval
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.linear._linear_gaussian import Theta, codes, collect, expand, fill, log_density, regress

START_ROWS = 10_000  # rows for the starting centers


class State(NamedTuple):
    """The shared factor: one plane per component."""

    weights: np.ndarray  # (c,)
    means: np.ndarray  # (c,d)
    loadings: np.ndarray  # (c,d,k)
    noise: np.ndarray  # (c,)

    def theta(self, c: int) -> Theta:
        return Theta(self.means[c], self.loadings[c], np.full(self.means.shape[1], self.noise[c]))


class MixtureOfPPCA(Reorderable, Imputer, MixtureDensity):
    """A soft clustering into planes: each cluster has its own center, k directions and noise.

    Parameters
    ----------
    n_components : int, default=2
        Components of the mixture.
    n_latent : int or None, default=None
        Latent dimensions of each component, fewer than columns; None means 2, or 1 if there are 2 columns.
    tol : float, default=1e-4
        EM stops when the last sweeps, and a tenth of what their trend says is still to come, raise the mean
        log-likelihood of the rows by at most this.
    max_iter : int, default=500
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        The start: k-means on a sample of the rows.

    Attributes
    ----------
    weights_ : ndarray of shape (c,)
    means_ : ndarray of shape (c, d)
    loadings_ : ndarray of shape (c, d, k)
    noise_variance_ : ndarray of shape (c,)
    history_, n_iter_, converged_
        The objective is the mean negative log-likelihood of the rows.

    References
    ----------
    Tipping & Bishop (1999), *Neural Computation* 11, 443-482.

    Examples
    --------
    >>> from twofold import MixtureOfPPCA
    >>> rng = np.random.default_rng(0)
    >>> planes = [rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8)) + 4 * c for c in (-1, 1)]
    >>> X = np.vstack(planes) + 0.1 * rng.normal(size=(600, 8))
    >>> model = MixtureOfPPCA(2, n_latent=2, random_state=0).fit(X)
    >>> model.weights_.round(2), np.sqrt(model.noise_variance_).round(1)
    (array([0.5, 0.5]), array([0.1, 0.1]))
    """

    _component_axes: ClassVar[dict[str, int]] = {"weights_": 0, "means_": 0, "loadings_": 0, "noise_variance_": 0}
    _allow_nan: ClassVar[bool] = True
    loadings_: Annotated[np.ndarray, "c d k"]
    means_: Annotated[np.ndarray, "c d"]
    noise_variance_: Annotated[np.ndarray, "c, > 0"]
    weights_: Annotated[np.ndarray, "c, >= 0"]
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_latent": [Interval(Integral, 1, None, closed="left"), None],
        **ITERATIVE,
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_latent: int | None = None,
        tol: float = 1e-4,
        max_iter: int = 500,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.n_latent = n_latent
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> MixtureOfPPCA:
        """Fit to rows that may have missing cells; see :meth:`PCA.fit` for the arguments."""
        blocks, w, columns, patterns, holes = observe(self, X, sample_weight)
        n, d = blocks.shape
        if self.n_components > n:
            raise InputError(f"n_components={self.n_components} is more than X has rows, {n}.")
        k = min(2, max(1, d - 1)) if self.n_latent is None else int(self.n_latent)
        if k > max(1, d - 1):
            raise InputError(
                f"n_latent={k} is too many for n_features={d}: at most {max(1, d - 1)}, because the noise needs one "
                "direction at least."
            )
        engine = engine_for(blocks)
        rows, fixed = blocks.rows(w), engine.broadcast(holes)
        level = columns.level(blocks.dtype)

        def sweep(state: State, t: int) -> loop.Sweep:
            parts = engine.map(mixture_step, blocks, rows, patterns, fixed, engine.broadcast(state))
            sums, loglik, total = engine.reduce(add, parts)
            return loop.Sweep(update(state, sums, total, columns.floor(blocks.dtype)), -loglik / total)

        seed = seed_of(self.random_state)
        start = self._start(blocks, w, columns, k, level, seed)
        fitted, sign = partial(_attributes, dtype=blocks.dtype), partial(fingerprint, blocks, w)
        moved = History.remaining_change
        loop.run(self, sweep, start, fitted=fitted, X=X, fingerprint=sign, seed=seed, moved=moved)
        thin = self.weights_ * columns.rows < k + 1
        if thin.any():
            warnings.warn(
                f"component(s) {np.flatnonzero(thin).tolist()} of MixtureOfPPCA hold fewer than {k + 1} rows, too few "
                f"for n_latent={k}. Ask for fewer components or latent dimensions.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _start(self, blocks: Any, w: np.ndarray | None, columns: Any, k: int, level: float, seed: int) -> State:
        """Start with centers by k-means on evenly spaced rows, holes at column means, and small random loadings."""
        from sklearn.cluster import KMeans

        n, d = blocks.shape
        chosen = np.unique(np.linspace(0, n - 1, min(n, START_ROWS)).astype(int))
        rows = fetch_rows(engine_for(blocks), blocks, chosen)
        sample = (rows.toarray() if sparse.issparse(rows) else rows).astype(np.float64)
        sample = np.where(np.isnan(sample), columns.mean, sample)
        weights = None if w is None else w[chosen]
        means = KMeans(self.n_components, n_init=3, random_state=seed % 2**32).fit(sample, sample_weight=weights)
        rng = generator(seed)
        loadings = rng.standard_normal((self.n_components, d, k)) * np.sqrt(0.1 * level / k)
        share = np.full(self.n_components, 1.0 / self.n_components)
        spread = max(means.inertia_ / len(sample) / d, 1e-3 * level)
        return State(share, means.cluster_centers_, loadings, np.full(self.n_components, spread))

    # ---- using -------------------------------------------------------------------------------------------------

    def _state(self) -> State:
        check_is_fitted(self)
        fields = (self.weights_, self.means_, self.loadings_, self.noise_variance_)
        return State(*(a.astype(np.float64) for a in fields))

    def _joint(self) -> tuple:
        return joint_density, self._state()

    def _imputer(self) -> tuple[Any, ...]:
        return _fill, self._state()

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw new rows and their components, sorted by component; see :meth:`Mixture.sample`."""
        s = self._state()
        rng, label = self._draw_components(s.weights, n_samples, random_state)
        z = rng.standard_normal((n_samples, s.loadings.shape[2]))
        noise = rng.standard_normal((n_samples, s.means.shape[1])) * np.sqrt(s.noise[label])[:, None]
        rows = np.einsum("ik,idk->id", z, s.loadings[label], optimize=True) + s.means[label] + noise
        return rows.astype(self.means_.dtype), label

    def _n_parameters(self) -> int:
        c, d, k = self.loadings_.shape
        return c * (d * k - k * (k - 1) // 2 + d + 1) + c - 1


def mixture_step(X: Any, w: np.ndarray | None, kept: Patterns | None, holes: bool, s: State) -> tuple:
    """The rows' half-step: compute responsibilities and each component's sums."""
    w = np.ones(X.shape[0]) if w is None else w
    patterns = recall_patterns(X, kept)
    rows = [center_rows(X, patterns, s.means[c]) for c in range(len(s.weights))]
    joint = np.column_stack([codes(x, w, patterns, s.theta(c)).logp + np.log(s.weights[c]) for c, x in enumerate(rows)])
    logp = logsumexp(joint, axis=1)
    share = np.exp(joint - logp[:, None]) * w[:, None]
    sums = []
    for c, x in enumerate(rows):
        weight = np.ascontiguousarray(share[:, c])
        sums.append(collect(x, weight, patterns, holes, s.theta(c), codes(x, weight, patterns, s.theta(c))))
    return tuple(sums), float(logp @ w), float(w.sum())


def update(s: State, sums: tuple, total: float, floor: float) -> State:
    """The shared half-step. A component of almost no weight does not change."""
    weights = np.maximum(np.array([part.rows for part in sums]) / total, 1e-12)
    means, loadings, noise = s.means.copy(), s.loadings.copy(), s.noise.copy()
    for c, part in enumerate(sums):
        if part.rows < 1e-6:
            continue
        W, shift, left, weight = regress(part)
        W, shift = expand(W, shift, part)
        means[c], loadings[c] = s.means[c] + shift, W
        noise[c] = max(left.sum() / max(weight.sum(), 1e-300), floor)
    return State(weights / weights.sum(), means, loadings, noise)


def joint_density(X: Any, s: State) -> np.ndarray:
    """Compute log π_c N(x; …): (n,c)."""
    parts = [log_density(X, *s.theta(c)) + np.log(s.weights[c]) for c in range(len(s.weights))]
    return np.column_stack(parts)


def _fill(X: np.ndarray, s: State) -> tuple[np.ndarray, np.ndarray]:
    """Fill holes with their expectation over components; also return its standard deviation."""
    parts = (fill(X, *s.theta(c)) for c in range(len(s.weights)))
    share = softmax(joint_density(X, s), axis=1)
    filled, std = mix_fillings(X, share, ((filled, std**2) for filled, std in parts))
    return np.where(np.isnan(X), filled, X).astype(X.dtype), std.astype(X.dtype)


def _attributes(s: State, dtype: np.dtype) -> dict:
    names = ("weights_", "means_", "loadings_", "noise_variance_")
    return {name: value.astype(dtype) for name, value in zip(names, s, strict=True)}
