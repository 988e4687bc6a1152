"""Whether a table can be recovered from its known cells.

    degrees of freedom   k(n + d − k): the numbers that describe an n × d matrix M = U S Zᵀ of rank k
    coherence            μ(U) = n/k max_i ‖u_i‖²,  μ(Z) = d/k max_j ‖z_j‖²: 1 if spread evenly, n/k if in one row
    cross coherence      μ₁ = √(nd/k) max_ij |⟨u_i, z_j⟩|
    sample bound         64 max(μ₁², μ₀) k (n + d) log²(2 max(n, d)),  μ₀ = max(μ(U), μ(Z))
    incoherence          the least μ for which the entries of UUᵀ − (k/n)I, of ZZᵀ − (k/d)I and of UZᵀ are at most
                         μ√k/n, μ√k/d and μ√k/√(nd) in size
    its sample bound     μ² D k log⁶ D  times a constant that is not stated,  D = max(n, d)

So many cells, drawn at random, are enough for the nuclear norm to find M with a chance of at least
1 − 6 log(D)/(n + d)² − D^(2−2√2) where D = max(n, d) (Recht 2011, theorem 2 with β = 2). The bound is safe and far
from sharp; in experiments about three times the degrees of freedom are enough (Candès & Recht 2009). The second bound
(Candès & Tao 2010, theorem 1.2, with a chance of 1 − D⁻³) looks at single entries, not at sums over rows.
Whatever the method, it is not possible with fewer cells than degrees of freedom, with a row or column that knows
fewer than k cells, or if the cells fall apart into groups of rows and columns that share none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from twofold.completion._sparse_low_rank import add_low_rank, draw_start, find_leading, index_cells
from twofold.completion.svp import SVP
from twofold.core import loop
from twofold.core.checks import InputError
from twofold.core.data.blocks import as_blocks
from twofold.core.data.known_cells import Observed, find_known_cells
from twofold.core.engine.local import single_blas
from twofold.core.seeds import seed_of
from twofold.core.types import Seed, Table
from twofold.kernels.sparse_low_rank import label_components

MIN_CELLS_PER_FREEDOM = 3.0  # known cells for each degree of freedom, from which recovery can be hoped for
MAX_RANK = 50  # the largest rank that is looked for
MAX_EXACT_RESIDUAL = 1e-3  # of the known cells' norm; below, a matrix of rank k meets them


@dataclass(frozen=True)
class RecoveryReport:
    """What :func:`recovery_report` found; printed, it is a table with a verdict."""

    shape: tuple[int, int]
    n_components: int
    estimated: bool  # whether the rank was guessed from the cells
    known: int
    share: float
    degrees_of_freedom: int
    row_coherence: float
    column_coherence: float
    cross_coherence: float
    sample_bound: float
    incoherence: float
    incoherence_bound: float  # up to a constant
    empty_rows: int
    empty_columns: int
    groups: int  # of rows and columns that share no known cell with the others, empty ones left out
    least_in_row: int
    least_in_column: int
    residual: float  # of the completion of that rank, relative to the known cells
    possible: bool  # False if no method could
    hopeful: bool
    verdict: str

    def __str__(self) -> str:
        n, d = self.shape
        guessed = " (estimated)" if self.estimated else ""
        lines = [
            ("table", f"{n:,} × {d:,}"),
            ("rank", f"{self.n_components}{guessed}"),
            ("known cells", f"{self.known:,} ({self.share:.1%})"),
            ("degrees of freedom", f"{self.degrees_of_freedom:,}: {self._ratio:.2f} known cells for each"),
            ("coherence", f"rows {self.row_coherence:.2f}, columns {self.column_coherence:.2f} (1 is best)"),
            ("enough for sure", f"{self.sample_bound:,.0f} cells drawn at random"),
            ("incoherence", f"{self.incoherence:.2f}: {self.incoherence_bound:,.0f} cells times a constant"),
            ("fewest known cells", f"{self.least_in_row} in a row, {self.least_in_column} in a column"),
            ("nothing known", f"{self.empty_rows} rows, {self.empty_columns} columns"),
            ("connected groups", f"{self.groups}"),
            ("error at this rank", f"{self.residual:.2g} of the known cells' norm"),
        ]
        return "\n".join([*(f"{name:20}{value}" for name, value in lines), self.verdict])

    @property
    def _ratio(self) -> float:
        return self.known / self.degrees_of_freedom


def recovery_report(X: Table, n_components: int | None = None, *, random_state: Seed = 0) -> RecoveryReport:
    """Estimate whether the holes of X can be filled exactly.

    Parameters
    ----------
    X : array with NaN, or sparse array, of shape (n, d)
        NaN (dense) or unstored (sparse) cells are unknown.
    n_components : int or None, default=None
        The rank k that the whole table is thought to have. None estimates it from the singular values s of the
        known cells: the k that makes (s_{k+1} + s_1 √(k/ε)) / s_k least, with ε = known cells / √(nd); and if no
        matrix of that rank meets the cells, the least k of which one does.
    random_state : int, RandomState, Generator or None, default=0
        Start of the completion of rank k from which the coherence is taken.

    Returns
    -------
    RecoveryReport
        Numbers as attributes, `possible`, `hopeful`, `verdict`; ``print`` shows all.

    References
    ----------
    Candès & Recht (2009), *Found. Comput. Math.* 9, 717-772. Recht (2011), *JMLR* 12, 3413-3430.
    Candès & Tao (2010), *IEEE Trans. Information Theory* 56, 2053-2080.
    Keshavan & Oh (2009), *arXiv:0910.5260* (the rank).

    Examples
    --------
    >>> from twofold.completion.recovery import recovery_report
    >>> rng = np.random.default_rng(0)
    >>> M = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 50))
    >>> report = recovery_report(np.where(rng.random(M.shape) < 0.4, M, np.nan))
    >>> report.n_components, report.degrees_of_freedom, report.groups, report.hopeful
    (2, 216, 1, True)
    """
    with single_blas():
        cells = find_known_cells(as_blocks(X))
        n, d = cells.shape
        if n_components is not None and not 1 <= n_components <= min(n, d):
            raise InputError(f"n_components={n_components} must lie between 1 and min(n, d) = {min(n, d)}.")
        seed = seed_of(random_state)
        k = int(n_components) if n_components is not None else estimate_rank(cells, seed)
        model = complete_at_rank(cells, k, seed, 1e-6)
        U, Z = orthonormal_sides(model.row_factors_, model.components_.T)
        rows, cols, cross = measure_coherence(U, Z)
        mu = measure_incoherence(U, Z)
    counts = np.diff(cells.X.indptr), np.bincount(cells.X.indices, minlength=d)
    groups = label_components(cells.X.indptr.astype(np.int64), cells.X.indices.astype(np.int32), d)[1]
    empty = int((counts[0] == 0).sum()), int((counts[1] == 0).sum())
    found: dict[str, Any] = {
        "shape": (n, d),
        "n_components": k,
        "estimated": n_components is None,
        "known": cells.X.nnz,
        "share": cells.X.nnz / (n * d),
        "degrees_of_freedom": k * (n + d - k),
        "row_coherence": rows,
        "column_coherence": cols,
        "cross_coherence": cross,
        "sample_bound": compute_sample_bound((n, d), k, max(rows, cols), cross),
        "incoherence": mu,
        "incoherence_bound": mu**2 * max(n, d) * k * np.log(max(n, d)) ** 6,
        "empty_rows": empty[0],
        "empty_columns": empty[1],
        "groups": groups - sum(empty),
        "least_in_row": int(counts[0].min()),
        "least_in_column": int(counts[1].min()),
        "residual": model.history_["residual"][-1],
    }
    return RecoveryReport(**found, **judge_recovery(found))


def compute_sample_bound(shape: tuple[int, int], k: int, mu: float, cross: float) -> float:
    """Cells that are enough with high probability (Recht 2011, theorem 2, β = 2)."""
    return 64 * max(cross**2, mu) * k * sum(shape) * np.log(2 * max(shape)) ** 2


def orthonormal_sides(U: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The left and right singular vectors of M = U Zᵀ whose singular values are not zero."""
    Qu, Ru = np.linalg.qr(U.astype(np.float64))
    Qz, Rz = np.linalg.qr(Z.astype(np.float64))
    A, s, Bt = np.linalg.svd(Ru @ Rz.T)
    r = int((s > 1e-6 * s[0]).sum()) if s[0] > 0 else 0
    return Qu @ A[:, :r], Qz @ Bt[:r].T


