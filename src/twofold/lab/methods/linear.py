"""Principal axes and their relatives: rows in the plane of the first two codes, the axes, and what they rebuild.

A method of this file is a class with the name of its estimator and its settings; `Axes` draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods import tables
from twofold.lab.methods.method import (
    Data,
    Emit,
    Frame,
    Method,
    Result,
    Setting,
    last_objective,
    loop_settings,
    marks,
    numbers,
    seed,
    setting,
)
from twofold.lab.script import Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

BATCHES = Setting(
    name="batches",
    label="batches of rows",
    about="Rows come in so many batches, and the axes settle as they come; the end is that of one fit over all rows.",
    type="int",
    default=30,
    min=1,
    max=200,
)


class Codes:
    """Rows by their first two codes; an axis keeps the sign that it had in the last frame."""

    def __init__(self, script: Script, data: Data, k: int):
        self.X, self.shape = script["X"], None if data.pictures is None else data.pictures.shape[1:]
        self.columns = tables.column_names(data, self.X.shape[1])
        self.last: np.ndarray | None = None
        self.groups = script.names.get("y")
        n = len(self.X)
        empty = {"points": np.zeros((n, 2), np.float32), "ratio": np.zeros(k, np.float32)}
        static = {"colors": marks(tables.colors_of(script))}
        named = {"columns": self.columns, "target_names": [str(name) for name in data.target_names]}
        self.first: Frame = static | empty, {"static": [*static], **named}

    def frame(self, model: Any) -> Frame:
        axes = self._axes(model)
        sign = np.ones(len(axes))
        if self.last is not None:
            k = min(len(axes), len(self.last))
            sign[:k] = np.where((axes[:k] * self.last[:k]).sum(axis=1) < 0, -1.0, 1.0)
        self.last = axes = axes * sign[:, None]
        codes = np.asarray(model.transform(self.X))[:, :2] * sign[:2]
        points = np.column_stack([codes, np.zeros((len(codes), 2 - codes.shape[1]))])
        return {"points": numbers(points), "ratio": numbers(self.ratio(model)), "loadings": numbers(axes)}, {}

    def _axes(self, model: Any) -> np.ndarray:
        return np.asarray(model.components_, dtype=np.float64)

    def ratio(self, model: Any) -> np.ndarray:
        """The share of the variance along each axis."""
        if hasattr(model, "explained_variance_ratio_"):
            return model.explained_variance_ratio_
        scale = getattr(model, "scale_", np.ones(self.X.shape[1]))
        total = np.nansum(np.nanvar(self.X / scale, axis=0))
        along = model.explained_variance_ if hasattr(model, "explained_variance_") else (self._axes(model) ** 2).sum(1)
        return along / max(float(total), 1e-300)


def variance_left_out(model: Any, sight: Any) -> float:
    """Of all rows, by the axes that a model has so far; of a model fitted to holes, what it says."""
    return last_objective(model) if np.isnan(sight.X).any() else float(model.reconstruction_error(sight.X))


def fit_in_batches(script: Script, model: Any, sight: Any, emit: Emit, batches: int) -> None:
    """Give a model the rows batch by batch, two at least in each."""
    batches = max(1, min(batches, len(script["X"]) // 2))
    for batch in np.array_split(script["X"], batches):
        model.partial_fit(batch)
        emit(model.n_iter_, variance_left_out(model, sight), *sight.frame(model))
    script.say(f"for batch in np.array_split(X, {batches}):\n    model.partial_fit(batch)")


class Axes(Method):
    """Rows by their codes; a row can be rebuilt from its first k."""

    family, view = "linear", "axes"
    default_data = "digits"
    spare: ClassVar[int] = 0  # directions that the estimator leaves to the noise
    scales: ClassVar[bool] = False  # whether the estimator standardizes columns by itself

    def prepare(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> None:
        tables.check_table(script["X"], data)
        if "standardize" not in chosen:
            return
        if self.scales:
            script.names["scaled"] = tables.needs_scale(script["X"], data, chosen["standardize"])
        else:
            tables.standardize(script, data, chosen["standardize"])

    def build(self, script: Script, chosen: Mapping[str, Any]) -> Any:
        params = self.parameters(chosen) | {"scale": script.names.get("scaled", False)}
        most = min(script["X"].shape) - self.spare
        if isinstance(params.get("n_components"), int):
            params["n_components"] = max(1, min(params["n_components"], most))
        return script.build(self.estimator, params)

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Codes:
        return Codes(script, data, int(chosen.get("n_components") or 2))

    def table(self, script: Script, data: Data, model: Any, names: Sequence[str] | None) -> pl.DataFrame:
        return tables.code_table(script, names, model)

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.reports.reduce import reduction_figure

        arrays, _ = sight.frame(model)
        names = list(data.target_names)
        groups = None if sight.groups is None else [names[g] if g < len(names) else str(g) for g in sight.groups]
        return reduction_figure(
            arrays["ratio"],
            len(arrays["ratio"]),
            np.asarray(model.transform(sight.X)),
            arrays["loadings"],
            sight.columns,
            title=f"{data.name}: {self.title}",
            groups=groups,
        )

    def ask_reconstruct(self, result: Result, row: int, k: int = 0) -> dict[str, Any]:
        """A row from its first k codes, beside the row itself."""
        X = result.sight.X
        if not hasattr(result.model, "inverse_transform"):
            raise InputError(f"{self.title} cannot rebuild a row from its codes. Take PCA.")
        if not 0 <= row < len(X):
            raise InputError(f"row {row}: there are rows from 0 to {len(X) - 1}.")
        codes = np.array(result.model.transform(X[row : row + 1]))
        codes[:, k if k > 0 else codes.shape[1] :] = 0.0
        values = np.asarray(result.model.inverse_transform(codes))[0]
        original = [None if np.isnan(value) else float(value) for value in X[row]]
        out = {"values": [float(value) for value in values], "original": original}
        return out | ({"shape": list(result.sight.shape)} if result.sight.shape else {})


class PCAMethod(Axes):
    id, title, estimator, objective = "pca", "PCA", "PCA", "variance left out"
    compare = ("autoencoder", "ppca", "fisher_lda")
    scales = True
    settings = (
        setting("PCA", "n_components", label="components", default=10, min=1, max=64),
        tables.STANDARDIZE,
        BATCHES,
        seed("PCA"),
    )

    def fit(self, script: Script, model: Any, sight: Any, emit: Emit, chosen: Mapping[str, Any]) -> None:
        """Batch by batch, which gives what one fit gives; at once where cells are missing."""
        if np.isnan(script["X"]).any() or chosen["batches"] == 1:
            super().fit(script, model, sight, emit, chosen)
        else:
            fit_in_batches(script, model, sight, emit, chosen["batches"])

    def measure(self, model: Any, sight: Any) -> float:
        return variance_left_out(model, sight)


class PPCAMethod(Axes):
    id, title, estimator, objective = "ppca", "Probabilistic PCA", "PPCA", "mean negative log-likelihood"
    compare = ("pca", "factor_analysis")
    scales, spare = True, 1
    settings = (
        setting("PPCA", "n_components", label="components", default=10, min=1, max=63),
        setting("PPCA", "solver", default="em", choices=("em", "auto", "closed")),
        tables.STANDARDIZE,
        *loop_settings("PPCA", 1e-6, 1000),
    )


class FactorAnalysisMethod(Axes):
    id, title, estimator = "factor_analysis", "Factor analysis", "FactorAnalysis"
    objective, default_data = "mean negative log-likelihood", "wine"
    compare = ("ppca", "pca")
    settings = (
        setting("FactorAnalysis", "n_components", label="factors", default=3, min=1, max=40),
        setting("FactorAnalysis", "rotation", default="none", choices=("none", "varimax", "quartimax")),
        *loop_settings("FactorAnalysis", 1e-6, 1000),
    )


class BayesianPCAMethod(Axes):
    id, title, estimator = "bayesian_pca", "Bayesian PCA", "BayesianPCA"
    objective, default_data, spare = "mean negative log-posterior", "wine", 1
    compare = ("ppca", "pca")
    settings = (
        setting("BayesianPCA", "n_components", label="components at most", type="int", default=None, min=1, max=63),
        tables.STANDARDIZE,
        *loop_settings("BayesianPCA", 1e-7, 2000),
    )


class LinearAutoencoderMethod(Axes):
    id, title, estimator = "linear_autoencoder", "Linear autoencoder", "LinearAutoencoder"
    objective = "half the mean squared error"
    compare = ("pca", "autoencoder")
    settings = (
        setting("LinearAutoencoder", "n_components", label="hidden units", default=2, min=1, max=40),
        setting("LinearAutoencoder", "ordered", default=False),
        setting("LinearAutoencoder", "tied", label="shared weights", default=False),
        tables.STANDARDIZE,
        *loop_settings("LinearAutoencoder", 1e-7, 5000),
    )


class FisherLDAMethod(Axes):
    id, title, estimator, objective = "fisher_lda", "Fisher's discriminant", "FisherLDA", "minus the separation"
    call = "model.fit(X, y)"
    compare = ("pca",)
    default_data = "wine"
    settings = (
        setting("FisherLDA", "n_components", label="directions", type="int", default=None, min=1, max=40),
        setting("FisherLDA", "shrinkage", default=0.0, min=0, max=1, step=0.01),
    )

    def prepare(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> None:
        super().prepare(script, data, chosen)
        if "y" not in script:
            raise InputError(f"{data.name} has no column of classes, which Fisher's discriminant needs. Take PCA.")


METHODS = (
    PCAMethod(),
    PPCAMethod(),
    FactorAnalysisMethod(),
    BayesianPCAMethod(),
    LinearAutoencoderMethod(),
    FisherLDAMethod(),
)
