"""A given dictionary as an estimator: signals in, sparse codes out.

minimize  ‖x − u D‖²  with few numbers in u that are not zero, or with Σ|u| added      D (k,d) atoms   U (n,k) codes
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.decomposition import sparse_encode

from twofold.core.checks import InputError
from twofold.core.estimator import fitting
from twofold.core.params import Interval, StrOptions
from twofold.core.types import Table
from twofold.signals.dictionaries.dictionary import Dictionary
from twofold.signals.sparse_coding.pursuits import check_atoms

ALGORITHMS = {"omp", "lasso_cd", "lasso_lars", "lars", "threshold"}


class SparseCoder(Dictionary):
    """Sparse codes over a dictionary that is known, of many signals at once. Nothing is learned: no fit is needed.

    Parameters
    ----------
    dictionary : array of shape (k, d)
        Atoms as rows, best of length 1: they are used as they are.
    transform_algorithm : {"omp", "lasso_cd", "lasso_lars", "lars", "threshold"}, default="omp"
        Orthogonal matching pursuit; the lasso, ½‖x − u D‖² + α Σ|u|, by coordinate descent or along its path; least
        angle regression; or correlations with the atoms, shrunk by α.
    transform_n_nonzero_coefs : int or None, default=None
        Atoms a signal at most, for "omp" and "lars"; None, without an error, means a tenth of d.
    transform_alpha : float or None, default=None
        α, for the others; None means 1.
    split_sign : bool, default=False
        Whether codes have two columns an atom: first all that is positive, then all that is negative, without its sign.
    positive_code : bool, default=False
        Whether codes must not be negative; not for "omp" and "lars".
    transform_max_iter : int, default=1000
        Steps at most, for "lasso_cd" and "lasso_lars".
    error : float or None, default=None
        Of "omp": stop when ‖x − u D‖ is at most this.
    relative_error : float or None, default=None
        Of "omp": stop when ‖x − u D‖ is at most this share of ‖x‖.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        The atoms.
    n_components_ : int
        k.

    References
    ----------
    Rubinstein, Zibulevsky & Elad (2008), Technion CS-2008-08.

    Examples
    --------
    >>> from twofold import SparseCoder
    >>> from twofold.signals import DCT, Haar
    >>> coder = SparseCoder(np.vstack([DCT().matrix(64), Haar().matrix(64)]), transform_n_nonzero_coefs=3)
    >>> n = np.arange(64)
    >>> X = np.stack([np.cos(np.pi * 4 * (2 * n + 1) / 128), (n < 32) - 0.5])
    >>> codes = coder.transform(X)
    >>> (codes != 0).sum(axis=1)                          # a wave and a step are one atom each
    array([1, 1])
    """

    _parameter_constraints: ClassVar[dict] = {
        "dictionary": ["array-like"],
        "transform_algorithm": [StrOptions(ALGORITHMS)],
        "transform_n_nonzero_coefs": [None, Interval(Integral, 1, None, closed="left")],
        "transform_alpha": [None, Interval(Real, 0, None, closed="left")],
        "split_sign": ["boolean"],
        "positive_code": ["boolean"],
        "transform_max_iter": [Interval(Integral, 0, None, closed="left")],
        "error": [None, Interval(Real, 0, None, closed="left")],
        "relative_error": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        dictionary: Any,
        *,
        transform_algorithm: str = "omp",
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        split_sign: bool = False,
        positive_code: bool = False,
        transform_max_iter: int = 1000,
        error: float | None = None,
        relative_error: float | None = None,
    ):
        self.dictionary = dictionary
        self.transform_algorithm = transform_algorithm
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.transform_alpha = transform_alpha
        self.split_sign = split_sign
        self.positive_code = positive_code
        self.transform_max_iter = transform_max_iter
        self.error = error
        self.relative_error = relative_error

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    @property
    def components_(self) -> np.ndarray:  # type: ignore[override]
        D = check_atoms(self.dictionary)
        return D if D.dtype in (np.float32, np.float64) else D.astype(np.float64)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_) * (2 if self.split_sign else 1)

    @fitting
    def fit(self, X: Table | None = None, y: Any = None) -> SparseCoder:
        """Nothing is learned; parameters are checked, and X, if given."""
        self._encoder()
        if X is not None:
            self._refuse(self._blocks(X, reset=True))
        self.n_components_, self.n_features_in_ = self.components_.shape
        self.history_: dict = {"objective": [], "seconds": []}
        return self

    def _blocks(self, X: Table, **options: Any) -> Any:
        blocks, d = super()._blocks(X, **options), self.components_.shape[1]
        if blocks.shape[1] != d:
            raise InputError(f"X has {blocks.shape[1]} features; the atoms have {d} numbers. Give signals (n, {d}).")
        return blocks

    def _limits(self) -> tuple[int | None, float | None, float | None]:
        return self.transform_n_nonzero_coefs, self.error, self.relative_error

    def _encoder(self) -> tuple:
        self._validate_params()
        algorithm = self.transform_algorithm
        if self.positive_code and algorithm in ("omp", "lars"):
            raise InputError(
                f'positive_code=True: "{algorithm}" cannot keep codes from being negative. Use lasso_cd, lasso_lars or '
                "threshold."
            )
        if algorithm == "omp":
            return super()._encoder()
        for name in ("error", "relative_error"):
            if (goal := getattr(self, name)) is not None:
                raise InputError(f'{name}={goal!r} is for transform_algorithm="omp"; "{algorithm}" takes no such goal.')
        options = {
            "algorithm": algorithm,
            "n_nonzero_coefs": self.transform_n_nonzero_coefs,
            "alpha": self.transform_alpha,
            "max_iter": self.transform_max_iter,
            "positive": self.positive_code,
        }
        return encode_with, self.components_, options

    def transform(self, X: Table, y: Any = None) -> Any:
        """Codes (n,k), as an array; (n,2k) with `split_sign`."""
        U = self._codes(X)
        return np.hstack([np.maximum(U, 0), np.maximum(-U, 0)]) if self.split_sign else U

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Signals from codes."""
        U, k = self._check_codes(X), len(self.components_)
        return (U[:, :k] - U[:, k:] if self.split_sign else U) @ self.components_


def encode_with(X: np.ndarray, atoms: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    """Codes (n,k) by an algorithm of scikit-learn; its goals are too fine for single precision."""
    if not np.isfinite(X).all():
        return np.full((len(X), len(atoms)), np.nan)  # refused with its place
    return sparse_encode(X.astype(np.float64), atoms.astype(np.float64), **options).astype(X.dtype)
