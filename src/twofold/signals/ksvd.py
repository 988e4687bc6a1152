"""K-SVD: a dictionary learned from the signals it codes.

    minimize  ½‖X − U D‖²  with at most s numbers in a row of U that are not zero, and atoms of length 1
    X (n,d) signals, NaN where a number is missing   U (n,k) codes   D (k,d) atoms

One sweep:  each block  codes by orthogonal matching pursuit
            then once   every atom, with the coefficients that use it, towards the best rank-one fit of what it explains
A pursuit is greedy and may do worse than the one before: then more sweeps follow at once, until the error is lower.
Codes that are better than those of the pursuit are not kept, since atoms that need them would serve no new signal.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core import loop
from twofold.core.data.blocks import Blocks
from twofold.core.data.sources import DenseSource
from twofold.core.engine.local import fingerprint
from twofold.core.estimator import fitting
from twofold.core.numerics.extrapolation import DRAWS, SMALL, choose_start
from twofold.core.params import StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Table, Weights
from twofold.kernels.ksvd import update_atoms, update_atoms_seen
from twofold.signals.dictionary import LearnedDictionary, choose_size, drop_rounding, start_atoms
from twofold.signals.pursuits import cut_into_pieces, encode_all, prepare_coding

TWIN_COSINE = 0.99  # of two atoms, from which one is replaced
MAX_REPEATED_SWEEPS = 5  # until the error is lower again


class State(NamedTuple):
    """Atoms, and the codes of all signals as CSR arrays."""

    D: np.ndarray  # (k,d)
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    error: float  # ½‖X − U D‖²


class Signals(NamedTuple):
    """The data, in memory."""

    blocks: Blocks
    X: np.ndarray  # (n,d), 0 where missing
    seen: np.ndarray | None  # (n,d), None if all is seen
    root: np.ndarray | None  # (n,) √w, None if all weigh the same
    limits: tuple[int | None, float | None, float | None]  # atoms a signal, error, share of its length
    square: float  # Σ w ‖x‖²

    def error_of(self, R: np.ndarray) -> float:
        return drop_rounding(0.5 * float(np.einsum("ij,ij->", R, R, dtype=np.float64)), self.square, R.dtype)

    def scale_rows(self, rows: Any, power: int = 1) -> Any:
        """Rows of an array or a sparse array times √w, or divided by it."""
        if self.root is None:
            return rows
        root = self.root.astype(rows.dtype) ** power
        return sparse.csr_array(sparse.diags_array(root) @ rows) if sparse.issparse(rows) else root[:, None] * rows


def encode(s: Signals, D: np.ndarray) -> sparse.csr_array:
    """Codes of all signals; weights do not matter to them."""
    return encode_all(s.blocks, prepare_coding(D, s.X.dtype, *s.limits), s.seen)


def compute_residuals(s: Signals, codes: sparse.csr_array, D: np.ndarray) -> np.ndarray:
    """√w (x − u D) (n,d), 0 where nothing is seen."""
    R = codes @ D
    R = s.scale_rows(np.subtract(s.X, R, out=R))
    return R if s.seen is None else np.where(s.seen, R, 0)


def update_atoms_exactly(R: np.ndarray, D: np.ndarray, start: np.ndarray, rows: np.ndarray, values: np.ndarray) -> None:
    """Like `update_atoms`, with the leading singular vector itself."""
    for j in np.flatnonzero(np.diff(start)):
        use = slice(start[j], start[j + 1])
        E = R[rows[use]] + values[use, None] * D[j]
        atom = np.linalg.eigh(E.T @ E)[1][:, -1].astype(D.dtype)
        atom *= 1 if atom @ D[j] >= 0 else -1
        values[use] = E @ atom
        R[rows[use]] = E - values[use, None] * atom
        D[j] = atom


def merge_twins(codes: sparse.csr_array, D: np.ndarray) -> sparse.csr_array | None:
    """Codes in which the first of two twins takes over from the second; None if there are no twins."""
    G = D @ D.T
    first, second = np.nonzero(np.triu(np.abs(G), 1) > TWIN_COSINE)
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


def replace_unused(D: np.ndarray, R: np.ndarray, X: np.ndarray, codes: sparse.csr_array) -> np.ndarray:
    """Unused atoms become the worst coded signals."""
    lost = np.flatnonzero(np.bincount(codes.indices, minlength=len(D)) == 0)
    if not len(lost):
        return D
    D = D.copy()
    for j, i in zip(lost, np.argsort(-np.einsum("ij,ij->i", R, R), kind="stable"), strict=False):
        length = np.linalg.norm(X[i])
        if length > 0 and R[i].any():
            D[j] = X[i] / length
    return D


@dataclass(eq=False, repr=False)
class KSVD(LearnedDictionary):
    """A dictionary that makes given signals sparse: ``X ≈ codes @ components_`` with few numbers a code.

    Parameters
    ----------
    n_components : int or None, default=None
        Atoms; None means twice as many as a signal has numbers, or fewer if there are fewer signals.
    n_nonzero : int or None, default=None
        Atoms a signal at most; None, without `error`, means a tenth of d.
    error : float or None, default=None
        Code each signal with as few atoms as bring ‖x − code · atoms‖ to this or below.
    relative_error : float or None, default=None
        The same for a share of ‖x‖, whatever the units are.
    solver : {"approximate", "exact"}, default="approximate"
        One power step for each atom, or its singular vector. With holes there is none: atom and coefficients are fitted
        in turn, once each.
    init : {"samples", "noise", "dct"} or array of shape (k, d), default="samples"
        Atoms to begin with: signals, noise, cosines (overcomplete if k > d), or given ones. Of few signals, what is
        drawn is drawn three times, and that is taken which leads lowest in a fifth of the sweeps.
    tol : float, default=1e-4
        Stop when the last sweeps, and a tenth of what their trend says is still to come, lower the objective by less
        than this, relatively.
    max_iter : int, default=50
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        The atoms, of length 1.
    history_, n_iter_, converged_
        The objective is ½‖X − U D‖² over what is seen, which never rises; with an error it is the mean number of
        atoms a signal, which mostly falls.

    Notes
    -----
    The signals are held in memory; NaN marks what is missing, and atoms are compared with what is seen of a signal.
    Unused atoms and twins are replaced by the worst coded signals.

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

    _allow_nan: ClassVar[bool] = True
    components_: Annotated[np.ndarray, "k d"] = field(init=False, repr=False)
    _parameter_constraints: ClassVar[dict] = {
        **LearnedDictionary._parameter_constraints,
        "solver": [StrOptions({"approximate", "exact"})],
    }

    _: KW_ONLY
    solver: str = "approximate"

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> KSVD:
        """Learn the atoms of signals X (n,d): array, frame, path or dask array; NaN is missing."""
        blocks = self._blocks(X, reset=True)
        w = self._weights(blocks, sample_weight)
        signals = self._signals(blocks, w)
        k = choose_size(self.n_components, blocks.shape)
        seed = seed_of(self.random_state)
        drawn = isinstance(self.init, str) and self.init != "dct" and not self._by_error
        small = drawn and np.prod(signals.X.shape) * k <= SMALL
        seeds = [seed, *(seed_of(generator(seed, 3, t)) for t in range(DRAWS if small else 0))]
        firsts = [start_atoms(self.init, k, signals.X, s) for s in seeds]
        none = np.zeros(0, signals.X.dtype), np.zeros(0, np.int32), np.zeros(len(signals.X) + 1, np.int64)

        def sweep(state: State, t: int) -> loop.Sweep:
            return self._sweep(signals, state)

        loop.run(
            self,
            sweep,
            choose_start(sweep, [State(D, *none, np.inf) for D in firsts], self.max_iter),
            max_iter=self.max_iter,
            tol=self.tol,
            fitted=lambda state: {"components_": state.D},
            X=X,
            fingerprint=lambda: fingerprint(blocks, w),
            seed=seed,
        )
        return self

    def _signals(self, blocks: Blocks, w: np.ndarray | None) -> Signals:
        X = np.concatenate([blocks[i] for i in range(len(blocks))])
        if np.isinf(X).any():
            self._refuse(blocks)
        X, w = (X, w) if w is None else (X[w > 0], w[w > 0])
        holes = np.isnan(X)
        X, seen = (np.where(holes, 0, X), ~holes) if holes.any() else (X, None)
        square = float((np.einsum("ij,ij->i", X, X, dtype=np.float64) * (1 if w is None else w)).sum())
        root = None if w is None else np.sqrt(w)
        return Signals(cut_into_pieces(DenseSource(X)), X, seen, root, self._limits(), square)

    def _sweep(self, s: Signals, state: State) -> loop.Sweep:
        new = self._update(s, encode(s, state.D), state)
        if self._by_error:
            w = None if s.root is None else s.root**2
            return loop.Sweep(new, float(np.average(np.diff(new.indptr), weights=w)), {"error": new.error})
        for _ in range(MAX_REPEATED_SWEEPS):
            if new.error <= state.error:
                break
            new = self._update(s, encode(s, new.D), new)
        new = new if new.error <= state.error else state
        return loop.Sweep(new, new.error, {"error": new.error})

    def _update(self, s: Signals, codes: sparse.csr_array, state: State) -> State:
        """Every atom in turn, with its coefficients; then those that are twins or lost."""
        by_atom = sparse.csc_array(s.scale_rows(codes))
        R, D = compute_residuals(s, codes, state.D), state.D.copy()
        uses = by_atom.indptr, by_atom.indices, by_atom.data
        if s.seen is not None:
            update_atoms_seen(R, s.seen, D, *uses)
        elif self.solver == "exact":
            update_atoms_exactly(R, D, *uses)
        else:
            update_atoms(R, D, *uses)
        codes, R = self._release_twins(s, s.scale_rows(sparse.csr_array(by_atom), -1), R, D, state.error)
        return State(replace_unused(D, R, s.X, codes), codes.data, codes.indices, codes.indptr, s.error_of(R))

    def _release_twins(
        self, s: Signals, codes: sparse.csr_array, R: np.ndarray, D: np.ndarray, before: float
    ) -> tuple[sparse.csr_array, np.ndarray]:
        """One of two twins gives up its uses, so that it can be replaced, unless the error would rise by it."""
        fewer = merge_twins(codes, D)
        if fewer is None:
            return codes, R
        rest = compute_residuals(s, fewer, D)
        return (fewer, rest) if s.error_of(rest) <= before else (codes, R)
