"""Data that must not be negative: sums that objectives need, and errors that name the first cell below zero."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import xlogy
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from twofold.core.checks import InputError
from twofold.core.data.blocks import Blocks
from twofold.core.engine.local import engine_for
from twofold.core.estimator import Model
from twofold.core.types import Table


class NonnegativeModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    """A model of data that must not be negative, with `components_` (k,d)."""

    components_: np.ndarray
    _allow_negative: ClassVar[bool] = False

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _refuse(self, blocks: Blocks, allow_nan: bool | None = None) -> None:
        super()._refuse(blocks, allow_nan)
        refuse_negative(type(self).__name__, blocks)


class TopicModel(NonnegativeModel):
    """A model of documents as mixtures of topics, the rows of `components_`."""

    _heldout_unit = "the log-probability of a hidden word"

    def heldout_score(self, X: Table, y: Any = None) -> float:
        """The mean log-probability of a token among hidden words: half of the vocabulary is hidden, the topics of a
        document are found from the other half, and so in turn. :func:`twofold.topics.perplexity` splits tokens
        instead, so that words are in both halves, and favours more topics where words come in bursts."""
        from twofold.topics.evaluation import foretell_words

        check_is_fitted(self)
        return foretell_words(self, self._blocks(X))


class Totals(NamedTuple):
    """Σ over the known cells, each row counted with its weight."""

    total: float  # Σ w x
    square: float  # Σ w x²
    logs: float  # Σ w (x log x − x)
    missing: int
    least: float


def sum_block(X: Any, w: np.ndarray | None, logs: bool) -> Totals:
    """What one block adds."""
    if sparse.issparse(X):
        values, weights = X.data, None if w is None else np.repeat(w, np.diff(X.indptr))
    else:
        values, weights = X, None if w is None else w[:, None]
    gaps = np.isnan(values)
    missing = int(np.count_nonzero(gaps))
    x = (np.where(gaps, 0, values) if missing else values).astype(np.float64, copy=False)
    least = float(x.min(initial=0.0))
    wx = x if weights is None else x * weights
    constant = float(np.sum(xlogy(wx, x)) - wx.sum()) if logs and least >= 0 else 0.0
    return Totals(float(wx.sum()), float(np.vdot(wx, x)), constant, missing, least)


def _merge(a: Totals, b: Totals) -> Totals:
    return Totals(a.total + b.total, a.square + b.square, a.logs + b.logs, a.missing + b.missing, min(a.least, b.least))


def sum_cells(
    model: Model, blocks: Blocks, w: np.ndarray | None, *, allow_nan: bool = False, logs: bool = False
) -> Totals:
    """One pass over the data; cells that cannot be used are refused by name. `logs` only where they are asked for."""
    engine = engine_for(blocks)
    totals = engine.reduce(_merge, engine.map(sum_block, blocks, blocks.rows(w), engine.broadcast(logs)))
    if not np.isfinite(totals.square) or (totals.missing and not allow_nan):
        model._refuse(blocks, allow_nan=allow_nan)
    if totals.least < 0 or not np.isfinite(totals.square):
        refuse_negative(type(model).__name__, blocks)
    return totals


def refuse_negative(name: str, blocks: Blocks) -> None:
    """Raise with the place of the first negative cell."""
    for i, start in enumerate(blocks.bounds[:-1]):
        X = blocks[i]
        cells = sparse.csr_array(X) if sparse.issparse(X) else X
        values = cells.data if sparse.issparse(cells) else cells.ravel()
        bad = np.flatnonzero(values < 0)
        if not len(bad):
            continue
        at = int(bad[0])
        if sparse.issparse(cells):
            row, column = int(np.searchsorted(cells.indptr, at, side="right")) - 1, int(cells.indices[at])
        else:
            row, column = divmod(at, X.shape[1])
        raise InputError(
            f"X[{int(start) + row}, {column}] is {values[at]:g}; {name} needs X >= 0. Negative values in data have no "
            "meaning here: clip it, or use PCA."
        )
