"""A dictionary learned from a stream of signals.

    minimize  ½‖X − U D‖²  with at most s numbers in a row of U that are not zero, and atoms of length 1
    X (n,d) signals in mini-batches   U (n,k) codes   D (k,d) atoms

One step:  each piece of a batch   codes by orthogonal matching pursuit, and what they add to ΣUᵀU and ΣUᵀX
           then once               every atom in turn the best for these sums, in which older batches fade
A batch takes every B-th row of a run of blocks. Neighboring rows are often similar (patches of an image, documents of a
day): taken far apart, the batches are. Where batches are cut depends on the data alone, so that they are the
same from disk and on a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core import loop
from twofold.core.data.blocks import Blocks, Rows
from twofold.core.data.sources import DenseSource
from twofold.core.engine.local import Engine, add, engine_for, fingerprint, single_blas
from twofold.core.estimator import fitting
from twofold.core.params import Interval
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Table, Weights
from twofold.kernels import ksvd
from twofold.signals.dictionary import LearnedDictionary, choose_size, drop_rounding, normalize_atoms, start_atoms
from twofold.signals.pursuits import Coding, cut_into_pieces, encode_rows, prepare_coding

MIN_USE = 1e-12  # of the largest Σu²: an atom with less is not used
FADING_POWER = 6.0  # the t-th batch multiplies the sums before it by (1 − 1/t)^FADING_POWER
MAX_REPLACED = 8  # atoms, by a batch
MAX_IDLE = 100  # mean times between two uses, k/s, after which an unused atom is replaced


class MiniBatches:
    """About `size` rows a batch; a batch is a Blocks of its own, and the weights of its rows."""

    def __init__(self, blocks: Blocks, w: np.ndarray | None, size: int):
        self.blocks, self.w, self.engine = blocks, w, engine_for(blocks)
        self.apart = type(self.engine) is not Engine  # the rows are elsewhere, and stay there
        many = max(1, size // max(1, int(blocks.bounds[1])))  # blocks a run
        self.cuts = np.append(blocks.bounds[:-1:many], blocks.bounds[-1])
        self.first = np.append(np.arange(len(blocks))[::many], len(blocks))
        self.counts = -(-np.diff(self.cuts) // size)  # batches a run
        self._kept: dict[tuple[int, int], Blocks] = {}

    def __len__(self) -> int:
        return int(self.counts.sum())

    def iterate_shuffled(self, rng: np.random.Generator) -> Iterator[tuple[Blocks, Rows]]:
        """Every batch once, the runs in a new order."""
        for r in rng.permutation(len(self.counts)):
            X, w = self._run(r), None if self.w is None else self.w[self.cuts[r] : self.cuts[r + 1]]
            for b in rng.permutation(self.counts[r]):
                every = slice(b, None, self.counts[r])
                batch = self._batch(X, every, (r, b))
                yield batch, batch.rows(None if w is None else w[every])

    def _run(self, r: int) -> Any:
        if self.apart:
            return self.blocks.source.some(slice(self.cuts[r], self.cuts[r + 1]))
        parts = [self.blocks[i] for i in range(self.first[r], self.first[r + 1])]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _batch(self, X: Any, every: slice, name: tuple[int, int]) -> Blocks:
        if not self.apart:
            return cut_into_pieces(DenseSource(X[every]))
        if name not in self._kept:  # its workers keep it from sweep to sweep
            self._kept[name] = cut_into_pieces(X.some(every))
        return self._kept[name]


class State(NamedTuple):
    """Atoms, and the sums over the signals so far."""

    D: np.ndarray  # (k,d)
    UU: np.ndarray  # (k,k)
    UX: np.ndarray  # (k,d)
    idle: np.ndarray  # (k,) signals since one used the atom
    batches: int


class Sums(NamedTuple):
    """Sums over a piece of a batch."""

    UU: np.ndarray  # (k,k)
    UX: np.ndarray  # (k,d)
    uses: np.ndarray  # (k,) signals that use an atom
    signals: int  # of any weight
    weight: float
    square: float  # Σ w ‖x‖²
    cost: float  # Σ ½ w ‖x − u D‖²
    atoms: float  # Σ w times the atoms of a code


class BatchResult(NamedTuple):
    """The sums, and the signals that are coded worst."""

    sums: Sums
    errors: np.ndarray  # (m,)
    worst: np.ndarray  # (m,d)


def half_step(X: np.ndarray, w: np.ndarray | None, c: Coding) -> BatchResult:
    """The rows' half-step: codes, and what they contribute."""
    k, d = c.atoms.shape
    w = np.ones(len(X)) if w is None else w
    if not np.isfinite(X).all():
        nothing = Sums(np.zeros((k, k)), np.zeros((k, d)), np.zeros(k), len(X), 1.0, np.nan, np.nan, np.nan)
        return BatchResult(nothing, np.zeros(0), np.zeros((0, d)))
    U = encode_rows(X, None, c)
    R = X - U @ c.atoms
    errors, squares = (np.einsum("ij,ij->i", A, A, dtype=np.float64) * w for A in (R, X))
    U = U.astype(np.float64)
    V = sparse.diags_array(w) @ U
    uses = np.bincount(V.indices[V.data != 0], minlength=k).astype(np.float64)
    totals = float(w.sum()), float(squares.sum()), 0.5 * float(errors.sum()), float(np.diff(U.indptr) @ w)
    sums = Sums((V.T @ U).toarray(), V.T @ X, uses, int(np.count_nonzero(w)), *totals)
    top = np.argsort(-errors, kind="stable")[:MAX_REPLACED]
    return BatchResult(sums, errors[top], X[top].astype(np.float64))


