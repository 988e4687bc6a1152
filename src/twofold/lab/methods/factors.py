"""The language of factors: a loss and a constraint on either factor make a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods import tables
from twofold.lab.methods.method import Data, Frame, Method, Values, pack, start_frame
from twofold.lab.methods.setting import Setting, control, loop_controls
from twofold.lab.script import Name, Script

if TYPE_CHECKING:
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
ALPHA = Setting(
    "alpha", "α", "The weight of a ridge or of an absolute sum.", 1.0, min=1e-4, max=1e4, log=True, advanced=True
)


class Product:
    """Some rows and columns of both factors, and of the residual."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        self.X = script["X"]
        self.rows, self.cols = (tables.spread_evenly(size) for size in self.X.shape)
        if "y" in script:  # rows of a class lie together
            self.rows = self.rows[np.argsort(script["y"][self.rows], kind="stable")]
        n, d, k = len(self.rows), len(self.cols), min(chosen["n_components"], *self.X.shape)
        seen = self.X[np.ix_(self.rows, self.cols)]
        arrays = {"left": np.zeros((n, k)), "right": np.zeros((k, d)), "residual": np.nan_to_num(seen)}
        self.shape = None if data.pictures is None else data.pictures.shape[1:]
        columns = tables.column_names(data, self.X.shape[1])
        self.name = NAMES.get((chosen["loss"], chosen["left"], chosen["right"]), "a model of your own")
        meta = {"formula": write_formula(chosen), "name": self.name, "columns": [columns[j] for j in self.cols]}
        self.first = start_frame({"rows": self.rows}, arrays, **meta)

    def frame(self, model: Any) -> Frame:
        codes = np.asarray(model.transform(self.X[self.rows]))
        left = np.nan_to_num(self.X[self.rows] - np.asarray(model.inverse_transform(codes)))[:, self.cols]
        return pack(left=codes, right=np.asarray(model.components_)[:, self.cols], residual=left), {}


def write_formula(chosen: Values) -> str:
    """Write the model of a run as a minimization."""
    words = [RIGHT[chosen["left"]].formula.format("U"), RIGHT[chosen["right"]].formula.format("Z")]
    penalties = " ".join(word for word in words if word.startswith("+"))
    rules = ", ".join(word for word in words if not word.startswith("+"))
    formula = f"X ≈ U Z: minimize {LOSSES[chosen['loss']].formula} {penalties}".rstrip()
    return formula + (f" with {rules}" if rules else "")


class FactorizationMethod(Method):
    id, title, estimator = "factorization", "The language of factors", "Factorization"
    family, view, view_class = "factors", "factors", Product
    default_data = "digits"
    compare = ("nmf_pictures", "kmeans", "pca")
    settings = (
        control("n_components", "components", default=10, max=40),
        control("loss", default="squared", choices=tuple(LOSSES)),
        control("left", "codes", default="non-negative", choices=tuple(CONSTRAINTS)),
        control("right", "components", default="non-negative", choices=tuple(RIGHT)),
        ALPHA,
        tables.STANDARDIZE,
        *loop_controls(tol=1e-5, max_iter=200),
    )

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        """Bring X into the range of the model: logistic from 0 to 1, non-negative factors from 0 up."""
        tables.check_table(script["X"], data)
        sides = chosen["left"], chosen["right"]
        signed = chosen["loss"] not in ("logistic", "Poisson") and "non-negative" not in sides
        if chosen["loss"] == "logistic":
            script.do("shift = np.full(X.shape[1], np.nanmin(X))")
            script.do("scale = np.full(X.shape[1], np.nanmax(X) - np.nanmin(X))")
        elif signed:
            tables.standardize(script, data, chosen["standardize"])
            if data.kind != "table" or chosen["left"] != "free":
                return
            script.do("scale = scale" if "scale" in script else "scale = np.ones(X.shape[1])")
            script.do("shift = np.nanmean(X, axis=0) * scale")
            script.do("X = X * scale")
        elif data.kind == "table":  # non-negative, in units that can be compared
            script.use("twofold.analyses.common.tables", "spread")
            script.do("shift = np.nanmin(X, axis=0)")
            script.do("scale = np.where(spread(X, 0) > 0, np.nanmax(X, axis=0) - shift, 1)")
        elif np.nanmin(script["X"]) < 0:
            script.do("shift = np.full(X.shape[1], np.nanmin(X))")
            script.do("scale = np.ones(X.shape[1])")
        if "shift" in script:
            script.do("X = (X - shift) / scale")

    def parameters(self, script: Script, chosen: Values) -> dict[str, Any]:
        sides = {"loss": LOSSES[chosen["loss"]], "left": CONSTRAINTS[chosen["left"]], "right": RIGHT[chosen["right"]]}
        params = super().parameters(script, chosen) | {"intercept": chosen["loss"] == "logistic"}
        for name, word in sides.items():
            code = word.code.format(alpha=chosen["alpha"])
            home = "losses" if name == "loss" else "constraints"
            script.use(f"twofold.factors.{home}", code.partition("(")[0])
            params[name] = Name(code)
        return params

    def keep_steps(self, script: Script, data: Data) -> None:
        super().keep_steps(script, data)
        script.do('model.made_by_ = "reduce"')  # what it gives of new rows is their codes

    def find_limits(self, script: Script) -> tuple[int, ...]:
        return script["X"].shape

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.completion import tables_figure
        from twofold.plots.models.topics import parts_figure

        if view.shape is not None:
            parts = np.asarray(model.components_).reshape(-1, *view.shape)
            return parts_figure({f"{data.name}: {view.name}": parts}, per_row=5)
        Z = np.asarray(model.components_)
        low, high = np.quantile(Z, [0.02, 0.98])
        if not high > low:
            raise InputError("every component is the same number, so there is nothing to draw.")
        return tables_figure({"components": Z}, (float(low), float(high)))
