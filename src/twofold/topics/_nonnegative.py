"""Models of data that must not be negative: sums for their objectives, and errors that name the first bad cell."""

from __future__ import annotations

from collections.abc import Callable
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

    def perplexity(self, X: Table) -> float:
        """Perplexity of documents, half of whose tokens are hidden: :func:`twofold.topics.perplexity` of this model."""
        from twofold.topics.evaluation import perplexity

        check_is_fitted(self)
        return perplexity(self, self._blocks(X))

    def score(self, X: Table, y: Any = None) -> float:
        """Minus the logarithm of :meth:`perplexity`: the mean log-probability of hidden tokens; 0 if there are none."""
        from twofold.topics.evaluation import complete_documents

        check_is_fitted(self)
        logp, tokens = complete_documents(self, self._blocks(X), whole=False)
        return logp / tokens if tokens else 0.0

    def heldout_score(self, X: Table, y: Any = None) -> float:
        """The mean log-probability of a token among hidden words: half of the vocabulary is hidden, the topics of a
        document are found from the other half, and so in turn. :func:`twofold.topics.perplexity` splits tokens
        instead, so that words are in both halves, and favors more topics where words come in bursts."""
        from twofold.topics.evaluation import score_hidden_words

        check_is_fitted(self)
        return score_hidden_words(self, self._blocks(X))


class Totals(NamedTuple):
    """Σ over the known cells, each row counted with its weight."""

    total: float  # Σ w x
    square: float  # Σ w x²
    logs: float  # Σ w (x log x − x)
    missing: int
    minimum: float


def sum_block(X: Any, w: np.ndarray | None, logs: bool) -> Totals:
    """Sum the known cells of one block."""
    if sparse.issparse(X):
        values, weights = X.data, None if w is None else np.repeat(w, np.diff(X.indptr))
    else:
        values, weights = X, None if w is None else w[:, None]
    gaps = np.isnan(values)
    missing = int(np.count_nonzero(gaps))
    x = (np.where(gaps, 0, values) if missing else values).astype(np.float64, copy=False)
    minimum = float(x.min(initial=0.0))
    wx = x if weights is None else x * weights
    constant = float(np.sum(xlogy(wx, x)) - wx.sum()) if logs and minimum >= 0 else 0.0
    return Totals(float(wx.sum()), float(np.vdot(wx, x)), constant, missing, minimum)


def _merge(a: Totals, b: Totals) -> Totals:
    return Totals(
        a.total + b.total, a.square + b.square, a.logs + b.logs, a.missing + b.missing, min(a.minimum, b.minimum)
    )


def sum_cells(
    model: Model, blocks: Blocks, w: np.ndarray | None, *, allow_nan: bool = False, logs: bool = False
) -> Totals:
    """One pass over the data; unusable cells are refused by name. `logs` only if asked for."""
    engine = engine_for(blocks)
    totals = engine.reduce(_merge, engine.map(sum_block, blocks, blocks.rows(w), engine.broadcast(logs)))
    if not np.isfinite(totals.square) or (totals.missing and not allow_nan):
        model._refuse(blocks, allow_nan=allow_nan)
    if totals.minimum < 0 or not np.isfinite(totals.square):
        refuse_negative(type(model).__name__, blocks)
    return totals


class Cell(NamedTuple):
    """A cell of a table."""

    row: int
    column: int
    value: Any


def find_cell(blocks: Blocks, is_bad: Callable[[np.ndarray], np.ndarray]) -> Cell | None:
    """The first stored cell for whose value `is_bad` holds."""
    for b, start in enumerate(blocks.bounds[:-1]):
        X = sparse.csr_array(blocks[b]) if sparse.issparse(blocks[b]) else blocks[b]
        values = X.data if sparse.issparse(X) else X.ravel()
        bad = np.flatnonzero(is_bad(values))
        if not len(bad):
            continue
        if sparse.issparse(X):
            row, column = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1, int(X.indices[bad[0]])
        else:
            row, column = divmod(int(bad[0]), X.shape[1])
        return Cell(int(start) + row, column, values[bad[0]])
    return None


def check_init(init: Any, k: int, d: int, allow_empty: bool = False) -> np.ndarray:
    """Parts or topics (k,d) of the user, in float64."""
    Z = np.asarray(init, dtype=np.float64)
    if Z.shape != (k, d) or not np.isfinite(Z).all() or Z.min() < 0 or not (allow_empty or Z.any(axis=1).all()):
        rows = "" if allow_empty else ", with one above 0 in every row,"
        raise InputError(f"init has shape {Z.shape}; {(k, d)} finite numbers >= 0{rows} are needed. Check or clip it.")
    return Z


def refuse_negative(name: str, blocks: Blocks) -> None:
    """Raise with the place of the first negative cell."""
    cell = find_cell(blocks, lambda x: x < 0)
    if cell is not None:
        raise InputError(
            f"X[{cell.row}, {cell.column}] is {cell.value:g}; {name} needs X >= 0. Negative values in data have no "
            "meaning here: clip it, or use PCA."
        )
