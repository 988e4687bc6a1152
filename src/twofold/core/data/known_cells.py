"""The known cells of a table, in both orientations.

    unstored (sparse) or NaN (dense) means unknown; a zero that is stored is a known zero
    X (n,d) with known cells Ω        W (n,d) their weights, 1 unless given

Completion looks at the same cells along the rows and along the columns. Both views are cut into blocks of a few
thousand cells, because a cell costs k or k² operations, not one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core import checks
from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks, Rows, as_blocks
from twofold.core.data.sources import SparseSource, base
from twofold.core.engine.local import engine_for, fingerprint, stack_results
from twofold.core.types import Block, Weights


class Side(NamedTuple):
    """One orientation: its blocks, the weights of their cells, and how many cells (or how much weight) a row has."""

    blocks: Blocks
    weights: Rows  # (cells of the block,) each
    mass: np.ndarray  # (rows,)


class Observed(NamedTuple):
    """The known cells of X, seen along its rows and along its columns."""

    X: sparse.csr_array  # (n,d)
    W: sparse.csr_array  # (n,d), stored in the same places
    rows: Side
    cols: Side

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def dtype(self) -> np.dtype:
        return self.X.dtype

    def sign(self) -> str:
        """A short sign of the cells and their weights, for checkpoints."""
        return f"{fingerprint(self.rows.blocks)} {fingerprint(as_blocks(self.W))}"


def find_known_cells(blocks: Blocks, sample_weight: Weights = None, name: str = "completion") -> Observed:
    """Gather the known cells, wherever the rows lie; they must fit in memory, the holes need not.

    `sample_weight` is one number a row, or an array (dense or sparse) shaped like X; a cell of weight 0 is a hole.
    `name` is the model's, for messages.

    >>> cells = find_known_cells(as_blocks(np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, 4.0]])))
    >>> cells.X.nnz, cells.rows.mass, cells.cols.mass
    (4, array([1., 1., 2.]), array([2., 2.]))
    """
    engine = engine_for(blocks)
    X = stack_results(engine.gather(engine.map(take_known, blocks)))
    bad = checks.first_bad(X, allow_nan=False)
    if bad is not None:
        raise InputError(checks.finite_message(name, *bad, allow_nan=True))
    W = _weights(X, sample_weight)
    if not (W.data > 0).all():
        X, W = keep_stored(X, W.data > 0), keep_stored(W, W.data > 0)
    if X.nnz == 0:
        raise InputError(
            f"X of shape {X.shape} has no known cell. NaN and unstored cells are unknown; give at least one."
        )
    return see_both_sides(X, W)


def see_both_sides(X: sparse.csr_array, W: sparse.csr_array) -> Observed:
    """Known cells X and their weights W, stored in the same places, seen both ways."""
    return Observed(X, W, _side(X, W), _side(_transpose(X), _transpose(W)))


def take_known(X: Block) -> sparse.csr_array:
    """The known cells of one block: those not NaN if it is dense, those stored (and not NaN) if it is sparse.

    Indices have 32 bits where they fit, wherever the cells come from, so that kernels are compiled for one kind.
    """
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        there = ~np.isnan(X.data)
        if not there.all():
            X = keep_stored(X, there)
        data, indices, indptr = X.data, X.indices, X.indptr
    else:
        there = ~np.isnan(X)
        data, indices, indptr = X[there], np.nonzero(there)[1], np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    fits = max(*X.shape, data.size) <= np.iinfo(np.int32).max
    index = np.int32 if fits else np.int64
    places = np.ascontiguousarray(indices, index), indptr.astype(index, copy=False)
    return sparse.csr_array((data, *places), shape=X.shape)


def keep_stored(X: sparse.csr_array, keep: np.ndarray) -> sparse.csr_array:
    """Only some of the stored cells."""
    indptr = np.concatenate([[0], np.cumsum(keep)])[X.indptr].astype(X.indptr.dtype)
    return sparse.csr_array((X.data[keep], X.indices[keep], indptr), shape=X.shape)


def _transpose(X: sparse.csr_array) -> sparse.csr_array:
    turned = X.T.tocsr()
    turned.sort_indices()
    return turned


def _weights(X: sparse.csr_array, w: Any) -> sparse.csr_array:
    """A weight for every stored cell of X, in X's own places."""
    if w is None:
        values = np.ones_like(X.data)
    elif sparse.issparse(w) or (w := np.asarray(w)).ndim == 2:
        if w.shape != X.shape:
            raise InputError(
                f"sample_weight has shape {w.shape}; one weight a row or one a cell of X {X.shape} is needed."
            )
        if sparse.issparse(w):
            checks.check_sparse(w, "sample_weight")
            w = sparse.csr_array(w)
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        values = np.asarray(w[row, X.indices])
        bad = ~np.isfinite(values) | (values < 0)
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(
                f"sample_weight[{row[at]}, {X.indices[at]}] is {values[at]}; weights must be finite and >= 0. Set 0 "
                "where a cell should not count."
            )
    else:
        values = np.repeat(checks.check_weights(w, X.shape[0]), np.diff(X.indptr))  # type: ignore[arg-type]
    return sparse.csr_array((values.astype(X.dtype, copy=False), X.indices, X.indptr), shape=X.shape)


def _side(X: sparse.csr_array, W: sparse.csr_array) -> Side:
    blocks = Blocks(SparseSource(X, cells=max(1, base.BLOCK_BYTES // 128)))
    cuts = X.indptr[blocks.bounds]
    weights = Rows(W.data[a:b] for a, b in pairwise(cuts))
    return Side(blocks, weights, np.asarray(W.sum(axis=1, dtype=np.float64)).ravel())
