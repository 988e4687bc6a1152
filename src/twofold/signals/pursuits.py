"""Greedy pursuits: a signal as a sum of few atoms, one after the other.

    minimize  ‖x − Σ_a c_a · atom a‖²  with few c_a that are not zero        D (k,d) atoms as rows

Matching pursuit:             the atom that correlates most with the residual gets its correlation
Orthogonal matching pursuit:  it joins the chosen ones, and all their coefficients are fitted again
The atoms may be a basis, which is never written out: correlations are its analysis, an atom is made when it is chosen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular

from twofold.core.checks import InputError, refuse
from twofold.core.data.blocks import Blocks
from twofold.core.data.sources import DenseSource, Source
from twofold.core.engine.local import Engine, single_blas, stack_results
from twofold.core.types import Table
from twofold.kernels.omp import omp, omp_seen
from twofold.signals.bases import Basis

MIN_NEW_PART = 1e-10, 1e-5  # of an atom's square that no chosen atom has, in double and single precision
ROUNDING = 1e-14  # of a signal's length: a shorter residual is zero
SIGNALS_PER_PIECE = 256  # for one thread at a time; fewer than other rows, since a pursuit takes long


class Coding(NamedTuple):
    """A dictionary ready for many signals, and when to stop."""

    atoms: np.ndarray  # (k,d)
    gram: np.ndarray  # (k,k)
    most: int  # atoms a signal
    error: float  # that is small enough
    share: float = 0.0  # of a signal's length that is small enough, too


def check_limits(n_nonzero: int | None, error: float | None, relative_error: float | None) -> None:
    if n_nonzero is not None and not n_nonzero >= 1:
        raise InputError(f"n_nonzero={n_nonzero!r}: a code has one atom or more. Give error for as few as possible.")
    for name, value in (("error", error), ("relative_error", relative_error)):
        if value is not None and not value >= 0:
            raise InputError(f"{name}={value!r}: an error is a number >= 0.")


def prepare_coding(
    dictionary: Any, dtype: Any, n_nonzero: int | None, error: float | None, relative_error: float | None = None
) -> Coding:
    """Check a dictionary and compute its Gram matrix."""
    D = check_atoms(dictionary).astype(dtype)
    k, d = D.shape
    check_limits(n_nonzero, error, relative_error)
    most = limit_atoms(k, d, n_nonzero, error, relative_error)
    with single_blas():  # a second thread of BLAS would spin on and slow the pursuits
        gram = D @ D.T
    return Coding(D, gram, most, float(error or 0.0), float(relative_error or 0.0))


def limit_atoms(k: int, d: int, n_nonzero: int | None, *errors: float | None) -> int:
    """The most atoms of a signal; without any limit a tenth of its numbers."""
    if n_nonzero is None and all(error is None for error in errors):
        n_nonzero = max(1, d // 10)
    return min(k, d, d if n_nonzero is None else n_nonzero)


def check_atoms(dictionary: Any) -> np.ndarray:
    D = np.asarray(dictionary)
    if D.ndim != 2 or 0 in D.shape or D.dtype.kind not in "fiub":
        raise InputError(f"the dictionary has shape {D.shape} of {D.dtype}; atoms are rows of numbers, (k, d).")
    if not np.isfinite(D).all():
        row, column = np.argwhere(~np.isfinite(D))[0]
        raise InputError(f"dictionary[{row}, {column}] is {D[row, column]}; atoms need finite numbers. Clip it.")
    return D


def encode_rows(X: np.ndarray, seen: np.ndarray | None, c: Coding) -> sparse.csr_array:
    """Codes (m,k) of signals (m,d), atoms in ascending order.

    `seen` (m,d) marks the known numbers, and X is 0 elsewhere; None means all.
    """
    X = np.ascontiguousarray(X, dtype=c.atoms.dtype)
    m, dtype = len(X), X.dtype
    index, value, count = np.zeros((m, c.most), np.int32), np.zeros((m, c.most), dtype), np.zeros(m, np.int32)
    squares = np.einsum("ij,ij->i", X, X)
    rounding = squares * (4 * X.shape[1] * np.finfo(dtype).eps ** 2)
    enough = np.maximum(rounding, dtype.type(c.error) ** 2)
    if c.share:
        enough = np.maximum(enough, squares * dtype.type(c.share) ** 2)
    least = dtype.type(MIN_NEW_PART[dtype == np.float32])
    if seen is None:
        omp(c.gram, X @ c.atoms.T, squares, enough, rounding, least, index, value, count)
    else:
        omp_seen(c.atoms, X, seen, enough, rounding, least, index, value, count)
    used = np.arange(index.shape[1]) < count[:, None]
    indptr = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
    codes = sparse.csr_array((value[used], index[used], indptr), shape=(m, len(c.atoms)))
    codes.sort_indices()
    return codes


def cut_into_pieces(source: Source) -> Blocks:
    """The signals of a source in smaller blocks than usual."""
    source.bounds = np.append(np.arange(0, max(source.shape[0], 1), SIGNALS_PER_PIECE), source.shape[0])
    return Blocks(source)


def encode_all(signals: Blocks, c: Coding, seen: np.ndarray | None = None) -> sparse.csr_array:
    """Codes (n,k) of signals in memory, piece by piece."""
    engine = Engine()
    parts = engine.map(encode_rows, signals, signals.rows(seen), engine.broadcast(c))
    return stack_results(engine.gather(parts))


def orthogonal_matching_pursuit(
    dictionary: Any,
    X: Table,
    *,
    n_nonzero: int | None = None,
    error: float | None = None,
    relative_error: float | None = None,
    mask: Any = None,
) -> Any:
    """Sparse codes by orthogonal matching pursuit, of one signal or of many at once.

    Parameters
    ----------
    dictionary : array of shape (k, d), or Basis
        Atoms as rows, of any length; or a basis, such as a `Union` or `Gabor`, which is never written out.
    X : array of shape (d,) or (n, d)
        With a basis: one signal (d,), or one image (h, w) if it has ndim=2.
    n_nonzero : int, optional
        Atoms a signal at most. With neither this nor an error: a tenth of d.
    error : float, optional
        Stop when ‖x − code · dictionary‖ is at most this.
    relative_error : float, optional
        Stop when it is at most this share of ‖x‖.
    mask : bool array like X, optional
        True where a number is missing: only the others are matched, with atoms as long as what is seen of them.

    Returns
    -------
    codes : array (k,) for one signal, sparse array (n, k) for many
        With a basis: of the shape of its coefficients.

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

    A picture of 64 x 64 pixels over twice as many atoms, without a matrix of 8192 x 4096:

    >>> from twofold.signals import DCT, Haar, Union
    >>> both = Union(DCT(2), Haar(2), shape=(64, 64))
    >>> picture = both.synthesize(2 * np.eye(1, 8192, 70)[0] - np.eye(1, 8192, 5000)[0])
    >>> np.flatnonzero(orthogonal_matching_pursuit(both, picture, relative_error=1e-6))
    array([  70, 5000])
    """
    if isinstance(dictionary, Basis):
        if mask is not None:
            raise InputError("mask goes with atoms as an array: give basis.matrix(shape) as the dictionary.")
        return _pursue_orthogonally(Atoms(dictionary, X), n_nonzero, error, relative_error)
    X = np.asarray(X)
    single = X.ndim == 1
    X = np.atleast_2d(X)
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    D = check_atoms(dictionary)
    if X.ndim != 2 or X.shape[1] != D.shape[1]:
        raise InputError(f"X has shape {X.shape}; the atoms have {D.shape[1]} numbers. Give signals (n, {D.shape[1]}).")
    length, seen = np.linalg.norm(D, axis=1), None
    unit = np.where(length > 0, length, 1)
    if mask is not None:
        mask = np.atleast_2d(np.asarray(mask, dtype=bool))
        if mask.shape != X.shape:
            raise InputError(f"mask has shape {mask.shape}, X {X.shape}; they must agree. True marks what is missing.")
        X, seen, unit = np.where(mask, 0, X), ~mask, np.ones(len(D))  # lengths are those of the seen part
    signals = cut_into_pieces(DenseSource(X.astype(dtype, copy=False)))
    refuse("orthogonal_matching_pursuit", signals)
    coding = prepare_coding(D / unit[:, None], dtype, n_nonzero, error, relative_error)
    codes = sparse.csr_array(encode_all(signals, coding, seen).multiply((1 / unit).astype(dtype)[None, :]))
    return codes.toarray()[0] if single else codes


class Atoms:
    """A signal, and atoms that are a basis, or the rows of an array: correlations with all, and one at a time."""

    def __init__(self, dictionary: Any, x: Any):
        self.basis = dictionary if isinstance(dictionary, Basis) else None
        self.x = np.asarray(x, dtype=np.float64)
        if self.basis is None:
            self.array = check_atoms(dictionary).astype(np.float64)
            self.inner, fits = self.array.shape[:1], self.x.shape == self.array.shape[1:]
            needed = f"one signal of {self.array.shape[1]} finite numbers"
            self.lengths = np.maximum(np.linalg.norm(self.array, axis=1), np.finfo(np.float64).tiny)
        else:
            fits = self.x.ndim == self.basis.ndim and self.x.size > 0
            needed = f"one {'signal (d,)' if self.basis.ndim == 1 else 'image (h, w)'} of finite numbers"
            if fits:
                self.inner = self.basis.coefficients(self.x.shape)
                self.lengths = self.basis._lengths(self.x.shape)
        if not fits or not np.isfinite(self.x).all():
            raise InputError(f"x has shape {self.x.shape}; {needed} is needed.")

    def choose(self, residual: np.ndarray) -> tuple[int, np.ndarray, float]:
        """The atom that correlates most, scaled to length 1; and its correlation."""
        found = self.array @ residual if self.basis is None else self.basis.analyze(residual)
        best = int(np.argmax(np.abs(found / self.lengths)))
        atom = self.make(best)
        return best, atom, float(np.vdot(atom, residual))

    def make(self, index: int) -> np.ndarray:
        """One atom, scaled to length 1."""
        if self.basis is None:
            return self.array[index] / self.lengths[index]
        one = np.zeros(self.inner)
        one.flat[index] = 1.0
        atom = self.basis.synthesize(one)
        return atom / max(float(np.linalg.norm(atom)), np.finfo(np.float64).tiny)

    def rescale(self, codes: np.ndarray) -> np.ndarray:
        """Coefficients of the atoms in their own lengths, in the shape of the basis."""
        return codes.reshape(self.inner) / self.lengths


def _pursue_orthogonally(
    atoms: Atoms, n_nonzero: int | None, error: float | None, relative_error: float | None
) -> np.ndarray:
    """Chosen atoms are made orthonormal as they come: Q rows, with atom t = Σ_u R[u, t] Q[u]."""
    check_limits(n_nonzero, error, relative_error)
    x, k = atoms.x, int(np.prod(atoms.inner))
    most = limit_atoms(k, x.size, n_nonzero, error, relative_error)
    whole = float(np.linalg.norm(x))
    enough = max(error or 0.0, (relative_error or 0.0) * whole, ROUNDING * whole)
    Q, R, chosen, residual = np.empty((most, x.size)), np.zeros((most, most)), list[int](), x.ravel().copy()
    while len(chosen) < most and np.linalg.norm(residual) > enough:
        best, atom, _ = atoms.choose(residual.reshape(x.shape))
        s, new = len(chosen), atom.ravel()
        for _ in range(2):  # twice is enough for orthogonality to the last digit
            shares = Q[:s] @ new
            R[:s, s] += shares
            new = new - shares @ Q[:s]
        R[s, s] = np.linalg.norm(new)
        if best in chosen or R[s, s] ** 2 <= MIN_NEW_PART[0]:
            break
        Q[s] = new / R[s, s]
        residual -= (Q[s] @ residual) * Q[s]
        chosen.append(best)
    s, codes = len(chosen), np.zeros(k)
    codes[chosen] = solve_triangular(R[:s, :s], Q[:s] @ x.ravel()) if s else 0.0
    return atoms.rescale(codes)


class Pursuit(NamedTuple):
    """The result of matching pursuit."""

    codes: np.ndarray  # (k,), or of the shape of a basis' coefficients
    residual: np.ndarray  # like x
    errors: np.ndarray  # (steps + 1,) ‖residual‖ before the first step and after each


def matching_pursuit(
    dictionary: Any,
    x: Any,
    *,
    n_steps: int = 100,
    n_nonzero: int | None = None,
    error: float | None = None,
    relative_error: float | None = None,
) -> Pursuit:
    """Matching pursuit of one signal: the same atom may be chosen again.

    Every step lowers the error, ‖r‖² by ⟨r, atom⟩²; yet it may never become zero, and the code may be less sparse than
    it could be.

    Parameters
    ----------
    dictionary : array of shape (k, d), or Basis
        Atoms as rows, of any length; or a basis, such as a `Union` or `Gabor`, which is never written out.
    x : array of shape (d,), or (h, w) for a basis with ndim=2
    n_steps : int, default=100
        Steps at most.
    n_nonzero : int, optional
        Stop when the code has this many different atoms: ‖z‖₀ = K.
    error : float, optional
        Stop when the error is at most this.
    relative_error : float, optional
        Stop when the error is at most this share of ‖x‖.

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
    check_limits(n_nonzero, error, relative_error)
    atoms = Atoms(dictionary, x)
    codes, residual = np.zeros(int(np.prod(atoms.inner))), atoms.x.copy()
    errors = [float(np.linalg.norm(residual))]
    enough = max(error or 0.0, (relative_error or 0.0) * errors[0])
    for _ in range(n_steps):
        if errors[-1] <= enough or (n_nonzero is not None and np.count_nonzero(codes) >= n_nonzero):
            break
        best, atom, correlation = atoms.choose(residual)
        if correlation == 0:
            break
        codes[best] += correlation
        residual = residual - correlation * atom
        errors.append(float(np.linalg.norm(residual)))
    return Pursuit(atoms.rescale(codes), residual, np.array(errors))
