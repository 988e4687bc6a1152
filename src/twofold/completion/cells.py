"""Known cells, in memory or partitioned on disk, behind one interface: all that models ask of them to be fitted.

    X (n,d) known in the cells Ω    U (n,p) features of the rows    Z (d,p) features of the columns

One sweep:  each column  z_j ← ridge regression of its known cells on the u_i
            each row     u_i ← the same, sides exchanged
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import is_dask, is_path
from twofold.core.data.known_cells import Observed, keep_stored, see_both_sides
from twofold.core.numerics import alternating_ridge as ridges
from twofold.core.numerics.alternating_ridge import Plan, Ridge, State, bias_of
from twofold.kernels.moments import csr_gram

NO_COUNTS = "X holds only zeros: nothing was seen by anyone, so there is nothing to learn from."
NEGATIVE = "and counts are >= 0. For ratings that may be negative use ALS."

Costs = Callable[[], tuple[float, float]]  # of a half-step: its cost with the ridge term, and that term alone


class HalfStep(NamedTuple):
    """How one side is solved for: k factors, offsets, ridge and solver; `alpha` where stored counts are weights."""

    k: int
    mean: float
    unit: float
    ridge: Ridge
    steps: int = 0  # of conjugate gradients
    size: int = 0  # features of a block
    alpha: float | None = None

    def read_features(self, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The features a row is regressed on, and the offsets of its cells."""
        if self.alpha is not None:
            return other, np.zeros(len(other), other.dtype)
        return ridges.features(other, self.k, self.mean, self.unit)


class HalfSteps(NamedTuple):
    """Those of rows and of columns."""

    rows: HalfStep
    cols: HalfStep

    @property
    def exact(self) -> HalfStep:
        """The one that makes rows exact at the end, so that a row folded in again gets its own factor back."""
        return self.rows._replace(steps=0, size=0)

    @classmethod
    def of_plan(cls, plan: Plan) -> HalfSteps:
        rows = HalfStep(plan.k, plan.mean, float(np.sqrt(plan.spread)), plan.ridge, plan.steps)
        return cls(rows, rows._replace(ridge=plan.ridge._replace(last=plan.last)))


class Lines(NamedTuple):
    """One side of the table: what its lines (rows, or columns) weigh, and the sum of their centered cells."""

    W: Any  # (lines, other side's lines), of which only products with a vector are needed
    mass: np.ndarray  # Σ w
    total: np.ndarray  # Σ w y


class Sums(NamedTuple):
    """The sums over the known cells that row and column biases are fitted to, y = x − center."""

    rows: Lines
    cols: Lines
    center: float
    square: float  # Σ w y²
    cells: int


