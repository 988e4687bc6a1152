"""K-SVD: a dictionary learned from the signals it codes.

    minimise  ½‖X − U D‖²  with at most s numbers in a row of U that are not zero, and atoms of length 1
    X (n,d) signals, NaN where a number is missing   U (n,k) codes   D (k,d) atoms

One sweep:  each block  codes by orthogonal matching pursuit, if they are better than the ones before
            then once   every atom, with the coefficients that use it, towards the best rank-one fit of what it explains
References: Aharon, Elad & Bruckstein 2006; Rubinstein, Zibulevsky & Elad 2008 (one power step).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from twofold.core import loop
from twofold.core.blocks import Blocks, as_blocks
from twofold.core.checks import InputError
from twofold.core.engine import engine_for, fingerprint, stacked
from twofold.core.estimator import Model, fitting
from twofold.core.seeds import generator, seed_of
from twofold.kernels.ksvd import update_atoms, update_atoms_seen
from twofold.signals.dct import DCT
from twofold.signals.pursuit import codes_of, coding, masked_codes

TWINS = 0.99  # cosine from which two atoms are one
ROUNDING = 1e-26, 1e-12  # of ‖X‖²: an error below is none, in double and single precision


class State(NamedTuple):
    """Atoms, and the codes of all signals as CSR arrays."""

    D: np.ndarray  # (k,d)
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    error: float  # ½‖X − U D‖²

    def codes(self) -> sparse.csr_array:
        return sparse.csr_array((self.data, self.indices, self.indptr), shape=(len(self.indptr) - 1, len(self.D)))


class Signals(NamedTuple):
    """The data, in memory."""

    blocks: Blocks
    X: np.ndarray  # (n,d), 0 where missing
    seen: np.ndarray | None  # (n,d), None if all is seen
    n_nonzero: int | None
    error: float | None
    square: float  # ‖X‖²

    def error_of(self, R: np.ndarray) -> float:
        error = 0.5 * float(np.einsum("ij,ij->", R, R, dtype=np.float64))
        return error if error > ROUNDING[R.dtype == np.float32] * self.square else 0.0


def encode(s: Signals, D: np.ndarray) -> sparse.csr_array:
    """Codes of all signals."""
    if s.seen is not None:
        return masked_codes(D, s.X, ~s.seen, s.n_nonzero, s.error)
    engine = engine_for(s.blocks)
    shared = engine.broadcast(coding(D, s.X.dtype, s.n_nonzero, s.error))
    return stacked(engine.gather(engine.map(codes_of, s.blocks, shared)))


def residuals(s: Signals, codes: sparse.csr_array, D: np.ndarray) -> np.ndarray:
    R = s.X - codes @ D
    return R if s.seen is None else np.where(s.seen, R, 0)


def better(s: Signals, old: State, new: sparse.csr_array) -> tuple[sparse.csr_array, np.ndarray]:
    """For every signal the code with the smaller error, and the residuals: a pursuit is greedy, and may do worse."""
    before, now = old.codes(), residuals(s, new, old.D)
    if s.error is not None or before.nnz == 0:
        return new, now
    then = residuals(s, before, old.D)
    worse = np.einsum("ij,ij->i", now, now) > np.einsum("ij,ij->i", then, then)
    if not worse.any():
        return new, now
    keep, take = (sparse.diags_array(mask.astype(new.dtype), format="csr") for mask in (worse, ~worse))
    mixed = sparse.csr_array(take @ new + keep @ before)
    mixed.eliminate_zeros()
    return mixed, np.where(worse[:, None], then, now)


def exact_atoms(R: np.ndarray, D: np.ndarray, start: np.ndarray, rows: np.ndarray, values: np.ndarray) -> None:
    """Like `update_atoms`, with the leading singular vector itself."""
    for j in np.flatnonzero(np.diff(start)):
        use = slice(start[j], start[j + 1])
        E = R[rows[use]] + values[use, None] * D[j]
        atom = np.linalg.eigh(E.T @ E)[1][:, -1].astype(D.dtype)
        atom *= 1 if atom @ D[j] >= 0 else -1
        values[use] = E @ atom
        R[rows[use]] = E - values[use, None] * atom
        D[j] = atom


def merged(codes: sparse.csr_array, D: np.ndarray) -> sparse.csr_array | None:
    """Codes in which the first of two twins takes over from the second; None if there are no twins."""
    G = D @ D.T
    first, second = np.nonzero(np.triu(np.abs(G), 1) > TWINS)
    if not len(first):
        return None
    second, at = np.unique(second, return_index=True)
    first = first[at]
    moves = np.eye(len(D), dtype=D.dtype)
    moves[second, second] = 0
    moves[second, first] = G[second, first]
    found = sparse.csr_array(codes @ moves)
    found.eliminate_zeros()
    return found


def refresh(D: np.ndarray, R: np.ndarray, X: np.ndarray, codes: sparse.csr_array) -> np.ndarray:
    """Atoms that nobody uses become the signals that are coded worst."""
    lost = np.flatnonzero(np.bincount(codes.indices, minlength=len(D)) == 0)
    D = D.copy()
    for j, i in zip(lost, np.argsort(-np.einsum("ij,ij->i", R, R), kind="stable"), strict=False):
        length = np.linalg.norm(X[i])
        if length > 0 and R[i].any():
            D[j] = X[i] / length
    return D


class KSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """A dictionary that makes given signals sparse: ``X ≈ codes @ components_`` with few numbers a code.

    Parameters
    ----------
    n_components : int or None, default=None
        Atoms; None means twice as many as a signal has numbers, or fewer if there are fewer signals.
    n_nonzero : int or None, default=None
        Atoms a signal at most; None, without `error`, means a tenth of d.
    error : float or None, default=None
        Code each signal with as few atoms as bring ‖x − code · atoms‖ to this or below.
    solver : {"approximate", "exact"}, default="approximate"
        One power step for each atom, or its singular vector.
    init : {"samples", "noise", "dct"} or array of shape (k, d), default="samples"
        Atoms to begin with: signals, noise, cosines (overcomplete if k > d), or given ones.
    tol : float, default=1e-4
        Stop when a sweep lowers the objective by less than this, relatively.
    max_iter : int, default=50
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        The atoms, of length 1.
    history_, n_iter_, converged_
        The objective is ½‖X − U D‖² over what is seen, which never rises; with `error` it is the mean number of atoms a
        signal, which mostly falls.

    Notes
    -----
    The signals are held in memory; NaN marks what is missing, and atoms are compared with what is seen of a signal.
    Atoms that nobody uses, and twins, are replaced by the signals that are coded worst.

    References
    ----------
    Aharon, Elad & Bruckstein (2006), *IEEE Trans. Signal Processing* 54, 4311-4322. Rubinstein, Zibulevsky & Elad
    (2008), Technion CS-2008-08.

    Examples
    --------
    >>> from twofold import KSVD
    >>> rng = np.random.default_rng(0)
    >>> atoms = rng.normal(size=(20, 16))
    >>> codes = np.zeros((1000, 20))
    >>> for row in codes:
    ...     row[rng.choice(20, 2, replace=False)] = rng.normal(size=2)
    >>> model = KSVD(20, n_nonzero=2, random_state=0).fit(codes @ atoms)
    >>> found = np.abs(model.components_ @ (atoms / np.linalg.norm(atoms, axis=1, keepdims=True)).T).max(axis=0)
    >>> bool(np.median(found) > 0.99)                     # the atoms it was made of
    True
    """

    components_: np.ndarray
    _allow_nan: ClassVar[bool] = True
    _allow_sparse: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict] = {
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "n_nonzero": [None, Interval(Integral, 1, None, closed="left")],
        "error": [None, Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"approximate", "exact"})],
        "init": [StrOptions({"samples", "noise", "dct"}), "array-like"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_nonzero: int | None = None,
        error: float | None = None,
        solver: str = "approximate",
        init: Any = "samples",
        tol: float = 1e-4,
        max_iter: int = 50,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.n_nonzero = n_nonzero
        self.error = error
        self.solver = solver
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Any, y: Any = None) -> KSVD:
        """Learn the atoms of signals X (n,d): array, frame, path or dask array; NaN is missing."""
        blocks = self._blocks(X, reset=True)
        signals = self._signals(blocks)
        k = min(2 * blocks.shape[1], blocks.shape[0]) if self.n_components is None else int(self.n_components)
        seed = seed_of(self.random_state)
        D = first_atoms(self.init, k, signals.X, seed)
        none = np.zeros(0, D.dtype), np.zeros(0, np.int32), np.zeros(blocks.shape[0] + 1, np.int64)
        loop.run(
            self,
            lambda state, t: self._sweep(signals, state),
            State(D, *none, np.inf),
            max_iter=self.max_iter,
            tol=self.tol,
            fitted=lambda state: {"components_": state.D},
            X=X,
            fingerprint=lambda: fingerprint(blocks),
            seed=seed,
        )
        return self

    def _signals(self, blocks: Blocks) -> Signals:
        X = np.concatenate([blocks[i] for i in range(len(blocks))])
        holes = np.isnan(X)
        if not np.isfinite(np.where(holes, 0, X)).all():
            self._refuse(blocks)
        X, seen = (np.where(holes, 0, X), ~holes) if holes.any() else (X, None)
        square = float(np.einsum("ij,ij->", X, X, dtype=np.float64))
        return Signals(as_blocks(X), X, seen, self.n_nonzero, self.error, square)

    def _sweep(self, s: Signals, state: State) -> loop.Sweep:
        codes, R = better(s, state, encode(s, state.D))
        by_atom = sparse.csc_array(codes)
        D, values = state.D.copy(), by_atom.data
        uses = by_atom.indptr, by_atom.indices, values
        if s.seen is not None:
            update_atoms_seen(R, s.seen, D, *uses)
        elif self.solver == "exact":
            exact_atoms(R, D, *uses)
        else:
            update_atoms(R, D, *uses)
        codes, R = self._parted(s, sparse.csr_array(by_atom), R, D, state.error)
        error = s.error_of(R)
        objective = error if s.error is None else codes.nnz / len(R)
        D = refresh(D, R, s.X, codes)
        return loop.Sweep(State(D, codes.data, codes.indices, codes.indptr, error), objective, {"error": error})

    def _parted(
        self, s: Signals, codes: sparse.csr_array, R: np.ndarray, D: np.ndarray, before: float
    ) -> tuple[sparse.csr_array, np.ndarray]:
        """One of two twins gives up its uses, so that it can be replaced, unless the error would rise by it."""
        fewer = merged(codes, D)
        if fewer is None:
            return codes, R
        rest = residuals(s, fewer, D)
        return (fewer, rest) if s.error_of(rest) <= before else (codes, R)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> np.ndarray:
        """Codes (n,k), as an array."""
        check_is_fitted(self)
        return self._rowwise(_fold, X, self.components_, self.n_nonzero, self.error)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Signals from codes."""
        return self._check_codes(X) @ self.components_

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean of ½‖x − code · atoms‖² over what is seen."""
        blocks = self._blocks(X)
        X = np.concatenate([blocks[i] for i in range(len(blocks))])
        R = np.nan_to_num(X - self.inverse_transform(self.transform(X)))
        return -0.5 * float(np.einsum("ij,ij->i", R, R, dtype=np.float64).mean())


def first_atoms(init: Any, k: int, X: np.ndarray, seed: int) -> np.ndarray:
    """Atoms to begin with, of length 1."""
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
    length = np.linalg.norm(D, axis=1, keepdims=True)
    return np.ascontiguousarray(D / np.where(length > 0, length, 1), dtype=X.dtype)


def _fold(X: np.ndarray, D: np.ndarray, n_nonzero: int | None, error: float | None) -> np.ndarray:
    holes = np.isnan(X)
    if np.isinf(X).any():
        return np.full((len(X), len(D)), np.nan)  # refused with its place
    D = D.astype(X.dtype)
    if holes.any():
        return masked_codes(D, np.where(holes, 0, X), holes, n_nonzero, error).toarray()
    return codes_of(X, coding(D, X.dtype, n_nonzero, error)).toarray()
