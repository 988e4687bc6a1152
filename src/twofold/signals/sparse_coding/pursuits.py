"""Greedy pursuits: a signal as a sum of few atoms, one after the other.

    minimize  ‖x − Σ_a c_a · atom a‖²  with few c_a that are not zero        D (k,d) atoms as rows

Matching pursuit:             the atom that correlates most with the residual gets its correlation
Orthogonal matching pursuit:  it joins the chosen ones, and all their coefficients are fitted anew
References: Mallat & Zhang 1993; Pati, Rezaiifar & Krishnaprasad 1993; Rubinstein, Zibulevsky & Elad 2008.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.checks import InputError, refuse
from twofold.core.data.blocks import Blocks
from twofold.core.data.sources import DenseSource, Source
from twofold.core.engine.local import Engine, single_blas, stacked
from twofold.core.types import Table
from twofold.kernels.omp import omp, omp_seen

NOTHING = 1e-10, 1e-5  # of an atom's square: what is new in an atom that adds nothing, in double and single precision
PIECE = 256  # signals for one thread at a time: a pursuit is dear, so that few of them are work enough


class Coding(NamedTuple):
    """A dictionary ready for many signals, and when to stop."""

    atoms: np.ndarray  # (k,d)
    gram: np.ndarray  # (k,k)
    most: int  # atoms a signal
    tol: float  # error a signal


def prepare_coding(dictionary: Any, dtype: Any, n_nonzero: int | None, tol: float | None) -> Coding:
    """Checked, with its Gram matrix; without a limit a signal gets as many atoms as it has numbers, at most."""
    D = check_atoms(dictionary).astype(dtype)
    k, d = D.shape
    if n_nonzero is not None and not n_nonzero >= 1:
        raise InputError(f"n_nonzero={n_nonzero!r}: a code has one atom or more. Give tol for as few as possible.")
    if tol is not None and not tol >= 0:
        raise InputError(f"tol={tol!r}: an error is a number >= 0.")
    if n_nonzero is None and tol is None:
        n_nonzero = max(1, d // 10)
    most = min(k, d, d if n_nonzero is None else n_nonzero)
    with single_blas():  # its second thread would spin for a while, in the way of the pursuits
        gram = D @ D.T
    return Coding(D, gram, most, 0.0 if tol is None else float(tol))


def check_atoms(dictionary: Any) -> np.ndarray:
    D = np.asarray(dictionary)
    if D.ndim != 2 or 0 in D.shape or D.dtype.kind not in "fiub":
        raise InputError(f"the dictionary has shape {D.shape} of {D.dtype}; atoms are rows of numbers, (k, d).")
    if not np.isfinite(D).all():
        row, column = np.argwhere(~np.isfinite(D))[0]
        raise InputError(f"dictionary[{row}, {column}] is {D[row, column]}; atoms need finite numbers. Clip it.")
    return D


def encode(X: np.ndarray, c: Coding, seen: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of a block of signals (m,d): atoms (m,s), coefficients (m,s), and how many each signal has (m,).

    `seen` (m,d) says which numbers count, and X is 0 elsewhere; None means all.
    """
    X = np.ascontiguousarray(X, dtype=c.atoms.dtype)
    m, dtype = len(X), X.dtype
    index, value, count = np.zeros((m, c.most), np.int32), np.zeros((m, c.most), dtype), np.zeros(m, np.int32)
    squares = np.einsum("ij,ij->i", X, X)
    rounding = squares * (4 * X.shape[1] * np.finfo(dtype).eps ** 2)
    enough = np.maximum(rounding, dtype.type(c.tol) ** 2)
    least = dtype.type(NOTHING[dtype == np.float32])
    if seen is None:
        omp(c.gram, X @ c.atoms.T, squares, enough, rounding, least, index, value, count)
    else:
        omp_seen(c.atoms, X, seen, enough, rounding, least, index, value, count)
    return index, value, count


def as_csr(index: np.ndarray, value: np.ndarray, count: np.ndarray, k: int) -> sparse.csr_array:
    """Codes as a sparse array (m,k), atoms in ascending order."""
    used = np.arange(index.shape[1]) < count[:, None]
    indptr = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
    codes = sparse.csr_array((value[used], index[used], indptr), shape=(len(index), k))
    codes.sort_indices()
    return codes


def cut_into_pieces(source: Source) -> Blocks:
    """A source's signals, cut finer than other rows are."""
    source.bounds = np.append(np.arange(0, max(source.shape[0], 1), PIECE), source.shape[0])
    return Blocks(source)


def encode_all(signals: Blocks, c: Coding, seen: np.ndarray | None = None) -> sparse.csr_array:
    """Codes (n,k) of signals in memory, piece by piece."""
    engine = Engine()
    parts = engine.map(encode_seen, signals, signals.rows(seen), engine.broadcast(c))
    return stacked(engine.gather(parts))


def encode_rows(X: np.ndarray, c: Coding) -> sparse.csr_array:
    return as_csr(*encode(X, c), len(c.atoms))