class Cells(ABC):
    """Known cells of one table; `side` is "rows" or "cols"."""

    source: Any  # the table as it was given to the model
    shape: tuple[int, int]
    dtype: np.dtype
    n_cells: int

    @abstractmethod
    def sign(self) -> str:
        """A short sign of the cells, for checkpoints."""

    # ---- alternating least squares ----

    @abstractmethod
    def measure(self) -> tuple[float, float, float]:
        """Mean and spread of the cells, and how many a typical row or column has."""

    @abstractmethod
    def as_counts(self, alpha: float) -> tuple[Cells, float, float]:
        """Counts r as weights w = α r with targets (1 + w)/w; Σ w, and the objective's constant Σ (1 + w − w x²)."""

    @abstractmethod
    def sample(self) -> Observed:
        """Cells in memory by which ridges are found: all, or those of some rows."""

    @abstractmethod
    def list_sizes(self, side: str) -> list[int]:
        """The number of lines in each piece of a side's features."""

    @abstractmethod
    def place(self, side: str, pieces: Iterable[np.ndarray]) -> Any:
        """Features of a side, piece by piece, in the form of these cells."""

    @abstractmethod
    def multiply_square(self, Z: np.ndarray, mean: float) -> np.ndarray:
        """(X − mean)ᵀ(X − mean) Z over the known cells."""

    @abstractmethod
    def half_step(self, side: str, current: Any, other: Any, step: HalfStep) -> tuple[Any, Costs]:
        """One side's features given the other's, from `current` or zero, and a function that gives their costs."""

    @abstractmethod
    def run(
        self, model: Any, steps: HalfSteps, start: State, seed: int, constant: float = 0.0, **attributes: Any
    ) -> None:
        """Repeat the sweep, make rows exact, and set factors, biases and `attributes` on the model."""

    def place_array(self, side: str, Z: np.ndarray) -> Any:
        return self.place(side, np.split(Z, np.cumsum(self.list_sizes(side))[:-1]))

    def start_rows(self, Z: Any, step: HalfStep) -> State:
        """The rows that suit columns, to begin with."""
        return State(self.half_step("rows", None, Z, step)[0], Z)

    def start(self, plan: Plan, biases: bool, turns: int, rng: np.random.Generator) -> State:
        """Column factors by a rough SVD, no biases, and the rows that suit them."""
        Z = ridges.start_columns(
            plan, lambda Z: self.multiply_square(Z, plan.mean), self.shape[1], biases, turns, rng
        ).astype(self.dtype)
        return self.start_rows(self.place_array("cols", Z), HalfSteps.of_plan(plan).rows)

    def sweep(self, state: State, steps: HalfSteps, constant: float) -> loop.Sweep:
        Z, cols_cost = self.half_step("cols", state.Z, state.U, steps.cols)
        U, rows_cost = self.half_step("rows", state.U, Z, steps.rows)
        return loop.Sweep(State(U, Z), rows_cost()[0] + constant + cols_cost()[1])

    # ---- what was seen ----

    @abstractmethod
    def sum_lines(self) -> Sums:
        """The sums that biases need."""

    @abstractmethod
    def count_columns(self) -> tuple[np.ndarray, float]:
        """(d,) how many rows, by weight, saw each column, and how many saw any."""

    @abstractmethod
    def count_seen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(d,) the cells that are not zero in each column and (d,) their sum, weighted; (n,) roots of rows' weights."""

    @abstractmethod
    def multiply_gram(self, heads: np.ndarray) -> np.ndarray:
        """(m,m) the upper triangle of HᵀH, H the weighted columns `heads`."""

    @abstractmethod
    def take_seen(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """(rows,cols) weighted cells, 0 where nothing was seen."""

    @abstractmethod
    def multiply_tails(self, heads: np.ndarray) -> sparse.csr_array:
        """(m,d) products of the columns `heads` with all others."""

    @abstractmethod
    def keep_rows(self) -> Callable[[], Any]:
        """A function that gives the rows as `predict(rows, cols)` reads them; refused now where it will not be able."""


def find_ratings(X: Any, duplicates: str | None = None) -> Any:
    """X itself, or partitioned ratings if it is a path or dask frame of rows of user and item."""
    if hasattr(X, "n_ratings") or not (is_path(X) or is_dask(X)):
        return X
    from twofold.completion.partitioned.ratings import PartitionedRatings
    from twofold.completion.partitioned.sources import holds_ratings

    return PartitionedRatings(X, duplicates=duplicates) if holds_ratings(X) else X


def open_cells(
    model: Any, X: Any, sample_weight: Any, count_features: Callable[[tuple[int, int]], int] = lambda shape: 1
) -> Cells:
    """The cells of X, checked, for one fit; `count_features(shape)` are those a line will have."""
    if not hasattr(X, "n_ratings"):
        return MemoryCells(model._observe(X, sample_weight), X)
    from twofold.completion.partitioned.cells import PartitionedCells

    return PartitionedCells(model, X, sample_weight, count_features(X.shape))


class MemoryCells(Cells):
    """Cells in memory; features are arrays, one piece each."""

    def __init__(self, observed: Observed, source: Any = None):
        self.observed, self.source, self.n_cells = observed, source, observed.X.nnz
        self.shape, self.dtype = observed.shape, observed.dtype

    def sign(self) -> str:
        return self.observed.sign()

    def measure(self) -> tuple[float, float, float]:
        return ridges.measure_cells(self.observed)

    def as_counts(self, alpha: float) -> tuple[Cells, float, float]:
        R = self.observed.X
        check_counts(R)
        W = R * self.observed.W * R.dtype.type(alpha)
        W.eliminate_zeros()
        if W.nnz == 0:
            raise InputError(NO_COUNTS)
        X = make_targets(W)
        constant = float((W.data.astype(float) + 1).sum())
        constant -= float((W.data.astype(float) * X.data.astype(float) ** 2).sum())
        return MemoryCells(see_both_sides(X, W), self.source), W.data.sum(dtype=float), constant

    def sample(self) -> Observed:
        return self.observed

    def list_sizes(self, side: str) -> list[int]:
        return [self.shape[side == "cols"]]

    def place(self, side: str, pieces: Iterable[np.ndarray]) -> np.ndarray:
        (piece,) = pieces
        return piece

    def multiply_square(self, Z: np.ndarray, mean: float) -> np.ndarray:
        return ridges.multiply_square(self.observed, Z, mean)

    def half_step(self, side: str, current: Any, other: Any, step: HalfStep) -> tuple[Any, Costs]:
        lines = getattr(self.observed, side)
        base = None if step.alpha is None else other.T @ other
        features = step.read_features(other)
        current = np.zeros((len(lines.mass), features[0].shape[1]), self.dtype) if current is None else current
        found, cost = ridges.half_step(lines, current, base, *features, step.ridge, step.steps, step.size)
        return found, lambda: (cost, ridges.penalize(found, lines.mass, step.ridge))

    def run(
        self, model: Any, steps: HalfSteps, start: State, seed: int, constant: float = 0.0, **attributes: Any
    ) -> None:
        def to_attributes(state: State) -> dict[str, Any]:
            return {**split_biases(state.U, state.Z, steps.rows.k, steps.rows.unit), **attributes}

        def sweep(state: State, t: int) -> loop.Sweep:
            return self.sweep(state, steps, constant)

        loop.run(model, sweep, start, fitted=to_attributes, X=self.source, seed=seed, fingerprint=self.sign)
        if steps.exact != steps.rows:
            U, Z = model._join_biases()  # as new rows see the columns
            U, _ = self.half_step("rows", U, Z, steps.exact)
            for name, value in to_attributes(State(U, Z)).items():
                setattr(model, name, value)

    def sum_lines(self) -> Sums:
        cells = self.observed
        w, x = cells.W.data.astype(np.float64), cells.X.data.astype(np.float64)
        center = float(np.average(x, weights=w))
        n, d = cells.shape
        row, y = np.repeat(np.arange(n), np.diff(cells.X.indptr)), x - center
        W = sparse.csr_array((w, cells.X.indices, cells.X.indptr), shape=cells.shape)
        rows = Lines(W, cells.rows.mass, np.bincount(row, w * y, n))
        cols = Lines(W.T, cells.cols.mass, np.bincount(cells.X.indices, w * y, d))
        return Sums(rows, cols, center, float(w @ y**2), len(x))

    def count_columns(self) -> tuple[np.ndarray, float]:
        W = keep_stored(self.observed.W, self.observed.X.data != 0)
        return np.bincount(W.indices, W.data.astype(np.float64), self.shape[1]), float(weigh_rows(W).sum())

    @cached_property
    def _seen(self) -> tuple[sparse.csr_array, np.ndarray]:
        """The cells that are not zero times the root of their weight, and the roots of the rows' weights."""
        A, W = (keep_stored(table, self.observed.X.data != 0) for table in (self.observed.X, self.observed.W))
        A.data *= np.sqrt(W.data)
        return A, np.sqrt(weigh_rows(W))

    def count_seen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        A, root = self._seen
        return np.bincount(A.indices, minlength=self.shape[1]), A.T @ root, root

    def _take_heads(self, heads: np.ndarray) -> sparse.csr_array:
        A, _ = self._seen
        return A if len(heads) == self.shape[1] else A[:, heads]

    def multiply_gram(self, heads: np.ndarray) -> np.ndarray:
        H = self._take_heads(heads)
        H.sort_indices()
        G = np.zeros((len(heads), len(heads)), H.dtype)
        csr_gram(H.data, H.indices, H.indptr, np.ones(H.shape[0]), G)
        return G

    def take_seen(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        return self._seen[0][rows][:, cols].toarray()

    def multiply_tails(self, heads: np.ndarray) -> sparse.csr_array:
        A, _ = self._seen
        return self._take_heads(heads).T.tocsr() @ keep_stored(A, ~np.isin(A.indices, heads))

    def keep_rows(self) -> Callable[[], Any]:
        return lambda: self.observed.X


def weigh_rows(W: sparse.csr_array) -> np.ndarray:
    """(n,) what each row counts: the mean weight of the cells it has seen, and nothing if there are none."""
    return np.asarray(W.sum(axis=1, dtype=np.float64)).ravel() / np.maximum(np.diff(W.indptr), 1)


def check_counts(R: sparse.csr_array, first: int = 0) -> None:
    """Refuse a negative count, with its place; `first` is the number of the first row."""
    if R.nnz and R.data.min() < 0:
        at = int(np.argmax(R.data < 0))
        row = first + int(np.searchsorted(R.indptr, at, side="right")) - 1
        place = f"X[{row}, {R.indices[at]}] is {R.data[at]:g}"
        raise InputError(f"Negative values in data passed to ImplicitALS: {place}, {NEGATIVE}")


def make_targets(W: sparse.csr_array) -> sparse.csr_array:
    """The targets x = (1 + w)/w that belong to the weights w."""
    return sparse.csr_array(((1 + W.data) / W.data, W.indices, W.indptr), shape=W.shape)


def split_biases(U: np.ndarray, Z: np.ndarray, k: int, unit: float) -> dict:
    """Features (n,p), (d,p) as attributes: k factors, and the bias in the column after them, if any, times `unit`."""
    scale = U.dtype.type(unit)
    return {
        "components_": np.ascontiguousarray(Z[:, :k].T),
        "row_factors_": np.ascontiguousarray(U[:, :k]),
        "row_bias_": bias_of(U, k) * scale,
        "column_bias_": bias_of(Z, k) * scale,
    }
