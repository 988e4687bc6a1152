"""Factorization of clicks and counts: every cell counts, those that were seen count more.

    minimize  Σ_ij c_ij (p_ij − ⟨u_i, z_j⟩)²  +  Σ_i λ_i ‖u_i‖²  +  Σ_j λ_j ‖z_j‖²      over all cells, with
              p_ij = 1 where something was seen, else 0;   c_ij = 1 + α r_ij;
              λ_i = λ (c_i / c)^ν   for a row whose cells count c_i = Σ_j c_ij, where a typical one's count c

    R (n,d) counts, stored where something was seen   U (n,k) rows   Z (k,d) columns

With ν = 0 this is the plain ridge; with ν = 1 those of whom more is known are held more firmly, so that each cell bears
the same share. In the units of Rendle et al., α = 1/α₀ and c_i = (n_i + α₀ d)/α₀, whose power is their ridge.

One sweep:  each column  z_j ← ridge regression in which UᵀU stands for all the zeros at once
            each row     u_i ← the same, sides exchanged
exactly, by conjugate gradients, or exactly in one block of the factors after the other (iALS++).
The n·d zeros cost nothing: with w = α r and x = (1 + w)/w, a seen cell adds w (x − ⟨u,z⟩)² to uᵀZᵀZu and a constant.
References: Hu, Koren & Volinsky 2008; Takács, Pilászy & Tikk 2011 (conjugate gradients); Rendle, Krichene, Zhang &
Koren 2021 (how the ridge scales, where to start); Rendle, Krichene, Zhang & Koren 2021, iALS++ (blocks).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from twofold.completion.cells import HalfStep, HalfSteps, check_counts, find_ratings, make_targets, open_cells
from twofold.completion.model import Factors, Ranking
from twofold.core.data.blocks import Blocks
from twofold.core.data.known_cells import take_known
from twofold.core.estimator import fitting
from twofold.core.numerics.alternating_ridge import SMALL, STEPS, Ridge, solve_rows
from twofold.core.params import Interval, StrOptions
from twofold.core.seeds import generator, seed_of
from twofold.core.types import Seed, Table, Weights

BLOCK = 64  # factors that are solved for together
START = 0.1  # about the length of a column's factor at first


class ImplicitALS(Ranking, Factors):
    """Recommendations from what people did, not from what they said.

    Unstored cells mean "not seen": they pull towards 0 with weight 1, while a stored count r pulls towards 1 with
    weight ``1 + alpha r``. The prediction is a preference, about 0 to 1, to rank by; it is not a count.

    Parameters
    ----------
    n_components : int or None, default=None
        Factors a row; None means 128, or the columns if fewer.
    reg : float, default=35.0
        Ridge λ on both factors, that of a typical row or column.
    reg_power : float, default=1.0
        The ridge grows as what the cells of a row count, to this power: 1 holds those of whom more is known more
        firmly, 0 is the plain ``λ‖u‖²``.
    alpha : float, default=5.0
        How much more a seen cell counts, per count.
    solver : {"auto", "cholesky", "cg", "blocks"}, default="auto"
        Exact half-steps, a few conjugate gradient steps from where each row stands, or 64 factors at a time exactly.
        "auto" is exact with up to 12 factors, then "cg", which gets as far as "blocks" at a third of the cost.
    tol : float, default=1e-3
    max_iter : int, default=20
        When the sweeps end: as in :class:`ALS`.
    random_state : int, RandomState, Generator or None, default=None
        Where the column factors start.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
    row_factors_ : ndarray of shape (n, k)
    reg_ : float
        λ / c^ν: the ridge of a row is this times what its cells count to the power `reg_power`.
    row_bias_, column_bias_, mean_
        All zero.
    history_, n_iter_, converged_

    References
    ----------
    Hu, Koren & Volinsky (2008), *ICDM*, 263-272. Rendle, Krichene, Zhang & Koren (2022), *RecSys*, 427-435; (2021),
    arXiv:2110.14044.

    Examples
    --------
    Two kinds of people, each with their own six films; a person that saw one film of a kind is led to the others.

    >>> from twofold import ImplicitALS
    >>> rng = np.random.default_rng(0)
    >>> kind = np.arange(40) % 2
    >>> seen = (rng.random((40, 12)) < 0.5) & (np.arange(12) // 6 == kind[:, None])
    >>> model = ImplicitALS(2, reg=1.0, random_state=0).fit(seen.astype(float))
    >>> newcomer = np.zeros((1, 12)); newcomer[0, 1] = 1
    >>> sorted(np.argsort(-model.predict(newcomer)[0])[:6].tolist())
    [0, 1, 2, 3, 4, 5]
    """

    reg_: float
    _default_components: ClassVar[int] = 128
    _allow_negative: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict] = {
        **Factors._parameter_constraints,
        "reg": [Interval(Real, 0, None, closed="neither")],
        "reg_power": [Interval(Real, 0, 1, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"auto", "cholesky", "cg", "blocks"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        reg: float = 35.0,
        reg_power: float = 1.0,
        alpha: float = 5.0,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 20,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.reg = reg
        self.reg_power = reg_power
        self.alpha = alpha
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @fitting
    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> ImplicitALS:
        """Fit to counts X (n, d) >= 0, which weights multiply; unstored cells, zeros and NaN mean "not seen".

        See :meth:`ALS.fit` for the arguments.
        """
        cells = open_cells(self, find_ratings(X, "sum"), sample_weight, self._rank)
        k, seed = self._rank(cells.shape), seed_of(self.random_state)
        cells, mass, constant = cells.as_counts(float(self.alpha))
        solver = self.solver if self.solver != "auto" else "cg" if k > SMALL else "cholesky"
        steps, size = {"cg": (STEPS, 0), "blocks": (0, BLOCK), "cholesky": (0, 0)}[solver]
        typical = np.sqrt(np.prod([d + mass / n for n, d in (cells.shape, cells.shape[::-1])]))
        lam = float(self.reg / typical**self.reg_power)
        cols, rows = (
            HalfStep(k, 0.0, 1.0, Ridge(lam, float(self.reg_power), rest=float(others)), steps, size, float(self.alpha))
            for others in cells.shape
        )
        rng = generator(seed)
        drawn = (START / np.sqrt(k) * rng.normal(size=(m, k)) for m in cells.list_sizes("cols"))
        start = cells.start_rows(cells.place("cols", (Z.astype(cells.dtype) for Z in drawn)), rows)
        cells.run(self, HalfSteps(rows, cols), start, seed, constant, mean_=0.0, reg_=lam)
        return self

    def _refuse(self, blocks: Blocks, allow_nan: bool | None = None) -> None:
        super()._refuse(blocks, allow_nan)
        for i, first in enumerate(blocks.bounds[:-1]):
            check_counts(take_known(blocks[i]), int(first))

    def _folding(self) -> tuple[Callable, tuple]:
        Z = np.ascontiguousarray(self.components_.T)
        return fold_counts, (Z, Z.T @ Z, Ridge(self.reg_, float(self.reg_power), rest=float(len(Z))), float(self.alpha))


def fold_counts(R: sparse.csr_array, Z: np.ndarray, base: np.ndarray, ridge: Ridge, alpha: float) -> np.ndarray:
    """Factors of new rows of counts."""
    if R.nnz and R.data.min() < 0:
        return np.full((R.shape[0], Z.shape[1]), np.inf, Z.dtype)  # to be refused with its place
    W = (R * Z.dtype.type(alpha)).tocsr()
    W.eliminate_zeros()
    start = np.zeros((W.shape[0], Z.shape[1]), Z.dtype)
    offset = np.zeros(len(Z), Z.dtype)
    return solve_rows(make_targets(W), W.data, start, base, Z, offset, ridge)[0]
