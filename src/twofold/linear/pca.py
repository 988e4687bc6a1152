"""Principal component analysis.

    minimize  ‖(X − 1mᵀ) − U Z‖²   over codes U (n,k) and orthonormal directions Z (k,d)

One sweep:  each block   adds its part of the moments (or of a product with them)
            then once    Z ← leading eigenvectors of the scatter matrix;  the codes are U = (X − 1mᵀ) Zᵀ

The remaining error is the sum of the discarded eigenvalues (Eckart & Young 1936). Solvers: core/numerics/spectrum.py.
"""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import engine_for, fingerprint, single_blas
from twofold.core.estimator import Rescalable, fitting
from twofold.core.history import History
from twofold.core.numerics.density import Density
from twofold.core.numerics.moments import Moments, column_moments, merge, moments
from twofold.core.numerics.spectrum import SOLVERS, Spectrum, choose, of_moments, spectrum
from twofold.core.params import ITERATIVE, Interval, StrOptions
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.linalg import fix_signs, project_centered
from twofold.linear import _n_components
from twofold.linear._linear_gaussian import code_means, log_density


class State(NamedTuple):
    """Empty before the only sweep, complete after it."""

    values: np.ndarray | None = None  # (k,) variances along the axes
    axes: np.ndarray | None = None  # (k,d)
    mean: np.ndarray | None = None  # (d,)
    scale: np.ndarray | None = None  # (d,)
    total: float = 0.0  # variance in all directions
    noise: float = 0.0  # mean variance of the discarded directions
    weight: float = 0.0
    solver: str = ""
    rows: int = 0


