"""The base of PPCA, factor analysis and Bayesian PCA: reading data with holes, EM, and applying the result.

E:  each block  posterior codes given (m, W, ψ)      M:  then once  `_update` of the subclass
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.missing_patterns import Imputer, observe
from twofold.core.engine.local import add, engine_for, fingerprint
from twofold.core.estimator import Rescalable
from twofold.core.history import History
from twofold.core.numerics.density import Density
from twofold.core.numerics.moments import Columns
from twofold.core.numerics.spectrum import spectrum
from twofold.core.params import ITERATIVE, Interval
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table
from twofold.linear._linear_gaussian import Theta, code_means, code_moments, em_step, fill, log_density


class Data(NamedTuple):
    """Data that EM keeps between sweeps, columns scaled."""

    blocks: Blocks
    w: np.ndarray | None
    columns: Columns
    patterns: Rows
    holes: bool
    spread: np.ndarray  # (d,) divisors of the columns


class LatentGaussian(Rescalable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Imputer, Density):
    """Base of the models x = W z + m + ε.

    A subclass defines `_update`, the shared half-step, and `_attributes`, the fitted attributes of a state.
    """

    n_components: int | None
    tol: float
    max_iter: int
    mean_: np.ndarray
    loadings_: np.ndarray
    noise_variance_: Any
    scale_: np.ndarray

    _column_axes: ClassVar[dict[str, tuple[int, ...]]] = {"mean_": (0,), "loadings_": (0,), "scale_": (0,)}
    _allow_nan: ClassVar[bool] = True
    _spare: ClassVar[int] = 1  # directions with noise only
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        **ITERATIVE,
    }

    def _read(self, X: Any, sample_weight: Any, scale: bool = False) -> Data:
        self.__dict__.pop("scale_", None)
        blocks, w, columns, patterns, holes = observe(self, X, sample_weight)
        spread = np.ones(blocks.shape[1])
        if scale:
            spread = columns.spread
            blocks = blocks.divide_columns(spread)
            columns = columns._replace(mean=columns.mean / spread, scatter=columns.scatter / spread**2)
        return Data(blocks, w, columns, patterns, holes, spread)

    def _count_latent(self, shape: tuple[int, int]) -> int:
        """Return the number of latent dimensions; isotropic noise needs a direction of its own."""
        n, d = shape
        most = min(max(1, d - self._spare), n)
        if self.n_components is None:
            return most
        if self.n_components > most:
            why = ", because the noise needs one direction at least" if self._spare else ""
            raise InputError(
                f"n_components={self.n_components} is too many for X of shape {shape} (n_features={d}): at most "
                f"{most}{why}. Ask for fewer."
            )
        return int(self.n_components)

    def _start(self, data: Data, k: int, seed: int) -> Theta:
        """Start EM at the principal axes of the mean-filled table if there are holes, else in random directions."""
        columns, d = data.columns, data.blocks.shape[1]
        level = columns.level(data.blocks.dtype)
        if data.holes:
            found = spectrum(data.blocks, max(k, 1), solver="randomized", w=data.w, seed=seed, tol=1e-3, holes=True)
            values = np.maximum(found.values[:k] / columns.rows, data.columns.floor(data.blocks.dtype))
            rest = max((found.total / columns.rows - values.sum()) / max(d - k, 1), 1e-3 * level)
            return Theta(columns.mean, found.axes[:k].T * np.sqrt(values), np.full(d, rest))
        W = generator(seed).standard_normal((d, k)) * np.sqrt(level / max(k, 1))
        return Theta(columns.mean, W, np.full(d, level))

    def _run_em(self, data: Data, start: Any, seed: int, X: Any) -> None:
        """Run the loop over the rows."""
        blocks, w, _, patterns, holes, _ = data
        engine = engine_for(blocks)
        rows, fixed = blocks.rows(w), engine.broadcast(holes)

        def sweep(theta: Any, t: int) -> loop.Sweep:
            at = Theta(theta.mean, theta.W, theta.psi)
            s = engine.reduce(add, engine.map(em_step, blocks, rows, patterns, fixed, engine.broadcast(at)))
            return self._update(s, theta, data)

        self._run_loop(data, sweep, start, seed, X)

    def _relative_change(self, history: History) -> float:
        return history.gain()

    def _run_loop(self, data: Data, sweep: Callable[[Any, int], loop.Sweep], start: Any, seed: int, X: Any) -> None:
        loop.run(
            self,
            sweep,
            start,
            fitted=lambda theta: self._attributes(theta, data.blocks.dtype, data.spread),
            X=X,
            fingerprint=partial(fingerprint, data.blocks, data.w),
            seed=seed,
            moved=self._relative_change,
        )

    def _update(self, s: Any, theta: Any, data: Data) -> loop.Sweep:
        raise NotImplementedError

    def _attributes(self, theta: Any, dtype: np.dtype, spread: np.ndarray) -> dict:
        raise NotImplementedError

    # ---- applying ----------------------------------------------------------------------------------------------

    def _theta(self) -> Theta:
        check_is_fitted(self)
        mean, W = self.mean_.astype(np.float64), self.loadings_.astype(np.float64)
        return Theta(mean, W, np.float64(self.noise_variance_) * self._column_units() ** 2)

    def _column_units(self) -> np.ndarray:
        """Return the size of a unit of noise in each column."""
        return np.asarray(getattr(self, "scale_", np.ones(len(self.mean_))), dtype=np.float64)

    @property
    def _n_features_out(self) -> int:
        return int(self.loadings_.shape[1])

    def transform(self, X: Table) -> Any:
        """The posterior mean of each row's code, E[z | x] (n,k); missing cells are left out."""
        theta = self._theta()
        return self._rowwise(code_means, X, *theta)

    def posterior(self, X: Table) -> tuple[np.ndarray, np.ndarray]:
        """The posterior of each row's code: means (n,k) and covariances (n,k,k)."""
        theta = self._theta()
        return self._rowwise(code_moments, X, *theta)

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Rows from codes: U Wᵀ + mean."""
        return self._check_codes(X) @ self.loadings_.T + self.mean_

    def score_samples(self, X: Table) -> np.ndarray:
        """The log-density of each row, over its observed cells."""
        theta = self._theta()
        return self._rowwise(log_density, X, *theta)

    def _imputer(self) -> tuple[Any, ...]:
        return fill, *self._theta()

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> np.ndarray:
        """Draw new rows from the model."""
        mean, W, psi = self._theta()
        rng = generator(seed_of(random_state))
        z = rng.standard_normal((n_samples, W.shape[1]))
        noise = rng.standard_normal((n_samples, len(mean))) * np.sqrt(psi)
        return (z @ W.T + mean + noise).astype(self.mean_.dtype)

    def get_covariance(self) -> np.ndarray:
        """The model's covariance, WWᵀ + noise: (d,d)."""
        _, W, psi = self._theta()
        return W @ W.T + np.diag(psi)

    def get_precision(self) -> np.ndarray:
        """The inverse (d,d) of :meth:`get_covariance`, by the matrix inversion lemma."""
        _, W, psi = self._theta()
        V = W / psi[:, None]  # Ψ⁻¹W
        return np.diag(1 / psi) - V @ np.linalg.solve(np.eye(W.shape[1]) + W.T @ V, V.T)

    def _n_parameters(self) -> int:
        d, k = self.loadings_.shape
        noise = np.size(self.noise_variance_)
        return d * k - k * (k - 1) // 2 + d + noise  # minus the rotations of the codes
