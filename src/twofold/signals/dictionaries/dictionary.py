"""The base of models that code signals over atoms.

X ≈ U D    X (n,d) signals   U (n,k) sparse codes   D (k,d) atoms of length 1
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.estimator import Model
from twofold.core.heldout import SQUARED, Split, square_costs
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator
from twofold.core.types import Table
from twofold.signals.bases.dct import DCT
from twofold.signals.sparse_coding.pursuits import Coding, encode_rows, prepare_coding

ROUNDING = 1e-26, 1e-12  # of ‖X‖²: a smaller error is zero, in double and single precision


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


class LearnedDictionary(Dictionary):
    """A dictionary whose atoms are learned: the base of :class:`KSVD` and :class:`OnlineDictionary`."""

    n_nonzero: int | None
    error: float | None
    relative_error: float | None
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
