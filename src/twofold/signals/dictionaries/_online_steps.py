"""A dictionary from mini-batches: the half-steps.

each piece of a batch   codes by orthogonal matching pursuit, and what they add to ΣUᵀU (k,k) and ΣUᵀX (k,d)
then once               every atom in turn the best for these sums, in which older batches fade
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from twofold.core.data.blocks import Blocks, Rows
from twofold.core.engine.local import add, engine_for
from twofold.core.seeds import generator
from twofold.kernels.ksvd import descend
from twofold.signals.dictionaries._base import normalize_atoms
from twofold.signals.sparse_coding.pursuits import Coding, encode_rows

NOTHING = 1e-12  # of the largest Σu²: an atom with less is not used
FADING = 6.0  # the t-th batch finds what was before it times (1 − 1/t)^FADING
WORST = 8  # atoms that a batch can replace
IDLE = 100  # times as many signals as an atom waits for on average, k/s: not used by any of them, it is replaced


class State(NamedTuple):
    """Atoms, and what the signals so far said about them."""

    D: np.ndarray  # (k,d)
    UU: np.ndarray  # (k,k)
    UX: np.ndarray  # (k,d)
    idle: np.ndarray  # (k,) signals since one used the atom
    batches: int


class Sums(NamedTuple):
    """What a piece of a batch adds."""

    UU: np.ndarray  # (k,k)
    UX: np.ndarray  # (k,d)
    uses: np.ndarray  # (k,) signals that use an atom
    signals: int  # of any weight
    weight: float
    square: float  # Σ w ‖x‖²
    cost: float  # Σ ½ w ‖x − u D‖²
    atoms: float  # Σ w times the atoms of a code


class Found(NamedTuple):
    """The sums, and the signals that are coded worst."""

    sums: Sums
    errors: np.ndarray  # (m,)
    worst: np.ndarray  # (m,d)


def half_step(X: np.ndarray, w: np.ndarray | None, c: Coding) -> Found:
    """The rows' half-step: codes, and what they contribute."""
    k, d = c.atoms.shape
    w = np.ones(len(X)) if w is None else w
    if not np.isfinite(X).all():
        nothing = Sums(np.zeros((k, k)), np.zeros((k, d)), np.zeros(k), len(X), 1.0, np.nan, np.nan, np.nan)
        return Found(nothing, np.zeros(0), np.zeros((0, d)))
    U = encode_rows(X, c)
    R = X - U @ c.atoms
    errors, squares = (np.einsum("ij,ij->i", A, A, dtype=np.float64) * w for A in (R, X))
    U = U.astype(np.float64)
    V = sparse.diags_array(w) @ U
    uses = np.bincount(V.indices[V.data != 0], minlength=k).astype(np.float64)
    totals = float(w.sum()), float(squares.sum()), 0.5 * float(errors.sum()), float(np.diff(U.indptr) @ w)
    sums = Sums((V.T @ U).toarray(), V.T @ X, uses, int(np.count_nonzero(w)), *totals)
    top = np.argsort(-errors, kind="stable")[:WORST]
    return Found(sums, errors[top], X[top].astype(np.float64))


def merge(a: Found, b: Found) -> Found:
    errors, worst = np.append(a.errors, b.errors), np.vstack([a.worst, b.worst])
    top = np.argsort(-errors, kind="stable")[:WORST]
    return Found(add(a.sums, b.sums), errors[top], worst[top])


def descend_atoms(D: np.ndarray, UU: np.ndarray, UX: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The shared half-step: ½ tr(D Dᵀ UU) − tr(D UXᵀ) lowered atom by atom; the lengths go to the codes."""
    D = D.copy()
    descend(D, UU, UX, NOTHING * np.diagonal(UU).max())
    length = np.linalg.norm(D, axis=1)
    return normalize_atoms(D), UU * np.outer(length, length), UX * length[:, None]


def renew_atoms(s: State, found: Found, patience: float) -> State:
    """Atoms that have been idle for too long become the signals that are coded worst."""
    lost = np.flatnonzero(s.idle >= patience)[: int((found.errors > 0).sum())]
    D, UU, UX, idle = s.D.copy(), s.UU.copy(), s.UX.copy(), s.idle.copy()
    D[lost] = normalize_atoms(found.worst[: len(lost)])
    UU[lost], UU[:, lost], UX[lost], idle[lost] = 0, 0, 0, 0
    return State(D, UU, UX, idle, s.batches)


def take_step(s: State, found: Found, most: float) -> State:
    """Atoms after one more batch; what was before counts `most` of itself at most."""
    t, sums = s.batches + 1, found.sums
    fade = min((1 - 1 / t) ** FADING, most)
    UU, UX = fade * s.UU + sums.UU, fade * s.UX + sums.UX
    idle = np.where(sums.uses > 0, 0.0, s.idle + sums.signals)
    new = State(*descend_atoms(s.D, UU, UX), idle, t)
    return renew_atoms(new, found, IDLE * len(s.D) / max(1.0, sums.uses.sum() / max(1, sums.signals)))


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
