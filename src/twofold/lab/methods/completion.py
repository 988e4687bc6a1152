"""Tables with holes that fill in, and recommenders: `Cells` draws a table, `Items` a map of items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError
from twofold.lab.methods import tables
from twofold.lab.methods.method import Data, Emit, Frame, Method, Result, Values, last_objective, pack, start_frame
from twofold.lab.methods.setting import Setting, control, loop_controls, sweep_limit
from twofold.lab.script import Name, Script

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MAX_TITLES = 20  # of a search
HIDE = Setting(
    "hide",
    "share of cells hidden",
    "This share of the known cells is hidden from the model, drawn at random, to see how well it fills them.",
    0.1,
    min=0.01,
    max=0.9,
    step=0.01,
)


class Cells:
    """A table, some of its known cells hidden, and the model's value in all cells that it is not shown."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        from twofold.analyses.common.tables import spread

        self.X, self.hidden = script["X"], script["hidden"]
        self.judged: Any = None  # the model that was not shown the hidden cells
        self.filled: np.ndarray | None = None  # the table by the one that was shown all
        shown = script["shown"]
        mean, self.deviation = np.nanmean(shown, axis=0), spread(shown)
        self.baseline = self.judge(np.broadcast_to(mean, self.X.shape))
        self.rows, self.cols = (tables.spread_evenly(size) for size in self.X.shape)
        ordered = data.kind != "picture"  # similar rows and columns lie together, so that there is something to see
        if ordered:
            z = np.where(np.isnan(shown), 0.0, (shown - mean) / self.deviation)[np.ix_(self.rows, self.cols)]
            left, _, right = np.linalg.svd(z, full_matrices=False)
            self.rows, self.cols = self.rows[np.argsort(left[:, 0])], self.cols[np.argsort(right[0])]
        at = np.ix_(self.rows, self.cols)
        self.seen = shown[at]
        names = tables.column_names(data, self.X.shape[1]) if ordered else []
        static = {"truth": self.X[at], "hidden": self.hidden[at]} | ({"rows": self.rows} if ordered else {})
        whole = script["rows"] if "rows" in script else range(len(self.X))
        meta = {"columns": [names[j] for j in self.cols] if names else [], "rows": [whole[i] for i in self.rows]}
        start = {"filled": self.seen, "singular": np.zeros(0)}
        self.first = start_frame(static, start, baseline=self.baseline, **meta)

    def see(self, model: Any, filled: np.ndarray) -> None:
        """Show the blanks from now on as they are `filled` by a fit to all known cells, beside the model so far."""
        self.judged, self.filled = model, filled

    def judge(self, filled: np.ndarray) -> float:
        """Return the root mean square error in the hidden cells, in standard deviations of their columns."""
        error = ((filled - self.X) / self.deviation)[self.hidden]
        return float(np.sqrt(np.mean(error**2))) if len(error) else 0.0

    def frame(self, model: Any) -> Frame:
        filled = fill_all(model if self.judged is None else self.judged, self.X.shape)
        if self.filled is not None:
            filled = np.where(np.isnan(self.X), self.filled, filled)
        at = filled[np.ix_(self.rows, self.cols)]
        singular = singular_values(model if self.judged is None else self.judged)
        arrays = pack(filled=np.where(np.isnan(self.seen), at, self.seen), singular=singular)
        return arrays, {"error": self.judge(filled), "baseline": self.baseline}


