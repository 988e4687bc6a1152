"""Latent semantic analysis.

    minimize  ‖A − U Z‖²   over codes U (n,k) and orthonormal directions Z (k,d)
    A (n,d) the counts X, damped (log(1 + x) or x·idf) and with rows of length 1; never centered, so it stays sparse

One sweep:  each block   adds its part of a product with AᵀA
            then once    Z ← leading right singular vectors of A;  the codes are U = A Zᵀ

A new document is folded in by the same product. The solvers are in core/numerics/spectrum.py.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import fingerprint
from twofold.core.estimator import Model, fitting
from twofold.core.heldout import SQUARED, Split, predict_by_axes, square_costs
from twofold.core.numerics.spectrum import Spectrum, spectrum
from twofold.core.params import ITERATIVE, Interval, StrOptions
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table, Weights
from twofold.linalg import fix_signs
from twofold.text.tfidf import Weighing, find_weighing, weigh, weigh_blocks
from twofold.topics._nonnegative import refuse_negative

COMPONENTS = 100


class LSA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """Latent semantic analysis: documents and words in one space of few dimensions.

    Minimizes ``‖A − U Z‖²`` over codes ``U (n,k)`` and orthonormal directions ``Z (k,d)``, where A holds the counts
    damped and every document scaled to length 1. Documents without a common word are close if their words occur
    together elsewhere.

    Parameters
    ----------
    n_components : int or None, default=None
        How many directions; None takes 100, or fewer if the table has fewer independent ones.
    weighting : {"tfidf", "log"} or None, default="tfidf"
        "log" is log(1 + x). "tfidf" is x·(1 + log((1 + n)/(1 + documents with the word))), which lowers the weight of
        words in many documents. None uses X unchanged.
    svd_solver : {"auto", "covariance_eigh", "gram", "power", "randomized", "arpack"}, default="auto"
        As for :class:`PCA`; "auto" chooses by shape.
    tol : float, default=1e-9
        Relative accuracy of the squared singular values in the iterative solvers.
    max_iter : int, default=1000
        Steps of the iterative solvers.
    random_state : int, RandomState, Generator or None, default=None
        The start of the iterative solvers.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        The directions Z, in the order of their singular values; the largest entry of each is positive.
    singular_values_ : ndarray of shape (k,)
    explained_variance_ : ndarray of shape (k,)
        The mean square of each code. The table is not centered, so this is spread about zero.
    explained_variance_ratio_ : ndarray of shape (k,)
        Share of ‖A‖² along each direction.
    idf_ : ndarray of shape (d,)
        The factor of each word; ones unless ``weighting="tfidf"``.
    n_components_ : int
    history_, n_iter_, converged_
        One sweep; the objective is the remaining squared error.

    References
    ----------
    Deerwester, Dumais, Furnas, Landauer & Harshman (1990), *JASIS* 41, 391-407.

    Examples
    --------
    "car" and "engine" never occur together, but both occur with "petrol"; so their documents are close.

    >>> from twofold import LSA, BagOfWords
    >>> texts = ["car and petrol", "engine burns petrol", "petrol", "car", "engine", "rose garden", "garden", "rose"]
    >>> codes = LSA(2).fit_transform(BagOfWords().fit_transform(texts))
    >>> unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    >>> float(round(unit[3] @ unit[4], 6)), float(abs(round(unit[3] @ unit[7], 6)))
    (1.0, 0.0)
    """

    _turns, _heldout_unit = True, SQUARED + " of the weighted table"
    components_: Annotated[np.ndarray, "k d"]
    idf_: Annotated[np.ndarray, "d"]
    n_components_: int
    singular_values_: Annotated[np.ndarray, "k, >= 0"]
    explained_variance_: Annotated[np.ndarray, "k"]
    explained_variance_ratio_: Annotated[np.ndarray, "k"]
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "weighting": [StrOptions({"tfidf", "log"}), None],
        "svd_solver": [StrOptions({"auto", "covariance_eigh", "gram", "power", "randomized", "arpack"})],
        **ITERATIVE,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        weighting: str | None = "tfidf",
        svd_solver: str = "auto",
        tol: float = 1e-9,
        max_iter: int = 1000,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.weighting = weighting
        self.svd_solver = svd_solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @property
    def _allow_negative(self) -> bool:  # type: ignore[override]
        return self.weighting is None

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> LSA:
        """Find the directions of counts; see :meth:`LatentDirichletAllocation.fit` for the arguments."""
        blocks = self._blocks(X, reset=True)
        w = self._weights(blocks, sample_weight)
        k, seed = self._k(blocks.shape), seed_of(self.random_state)

        def sweep(state: dict, t: int) -> loop.Sweep:
            how = find_weighing(blocks, w, self.weighting)
            A = weigh_blocks(blocks, how)
            found = spectrum(
                A, k, solver=self.svd_solver, w=w, center=False, seed=seed, tol=self.tol, max_iter=self.max_iter
            )
            if not np.isfinite(found.total):
                self._refuse(blocks)
            attributes, left = self._attributes(found, how, blocks.dtype)
            return loop.Sweep(attributes, left, done=True, converged=found.converged)

        sign = partial(fingerprint, blocks, w)
        loop.run(self, sweep, {}, max_iter=1, tol=0.0, fitted=dict, X=X, fingerprint=sign, seed=seed)
        return self

    def _attributes(self, spectrum: Spectrum, weighing: Weighing, dtype: np.dtype) -> tuple[dict, float]:
        """The attributes, and the squared error. Without n_components, directions of singular value 0 are left out."""
        values, axes, total = spectrum.values, spectrum.axes * fix_signs(spectrum.axes)[:, None], float(spectrum.total)
        if self.n_components is None:
            nothing = (1e-12 if dtype == np.float64 else 1e-6) * values[0]
            k = max(1, int((values > nothing).sum()))
            values, axes = values[:k], axes[:k]
        attributes = {
            "components_": axes.astype(dtype),
            "singular_values_": np.sqrt(values).astype(dtype),
            "explained_variance_": (values / max(float(spectrum.weight), 1e-300)).astype(dtype),
            "explained_variance_ratio_": (values / total if total > 0 else np.zeros_like(values)).astype(dtype),
            "idf_": weighing.idf,
            "n_components_": len(values),
        }
        return attributes, max(total - float(values.sum()), 0.0)

    def _k(self, shape: tuple[int, int]) -> int:
        limit = min(shape)
        if self.n_components is not None and self.n_components > limit:
            raise InputError(
                f"n_components={self.n_components} must be between 1 and min(n_samples, n_features)={limit} for X of "
                f"shape {shape}. Ask for fewer."
            )
        return min(COMPONENTS, limit) if self.n_components is None else int(self.n_components)

    def _refuse(self, blocks: Blocks, allow_nan: bool | None = None) -> None:
        super()._refuse(blocks, allow_nan)
        if self.weighting is not None:
            refuse_negative("LSA", blocks)

    # ---- using -------------------------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Table) -> Any:
        """The codes U (n,k) of documents: A Zᵀ; zero for an empty document."""
        check_is_fitted(self)
        return self._rowwise(_codes, X, Weighing(self.weighting, self.idf_), self.components_)

    def _hiding(self) -> tuple:
        how = Weighing(self.weighting, self.idf_)
        return _score_hidden_cells, how, np.zeros(self.n_features_in_), self.components_.astype(np.float64)

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Rows of the weighted table from codes: U Z."""
        return self._check_codes(X) @ self.components_


def _codes(X: Any, weighing: Weighing, axes: np.ndarray) -> np.ndarray:
    return np.asarray(weigh(X, weighing) @ axes.T.astype(X.dtype))


def _score_hidden_cells(X: Any, split: Split, weighing: Weighing, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    return square_costs(weigh(X, weighing), split, predict_by_axes, mean, axes)
