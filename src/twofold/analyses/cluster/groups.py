"""Which groups a table has: components of a mixture of Gaussians that are merged where they overlap, or dense regions.

    mixture    Gaussians with full, diagonal or shared covariances, as many as BIC wants: how many Gaussians, not groups
    overlap    of a and b: the share of one's rows that the mixture takes for the other's, the larger of the two
    merging    the two with the most overlap become one, again and again: overlaps o₁ ≥ o₂ ≥ ... ≥ o_(k−1)
    cut        where log o falls most: o₀ = MAX_OVERLAP before the first merger, MIN_OVERLAP after the last

Parts of one group overlap equally, two groups far less, whatever their shapes are; so the widest gap in the overlaps
is where parts end and groups begin. If that gap comes after the last merger, all rows are one group. n rows seldom
show an overlap below VISIBLE_ROWS / n, so all smaller ones count as that.

Dense regions (HDBSCAN) win if they hold nearly all rows, and halves of the rows give them again more surely than they
give the merged components. References: Hennig 2010 (merging by misclassification); Baudry et al. 2010 (the elbow of
the path); Campello et al. 2013 (dense regions); Ben-Hur et al. 2002 (stability).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import softmax

import twofold
from twofold.analyses.common.sizes import find_size
from twofold.analyses.common.tables import warnings_as_notes
from twofold.core.seeds import generator

KINDS = ("full", "diag", "tied")  # of covariances
FIRST_SIZES = 10  # components tried at once; more while that is better
MAX_COMPONENTS, ROWS_PER_COMPONENT = 100, 10
SECONDS = 30.0  # for looking beyond the first sizes, for each kind
MIN_RELATIVE_VARIANCE = 1e-3  # of columns of unknown kind, often whole numbers: no component is thinner than 3 %
EM_STOPPING: dict[str, Any] = {"tol": 1e-4, "max_iter": 200}  # over plateaus, where EM moves little for some sweeps
MAX_OVERLAP, MIN_OVERLAP = 0.25, 0.01  # of parts that are hardly two, and of groups that are hardly one
MIN_GROUP_ROWS = 2.5  # expected in a component; fewer are outliers, which go with the next likeliest component
VISIBLE_ROWS = 0.3  # expected rows in an overlap, below which none is likely to be seen
MIN_REGION_SHARE, MIN_REGION_ROWS = 0.02, 5  # of the rows, for a dense region
MIN_DENSE_SHARE = 0.95  # of the rows in dense regions
MIN_DENSE_STABILITY = 0.85
HALVES = 3  # pairs of halves for stability

Label = Callable[[np.ndarray], np.ndarray]  # from rows to groups, −1 for outliers
Fit = Callable[[np.ndarray], Label]


class Merging(NamedTuple):
    """The mergers of the g components of a mixture that are no outliers, the most overlapping pair first."""

    overlaps: np.ndarray  # (g−1,)
    groups: list[np.ndarray]  # g arrays (k,): the group of each component after 0, 1, ... mergers

    def into(self, count: int) -> np.ndarray:
        """The group of each component if there are `count` groups, or as many as can be."""
        return self.groups[max(0, len(self.groups) - count)]

    def cut(self, n: int) -> int:
        """The number of groups at the widest gap of the overlaps, which n rows have shown."""
        falling = np.clip(np.minimum.accumulate(self.overlaps), VISIBLE_ROWS / n, MAX_OVERLAP)
        levels = np.log(np.concatenate([[MAX_OVERLAP], falling, [MIN_OVERLAP]]))
        return len(self.groups) - int(np.argmax(levels[:-1] - levels[1:]))


def merge(joint: np.ndarray) -> Merging:
    """Merge components by their log-densities (n,k), each with its log-weight, at the rows of the fit.

    >>> share = np.array([[0.6, 0.4, 1e-9]] * 5 + [[0.4, 0.6, 1e-9]] * 5 + [[1e-9, 1e-9, 1.0]] * 5)
    >>> found = merge(np.log(share))
    >>> found.overlaps.round(2).tolist(), found.groups[1].tolist(), found.cut(15)
    ([0.4, 0.0], [0, 0, 1], 2)
    """
    share = softmax(joint, axis=1)
    members = [[c] for c in range(share.shape[1])]
    for c in np.argsort(share.sum(axis=0), kind="stable"):
        if len(members) > 1 and share[:, c].sum() < MIN_GROUP_ROWS:
            share, members = absorb(int(c), joint, share, members)
    share = share[:, [one[0] for one in members]]
    overlaps, groups = [], [number_groups(members, joint.shape[1])]
    while len(members) > 1:
        taken, total = share.argmax(axis=1), np.maximum(share.sum(axis=0), 1e-9)
        lost = np.array([share[taken == a].sum(axis=0) for a in range(len(members))]) / total
        both = np.maximum(lost, lost.T)
        np.fill_diagonal(both, -1.0)
        a, b = sorted(np.unravel_index(int(np.argmax(both)), both.shape))
        overlaps.append(float(both[a, b]))
        share[:, a] += share[:, b]
        share = np.delete(share, b, axis=1)
        members[a] += members.pop(b)
        groups.append(number_groups(members, joint.shape[1]))
    return Merging(np.array(overlaps), groups)


def absorb(
    c: int, joint: np.ndarray, share: np.ndarray, members: list[list[int]]
) -> tuple[np.ndarray, list[list[int]]]:
    """Give component c to the group whose first component is likeliest at the rows of c."""
    firsts = [one[0] for one in members if one[0] != c]
    row = int(share[:, c].argmax())
    to = firsts[int(joint[row, firsts].argmax())]
    own = next(one for one in members if one[0] == c)
    share = share.copy()
    share[:, to] += share[:, c]
    return share, [one + own if one[0] == to else one for one in members if one is not own]


def number_groups(members: list[list[int]], k: int) -> np.ndarray:
    group = np.empty(k, np.int64)
    for c, one in enumerate(members):
        group[one] = c
    return group


def find_joint(model: Any, rows: np.ndarray) -> np.ndarray:
    """The log-densities of the components at the rows, each with its log-weight."""
    from twofold.clusters.mixtures.gaussian_mixture import joint_density

    return joint_density(rows, model._shape())


# --- the candidates -----------------------------------------------------------------------------------------


def fit_mixture(rows: np.ndarray, seed: int) -> tuple[Any, pl.DataFrame]:
    """The mixture with the least BIC, and all that were tried."""
    n = len(rows)
    base = twofold.GaussianMixture(reg_covar=least_variance(rows), **EM_STOPPING)
    first, most = range(1, min(FIRST_SIZES, max(1, n // 2)) + 1), min(MAX_COMPONENTS, n // ROWS_PER_COMPONENT)
    best, tables = None, []
    with warnings_as_notes([]):
        for kind in KINDS:

            def choose(sizes: list[int], seconds: float | None, kind: str = kind) -> Any:
                grid: dict[str, Any] = {"n_components": sizes, "covariance_type": [kind]}
                return twofold.select(base, rows, criterion="bic", random_state=seed, time=seconds, **grid)

            found, tried = find_size(choose, "n_components", first, most, SECONDS)
            bic = found.winner.bic(rows)
            tables.append(tried)
            if best is None or bic < best[1]:
                best = found.winner, bic
    assert best is not None
    return best[0], pl.concat(tables, how="diagonal")


def least_variance(rows: Any) -> float:
    """Return what is added to the variances of components: a share of the geometric mean of the columns' variances."""
    variance = np.nanvar(rows, axis=0)
    if not variance.any():
        return MIN_RELATIVE_VARIANCE
    return MIN_RELATIVE_VARIANCE * float(np.exp(np.log(variance[variance > 0]).mean()))


