"""Matrix completion by alternating least squares.

    minimize  Σ_Ω w_ij (x_ij − m − b_i − c_j − ⟨u_i, z_j⟩)²
              + λ Σ_i n_i^p (‖u_i‖² + b_i²/s) + λ Σ_j n_j^p (‖z_j‖² + c_j²/s)

    X (n,d) known in the cells Ω   U (n,k) row factors   Z (k,d) column factors   b, c biases   n_i, n_j known cells
    s the spread of x, so that one λ suits factors, whose products are x, and biases, which are x
    with reg="auto" the biases have ridges of their own, Σ_i λ_r b_i² + Σ_j λ_c c_j², and λ is found: see _auto_ridge.py

One sweep:  each column  (z_j, c_j) ← ridge regression of its known cells on (u_i, √s)
            each row     (u_i, b_i) ← the same, sides exchanged
References: Zhou, Wilkinson, Schreiber & Pan 2008 (λ by counts); Takács, Pilászy & Tikk 2011 (conjugate gradients).
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from twofold.completion import _auto_ridge as auto_ridge
from twofold.completion.cells import Cells, HalfSteps, find_ratings, open_cells
from twofold.completion.model import Factors, fold_rows
from twofold.core.checks import InputError
from twofold.core.data.blocks import as_blocks
from twofold.core.data.known_cells import find_known_cells
from twofold.core.estimator import fitting
from twofold.core.numerics.alternating_ridge import FREE, Ridge, bias_of, features, make_plan
from twofold.core.params import StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights


class ALS(Factors):
    """Matrix completion with ridge half-steps and biases.

    ``x̂_ij = mean + b_i + c_j + ⟨u_i, z_j⟩``, fitted to the known cells alone. The objective never rises. Factors are
    shrunk towards the biases, as firmly as cells put aside ask for: where they cannot be told from noise, the model is
    :class:`Biases`.

    Parameters
    ----------
    n_components : "auto", int or None, default="auto"
        Factors a row. "auto" finds them together with λ: up to 20 (or the columns if fewer), by which the cells held
        out are predicted best. None, or "auto" where `reg` is a number, means these 20.
    reg : "auto" or float, default="auto"
        Ridge, in units of the standard deviation of the known cells, so that their unit does not matter. "auto" holds
        out a tenth of the known cells (up to a quarter where they are few) and lowers λ, each fit begun at the last,
        from where all factors are zero until these cells are predicted no better; the biases' ridges are those of
        :class:`Biases`. For tables without noise it goes down to almost nothing. Of partitioned ratings, those of some
        users are looked at, 1 million, and λ is scaled to what the noise in all of them asks for.
    reg_power : float or None, default=None
        The ridge of a row with n_i known cells grows as n_i to this power: 1 is λ scaled by counts, 0 the plain
        ``λ‖u‖²``. None means 1, or ½ where λ is found. `reg` means the same for a typical row whatever the power.
    biases : bool, default=True
        Fit a mean, row and column biases together with the factors.
    nonnegative : bool, default=False
        Hold the factors (not the biases) at or above zero.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        Exact half-steps, or a few conjugate gradient steps from where each row stands, which is quicker for more than a
        dozen factors. Rows are made exact at the end either way.
    normalize : {"row", "column"} or None, default=None
        Fit the z-scores of rows or of columns: known cells less the mean of their line, divided by its deviation, which
        is drawn towards that of all lines where a line has few. Factors and biases are then those of z-scores; what is
        predicted and filled in is in the units of X. New rows are standardized by their own known cells.
    tol : float, default=1e-4
        Stop when the last sweeps, and a tenth of the change that their trend predicts, lower the objective by less
        than this, relatively.
    max_iter : int, default=100
        Sweeps at most.
    random_state : int, RandomState, Generator or None, default=None
        Where the rough SVD that the column factors start from begins.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Column factors.
    row_factors_ : ndarray of shape (n, k)
    row_bias_, column_bias_ : ndarray of shape (n,), (d,)
    mean_ : float
    spread_ : float
        s, the standard deviation of the known cells.
    reg_ : float
        λ = reg · s, times the typical number of known cells to the power 1 − `reg_power`.
    bias_reg_ : tuple of two floats, or None
        λ_r and λ_c where they were found.
    path_ : dict of lists
        What was tried: ``n_components``, ``reg`` and the held-out ``rmse``, of each rank without factors first; empty
        if `reg` was given.
    solver_ : str
    normalization_ : Normalization or None
        ``center`` and ``scale`` of every row or column, where z-scores were fitted.
    history_, n_iter_, converged_

    References
    ----------
    Zhou, Wilkinson, Schreiber & Pan (2008), *AAIM*, 337-348. Takács, Pilászy & Tikk (2011), *RecSys*, 297-300.

    Examples
    --------
    >>> from twofold import ALS
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 100))
    >>> X = np.where(rng.random(truth.shape) < 0.3, truth, np.nan)         # 70 % of the cells are holes
    >>> model = ALS(3, reg=1e-6, biases=False, tol=1e-3, max_iter=100, random_state=0).fit(X)
    >>> bool(np.linalg.norm(model.complete(X) - truth) < 1e-3 * np.linalg.norm(truth))
    True
    """

    reg_: float
    bias_reg_: tuple[float, float] | None = None
    path_: dict
    solver_: str
    spread_: float
    _parameter_constraints: ClassVar[dict] = {
        **Factors._parameter_constraints,
        **auto_ridge.RIDGE_PARAMETERS,
        "nonnegative": ["boolean"],
        "solver": [StrOptions({"auto", "cholesky", "cg"})],
    }

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        reg: str | float = "auto",
        reg_power: float | None = None,
        biases: bool = True,
        nonnegative: bool = False,
        solver: str = "auto",
        normalize: str | None = None,
        tol: float = 1e-4,
        max_iter: int = 100,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.reg = reg
        self.reg_power = reg_power
        self.biases = biases
        self.nonnegative = nonnegative
        self.solver = solver
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> ALS:
        """Fit to the known cells of X.

        Parameters
        ----------
        X : array-like, CSR, frame, path or dask array of shape (n, d)
            NaN (dense) or unstored (sparse) cells are unknown. Or :class:`PartitionedRatings`, and what these are made
            of: a path or a dask frame of rows whose columns are called user and item, or something like that.
        y : ignored
        sample_weight : array-like of shape (n,) or (n, d), optional
            How much each row, or each cell, counts.
        """
        cells = open_cells(self, find_ratings(X), sample_weight, lambda shape: self._rank(shape) + self.biases)
        seed = seed_of(self.random_state)
        plan, start, self.path_ = self._begin(cells, seed)
        solver = "cg" if plan.steps else "cholesky"
        cells.run(self, HalfSteps.of_plan(plan), start, seed, **auto_ridge.describe_ridges(plan), solver_=solver)
        return self

    def _begin(self, cells: Cells, seed: int) -> auto_ridge.Found:
        """The problem with its ridges, and where its sweeps start."""
        power, most = auto_ridge.get_power(self.reg, self.reg_power), self._rank(cells.shape)
        how: dict[str, Any] = {"biases": self.biases, "solver": self.solver, "nonnegative": self.nonnegative}
        if isinstance(self.reg, str):
            sample, ranks = cells.sample(), auto_ridge.list_ranks(most, self.n_components == "auto")
            make = partial(make_plan, sample, reg=0.0, power=power, **how)
            return auto_ridge.scale_to_all(auto_ridge.find_ridges(make, ranks, self.biases, seed), sample, cells)
        plan = make_plan(cells, most, reg=self.reg, power=power, **how)
        return auto_ridge.Found(
            plan, cells.start(plan, self.biases, 1 if self.reg >= 0.01 else 5, generator(seed)), auto_ridge.start_path()
        )

    def _bias_of(self, codes: np.ndarray) -> np.ndarray:
        return bias_of(codes, len(self.components_)) * codes.dtype.type(self._unit())

    def _ridge(self, columns: bool = False) -> Ridge:
        k = len(self.components_)
        floor = np.array([0.0] * k + [FREE] * self.biases, self.components_.dtype) if self.nonnegative else None
        last = None if self.bias_reg_ is None else self.bias_reg_[columns] * self.spread_
        return Ridge(self.reg_, auto_ridge.get_power(self.reg, self.reg_power), floor, last)

    def add_rows(self, X: Table) -> ALS:
        """Let new rows (m, d) join the fitted table: folded in, then known to `predict` as rows n … n+m−1."""
        check_is_fitted(self)
        (codes, lines), k = self._fold(X), len(self.components_)
        self.row_factors_ = np.concatenate([self.row_factors_, codes[:, :k]])
        self.row_bias_ = np.concatenate([self.row_bias_, self._bias_of(codes)])
        if self.normalization_ is not None and lines is not None:
            self.normalization_ = self.normalization_.join(lines)
        self.n_rows_ += len(codes)
        return self

    def add_columns(self, X: Table) -> ALS:
        """Let new columns join: X (n, m) holds the cells of the fitted rows in them."""
        check_is_fitted(self)
        blocks = as_blocks(X)
        if blocks.shape[0] != self.n_rows_:
            raise InputError(f"the new columns have {blocks.shape[0]} rows; the fitted table has {self.n_rows_}.")
        k, cells, lines = len(self.components_), find_known_cells(blocks).X, self.normalization_
        if lines is not None:
            new = lines if lines.by_row else lines.measure(cells)
            cells, self.normalization_ = new.standardize(cells), lines if lines.by_row else lines.join(new)
        seen = features(self._join_biases()[0], k, self.mean_, self._unit())
        codes = fold_rows(cells.T.tocsr(), *seen, self._ridge(columns=True))
        self.components_ = np.concatenate([self.components_, codes[:, :k].T], axis=1)
        self.column_bias_ = np.concatenate([self.column_bias_, self._bias_of(codes)])
        self.n_features_in_ += len(codes)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # the new columns came without names
        return self