def orthogonal_matching_pursuit(
    dictionary: Any, X: Table, *, n_nonzero: int | None = None, tol: float | None = None, mask: Any = None
) -> Any:
    """Sparse codes by orthogonal matching pursuit, of one signal or of many at once.

    Parameters
    ----------
    dictionary : array of shape (k, d)
        Atoms as rows, of any length.
    X : array of shape (d,) or (n, d)
    n_nonzero : int, optional
        Atoms a signal at most. With neither this nor `tol`: a tenth of d.
    tol : float, optional
        Stop when ‖x − code · dictionary‖ is at most this.
    mask : bool array like X, optional
        True where a number is missing: only the others are matched, with atoms as long as what is seen of them.

    Returns
    -------
    codes : array (k,) for one signal, sparse array (n, k) for many

    References
    ----------
    Pati, Rezaiifar & Krishnaprasad (1993), *Asilomar Conference*, 40-44. Rubinstein, Zibulevsky & Elad (2008),
    Technion CS-2008-08.

    Examples
    --------
    >>> from twofold.signals import orthogonal_matching_pursuit
    >>> rng = np.random.default_rng(0)
    >>> D = rng.normal(size=(200, 64))
    >>> x = 2 * D[17] - D[120]
    >>> orthogonal_matching_pursuit(D, x, n_nonzero=2)[[17, 120]].round(6)
    array([ 2., -1.])
    """
    X = np.asarray(X)
    single = X.ndim == 1
    X = np.atleast_2d(X)
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    D = check_atoms(dictionary)
    if X.ndim != 2 or X.shape[1] != D.shape[1]:
        raise InputError(f"X has shape {X.shape}; the atoms have {D.shape[1]} numbers. Give signals (n, {D.shape[1]}).")
    if mask is not None:
        codes = encode_masked(D, X, np.atleast_2d(np.asarray(mask, dtype=bool)), n_nonzero, tol)
    else:
        signals = cut_into_pieces(DenseSource(X.astype(dtype, copy=False)))
        refuse("orthogonal_matching_pursuit", signals)
        length = np.linalg.norm(D, axis=1)
        unit = np.where(length > 0, length, 1)
        codes = encode_all(signals, prepare_coding(D / unit[:, None], dtype, n_nonzero, tol))
        codes = sparse.csr_array(codes.multiply((1 / unit).astype(dtype)[None, :]))
    return codes.toarray()[0] if single else codes


def encode_masked(
    D: np.ndarray, X: np.ndarray, mask: np.ndarray, n_nonzero: int | None, tol: float | None
) -> sparse.csr_array:
    """Codes of signals of which only some numbers are seen."""
    if mask.shape != X.shape:
        raise InputError(f"mask has shape {mask.shape}, X {X.shape}; they must be alike. True marks what is missing.")
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    signals = cut_into_pieces(DenseSource(np.where(mask, 0, X).astype(dtype)))
    refuse("orthogonal_matching_pursuit", signals)
    return encode_all(signals, prepare_coding(D, dtype, n_nonzero, tol), ~mask)


def encode_seen(X: np.ndarray, seen: np.ndarray | None, c: Coding) -> sparse.csr_array:
    return as_csr(*encode(X, c, seen), len(c.atoms))


class Pursuit(NamedTuple):
    """What matching pursuit found."""

    codes: np.ndarray  # (k,)
    residual: np.ndarray  # (d,)
    errors: np.ndarray  # (steps + 1,) ‖residual‖ before the first step and after each


def matching_pursuit(dictionary: Any, x: Any, *, n_steps: int = 100, tol: float = 0.0) -> Pursuit:
    """Matching pursuit of one signal: the same atom may be chosen again.

    Every step lowers the error, ‖r‖² by ⟨r, atom⟩²; yet it may never become zero, and the code may be less sparse than
    it could be.

    Parameters
    ----------
    dictionary : array of shape (k, d)
        Atoms as rows, of any length.
    x : array of shape (d,)
    n_steps : int, default=100
    tol : float, default=0.0
        Stop earlier when the error is at most this.

    Returns
    -------
    codes, residual, errors : named tuple
        The coefficients (k,), what is left (d,), and its length before the first step and after each.

    References
    ----------
    Mallat & Zhang (1993), *IEEE Trans. Signal Processing* 41, 3397-3415.

    Examples
    --------
    >>> from twofold.signals import matching_pursuit
    >>> D = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> found = matching_pursuit(D, [0.0, 1.0], n_steps=3)
    >>> found.errors.round(3)                            # it falls, but never to zero
    array([1.   , 0.6  , 0.36 , 0.216])
    """
    D, x = check_atoms(dictionary).astype(np.float64), np.asarray(x, dtype=np.float64)
    if x.shape != D.shape[1:] or not np.isfinite(x).all():
        raise InputError(f"x has shape {x.shape}; one signal of {D.shape[1]} finite numbers is needed.")
    length = np.maximum(np.linalg.norm(D, axis=1), np.finfo(np.float64).tiny)
    D = D / length[:, None]
    codes, residual, errors = np.zeros(len(D)), x.copy(), [float(np.linalg.norm(x))]
    for _ in range(n_steps):
        if errors[-1] <= tol:
            break
        correlations = D @ residual
        best = int(np.argmax(np.abs(correlations)))
        if correlations[best] == 0:
            break
        codes[best] += correlations[best]
        residual = residual - correlations[best] * D[best]
        errors.append(float(np.linalg.norm(residual)))
    return Pursuit(codes / length, residual, np.array(errors))
