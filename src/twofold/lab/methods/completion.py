"""Tables with holes that fill in, and recommenders.

A method of this file is a class with the name of its estimator and its settings; `Matrix` draws a table, `Ratings` a
map of items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods import tables
from twofold.lab.methods.method import (
    Data,
    Frame,
    Method,
    Result,
    Setting,
    loop_settings,
    numbers,
    seed,
    setting,
)
from twofold.lab.methods.planes import turn_to
from twofold.lab.script import Name, Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

SHOWN = 160  # rows and columns drawn at most
FOUND = 20  # titles that a search gives
HIDE = Setting(
    name="hide",
    label="share of cells hidden",
    about="So many of the known cells are hidden from the model, drawn at random, to see how well it fills them.",
    type="float",
    default=0.1,
    min=0.01,
    max=0.9,
    step=0.01,
)


class Cells:
    """A table, some of its known cells hidden, and what the model puts into all that it is not shown."""

    def __init__(self, script: Script, data: Data):
        from twofold.analyses._tables import spread

        self.X, self.hidden = script["X"], script["hidden"]
        self.shown = script["shown"]
        mean, self.deviation = np.nanmean(self.shown, axis=0), spread(self.shown)
        self.baseline = self.judge(np.broadcast_to(mean, self.X.shape))
        self.rows, self.cols = (evenly(size) for size in self.X.shape)
        if data.kind != "picture":  # rows and columns that are alike lie together, so that there is something to see
            z = np.where(np.isnan(self.shown), 0.0, (self.shown - mean) / self.deviation)[np.ix_(self.rows, self.cols)]
            left, _, right = np.linalg.svd(z, full_matrices=False)
            self.rows, self.cols = self.rows[np.argsort(left[:, 0])], self.cols[np.argsort(right[0])]
        at = np.ix_(self.rows, self.cols)
        self.seen = self.shown[at]
        names = tables.column_names(data, self.X.shape[1]) if data.kind != "picture" else []
        static = {"truth": numbers(self.X[at]), "hidden": self.hidden[at].astype(np.uint8)}
        static |= {"rows": self.rows.astype(np.int32)} if data.kind != "picture" else {}
        start = {"filled": numbers(self.seen), "singular": np.zeros(0, np.float32)}
        whole = script["rows"] if "rows" in script else range(len(self.X))
        meta = {"columns": [names[j] for j in self.cols] if names else [], "rows": [whole[i] for i in self.rows]}
        self.first: Frame = static | start, {"static": [*static], "baseline": self.baseline, **meta}

    def judge(self, filled: np.ndarray) -> float:
        """Root mean square error in the hidden cells, in standard deviations of their columns."""
        error = ((filled - self.X) / self.deviation)[self.hidden]
        return float(np.sqrt(np.mean(error**2))) if len(error) else 0.0

    def frame(self, model: Any) -> Frame:
        filled = fill_all(model, self.X.shape)
        at = filled[np.ix_(self.rows, self.cols)]
        arrays = {
            "filled": numbers(np.where(np.isnan(self.seen), at, self.seen)),
            "singular": numbers(singular_values(model)),
        }
        return arrays, {"error": self.judge(filled), "baseline": self.baseline}


def fill_all(model: Any, shape: tuple[int, int]) -> np.ndarray:
    """(n,d) the model's value in every cell."""
    rows, cols = (at.ravel() for at in np.indices(shape))
    return model.predict(rows, cols).reshape(shape)


def evenly(size: int) -> np.ndarray:
    """Up to `SHOWN` places out of so many."""
    return np.unique(np.linspace(0, size - 1, min(size, SHOWN)).round().astype(int))


def singular_values(model: Any) -> np.ndarray:
    """Of the product of its factors."""
    if hasattr(model, "singular_values_"):
        return model.singular_values_
    left, right = (np.linalg.qr(side)[1] for side in (model.row_factors_, model.components_.T))
    return np.linalg.svd(left @ right.T, compute_uv=False)


