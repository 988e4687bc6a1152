"""Models that code signals over atoms: their base, and the coder over a dictionary that is given.

X ≈ U D    X (n,d) signals   U (n,k) sparse codes   D (k,d) atoms of length 1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import sparse_encode
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.estimator import Model, fitting
from twofold.core.heldout import SQUARED, Split, square_costs
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator
from twofold.core.types import Seed, Table
from twofold.signals.bases import DCT
from twofold.signals.pursuits import Coding, check_atoms, encode_rows, prepare_coding

ROUNDING = 1e-26, 1e-12  # of ‖X‖²: a smaller error is zero, in double and single precision
ALGORITHMS = {"omp", "lasso_cd", "lasso_lars", "lars", "threshold"}


class Dictionary(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """A model whose `components_` are atoms, and whose codes come by orthogonal matching pursuit."""

    _heldout_unit = SQUARED
    components_: np.ndarray

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _limits(self) -> tuple[int | None, float | None, float | None]:
        """When to stop coding a signal: atoms at most, the error that is small enough, and its share of the signal."""
        raise NotImplementedError

    def _coding(self) -> Coding:
        check_is_fitted(self)
        return prepare_coding(self.components_, np.float64, *self._limits())

    def _encoder(self) -> tuple:
        """The function from a block of signals to codes (n,k), and its further arguments."""
        return encode_dense, self._coding(), self._allow_nan

    def transform(self, X: Table) -> Any:
        """Codes (n,k), as an array."""
        return self._codes(X)

    def _codes(self, X: Table) -> Any:
        return self._rowwise(_encode_block, X, *self._encoder())

    def inverse_transform(self, X: Table) -> np.ndarray:
        """Signals from codes."""
        return self._check_codes(X) @ self.components_

    def _hiding(self) -> tuple:
        return square_costs, predict_hidden, self._coding()

    def score(self, X: Table, y: Any = None) -> float:
        """Minus the mean of ½‖x − code · atoms‖² over what is seen."""
        encoder = self._encoder()
        return -0.5 * float(self._rowwise(_square_errors, X, self.components_, *encoder).mean())


@dataclass(eq=False, repr=False)
class LearnedDictionary(Dictionary):
    """A dictionary whose atoms are learned: the base of :class:`KSVD` and :class:`OnlineDictionary`."""

    n_components: int | None = None
    _: KW_ONLY
    n_nonzero: int | None = None
    error: float | None = None
    relative_error: float | None = None
    init: Any = "samples"
    tol: float = 1e-4
    max_iter: int = 50
    random_state: Seed = None

    _allow_sparse: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "n_nonzero": [None, Interval(Integral, 1, None, closed="left")],
        "error": [None, Interval(Real, 0, None, closed="left")],
        "relative_error": [None, Interval(Real, 0, None, closed="left")],
        "init": [StrOptions({"samples", "noise", "dct"}), "array-like"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def _limits(self) -> tuple[int | None, float | None, float | None]:
        return self.n_nonzero, self.error, self.relative_error

    @property
    def _by_error(self) -> bool:
        """True if codes have a given error and the length is minimized."""
        return self.error is not None or self.relative_error is not None


def _encode_block(X: Any, encode: Callable, *state: Any) -> np.ndarray:
    return encode(X.toarray() if hasattr(X, "toarray") else X, *state)


def encode_dense(X: np.ndarray, c: Coding, holes: bool) -> np.ndarray:
    """Codes (n,k) by orthogonal matching pursuit."""
    missing = np.isnan(X)
    if np.isinf(X).any() or (missing.any() and not holes):
        return np.full((len(X), len(c.atoms)), np.nan)  # refused with its place
    if X.dtype != c.atoms.dtype:
        c = c._replace(atoms=c.atoms.astype(X.dtype), gram=c.gram.astype(X.dtype))
    return encode_rows(np.where(missing, 0, X), ~missing if missing.any() else None, c).toarray()


def predict_hidden(x: np.ndarray, split: Split, c: Coding) -> np.ndarray:
    """The hidden numbers of signals, by orthogonal matching pursuit over those that are seen."""
    seen = np.zeros(x.shape, dtype=bool)
    seen[:, split.seen] = ~np.isnan(x[:, split.seen])
    if not np.isfinite(x[seen]).all():
        return np.full((len(x), len(split.hidden)), np.nan)
    return (encode_rows(np.where(seen, x, 0), seen, c) @ c.atoms)[:, split.hidden]


def _square_errors(X: Any, atoms: np.ndarray, encode: Callable, *state: Any) -> np.ndarray:
    X = X.toarray() if hasattr(X, "toarray") else X
    codes = encode(X, *state)
    R = X - codes @ atoms.astype(X.dtype)
    R = np.where(np.isnan(X) & np.isfinite(codes).all(axis=1, keepdims=True), 0, R)
    return np.einsum("ij,ij->i", R, R, dtype=np.float64)


def drop_rounding(error: float, square: float, dtype: np.dtype) -> float:
    """½‖X − U D‖², or 0 if it is within rounding of ‖X‖²."""
    return error if error > ROUNDING[dtype == np.float32] * square else 0.0


def normalize_atoms(D: np.ndarray) -> np.ndarray:
    """Atoms scaled to length 1; those without a length stay."""
    length = np.linalg.norm(D, axis=1, keepdims=True)
    return D / np.where(length > 0, length, 1)


def choose_size(n_components: int | None, shape: tuple[int, int]) -> int:
    """Number of atoms: `n_components`, or twice the numbers of a signal, but at most the number of signals."""
    return min(2 * shape[1], shape[0]) if n_components is None else int(n_components)


def start_atoms(init: Any, k: int, X: np.ndarray, seed: int) -> np.ndarray:
    """Atoms to begin with, of length 1; X holds signals to choose from."""
    rng, d = generator(seed), X.shape[1]
    if not isinstance(init, str):
        D = np.asarray(init, dtype=np.float64)
        if D.shape != (k, d) or not np.isfinite(D).all():
            raise InputError(f"init must be {(k, d)} finite numbers; it has shape {D.shape}. Check it.")
    elif init == "dct":
        D = DCT().matrix(k)[:, :d] if k > d else DCT().matrix(d)[:k]
    elif init == "samples":
        able = np.flatnonzero(X.any(axis=1))
        picked = rng.permutation(able)[:k] if len(able) else np.zeros(0, np.int64)
        D = np.vstack([X[picked], rng.standard_normal((k - len(picked), d))])
    else:
        D = rng.standard_normal((k, d))
    return np.ascontiguousarray(normalize_atoms(D), dtype=X.dtype)


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
