"""A fitted recommender and its lists, as they are shown, drawn and written."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from twofold.analyses.common.answer import FRAMES, Answer, Grid
from twofold.analyses.common.targets import Writer
from twofold.io.tables.formulas import escape_formulas
from twofold.io.tables.write import write_frames

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LISTED_USERS = 5_000  # whose lists say what is recommended most
REPORT_USERS, REPORT_ITEMS = 100, 3  # in a report, and items of each
DRAWN_USERS = 5_000  # whose ratings a figure shows, where they are beyond memory
WIDTH = 1.96  # standard errors from a figure to the ends of its 95 % interval


@dataclass
class Listing:
    """The recommendations for one person."""

    user: Any  # the id; None for someone new
    frame: pl.DataFrame  # item, score and, where there are ratings, rating
    reasons: list[list[tuple[Any, float]]]  # for each item, the rated items that carried it and their shares

    @property
    def who(self) -> str:
        return "new" if self.user is None else str(self.user)


class Lists:
    """The lists of the first users, in the order of `users_`: computed once, as far as they are looked at."""

    def __init__(self, model: Any, n: int):
        self.rest = model.recommend_all(n)
        self.parts: list[pl.DataFrame] = []

    def of(self, users: int) -> pl.DataFrame:
        """user, item and score for at least as many users, or for all there are."""
        while sum(part["user"].n_unique() for part in self.parts) < users:
            part = next(self.rest, None)
            if part is None:
                break
            self.parts.append(part)
        return pl.concat(self.parts)


@dataclass(kw_only=True, repr=False, eq=False)
class Recommendations(Answer):
    """A fitted recommender and its lists."""

    n: int
    names: dict[Any, str]
    tried: dict[str, dict[str, dict[str, float]]]  # of "lists" and "ratings", the score and error of every model
    compared: list[dict[str, Any]]  # one row a method, the own model first, where a split was asked for
    listings: list[Listing]
    asked: bool  # whether the listings are of people asked for
    lists: Lists = field(init=False)

    def __post_init__(self) -> None:
        self.lists = Lists(self.model, self.n)

    @property
    def rows(self) -> str:
        return "rows" if self.model.implicit_ else "ratings"

    @property
    def heading(self) -> str:
        X = self.model.ratings_
        return f"{self.source}: {X.nnz:,} {self.rows} by {X.shape[0]:,} users of {X.shape[1]:,} items"

    @property
    def outcome(self) -> str:
        lists, ratings = (type(model).__name__ for model in (self.model.ranking_, self.model.model_))
        return f"lists by {lists}" + ("" if self.model.implicit_ else f", ratings by {ratings}")

    def name(self, item: Any) -> str:
        """The name of an item, or its id."""
        return self.names.get(item, str(item))

    @cached_property
    def table(self) -> pl.DataFrame:
        """user, item, name where there are names, score and rating: of those asked for, or of all users."""
        return pl.concat(self.frames())

    def frames(self) -> Iterator[pl.DataFrame]:
        """The table, some thousand users at a time: all lists together may be larger than memory."""
        for frame in [self.lists_asked_for()] if self.asked else self.model.recommend_all(self.n):
            frame = frame.with_columns(pl.col("score", "^rating$").cast(pl.Float64).round(4))
            if self.names:
                called = pl.Series("name", [self.name(item) for item in frame["item"].to_list()], dtype=pl.String)
                frame = frame.insert_column(frame.get_column_index("item") + 1, called)
            yield frame

    def writer(self, path: Path) -> Writer:
        if path.suffix.lower() not in FRAMES:
            return super().writer(path)
        frames = self.frames()
        if self.safe_csv and path.suffix.lower() != ".parquet":
            frames = map(escape_formulas, frames)
        return lambda to: write_frames(frames, to)

    def lists_asked_for(self) -> pl.DataFrame:
        text = any(listing.user is None for listing in self.listings)
        parts = [
            listing.frame.select(pl.lit(listing.who if text else listing.user).alias("user"), pl.all())
            for listing in self.listings
        ]
        return pl.concat(parts)

    @cached_property
    def most_recommended(self) -> tuple[list[tuple[Any, int]], int]:
        """The items in most lists, each with their number, and how many lists were looked at; none where asked."""
        if self.asked:
            return [], 0
        frame = self.lists.of(LISTED_USERS)
        often = frame.group_by("item", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
        return often.head(self.n).rows(), frame["user"].n_unique()

    def grids(self) -> list[Grid]:
        grids = [self.make_evaluation_grid()] if self.compared else self.make_trial_grids()
        often, users = self.most_recommended
        if often:
            most = often[0][1]
            rows = [[self.name(item), f"{lists / users:.0%}", lists / most] for item, lists in often]
            grids.append(Grid(["recommended most", "lists", ""], rows, right=(1,), rest="items"))
        if self.asked or any(listing.reasons for listing in self.listings):
            return grids + [self.listing_grid(listing) for listing in self.listings]
        return [*grids, self.examples_grid()]

    def make_evaluation_grid(self) -> Grid:
        """One row a method: error, and what its lists are worth."""
        measures = {"rmse": "RMSE"} if any(row["rmse"] is not None for row in self.compared) else {}
        measures |= {name: f"{name}@{self.n}" for name in ("ndcg", "recall", "precision", "map", "mrr")}
        measures |= {"coverage": "coverage", "novelty": "novelty"}
        rows = [
            [row["model"], *("" if row[name] is None else f"{row[name]:.3f}" for name in measures)]
            for row in self.compared
        ]
        return Grid(["held out", *measures.values()], rows, right=range(1, 1 + len(measures)))

    def make_trial_grids(self) -> list[Grid]:
        """The figures of every model that was tried on ratings held out, the one that is used first."""
        grids = []
        for what, measure in (("lists", "NDCG@10"), ("ratings", "RMSE")):
            rows = self.tried.get(what, {})
            shown: list[list[Any]] = [
                [name, f"{row['score']:.3f} ±{WIDTH * row['error']:.3f}"] for name, row in rows.items()
            ]
            if what == "lists":  # where more is better
                most = max((row["score"] for row in rows.values()), default=1.0) or 1.0
                shown = [[*cells, row["score"] / most] for cells, row in zip(shown, rows.values(), strict=True)]
            head = [f"{what} held out", measure, *([""] if what == "lists" else [])]
            grids += [Grid(head, shown, right=(1,))] if rows else []
        return grids

    def listing_grid(self, listing: Listing) -> Grid:
        head = ["for someone new" if listing.user is None else f"for user {listing.user}", *listing.frame.columns[1:]]
        rows = [[self.name(item), *(f"{x:.2f}" for x in numbers)] for item, *numbers in listing.frame.iter_rows()]
        head += ["because of"] if listing.reasons else []
        for row, reasons in zip(rows, listing.reasons, strict=False):
            said = ", ".join(f"{self.name(item)} (+{share:.2f})" for item, share in reasons)
            row.append(said or "no rating speaks for it")
        return Grid(head, rows, right=range(1, listing.frame.width), most=max(20, self.n))

    def examples_grid(self) -> Grid:
        """A few users, and more of them in a report."""
        best = {listing.who: listing.frame["item"].to_list() for listing in self.listings}
        for part in self.lists.of(REPORT_USERS).head(REPORT_USERS * self.n).partition_by("user", maintain_order=True):
            best.setdefault(str(part["user"][0]), part["item"].to_list())
        rows = [[user, "; ".join(self.name(item) for item in items[:REPORT_ITEMS])] for user, items in best.items()]
        head = ["user", "best for them"]
        return Grid(head, rows[:REPORT_USERS], most=len(self.listings), rest="users in the HTML report")

    def lines(self) -> list[str]:
        own = self.figures
        if not own:
            return ["held out: nothing"]
        parts = [f"{own['ratings']:,} {self.rows} not fitted"]
        said = {"ndcg": (f"lists NDCG@{own['n']}", "popularity"), "rmse": ("ratings RMSE", "biases")}
        for name, (what, trivial) in said.items():
            if own[name] is not None:
                ends = own["intervals"].get(name) if self.compared else None  # else they stand in the tables
                between = f" ({ends[0]:.3f} to {ends[1]:.3f})" if ends else ""
                parts.append(f"{what} {own[name]:.3f}{between}, by {trivial} {self.baseline[name]:.3f}")
        return [f"held out: {'; '.join(parts)}"]

    def facts(self) -> dict[str, Any]:
        X = self.model.ratings_
        return {
            "ratings": X.nnz,
            "users": X.shape[0],
            "items": X.shape[1],
            "columns": self.model.columns_,
            "implicit": self.model.implicit_,
            "model": type(self.model.model_).__name__,
            "ranking": type(self.model.ranking_).__name__,
            "choice": self.model.choice_,
            "tried": self.tried,
            "compared": self.compared,
            "recommended_most": [{"item": item, "lists": lists} for item, lists in self.most_recommended[0]],
            "recommendations": [self.facts_of(listing) for listing in self.listings],
        }

    def facts_of(self, listing: Listing) -> dict[str, Any]:
        items: list[dict[str, Any]] = []
        for row in listing.frame.iter_rows(named=True):
            items.append({"item": row["item"], **({"name": self.name(row["item"])} if self.names else {}), **row})
        for entry, reasons in zip(items, listing.reasons, strict=False):
            entry["because"] = [{"item": item, "share": share} for item, share in reasons]
        return {"user": listing.who, "items": items}

    def plot(self) -> Figure:
        from twofold.plots.reports.recommend import recommending_figure

        often = [(self.name(item), lists) for item, lists in self.most_recommended[0]]
        names = [self.name(item) for item in self.model.items_]
        model, X = self.model, self.model.ratings_
        if not hasattr(X, "indices"):  # they stay on disk: those of some users are drawn
            model = copy(model)
            model.ratings_ = X[np.unique(np.linspace(0, X.shape[0] - 1, DRAWN_USERS).astype(int))]
        return recommending_figure(model, names, self.tried, self.figures.get("n", 10), often, self.heading)