def measure_coherence(U: np.ndarray, Z: np.ndarray) -> tuple[float, float, float]:
    """μ of the column space of a matrix with these singular vectors, that of its row space, and μ₁; 1 if it is zero."""
    n, d, r = len(U), len(Z), U.shape[1]
    if r == 0:
        return 1.0, 1.0, 1.0
    ends = (n / r * float((U**2).sum(axis=1).max()), d / r * float((Z**2).sum(axis=1).max()))
    return *ends, float(np.sqrt(n * d / r)) * find_largest(U, Z)


def measure_incoherence(U: np.ndarray, Z: np.ndarray) -> float:
    """The least μ for which the projections on both spaces, less their means, and UZᵀ have only small entries."""
    n, d, r = len(U), len(Z), U.shape[1]
    if r == 0:
        return 1.0
    left, right = n * find_largest(U, U, r / n), d * find_largest(Z, Z, r / d)
    return max(left, right, float(np.sqrt(n * d)) * find_largest(U, Z)) / float(np.sqrt(r))


def find_largest(U: np.ndarray, Z: np.ndarray, diagonal: float = 0.0) -> float:
    """The largest entry of UZᵀ − diagonal · I in size, some rows at a time."""
    most = 0.0
    for i in range(0, len(U), 4096):
        part = U[i : i + 4096] @ Z.T
        if diagonal:
            at = np.arange(len(part))
            part[at, i + at] -= diagonal
        most = max(most, float(np.abs(part).max()))
    return most