def fill_blanks(model: Any, X: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns as `twofold apply` fills them, guesses with the decimals of their column."""
    import polars as pl

    from twofold.analyses.apply.analysis import filled, round_like

    found = filled(model, X)
    assert found is not None
    return {
        name: np.where(np.isnan(known), round_like(values, pl.Series(known)), known)
        for (name, values), known in zip(found.items(), X.T, strict=True)
    }


def fill_all(model: Any, shape: tuple[int, int]) -> np.ndarray:
    """(n,d) the model's value in every cell."""
    rows, cols = (at.ravel() for at in np.indices(shape))
    return model.predict(rows, cols).reshape(shape)


def singular_values(model: Any) -> np.ndarray:
    """Return those of the product of its factors."""
    if hasattr(model, "singular_values_"):
        return model.singular_values_
    left, right = (np.linalg.qr(side)[1] for side in (model.row_factors_, model.components_.T))
    return np.linalg.svd(left @ right.T, compute_uv=False)


class Matrix(Method):
    """A table with holes."""

    family, view, view_class = "completion", "matrix", Cells
    kinds = ("table", "pictures", "picture")
    default_data = "table_with_holes"
    call = "model.fit(shown)"

    def prepare(self, script: Script, data: Data, chosen: Values) -> None:
        if data.kind == "picture":
            step = max(1, -(-max(script["picture"].shape[:2]) // tables.MAX_PLACES))
            mean = ".mean(axis=2)" if script["picture"].ndim == 3 else ".astype(float)"
            script.do(f"X = picture[::{step}, ::{step}]{mean}")
        tables.check_table(script["X"], data)
        draw = f"np.random.default_rng({chosen['random_state']}).random(X.shape) < {chosen['hide']}"
        script.do(f"hidden = ~np.isnan(X) & ({draw})")
        script.do("shown = np.where(hidden, np.nan, X)")
        script.names["normalize"] = data.kind == "table" and tables.needs_scale(script, data, "auto")

    def parameters(self, script: Script, chosen: Values) -> dict[str, Any]:
        return super().parameters(script, chosen) | ({"normalize": "column"} if script["normalize"] else {})

    def find_limits(self, script: Script) -> tuple[int, ...]:
        return script["X"].shape

    def fit(self, script: Script, model: Any, view: Any, emit: Emit, chosen: Values) -> None:
        """Fit what is shown, to be judged by what is hidden; then fit all known cells, to fill the blanks."""
        super().fit(script, model, view, emit, chosen)
        script.use("sklearn.base", "clone")
        script.do("judged = model")
        script.do("model = clone(judged).set_callbacks().fit(X)")
        view.see(script["judged"], np.stack([*fill_blanks(script["model"], script["X"]).values()], axis=1))

    def measure(self, model: Any, view: Any) -> float:
        return last_objective(view.judged)

    def count_sweeps(self, model: Any, view: Any) -> int:
        return int(view.judged.n_iter_)

    def table(self, script: Script, data: Data, model: Any) -> pl.DataFrame:
        import polars as pl

        if data.kind == "table":
            return super().table(script, data, model)
        return pl.DataFrame(fill_blanks(model, script["X"]))

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.models.completion import tables_figure

        truth = view.X[np.ix_(view.rows, view.cols)]
        filled = view.frame(model)[0]["filled"]
        low, high = np.nanquantile(truth, [0.02, 0.98])
        return tables_figure({"shown": view.seen, "filled": filled, "truth": truth}, (float(low), float(high)))


class SVTMethod(Matrix):
    id, title, estimator, objective = "svt", "Singular value thresholding", "SVT", "negative dual"
    compare = ("als", "soft_impute")
    settings = (
        HIDE,
        control("tau", "threshold", min=0, max=1e6, log=True),
        control("step", min=0.01, max=100, log=True, advanced=True),
        *loop_controls(tol=1e-3, max_iter=200),
    )


class ALSMethod(Matrix):
    id, title, estimator, objective = "als", "Alternating least squares", "ALS", "squared error and ridge"
    compare = ("svt", "soft_impute")
    settings = (
        HIDE,
        control("n_components", "factors", default=5, max=60),
        control("reg", "penalty", default=0.1, max=10, log=True),
        control("biases", advanced=True),
        control("nonnegative", advanced=True),
        *loop_controls(tol=1e-5, max_iter=200),
    )


class SoftImputeMethod(Matrix):
    id, title, estimator = "soft_impute", "Soft-impute", "SoftImpute"
    objective = "squared error and nuclear norm"
    compare = ("svt", "als")
    settings = (
        HIDE,
        control("reg", "penalty", max=1e6, log=True),
        control("n_components", "components at most", max=100),
        control("center", "take off means", default=True, advanced=True),
        *loop_controls(),
    )


class SVPMethod(Matrix):
    id, title, estimator, objective = "svp", "Singular value projection", "SVP", "half the squared error"
    compare = ("svd_impute", "als")
    settings = (
        HIDE,
        control("n_components", "rank", default=3, max=60),
        *loop_controls(tol=1e-5, max_iter=300),
    )


class SVDImputeMethod(Matrix):
    id, title, estimator, objective = "svd_impute", "SVD imputation", "SVDImpute", "half the squared error"
    compare = ("svp", "als")
    settings = (
        HIDE,
        control("n_components", "rank", default=3, max=60),
        *loop_controls(tol=1e-5, max_iter=300),
    )


# --- ratings ------------------------------------------------------------------------------------------------


class Items:
    """A map of the items: those that the same people like are close."""

    def __init__(self, script: Script, data: Data, chosen: Values):
        titles, self.counts = np.unique(script["ratings"].get_column("item").to_numpy(), return_counts=True)
        self.titles = [str(title) for title in titles]
        self.last = np.zeros((len(self.titles), 2))
        static = {"counts": self.counts.astype(float)}
        self.first = start_frame(static, {"items": self.last}, titles=self.titles)

    def frame(self, model: Any) -> Frame:
        model = getattr(model, "model_", model)
        self.last = tables.turn_to(self.last, project_items(model.components_.T, np.sqrt(self.counts)))
        return pack(items=self.last), {}


def project_items(Z: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(m,2) the items along the two directions in which their weighted factors differ most."""
    Z = Z - (weight @ Z) / weight.sum()
    _, _, axes = np.linalg.svd(Z * weight[:, None], full_matrices=False)
    return tables.first_two(Z @ axes[:2].T)


class RecommenderMethod(Method):
    """Ratings, and recommendations for a person with ratings of their own."""

    family, view, view_class = "completion", "ratings", Items
    id, title, estimator, objective = "recommender", "Recommender", "Recommender", "objective of the model"
    kinds = ("ratings",)
    default_data = "ratings"
    call = "model.fit(ratings)"
    settings = (
        control("model", default="ALS", choices=("ALS", "SVDPlusPlus", "ImplicitALS")),
        control("n_components", "factors", owner="ALS", default=10, min=2, max=100),
        sweep_limit(owner="ALS", default=40),
    )

    def build(self, script: Script, chosen: Values) -> Any:
        params = {name: chosen[name] for name in ("n_components", "max_iter", "random_state")}
        script.build(chosen["model"], params | ({"reg": 0.1} if chosen["model"] == "ALS" else {}), to="factors")
        return script.build("Recommender", {"model": Name("factors"), "random_state": chosen["random_state"]})

    def inner_model(self, model: Any) -> Any:
        return model.model_

    def figure(self, view: Any, data: Data, model: Any) -> Figure:
        from twofold.plots.reports.recommend import recommending_figure

        return recommending_figure(model, view.titles, {}, 10, [], f"{data.name}: {self.title}")

    def ask_like(self, result: Result, ratings: Values) -> dict[str, Any]:
        """Recommend items to a person with these ratings, each with the rated item that is nearest to it."""
        model, titles = result.model, result.view.titles
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
        """Find titles that hold a text."""
        titles = [title for title in result.view.titles if str(text).casefold() in title.casefold()]
        return {"titles": titles[:MAX_TITLES]}
