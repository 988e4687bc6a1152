"""The language of factors: choose a loss and a constraint on either factor, and see the model that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods import tables
from twofold.lab.methods.completion import evenly
from twofold.lab.methods.method import Data, Frame, Method, Setting, numbers, seed, setting
from twofold.lab.script import Name, Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


class Word(NamedTuple):
    """A choice: the line of Python, and how it is written in a formula."""

    code: str
    formula: str


LOSSES = {
    "squared": Word("Squared()", "½ Σ (x − m)²"),
    "Huber": Word("Huber()", "Σ huber(x − m)"),
    "absolute": Word("Absolute()", "Σ |x − m|"),
    "logistic": Word("Logistic()", "Σ log(1 + exp(m)) − x m"),
    "Poisson": Word("Poisson()", "Σ m − x log m"),
}
CONSTRAINTS = {
    "free": Word("Free()", "{} free"),
    "ridge": Word("Ridge({alpha})", "+ ½ α ‖{}‖²"),
    "L1": Word("L1({alpha})", "+ α Σ |{}|"),
    "non-negative": Word("NonNegative()", "{} ≥ 0"),
    "simplex": Word("Simplex()", "rows of {} ≥ 0 that sum to 1"),
    "one-hot": Word("OneHot()", "one 1 in every row of {}"),
    "unit length": Word("UnitNorm()", "rows of {} of length 1"),
    "k-sparse": Word("KSparse(3)", "3 numbers not 0 in every row of {}"),
}
RIGHT = {**CONSTRAINTS, "orthonormal": Word("Orthonormal()", "{0} {0}ᵀ = I")}
NAMES = {  # loss, left, right
    ("squared", "free", "orthonormal"): "PCA",
    ("squared", "free", "free"): "truncated SVD",
    ("squared", "ridge", "ridge"): "alternating least squares",
    ("squared", "non-negative", "non-negative"): "NMF",
    ("squared", "one-hot", "free"): "k-means",
    ("absolute", "one-hot", "free"): "k-medians",
    ("squared", "unit length", "L1"): "sparse PCA",
    ("squared", "k-sparse", "unit length"): "dictionary learning",
    ("squared", "simplex", "free"): "archetypes by mixtures",
    ("Huber", "free", "free"): "robust PCA",
    ("logistic", "ridge", "ridge"): "logistic PCA",
    ("Poisson", "non-negative", "non-negative"): "NMF by Kullback-Leibler",
    ("Poisson", "non-negative", "simplex"): "pLSA",
}
LOSS = setting("Factorization", "loss", default="squared", choices=tuple(LOSSES))
LEFT = setting("Factorization", "left", label="codes", default="non-negative", choices=tuple(CONSTRAINTS))
RIGHT_ONE = setting("Factorization", "right", label="components", default="non-negative", choices=tuple(RIGHT))
ALPHA = Setting(
    name="alpha",
    label="α",
    about="The weight of a ridge or of an absolute sum.",
    type="float",
    default=1.0,
    min=1e-4,
    max=1e4,
    log=True,
    advanced=True,
)


class Both:
    """Some rows and columns of both factors, and of what they leave over."""

    def __init__(self, script: Script, data: Data, k: int, formula: str, name: str):
        self.X = script["X"]
        self.rows, self.cols = (evenly(size) for size in self.X.shape)
        if "y" in script:  # rows of a class lie together
            self.rows = self.rows[np.argsort(script["y"][self.rows], kind="stable")]
        (n, d), empty = (len(self.rows), len(self.cols)), np.zeros
        seen = self.X[np.ix_(self.rows, self.cols)]
        arrays = {"left": empty((n, k)), "right": empty((k, d)), "residual": np.nan_to_num(seen)}
        self.shape = None if data.pictures is None else data.pictures.shape[1:]
        columns = tables.column_names(data, self.X.shape[1])
        meta = {"formula": formula, "name": name, "columns": [columns[j] for j in self.cols]}
        static = {"rows": self.rows.astype(np.int32)}
        self.first: Frame = (
            {**{key: numbers(value) for key, value in arrays.items()}, **static},
            {"static": ["rows"], **meta},
        )

    def frame(self, model: Any) -> Frame:
        codes = np.asarray(model.transform(self.X[self.rows]))
        left = np.nan_to_num(self.X[self.rows] - np.asarray(model.inverse_transform(codes)))[:, self.cols]
        arrays = {"left": codes, "right": np.asarray(model.components_)[:, self.cols], "residual": left}
        return {key: numbers(value) for key, value in arrays.items()}, {}


class FactorizationMethod(Method):
    id, title, estimator = "factorization", "The language of factors", "Factorization"
    family, view = "factors", "factors"
    default_data = "digits"
    compare = ("nmf_pictures", "kmeans", "pca")
    settings = (
        setting("Factorization", "n_components", label="components", type="int", default=10, min=1, max=40),
        LOSS,
        LEFT,
        RIGHT_ONE,
        ALPHA,
        tables.STANDARDIZE,
        setting("Factorization", "max_iter", label="sweeps at most", default=200, min=1, max=5000, advanced=True),
        setting("Factorization", "tol", label="tolerance", default=1e-5, min=0, max=1, log=True, advanced=True),
        seed("Factorization"),
    )

    def prepare(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> None:
        """Bring X to where the loss can be: logistic from 0 to 1, non-negative factors from 0 up."""
        tables.check_table(script["X"], data)
        signed = chosen["loss"] not in ("logistic", "Poisson") and "non-negative" not in (
            chosen["left"],
            chosen["right"],
        )
        if chosen["loss"] == "logistic":
            script.do("X = (X - np.nanmin(X)) / (np.nanmax(X) - np.nanmin(X))")
        elif signed:
            tables.standardize(script, data, chosen["standardize"])
            if data.kind == "table" and chosen["left"] == "free":
                script.do("X = X - np.nanmean(X, axis=0)")
        elif data.kind == "table":  # non-negative, in units that can be compared
            script.use("sklearn.preprocessing", "MinMaxScaler")
            script.do("X = MinMaxScaler().fit_transform(X)")
        elif np.nanmin(script["X"]) < 0:
            script.do("X = X - np.nanmin(X)")

    def build(self, script: Script, chosen: Mapping[str, Any]) -> Any:
        sides = {"loss": LOSSES[chosen["loss"]], "left": CONSTRAINTS[chosen["left"]], "right": RIGHT[chosen["right"]]}
        params = self.parameters(chosen)
        for name, word in sides.items():
            code = word.code.format(alpha=chosen["alpha"])
            script.use(
                "twofold.factors.losses" if name == "loss" else "twofold.factors.constraints", code.partition("(")[0]
            )
            params[name] = Name(code)
        params["n_components"] = min(params["n_components"], *script["X"].shape)
        params["intercept"] = chosen["loss"] == "logistic"
        return script.build(self.estimator, params)

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Both:
        names = chosen["loss"], chosen["left"], chosen["right"]
        given = [RIGHT[names[1]].formula.format("U"), RIGHT[names[2]].formula.format("Z")]
        penalties = " ".join(word for word in given if word.startswith("+"))
        rules = ", ".join(word for word in given if not word.startswith("+"))
        formula = f"X ≈ U Z: minimize {LOSSES[names[0]].formula} {penalties}".rstrip() + (
            f" with {rules}" if rules else ""
        )
        k = min(chosen["n_components"], *script["X"].shape)
        return Both(script, data, k, formula, NAMES.get(names, "a model of your own"))

    def table(self, script: Script, data: Data, model: Any, names: Sequence[str] | None) -> pl.DataFrame:
        return tables.code_table(script, names, model)

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.completion import tables_figure
        from twofold.plots.models.topics import parts_figure

        if sight.shape is not None:
            parts = np.asarray(model.components_).reshape(-1, *sight.shape)
            return parts_figure({f"{data.name}: {sight.first[1]['name']}": parts}, per_row=5)
        Z = np.asarray(model.components_)
        low, high = np.quantile(Z, [0.02, 0.98])
        if not high > low:
            raise InputError("every component is the same number, so there is nothing to draw.")
        return tables_figure({"components": Z}, (float(low), float(high)))


METHODS = (FactorizationMethod(),)
