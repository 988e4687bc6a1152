"""Rows in the plane with moving centers, medoids or ellipses. Each method names its estimator and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from twofold.lab.methods import tables
from twofold.lab.methods.method import Data, Frame, Method, Values, as_bytes, pack, start_frame
from twofold.lab.methods.setting import Setting, control, loop_controls, sweep_limit
from twofold.lab.script import Name, Script

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOUND: dict[str, Any] = {
    "default": None,
    "type": "int",
    "min": 1,
    "max": 30,
}  # found as `twofold cluster` does, if left open
START = Setting(
    "start",
    "start",
    "Rows drawn at random as the first centers, the same for every method; or the method's own start, which is nearer "
    "to the end.",
    "random rows",
    choices=("random rows", "by itself"),
)


class Rows:
    """Rows in the plane: X itself if it has two columns, else its first two principal axes."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        from twofold import PCA

        self.X, self.original = script["X"], script["table"]
        d = self.X.shape[1]
        self.mean, self.plane = np.zeros(d), np.eye(2, d)
        axes = tables.column_names(data, d)[:2] if self.X.shape == self.original.shape else ["axis 1", "axis 2"]
        at = tables.first_two(self.X)
        if d > 2:
            pca = PCA(2, random_state=0).fit(self.X)
            at, self.mean, self.plane = pca.transform(self.X), pca.mean_, pca.components_
            axes = [f"axis {c + 1} ({share:.0%})" for c, share in enumerate(pca.explained_variance_ratio_)]
        self.at = at
        start = self.project(script["start"]) if "start" in script else np.zeros((0, 2))
        nothing = {"labels": as_bytes(np.full(len(at), 255)), "centers": start}
        flat = d == 2 and script.names["cells"]
        self.first = start_frame({"points": at, "plane": self.plane}, nothing, axes=[*axes, ""][:2], flat=flat)

    def project(self, centers: np.ndarray) -> np.ndarray:
        return (centers - self.mean) @ self.plane.T

    def frame(self, model: Any) -> Frame:
        centers = model.cluster_centers_ if hasattr(model, "cluster_centers_") else model.means_
        arrays = pack(labels=as_bytes(model.predict(self.X)), centers=self.project(centers))
        if hasattr(model, "weights_"):
            arrays |= pack(weights=model.weights_, covariances=self.plane @ full_covariances(model) @ self.plane.T)
        return arrays, {}


def full_covariances(model: Any) -> np.ndarray:
    """(c,d,d) those of any mixture."""
    k, d = model.means_.shape
    if hasattr(model, "loadings_"):
        W, noise = model.loadings_, model.noise_variance_[:, None, None]
        return W @ W.transpose(0, 2, 1) + noise * np.eye(d)
    S, kind = np.asarray(model.covariances_), model.covariance_type
    if kind == "tied":
        return np.broadcast_to(S, (k, d, d))
    return S if kind == "full" else np.reshape(S, (k, -1, 1)) * np.eye(d)