class PCA(Rescalable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _n_components.SizedBySpectrum, Density):
    """Principal component analysis: the k directions that keep the most variance.

    Minimizes ``‖(X − mean) − U Z‖²`` over codes ``U (n,k)`` and orthonormal directions ``Z (k,d)``. The error
    that remains is the sum of the discarded eigenvalues of the covariance.

    Parameters
    ----------
    n_components : int, float, str or None, default=None
        The number of directions, 0 for the mean alone; a share of the variance between 0 and 1; a rule, "mle"
        (Minka), "knee", "gavish-donoho" (optimal hard threshold) or "parallel" (Horn); None keeps all.
    svd_solver : {"auto", "full", "covariance_eigh", "gram", "arpack", "randomized", "power", "em"}, default="auto"
        "auto" chooses by shape. "covariance_eigh" for tall tables and "gram" for wide ones are exact; "full" is exact
        without squaring the condition number; "randomized" (block Krylov) and "arpack" (Lanczos) suit few components
        of large data; "power" is power iteration with deflation, "em" probabilistic PCA's EM without noise.
    scale : bool, default=False
        Divide every column by its standard deviation first, for columns in different units: PCA of correlations.
    whiten : bool, default=False
        Scale the codes to unit variance.
    tol : float, default=1e-9
        Relative accuracy of the eigenvalues in the iterative solvers; 0 means machine precision.
    max_iter : int, default=1000
        Steps of the iterative solvers.
    random_state : int, RandomState, Generator or None, default=None
        The start of the iterative solvers, and the draws of "parallel".

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        The directions Z, largest variance first; the largest entry of each is positive.
    explained_variance_, explained_variance_ratio_, singular_values_ : ndarray of shape (k,)
    mean_, scale_ : ndarray of shape (d,)
        Means that are subtracted from the columns, and their divisors (ones unless ``scale=True``).
    total_variance_ : float
        The variance in all directions.
    noise_variance_ : float
        The mean variance of the discarded directions.
    n_components_ : int
    n_samples_ : int
        Number of rows of X, in all batches.
    svd_solver_ : str
        The solver that ran; "ppca" when X had missing values.
    history_, n_iter_, converged_
        Objective and seconds of the sweeps.

    Notes
    -----
    Missing values (NaN) are handled by fitting :class:`PPCA`; rows with holes are then transformed by least
    squares on their observed cells. Sparse data is centered implicitly. Paths to ``.npy`` or ``.parquet`` files are
    streamed within the budget of :func:`twofold.config`.

    References
    ----------
    Eckart & Young (1936), *Psychometrika* 1, 211-218. Musco & Musco (2015), *NeurIPS*.

    Examples
    --------
    >>> from twofold import PCA, datasets
    >>> X = datasets.digits().data
    >>> pca = PCA(0.9).fit(X)
    >>> pca.n_components_, pca.svd_solver_
    (21, 'covariance_eigh')
    >>> error = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum() / (len(X) - 1)
    >>> bool(np.isclose(error, pca.reconstruction_error()))
    True
    """

    moments_: Moments
    n_samples_: int
    _column_axes: ClassVar[dict[str, tuple[int, ...]]] = {"mean_": (0,), "scale_": (0,)}
    _allow_nan: ClassVar[bool] = True
    _records: ClassVar[tuple] = (Moments,)
    components_: Annotated[np.ndarray, "k d"]
    mean_: Annotated[np.ndarray, "d"]
    n_components_: int
    noise_variance_: float
    total_variance_: float
    svd_solver_: str
    scale_: Annotated[np.ndarray, "d"]
    explained_variance_: Annotated[np.ndarray, "k, >= 0"]
    explained_variance_ratio_: Annotated[np.ndarray, "k"]
    singular_values_: Annotated[np.ndarray, "k, >= 0"]
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [
            Interval(Integral, 0, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            StrOptions(set(_n_components.RULES)),
            None,
        ],
        "svd_solver": [StrOptions(set(SOLVERS))],
        "scale": ["boolean"],
        "whiten": ["boolean"],
        **ITERATIVE,
    }
    _instead: ClassVar[dict[str, str]] = dict.fromkeys(
        ("iterated_power", "n_oversamples", "power_iteration_normalizer"),
        "the randomized solver iterates until it is accurate. Use tol and max_iter.",
    )

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        svd_solver: str = "auto",
        scale: bool = False,
        whiten: bool = False,
        tol: float = 1e-9,
        max_iter: int = 1000,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.svd_solver = svd_solver
        self.scale = scale
        self.whiten = whiten
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    # ---- fitting -----------------------------------------------------------------------------------------------

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> PCA:
        """Find the directions.

        Parameters
        ----------
        X : array, sparse array, frame, path or dask array of shape (n, d)
        y : ignored
        sample_weight : array of shape (n,), optional
            A row of weight 2 counts as two equal rows.
        """
        blocks = self._blocks(X, reset=True, min_rows=2)
        w = self._weights(blocks, sample_weight)
        self.__dict__.pop("moments_", None)
        self._check_k(blocks.shape)
        seed = seed_of(self.random_state)

        def sweep(state: State, t: int) -> loop.Sweep:
            rows, spread = blocks, np.ones(blocks.shape[1])
            if self.scale:
                columns = column_moments(engine_for(blocks), blocks, w)
                if not np.isfinite(columns.mean).all():
                    self._refuse(blocks, allow_nan=not blocks.is_sparse)
                spread = columns.spread
                rows = blocks.divide_columns(spread)
            found = self._spectrum(rows, w, seed)
            converged = found.converged
            if np.isfinite(found.total):
                state = self._state(found, rows, w, seed)
            else:
                state, converged = self._by_ppca(rows, w, seed)
            mean, scale = (state.mean * spread).astype(blocks.dtype), spread.astype(blocks.dtype)
            state = state._replace(mean=mean, scale=scale, rows=blocks.shape[0])
            return loop.Sweep(state, _remaining_variance(state), done=True, converged=converged)

        fitted = self._attributes
        loop.run(
            self, sweep, State(), max_iter=1, tol=0.0, fitted=fitted, X=X, fingerprint=lambda: fingerprint(blocks, w)
        )
        return self

    def partial_fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> PCA:
        """Add a batch of rows: moments merge exactly, so batches give the same result as one `fit` over all rows.

        After `fit`, which keeps no moments, the first batch starts from the beginning.
        """
        first = not hasattr(self, "moments_")
        self._validate_params()
        if first and hasattr(self, "components_"):
            warnings.warn(
                "partial_fit starts from the beginning: fit keeps no moments to add to.", UserWarning, stacklevel=2
            )
        blocks = self._blocks(X, reset=first)
        self._check_k((blocks.shape[1], blocks.shape[1]))
        with single_blas():
            found = moments(engine_for(blocks), blocks, self._weights(blocks, sample_weight))
            if not np.isfinite(found.scatter).all():
                self._refuse(blocks, allow_nan=False)
            both = found if first else merge(self.moments_._replace(scatter=self.moments_.scatter.copy()), found)
            shape = (max(2, round(both.weight)), blocks.shape[1])
            variance = np.diag(both.scatter) / max(both.weight - 1, 1.0)
            spread = np.where(variance > 0, np.sqrt(variance), 1.0) if self.scale else np.ones(len(variance))
            scaled = Moments(both.weight, both.mean, both.scatter / np.outer(spread, spread))
            now = of_moments(scaled, min(self._count_eigenpairs(shape), *shape))
        seed = seed_of(self.random_state)
        state = self._truncate(now, shape, "covariance_eigh", blocks.dtype, variance / spread**2, seed)
        rows = blocks.shape[0] + (0 if first else self.n_samples_)
        state = state._replace(scale=spread.astype(blocks.dtype), rows=rows)
        history = History() if first else History(self.history_)
        history.add(_remaining_variance(state))
        for name, value in self._attributes(state).items():
            setattr(self, name, value)
        self.moments_, self.history_, self.n_iter_, self.converged_ = both, history.columns, len(history), True
        return self

    def _check_k(self, shape: tuple[int, int]) -> None:
        if isinstance(self.n_components, Integral) and self.n_components > min(shape):
            raise InputError(
                f"n_components={self.n_components} must be between 0 and min(n_samples, n_features)={min(shape)} "
                f"for X of shape {shape}. Ask for fewer, or for a share of the variance such as 0.95."
            )

    def _count_eigenpairs(self, shape: tuple[int, int]) -> int:
        """Return the number of eigenpairs to compute before a rule is applied."""
        return max(int(self.n_components), 1) if isinstance(self.n_components, Integral) else min(shape)

    def _spectrum(self, blocks: Blocks, w: np.ndarray | None, seed: int) -> Spectrum:
        k = self._count_eigenpairs(blocks.shape)
        tol = self.tol or (1000 * np.finfo(blocks.dtype).eps) ** 2  # of squared residuals
        return spectrum(blocks, k, solver=self._solver(blocks), w=w, seed=seed, tol=tol, max_iter=self.max_iter)

    def _solver(self, blocks: Blocks) -> str:
        return choose(blocks, self._count_eigenpairs(blocks.shape)) if self.svd_solver == "auto" else self.svd_solver

    def _state(self, pairs: Spectrum, blocks: Blocks, w: np.ndarray | None, seed: int) -> State:
        variance = None
        if self.n_components == "parallel":
            columns = column_moments(engine_for(blocks), blocks, w)
            variance = columns.scatter / max(columns.rows - 1, 1.0)
        shape = (max(2, round(pairs.weight)), blocks.shape[1])
        return self._truncate(pairs, shape, self._solver(blocks), blocks.dtype, variance, seed)

    def _truncate(
        self, pairs: Spectrum, shape: tuple[int, int], solver: str, dtype: np.dtype, variance: Any, seed: int
    ) -> State:
        """Convert a spectrum to the state: choose k by the rule, fix signs, divide by n − 1."""
        degrees = max(pairs.weight - 1.0, 1e-12)
        values, total = pairs.values / degrees, pairs.total / degrees
        k = _n_components.choose(self.n_components, values, total, shape, variance, seed)
        axes = pairs.axes[:k] * fix_signs(pairs.axes[:k])[:, None]
        rest = min(shape) - k
        noise = max(total - values[:k].sum(), 0.0) / rest if rest > 0 else 0.0
        cast = {"values": values[:k].astype(dtype), "axes": axes.astype(dtype), "mean": pairs.mean.astype(dtype)}
        return State(**cast, total=float(total), noise=float(noise), weight=float(pairs.weight), solver=solver)

    def _by_ppca(self, blocks: Blocks, w: np.ndarray | None, seed: int) -> tuple[State, bool]:
        """Fit X with holes: the axes and variances of probabilistic PCA, by EM on the observed cells."""
        from twofold.linear.ppca import PPCA

        n, d = blocks.shape
        self._refuse(blocks, allow_nan=not blocks.is_sparse)  # infinity, in the name of this class
        k = self._count_eigenpairs((n - 1, d - 1)) if self.n_components is None else self.n_components
        if blocks.is_sparse or not isinstance(k, Integral):
            raise InputError(
                f"n_components={k!r} cannot be chosen while X has missing values. Give a number, or fill the holes "
                "with PPCA(k).impute(X) first."
            )
        with loop.quietly():
            found = PPCA(int(k), random_state=seed, max_iter=self.max_iter).fit(blocks, sample_weight=w)
        weight = float(n if w is None else w.sum())
        unbiased = weight / max(weight - 1.0, 1.0)
        values = found.explained_variance_ * unbiased
        noise = found.noise_variance_ * unbiased
        total = float(values.sum() + (d - k) * noise)
        return State(
            values, found.components_, found.mean_, None, total, float(noise), weight, "ppca"
        ), found.converged_

    def _attributes(self, s: State) -> dict:
        values = np.asarray(s.values)
        flat = values <= 10 * np.finfo(values.dtype).eps * max(s.total, 1e-300)
        if self.whiten and flat.any():
            c = int(np.argmax(flat))
            raise InputError(
                f"whiten=True would divide by zero: component {c} has no variance, so at most {c} of the columns "
                "vary independently. Drop constant or repeated columns, or lower n_components."
            )
        return {
            "components_": s.axes,
            "explained_variance_": values,
            "explained_variance_ratio_": values / max(s.total, 1e-300) if s.total > 0 else np.zeros_like(values),
            "singular_values_": np.sqrt(values * max(s.weight - 1.0, 0.0)),
            "mean_": s.mean,
            "scale_": s.scale,
            "total_variance_": s.total,
            "noise_variance_": s.noise,
            "n_components_": len(values),
            "n_samples_": s.rows,
            "svd_solver_": s.solver,
        }

    # ---- using -------------------------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def rescaled(self, scale: Any) -> Self:
        """See :meth:`Rescalable.rescaled`; a batch given to :meth:`partial_fit` starts the copy again."""
        model = super().rescaled(scale)
        model.__dict__.pop("moments_", None)
        return model

    def transform(self, X: Table) -> Any:
        """Compute codes U (n,k): (X − mean)/scale Zᵀ. Rows with holes are fitted on their observed cells."""
        check_is_fitted(self)
        return self._rowwise(_codes, X, self.mean_, self.scale_, self.components_, self._code_units())

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Rows from codes: U Z · scale + mean."""
        U = self._check_codes(X)
        return (U * self._code_units()) @ self.components_ * self.scale_ + self.mean_

    def reconstruction_error(self, X: Table | None = None) -> float:
        """Σ‖x − x̂‖² / (n − 1): of the training rows, where it is the sum of the discarded eigenvalues, or of X."""
        check_is_fitted(self)
        if X is None:
            return max(self.total_variance_ - float(np.sum(self.explained_variance_, dtype=np.float64)), 0.0)
        lost = np.asarray(self._rowwise(_row_errors, X, self.mean_, self.scale_, self.components_), dtype=np.float64)
        return float(lost.sum() / max(len(lost) - 1, 1))

    def get_covariance(self) -> np.ndarray:
        """The covariance (d,d) under probabilistic PCA: that of the axes, and the noise in all other directions."""
        check_is_fitted(self)
        axes, scale = self.components_.astype(np.float64), self.scale_.astype(np.float64)
        beyond = np.maximum(self.explained_variance_.astype(np.float64) - self.noise_variance_, 0.0)
        covariance = (axes.T * beyond) @ axes + self.noise_variance_ * np.eye(axes.shape[1])
        return covariance * np.outer(scale, scale)

    def get_precision(self) -> np.ndarray:
        """The inverse (d,d) of :meth:`get_covariance`, by the axes alone."""
        noise, axes, scale = self._noise(), self.components_.astype(np.float64), self.scale_.astype(np.float64)
        along = 1 / np.maximum(self.explained_variance_.astype(np.float64), noise)
        if len(axes) < axes.shape[1]:
            precision = np.eye(axes.shape[1]) / noise - (axes.T * (1 / noise - along)) @ axes
        else:
            precision = (axes.T * along) @ axes
        return precision / np.outer(scale, scale)

    def _noise(self) -> float:
        """Return the noise variance with a minimum above zero, so that densities stay finite.

        If the axes span all directions, there is no noise. Half the least variance then counts as noise, which does not
        change the covariance and needs no differences of huge numbers.
        """
        check_is_fitted(self)
        k, d = self.components_.shape
        own = self.noise_variance_ if k < d else 0.5 * float(self.explained_variance_.min())
        rounding = np.finfo(np.float64).eps * float(np.abs(self.mean_ / self.scale_).max())
        tiny = 1e-30 if self.components_.dtype == np.float32 else 1e-200
        return max(own, 1e-12 * self.total_variance_, rounding**2, tiny)

    def score_samples(self, X: Table) -> np.ndarray:
        """The log-density of each row under probabilistic PCA with these axes (Tipping & Bishop 1999)."""
        noise, scale = self._noise(), self.scale_.astype(np.float64)
        spread = np.sqrt(np.maximum(self.explained_variance_.astype(np.float64) - noise, 0.0))
        loadings = self.components_.T.astype(np.float64) * spread * scale[:, None]  # (d,k)
        return self._rowwise(log_density, X, self.mean_, loadings, noise * scale**2)

    def _n_parameters(self) -> int:
        k, d = self.components_.shape
        return d * k - k * (k - 1) // 2 + d + 1

    def _code_units(self) -> np.ndarray:
        """Return the size of a unit of each code: 1, or the standard deviation when whitening."""
        ones = np.ones(len(self.components_), self.components_.dtype)
        return np.sqrt(self.explained_variance_) if self.whiten else ones


def _remaining_variance(s: State) -> float:
    """Return the variance outside the axes."""
    return max(s.total - float(np.asarray(s.values).sum(dtype=np.float64)), 0.0)


def _codes(X: Any, mean: np.ndarray, scale: np.ndarray, axes: np.ndarray, unit: np.ndarray) -> np.ndarray:
    U = project_centered(X, mean, axes / scale)
    if not sparse.issparse(X) and np.isnan(U).any():
        # Least squares on the observed cells: the posterior codes of a model with almost no noise.
        holes = np.isnan(X).any(axis=1)
        U[holes] = code_means(X[holes], mean, (axes * scale).T.astype(np.float64), 1e-8 * scale.astype(np.float64) ** 2)
    return U / unit


def _row_errors(X: Any, mean: np.ndarray, scale: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Compute ‖x − x̂‖² of each row, in scaled units, without forming x̂ for sparse rows."""
    U = project_centered(X, mean, axes / scale)
    if sparse.issparse(X):
        m, per = mean.astype(np.float64), 1 / scale.astype(np.float64) ** 2
        square = X.multiply(X) @ per - 2 * (X @ (m * per)) + m @ (m * per)
        return np.maximum(square - (U.astype(np.float64) ** 2).sum(axis=1), 0.0)
    return (((X - mean) / scale - U @ axes) ** 2).sum(axis=1)
