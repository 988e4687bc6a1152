"""What people would like, from what they have rated or used.

A `Recommender` is fitted to rows of user, item and rating. It answers two questions by two models: which items belong
in a list, and how a user would rate them. Both are chosen on ratings held out, and what they reach on these is shown
beside what popularity and biases reach; `split` measures on ratings by which nothing was chosen, with a second fit.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import polars as pl

import twofold
from twofold.analyses.common.analysis import Column, Data, Seed, analysis, list_planned_files
from twofold.analyses.common.answer import count
from twofold.analyses.common.tables import is_paths, warnings_as_notes
from twofold.analyses.recommend.answer import WIDTH, Listing, Recommendations
from twofold.core.checks import InputError, ModelFileError
from twofold.core.config import config
from twofold.core.declaration import Flag
from twofold.core.printable import plain
from twofold.core.progress import Progress, doing

if TYPE_CHECKING:
    from twofold.io.ratings import Ratings

MAX_RATINGS_FOR_SECOND_FIT = 3_000_000  # for the figures
EXAMPLE_USERS = 3  # shown on a terminal when none is asked for
REASONS_PER_ITEM = 3
TEST_SHARE = 0.1  # of the ratings
MEASURES = ("rmse", "mae", "precision", "recall", "ndcg", "map", "mrr", "coverage", "novelty")
_PAIR = re.compile(r"(.+?)\s*:\s*([+-]?\d+(?:\.\d+)?)\s*(?:,\s*|$)")


@analysis(streams=True)
def recommend(
    data: Data,
    *,
    users: Annotated[Sequence[Any], Flag("--user", unit="ID")] = (),
    new: Annotated[Sequence[str] | Mapping[Any, float], Flag(unit="RATINGS")] = (),
    n: Annotated[int, Flag("-n", min=1, unit="N")] = 10,
    explain: bool = False,
    names: Annotated[Any, Flag(unit="FILE")] = None,
    names_id: Column = None,
    names_column: Column = None,
    user_column: Column = None,
    item_column: Column = None,
    rating_column: Column = None,
    missing: Annotated[Sequence[Any], Flag("--missing", "--na", unit="VALUE")] = (),
    user_features: Annotated[Any, Flag("--users", unit="FILE")] = None,
    item_features: Annotated[Any, Flag("--items", unit="FILE")] = None,
    model: Annotated[Any, Flag(unit="NAME")] = None,
    time: Annotated[float, Flag(min=0.1, unit="SECONDS")] = 30.0,
    split: Literal["random", "leave-out", "last", "users", "items"] | None = None,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Recommendations:
    """Find what people would like, from what they have rated or used.

    Parameters
    ----------
    data : path, list of paths, frame, arrays, or Recommender
        Ratings, as rows of user, item and rating or as a matrix: CSV, TSV, Parquet, JSONL, .npy, .mtx, file.db::table,
        a folder, a pattern, - (stdin); or a saved .twofold, which is asked and not fitted again.
    users : sequence
        Recommend for this user; repeatable. Default: a few users, and what is recommended most.
    new : mapping, or sequence of str
        Recommend for someone new, from "ITEM:RATING,ITEM:RATING"; repeatable; ids may hold commas and colons.
    n
        Number of items for each user.
    explain
        Say which rated items carried each recommendation.
    names : path, mapping or None
        Table of item ids and names, to show names instead of ids; a saved model keeps them.
    names_id
        Column of `names` that holds ids. Default: detected.
    names_column
        Column of `names` that holds names. Default: detected.
    user_column
        User column. Default: detected.
    item_column
        Item column. Default: detected.
    rating_column
        Rating column. Default: detected.
    missing
        Text or number that means no rating; repeatable.
    user_features : path, frame, or None
        Table of what is known of users, a row each with their ids: numbers, categories, lists ("Action|Comedy") and
        text; so users without ratings are served, too.
    item_features : path, frame, or None
        Table of what is known of items, a row each with their ids, as for users; so items without ratings are
        recommended, too.
    model : str, completion model or None
        Model for lists and ratings: EASE, ImplicitALS, SVDPlusPlus, ALS, Neighborhood, Popularity, ... Default: the
        best of several, one for each.
    time
        Seconds that the choice of models may take; what would take longer is not tried.
    split
        Fit again and measure on ratings held out: any (random), some of each user (leave-out), the last by time (last),
        those of whole users, which are new (users), or of whole items, which are ranked by `item_features` (items).

    Returns
    -------
    Recommendations
        ``table`` holds user, item, name where there are names, score and, where there are ratings, rating: the one that
        the user would give.

    Examples
    --------
    >>> from twofold import datasets
    >>> stars = datasets.ratings(n_users=40, n_items=30).ratings
    >>> answer = recommend(stars, users=[3], n=2, model="Biases")  # without, the models are chosen
    >>> answer.table.shape, answer.table.columns
    ((2, 4), ['user', 'item', 'score', 'rating'])
    """
    roles = {"user": user_column, "item": item_column, "rating": rating_column}
    read: Ratings | Fitted | Stored | None = read_stored(data, roles, missing, split)
    if isinstance(read, Stored) and any(path.suffix == ".twofold" for path in list_planned_files()):
        raise InputError(
            "a saved recommender holds all ratings, and these take more than the memory budget of "
            f"{config().memory / 1e6:,.0f} MB. Write the lists to a table, or raise the budget: ⟨memory=8GB⟩."
        )
    with doing("reading"):
        read = as_ratings_or_model(data, roles, missing) if read is None else read
        check_measurable(read, split, item_features)
        item_names, names_notes = as_names(names, read, {"id_column": names_id, "name_column": names_column})
    figures: dict[str, Any] = {}
    compared: list[dict[str, Any]] = []
    if isinstance(read, Fitted):
        fitted, source = read.model, read.source
        notes = [f"{source} is a fitted recommender: nothing is fitted or measured again"]
    else:
        notes, source = read.notes, read.source
        features = {"users": user_features, "items": item_features}
        fitted = fit(read, features, as_model(model, seed), time, seed, notes)
        split = split or (None if model is None or isinstance(read, Stored) else "random")
        if split is not None and not isinstance(read, Stored):
            with doing("fitting again without a tenth of the ratings"):
                figures, compared = measure(fitted, read, n, split, seed, notes, item_features)
        notes += describe_choice(fitted)
    tried = summarize_trials(fitted) if split is None else summarize_evaluation(compared)
    figures, baseline = figures_of(fitted) if split is None else (figures, baseline_of(compared))
    names_by_item = keep_names(fitted, item_names)
    notes += names_notes
    with doing("recommending"):
        listings = [recommend_user(fitted, user, n, explain) for user in users]
        if new:
            listings.append(recommend_new_user(fitted, as_new(new, fitted, names_by_item), n, explain))
        asked = bool(listings)
        listings = listings or [recommend_user(fitted, user, n, explain) for user in list_examples(fitted)]
    return Recommendations(
        source=source,
        model=fitted,
        figures=figures,
        baseline=baseline,
        notes=notes,
        n=n,
        names=names_by_item,
        tried=tried,
        compared=compared,
        listings=listings,
        asked=asked,
    )


# --- reading ------------------------------------------------------------------------------------------------


@dataclass
class Fitted:
    """A recommender that was fitted before."""

    model: Any
    source: str


@dataclass
class Stored:
    """Ratings beyond the memory budget, cut into blocks on disk."""

    ratings: Any
    source: str
    notes: list[str]
    folder: Any  # which lasts as long as they do


def read_stored(data: Any, roles: dict[str, str | None], missing: Sequence[Any], split: str | None) -> Stored | None:
    """Ratings in files that the memory budget does not hold, in blocks; None for all others."""
    data = [data] if isinstance(data, (str, os.PathLike)) else data
    if not (isinstance(data, (list, tuple)) and data and is_paths(data)) or data[0] == "-":
        return None
    from twofold.completion.partitioned.ratings import PartitionedRatings
    from twofold.completion.partitioned.sources import measure_files
    from twofold.io.ratings import describe_columns

    paths = [os.fspath(one) for one in data]
    size = measure_files(paths, roles)
    if size <= config().memory:
        return None
    if split is not None:
        raise InputError(
            f"⟨split={split}⟩ fits twice, with all ratings in memory, and these take more than the budget of "
            f"{config().memory / 1e6:,.0f} MB. Leave it out: some ratings are held out anyway. Or raise the budget: "
            "⟨memory=8GB⟩."
        )
    folder = tempfile.TemporaryDirectory(prefix="twofold-ratings-")
    with doing("reading"):
        options: dict[str, Any] = {**roles, "missing": missing, "holdout": TEST_SHARE}
        ratings = PartitionedRatings(paths, folder.name, **options)
    ratings.keeper = folder
    source = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    notes = describe_columns([name for name in ratings.columns.values() if name], ratings.columns)
    notes.append(
        f"ratings take more than the memory budget of {config().memory / 1e6:,.0f} MB and stay on disk, in blocks; "
        f"{ratings.held_out.nnz:,} of them were held out and are not fitted"
    )
    return Stored(ratings, source, notes, folder)


def as_ratings_or_model(data: Any, roles: dict[str, str | None], missing: Sequence[Any]) -> Ratings | Fitted:
    """Ratings, or a recommender that was fitted."""
    one = data[0] if isinstance(data, (list, tuple)) and len(data) == 1 else data
    if type(one).__name__ == "Recommender":
        return Fitted(one, "the recommender")
    if isinstance(one, (str, os.PathLike)) and os.fspath(one).endswith(".twofold"):
        from twofold.io.tables.read import missing_message

        path = os.fspath(one)
        if not os.path.isfile(path):
            raise ModelFileError(missing_message(path))
        model: Any = twofold.load(path)
        if type(model).__name__ != "Recommender":
            raise InputError(f"{path} holds a {type(model).__name__}. Give a Recommender, or a file of ratings.")
        return Fitted(model, path)
    from twofold.io.ratings import check_repeats, read_ratings

    return check_repeats(read_ratings(data, **roles, missing=missing))


def as_names(
    names: Any, data: Ratings | Fitted | Stored, columns: dict[str, str | None]
) -> tuple[dict[Any, str] | None, list]:
    """Read the names of items, by id, if there are any; and a note that says from where."""
    if names is None or isinstance(names, Mapping):
        return None if names is None else {item: str(name) for item, name in names.items()}, []
    from twofold.io.ratings import read_names

    if isinstance(data, Stored):
        items = data.ratings.items
    else:
        items = data.model.items_ if isinstance(data, Fitted) else data.item.unique().to_numpy()
    found, note = read_names(os.fspath(names), items, **columns)
    return found, [note]


def keep_names(model: Any, names: dict[Any, str] | None) -> dict[Any, str]:
    """Let the model keep names, if there are any; return those it then has."""
    items, kept = model.items_.tolist(), model.content_.get("item", {})
    new = kept["ids"].tolist() if kept else []
    if names is not None:
        model.names_ = np.array([names.get(item, "") for item in items], dtype=object)
        if new:
            kept["called"] = np.array([names.get(item, "") for item in new], dtype=object)
    own = [""] * len(items) if model.names_ is None else model.names_
    return {
        i: name for i, name in zip([*items, *new], [*own, *kept.get("called", [""] * len(new))], strict=True) if name
    }


# --- the fit, and how good it is ----------------------------------------------------------------------------


def as_model(model: Any, seed: int) -> Any:
    """A completion model by its name; one that is given, and None, as they are."""
    if not isinstance(model, str):
        return model
    from twofold import completion
    from twofold.completion.model import Completion
    from twofold.core.spelling import did_you_mean

    kinds = {name.lower(): getattr(completion, name) for name in completion.__all__ if name != "Recommender"}
    kinds = {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Completion)}
    names = sorted(kind.__name__ for kind in kinds.values())
    if model.lower() not in kinds:
        there = f"There are {', '.join(names)}."
        raise InputError(f"⟨model={model}⟩: no such model. {did_you_mean(model, names, there)}")
    made = kinds[model.lower()]()
    return made.set_params(random_state=seed) if "random_state" in made.get_params() else made


def fit(data: Ratings | Stored, features: dict[str, Any], wanted: Any, time: float, seed: int, notes: list[str]) -> Any:
    """Fit a recommender with the model that is wanted, or with those it chooses."""
    ratings: Any = data
    columns: dict[str, Any] = {}
    if isinstance(data, Stored):
        ratings = data.ratings
        check_enough(ratings.users, ratings.items, data.source)
    else:
        check_enough(data.user.unique(), data.item.unique(), data.source)
        columns = {role: name for role, name in data.columns.items() if name is not None and not data.matrix}
    model = twofold.Recommender(wanted, **columns, time=time, random_state=seed)
    with warnings_as_notes(notes):
        model.fit(ratings, **features)
    if isinstance(data, Stored):
        return model
    if data.rating is not None and model.implicit_ and not data.counts:
        notes.append(
            f"every rating is {data.rating[0]:g}: what can be learned is which users have what, not how they like it"
        )
    again = len(data.user) - model.ratings_.nnz
    if again:
        rows = f"{count(again, 'row')} repeat{'' if again > 1 else 's'}"
        what = "added up" if model.implicit_ else "averaged"
        notes.append(f"{rows} a user and an item, and {'are' if again > 1 else 'is'} {what}")
    return model


def check_measurable(data: Ratings | Fitted | Stored, split: str | None, item_features: Any) -> None:
    """Refuse a split that is unknown or needs times or features that there are not, before anything is fitted."""
    if split is None:
        return
    from twofold.completion.recommender.splits import check_split

    check_split(split, TEST_SHARE, None)
    if split == "items" and item_features is None:
        raise InputError("⟨split=items⟩ ranks items without ratings by their features. Give them: ⟨item_features⟩.")
    if split == "last" and not isinstance(data, (Fitted, Stored)) and data.time is None:
        raise InputError(
            f"⟨split=last⟩: no column of {data.source} says when. Call it time, date or timestamp, or split otherwise."
        )


def check_enough(users: Any, items: Any, source: str) -> None:
    """Refuse ratings of one user, whose items are all known, or of one item."""
    for ids, role in ((users, "user"), (items, "item")):
        if len(ids) == 1:
            raise InputError(
                f"{source} has ratings of one {role} alone, {ids[0]!r}: there is nothing to recommend. Give ratings of "
                f"several {role}s, or name the column of {role}s: ⟨{role}_column⟩."
            )


def describe_choice(model: Any) -> list[str]:
    """Say which models were chosen, and why."""
    choice = model.choice_
    parts = {"lists": choice.get("ranking", choice), "ratings": choice} if not model.implicit_ else {"lists": choice}
    if len({id(part) for part in parts.values()}) < len(parts):
        parts = {"lists and ratings": choice}
    notes = []
    for what, part in parts.items():
        limits = "⟨time⟩" if hasattr(model.ratings_, "indices") else "⟨time⟩, ⟨memory⟩"
        also = f" ({', '.join(part['skipped'])} not tried: {limits})" if part.get("skipped") else ""
        notes.append(f"{what} by {part['model']}: {part['why']}{also}")
    if "ranking" in choice and choice["ranking"]["model"] == "Popularity" and choice["model"] != "Biases":
        notes.append(f"for lists of what each user would rate highest, say ⟨model={choice['model']}⟩")
    for role, kept in model.content_.items():
        does = "can be in lists" if role == "item" else "have lists"
        notes.append(f"features of {role}s are used: {count(len(kept['ids']), role)} without ratings {does}")
    return notes


def summarize_trials(model: Any) -> dict[str, dict[str, dict[str, float]]]:
    """The score and its standard error of the best of every kind of model that was tried, the chosen ones first."""
    out = {}
    for what, part in (("lists", ranking_choice(model)), ("ratings", {} if model.implicit_ else model.choice_)):
        kinds: dict[str, tuple[str, dict[str, float]]] = {}
        for name, row in sorted(
            part.get("tried", {}).items(), key=lambda row: row[1]["score"], reverse=what == "lists"
        ):
            kinds.setdefault(name.split(" (")[0], (name, row))
        first = kinds.pop(part.get("model", ""), None)
        out[what] = dict([*([first] if first else []), *kinds.values()])
    return {what: rows for what, rows in out.items() if rows}


def ranking_choice(model: Any) -> dict[str, Any]:
    return model.choice_ if model.implicit_ else model.choice_.get("ranking", {})


def summarize_evaluation(compared: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """The same of an evaluation."""
    out: dict[str, dict[str, dict[str, float]]] = {}
    for what, measure in (("lists", "ndcg"), ("ratings", "rmse")):
        rows = {
            row["model"]: {"score": row[measure], "error": find_error(row["intervals"].get(measure))}
            for row in compared
            if row[measure] is not None
        }
        out |= {what: rows} if rows else {}
    return out


def find_error(ends: tuple[float, float] | None) -> float:
    """The standard error behind a 95 % interval."""
    return 0.0 if ends is None or not np.isfinite(ends[1]) else (ends[1] - ends[0]) / (2 * WIDTH)


def figures_of(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures of the chosen models on the ratings held out to choose them, and those of the trivial ones."""
    lists, ratings = ranking_choice(model), {} if model.implicit_ else model.choice_
    if "score" not in lists and "score" not in ratings:
        return {}, {}
    figures: dict[str, Any] = {
        "what": "NDCG of lists and RMSE of ratings held out, by which the models were chosen",
        "n": 10,
    }
    figures |= {"ratings": ratings.get("held_out", lists.get("held_out"))}
    figures |= {"ndcg": lists.get("score"), "rmse": ratings.get("score")}
    method = "popularity" if model.implicit_ else "popularity for lists, biases for ratings"
    figures["intervals"] = {
        name: (part["score"] - WIDTH * part["error"], part["score"] + WIDTH * part["error"])
        for name, part in (("ndcg", lists), ("rmse", ratings))
        if "score" in part
    }
    return figures, {"method": method, "ndcg": lists.get("baseline_score"), "rmse": ratings.get("baseline_score")}