class Points(Method):
    """Rows, each in the color of its cluster."""

    family, view, view_class = "clusters", "points", Rows
    default_data = "digits"
    start_parameter: ClassVar[str] = ""  # takes the first centers
    analysis: ClassVar[Literal["kmeans", "mixture"]] = (
        "kmeans"  # the method of `twofold cluster` that finds the number of groups
    )
    metric: ClassVar[str] = ""  # "euclidean": every row is nearest to its own center, so that cells can be drawn

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        script.names |= {"table": script["X"], "cells": chosen.get("metric", self.metric) == "euclidean"}
        tables.standardize(script, data, chosen["standardize"])
        self.draw_start(script, chosen)

    def settle(self, script: Script, data: Data, chosen: Values, notes: list[str]) -> Values:
        """Find what was left open, the number of groups above all, as `twofold cluster` does."""
        import polars as pl

        from twofold import analyses

        size = next(name for name in ("n_clusters", "n_components") if name in chosen)
        left_open = [name for name, value in chosen.items() if value is None or value == "automatic"]
        if not left_open:
            return chosen
        X, seed = script["X"], chosen["random_state"]
        table = pl.DataFrame(X, schema=tables.column_names(data, X.shape[1]), orient="row").fill_nan(None)
        given = X if data.kind == "pictures" else table  # whose columns have names
        answer = analyses.cluster(given, chosen[size], method=self.analysis, scale=False, seed=seed)
        notes += answer.notes
        found = answer.model.get_params() | {size: max(1, answer.chosen["n_clusters"] or 0)}
        chosen = {**chosen, **{name: found.get(name) for name in left_open}}
        self.draw_start(script, chosen)
        return chosen

    def draw_start(self, script: Script, chosen: Values) -> None:
        """Bind `start` to one row a cluster; rows with holes are no centers."""
        n, k = len(script["X"]), chosen.get("n_clusters") or chosen.get("n_components") or 0
        if chosen.get("start") == "random rows" and 0 < k <= n and not np.isnan(script["X"]).any():
            script.do(f"start = X[np.random.default_rng({chosen['random_state']}).choice({n}, {k}, replace=False)]")

    def parameters(self, script: Script, chosen: Values) -> dict[str, Any]:
        return super().parameters(script, chosen) | ({self.start_parameter: Name("start")} if "start" in script else {})

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.analyses.common.tables import spread
        from twofold.plots.reports.cluster import clustering_figure

        arrays, _ = view.frame(model)
        labels, table = arrays["labels"].astype(int), view.original
        k = len(arrays["centers"])
        mean, deviation = np.nanmean(table, axis=0), spread(table)
        profiles = [np.nanmean(table[labels == c], axis=0) if (labels == c).any() else mean for c in range(k)]
        return clustering_figure(
            view.at,
            labels,
            arrays["centers"],
            (np.array(profiles) - mean) / deviation,
            tables.column_names(data, table.shape[1]),
            np.bincount(labels, minlength=k),
            shares=np.var(view.at, axis=0) / max(float(np.nanvar(view.X, axis=0).sum()), 1e-300),
            title=f"{data.name}: {self.title}",
        )


class KMeansMethod(Points):
    id, title, estimator, objective = "kmeans", "k-means", "KMeans", "cost"
    compare = ("gaussian_mixture", "kmedoids")
    start_parameter, metric = "init", "euclidean"
    fixed: ClassVar[Values] = {"n_init": 1}
    settings = (
        control("n_clusters", "clusters", about="Number of centers.", **FOUND),
        START,
        tables.STANDARDIZE,
        *loop_controls(),
    )


class GaussianMixtureMethod(Points):
    id, title, estimator = "gaussian_mixture", "Mixture of Gaussians", "GaussianMixture"
    objective = "mean negative log-likelihood"
    compare = ("kmeans", "mixture_of_ppca")
    start_parameter, analysis = "means_init", "mixture"
    settings = (
        control("n_components", "components", about="Number of components.", **FOUND),
        control("covariance_type", "shape", default="automatic"),
        START,
        tables.STANDARDIZE,
        control("reg_covar", default=None, max=100, log=True, advanced=True),
        *loop_controls(tol=1e-4, max_iter=300),
    )


class KMedoidsMethod(Points):
    id, title, estimator, objective = "kmedoids", "k-medoids", "KMedoids", "sum of distances"
    compare = ("kmeans",)
    settings = (
        control("n_clusters", "clusters", **FOUND),
        control("metric", choices=("euclidean", "manhattan", "chebyshev", "cosine")),
        tables.STANDARDIZE,
        sweep_limit(),
    )


class MixtureOfPPCAMethod(Points):
    id, title, estimator = "mixture_of_ppca", "Mixture of PPCA", "MixtureOfPPCA"
    objective = "mean negative log-likelihood"
    compare, analysis = ("gaussian_mixture",), "mixture"
    settings = (
        control("n_components", "components", **FOUND),
        control("n_latent", "directions each", max=20),
        tables.STANDARDIZE,
        *loop_controls(),
    )