class Matrix(Method):
    """A table with holes."""

    family, view = "completion", "matrix"
    kinds = ("table", "pictures", "picture")
    default_data = "table_with_holes"
    call = "model.fit(shown)"

    def prepare(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> None:
        if data.kind == "picture":
            step = max(1, -(-max(script["picture"].shape[:2]) // SHOWN))
            mean = ".mean(axis=2)" if script["picture"].ndim == 3 else ".astype(float)"
            script.do(f"X = picture[::{step}, ::{step}]{mean}")
        tables.check_table(script["X"], data)
        draw = f"np.random.default_rng({chosen['random_state']}).random(X.shape) < {chosen['hide']}"
        script.do(f"hidden = ~np.isnan(X) & ({draw})")
        script.do("shown = np.where(hidden, np.nan, X)")
        script.names["normalize"] = data.kind == "table" and tables.needs_scale(script["X"], data, "auto")

    def build(self, script: Script, chosen: Mapping[str, Any]) -> Any:
        scaled = {"normalize": "column"} if script["normalize"] else {}
        params = self.parameters(chosen) | scaled
        if params.get("n_components") is not None:
            params["n_components"] = min(params["n_components"], *script["X"].shape)
        return script.build(self.estimator, params)

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Cells:
        return Cells(script, data)

    def table(self, script: Script, data: Data, model: Any, names: Sequence[str] | None) -> pl.DataFrame:
        whole = np.where(np.isnan(script["X"]), fill_all(model, script["X"].shape), script["X"])
        columns = tables.column_names(data, whole.shape[1]) if data.kind != "picture" else []
        columns = columns or [f"column {j + 1}" for j in range(whole.shape[1])]
        return tables.results(script, names, dict(zip(columns, whole.T, strict=True)))

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.completion import tables_figure

        truth = sight.X[np.ix_(sight.rows, sight.cols)]
        filled = sight.frame(model)[0]["filled"]
        low, high = np.nanquantile(truth, [0.02, 0.98])
        return tables_figure({"shown": sight.seen, "filled": filled, "truth": truth}, (float(low), float(high)))


class SVTMethod(Matrix):
    id, title, estimator, objective = "svt", "Singular value thresholding", "SVT", "negative dual"
    compare = ("als", "soft_impute")
    settings = (
        HIDE,
        setting("SVT", "tau", label="threshold", default=None, min=0, max=1e6, log=True),
        setting("SVT", "step", label="step", default=None, min=0.01, max=100, log=True, advanced=True),
        *loop_settings("SVT", 1e-3, 200),
    )


class SoftImputeMethod(Matrix):
    id, title, estimator = "soft_impute", "Soft-impute", "SoftImpute"
    objective = "squared error and nuclear norm"
    compare = ("svt", "als")
    settings = (
        HIDE,
        setting("SoftImpute", "reg", label="penalty", default=None, min=0, max=1e6, log=True),
        setting("SoftImpute", "n_components", label="components at most", type="int", default=None, min=1, max=100),
        setting("SoftImpute", "center", label="take off means", default=True, advanced=True),
        *loop_settings("SoftImpute", 1e-5, 500),
    )


class SVPMethod(Matrix):
    id, title, estimator, objective = "svp", "Singular value projection", "SVP", "half the squared error"
    compare = ("svd_impute", "als")
    settings = (
        HIDE,
        setting("SVP", "n_components", label="rank", default=3, min=1, max=60),
        *loop_settings("SVP", 1e-5, 300),
    )


class SVDImputeMethod(Matrix):
    id, title, estimator, objective = "svd_impute", "SVD imputation", "SVDImpute", "half the squared error"
    compare = ("svp", "als")
    settings = (
        HIDE,
        setting("SVDImpute", "n_components", label="rank", default=3, min=1, max=60),
        *loop_settings("SVDImpute", 1e-5, 300),
    )


class ALSMethod(Matrix):
    id, title, estimator, objective = "als", "Alternating least squares", "ALS", "squared error and ridge"
    compare = ("svt", "soft_impute")
    settings = (
        HIDE,
        setting("ALS", "n_components", label="factors", type="int", default=5, min=1, max=60),
        setting("ALS", "reg", label="penalty", default=0.1, min=0, max=10, log=True),
        setting("ALS", "biases", default=True, advanced=True),
        setting("ALS", "nonnegative", default=False, advanced=True),
        *loop_settings("ALS", 1e-5, 200),
    )


# --- ratings ------------------------------------------------------------------------------------------------


class Items:
    """A map of the items: those that the same people like are close."""

    def __init__(self, script: Script):
        titles, self.counts = np.unique(script["ratings"].get_column("item").to_numpy(), return_counts=True)
        self.titles = [str(title) for title in titles]
        self.last = np.zeros((len(self.titles), 2))
        static = {"counts": numbers(self.counts)}
        self.first: Frame = {**static, "items": numbers(self.last)}, {"static": ["counts"], "titles": self.titles}

    def frame(self, model: Any) -> Frame:
        model = getattr(model, "model_", model)
        self.last = turn_to(self.last, weighted_plane(model.components_.T, np.sqrt(self.counts)))
        return {"items": numbers(self.last)}, {}


def weighted_plane(Z: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(m,2) the items along the two directions in which their factors differ most; rare items have little say."""
    Z = Z - (weight @ Z) / weight.sum()
    _, _, axes = np.linalg.svd(Z * weight[:, None], full_matrices=False)
    at = Z @ axes[:2].T
    return np.column_stack([at, np.zeros((len(at), 2 - at.shape[1]))])


class RecommenderMethod(Method):
    """Ratings, and what somebody would like."""

    family, view = "completion", "ratings"
    id, title, estimator, objective = "recommender", "Recommender", "Recommender", "objective of the model"
    kinds = ("ratings",)
    default_data = "ratings"
    call = "model.fit(ratings)"
    settings = (
        setting("Recommender", "model", default="ALS", choices=("ALS", "SVDPlusPlus", "ImplicitALS")),
        setting("ALS", "n_components", label="factors", type="int", default=10, min=2, max=100),
        setting("ALS", "max_iter", label="sweeps at most", default=40, min=1, max=1000, advanced=True),
        seed("Recommender"),
    )

    def build(self, script: Script, chosen: Mapping[str, Any]) -> Any:
        names = ("n_components", "max_iter", "random_state")
        params = {name: chosen[name] for name in names}
        script.build(chosen["model"], params | ({"reg": 0.1} if chosen["model"] == "ALS" else {}), to="factors")
        return script.build("Recommender", {"model": Name("factors"), "random_state": chosen["random_state"]})

    def look(self, script: Script, data: Data, chosen: Mapping[str, Any]) -> Items:
        return Items(script)

    def watched(self, model: Any) -> Any:
        return model.model_

    def table(self, script: Script, data: Data, model: Any, names: Sequence[str] | None) -> pl.DataFrame:
        import polars as pl

        return pl.concat(list(model.recommend_all(10)))

    def figure(self, sight: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.reports.recommend import recommending_figure

        return recommending_figure(model, sight.titles, {}, 10, [], f"{data.name}: {self.title}")

    def ask_like(self, result: Result, ratings: Mapping[str, float]) -> dict[str, Any]:
        """What somebody with these ratings would like, each with the rated item that is nearest to it."""
        model, titles = result.model, result.sight.titles
        place = {title: j for j, title in enumerate(titles)}
        known = {title: float(stars) for title, stars in ratings.items() if title in place}
        if not known:
            raise InputError("none of these titles is among the ratings. Rate one that the search finds.")
        ids = model.items_
        frame = model.recommend_new({ids[place[title]]: stars for title, stars in known.items()}, 10)
        Z = model.model_.components_.T
        Z = Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)
        own = [place[title] for title in known]
        lists = []
        for row in frame.iter_rows(named=True):
            j = place[str(row["item"])]
            near = own[int(np.argmax(Z[own] @ Z[j]))]
            score = row.get("rating") if row.get("rating") is not None else row.get("score")
            lists.append({"title": titles[j], "score": score, "why": f"close to {titles[near]}"})
        return {"lists": lists}

    def ask_search(self, result: Result, text: str) -> dict[str, Any]:
        """Titles that hold a text."""
        found = [title for title in result.sight.titles if str(text).casefold() in title.casefold()]
        return {"titles": found[:FOUND]}


METHODS = (SVTMethod(), ALSMethod(), SoftImputeMethod(), SVPMethod(), SVDImputeMethod(), RecommenderMethod())
