"""What people would like, from what they have rated or used.

A `Recommender` is fitted to rows of user, item and rating. How good its predictions and lists are is measured on
ratings held out of a second fit, beside what biases and popularity reach. Every list is computed once, when wanted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import twofold
from twofold.analyses._tables import data_in_code, is_paths, warnings_as_notes
from twofold.analyses._targets import Writer
from twofold.analyses.answer import FRAMES, Answer, Grid, analysis, count, plain
from twofold.analyses.progress import SILENT, Progress
from twofold.core.checks import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from twofold.io.ratings import Ratings

MOST_TESTED = 3_000_000  # ratings up to which a second fit, for the figures, is quick
LISTED = 5_000  # users whose lists say what is recommended most
EXAMPLES = 3  # users shown on a terminal when none is asked for
ON_PAGE = 100  # users in a report
BEST = 3  # items shown of each of them
REASONS = 3  # rated items named for each recommendation
TEST = 0.1  # of the ratings
MEASURES = ("rmse", "mae", "precision", "recall", "ndcg", "map", "coverage")
_PAIR = re.compile(r"(.+?)\s*:\s*([+-]?\d+(?:\.\d+)?)\s*(?:,\s*|$)")


@dataclass
class Listing:
    """The recommendations for one person."""

    user: Any  # the id; None for someone new
    frame: pl.DataFrame  # item, score, and rating where there are ratings
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
        """user, item and score for at least so many users, or for all there are."""
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
    compared: list[dict[str, Any]]  # one row a method, the own model first
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
        model = self.model.model_
        factors = getattr(model, "components_", None)
        return type(model).__name__ + (f", {len(factors)} factors" if factors is not None else "")

    def name(self, item: Any) -> str:
        """What the item is called."""
        return self.names.get(item, str(item))

    @cached_property
    def table(self) -> pl.DataFrame:
        """user, item, name where there are names, and score: of those asked for, or of everybody."""
        return pl.concat(self.frames())

    def frames(self) -> Iterator[pl.DataFrame]:
        """The table, some thousand users at a time: all lists together may be larger than memory."""
        for frame in [self.lists_asked_for()] if self.asked else self.model.recommend_all(self.n):
            frame = frame.with_columns(pl.col("^(score|rating)$").cast(pl.Float64).round(4))
            if self.names:
                called = pl.Series("name", [self.name(item) for item in frame["item"].to_list()], dtype=pl.String)
                frame = frame.insert_column(frame.get_column_index("item") + 1, called)
            yield frame

    def writer(self, path: Path) -> Writer:
        if path.suffix.lower() not in FRAMES:
            return super().writer(path)
        from twofold.completion.recommender._top_n import write_frames

        return lambda to: write_frames(self.frames(), to)

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
        frame = self.lists.of(LISTED)
        often = frame.group_by("item", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
        return often.head(self.n).rows(), frame["user"].n_unique()

    def grids(self) -> list[Grid]:
        grids = [self.compared_grid()] if self.compared else []
        often, users = self.most_recommended
        if often:
            most = often[0][1]
            rows = [[self.name(item), f"{lists / users:.0%}", lists / most] for item, lists in often]
            grids.append(Grid(["recommended most", "lists", ""], rows, right=(1,), rest="items"))
        if self.asked or any(listing.reasons for listing in self.listings):
            return grids + [self.listing_grid(listing) for listing in self.listings]
        return [*grids, self.examples_grid()]

    def compared_grid(self) -> Grid:
        """One row a method: error, and what its lists are worth."""
        measures = {"rmse": "RMSE"} if any(row["rmse"] is not None for row in self.compared) else {}
        measures |= {name: f"{name}@{self.n}" for name in ("precision", "recall", "ndcg")}
        rows = [
            [row["model"], *("" if row[name] is None else f"{row[name]:.3f}" for name in measures)]
            for row in self.compared
        ]
        return Grid(["held out", *measures.values()], rows, right=range(1, 1 + len(measures)))

    def listing_grid(self, listing: Listing) -> Grid:
        head = ["for someone new" if listing.user is None else f"for user {listing.user}"]
        head += ["score" if self.model.implicit_ else "expected", *(["because of"] if listing.reasons else [])]
        rows = [[self.name(item), f"{score:.2f}"] for item, score in listing.frame.select("item", "score").iter_rows()]
        for row, reasons in zip(rows, listing.reasons, strict=False):
            said = ", ".join(f"{self.name(item)} (+{share:.2f})" for item, share in reasons)
            row.append(said or "no rating speaks for it")
        return Grid(head, rows, right=(1,), most=max(20, self.n))

    def examples_grid(self) -> Grid:
        """A few users, and more of them in a report."""
        best = {listing.who: listing.frame["item"].to_list() for listing in self.listings}
        for part in self.lists.of(ON_PAGE).head(ON_PAGE * self.n).partition_by("user", maintain_order=True):
            best.setdefault(str(part["user"][0]), part["item"].to_list())
        rows = [[user, "; ".join(self.name(item) for item in items[:BEST])] for user, items in best.items()]
        head = ["user", "best for them"]
        return Grid(head, rows[:ON_PAGE], most=len(self.listings), rest="users in the HTML report")

    def lines(self) -> list[str]:
        if not self.compared:
            return ["held out: nothing"]
        own = self.figures
        parts = [f"{own['ratings']:,} {self.rows} not fitted"]
        if own["rmse"] is not None:
            parts.append(f"error (RMSE) {own['rmse']:.3f}, biases {self.baseline['rmse']:.3f}")
        if own["precision"] is not None:
            parts.append(
                f"of {self.n} items recommended {own['precision'] * self.n:.1f} are among them and liked, "
                f"by popularity {self.baseline['precision'] * self.n:.1f}"
            )
        return [f"held out: {'; '.join(parts)}"]

    def facts(self) -> dict[str, Any]:
        X = self.model.ratings_
        return {
            "ratings": X.nnz,
            "users": X.shape[0],
            "items": X.shape[1],
            "columns": self.model.columns_,
            "implicit": self.model.implicit_,
            "model": " + ".join(dict.fromkeys(type(m).__name__ for m in (self.model.ranking_, self.model.model_))),
            "choice": self.model.choice_,
            "compared": self.compared,
            "recommended_most": [{"item": item, "lists": lists} for item, lists in self.most_recommended[0]],
            "recommendations": [self.facts_of(listing) for listing in self.listings],
        }

    def facts_of(self, listing: Listing) -> dict[str, Any]:
        items: list[dict[str, Any]] = []
        for item, score in listing.frame.select("item", "score").iter_rows():
            items.append({"item": item, **({"name": self.name(item)} if self.names else {}), "score": score})
        for entry, reasons in zip(items, listing.reasons, strict=False):
            entry["because"] = [{"item": item, "share": share} for item, share in reasons]
        return {"user": listing.who, "items": items}

    def plot(self) -> Figure:
        from twofold.plots.reports.recommend import recommending_figure

        often = [(self.name(item), lists) for item, lists in self.most_recommended[0]]
        names = [self.name(item) for item in self.model.items_]
        return recommending_figure(self.model, names, self.compared, self.n, often, self.heading)


@analysis
def recommend(
    data: Any,
    *,
    users: Sequence[Any] = (),
    new: Mapping[Any, float] | Sequence[str] = (),
    n: int = 10,
    explain: bool = False,
    names: Any = None,
    names_id: str | None = None,
    names_column: str | None = None,
    user_column: str | None = None,
    item_column: str | None = None,
    rating_column: str | None = None,
    missing: Sequence[Any] = (),
    split: str = "random",
    seed: int = 0,
    progress: Progress = SILENT,
) -> Recommendations:
    """Recommend items to users, from rows of user, item and (where there is one) rating.

    Parameters
    ----------
    data : path, list of paths, frame, arrays, or Recommender
        Ratings in files that `twofold.io.ratings.read_ratings` knows, or in any form that `Recommender.fit` takes; or
        a fitted `Recommender`, or the path of a saved one, which is asked and not fitted again.
    users : sequence
        Ids of users to recommend for. Without any (and without `new`): everybody.
    new : mapping, or sequence of str
        Ratings of someone who is not in the data: ``{item: rating}``, or texts "ITEM:RATING,ITEM:RATING".
    n : int
        Items for each user.
    explain : bool
        Whether to find the rated items that carried each recommendation.
    names : path, mapping or None
        What items are called: a table of ids and names, or ``{item: name}``. The model keeps them. None: as a column
        of the ratings says, or as the model knows.
    names_id, names_column : str or None
        The columns of that table that hold ids and names. None: the column that tells its rows apart and holds most
        items, and one that is text.
    user_column, item_column, rating_column : str or None
        Names of columns. None: found by name, else by position.
    missing : sequence
        Texts that stand for no rating.
    split : {"random", "leave-out", "last", "users"}
        Which ratings are held out for the figures: any; some of each user; the last of each user, by the column of
        times; or those of whole users, who are new to the model (`Recommender.evaluate`).
    seed, progress
        The seed of everything random; who is told what goes on.

    Returns
    -------
    Recommendations
        ``table`` holds user, item, name where there are names, score, and where there are ratings the predicted one.

    Examples
    --------
    >>> from twofold import datasets
    >>> answer = recommend(datasets.ratings(n_users=40, n_items=30).ratings, users=[3], n=2)
    >>> answer.table.shape, answer.table.columns
    ((2, 4), ['user', 'item', 'score', 'rating'])
    """
    given = {"user": user_column, "item": item_column, "rating": rating_column}
    columns = {"id_column": names_id, "name_column": names_column}
    with progress.doing("reading"):
        read = as_ratings_or_model(data, given, missing)
        check_measurable(read, split)
        called, named = as_names(names, read, columns)
    figures: dict[str, Any] = {}
    compared: list[dict[str, Any]] = []
    if isinstance(read, Fitted):
        model, source = read.model, read.source
        notes = [f"{source} is a fitted recommender: nothing is fitted or measured again"]
        given = {}
    else:
        notes, source = read.notes, read.source
        model = fit(read, seed, progress, notes)
        with progress.doing("fitting again without a tenth of the ratings"):
            figures, compared = measure(model, read, n, split, seed, notes)
        notes.append(about(model))
        given = dict.fromkeys(read.columns) if read.matrix else read.columns
    names_by_item = keep_names(model, called)
    notes += named
    with progress.doing("recommending"):
        listings = [for_user(model, user, n, explain) for user in users]
        listings += [for_new(model, as_new(new, model, names_by_item), n, explain)] if new else []
        asked = bool(listings)
        listings = listings or [for_user(model, user, n, explain) for user in examples(model)]
    call = {"verb": "recommend", "data": data_in_code(data), "users": plain(list(users)), "new": as_given(new), "n": n}
    call |= {"explain": explain, "names": as_given(names), "names_id": names_id}
    call |= {"names_column": names_column} | {f"{role}_column": name for role, name in given.items()}
    return Recommendations(
        source=source,
        model=model,
        figures=figures,
        baseline=baseline_of(compared),
        notes=notes,
        call=call | {"missing": list(missing), "split": split, "seed": seed},
        n=n,
        names=names_by_item,
        compared=compared,
        listings=listings,
        asked=asked,
    )


def as_given(value: Any) -> Any:
    """A path, mapping or list as it stands in a call."""
    if isinstance(value, Mapping):
        return dict(value)
    return value if value is None or isinstance(value, str) else os.fspath(value) if is_paths([value]) else list(value)


# --- reading ------------------------------------------------------------------------------------------------


@dataclass
class Fitted:
    """A recommender that was fitted before."""

    model: Any
    source: str


def as_ratings_or_model(data: Any, given: dict[str, str | None], missing: Sequence[Any]) -> Ratings | Fitted:
    """Ratings, or a recommender that was fitted."""
    one = data[0] if isinstance(data, (list, tuple)) and len(data) == 1 else data
    if type(one).__name__ == "Recommender":
        return Fitted(one, "the recommender")
    if isinstance(one, (str, os.PathLike)) and os.fspath(one).endswith(".twofold"):
        return Fitted(load_recommender(os.fspath(one)), os.fspath(one))
    from twofold.io.ratings import read_ratings

    return read_ratings(data, **given, missing=missing)


def load_recommender(path: str) -> Any:
    from twofold.core.checks import ModelFileError
    from twofold.io.tables.read import missing_message

    if not os.path.isfile(path):
        raise ModelFileError(missing_message(path))
    model = twofold.load(path)
    if type(model).__name__ != "Recommender":
        raise InputError(f"{path} holds a {type(model).__name__}. Give a Recommender, or a file of ratings.")
    return model


def as_names(names: Any, data: Ratings | Fitted, columns: dict[str, str | None]) -> tuple[dict[Any, str] | None, list]:
    """What items are called, by id, if that is given; and a note that says from where."""
    if names is None or isinstance(names, Mapping):
        return None if names is None else {item: str(name) for item, name in names.items()}, []
    from twofold.io.ratings import read_names

    items = data.model.items_ if isinstance(data, Fitted) else data.item.unique().to_numpy()
    called, note = read_names(os.fspath(names), items, **columns)
    return called, [note]


def keep_names(model: Any, called: dict[Any, str] | None) -> dict[Any, str]:
    """The names that are given, which the model keeps; or else those it has."""
    items = model.items_.tolist()
    if called is not None:
        model.names_ = np.array([called.get(item, "") for item in items], dtype=object)
    return {} if model.names_ is None else {i: name for i, name in zip(items, model.names_, strict=True) if name}


# --- the fit, and how good it is ----------------------------------------------------------------------------


def fit(data: Ratings, seed: int, progress: Progress, notes: list[str]) -> Any:
    check_enough(data)
    columns: dict[str, Any] = {
        role: name for role, name in data.columns.items() if name is not None and not data.matrix
    }
    model = twofold.Recommender(**columns, random_state=seed)
    with warnings_as_notes(notes):
        model.set_callbacks(*progress.callbacks()).fit(data)
    if data.rating is not None and model.implicit_ and not data.counts:
        notes.append(f"every rating is {data.rating[0]:g}: what can be learnt is who has what, not how it is liked")
    again = len(data.user) - model.ratings_.nnz
    if again:
        rows = f"{count(again, 'row')} repeat{'' if again > 1 else 's'}"
        what = "added up" if model.implicit_ else "averaged"
        notes.append(f"{rows} a user and an item, and {'are' if again > 1 else 'is'} {what}")
    return model.set_callbacks()


def check_measurable(data: Ratings | Fitted, split: str) -> None:
    """Refuse a split that is unknown or needs times that there are not, before anything is fitted."""
    from twofold.completion.recommender._splits import check_split

    check_split(split, TEST, None)
    if split == "last" and not isinstance(data, Fitted) and data.time is None:
        raise InputError(
            f"--split last: no column of {data.source} says when. Call it time, date or timestamp, or split otherwise."
        )


def check_enough(data: Ratings) -> None:
    """Refuse ratings of one user, whose items are all known, or of one item."""
    for ids, what in ((data.user, "user"), (data.item, "item")):
        if ids.n_unique() == 1:
            raise InputError(
                f"{data.source} has {count(len(ids), 'rating')} of one {what} alone, {ids[0]!r}: there is nothing to "
                f"recommend. Give ratings of several {what}s, or name the column of {what}s with --{what}-column."
            )


def about(model: Any) -> str:
    """What was chosen, and how it did on the ratings it held out to decide."""
    choice = model.choice_
    if "ranking" in choice:
        return f"lists: {describe(choice['ranking'])}; ratings: {describe(choice)}"
    return f"model {describe(choice)}"


def describe(choice: dict[str, Any]) -> str:
    line = f"{choice['model']}, {choice['why']}"
    if "score" in choice:
        line += f" ({choice['measure']} {choice['score']:.3f}, {choice['baseline']} {choice['baseline_score']:.3f})"
    return line


def measure(
    model: Any, data: Ratings, n: int, split: str, seed: int, notes: list[str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """All of it again without some of the ratings, which are then looked at: own figures, and a row a method."""
    size = model.ratings_.nnz
    if size > MOST_TESTED:
        notes.append(f"{size:,} ratings: not fitted a second time for the figures")
        return {}, []
    if size < 100:
        notes.append(f"too few ratings ({size}) to hold any out")
        return {}, []
    with warnings_as_notes([]):
        ratings = data if split == "last" else None  # times are not kept
        found = model.evaluate(ratings, split=split, test_size=TEST, n=n, random_state=seed + 1)
    compared = found.table.to_dicts()
    own, popular = compared[0], compared[-1]
    if (popular["ndcg"] or 0) > (own["ndcg"] or 0):
        notes.append(
            "popularity alone finds more of the items held out: "
            + (
                "there is little to learn about most users"
                if model.implicit_
                else "people rate what everybody has seen, and lists put first what would be rated highest"
            )
        )
    about = {"what": f"errors of ratings held out, and what lists of {n} hold of them", "n": n}
    about |= {"ratings": found.ratings, "users": found.users, "unseen": found.unseen, "relevant": found.relevant}
    return about | {name: own[name] for name in MEASURES}, compared


def baseline_of(compared: list[dict[str, Any]]) -> dict[str, Any]:
    """The trivial methods: errors of biases (which the own model may be), lists of what is most popular."""
    if not compared:
        return {}
    errors, lists = compared[-2], compared[-1]
    explicit = errors["rmse"] is not None
    method = "biases for errors, popularity for lists" if explicit else "popularity"
    return {"method": method} | {name: (errors if name in ("rmse", "mae") else lists)[name] for name in MEASURES}


# --- lists --------------------------------------------------------------------------------------------------


def examples(model: Any) -> list[Any]:
    """A few users to show: the ones with the most, a middling number, and the fewest ratings."""
    order = np.argsort(-np.diff(model.ratings_.indptr), kind="stable")
    at = dict.fromkeys([0, len(order) // 2, len(order) - 1])
    return [model.users_[order[i]] for i in list(at)[:EXAMPLES]]


def for_user(model: Any, user: Any, n: int, explain: bool) -> Listing:
    from twofold.completion.recommender._ids import place

    row = place(model.users_, user, "user")
    frame = model.recommend(user, n)
    return Listing(plain(model.users_[row]), frame, reasons_for(model, model.ratings_[[row]], frame) if explain else [])


def for_new(model: Any, ratings: dict[Any, float], n: int, explain: bool) -> Listing:
    frame = model.recommend_new(ratings, n)
    reasons = []
    if explain:
        from twofold.completion.recommender._ratings_table import row_of

        x, _ = row_of(ratings, model.items_, model.implicit_, model.ratings_.dtype)
        reasons = reasons_for(model, x, frame)
    return Listing(None, frame, reasons)


def reasons_for(model: Any, x: Any, frame: pl.DataFrame) -> list[list[tuple[Any, float]]]:
    """The rated items that spoke most for each recommendation, with their shares in it; x (1,d) are the ratings."""
    from twofold.completion.recommender._explain import split_prediction
    from twofold.completion.recommender._ids import places

    out = []
    for column in places(model.items_, frame["item"].to_list()).tolist():
        shares = split_prediction(model.ranking_, model._rank_values(x), column)
        order = np.argsort(-shares, kind="stable")[:REASONS]
        out.append([(plain(model.items_[x.indices[j]]), float(shares[j])) for j in order if shares[j] > 0])
    return out


def as_new(new: Mapping[Any, float] | Sequence[str], model: Any, names: dict[Any, str]) -> dict[Any, float]:
    """The ratings of someone new, by the ids of items.

    In a text, `id:5,id:3`, ids may hold commas and colons: an id ends at a colon with a number behind it, after which
    there is a comma or the end. If that would cut an id in two, it is given in a text of its own: what is left of the
    last colon is tried as one id first.
    """
    from twofold.completion.recommender._ids import place

    named = {name: item for item, name in names.items()}
    texts = [new] if isinstance(new, str) else new
    pairs = (
        new.items() if isinstance(new, Mapping) else (pair for text in texts for pair in pairs_in(text, model, named))
    )
    out: dict[Any, float] = {}
    low, high = model.range_
    for word, value in pairs:
        at = place(model.items_, named.get(word, word), "item")
        if not model.implicit_ and not low <= value <= high:
            raise InputError(f"--new {word}:{value:g}: the ratings go from {low:g} to {high:g}. Give one of these.")
        out[model.items_[at]] = value
    return out


def pairs_in(text: str, model: Any, named: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The pairs of one text."""
    from twofold.completion.recommender._ids import places

    def known(word: str) -> bool:
        return word in named or int(places(model.items_, [word])[0]) >= 0

    head, _, tail = text.rpartition(":")
    if known(head.strip()) and _PAIR.fullmatch(f"x:{tail.strip()}"):
        yield head.strip(), float(tail)
        return
    if model.implicit_ and (known(text.strip()) or not _PAIR.search(text)):
        yield from ((word.strip(), 1.0) for word in ([text] if known(text.strip()) else text.split(",")))
        return
    at = 0
    while at < len(text.rstrip()):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise InputError(
                f'--new "{text}": "{text[at:]}" has no rating. Write ITEM:RATING, with commas between pairs.'
            )
        yield pair[1].strip(), float(pair[2])
        at = pair.end()
