"""A dictionary learned from a stream of signals.

    minimise  ½‖X − U D‖²  with at most s numbers in a row of U that are not zero, and atoms of length 1
    X (n,d) signals in mini-batches   U (n,k) codes   D (k,d) atoms

One step:  each piece of a batch   codes by orthogonal matching pursuit, and what they add to ΣUᵀU and ΣUᵀX
           then once               every atom in turn the best for these sums, in which older batches fade
References: Mairal, Bach, Ponce & Sapiro 2010.
"""

from __future__ import annotations

import time
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from twofold.core import loop
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import fingerprint, single_blas
from twofold.core.estimator import fitting
from twofold.core.params import Interval
from twofold.core.seeds import generator, seed_of
from twofold.signals.dictionaries._base import LEARNED, Dictionary, choose_size, drop_rounding, start_atoms
from twofold.signals.dictionaries._minibatches import MiniBatches
from twofold.signals.dictionaries._online_steps import State, draw_signals, half_step, merge, take_step
from twofold.signals.sparse_coding.pursuits import prepare_coding


class OnlineDictionary(Dictionary):
    """A dictionary that makes signals sparse, learned from mini-batches: ``X ≈ codes @ components_``.

    Like :class:`KSVD` for signals that do not fit in memory or keep coming: only ΣUᵀU and ΣUᵀX are remembered.

    Parameters
    ----------
    n_components : int or None, default=None
        Atoms; None means twice as many as a signal has numbers, or fewer if there are fewer signals.
    n_nonzero : int or None, default=None
        Atoms a signal at most; None, without `error`, means a tenth of d.
    error : float or None, default=None
        Code each signal with as few atoms as bring ‖x − code · atoms‖ to this or below.
    init : {"samples", "noise", "dct"} or array of shape (k, d), default="samples"
        Atoms to begin with: signals, noise, cosines (overcomplete if k > d), or given ones.
    batch_size : int, default=512
        Signals between two updates of the atoms, about.
    tol : float, default=1e-3
        Stop when a sweep moves the objective by less than this, relatively.
    max_iter : int, default=50
        Sweeps through the signals at most.
    random_state : int, RandomState, Generator or None, default=None

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
        with `error` it is the mean number of atoms a signal.

    Notes
    -----
    The t-th batch finds the sums of those before it times (1 − 1/t)⁶, or, in :meth:`fit`, times 1 − 1/(batches a
    sweep) if that is less. The lengths of the atoms are free in the update and then given to the codes, which a pursuit
    does not mind; the paper's ℓ1 does. Atoms that nobody has used for long become signals that are coded badly.

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
    >>> cosines = SparseCoder(DCT().matrix(64), n_nonzero=5).fit()
    >>> model.score(X[1500:]) > 0.5 * cosines.score(X[1500:])     # not half of their error on new digits
    True
    """

    history_: dict
    _allow_sparse: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict] = {**LEARNED, "batch_size": [Interval(Integral, 1, None, closed="left")]}

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_nonzero: int | None = None,
        error: float | None = None,
        init: Any = "samples",
        batch_size: int = 512,
        tol: float = 1e-3,
        max_iter: int = 50,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.n_nonzero = n_nonzero
        self.error = error
        self.init = init
        self.batch_size = batch_size
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineDictionary:
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

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineDictionary:
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
        self.history_ = {name: [*history[name], value] for name, value in row.items()}
        self.n_iter_, self.converged_ = t + 1, False
        return self

    def _start(self, blocks: Blocks, w: np.ndarray | None, seed: int) -> State:
        d, k = blocks.shape[1], choose_size(self.n_components, blocks.shape)
        D = start_atoms(self.init, k, draw_signals(blocks, w, k, seed), seed).astype(np.float64)
        return State(D, np.zeros((k, k)), np.zeros((k, d)), np.zeros(k), 0)

    def _so_far(self) -> State:
        D = self.components_.astype(np.float64)
        return State(D, self.code_sums_, self.signal_sums_, self.idle_, self.n_batches_)

    def _sweep(self, batches: MiniBatches, state: State, rng: np.random.Generator, most: float) -> loop.Sweep:
        engine, dtype, total = batches.engine, batches.blocks.dtype, np.zeros(4)
        for blocks, w in batches.shuffled(rng):
            shared = engine.broadcast(prepare_coding(state.D, dtype, *self._limits()))
            found = engine.reduce(merge, engine.map(half_step, blocks, w, shared))
            if not np.isfinite(found.sums.cost):
                self._refuse(batches.blocks)
            state = take_step(state, found, most)
            total += found.sums[-4:]
        weight, square, cost, atoms = map(float, total)
        return loop.Sweep(state, (drop_rounding(cost, square, dtype) if self.error is None else atoms) / weight)

    def _attributes(self, s: State, dtype: np.dtype) -> dict:
        return {
            "components_": s.D.astype(dtype),
            "code_sums_": s.UU,
            "signal_sums_": s.UX,
            "idle_": s.idle,
            "n_batches_": s.batches,
        }

    def _limits(self) -> tuple[int | None, float | None]:
        return self.n_nonzero, self.error
