"""Principal axes and their relatives: rows in the plane of the first two codes, the axes, and rebuilt rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods import tables
from twofold.lab.methods.method import Data, Emit, Frame, Method, Result, Values, last_objective, pack, start_frame
from twofold.lab.methods.setting import Setting, control, loop_controls
from twofold.lab.script import Script

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCHES = Setting(
    "batches",
    "batches of rows",
    "Number of batches that the rows come in. The axes settle batch by batch; the end is that of one fit to all rows.",
    30,
    min=1,
    max=200,
)


class Codes:
    """Rows by their first two codes; an axis keeps the sign that it had in the last frame."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        self.X, self.shape = script["X"], None if data.pictures is None else data.pictures.shape[1:]
        self.columns = tables.column_names(data, self.X.shape[1])
        self.groups = script.names.get("y")
        empty = {"points": np.zeros((len(self.X), 2))}
        names = [str(name) for name in data.target_names]
        static = {"colors": tables.class_colors(script)}
        self.first = start_frame(static, empty, columns=self.columns, target_names=names)

    def keep_share(self, model: Any) -> dict[str, float]:
        """Return the share of the variance that all codes together keep, by the rows that they give back."""
        if not hasattr(model, "inverse_transform") or np.isnan(self.X).any():
            return {}
        rebuilt = np.asarray(model.inverse_transform(model.transform(self.X)))
        scale = getattr(model, "scale_", 1.0)
        total = float((((self.X - self.X.mean(axis=0)) / scale) ** 2).sum())
        return {"kept": 1 - float((((self.X - rebuilt) / scale) ** 2).sum()) / max(total, 1e-300)}

    def frame(self, model: Any) -> Frame:
        points, loadings = tables.first_two(np.asarray(model.transform(self.X))), np.asarray(model.components_)
        arrays, ratio = pack(points=points, loadings=loadings), self.variance_ratio(model)
        return (arrays, self.keep_share(model)) if ratio is None else (arrays | pack(ratio=ratio), {})

    def variance_ratio(self, model: Any) -> np.ndarray | None:
        """Return the share of the variance along each axis, None of a model whose axes have none of their own."""
        if hasattr(model, "explained_variance_ratio_"):
            return model.explained_variance_ratio_
        if not hasattr(model, "explained_variance_") and not hasattr(model, "noise_variance_"):
            return None
        scale = getattr(model, "scale_", np.ones(self.X.shape[1]))
        total = np.nansum(np.nanvar(self.X / scale, axis=0))
        along = (
            model.explained_variance_
            if hasattr(model, "explained_variance_")
            else (np.asarray(model.components_) ** 2).sum(1)
        )
        return along / max(float(total), 1e-300)


def variance_left_out(model: Any, view: Any) -> float:
    """Measure all rows against the axes so far; of a model fitted to holes, return its own objective."""
    return last_objective(model) if np.isnan(view.X).any() else float(model.reconstruction_error(view.X))


