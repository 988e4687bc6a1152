"""Rows in the plane with what gathers them: moving centers, medoids, ellipses.

A method of this file is a class with the name of its estimator and its settings; `Points` draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from twofold.lab.methods import tables
from twofold.lab.methods.method import Data, Frame, Method, Setting, loop_settings, marks, numbers, seed, setting
from twofold.lab.script import Name, Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SPACE = Setting(
    name="space",
    label="fit in",
    about="The plane of the first two principal axes, where cells and ellipses are drawn as they are; or all columns, "
    "seen from that plane.",
    type="choice",
    default="plane",
    choices=("plane", "all columns"),
)

START = Setting(
    name="start",
    label="start",
    about="Rows drawn at random as the first centers, the same for every method; or what the method does by itself, "
    "which is nearer to the end.",
    type="choice",
    default="random rows",
    choices=("random rows", "by itself"),
)


class Rows:
    """Rows in the plane: X itself if it has two columns, else its first two principal axes."""

    def __init__(self, script: Script, data: Data, cells: bool):
        from twofold import PCA

        self.X, self.original = script["X"], script["table"]
        d = self.X.shape[1]
        self.mean, self.plane = np.zeros(d), np.eye(2, d)
        axes = tables.column_names(data, d)[:2] if self.X.shape == self.original.shape else ["axis 1", "axis 2"]
        at = self.X if d == 2 else np.column_stack([self.X[:, 0], np.zeros(len(self.X))])
        if d > 2:
            pca = PCA(2, random_state=0).fit(self.X)
            at, self.mean, self.plane = pca.transform(self.X), pca.mean_, pca.components_
            axes = [f"axis {c + 1} ({share:.0%})" for c, share in enumerate(pca.explained_variance_ratio_)]
        self.at = at
        static = {"points": numbers(at), "plane": numbers(self.plane)}
        start = self.project(script["start"]) if "start" in script else np.zeros((0, 2))
        nothing = {"labels": marks(np.full(len(at), 255)), "centers": numbers(start)}
        meta = {"static": [*static], "axes": [*axes, ""][:2], "flat": d == 2 and cells}
        self.first: Frame = static | nothing, meta

    def project(self, centers: np.ndarray) -> np.ndarray:
        return (centers - self.mean) @ self.plane.T

    def frame(self, model: Any) -> Frame:
        centers = model.cluster_centers_ if hasattr(model, "cluster_centers_") else model.means_
        arrays = {"labels": marks(model.predict(self.X)), "centers": numbers(self.project(centers))}
        if hasattr(model, "weights_"):
            arrays["weights"] = numbers(model.weights_)
            arrays["covariances"] = numbers(self.plane @ full_covariances(model) @ self.plane.T)
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

    family, view = "clusters", "points"
    default_data = "digits"
    begins: ClassVar[str] = ""  # the parameter that takes the first centers

    def prepare(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> None:
        script.names["table"] = script["X"]
        tables.standardize(script, data, chosen["standardize"])
        if chosen["space"] == "plane" and script["X"].shape[1] > 2:
            script.use("twofold", "PCA")
            script.do("X = PCA(2, random_state=0).fit_transform(X)")
        if chosen.get("start") == "random rows":
            self.draw_start(script, chosen)

    def draw_start(self, script: Script, chosen: Mapping[str, Any]) -> None:
        """Bind `start` to as many rows as there are clusters; rows with holes are no centers."""
        n, k = len(script["X"]), chosen.get("n_clusters") or chosen["n_components"]
        if k <= n and not np.isnan(script["X"]).any():
            script.do(f"start = X[np.random.default_rng({chosen['random_state']}).choice({n}, {k}, replace=False)]")

    def build(self, script: Script, chosen: Mapping[str, Any]) -> Any:
        started = {self.begins: Name("start")} if "start" in script else {}
        return script.build(self.estimator, self.parameters(chosen) | started)

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Rows:
        return Rows(script, data, self.has_cells(chosen))

    def has_cells(self, chosen: Mapping[str, Any]) -> bool:
        """Whether a row belongs to the nearest center in a straight line."""
        return False

    def table(self, script: Script, data: Data, model: Any, names: Sequence[str] | None) -> pl.DataFrame:
        return tables.results(script, names, {"cluster": np.asarray(model.predict(script["X"]))})

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.analyses._tables import spread
        from twofold.plots.reports.cluster import clustering_figure

        arrays, _ = sight.frame(model)
        labels, table = arrays["labels"].astype(int), sight.original
        k = len(arrays["centers"])
        mean, deviation = np.nanmean(table, axis=0), spread(table)
        profiles = [np.nanmean(table[labels == c], axis=0) if (labels == c).any() else mean for c in range(k)]
        shares = np.var(sight.at, axis=0) / max(float(np.nanvar(sight.X, axis=0).sum()), 1e-300)
        return clustering_figure(
            sight.at,
            labels,
            arrays["centers"],
            (np.array(profiles) - mean) / deviation,
            tables.column_names(data, table.shape[1]),
            np.bincount(labels, minlength=k),
            shares=shares,
            title=f"{data.name}: {self.title}",
        )


class KMeansMethod(Points):
    id, title, estimator, objective = "kmeans", "k-means", "KMeans", "cost"
    compare = ("gaussian_mixture", "kmedoids")
    begins = "init"
    fixed: ClassVar[Mapping[str, Any]] = {"n_init": 1}
    settings = (
        setting(
            "KMeans", "n_clusters", label="clusters", default=10, min=1, max=30, about="How many centers there are."
        ),
        START,
        SPACE,
        tables.STANDARDIZE,
        setting("KMeans", "tol", label="tolerance", default=1e-4, min=0, max=0.1, log=True, advanced=True),
        setting("KMeans", "max_iter", label="sweeps at most", default=300, min=1, max=2000, advanced=True),
        seed("KMeans"),
    )

    def has_cells(self, chosen: Mapping[str, Any]) -> bool:
        return True


class KMedoidsMethod(Points):
    id, title, estimator, objective = "kmedoids", "k-medoids", "KMedoids", "sum of distances"
    compare = ("kmeans",)
    settings = (
        setting("KMedoids", "n_clusters", label="clusters", default=10, min=1, max=30),
        setting("KMedoids", "metric", default="euclidean", choices=("euclidean", "manhattan", "chebyshev", "cosine")),
        SPACE,
        tables.STANDARDIZE,
        setting("KMedoids", "max_iter", label="sweeps at most", default=100, min=1, max=1000, advanced=True),
        seed("KMedoids"),
    )

    def has_cells(self, chosen: Mapping[str, Any]) -> bool:
        return chosen["metric"] == "euclidean"


class GaussianMixtureMethod(Points):
    id, title, estimator = "gaussian_mixture", "Mixture of Gaussians", "GaussianMixture"
    objective = "mean negative log-likelihood"
    compare = ("kmeans", "mixture_of_ppca")
    begins = "means_init"
    settings = (
        setting(
            "GaussianMixture",
            "n_components",
            label="components",
            default=10,
            min=1,
            max=30,
            about="How many there are.",
        ),
        setting(
            "GaussianMixture",
            "covariance_type",
            label="shape",
            default="full",
            choices=("full", "tied", "diag", "spherical"),
        ),
        START,
        SPACE,
        tables.STANDARDIZE,
        setting("GaussianMixture", "reg_covar", default=1e-6, min=0, max=100, log=True, advanced=True),
        *loop_settings("GaussianMixture", 1e-4, 300),
    )


class MixtureOfPPCAMethod(Points):
    id, title, estimator = "mixture_of_ppca", "Mixture of PPCA", "MixtureOfPPCA"
    objective = "mean negative log-likelihood"
    compare = ("gaussian_mixture",)
    settings = (
        setting("MixtureOfPPCA", "n_components", label="components", default=10, min=1, max=30),
        setting("MixtureOfPPCA", "n_latent", label="directions each", type="int", default=None, min=1, max=20),
        replace(SPACE, default="all columns"),
        tables.STANDARDIZE,
        *loop_settings("MixtureOfPPCA", 1e-4, 500),
    )


METHODS = (KMeansMethod(), GaussianMixtureMethod(), KMedoidsMethod(), MixtureOfPPCAMethod())
