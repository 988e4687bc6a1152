"""The methods of `cluster` by their names: each fits the rows and gives a model that labels new ones.

kmeans    KMeans
mixture   GaussianMixture, as many components as BIC wants unless the number is given
merged    the same with components that overlap taken for one group (`groups.py`)
density   HDBSCAN on a sample, other rows go with the nearest row of it
ward      Ward's tree of a sample, likewise
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import twofold
from twofold.analyses.cluster.coreset import fit_on_coreset
from twofold.analyses.cluster.groups import (
    EM_STOPPING,
    Choice,
    Fit,
    find_dense,
    label_by_nearest,
    least_variance,
    refit_dense,
    refit_merged,
)
from twofold.analyses.common.tables import warnings_as_notes
from twofold.core.checks import InputError
from twofold.core.seeds import generator
from twofold.io.tables.table import Table

MAX_DIMENSIONS = 10  # in which groups are chosen: the first principal axes
MAX_MERGED_COLUMNS = 300  # of a mixture with full covariances


class Plane(NamedTuple):
    """The axes in which groups are chosen; None: the columns themselves."""

    rows: np.ndarray  # (m,k) of the sample
    axes: np.ndarray | None  # (k,d)
    mean: np.ndarray | None  # (d,)
    noise: float  # variance beyond the axes


class Work(NamedTuple):
    """What a fit needs."""

    Y: Any  # all rows, scaled: an array, sparse, or blocks
    sample: Any  # (m,d)
    plane: Plane
    choice: Choice | None  # None if the number is given and the method needs no mixture
    n_groups: int
    seed: int
    table: Table


class Fitted(NamedTuple):
    """A model, and how to fit the same to other rows of the sample or of its plane."""

    model: Any
    again: Fit
    rows: Any  # that `again` takes: all of the sample
    figures: dict[str, Any]


def find_plane(sample: Any, seed: int) -> Plane:
    """The columns of the sample, or its first principal axes if there are many."""
    n, d = sample.shape
    if d <= MAX_DIMENSIONS:
        return Plane(sample.toarray() if sp.issparse(sample) else sample, None, None, 0.0)
    size = min(MAX_DIMENSIONS, n - 1)
    if not sp.issparse(sample) and np.isnan(sample).any():
        model: Any = twofold.PPCA(size, tol=1e-4, random_state=seed).fit(sample)
        noise = float(model.noise_variance_)
    else:
        model = twofold.PCA(size, random_state=seed).fit(sample)
        noise = float(model.explained_variance_[-1]) or 1.0
    return Plane(np.asarray(model.transform(sample)), model.components_, model.mean_, noise)


def lift(model: Any, plane: Plane) -> Any:
    """The mixture of the plane as one of all columns: beyond the axes all components are equal, so labels stay."""
    if plane.axes is None or plane.mean is None:
        return model
    V, full = np.asarray(plane.axes, np.float64), copy.copy(model)
    shape = model._shape(np.zeros(len(V)))
    beyond = max(plane.noise, 1e-12) * (np.eye(V.shape[1]) - V.T @ V)
    full.covariances_ = np.array([V.T @ shape.matrix(c) @ V + beyond for c in range(len(shape.weights))])
    full.means_ = full.components_ = shape.means @ V + plane.mean
    full.covariance_type, full.n_features_in_ = "full", V.shape[1]
    return full


def fit_kmeans(work: Work, coreset: bool = False) -> Fitted:
    model = twofold.KMeans(work.n_groups, random_state=work.seed)
    figures = fit_on_coreset(model, work.Y, work.seed, work.table) if coreset else {}
    model = model if coreset else model.fit(work.Y)

    def again(rows: Any) -> Any:
        return twofold.KMeans(work.n_groups, random_state=work.seed).fit(rows).predict

    labels = np.asarray(model.predict(work.Y))
    return Fitted(model.reordered(order_groups(labels, work.n_groups)), again, work.sample, figures)


def fit_gaussians(work: Work) -> Fitted:
    """The mixture with the kind of covariance of the least BIC, fitted to all rows."""
    floor = least_variance(work.sample)
    base = twofold.GaussianMixture(work.n_groups, reg_covar=floor, random_state=work.seed, **EM_STOPPING)
    with warnings_as_notes([]):
        found = twofold.select(base, work.sample, criterion="bic", covariance_type=["full", "diag"])
    kind = found.best_params["covariance_type"]
    work.table.notes.append(f"Gaussians are {'turned' if kind == 'full' else 'upright'} ellipsoids, by BIC ({kind})")
    base.set_params(covariance_type=kind, tol=1e-5)
    model = base.fit(work.Y)

    def again(rows: Any) -> Any:
        return twofold.GaussianMixture(**base.get_params()).fit(rows).predict

    labels = np.asarray(model.predict(work.Y))
    return Fitted(model.reordered(order_groups(labels, work.n_groups)), again, work.sample, {})


def fit_merged(work: Work) -> Fitted:
    """The mixture of the sample, merged into groups."""
    mixture, count = work.choice.mixture, work.n_groups  # type: ignore[union-attr]
    if count > len(work.choice.merging.groups):  # type: ignore[union-attr]
        raise InputError(
            f"⟨n_clusters={count}⟩: merging gives at most {len(mixture.weights_)} here, the number of Gaussians "
            "that fit the rows best. Use ⟨method=mixture⟩, which fits as many as it is told to."
        )
    groups = work.choice.merging.into(count)  # type: ignore[union-attr]
    labels = groups[mixture.predict(work.plane.rows)]
    place = np.argsort(order_groups(labels, count))
    model = lift(mixture, work.plane).merge_components(place[groups])
    return Fitted(model, refit_merged(mixture, count), work.plane.rows, {})


def fit_density(work: Work) -> Fitted:
    rows = work.plane.rows
    labels = find_dense(rows)
    if labels.max() < 0:
        labels = np.zeros(len(rows), np.int64)
        work.table.notes.append("no region is denser than the rows around it, so all rows are one group")
    model = as_nearest(work, labels, is_dense=True)
    return Fitted(model, refit_dense(len(rows)), rows, {})


def cut_tree(rows: np.ndarray, count: int) -> np.ndarray:
    from sklearn.cluster import AgglomerativeClustering

    return np.asarray(AgglomerativeClustering(count, linkage="ward").fit_predict(rows))


def fit_ward(work: Work) -> Fitted:
    rows = work.sample
    model = as_nearest(work, cut_tree(rows, work.n_groups), is_dense=False)

    def again(part: np.ndarray) -> Any:
        return label_by_nearest(part, cut_tree(part, work.n_groups))

    return Fitted(model, again, rows, {})


def as_nearest(work: Work, labels: np.ndarray, is_dense: bool) -> Any:
    """The labeled rows of the sample as a model; beyond the widest gap between rows of dense regions are outliers."""
    rows = work.sample[: len(labels)]
    reach = None
    if is_dense:
        from scipy.spatial import cKDTree

        inside = rows[labels >= 0]
        reach = float(cKDTree(inside).query(inside, 2)[0][:, 1].max())
    count = int(labels.max()) + 1
    place = np.append(np.argsort(order_groups(labels[labels >= 0], count)), -1)
    return twofold.NearestRows(reach).fit(rows, place[labels])


def order_groups(labels: np.ndarray, count: int) -> np.ndarray:
    """The groups, the largest first."""
    return np.argsort(-np.bincount(labels, minlength=count), kind="stable")


METHODS: dict[str, Callable[[Work], Fitted]] = {
    "kmeans": fit_kmeans,
    "mixture": fit_gaussians,
    "merged": fit_merged,
    "density": fit_density,
    "ward": fit_ward,
}


def fit_method(method: str, work: Work, coreset: bool) -> Fitted:
    fit = partial(fit_kmeans, coreset=coreset) if method == "kmeans" else METHODS[method]
    return fit(work)


def draw_rows(n: int, size: int, seed: int) -> np.ndarray:
    """Rows drawn at random, in order."""
    return np.sort(generator(seed, 1).permutation(n)[:size])