def fit_in_batches(script: Script, model: Any, view: Any, emit: Emit, batches: int) -> None:
    """Fit a model batch by batch, two rows at least in each."""
    batches = max(1, min(batches, len(script["X"]) // 2))
    done = 0
    for batch in np.array_split(script["X"], batches):
        model.partial_fit(batch)
        done += 1
        if emit(model.n_iter_, variance_left_out(model, view), *view.frame(model)):
            break
    some = "" if done == batches else f"[:{done}]"
    script.say(f"for batch in np.array_split(X, {batches}){some}:\n    model.partial_fit(batch)")


class Axes(Method):
    """Rows by their codes; a row can be rebuilt from its first k."""

    family, view, default_data = "linear", "axes", "digits"
    view_class: ClassVar[type[Any]] = Codes
    spare: ClassVar[int] = 0  # directions that the estimator leaves to the noise
    scales: ClassVar[bool] = False  # True if the estimator standardizes columns by itself

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        tables.check_table(script["X"], data)
        if "standardize" in chosen and self.scales:
            script.names["scaled"] = tables.needs_scale(script, data, chosen["standardize"])
        elif "standardize" in chosen:
            tables.standardize(script, data, chosen["standardize"])

    def parameters(self, script: Script, chosen: Values) -> dict[str, Any]:
        return super().parameters(script, chosen) | {"scale": script.names.get("scaled", False)}

    def find_limits(self, script: Script) -> tuple[int, ...]:
        spare = max(self.spare, int(np.isnan(script["X"]).any()))  # blanks leave one direction to the noise
        return (min(script["X"].shape) - spare,)

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.reports.reduce import reduction_figure

        arrays, _ = view.frame(model)
        ratio = arrays.get("ratio", np.zeros(len(arrays["loadings"])))
        names = list(data.target_names)
        groups = None if view.groups is None else [names[g] if g < len(names) else str(g) for g in view.groups]
        return reduction_figure(
            ratio,
            len(ratio),
            np.asarray(model.transform(view.X)),
            arrays["loadings"],
            view.columns,
            title=f"{data.name}: {self.title}",
            groups=groups,
        )

    def ask_reconstruct(self, result: Result, row: int, k: int = 0) -> dict[str, Any]:
        """Rebuild a row from its first k codes, beside the row itself."""
        X = result.view.X
        if not hasattr(result.model, "inverse_transform"):
            raise InputError(f"{self.title} cannot rebuild a row from its codes. Take PCA.")
        if not 0 <= row < len(X):
            raise InputError(f"row {row}: there are rows from 0 to {len(X) - 1}.")
        codes = np.array(result.model.transform(X[row : row + 1]))
        codes[:, k if k > 0 else codes.shape[1] :] = 0.0
        values = np.asarray(result.model.inverse_transform(codes))[0]
        original = [None if np.isnan(value) else float(value) for value in X[row]]
        shape = {"shape": list(result.view.shape)} if result.view.shape else {}
        return {"values": values.tolist(), "original": original, **shape}


class PCAMethod(Axes):
    id, title, estimator, objective = "pca", "PCA", "PCA", "variance left out"
    compare = ("autoencoder", "ppca", "fisher_lda")
    scales = True
    settings = (
        control("n_components", "components", default=10, min=1, max=64),
        tables.STANDARDIZE,
        BATCHES,
    )

    def fit(self, script: Script, model: Any, view: Any, emit: Emit, chosen: Values) -> None:
        """Fit batch by batch, which gives the axes of one fit; at once where cells are missing."""
        if np.isnan(script["X"]).any() or chosen["batches"] == 1:
            super().fit(script, model, view, emit, chosen)
        else:
            fit_in_batches(script, model, view, emit, chosen["batches"])

    def measure(self, model: Any, view: Any) -> float:
        return variance_left_out(model, view)


class PPCAMethod(Axes):
    id, title, estimator, objective = "ppca", "Probabilistic PCA", "PPCA", "mean negative log-likelihood"
    compare = ("pca", "factor_analysis")
    scales, spare = True, 1
    settings = (
        control("n_components", "components", default=10, max=63),
        control("solver", default="em"),
        tables.STANDARDIZE,
        *loop_controls(tol=1e-6),
    )


class FactorAnalysisMethod(Axes):
    id, title, estimator = "factor_analysis", "Factor analysis", "FactorAnalysis"
    objective, default_data = "mean negative log-likelihood", "wine"
    compare = ("ppca", "pca")
    settings = (
        control("n_components", "factors", default=3, min=1, max=40),
        control("rotation"),
        *loop_controls(tol=1e-6),
    )


class BayesianPCAMethod(Axes):
    id, title, estimator = "bayesian_pca", "Bayesian PCA", "BayesianPCA"
    objective, default_data, spare = "mean negative log-posterior", "wine", 1
    compare = ("ppca", "pca")
    settings = (
        control("n_components", "components at most", max=63),
        tables.STANDARDIZE,
        *loop_controls(),
    )


class LinearAutoencoderMethod(Axes):
    id, title, estimator = "linear_autoencoder", "Linear autoencoder", "LinearAutoencoder"
    objective = "half the mean squared error"
    compare = ("pca", "autoencoder")
    settings = (
        control("n_components", "hidden units", max=40),
        control("ordered"),
        control("tied", "shared weights"),
        tables.STANDARDIZE,
        *loop_controls(tol=1e-7),
    )


class FisherLDAMethod(Axes):
    id, title, estimator, objective = "fisher_lda", "Fisher's discriminant", "FisherLDA", "minus the separation"
    call = "model.fit(X, y)"
    compare = ("pca",)
    default_data, seeded, needs_classes = "wine", False, True
    settings = (control("n_components", "directions", max=40), control("shrinkage", step=0.01))
