"""A given dictionary as an estimator: signals in, sparse codes out.

minimize  ‖x − u D‖²  with few numbers in u that are not zero      D (k,d) atoms   U (n,k) codes
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.core.estimator import fitting
from twofold.core.params import Interval
from twofold.core.types import Table
from twofold.signals.dictionaries._base import Dictionary, normalize_atoms
from twofold.signals.sparse_coding.pursuits import check_atoms


class SparseCoder(Dictionary):
    """Sparse codes over a dictionary that is known: orthogonal matching pursuit, many signals at once.

    Parameters
    ----------
    dictionary : array of shape (k, d)
        Atoms as rows; they are scaled to length 1.
    n_nonzero : int or None, default=None
        Atoms a signal at most; None, without `tol`, means a tenth of d.
    tol : float or None, default=None
        Stop when ‖x − code · dictionary‖ is at most this.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        The atoms, of length 1.

    References
    ----------
    Rubinstein, Zibulevsky & Elad (2008), Technion CS-2008-08.

    Examples
    --------
    >>> from twofold import SparseCoder
    >>> from twofold.signals import DCT, Haar
    >>> coder = SparseCoder(np.vstack([DCT().matrix(64), Haar().matrix(64)]), n_nonzero=3).fit()
    >>> n = np.arange(64)
    >>> X = np.stack([np.cos(np.pi * 4 * (2 * n + 1) / 128), (n < 32) - 0.5])
    >>> codes = coder.transform(X)
    >>> (codes != 0).sum(axis=1)                          # a wave and a step are one atom each
    array([1, 1])
    """

    _parameter_constraints: ClassVar[dict] = {
        "dictionary": ["array-like"],
        "n_nonzero": [None, Interval(Integral, 1, None, closed="left")],
        "tol": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, dictionary: Any, *, n_nonzero: int | None = None, tol: float | None = None):
        self.dictionary = dictionary
        self.n_nonzero = n_nonzero
        self.tol = tol

    @fitting
    def fit(self, X: Table | None = None, y: Any = None) -> SparseCoder:
        """Nothing is learned; the atoms are scaled, and X, if given, is checked."""
        D = check_atoms(self.dictionary)
        dtype = D.dtype if D.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        if X is not None:
            blocks = self._blocks(X, reset=True)
            if blocks.shape[1] != D.shape[1]:
                raise InputError(f"X has {blocks.shape[1]} features; the atoms have {D.shape[1]} numbers.")
        self.n_features_in_ = D.shape[1]
        self.components_ = normalize_atoms(D).astype(dtype)
        self.history_: dict = {"objective": [], "seconds": []}
        return self

    def _limits(self) -> tuple[int | None, float | None]:
        return self.n_nonzero, self.tol