def measure(
    model: Any, data: Ratings, n: int, split: str, seed: int, notes: list[str], item_features: Any = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Fit again without some of the ratings, and measure on these: own figures, and a row a method."""
    size = model.ratings_.nnz
    if size > MAX_RATINGS_FOR_SECOND_FIT:
        notes.append(f"{size:,} ratings: not fitted a second time for the figures")
        return {}, []
    if size < 100:
        notes.append(f"too few ratings ({size}) to hold any out")
        return {}, []
    with warnings_as_notes([]):
        ratings = data if split == "last" else None  # times are not kept
        items = item_features if split == "items" else None
        found = model.evaluate(ratings, items=items, split=split, test_size=TEST_SHARE, n=n, random_state=seed + 1)
    compared = found.table.to_dicts()
    for row in compared:
        ends = found.intervals.filter(model=row["model"]).select("measure", "low", "high").iter_rows()
        row["intervals"] = {measure: (low, high) for measure, low, high in ends}
    if split == "items":
        notes.append(
            "new items are ranked among themselves: do not compare these figures with those of lists of all items"
        )
    own, popular = compared[0], compared[-1]
    if (popular["ndcg"] or 0) > (own["ndcg"] or 0):
        notes.append("popularity alone makes better lists of what was held out")
    about = {"what": f"errors of ratings held out, and what lists of {n} hold of them", "n": n}
    about |= {"ratings": found.ratings, "users": found.users, "unseen": found.unseen, "relevant": found.relevant}
    return about | {name: own[name] for name in (*MEASURES, "intervals")}, compared


def baseline_of(compared: list[dict[str, Any]]) -> dict[str, Any]:
    """The trivial methods: errors of biases (which the own model may be), lists of what is most popular."""
    if not compared:
        return {}
    errors, lists = compared[-2], compared[-1]
    explicit = errors["rmse"] is not None
    method = "biases for errors, popularity for lists" if explicit else "popularity"
    return {"method": method} | {name: (errors if name in ("rmse", "mae") else lists)[name] for name in MEASURES}


# --- lists --------------------------------------------------------------------------------------------------


def list_examples(model: Any) -> list[Any]:
    """A few users to show: the ones with the most, a middling number, and the fewest ratings."""
    order = np.argsort(-np.diff(model.ratings_.indptr), kind="stable")
    at = dict.fromkeys([0, len(order) // 2, len(order) - 1])
    return [model.users_[order[i]] for i in list(at)[:EXAMPLE_USERS]]


def recommend_user(model: Any, user: Any, n: int, explain: bool) -> Listing:
    from twofold.completion.ids import places

    frame = model.recommend(user, n)
    row = int(places(model.users_, [user])[0])
    if row < 0:  # known by features alone
        return Listing(int(user) if model.users_.dtype.kind in "iu" else str(user), frame, [])
    return Listing(plain(model.users_[row]), frame, reasons_for(model, model.ratings_[[row]], frame) if explain else [])


def recommend_new_user(model: Any, ratings: dict[Any, float], n: int, explain: bool) -> Listing:
    frame = model.recommend_new(ratings, n)
    reasons = []
    if explain:
        from twofold.completion.ratings_table import row_of

        x, _ = row_of(ratings, model.items_, model.implicit_, model.ratings_.dtype)
        reasons = reasons_for(model, x, frame)
    return Listing(None, frame, reasons)


def reasons_for(model: Any, x: Any, frame: pl.DataFrame) -> list[list[tuple[Any, float]]]:
    """The rated items with the largest shares in each recommendation; x (1,d) are the ratings."""
    from twofold.completion.ids import places
    from twofold.completion.recommender.explain import split_prediction

    out: list[list[tuple[Any, float]]] = []
    for column in places(model.items_, frame["item"].to_list()).tolist():
        if column < 0:  # an item without ratings
            out.append([])
            continue
        shares = split_prediction(model.ranking_, model._rank_values(x), column)
        order = np.argsort(-shares, kind="stable")[:REASONS_PER_ITEM]
        out.append([(plain(model.items_[x.indices[j]]), float(shares[j])) for j in order if shares[j] > 0])
    return out


def as_new(new: Mapping[Any, float] | Sequence[str], model: Any, names: dict[Any, str]) -> dict[Any, float]:
    """The ratings of someone new, by the ids of items.

    In a text, `id:5,id:3`, ids may hold commas and colons: an id ends at a colon with a number behind it, after which
    there is a comma or the end. If that would cut an id in two, it is given in a text of its own: what is left of the
    last colon is tried as one id first.
    """
    from twofold.completion.ids import place

    by_name = {name: item for item, name in names.items()}
    texts = [new] if isinstance(new, str) else new
    pairs = new.items() if isinstance(new, Mapping) else (p for text in texts for p in read_pairs(text, model, by_name))
    out: dict[Any, float] = {}
    low, high = model.range_
    for word, value in pairs:
        at = place(model.items_, by_name.get(word, word), "item")
        if not model.implicit_ and not low <= value <= high:
            raise InputError(f"⟨new={word}:{value:g}⟩: the ratings go from {low:g} to {high:g}. Give one of these.")
        out[model.items_[at]] = value
    return out


def read_pairs(text: str, model: Any, by_name: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The pairs of one text."""
    from twofold.completion.ids import places

    def exists(word: str) -> bool:
        return word in by_name or int(places(model.items_, [word])[0]) >= 0

    head, _, tail = text.rpartition(":")
    alone = _PAIR.fullmatch(f"x:{tail.strip()}")
    if exists(head.strip()) and alone:
        yield head.strip(), float(alone[2])
        return
    if model.implicit_ and (exists(text.strip()) or not _PAIR.search(text)):
        yield from ((word.strip(), 1.0) for word in ([text] if exists(text.strip()) else text.split(",")))
        return
    at = 0
    while at < len(text.rstrip()):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise InputError(
                f'⟨new={text}⟩: "{text[at:]}" has no rating. Write ITEM:RATING, with commas between pairs.'
            )
        yield pair[1].strip(), float(pair[2])
        at = pair.end()