def refit_merged(model: Any, count: int) -> Fit:
    """A fit of as many components as the model has, merged into `count` groups."""

    def fit(rows: np.ndarray) -> Label:
        with warnings_as_notes([]):
            again = type(model)(**model.get_params()).fit(rows)
        groups = merge(find_joint(again, rows)).into(count)
        return lambda X: groups[again.predict(X)]

    return fit


def find_dense(rows: np.ndarray, min_rows: int | None = None) -> np.ndarray:
    """Dense regions by HDBSCAN: the region of each row, −1 for outliers; `min_rows` rows make a region."""
    from sklearn.cluster import HDBSCAN

    n = len(rows)
    min_rows = max(MIN_REGION_ROWS, int(MIN_REGION_SHARE * n)) if min_rows is None else min_rows
    if n < 2 * min_rows:
        return np.full(n, -1)
    return np.asarray(HDBSCAN(min_rows, copy=True).fit_predict(rows))


def refit_dense(n: int) -> Fit:
    """A fit of dense regions to fewer rows than n; every row counts to the region of the nearest that has one."""
    least = max(3, int(MIN_REGION_SHARE * n) // 2)

    def fit(rows: np.ndarray) -> Label:
        return label_by_nearest(rows, find_dense(rows, least))

    return fit


def label_by_nearest(rows: np.ndarray, labels: np.ndarray) -> Label:
    """Give new rows the group of the nearest row that has one."""
    from scipy.spatial import cKDTree

    if not (labels >= 0).any():
        return lambda X: np.zeros(len(X), np.int64)
    tree, own = cKDTree(rows[labels >= 0]), labels[labels >= 0]
    return lambda X: own[tree.query(X)[1]]


# --- the choice ---------------------------------------------------------------------------------------------


def halve(n: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for t in range(HALVES):
        order = generator(seed, 7, t).permutation(n)
        yield order[: n // 2], order[n // 2 :]


def measure_stability(fit: Fit, rows: Any, seed: int) -> float:
    """Measure how well fits to two halves of the rows agree on all of them: 1 fully, 0 by chance, a mean."""
    from sklearn.metrics import adjusted_rand_score

    found = []
    for a, b in halve(rows.shape[0], seed):
        try:
            found.append(adjusted_rand_score(fit(rows[a])(rows), fit(rows[b])(rows)))
        except (np.linalg.LinAlgError, ValueError):
            found.append(0.0)
    return float(np.mean(found))


class Choice(NamedTuple):
    """The groups of some rows, and how they were found."""

    method: str  # "merged" or "density"
    n_groups: int
    mixture: Any  # (k components)
    merging: Merging
    tried: pl.DataFrame
    stability: dict[str, float]  # of each candidate


def choose_groups(rows: np.ndarray, seed: int) -> Choice:
    """The groups of rows (n,d), of at most some ten columns; blanks are for the mixture alone."""
    mixture, tried = fit_mixture(rows, seed)
    n, merging = len(rows), merge(find_joint(mixture, rows))
    count, method, stability = merging.cut(n), "merged", {}
    if count > 1 and n >= 4 * count:
        stability["merged"] = measure_stability(refit_merged(mixture, count), rows, seed)
    dense = np.full(n, -1) if np.isnan(rows).any() else find_dense(rows)
    if dense.max() >= 1 and (dense >= 0).mean() >= MIN_DENSE_SHARE:
        stability["density"] = measure_stability(refit_dense(n), rows, seed)
        if stability["density"] > max(stability.get("merged", 0.0), MIN_DENSE_STABILITY):
            method, count = "density", int(dense.max()) + 1
    return Choice(method, count, mixture, merging, tried, stability)