def merge(a: BatchResult, b: BatchResult) -> BatchResult:
    errors, worst = np.append(a.errors, b.errors), np.vstack([a.worst, b.worst])
    top = np.argsort(-errors, kind="stable")[:MAX_REPLACED]
    return BatchResult(add(a.sums, b.sums), errors[top], worst[top])


def descend_atoms(D: np.ndarray, UU: np.ndarray, UX: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The shared half-step: ½ tr(D Dᵀ UU) − tr(D UXᵀ) lowered atom by atom; the lengths go to the codes."""
    D = D.copy()
    ksvd.descend_atoms(D, UU, UX, MIN_USE * np.diagonal(UU).max())
    length = np.linalg.norm(D, axis=1)
    return normalize_atoms(D), UU * np.outer(length, length), UX * length[:, None]


def renew_atoms(s: State, result: BatchResult, patience: float) -> State:
    """Atoms that have been idle for too long become the worst coded signals."""
    lost = np.flatnonzero(s.idle >= patience)[: int((result.errors > 0).sum())]
    D, UU, UX, idle = s.D.copy(), s.UU.copy(), s.UX.copy(), s.idle.copy()
    D[lost] = normalize_atoms(result.worst[: len(lost)])
    UU[lost], UU[:, lost], UX[lost], idle[lost] = 0, 0, 0, 0
    return State(D, UU, UX, idle, s.batches)


def take_step(s: State, result: BatchResult, max_fade: float) -> State:
    """Atoms after one more batch; older sums are multiplied by `max_fade` at most."""
    t, sums = s.batches + 1, result.sums
    fade = min((1 - 1 / t) ** FADING_POWER, max_fade)
    UU, UX = fade * s.UU + sums.UU, fade * s.UX + sums.UX
    idle = np.where(sums.uses > 0, 0.0, s.idle + sums.signals)
    new = State(*descend_atoms(s.D, UU, UX), idle, t)
    return renew_atoms(new, result, MAX_IDLE * len(s.D) / max(1.0, sums.uses.sum() / max(1, sums.signals)))


def _pick_signals(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.nan_to_num(X[rows], posinf=0, neginf=0)  # refused, with its place, when it is coded


def draw_signals(blocks: Blocks, w: np.ndarray | None, k: int, seed: int) -> np.ndarray:
    """Signals to begin with, a few more than needed since some may be nothing but zeros."""
    able = blocks.shape[0] if w is None else np.count_nonzero(w)
    drawn = generator(seed, 0).choice(able, min(4 * k, able), replace=False)
    rows = np.sort(drawn if w is None else np.flatnonzero(w)[drawn])
    ends = np.searchsorted(rows, blocks.bounds)
    inside = Rows(rows[a:b] - start for a, b, start in zip(ends[:-1], ends[1:], blocks.bounds[:-1], strict=True))
    engine = engine_for(blocks)
    return np.concatenate(engine.gather(engine.map(_pick_signals, blocks, inside)))


@dataclass(eq=False, repr=False)
class OnlineDictionary(LearnedDictionary):
    """A dictionary that makes signals sparse, learned from mini-batches: ``X ≈ codes @ components_``.

    Like :class:`KSVD` for signals that do not fit in memory or keep coming: only ΣUᵀU and ΣUᵀX are remembered.

    Parameters
    ----------
    n_components, n_nonzero, error, relative_error, init, random_state
        As in :class:`KSVD`.
    batch_size : int, default=512
        Signals between two updates of the atoms, about.
    tol : float, default=1e-3
        Stop when the last sweeps, and a tenth of what their trend says is still to come, lower the objective by less
        than this, relatively.
    max_iter : int, default=50
        Sweeps through the signals at most.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        The atoms, of length 1.
    code_sums_, signal_sums_ : ndarray of shape (k, k) and (k, d)
        ΣUᵀU and ΣUᵀX, in which older batches have faded.
    idle_ : ndarray of shape (k,)
        Signals since one used the atom.
    n_batches_ : int
    history_, n_iter_, converged_
        The objective is the mean of ½‖x − code · atoms‖² over a sweep, each signal coded with the atoms of its time;
        with an error it is the mean number of atoms a signal.

    Notes
    -----
    The t-th batch finds the sums of those before it times (1 − 1/t)⁶, or, in :meth:`fit`, times 1 − 1/(batches a
    sweep) if that is less. The lengths of the atoms are free in the update and then given to the codes, which a pursuit
    does not mind; the paper's ℓ1 does. Atoms that have not been used for long become signals that are coded badly.

    References
    ----------
    Mairal, Bach, Ponce & Sapiro (2010), *JMLR* 11, 19-60.

    Examples
    --------
    >>> from twofold import OnlineDictionary, SparseCoder, datasets
    >>> from twofold.signals import DCT
    >>> X = datasets.digits().data
    >>> model = OnlineDictionary(64, n_nonzero=5, random_state=0)
    >>> for part in np.array_split(X[:1500], 5):          # as they come
    ...     model = model.partial_fit(part)
    >>> cosines = SparseCoder(DCT().matrix(64), transform_n_nonzero_coefs=5).fit()
    >>> model.score(X[1500:]) > 0.5 * cosines.score(X[1500:])     # not half of their error on new digits
    True
    """

    components_: Annotated[np.ndarray, "k d"] = field(init=False, repr=False)
    n_batches_: int = field(init=False, repr=False)
    code_sums_: Annotated[np.ndarray, "k k"] = field(init=False, repr=False)
    signal_sums_: Annotated[np.ndarray, "k d"] = field(init=False, repr=False)
    idle_: Annotated[np.ndarray, "k, any"] = field(init=False, repr=False)
    _parameter_constraints: ClassVar[dict] = {
        **LearnedDictionary._parameter_constraints,
        "batch_size": [Interval(Integral, 1, None, closed="left")],
    }

    _: KW_ONLY
    batch_size: int = 512
    tol: float = 1e-3

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> OnlineDictionary:
        """Learn the atoms of signals X (n,d): array, frame, path or dask array."""
        blocks = self._blocks(X, reset=True)
        w, seed = self._weights(blocks, sample_weight), seed_of(self.random_state)
        batches = MiniBatches(blocks, w, self.batch_size)
        loop.run(
            self,
            lambda state, t: self._sweep(batches, state, generator(seed, 1, t), 1 - 1 / len(batches)),
            self._start(blocks, w, seed),
            max_iter=self.max_iter,
            tol=self.tol,
            fitted=partial(self._attributes, dtype=blocks.dtype),
            X=X,
            fingerprint=lambda: fingerprint(blocks, w),
            seed=seed,
        )
        return self

    def partial_fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> OnlineDictionary:
        """Learn from more signals, in one sweep through them; the atoms so far, and their sums, go on."""
        self._validate_params()
        began, new = time.perf_counter(), not hasattr(self, "components_")
        blocks = self._blocks(X, reset=new)
        w, seed = self._weights(blocks, sample_weight), seed_of(self.random_state)
        history = {"objective": [], "seconds": []} if new else self.history_
        t = len(history["objective"])
        with single_blas(), np.errstate(invalid="ignore", over="ignore"):
            state = self._start(blocks, w, seed) if new else self._so_far()
            swept = self._sweep(MiniBatches(blocks, w, self.batch_size), state, generator(seed, 1, t), 1.0)
        for name, value in self._attributes(swept.state, blocks.dtype).items():
            setattr(self, name, value)
        spent = (history["seconds"][-1] if t else 0.0) + time.perf_counter() - began
        row = {"objective": swept.objective, "seconds": spent}
        self.history_: dict = {name: [*history[name], value] for name, value in row.items()}
        self.n_iter_, self.converged_ = t + 1, False
        return self

    def _start(self, blocks: Blocks, w: np.ndarray | None, seed: int) -> State:
        d, k = blocks.shape[1], choose_size(self.n_components, blocks.shape)
        D = start_atoms(self.init, k, draw_signals(blocks, w, k, seed), seed).astype(np.float64)
        return State(D, np.zeros((k, k)), np.zeros((k, d)), np.zeros(k), 0)

    def _so_far(self) -> State:
        D = self.components_.astype(np.float64)
        return State(D, self.code_sums_, self.signal_sums_, self.idle_, self.n_batches_)

    def _sweep(self, batches: MiniBatches, state: State, rng: np.random.Generator, max_fade: float) -> loop.Sweep:
        engine, dtype, total = batches.engine, batches.blocks.dtype, np.zeros(4)
        for blocks, w in batches.iterate_shuffled(rng):
            shared = engine.broadcast(prepare_coding(state.D, dtype, *self._limits()))
            result = engine.reduce(merge, engine.map(half_step, blocks, w, shared))
            if not np.isfinite(result.sums.cost):
                self._refuse(batches.blocks)
            state = take_step(state, result, max_fade)
            total += result.sums[-4:]
        weight, square, cost, atoms = map(float, total)
        return loop.Sweep(state, (atoms if self._by_error else drop_rounding(cost, square, dtype)) / weight)

    def _attributes(self, s: State, dtype: np.dtype) -> dict:
        return {
            "components_": s.D.astype(dtype),
            "code_sums_": s.UU,
            "signal_sums_": s.UX,
            "idle_": s.idle,
            "n_batches_": s.batches,
        }