def complete_at_rank(cells: Observed, k: int, seed: int, tol: float) -> SVP:
    """A completion of rank k, to within tol of the known cells if there is one."""
    with loop.quietly():
        return SVP(k, tol=tol, max_iter=200, random_state=seed).fit(cells.X)


def estimate_rank(cells: Observed, seed: int) -> int:
    """The rank that the singular values show, or the least that meets the cells; the latter by bisection."""

    def meets(k: int) -> bool:
        return complete_at_rank(cells, k, seed, MAX_EXACT_RESIDUAL / 2).history_["residual"][-1] <= MAX_EXACT_RESIDUAL

    n, d = cells.shape
    k = np.arange(1, min(MAX_RANK, n, d) + 1)
    low = estimate_spectral_rank(cells)
    high = int((k * (n + d - k) <= cells.X.nnz / 2).sum())
    if low >= high or meets(low) or not meets(high):
        return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def estimate_spectral_rank(cells: Observed) -> int:
    """Find where the singular values of the known cells fall, with a charge for every further one."""
    n, d = cells.shape
    most = min(MAX_RANK, n, d)
    where = index_cells(cells)
    A = add_low_rank(where, cells.X.data.astype(np.float64))
    s = find_leading(A, draw_start(where, most + 1, 0), k=most + 1, tol=1e-4, max_steps=10).s
    s = np.append(s, 0.0)[: most + 1]
    if s[0] == 0:
        return 1
    k = np.arange(1, len(s))
    charge = s[0] * np.sqrt(k * np.sqrt(n * d) / cells.X.nnz)
    allowed = (k * (n + d - k) <= cells.X.nnz) & (s[:-1] > 1e-12 * s[0])
    allowed[0] = True
    return int(k[np.argmin(np.where(allowed, (s[1:] + charge) / np.maximum(s[:-1], 1e-300), np.inf))])


def judge_recovery(figures: dict[str, Any]) -> dict[str, Any]:
    """Conclude from the numbers, in words."""
    k, known, free = figures["n_components"], figures["known"], figures["degrees_of_freedom"]
    n, d = figures["shape"]
    against = []
    if figures["empty_rows"] or figures["empty_columns"]:
        against.append(f"{figures['empty_rows']} rows and {figures['empty_columns']} columns have no known cell")
    if figures["groups"] > 1:
        against.append(f"the known cells fall apart into {figures['groups']} groups that share no row and no column")
    if known < free:
        against.append(f"{known:,} known cells cannot determine {free:,} degrees of freedom")
    for name, least, side in (("row", figures["least_in_row"], d), ("column", figures["least_in_column"], n)):
        if 0 < least < min(k, side):
            against.append(f"a {name} has only {least} known cells, fewer than the rank {k}")
    if against:
        why = "; ".join(against)
        return {"possible": False, "hopeful": False, "verdict": f"Exact recovery is impossible at rank {k}: {why}."}
    ratio, off = known / free, figures["residual"]
    if off > MAX_EXACT_RESIDUAL:
        text = (
            f"No matrix of rank {k} was found that meets the known cells (error {off:.1%}): expect an approximation, "
            "not exact recovery. SoftImpute and ALS are made for that."
        )
    elif known == n * d:
        text = "Every cell is known: there is nothing to recover."
    elif known >= figures["sample_bound"]:
        text = "Exact recovery is all but certain if the cells were drawn at random: there are enough for the theorem."
    elif ratio >= MIN_CELLS_PER_FREEDOM:
        text = f"Exact recovery can be hoped for: {ratio:.1f} known cells for each degree of freedom, all connected."
    else:
        text = (
            f"Exact recovery is doubtful: {ratio:.1f} known cells for each degree of freedom, "
            f"where about {MIN_CELLS_PER_FREEDOM:g} are needed in practice."
        )
    enough = ratio >= MIN_CELLS_PER_FREEDOM or known >= min(figures["sample_bound"], n * d)
    return {"possible": True, "hopeful": bool(off <= MAX_EXACT_RESIDUAL and enough), "verdict": text}
